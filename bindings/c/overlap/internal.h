/* What the files of libadead_overlap share. */
#ifndef ADEAD_OVERLAP_INTERNAL_H
#define ADEAD_OVERLAP_INTERNAL_H

#include <adead/overlap.h>
#include <stdbool.h>

/* error.c: the text of this thread's last failure. What doesn't fit is cut off. */

enum { TEXT = 1024 };

/* Keeps a text and returns the status. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), cold))
#endif
adead_status overlap_fail(adead_status status, const char *format, ...);
/* Keeps the text of a call of libadead that failed. */
adead_status overlap_check(adead_status status);
/* How often something of this library failed on this thread. */
size_t overlap_failures(void);
/* Keeps what is known of a callback's failure: its name, for which batch, and the text of what failed in it; `before` is what
 * overlap_failures was when it was called. */
adead_status overlap_failed(adead_status status, const char *callback, size_t batch, size_t before);

#define NEED(pointer)                                                                    \
  do {                                                                                   \
    if (!(pointer)) return overlap_fail(ADEAD_INVALID_ARGUMENT, "%s is NULL", #pointer); \
  } while (0)

/* batch.c */

struct adead_batch {
  /* What it has; NULL where it was given nothing. */
  const void *data;
  size_t bytes;
  /* Its own, for batches that are made in it. */
  void *memory;
  size_t room;
};

/* Asks for batch number `index`, into `batch`. Without one its data is NULL. */
adead_status batch_ask(adead_batch *batch, size_t index, adead_next next, void *user);
void batch_free(adead_batch *batch);

#endif
