/* Matrices and streams as numbers, on the CPU and on a GPU where there is one, and every misuse a status. */
#include "check.h"

static adead_flat_handle matrix(const float *values, int64_t rows, int64_t cols, int32_t use_gpu) {
  adead_flat_handle made = 0;
  OK(adead_flat_alloc_upload(values, rows, cols, use_gpu, 0, &made));
  return made;
}

static void holds(adead_flat_handle handle, const float *expected, int64_t count) {
  float found[64];
  CHECK(count <= 64);
  OK(adead_flat_download(handle, found, count));
  CHECK(!memcmp(found, expected, (size_t)count * sizeof *expected));
}

static const float A[] = {1, 2, 3, 4, 5, 6};
static const float B[] = {7, 8, 9, 10, 11, 12};
static const float AB[] = {58, 64, 139, 154};

static void computes(int32_t use_gpu) {
  const float zeros[4] = {0}, ones[] = {1, 1, 1, 1}, mixed[] = {-1, 2, -3, 4}, relu[] = {0, 2, 0, 4}, sums[] = {1, 1};
  const float plus[] = {59, 65, 140, 155}, turned[] = {58, 139, 64, 154};
  adead_flat_handle a = matrix(A, 2, 3, use_gpu), b = matrix(B, 3, 2, use_gpu), c, d, e, f, stream, operands[3];
  int64_t rows, cols, before, after;
  int32_t gpu, device;
  const char *name;
  OK(adead_flat_backend_name(use_gpu, 0, &name));
  CHECK(use_gpu ? !strcmp(name, "cuda") || !strcmp(name, "vulkan") : !strcmp(name, "cpu"));
  OK(adead_flat_matmul(a, b, 0, &c));
  holds(c, AB, 4);
  OK(adead_flat_shape(c, &rows, &cols));
  OK(adead_flat_device(c, &gpu, &device));
  CHECK(rows == 2 && cols == 2 && gpu == use_gpu && device == 0);
  OK(adead_flat_alloc_zeros(2, 2, use_gpu, 0, &d));
  holds(d, zeros, 4);
  OK(adead_flat_alloc_ones(2, 2, use_gpu, 0, &e));
  holds(e, ones, 4);
  operands[0] = c;
  operands[1] = e;
  OK(adead_flat_run("add", operands, 2, NULL, 0, d));
  holds(d, plus, 4);
  OK(adead_flat_run("transpose", &c, 1, "perm=1,0", 0, d));
  holds(d, turned, 4);
  /* A result of another shape, and two attributes. */
  OK(adead_flat_alloc_zeros(2, 1, use_gpu, 0, &f));
  OK(adead_flat_upload(e, mixed, 4));
  OK(adead_flat_run("sum", &e, 1, "axis=-1;keepdim=1", 0, f));
  holds(f, sums, 2);

  /* Streams: a batch, and what was used in one stream used in another. */
  OK(adead_flat_stream_create(use_gpu, 0, &stream));
  {
    adead_flat_handle batch[2];
    const float *values[] = {mixed, AB};
    const int64_t counts[] = {4, 4};
    batch[0] = d;
    batch[1] = e;
    OK(adead_flat_async_upload_batch(stream, batch, values, counts, 2));
    OK(adead_flat_async_upload_batch(stream, NULL, NULL, NULL, 0));
    OK(adead_flat_run("relu", &d, 1, NULL, stream, c));
    OK(adead_flat_stream_sync(stream));
    OK(adead_flat_stream_query(stream, &gpu));
    CHECK(gpu == 1);
    holds(c, relu, 4);
    holds(e, AB, 4);
    OK(adead_flat_run("relu", &d, 1, NULL, stream, c));
    OK(adead_flat_run("neg", &c, 1, NULL, 0, d));
    OK(adead_flat_run("neg", &d, 1, NULL, stream, c));
    OK(adead_flat_stream_destroy(stream));
    holds(c, relu, 4);
  }

  /* A copy elsewhere is a copy. */
  {
    adead_flat_handle host, empty;
    OK(adead_flat_to(c, 0, 0, &host));
    OK(adead_flat_upload(c, ones, 4));
    holds(host, relu, 4);
    OK(adead_flat_free(host));
    OK(adead_flat_alloc_zeros(0, 5, use_gpu, 0, &empty));
    OK(adead_flat_download(empty, NULL, 0));
    OK(adead_flat_free(empty));
  }
  OK(adead_flat_count(&before));
  OK(adead_flat_free(a));
  OK(adead_flat_free(b));
  OK(adead_flat_free(c));
  OK(adead_flat_free(d));
  OK(adead_flat_free(e));
  OK(adead_flat_free(f));
  OK(adead_flat_count(&after));
  CHECK(before - after == 6);
}

