/* A text under construction and what the texts share. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include <adead/profile.h>

/* A static library's names are everybody's. */
#define put_bytes adead_profile_put_bytes_
#define put_number adead_profile_put_number_
#define put_reason adead_profile_put_reason_
#define put adead_profile_put_
#define whole adead_profile_whole_
#define give adead_profile_give_
#define summary_of adead_profile_summary_of_
#define record_of adead_profile_record_of_
#define total_of adead_profile_total_of_
#define device_of adead_profile_device_of_

/* Where there is no memory the rest is lost and `failed` set. */
typedef struct {
  char *bytes;
  size_t length, capacity;
  int failed;
} Text;

void put_bytes(Text *text, const char *bytes, size_t length);
void put(Text *text, const char *words);
void put_number(Text *text, uint64_t value);

/* A double as Rust casts it to u64: cut, and held to the type's range. */
uint64_t whole(double value);

/* "threshold of 4096 elements": a reason as the Rust crate writes it. */
void put_reason(Text *text, const char *reason, uint64_t threshold);

/* Ends a text: the caller's from now on, or a status. */
adead_status give(Text *text, adead_status status, char **out);

/* Reports with their size. */
adead_status summary_of(const adead_profile *profile, adead_profile_summary *out);
adead_status record_of(const adead_profile *profile, size_t index, adead_profile_record *out);
adead_status total_of(const adead_profile *profile, size_t index, adead_profile_total *out);
adead_status device_of(const adead_profile *profile, size_t index, adead_profile_device *out);

#endif
