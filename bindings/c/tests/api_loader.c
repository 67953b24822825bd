/* Loaders: in order, within their bounds, errors in their places, and stopped wherever their thread is. */
#include <pthread.h>

#include "check.h"

enum { ROW = 1000 };

static size_t length(size_t index) { return index % 7 == 6 ? 0 : ROW - index % 3; }

/* A loader's producer and who takes from it. */
typedef struct {
  pthread_mutex_t lock;
  size_t ahead, count, made, taken;
  size_t bad;
  /* Results of overlap. */
  size_t results;
  adead_loader *loader;
} feed;

static feed feed_of(size_t count, size_t ahead) {
  feed it;
  memset(&it, 0, sizeof it);
  pthread_mutex_init(&it.lock, NULL);
  it.count = count;
  it.ahead = ahead;
  it.bad = SIZE_MAX;
  return it;
}

static adead_status make(adead_batch *batch, void *user) {
  feed *it = user;
  void *memory;
  size_t index;
  pthread_mutex_lock(&it->lock);
  index = it->made;
  /* This one included. It is counted as taken just before it is. */
  CHECK(it->made + 1 - it->taken <= it->ahead);
  it->made += index < it->count;
  pthread_mutex_unlock(&it->lock);
  if (index == it->bad) return adead_batch_borrow(batch, NULL, 4);
  if (index == it->count) return ADEAD_OK;
  OK(adead_batch_memory(batch, length(index) * sizeof(float), &memory));
  some_values(memory, length(index), (unsigned)index);
  return ADEAD_OK;
}

static adead_status loaded(feed *it, const void **data, size_t *bytes) {
  pthread_mutex_lock(&it->lock);
  it->taken++;
  pthread_mutex_unlock(&it->lock);
  return adead_loader_next(it->loader, data, bytes);
}

static void loaders(void) {
  size_t ahead, i;
  const void *data;
  size_t bytes;
  for (ahead = 1; ahead < 5; ahead++) {
    feed it = feed_of(20, ahead);
    OK(adead_loader_create(make, &it, ahead, &it.loader));
    for (i = 0; i < it.count; i++) {
      float values[ROW];
      OK(loaded(&it, &data, &bytes));
      some_values(values, length(i), (unsigned)i);
      CHECK(data && bytes == length(i) * sizeof(float) && !memcmp(data, values, bytes));
    }
    for (i = 0; i < 3; i++) {
      OK(loaded(&it, &data, &bytes));
      CHECK(!data && !bytes);
    }
    adead_loader_destroy(it.loader);

    /* What the producer finds comes in its place, once. */
    it = feed_of(20, ahead);
    it.bad = 5;
    OK(adead_loader_create(make, &it, ahead, &it.loader));
    for (i = 0; i < 5; i++) OK(loaded(&it, &data, &bytes));
    FAILS(loaded(&it, &data, &bytes), ADEAD_INVALID_ARGUMENT, "next of batch 5 returned invalid_argument: data is NULL");
    OK(loaded(&it, &data, &bytes));
    CHECK(!data);
    adead_loader_destroy(it.loader);

    /* Dropped early, wherever its thread is: it makes no more. */
    for (i = 0; i < 20; i++) {
      size_t taken, made;
      it = feed_of(SIZE_MAX - 1, ahead);
      OK(adead_loader_create(make, &it, ahead, &it.loader));
      for (taken = 0; taken < i % 4; taken++) OK(loaded(&it, &data, &bytes));
      adead_loader_destroy(it.loader);
      made = it.made;
      CHECK(made <= taken + ahead);
    }
  }
  {
    feed it = feed_of(1, 1);
    adead_loader *none = NULL;
    FAILS(adead_loader_create(NULL, &it, 1, &none), ADEAD_INVALID_ARGUMENT, "next is NULL");
    FAILS(adead_loader_create(make, &it, 1, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
    FAILS(adead_loader_create(make, &it, 0, &none), ADEAD_INVALID_ARGUMENT, "at least 1 item ahead, not 0");
    CHECK(!none && !it.made);
    FAILS(adead_loader_next(NULL, &data, &bytes), ADEAD_INVALID_ARGUMENT, "loader is NULL");
    adead_loader_destroy(NULL);
  }
}

static adead_status from_loader(adead_batch *batch, void *user) {
  const void *data;
  size_t bytes;
  adead_status status = adead_loader_next(((feed *)user)->loader, &data, &bytes);
  return status || !data ? status : adead_batch_borrow(batch, data, bytes);
}

static adead_status back(adead_stage *stage, void *user) {
  (void)user;
  return adead_stage_result(stage, adead_stage_input(stage), 0, length(adead_stage_index(stage)) * sizeof(float));
}

static adead_status take(size_t index, const void *data, size_t bytes, void *user) {
  float values[ROW];
  CHECK(index == ((feed *)user)->results++);
  some_values(values, length(index), (unsigned)index);
  CHECK(bytes == length(index) * sizeof(float) && !memcmp(data, values, bytes));
  return ADEAD_OK;
}

static void before_overlap(adead_context *context) {
  feed it = feed_of(20, SIZE_MAX);
  OK(adead_loader_create(make, &it, 2, &it.loader));
  OK(adead_overlap(context, 3, from_loader, back, take, &it));
  CHECK(it.results == 20);
  adead_loader_destroy(it.loader);

  /* Its error, through both. */
  it = feed_of(20, SIZE_MAX);
  it.bad = 7;
  OK(adead_loader_create(make, &it, 2, &it.loader));
  FAILS(adead_overlap(context, 3, from_loader, back, take, &it), ADEAD_INVALID_ARGUMENT,
        "next of batch 7 returned invalid_argument: next of batch 7 returned invalid_argument: data is NULL");
  CHECK(it.results == 7);
  adead_loader_destroy(it.loader);
}

int main(void) {
  adead_context *context = NULL;
  loaders();
  CHECK(!adead_context_open("cpu", NULL, &context));
  before_overlap(context);
  adead_context_destroy(context);
  puts("ok");
  return 0;
}
