/* Checks that the tests of the C API share. */
#ifndef CHECK_H
#define CHECK_H

#include <adead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The source of the error text that OK and FAILS print: libadead, unless a test of another library sets its
 * function. */
#ifndef LAST_ERROR
#define LAST_ERROR adead_last_error
#endif

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

/* Checks that the call succeeds. */
#define OK(call)                                                                   \
  do {                                                                             \
    if ((call) != ADEAD_OK) {                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, LAST_ERROR()); \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

/* Checks that the call fails with a status and a text that contains these words. */
#define FAILS(call, status, words)                                                                              \
  do {                                                                                                          \
    adead_status got_ = (call);                                                                                 \
    if (got_ != (status) || !strstr(LAST_ERROR(), words)) {                                                     \
      fprintf(stderr, "%s:%d: %s: %s, %s\n", __FILE__, __LINE__, #call, adead_status_name(got_), LAST_ERROR()); \
      exit(1);                                                                                                  \
    }                                                                                                           \
  } while (0)

/* Makes an f32 tensor. */
static inline adead_tensor *tensor(const float *values, size_t rank, size_t d0, size_t d1) {
  size_t dims[2], count = (rank > 0 ? d0 : 1) * (rank > 1 ? d1 : 1);
  adead_tensor *made = NULL;
  dims[0] = d0;
  dims[1] = d1;
  OK(adead_tensor_create(ADEAD_DTYPE_F32, dims, rank, values, count * sizeof *values, &made));
  return made;
}

/* Returns whether two tensors have the same dtype, shape and bits. */
static inline int same(const adead_tensor *a, const adead_tensor *b) {
  adead_dtype a_dtype, b_dtype;
  size_t a_rank, b_rank, a_bytes, b_bytes;
  const size_t *a_dims, *b_dims;
  const void *a_data, *b_data;
  OK(adead_tensor_dtype(a, &a_dtype));
  OK(adead_tensor_dtype(b, &b_dtype));
  OK(adead_tensor_rank(a, &a_rank));
  OK(adead_tensor_rank(b, &b_rank));
  OK(adead_tensor_dims(a, &a_dims));
  OK(adead_tensor_dims(b, &b_dims));
  OK(adead_tensor_bytes(a, &a_bytes));
  OK(adead_tensor_bytes(b, &b_bytes));
  OK(adead_tensor_data(a, &a_data));
  OK(adead_tensor_data(b, &b_data));
  return a_dtype == b_dtype && a_rank == b_rank && !memcmp(a_dims, b_dims, a_rank * sizeof *a_dims) &&
         a_bytes == b_bytes && !memcmp(a_data, b_data, a_bytes);
}

/* Fills in values that are neither round nor all alike. */
static inline void some_values(float *values, size_t count, unsigned seed) {
  size_t i;
  for (i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)((int)(seed >> 8) - (1 << 23)) / (float)(1 << 22);
  }
}

#endif
