/* Texts that grow, and the numbers of a profile for them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void put_bytes(Text *text, const char *bytes, size_t length) {
  if (text->failed) return;
  if (length >= text->capacity - text->length) {
    size_t capacity = text->capacity + length + 1;
    char *grown;
    capacity += capacity / 2;
    grown = capacity > text->length + length ? realloc(text->bytes, capacity) : NULL;
    if (!grown) {
      text->failed = 1;
      return;
    }
    text->bytes = grown;
    text->capacity = capacity;
  }
  if (length) memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = 0;
}

void put(Text *text, const char *words) { put_bytes(text, words, strlen(words)); }

void put_number(Text *text, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + value % 10);
  while (value /= 10);
  put_bytes(text, digits + at, sizeof digits - at);
}

uint64_t whole(double value) {
  if (!(value > 0)) return 0;
  return value < 18446744073709551616.0 ? (uint64_t)value : (uint64_t)-1;
}

void put_reason(Text *text, const char *reason, uint64_t threshold) {
  put(text, reason);
  if (strcmp(reason, "threshold")) return;
  put(text, " of ");
  put_number(text, threshold);
  put(text, " elements");
}

adead_status give(Text *text, adead_status status, char **out) {
  put_bytes(text, "", 0);
  if (!status && text->failed) status = ADEAD_OUT_OF_MEMORY;
  if (status) {
    free(text->bytes);
  } else {
    *out = text->bytes;
  }
  return status;
}

adead_status summary_of(const adead_profile *profile, adead_profile_summary *out) {
  out->struct_size = sizeof *out;
  return adead_profile_report(profile, out);
}

adead_status record_of(const adead_profile *profile, size_t index, adead_profile_record *out) {
  out->struct_size = sizeof *out;
  return adead_profile_record_at(profile, index, out);
}

adead_status total_of(const adead_profile *profile, size_t index, adead_profile_total *out) {
  out->struct_size = sizeof *out;
  return adead_profile_total_at(profile, index, out);
}

adead_status device_of(const adead_profile *profile, size_t index, adead_profile_device *out) {
  out->struct_size = sizeof *out;
  return adead_profile_device_at(profile, index, out);
}

void adead_profile_text_destroy(char *text) { free(text); }
