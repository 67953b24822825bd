/* Flags that end long work, from another thread and from a signal handler, and what works afterwards. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* Without an end the alarm ends the test. */
enum { LONG = 2048, N = 300, GUARD = 300 };

static adead_context *context;
static adead_tensor *small, *expected;
static adead_interrupt *stop;

static void works(void) {
  adead_tensor *y = NULL;
  OK(adead_tensor_matmul(context, small, small, NULL, &y));
  CHECK(same(y, expected));
  adead_tensor_destroy(y);
}

static void handler(int number) {
  (void)number;
  adead_interrupt_set(stop, 1);
}

static void *set(void *nothing) {
  adead_interrupt_set(stop, 1);
  return nothing;
}

static void *send(void *main_thread) {
  CHECK(!pthread_kill(*(pthread_t *)main_thread, SIGUSR1));
  return NULL;
}

/* Products, of which one ends because of what another thread does. */
static void ends(const adead_tensor *x, void *(*how)(void *)) {
  adead_tensor *y = NULL;
  pthread_t thread, self = pthread_self();
  adead_status status;
  CHECK(!pthread_create(&thread, NULL, how, &self));
  while ((status = adead_tensor_matmul(context, x, x, NULL, &y)) == ADEAD_OK) {
    adead_tensor_destroy(y);
    y = NULL;
  }
  CHECK(status == ADEAD_NOT_READY && strstr(adead_last_error(), "interrupted") && !y);
  CHECK(!pthread_join(thread, NULL));
  CHECK(adead_interrupt_get(stop) == 1);
  adead_interrupt_set(stop, 0);
  works();
}

/* Streams and the simple API, whose output was there before: some of it may be written. */
static void outputs_of_the_caller(void) {
  static float x[N * N], y[N * N], right[N * N];
  adead_buffer *from = NULL, *to = NULL;
  adead_stream *stream = NULL;
  adead_operand a, out;
  adead_operand both[2];
  size_t dims[2] = {N, N};
  some_values(x, N * N, 5);
  OK(adead_init(ADEAD_BACKEND_CPU));
  OK(adead_matmul(x, x, right, N, N, N));
  OK(adead_buffer_create(context, x, sizeof x, &from));
  OK(adead_buffer_create(context, NULL, sizeof y, &to));
  OK(adead_stream_create(context, &stream));
  memset(&a, 0, sizeof a);
  a.buffer = from;
  a.dims = dims;
  a.rank = 2;
  a.dtype = ADEAD_DTYPE_F32;
  out = a;
  out.buffer = to;
  both[0] = both[1] = a;
  adead_interrupt_set(stop, 1);
  FAILS(adead_matmul(x, x, y, N, N, N), ADEAD_NOT_READY, "interrupted");
  FAILS(adead_stream_run(stream, ADEAD_OP_MATMUL, both, 2, NULL, &out), ADEAD_NOT_READY, "interrupted");
  adead_interrupt_set(stop, 0);
  OK(adead_matmul(x, x, y, N, N, N));
  CHECK(!memcmp(y, right, sizeof y));
  OK(adead_stream_run(stream, ADEAD_OP_MATMUL, both, 2, NULL, &out));
  OK(adead_buffer_read(to, 0, y, sizeof y));
  CHECK(!memcmp(y, right, sizeof y));
  adead_stream_destroy(stream);
  adead_buffer_destroy(from);
  adead_buffer_destroy(to);
  OK(adead_shutdown());
}

/* Another thread's work is its own. */
static void *other(void *nothing) {
  CHECK(!adead_interrupt_watch(NULL));
  works();
  return nothing;
}

int main(void) {
  static float values[N * N], long_values[LONG * LONG];
  adead_interrupt *inner = NULL;
  adead_tensor *long_one, *y = NULL;
  struct sigaction action;
  pthread_t thread;
  alarm(GUARD);
  some_values(values, N * N, 7);
  small = tensor(values, 2, N, N);
  OK(adead_context_open("cpu", NULL, &context));
  OK(adead_tensor_matmul(context, small, small, NULL, &expected));

  FAILS(adead_interrupt_create(NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_interrupt_create(&stop));
  CHECK(adead_interrupt_get(stop) == 0 && adead_interrupt_get(NULL) == 0);
  adead_interrupt_set(NULL, 1);
  adead_interrupt_set(stop, 1);
  works(); /* Nobody watches it. */
  adead_interrupt_set(stop, 0);
  CHECK(!adead_interrupt_watch(stop));

  long_one = tensor(long_values, 2, LONG, LONG);
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  CHECK(!sigaction(SIGUSR1, &action, NULL));
  ends(long_one, set);
  ends(long_one, send);
  adead_tensor_destroy(long_one);
  outputs_of_the_caller();

  adead_interrupt_set(stop, 1);
  CHECK(!pthread_create(&thread, NULL, other, NULL));
  CHECK(!pthread_join(thread, NULL));
  OK(adead_interrupt_create(&inner));
  CHECK(adead_interrupt_watch(inner) == stop);
  works();
  CHECK(adead_interrupt_watch(stop) == inner);
  adead_interrupt_destroy(inner);
  FAILS(adead_tensor_matmul(context, small, small, NULL, &y), ADEAD_NOT_READY, "interrupted");
  adead_interrupt_destroy(stop); /* This thread watches nothing then. */
  works();
  CHECK(!adead_interrupt_watch(NULL));
  adead_interrupt_destroy(NULL);
  adead_tensor_destroy(small);
  adead_tensor_destroy(expected);
  adead_context_destroy(context);
  return 0;
}
