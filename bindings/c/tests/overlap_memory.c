/* Whatever allocation of libadead_overlap fails, or the thread of a loader, the call says so, and nothing is left behind: built
 * with the library's sources, whose malloc, calloc, realloc and pthread_create are these. */
#undef malloc
#undef calloc
#undef realloc
#undef pthread_create
#define LAST_ERROR adead_overlap_last_error
#include <adead/overlap.h>
#include <errno.h>
#include <pthread.h>

#include "check.h"

void *overlap_malloc(size_t size);
void *overlap_calloc(size_t count, size_t size);
void *overlap_realloc(void *memory, size_t size);
int overlap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument);

/* A loader's thread counts too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t left;

static int fails(void) {
  int last;
  pthread_mutex_lock(&lock);
  last = left == 1;
  left -= left > 0;
  pthread_mutex_unlock(&lock);
  return last;
}
void *overlap_malloc(size_t size) { return fails() ? NULL : malloc(size); }
void *overlap_calloc(size_t count, size_t size) { return fails() ? NULL : calloc(count, size); }
void *overlap_realloc(void *memory, size_t size) { return fails() ? NULL : realloc(memory, size); }
int overlap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument) {
  return fails() ? EAGAIN : pthread_create(thread, attributes, work, argument);
}

enum { COUNT = 10 };

typedef struct {
  size_t made, taken;
  adead_loader *loader;
} run;

static adead_status make(adead_batch *batch, void *user) {
  run *it = user;
  void *memory;
  adead_status status;
  if (it->made == COUNT) return ADEAD_OK;
  /* Larger and larger, so that memory is asked for again. */
  status = adead_batch_memory(batch, ++it->made * 4, &memory);
  if (!status) memset(memory, 7, it->made * 4);
  return status;
}

static adead_status next(adead_batch *batch, void *user) {
  run *it = user;
  const void *data;
  size_t bytes;
  void *memory;
  adead_status status = adead_loader_next(it->loader, &data, &bytes);
  if (status || !data) return status;
  status = adead_batch_memory(batch, bytes, &memory);
  if (!status) memcpy(memory, data, bytes);
  return status;
}

static adead_status work(adead_stage *stage, void *user) {
  size_t i, bytes = 4 * adead_stage_index(stage) + 4;
  adead_status status = ADEAD_OK;
  adead_buffer *buffer = NULL;
  (void)user;
  for (i = 0; !status && i < 3; i++) status = adead_stage_buffer(stage, bytes, &buffer);
  if (!status) status = adead_stream_copy(adead_stage_stream(stage), adead_stage_input(stage), 0, buffer, 0, bytes);
  return status ? status : adead_stage_result(stage, buffer, 0, bytes);
}

static adead_status take(size_t index, const void *data, size_t bytes, void *user) {
  run *it = user;
  CHECK(index == it->taken++ && bytes == 4 * index + 4 && ((const char *)data)[bytes - 1] == 7);
  return ADEAD_OK;
}

static adead_status all_of_it(adead_context *context) {
  run it = {0, 0, NULL};
  adead_status status = adead_loader_create(make, &it, 2, &it.loader);
  if (!status) status = adead_overlap(context, 3, next, work, take, &it);
  CHECK(!status == (it.taken == COUNT));
  adead_loader_destroy(it.loader);
  return status;
}

int main(void) {
  adead_context *context = NULL;
  size_t failed = 0, threads = 0;
  CHECK(!adead_context_open("cpu", NULL, &context));
  for (;;) {
    adead_status status;
    left = failed + 1;
    status = all_of_it(context);
    if (!status) break;
    CHECK((status == ADEAD_OUT_OF_MEMORY && strstr(adead_overlap_last_error(), "no memory for")) ||
          (status == ADEAD_IO && strstr(adead_overlap_last_error(), "no thread for a loader")));
    CHECK(!left);
    threads += status == ADEAD_IO;
    failed++;
  }
  printf("%zu allocations failed, one after another\n", failed);
  CHECK(failed > 30 && threads == 1);
  adead_context_destroy(context);
  return 0;
}
