/* Whatever floating-point mode the host has set, results are the same and the mode is left alone. */
#include "check.h"

#if defined(__SSE__)
#include <xmmintrin.h>

enum { N = 37, FLAGS = 0x3f };

static adead_context *context;
static adead_tensor *x, *row;

/* What the operations make of x, all in one row of bytes. */
static size_t compute(unsigned char *to) {
  float simple[N * N], values[N * N];
  adead_tensor *y[8] = {NULL};
  size_t bytes, at = 0, i;
  OK(adead_tensor_read(x, values, sizeof values));
  OK(adead_tensor_matmul(context, x, x, NULL, &y[0]));
  OK(adead_tensor_add(context, x, row, &y[1]));
  OK(adead_tensor_exp(context, x, &y[2]));
  OK(adead_tensor_sum(context, x, 0, 0, &y[3]));
  OK(adead_tensor_softmax(context, x, 1, &y[4]));
  OK(adead_tensor_layernorm(context, x, row, NULL, 1e-5f, &y[5]));
  OK(adead_tensor_attention(context, x, x, x, NULL, &y[6]));
  OK(adead_tensor_cast(context, x, ADEAD_DTYPE_F16, &y[7]));
  for (i = 0; i < 8; i++) {
    OK(adead_tensor_bytes(y[i], &bytes));
    OK(adead_tensor_read(y[i], to + at, bytes));
    at += bytes;
    adead_tensor_destroy(y[i]);
  }
  OK(adead_matmul(values, values, simple, N, N, N));
  memcpy(to + at, simple, sizeof simple);
  return at + sizeof simple;
}

int main(void) {
  /* All exceptions are masked by 0x1f80. FTZ 0x8000, DAZ 0x40, up 0x4000, down 0x2000, to zero 0x6000. */
  static const unsigned modes[] = {0x1f80, 0x1f80 | 0x8040, 0x1f80 | 0x4000, 0x1f80 | 0x2000, 0x1f80 | 0x6000,
                                   0x0000, 0x0000 | 0xe040};
  static unsigned char expected[8 * N * N * 4], got[8 * N * N * 4];
  static float values[N * N];
  size_t i, bytes;
  unsigned host = _mm_getcsr();
  some_values(values, N * N, 3);
  for (i = 0; i < N * N; i += 5) values[i] *= 1e-38f; /* Subnormal. */
  x = tensor(values, 2, N, N);
  row = tensor(values, 1, N, 0);
  OK(adead_context_open(NULL, NULL, &context));
  bytes = compute(expected);
  for (i = 0; i < sizeof modes / sizeof *modes; i++) {
    unsigned after;
    memset(got, 0, sizeof got);
    _mm_setcsr(modes[i]);
    compute(got);
    after = _mm_getcsr();
    _mm_setcsr(host);
    CHECK((after & ~(unsigned)FLAGS) == modes[i]);
    CHECK(!memcmp(got, expected, bytes));
  }
  adead_context_destroy(context);
  adead_tensor_destroy(x);
  adead_tensor_destroy(row);
  OK(adead_shutdown());
  return 0;
}
#else
int main(void) {
  puts("This processor's floating-point mode is not one that a host changes.");
  return 77;
}
#endif
