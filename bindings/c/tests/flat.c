/* What is made and destroyed 100,000 times (contexts: 10,000) leaves no memory behind: tensors, results, errors, contexts, what belongs to streams. */
#include "check.h"
#include <unistd.h>

enum { CYCLES = 100000, OPENED = 10000, N = 4 };

static adead_context *context;
static adead_tensor *x, *wide;
static adead_buffer *a, *b;
static float values[N * N];

static size_t resident(void) {
  unsigned long all = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%lu %lu", &all, &pages) == 2);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void tensors(void) {
  adead_tensor *one = tensor(values, 2, N, N), *other = NULL;
  OK(adead_tensor_clone(one, &other));
  adead_tensor_destroy(one);
  adead_tensor_destroy(other);
}

static void operations(void) {
  adead_tensor *product = NULL, *y = NULL;
  OK(adead_tensor_matmul(context, x, x, NULL, &product));
  OK(adead_tensor_softmax(context, product, -1, &y));
  adead_tensor_destroy(product);
  adead_tensor_destroy(y);
}

static void errors(void) {
  adead_tensor *none = NULL;
  FAILS(adead_tensor_add(context, x, wide, &none), ADEAD_SHAPE_MISMATCH, "[7]");
}

static void contexts(void) {
  adead_context *other = NULL;
  OK(adead_context_open("cpu", NULL, &other));
  adead_context_destroy(other);
}

static void streams(void) {
  adead_stream *stream = NULL;
  adead_event *event = NULL;
  adead_download *download = NULL;
  float got[N * N];
  OK(adead_stream_create(context, &stream));
  OK(adead_stream_copy(stream, a, 0, b, 0, sizeof got));
  OK(adead_stream_event(stream, &event));
  OK(adead_stream_download(stream, b, 0, sizeof got, &download));
  OK(adead_download_read(download, got, sizeof got));
  CHECK(!memcmp(got, values, sizeof got));
  adead_download_destroy(download);
  adead_event_destroy(event);
  adead_stream_destroy(stream);
}

/* After a tenth of the cycles to get into the swing; what they added must be less than 600 KB. */
static void flat(const char *what, void (*cycle)(void), size_t cycles) {
  size_t before, after, i;
  for (i = 0; i < cycles / 10; i++) cycle();
  before = resident();
  for (i = 0; i < cycles; i++) cycle();
  after = resident();
  printf("%s: %zu cycles: %zu KB, %zu before\n", what, cycles, after / 1024, before / 1024);
  CHECK(after < before + 6 * CYCLES);
}

int main(void) {
  OK(adead_context_open("cpu", NULL, &context));
  some_values(values, N * N, 5);
  x = tensor(values, 2, N, N);
  wide = tensor(values, 1, 7, 0);
  a = NULL, b = NULL;
  OK(adead_buffer_create(context, values, sizeof values, &a));
  OK(adead_buffer_create(context, NULL, sizeof values, &b));
  flat("tensors", tensors, CYCLES);
  flat("operations", operations, CYCLES);
  flat("errors", errors, CYCLES);
  flat("contexts", contexts, OPENED);
  flat("streams, events, downloads", streams, CYCLES);
  adead_buffer_destroy(a);
  adead_buffer_destroy(b);
  adead_tensor_destroy(x);
  adead_tensor_destroy(wide);
  adead_context_destroy(context);
  return 0;
}