static void misuse_is_a_status(void) {
  adead_flat_handle a = matrix(A, 2, 3, 0), b = matrix(B, 3, 2, 0), old, stream, out = 7, operands[2], both[2];
  const float *values[] = {A, NULL};
  int64_t counts[] = {6, 6}, number = 7;
  int32_t flag = 7, gpus;
  const char *name = "kept";
  float room[6];
  OK(adead_flat_stream_create(0, 0, &stream));

  FAILS(adead_flat_free(0), ADEAD_INVALID_ARGUMENT, "0 is not a handle; expected a matrix");
  FAILS(adead_flat_free(-5), ADEAD_INVALID_ARGUMENT, "-5 is not a handle");
  FAILS(adead_flat_free(INT64_MAX), ADEAD_INVALID_ARGUMENT, "is not a handle");
  FAILS(adead_flat_free(a + 1000), ADEAD_INVALID_ARGUMENT, "is not a handle");
  FAILS(adead_flat_free(stream), ADEAD_INVALID_ARGUMENT, "is a stream; expected a matrix");
  FAILS(adead_flat_stream_sync(a), ADEAD_INVALID_ARGUMENT, "is a matrix; expected a stream");
  OK(adead_flat_alloc_zeros(1, 1, 0, 0, &old));
  OK(adead_flat_free(old));
  FAILS(adead_flat_free(old), ADEAD_INVALID_ARGUMENT, "was a matrix, now freed");
  /* Also when its place is taken again. */
  OK(adead_flat_alloc_zeros(1, 1, 0, 0, &out));
  CHECK(out != old);
  FAILS(adead_flat_shape(old, &number, NULL), ADEAD_INVALID_ARGUMENT, "was a matrix, now freed");
  OK(adead_flat_free(out));

  out = 7;
  FAILS(adead_flat_alloc_zeros(-1, 2, 0, 0, &out), ADEAD_INVALID_ARGUMENT, "[-1, 2]");
  FAILS(adead_flat_alloc_zeros(INT64_MAX, 2, 0, 0, &out), ADEAD_OUT_OF_MEMORY, "more than any process can address");
  FAILS(adead_flat_alloc_ones(INT64_C(1) << 50, 1, 0, 0, &out), ADEAD_OUT_OF_MEMORY, "4503599627370496");
  FAILS(adead_flat_alloc_zeros(1, 1, 0, 1, &out), ADEAD_INVALID_ARGUMENT, "device is 1; the CPU has only device 0");
  FAILS(adead_flat_alloc_zeros(1, 1, 1, -1, &out), ADEAD_INVALID_ARGUMENT, "GPU -1");
  OK(adead_flat_device_count(&gpus));
  FAILS(adead_flat_alloc_zeros(1, 1, 1, gpus, &out), ADEAD_BACKEND_UNAVAILABLE, "GPU ");
  FAILS(adead_flat_stream_create(1, gpus, &out), ADEAD_BACKEND_UNAVAILABLE, "GPU ");
  FAILS(adead_flat_backend_name(1, gpus, &name), ADEAD_BACKEND_UNAVAILABLE, "GPU ");
  FAILS(adead_flat_alloc_zeros(1, 1, 0, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_flat_alloc_upload(NULL, 1, 1, 0, 0, &out), ADEAD_INVALID_ARGUMENT, "values is NULL");
  FAILS(adead_flat_gpu_available(NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(out == 7 && !strcmp(name, "kept") && number == 7);

  FAILS(adead_flat_upload(a, A, 5), ADEAD_SHAPE_MISMATCH, "[2, 3] and takes 6 values, not 5");
  FAILS(adead_flat_upload(a, NULL, 6), ADEAD_INVALID_ARGUMENT, "values is NULL");
  FAILS(adead_flat_download(a, room, 7), ADEAD_SHAPE_MISMATCH, "not 7");
  FAILS(adead_flat_matmul(a, a, 0, &out), ADEAD_SHAPE_MISMATCH, "[2, 3] and B is [2, 3]");
  FAILS(adead_flat_matmul(a, b, a, &out), ADEAD_INVALID_ARGUMENT, "expected a stream");
  FAILS(adead_flat_matmul(a, b, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");

  operands[0] = a;
  operands[1] = old;
  OK(adead_flat_alloc_zeros(2, 3, 0, 0, &out));
  FAILS(adead_flat_run("adding", operands, 1, NULL, 0, out), ADEAD_INVALID_ARGUMENT, "adding");
  FAILS(adead_flat_run(NULL, operands, 1, NULL, 0, out), ADEAD_INVALID_ARGUMENT, "op is NULL");
  FAILS(adead_flat_run("add", operands, 2, NULL, 0, out), ADEAD_INVALID_ARGUMENT, "was a matrix, now freed");
  FAILS(adead_flat_run("add", NULL, 2, NULL, 0, out), ADEAD_INVALID_ARGUMENT, "operands is NULL");
  FAILS(adead_flat_run("add", operands, 17, NULL, 0, out), ADEAD_INVALID_ARGUMENT, "17 operands");
  FAILS(adead_flat_run("relu", operands, 1, NULL, 0, a), ADEAD_INVALID_ARGUMENT, "the result is also operand 0");
  FAILS(adead_flat_run("relu", operands, 1, NULL, 0, b), ADEAD_SHAPE_MISMATCH, "[3, 2]");
  FAILS(adead_flat_run("softmax", operands, 1, "axis", 0, out), ADEAD_INVALID_ARGUMENT, "'axis' is not name=value");
  FAILS(adead_flat_run("softmax", operands, 1, "axes=1", 0, out), ADEAD_INVALID_ARGUMENT, "axes");
  OK(adead_flat_download(out, room, 6));
  CHECK(room[0] == 0 && room[5] == 0);

  /* Nothing of a batch with a fault in it arrives. */
  both[0] = out;
  both[1] = b;
  FAILS(adead_flat_async_upload_batch(stream, both, values, counts, 2), ADEAD_INVALID_ARGUMENT, "values[1] is NULL");
  counts[1] = 5;
  values[1] = B;
  FAILS(adead_flat_async_upload_batch(stream, both, values, counts, 2), ADEAD_SHAPE_MISMATCH, "not 5");
  FAILS(adead_flat_async_upload_batch(stream, both, values, counts, -1), ADEAD_INVALID_ARGUMENT, "-1");
  FAILS(adead_flat_async_upload_batch(stream, NULL, values, counts, 2), ADEAD_INVALID_ARGUMENT, "matrices is NULL");
  FAILS(adead_flat_async_upload_batch(out, both, values, counts, 2), ADEAD_INVALID_ARGUMENT, "expected a stream");
  OK(adead_flat_stream_sync(stream));
  OK(adead_flat_download(out, room, 6));
  CHECK(room[0] == 0 && room[5] == 0);
  FAILS(adead_flat_stream_query(stream, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_flat_stream_destroy(stream));
  FAILS(adead_flat_stream_query(stream, &flag), ADEAD_INVALID_ARGUMENT, "was a stream, now freed");
  CHECK(flag == 7);
}

/* Many at once: places are used again, and numbers are not. */
static void numbers_are_not_given_twice(void) {
  enum { MANY = 500 };
  static adead_flat_handle handles[MANY], before[MANY];
  const float own = 3;
  int round, i;
  for (round = 0; round < 3; round++) {
    for (i = 0; i < MANY; i++) {
      OK(adead_flat_alloc_upload(&own, 1, 1, 0, 0, &handles[i]));
      CHECK(handles[i] > 0);
    }
    for (i = 0; i < MANY; i++) {
      float value = 0;
      if (round) FAILS(adead_flat_free(before[i]), ADEAD_INVALID_ARGUMENT, "now freed");
      OK(adead_flat_download(handles[i], &value, 1));
      CHECK(value == own);
    }
    for (i = 0; i < MANY; i++) {
      OK(adead_flat_free(handles[i]));
      before[i] = handles[i];
    }
  }
}

int main(void) {
  adead_flat_handle kept, stream;
  int64_t count;
  int32_t available, gpus;
  OK(adead_flat_gpu_available(&available));
  OK(adead_flat_device_count(&gpus));
  CHECK(available == (gpus > 0));
  computes(0);
  if (available) computes(1);
  misuse_is_a_status();
  numbers_are_not_given_twice();
  /* After a reset nothing from before is there, and all begins anew. */
  kept = matrix(A, 2, 3, 0);
  OK(adead_flat_stream_create(0, 0, &stream));
  OK(adead_flat_reset());
  OK(adead_flat_count(&count));
  CHECK(count == 0);
  FAILS(adead_flat_free(kept), ADEAD_INVALID_ARGUMENT, "was a matrix, now freed");
  FAILS(adead_flat_stream_sync(stream), ADEAD_INVALID_ARGUMENT, "was a stream, now freed");
  computes(0);
  OK(adead_flat_reset());
  printf("%s\n", available ? "on the CPU and a GPU" : "on the CPU; there is no GPU");
  return 0;
}
