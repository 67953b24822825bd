/* Helpers that the tests of GPUs share. On a machine without a Vulkan device the tests are skipped.
 * */
#ifndef GPU_H
#define GPU_H

#include "check.h"

#define SKIPPED 77

/* Opens the best GPU, which may be a software device. */
static inline adead_context *open_gpu(void) {
  adead_context *context = NULL;
  adead_status status = adead_context_open("vulkan", NULL, &context);
  if (status == ADEAD_BACKEND_UNAVAILABLE) {
    printf("skipped: %s\n", adead_last_error());
    exit(SKIPPED);
  }
  OK(status);
  return context;
}

/* Loads a kernel of examples/kernels. */
static inline adead_kernel *kernel(const adead_context *context, const char *name) {
  char path[1024];
  adead_kernel *made = NULL;
  snprintf(path, sizeof path, "%s/%s.spv", KERNELS, name);
  OK(adead_kernel_load_spirv(context, path, &made));
  return made;
}

static inline adead_buffer *buffer(const adead_context *context, const void *data, size_t bytes) {
  adead_buffer *made = NULL;
  OK(adead_buffer_create(context, data, bytes, &made));
  return made;
}

/* Returns whether a buffer has exactly these bytes. */
static inline int has(const adead_buffer *it, const void *expected, size_t bytes) {
  size_t size = 0;
  void *found = malloc(bytes + 1);
  int equal;
  OK(adead_buffer_size(it, &size));
  OK(adead_buffer_read(it, 0, found, bytes));
  equal = size == bytes && !memcmp(found, expected, bytes);
  free(found);
  return equal;
}

#endif
