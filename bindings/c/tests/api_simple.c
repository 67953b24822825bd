/* The simple API: results, errors, memory. On a machine without GPUs, whatever this one has. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <limits.h>
#include <stdint.h>

static void versions(void) {
  unsigned major = 99;
  CHECK(adead_abi_version() == ADEAD_ABI_VERSION);
  CHECK(sscanf(adead_version(), "%u.", &major) == 1 && major != 99);
  CHECK(!strncmp(adead_contract_version(), "adead-contract-", 15));
  CHECK(!strcmp(adead_status_name(ADEAD_OK), "ok"));
  CHECK(!strcmp(adead_status_name(ADEAD_INTERNAL), "internal"));
  CHECK(!adead_status_name(-1) && !adead_status_name(13));
  CHECK(!strcmp(adead_last_error(), ""));
}

static void results(void) {
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
  float c[5] = {-1, -1, -1, -1, 77}, x[4] = {-1, 0, 2, -0.0f};
  /* Nothing was initialised yet: the first call does. */
  OK(adead_matmul(a, b, c, 2, 2, 3));
  CHECK(c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11 && c[4] == 77);
  OK(adead_init(ADEAD_BACKEND_CPU));
  OK(adead_relu(x, x, 4));
  CHECK(x[0] == 0 && x[1] == 0 && x[2] == 2 && x[3] == 0);
  OK(adead_softmax(x, c, 2, 2));
  CHECK(c[0] == 0.5f && c[1] == 0.5f && c[2] + c[3] > 0.999999f && c[2] > c[3] && c[4] == 77);
  /* Empty arrays may be NULL, others not. */
  OK(adead_relu(NULL, NULL, 0));
  OK(adead_softmax(NULL, NULL, 3, 0));
  OK(adead_matmul(NULL, NULL, c, 2, 2, 0));
  CHECK(c[0] == 0 && c[3] == 0);
}

static void errors(void) {
  const float a[4] = {1, 2, 3, 4};
  float c[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  FAILS(adead_matmul(NULL, a, c, 2, 2, 2), ADEAD_INVALID_ARGUMENT, "a is NULL");
  FAILS(adead_matmul(a, NULL, c, 2, 2, 2), ADEAD_INVALID_ARGUMENT, "b is NULL");
  FAILS(adead_matmul(a, a, NULL, 2, 2, 2), ADEAD_INVALID_ARGUMENT, "result is NULL");
  FAILS(adead_matmul(a, a, c, -2, 2, 2), ADEAD_INVALID_ARGUMENT, "m is -2");
  FAILS(adead_matmul(a, a, c, 2, INT_MIN, 2), ADEAD_INVALID_ARGUMENT, "n is -2147483648");
  FAILS(adead_matmul(a, a, c, INT_MAX, INT_MAX, INT_MAX), ADEAD_INVALID_ARGUMENT, "elements");
  FAILS(adead_matmul(c, a, c + 1, 2, 2, 2), ADEAD_INVALID_ARGUMENT, "overlaps");
  FAILS(adead_relu(c, c + 1, 4), ADEAD_INVALID_ARGUMENT, "overlaps");
  FAILS(adead_relu(NULL, c, 1), ADEAD_INVALID_ARGUMENT, "in is NULL");
  FAILS(adead_relu((const float *)((uintptr_t)c + 1), c + 4, 1), ADEAD_INVALID_ARGUMENT, "in is at");
  FAILS(adead_softmax(a, NULL, 2, 2), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_softmax(a, c, 2, -1), ADEAD_INVALID_ARGUMENT, "cols is -1");
  FAILS(adead_init(7), ADEAD_INVALID_ARGUMENT, "backend is 7");
  FAILS(adead_init(ADEAD_BACKEND_CUDA), ADEAD_BACKEND_UNAVAILABLE, "cuda");
  FAILS(adead_init(ADEAD_BACKEND_VULKAN), ADEAD_BACKEND_UNAVAILABLE, "vulkan");
  FAILS(adead_vulkan_init(), ADEAD_BACKEND_UNAVAILABLE, "vulkan");
  FAILS(adead_vulkan_compute(NULL, 1, 1, 1), ADEAD_INVALID_ARGUMENT, "shader is NULL");
  FAILS(adead_vulkan_compute("add.spv", 1, 0, 1), ADEAD_INVALID_ARGUMENT, "y is 0");
  FAILS(adead_vulkan_compute("add.spv", 1, 1, 1), ADEAD_BACKEND_UNAVAILABLE, "vulkan");
  CHECK(c[0] == 9 && c[1] == 9 && c[4] == 9 && c[7] == 9);
  OK(adead_relu(a, c, 4)); /* A failed init left the CPU in use. */
}

static void memory(void) {
  void *p = NULL, *q = &p;
  int here;
  size_t i;
  OK(adead_alloc(1000, &p));
  CHECK((uintptr_t)p % 64 == 0);
  for (i = 0; i < 1000; i++) CHECK(((char *)p)[i] == 0);
  memset(p, 1, 1000);
  FAILS(adead_alloc(8, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_alloc(SIZE_MAX, &q), ADEAD_OUT_OF_MEMORY, "bytes");
  FAILS(adead_alloc(SIZE_MAX / 4, &q), ADEAD_OUT_OF_MEMORY, "bytes");
  CHECK(q == (void *)&p);
  FAILS(adead_free(&here), ADEAD_INVALID_ARGUMENT, "not from adead_alloc");
  FAILS(adead_free((char *)p + 64), ADEAD_INVALID_ARGUMENT, "not from adead_alloc");
  OK(adead_free(p));
  FAILS(adead_free(p), ADEAD_INVALID_ARGUMENT, "freed before");
  OK(adead_free(NULL));
  OK(adead_alloc(0, &p));
  OK(adead_alloc(0, &q));
  CHECK(p && q && p != q);
  OK(adead_free(p));
  OK(adead_shutdown()); /* It takes q. */
  FAILS(adead_free(q), ADEAD_INVALID_ARGUMENT, "freed before");
  OK(adead_shutdown());
  OK(adead_init(ADEAD_BACKEND_AUTO));
  OK(adead_alloc(16, &p));
  OK(adead_shutdown());
}

int main(void) {
  CHECK(!setenv("ADEAD_VISIBLE_DEVICES", "none", 1));
  versions();
  results();
  errors();
  memory();
  return 0;
}
