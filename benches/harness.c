/*
 * Timed loops in C, so that no interpreter stands between two calls of a library that is called through C.
 * compare.py compiles this and calls it through ctypes. Every loop returns its seconds, or a negative number if a call
 * failed.
 */
#include <adead.h>
#include <dlfcn.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A loop of calls, timed. */
#define TIMED(reps, call)                                 \
  double begin = now();                                   \
  for (long i = 0; i < (reps); i++) call;                 \
  return now() - begin

/* ---- CBLAS: OpenBLAS, MKL, BLIS ---- */

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                         int);
typedef void (*sgemv_fn)(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

/* Products with one row or column go to sgemv, as a careful caller does. */
double time_blas(sgemm_fn sgemm, sgemv_fn sgemv, const float *a, const float *b, float *c, int m, int n, int k,
                 long reps) {
  if (m == 1 && n > 1) {
    TIMED(reps, sgemv(ROW_MAJOR, TRANS, k, n, 1.0f, b, n, a, 1, 0.0f, c, 1));
  }
  if (n == 1 && m > 1) {
    TIMED(reps, sgemv(ROW_MAJOR, NO_TRANS, m, k, 1.0f, a, k, b, 1, 0.0f, c, 1));
  }
  TIMED(reps, sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1.0f, a, k, b, n, 0.0f, c, n));
}

/* ---- memcpy, the line to read bandwidth against ---- */

/* volatile: else the compiler sees that only the last copy matters. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

double time_memcpy(float *dst, const float *src, size_t bytes, long reps) {
  TIMED(reps, copy(dst, src, bytes));
}

/* ---- adead ---- */

#define USED(each)                                                                                              \
  each(adead_version) each(adead_last_error) each(adead_matmul) each(adead_softmax) each(adead_relu)            \
  each(adead_context_open) each(adead_context_device_info) each(adead_op_from_name) each(adead_op_run)          \
  each(adead_tensor_create) each(adead_tensor_destroy) each(adead_tensor_read)

/* Younger than some libraries that are compared with: NULL in those. */
#define YOUNG(each)                                                                                             \
  each(adead_packed_create) each(adead_packed_destroy) each(adead_packed_matmul)                                \
  each(adead_attrs_create) each(adead_attrs_destroy) each(adead_attrs_set)

#define POINTER(name) static __typeof__(name) *p_##name;
USED(POINTER)
YOUNG(POINTER)

static adead_context *context;
static adead_tensor *operands[4], *result;
static size_t operand_count;
static adead_op operation;
static adead_packed *packed;
static adead_attrs *attributes;

/* Loads a libadead.so and opens its device. NULL, or what went wrong. */
const char *adead_load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
#define LOAD(name) \
  if (!(p_##name = (__typeof__(name) *)dlsym(library, #name))) return "no function " #name;
  USED(LOAD)
#define LOAD_YOUNG(name) p_##name = (__typeof__(name) *)dlsym(library, #name);
  YOUNG(LOAD_YOUNG)
  return p_adead_context_open("auto", NULL, &context) ? p_adead_last_error() : NULL;
}

const char *adead_version_text(void) { return p_adead_version(); }

/* The instruction set that kernels are built for. */
const char *adead_arch(void) {
  static adead_device_info info;
  info.struct_size = sizeof info;
  return p_adead_context_device_info(context, &info) ? "?" : info.arch;
}

double time_adead_matmul(const float *a, const float *b, float *c, int m, int n, int k, long reps) {
  TIMED(reps, if (p_adead_matmul(a, b, c, m, n, k)) return -1);
}

double time_adead_softmax(const float *in, float *out, int rows, int cols, long reps) {
  TIMED(reps, if (p_adead_softmax(in, out, rows, cols)) return -1);
}

double time_adead_relu(const float *in, float *out, int size, long reps) {
  TIMED(reps, if (p_adead_relu(in, out, size)) return -1);
}

/* Operands for time_adead_op: `count` arrays, `ranks[i]` dimensions each, one after the other in `dims`. `precision` is
 * NULL but for products. */
const char *adead_prepare(const char *name, size_t count, const float *const *data, const size_t *ranks,
                          const size_t *dims, const char *precision) {
  for (size_t i = 0; i < operand_count; i++) p_adead_tensor_destroy(operands[i]);
  p_adead_tensor_destroy(result);
  result = NULL;
  operand_count = 0;
  if (p_adead_op_from_name(name, &operation)) return p_adead_last_error();
  if (attributes) p_adead_attrs_destroy(attributes);
  attributes = NULL;
  if (precision && (p_adead_attrs_create(&attributes) ||
                    p_adead_attrs_set(attributes, operation, "precision", precision))) {
    return p_adead_last_error();
  }
  for (size_t i = 0; i < count; dims += ranks[i++]) {
    size_t bytes = sizeof(float);
    for (size_t d = 0; d < ranks[i]; d++) bytes *= dims[d];
    adead_tensor **out = &operands[operand_count];
    if (p_adead_tensor_create(ADEAD_DTYPE_F32, dims, ranks[i], data[i], bytes, out)) return p_adead_last_error();
    operand_count++;
  }
  return NULL;
}

/* The object API: every call makes its result anew and gives up the one before, as callers do. */
static int run_once(void) {
  p_adead_tensor_destroy(result);
  result = NULL;
  return p_adead_op_run(context, operation, (const adead_tensor *const *)operands, operand_count, attributes, &result);
}

double time_adead_op(long reps) {
  TIMED(reps, if (run_once()) return -1);
}

int adead_packs(void) { return p_adead_packed_create != NULL; }

int adead_has_attributes(void) { return p_adead_attrs_create != NULL; }

/* The second of the operands, packed before the clock starts. */
const char *adead_pack(void) {
  p_adead_packed_destroy(packed);
  packed = NULL;
  return p_adead_packed_create(context, operands[1], 0, &packed) ? p_adead_last_error() : NULL;
}

static int multiply_once(void) {
  p_adead_tensor_destroy(result);
  result = NULL;
  return p_adead_packed_matmul(context, operands[0], packed, NULL, &result);
}

double time_adead_packed(long reps) {
  TIMED(reps, if (multiply_once()) return -1);
}

const char *adead_fetch(float *dst, size_t bytes) {
  return p_adead_tensor_read(result, dst, bytes) ? p_adead_last_error() : NULL;
}

const char *adead_error(void) { return p_adead_last_error(); }
