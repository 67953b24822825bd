/* Contexts, tensors and the machine's report: results, errors, outputs that stay unwritten. */
#include "check.h"

#include <stdint.h>

#define UNTOUCHED ((adead_tensor *)&untouched)
static int untouched;

static void contexts(void) {
  adead_context_options options = ADEAD_CONTEXT_OPTIONS_INIT;
  adead_context *context = NULL, *other = (adead_context *)&untouched;
  adead_device_info info;
  char arch[sizeof info.arch];
  size_t count = 0;
  OK(adead_context_open("cpu", NULL, &context));
  info.struct_size = sizeof info;
  OK(adead_context_device_info(context, &info));
  CHECK(!strcmp(info.id, "cpu") && *info.name && *info.arch && info.units > 0 && info.memory > 0);
  memcpy(arch, info.arch, sizeof arch);
  OK(adead_context_device_count(context, &count));
  CHECK(count == 1);
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  OK(adead_context_device_at(context, 0, &info));
  CHECK(!strcmp(info.id, "cpu") && info.struct_size == sizeof info);
  FAILS(adead_context_device_at(context, 1, &info), ADEAD_INVALID_ARGUMENT, "index is 1");
  info.struct_size = 4;
  FAILS(adead_context_device_info(context, &info), ADEAD_INVALID_ARGUMENT, "struct_size of adead_device_info is 4");
  FAILS(adead_context_device_info(NULL, &info), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_context_device_info(context, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_context_device_count(context, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  adead_context_destroy(context);
  adead_context_destroy(NULL);

  FAILS(adead_context_open("cpu", NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_context_open("tpu", NULL, &other), ADEAD_INVALID_ARGUMENT, "tpu");
  FAILS(adead_context_open("\xff", NULL, &other), ADEAD_INVALID_ARGUMENT, "UTF-8");
  FAILS(adead_context_open("cuda:1", NULL, &other), ADEAD_BACKEND_UNAVAILABLE, "cuda");
  options.isa = "mmx";
  FAILS(adead_context_open("cpu", &options, &other), ADEAD_INVALID_ARGUMENT, "mmx");
  options.isa = NULL;
  options.struct_size = 0;
  FAILS(adead_context_open("cpu", &options, &other), ADEAD_INVALID_ARGUMENT, "struct_size");
  CHECK(other == (adead_context *)&untouched);

  options.struct_size = sizeof options;
  options.threads = 3;
  options.isa = arch;
  OK(adead_context_open(NULL, &options, &context));
  info.struct_size = sizeof info;
  OK(adead_context_device_info(context, &info));
  CHECK(info.units == 3 && !strcmp(info.arch, arch));
  CHECK(info.contract == ADEAD_CONTRACT_NATIVE || info.contract == ADEAD_CONTRACT_EMULATED);
  adead_context_destroy(context);
}

static void tensors(void) {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  const size_t dims[2] = {2, 3}, swapped[2] = {3, 2}, huge[2] = {SIZE_MAX, 2}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const size_t *got_dims = NULL;
  const void *data = NULL;
  float read[7] = {0, 0, 0, 0, 0, 0, 77};
  size_t rank = 9, bytes = 0;
  adead_dtype dtype = -1;
  adead_tensor *t = NULL, *u = NULL, *v = NULL, *out = UNTOUCHED;
  OK(adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, values, sizeof values, &t));
  OK(adead_tensor_dtype(t, &dtype));
  OK(adead_tensor_rank(t, &rank));
  OK(adead_tensor_dims(t, &got_dims));
  OK(adead_tensor_bytes(t, &bytes));
  OK(adead_tensor_data(t, &data));
  CHECK(dtype == ADEAD_DTYPE_F32 && rank == 2 && got_dims[0] == 2 && got_dims[1] == 3 && bytes == 24);
  CHECK(data != values && !memcmp(data, values, 24) && (uintptr_t)data % 64 == 0);
  OK(adead_tensor_read(t, read, 24));
  CHECK(read[0] == 1 && read[5] == 6 && read[6] == 77);
  OK(adead_tensor_clone(t, &u));
  OK(adead_tensor_reshape(t, swapped, 2, &v));
  adead_tensor_destroy(t);
  CHECK(!same(u, v));
  OK(adead_tensor_data(v, &data));
  CHECK(((const float *)data)[5] == 6);
  FAILS(adead_tensor_reshape(u, dims, 1, &out), ADEAD_SHAPE_MISMATCH, "6 elements");
  FAILS(adead_tensor_read(u, read, 20), ADEAD_INVALID_ARGUMENT, "the tensor has 24");
  FAILS(adead_tensor_read(u, NULL, 24), ADEAD_INVALID_ARGUMENT, "dst is NULL");
  FAILS(adead_tensor_read(NULL, read, 24), ADEAD_INVALID_ARGUMENT, "tensor is NULL");
  FAILS(adead_tensor_rank(u, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_tensor_clone(NULL, &out), ADEAD_INVALID_ARGUMENT, "tensor is NULL");
  adead_tensor_destroy(u);
  adead_tensor_destroy(v);
  adead_tensor_destroy(NULL);

  FAILS(adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, values, 20, &out), ADEAD_SHAPE_MISMATCH, "24 bytes");
  FAILS(adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, NULL, 24, &out), ADEAD_INVALID_ARGUMENT, "data is NULL");
  FAILS(adead_tensor_create(ADEAD_DTYPE_F32, NULL, 2, values, 24, &out), ADEAD_INVALID_ARGUMENT, "dims is NULL");
  FAILS(adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, values, SIZE_MAX, &out), ADEAD_INVALID_ARGUMENT, "data");
  FAILS(adead_tensor_create(9, dims, 2, values, 24, &out), ADEAD_INVALID_ARGUMENT, "dtype is 9");
  FAILS(adead_tensor_create(-1, dims, 2, values, 24, &out), ADEAD_INVALID_ARGUMENT, "dtype is -1");
  FAILS(adead_tensor_create(ADEAD_DTYPE_F32, nine, 9, values, 4, &out), ADEAD_INVALID_ARGUMENT, "rank is 9");
  FAILS(adead_tensor_zeros(ADEAD_DTYPE_F32, huge, 2, &out), ADEAD_INVALID_ARGUMENT, "elements");
  FAILS(adead_tensor_zeros(ADEAD_DTYPE_F32, dims, SIZE_MAX, &out), ADEAD_INVALID_ARGUMENT, "rank is");
  FAILS(adead_tensor_zeros(ADEAD_DTYPE_F32, dims, 2, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(out == UNTOUCHED);

  OK(adead_tensor_zeros(ADEAD_DTYPE_I64, NULL, 0, &t)); /* A scalar. */
  OK(adead_tensor_bytes(t, &bytes));
  OK(adead_tensor_data(t, &data));
  CHECK(bytes == 8 && *(const int64_t *)data == 0);
  adead_tensor_destroy(t);
  OK(adead_tensor_create(ADEAD_DTYPE_F16, (const size_t[]){0, 4}, 2, NULL, 0, &t)); /* Nothing. */
  OK(adead_tensor_read(t, NULL, 0));
  adead_tensor_destroy(t);

  CHECK(!strcmp(adead_dtype_name(ADEAD_DTYPE_BF16), "bf16") && !strcmp(adead_dtype_name(ADEAD_DTYPE_BOOL), "bool") &&
        !strcmp(adead_dtype_name(ADEAD_DTYPE_U8), "u8") && !strcmp(adead_dtype_name(ADEAD_DTYPE_F64), "f64"));
  CHECK(!adead_dtype_name(9) && !adead_dtype_name(-1));
  CHECK(adead_dtype_size(ADEAD_DTYPE_I64) == 8 && adead_dtype_size(ADEAD_DTYPE_F16) == 2 && adead_dtype_size(9) == 0);
  CHECK(adead_dtype_size(ADEAD_DTYPE_BOOL) == 1 && adead_dtype_size(ADEAD_DTYPE_F64) == 8 && ADEAD_DTYPE_F64 == 8);
}

/* f64 is stored as the caller's doubles, with all of their bits. */
static void doubles(void) {
  const double values[4] = {0.1, -0.0, 5e-324, 1e300};
  const size_t four = 4, square[2] = {2, 2};
  double read[4] = {0};
  const void *data = NULL;
  size_t bytes = 0;
  adead_dtype dtype = -1;
  adead_tensor *t = NULL, *u = NULL, *out = UNTOUCHED;
  OK(adead_tensor_create(ADEAD_DTYPE_F64, &four, 1, values, sizeof values, &t));
  OK(adead_tensor_dtype(t, &dtype));
  OK(adead_tensor_bytes(t, &bytes));
  OK(adead_tensor_data(t, &data));
  CHECK(dtype == ADEAD_DTYPE_F64 && bytes == 32 && !memcmp(data, values, sizeof values));
  OK(adead_tensor_reshape(t, square, 2, &u));
  adead_tensor_destroy(t);
  OK(adead_tensor_read(u, read, sizeof read));
  CHECK(!memcmp(read, values, sizeof values));
  FAILS(adead_tensor_read(u, read, 16), ADEAD_INVALID_ARGUMENT, "the tensor has 32");
  adead_tensor_destroy(u);
  FAILS(adead_tensor_create(ADEAD_DTYPE_F64, &four, 1, values, 16, &out), ADEAD_SHAPE_MISMATCH, "32 bytes");
  CHECK(out == UNTOUCHED);
  OK(adead_tensor_zeros(ADEAD_DTYPE_F64, NULL, 0, &t));
  OK(adead_tensor_data(t, &data));
  CHECK(*(const double *)data == 0);
  adead_tensor_destroy(t);
}

static void hardware(void) {
  union {
    adead_hardware report;
    char bytes[sizeof(adead_hardware) + 16];
  } newer;
  adead_hardware h;
  size_t i;
  h.struct_size = sizeof h;
  OK(adead_hardware_report(&h));
  CHECK(h.struct_size == sizeof h && h.cpu_threads > 0 && h.cpu_cores > 0 && h.cpu_cores <= h.cpu_threads);
  CHECK(h.memory_total > 0 && h.memory_available <= h.memory_total && *h.cpu_model && *h.cpu_vendor);
  CHECK(h.cpu_cache_count <= ADEAD_MAX_CACHES && h.recommended >= ADEAD_MODE_CPU && h.recommended <= ADEAD_MODE_GPU);
  CHECK(h.gpu_count > 0 || h.recommended == ADEAD_MODE_CPU);
  for (i = 0; i < h.cpu_cache_count; i++) CHECK(h.cpu_caches[i].level > 0 && h.cpu_caches[i].size > 0);
  /* A struct of a newer header: what this version doesn't know becomes zero. */
  memset(&newer, 0x55, sizeof newer);
  newer.report.struct_size = sizeof newer;
  OK(adead_hardware_report(&newer.report));
  CHECK(newer.report.struct_size == sizeof newer && newer.report.cpu_threads == h.cpu_threads);
  for (i = sizeof h; i < sizeof newer; i++) CHECK(newer.bytes[i] == 0);
  /* A struct of before GPUs is filled as far as it goes. */
  memset(&newer, 0x55, sizeof newer);
  newer.report.struct_size = offsetof(adead_hardware, gpu_count);
  OK(adead_hardware_report(&newer.report));
  CHECK(newer.report.cpu_threads == h.cpu_threads);
  for (i = offsetof(adead_hardware, gpu_count); i < sizeof newer; i++) CHECK(newer.bytes[i] == 0x55);
  FAILS(adead_hardware_report(NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  h.struct_size = offsetof(adead_hardware, gpu_count) - 1;
  FAILS(adead_hardware_report(&h), ADEAD_INVALID_ARGUMENT, "struct_size of adead_hardware");
}

int main(void) {
  contexts();
  tensors();
  doubles();
  hardware();
  return 0;
}
