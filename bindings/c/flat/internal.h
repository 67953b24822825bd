/* What the files of libadead_flat share. Whoever calls anything here but flat_fail has the lock. */
#ifndef ADEAD_FLAT_INTERNAL_H
#define ADEAD_FLAT_INTERNAL_H

#include <adead/flat.h>
#include <stdbool.h>

/* error.c: keeps the text of this thread's last failure and returns the status. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), cold))
#endif
adead_status flat_fail(adead_status status, const char *format, ...);
/* Keeps the text of a call of libadead that failed. */
adead_status flat_check(adead_status status);

#define TRY_ADEAD(call)                     \
  do {                                      \
    adead_status tried = flat_check(call);  \
    if (tried) return tried;                \
  } while (0)
#define TRY(call)                           \
  do {                                      \
    adead_status tried = (call);            \
    if (tried) return tried;                \
  } while (0)
#define NEED(pointer)                                                                 \
  do {                                                                                \
    if (!(pointer)) return flat_fail(ADEAD_INVALID_ARGUMENT, "%s is NULL", #pointer); \
  } while (0)

/* devices.c */

typedef struct {
  int32_t use_gpu, device;
} flat_place;

typedef struct {
  flat_place place;
  /* NULL until it is opened. */
  adead_context *context;
  /* That of work which names none. */
  adead_stream *stream;
  char id[32];
} flat_device;

/* The device at a place, opened if it was not. Invalid after the next call. */
adead_status flat_open(flat_place place, flat_device **out);
/* The number of GPUs. */
adead_status flat_gpus(int32_t *out);
/* What a place is called: "cpu", "cuda:0". It is not opened. */
adead_status flat_id(flat_place place, char id[32]);
void flat_close_devices(void);

/* table.c */

typedef enum { FLAT_MATRIX = 1, FLAT_STREAM = 2 } flat_kind;

typedef struct {
  /* 0: free. */
  flat_kind kind;
  uint32_t generation;
  flat_place place;
  /* Of a matrix. */
  adead_buffer *buffer;
  int64_t rows, cols;
  /* The stream that used it last; 0 is the device's own. One that is gone has done its work. */
  adead_flat_handle used_in;
  /* Of a stream. */
  adead_stream *stream;
} flat_entry;

/* Room for one more, which the next flat_add takes. */
adead_status flat_reserve(void);
/* Its number. There is room. */
adead_flat_handle flat_add(const flat_entry *entry);
/* What a number stands for; `invalid_argument` unless it is there and of that kind. */
adead_status flat_find(adead_flat_handle handle, flat_kind kind, flat_entry **out);
/* Lets go of an entry and what it has. */
void flat_remove(flat_entry *entry);
int64_t flat_live(void);
void flat_remove_all(void);
/* The one lock. */
void flat_lock(void);
void flat_unlock(void);

#endif
