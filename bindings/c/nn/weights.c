/* Weights: the tensors of a safetensors file by name. For systems that have POSIX's mmap. */
#define _POSIX_C_SOURCE 200809L
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct adead_nn_weights {
  char *path;
  unsigned char *map;
  /* Of the map, and of what is before the tensors' bytes. */
  size_t size, start;
  nn_stored *tensors;
  size_t count;
};

/* Maps a file; the error's number, or 0. An empty one has no address. */
static int map_file(adead_nn_weights *weights) {
  struct stat found;
  int file = open(weights->path, O_RDONLY | O_CLOEXEC), error;
  if (file < 0) return errno;
  error = fstat(file, &found) ? errno : S_ISDIR(found.st_mode) ? EISDIR : 0;
  if (!error && found.st_size > 0) {
    void *map = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED) {
      error = errno;
    } else {
      weights->map = map;
      weights->size = (size_t)found.st_size;
    }
  }
  /* What is mapped stays. */
  close(file);
  return error;
}

static adead_status read_file(adead_nn_weights *weights) {
  /* As the format's own library has it. */
  const uint64_t longest = 100000000;
  uint64_t length = 0;
  char why[128];
  int error = map_file(weights), i;
  if (error) {
    if (strerror_r(error, why, sizeof why)) why[0] = '\0';
    return nn_fail(ADEAD_IO, "%s: %s", weights->path, why);
  }
  if (weights->size < 8) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "%s: no safetensors file: %zu bytes", weights->path, weights->size);
  }
  for (i = 7; i >= 0; i--) length = length << 8 | weights->map[i];
  if (length > longest || length > weights->size - 8) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "%s: no safetensors file: a header of %llu bytes in a file of %zu", weights->path,
                   (unsigned long long)length, weights->size);
  }
  weights->start = 8 + (size_t)length;
  return nn_header_read(weights->path, (const char *)weights->map + 8, (size_t)length, weights->size - weights->start,
                        &weights->tensors, &weights->count);
}

adead_status adead_nn_weights_open(const char *path, adead_nn_weights **out) {
  adead_nn_weights *weights;
  adead_status status;
  NEED(path);
  NEED(out);
  weights = calloc(1, sizeof *weights);
  if (!weights) return nn_out_of_memory();
  weights->path = nn_joined(path, "");
  status = weights->path ? read_file(weights) : nn_out_of_memory();
  if (status) {
    adead_nn_weights_destroy(weights);
    return status;
  }
  *out = weights;
  return ADEAD_OK;
}

void adead_nn_weights_destroy(adead_nn_weights *weights) {
  if (!weights) return;
  if (weights->map) munmap(weights->map, weights->size);
  nn_header_free(weights->tensors, weights->count);
  free(weights->path);
  free(weights);
}

adead_status adead_nn_weights_count(const adead_nn_weights *weights, size_t *out) {
  NEED(weights);
  NEED(out);
  *out = weights->count;
  return ADEAD_OK;
}

adead_status adead_nn_weights_name(const adead_nn_weights *weights, size_t index, const char **out) {
  NEED(weights);
  NEED(out);
  if (index >= weights->count) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "index is %zu; there are %zu tensors", index, weights->count);
  }
  *out = weights->tensors[index].name;
  return ADEAD_OK;
}

static const nn_stored *find(const adead_nn_weights *weights, const char *name) {
  size_t first = 0, last = weights->count;
  while (first < last) {
    size_t middle = first + (last - first) / 2;
    int order = strcmp(name, weights->tensors[middle].name);
    if (!order) return weights->tensors + middle;
    if (order < 0) last = middle;
    else first = middle + 1;
  }
  return NULL;
}

static adead_status missing(const adead_nn_weights *weights, const char *name) {
  return nn_fail(ADEAD_INVALID_ARGUMENT, "%s: the tensor '%s' is not among the file's %zu tensors", weights->path, name,
                 weights->count);
}

adead_status adead_nn_weights_contains(const adead_nn_weights *weights, const char *name, int32_t *out) {
  NEED(weights);
  NEED(name);
  NEED(out);
  *out = find(weights, name) != NULL;
  return ADEAD_OK;
}

adead_status adead_nn_weights_dims(const adead_nn_weights *weights, const char *name, const size_t **dims, size_t *rank) {
  const nn_stored *found;
  NEED(weights);
  NEED(name);
  NEED(dims);
  NEED(rank);
  found = find(weights, name);
  if (!found) return missing(weights, name);
  *dims = found->dims;
  *rank = found->rank;
  return ADEAD_OK;
}

/* A tensor of halves as f32. */
static adead_status widened(const adead_context *context, adead_dtype dtype, const nn_stored *found, const void *data,
                            adead_tensor **out) {
  adead_tensor *half = NULL;
  adead_status status;
  TRY_ADEAD(adead_tensor_create(dtype, found->dims, found->rank, data, found->end - found->begin, &half));
  status = nn_check(adead_tensor_cast(context, half, ADEAD_DTYPE_F32, out));
  adead_tensor_destroy(half);
  return status;
}

adead_status adead_nn_weights_tensor(const adead_nn_weights *weights, const adead_context *context, const char *name,
                                     const size_t *dims, size_t rank, adead_tensor **out) {
  const nn_stored *found;
  const void *data;
  NEED(weights);
  NEED(context);
  NEED(name);
  if (rank) NEED(dims);
  NEED(out);
  found = find(weights, name);
  if (!found) return missing(weights, name);
  if (rank != found->rank || (rank && memcmp(dims, found->dims, rank * sizeof *dims))) {
    char is[SHOWN], must[SHOWN];
    return nn_fail(ADEAD_SHAPE_MISMATCH, "%s: the tensor '%s' is %s; it must be %s", weights->path, name,
                   nn_shown(found->dims, found->rank, is), nn_shown(dims, rank, must));
  }
  data = weights->map + weights->start + found->begin;
  if (!strcmp(found->dtype, "F32")) {
    return nn_check(adead_tensor_create(ADEAD_DTYPE_F32, dims, rank, data, found->end - found->begin, out));
  }
  if (!strcmp(found->dtype, "F16")) return widened(context, ADEAD_DTYPE_F16, found, data, out);
  if (!strcmp(found->dtype, "BF16")) return widened(context, ADEAD_DTYPE_BF16, found, data, out);
  return nn_fail(ADEAD_DTYPE_MISMATCH, "%s: the tensor '%s' has elements of %s; F32, F16 and BF16 are taken", weights->path,
                 name, found->dtype);
}

char *nn_joined(const char *prefix, const char *suffix) {
  size_t first = strlen(prefix), second = strlen(suffix) + 1;
  char *whole = malloc(first + second);
  if (!whole) return NULL;
  memcpy(whole, prefix, first);
  memcpy(whole + first, suffix, second);
  return whole;
}

adead_status nn_part(const adead_nn_weights *weights, const adead_context *context, const char *prefix, const char *suffix,
                     const size_t *dims, size_t rank, adead_tensor **out) {
  char *name;
  adead_status status;
  NEED(prefix);
  name = nn_joined(prefix, suffix);
  status = name ? adead_nn_weights_tensor(weights, context, name, dims, rank, out) : nn_out_of_memory();
  free(name);
  return status;
}
