/* Batches made ahead in a thread: a ring of batches, of which the one behind the newest is being made and the one before the
 * oldest is with whoever takes them. */
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct adead_loader {
  adead_next next;
  void *user;
  size_t ahead;
  pthread_t thread;
  /* Guards what follows. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* `ahead` + 1 of them. Who makes one and who takes one have it without the lock. */
  adead_batch *ring;
  size_t made, taken;
  /* Nobody wants any more; none will come any more, and why. */
  bool stopped, ended;
  adead_status status;
  char text[TEXT];
};

static adead_batch *at(const adead_loader *loader, size_t number) { return &loader->ring[number % (loader->ahead + 1)]; }

static void *make_all(void *argument) {
  adead_loader *loader = argument;
  pthread_mutex_lock(&loader->lock);
  for (;;) {
    adead_batch *batch;
    adead_status status;
    while (!loader->stopped && loader->made - loader->taken == loader->ahead)
      pthread_cond_wait(&loader->changed, &loader->lock);
    if (loader->stopped) break;
    batch = at(loader, loader->made);
    pthread_mutex_unlock(&loader->lock);
    status = batch_ask(batch, loader->made, loader->next, loader->user);
    pthread_mutex_lock(&loader->lock);
    if (status) {
      loader->status = status;
      memcpy(loader->text, adead_overlap_last_error(), sizeof loader->text);
    }
    if (status || !batch->data) break;
    loader->made++;
    pthread_cond_broadcast(&loader->changed);
  }
  loader->ended = true;
  pthread_cond_broadcast(&loader->changed);
  pthread_mutex_unlock(&loader->lock);
  return NULL;
}

static void release(adead_loader *loader) {
  size_t i;
  for (i = 0; i <= loader->ahead; i++) batch_free(&loader->ring[i]);
  pthread_cond_destroy(&loader->changed);
  pthread_mutex_destroy(&loader->lock);
  free(loader->ring);
  free(loader);
}

adead_status adead_loader_create(adead_next next, void *user, size_t ahead, adead_loader **out) {
  adead_loader *loader;
  int refused;
  NEED(next);
  NEED(out);
  if (ahead < 1) return overlap_fail(ADEAD_INVALID_ARGUMENT, "a loader must be at least 1 batch ahead, not 0");
  loader = calloc(1, sizeof *loader);
  if (loader) loader->ring = ahead < SIZE_MAX ? calloc(ahead + 1, sizeof *loader->ring) : NULL;
  if (!loader || !loader->ring) {
    free(loader);
    return overlap_fail(ADEAD_OUT_OF_MEMORY, "no memory for a loader %zu batches ahead", ahead);
  }
  loader->next = next;
  loader->user = user;
  loader->ahead = ahead;
  /* With default attributes neither fails here. */
  pthread_mutex_init(&loader->lock, NULL);
  pthread_cond_init(&loader->changed, NULL);
  refused = pthread_create(&loader->thread, NULL, make_all, loader);
  if (refused) {
    release(loader);
    return overlap_fail(ADEAD_IO, "no thread for a loader: error %d of the system", refused);
  }
  *out = loader;
  return ADEAD_OK;
}

adead_status adead_loader_next(adead_loader *loader, const void **data, size_t *bytes) {
  adead_status status;
  NEED(loader);
  NEED(data);
  NEED(bytes);
  pthread_mutex_lock(&loader->lock);
  while (!loader->ended && loader->made == loader->taken) pthread_cond_wait(&loader->changed, &loader->lock);
  if (loader->made > loader->taken) {
    const adead_batch *batch = at(loader, loader->taken++);
    *data = batch->data;
    *bytes = batch->bytes;
    /* There is room for another one. */
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    return ADEAD_OK;
  }
  status = loader->status;
  loader->status = ADEAD_OK;
  pthread_mutex_unlock(&loader->lock);
  /* The thread has ended. */
  if (status) return overlap_fail(status, "%s", loader->text);
  *data = NULL;
  *bytes = 0;
  return ADEAD_OK;
}

void adead_loader_destroy(adead_loader *loader) {
  if (!loader) return;
  pthread_mutex_lock(&loader->lock);
  loader->stopped = true;
  pthread_cond_broadcast(&loader->changed);
  pthread_mutex_unlock(&loader->lock);
  pthread_join(loader->thread, NULL);
  release(loader);
}
