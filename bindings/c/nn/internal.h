/* What the files of libadead_nn share. */
#ifndef ADEAD_NN_INTERNAL_H
#define ADEAD_NN_INTERNAL_H

#include <adead/nn.h>
#include <stdatomic.h>
#include <stdbool.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* error.c: the text of this thread's last failure. What doesn't fit is cut off. */

/* Keeps a text and returns the status. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), cold))
#endif
adead_status nn_fail(adead_status status, const char *format, ...);
/* Keeps the text of a call of libadead that failed. */
adead_status nn_check(adead_status status);
adead_status nn_out_of_memory(void);
/* Dimensions for a text, [2, 3], in room for SHOWN bytes; more than fit end with dots. */
enum { SHOWN = 256 };
const char *nn_shown(const size_t *dims, size_t rank, char room[SHOWN]);

#define NEED(pointer)                                                                   \
  do {                                                                                  \
    if (!(pointer)) return nn_fail(ADEAD_INVALID_ARGUMENT, "%s is NULL", #pointer);     \
  } while (0)
/* Returns the status of a call of libadead, or of this library, if it failed. */
#define TRY_ADEAD(call)                       \
  do {                                        \
    adead_status status_ = nn_check(call);    \
    if (status_) return status_;              \
  } while (0)
#define TRY(call)                             \
  do {                                        \
    adead_status status_ = (call);            \
    if (status_) return status_;              \
  } while (0)

/* safetensors.c: the header of a file. */

/* A tensor in the file: dtype by the format's name, dimensions, and its bytes, counted from the header's end. */
typedef struct {
  char *name;
  const char *dtype;
  size_t *dims, rank, begin, end;
} nn_stored;

/* Reads a header with so many bytes behind it: its tensors, sorted by name. Says what is wrong with the file at `path`. */
adead_status nn_header_read(const char *path, const char *text, size_t size, size_t bytes, nn_stored **out, size_t *count);
void nn_header_free(nn_stored *tensors, size_t count);

/* weights.c */

/* The tensor of the name that a prefix and a suffix are together. */
adead_status nn_part(const adead_nn_weights *weights, const adead_context *context, const char *prefix, const char *suffix,
                     const size_t *dims, size_t rank, adead_tensor **out);
/* Both texts behind each other, for free(); NULL where there is no memory. */
char *nn_joined(const char *prefix, const char *suffix);

/* layers.c: a layer begins with what all have. */

typedef struct nn_kind {
  const char *name;
  adead_status (*forward)(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out);
  void (*clear)(adead_nn_layer *layer);
} nn_kind;

struct adead_nn_layer {
  const nn_kind *kind;
  atomic_size_t owners;
};

/* A layer of so many bytes, otherwise zero; NULL, with its text, where there is no memory. */
void *nn_layer(const nn_kind *kind, size_t size);
/* Another owner. */
adead_nn_layer *nn_share(const adead_nn_layer *layer);

/* What a linear layer has; NULL unless it is one. */
typedef struct {
  adead_nn_layer base;
  const adead_context *context;
  adead_packed *packed;
  adead_tensor *plain, *bias;
  size_t inputs, outputs;
} nn_linear;
const nn_linear *nn_as_linear(const adead_nn_layer *layer);

#endif
