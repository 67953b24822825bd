/* After a fork the child's pool starts its own threads, and the bits stay; the parent's goes on. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { N = 300 };

int main(void) {
  static float values[N * N];
  adead_context_options options = ADEAD_CONTEXT_OPTIONS_INIT;
  adead_context *context = NULL;
  adead_tensor *a, *before = NULL, *after = NULL;
  int round, status;
  options.threads = 3;
  some_values(values, N * N, 9);
  a = tensor(values, 2, N, N);
  OK(adead_context_open("cpu", &options, &context));
  OK(adead_tensor_matmul(context, a, a, NULL, &before));
  for (round = 0; round < 5; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      adead_tensor *again = NULL;
      alarm(60); /* A child that waits for threads it does not have would wait for ever. */
      OK(adead_tensor_matmul(context, a, a, NULL, &again));
      CHECK(same(again, before));
      OK(adead_context_trim(context));
      adead_context_destroy(context); /* The child's own threads end; there are no others to wait for. */
      _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  OK(adead_context_trim(context)); /* The parent's threads end, and start again. */
  OK(adead_tensor_matmul(context, a, a, NULL, &after));
  CHECK(same(after, before));
  adead_tensor_destroy(after);
  adead_tensor_destroy(before);
  adead_tensor_destroy(a);
  adead_context_destroy(context);
  return 0;
}
