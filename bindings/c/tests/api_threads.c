/* Threads share contexts and tensors, each has its own error text, and the simple API may be ended under way. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 50, N = 48 };

static adead_context *context;
static adead_tensor *a, *b, *expected;

static void *share(void *number) {
  int i, me = *(int *)number;
  char text[32];
  for (i = 0; i < ROUNDS; i++) {
    adead_tensor *y = NULL, *clone = NULL;
    OK(adead_tensor_clone(a, &clone));
    OK(adead_tensor_matmul(context, clone, b, NULL, &y));
    CHECK(same(y, expected));
    adead_tensor_destroy(clone);
    adead_tensor_destroy(y);
    sprintf(text, "backend is %d", 100 + me);
    FAILS(adead_init(100 + me), ADEAD_INVALID_ARGUMENT, text);
    CHECK(strstr(adead_last_error(), text));
  }
  return NULL;
}

static void *simple(void *number) {
  float x[N * N], y[N * N];
  const float *reference = number;
  int i;
  some_values(x, N * N, 5);
  for (i = 0; i < ROUNDS; i++) {
    void *memory = NULL;
    OK(adead_matmul(x, x, y, N, N, N));
    CHECK(!memcmp(y, reference, sizeof y));
    OK(adead_alloc(64, &memory));
    adead_free(memory); /* Unless another thread's shutdown took it. */
    if (i % 8 == 7) OK(adead_shutdown());
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS], i;
  static float values[N * N], product[N * N];
  some_values(values, N * N, 5);
  a = tensor(values, 2, N, N);
  b = tensor(values, 2, N, N);
  OK(adead_context_open("cpu", NULL, &context));
  OK(adead_tensor_matmul(context, a, b, NULL, &expected));
  for (i = 0; i < THREADS; i++) {
    numbers[i] = i;
    CHECK(!pthread_create(&threads[i], NULL, share, &numbers[i]));
  }
  for (i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
  OK(adead_tensor_read(expected, product, sizeof product));
  for (i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, simple, product));
  for (i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
  CHECK(!strcmp(adead_last_error(), "")); /* The others' errors were theirs. */
  OK(adead_shutdown());
  adead_tensor_destroy(a);
  adead_tensor_destroy(b);
  adead_tensor_destroy(expected);
  adead_context_destroy(context);
  return 0;
}
