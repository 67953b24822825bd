/* Prints the hash of a small network's output. Every language's same_bits prints the same one. */
#include <adead.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void check(adead_status status) {
  if (status != ADEAD_OK) {
    fprintf(stderr, "%s\n", adead_last_error());
    exit(1);
  }
}

static adead_tensor *tensor(size_t rows, size_t columns, int step, int modulus, int middle, float divisor) {
  size_t count = rows * columns, dims[] = {rows, columns};
  float *values = malloc(count * sizeof *values);
  adead_tensor *made = NULL;
  if (!values) exit(1);
  for (size_t i = 0; i < count; i++) values[i] = (float)((int)i * step % modulus - middle) / divisor;
  check(adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, values, count * sizeof *values, &made));
  free(values);
  return made;
}

int main(void) {
  adead_context *ctx = NULL;
  adead_tensor *x = tensor(16, 64, 37, 101, 50, 64), *w1 = tensor(64, 128, 53, 127, 63, 256);
  adead_tensor *w2 = tensor(128, 32, 29, 113, 56, 256), *hidden = NULL, *active = NULL, *scores = NULL, *y = NULL;
  float result[16 * 32];
  uint64_t hash = 0xcbf29ce484222325u;
  check(adead_context_open("auto", NULL, &ctx));
  check(adead_tensor_matmul(ctx, x, w1, NULL, &hidden));
  check(adead_tensor_gelu(ctx, hidden, ADEAD_GELU_ERF, &active));
  check(adead_tensor_matmul(ctx, active, w2, NULL, &scores));
  check(adead_tensor_softmax(ctx, scores, -1, &y));
  check(adead_tensor_read(y, result, sizeof result));
  for (size_t i = 0; i < sizeof result; i++) hash = (hash ^ ((unsigned char *)result)[i]) * 0x100000001b3u;
  printf("%016" PRIx64 "\n", hash);
  adead_tensor *all[] = {x, w1, w2, hidden, active, scores, y};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) adead_tensor_destroy(all[i]);
  adead_context_destroy(ctx);
  return 0;
}
