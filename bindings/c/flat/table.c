/* Numbers that stand for matrices and streams. */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>

/* A number has an entry's place in its lower half, counted from 1, and above that how often the place was used and the kind.
 * So a number that was freed is known as such, also when its place is taken again. */
enum { KIND_SHIFT = 56, GENERATION_SHIFT = 32 };
#define GENERATIONS UINT32_C(0xffffff)

static flat_entry *entries;
static size_t used, room;
/* Places that are free, the one that was freed last at the end. */
static uint32_t *freed;
static size_t freed_count;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void flat_lock(void) { pthread_mutex_lock(&mutex); }
void flat_unlock(void) { pthread_mutex_unlock(&mutex); }

adead_status flat_reserve(void) {
  size_t more = room ? room * 2 : 64;
  flat_entry *larger;
  uint32_t *larger_freed;
  if (freed_count || used < room) return ADEAD_OK;
  if (more > UINT32_MAX) return flat_fail(ADEAD_OUT_OF_MEMORY, "%zu matrices and streams are all that there can be", room);
  /* Each is as good as the smaller one was, whether or not the other can be had. */
  larger = realloc(entries, more * sizeof *entries);
  if (larger) entries = larger;
  larger_freed = realloc(freed, more * sizeof *freed);
  if (larger_freed) freed = larger_freed;
  if (!larger || !larger_freed) return flat_fail(ADEAD_OUT_OF_MEMORY, "no memory for %zu matrices and streams", more);
  room = more;
  return ADEAD_OK;
}

adead_flat_handle flat_add(const flat_entry *entry) {
  bool again = freed_count > 0;
  size_t at = again ? freed[--freed_count] : used++;
  uint32_t generation = ((again ? entries[at].generation : 0) + 1) & GENERATIONS;
  entries[at] = *entry;
  entries[at].generation = generation;
  return (adead_flat_handle)((uint64_t)entry->kind << KIND_SHIFT | (uint64_t)generation << GENERATION_SHIFT | (at + 1));
}

adead_status flat_find(adead_flat_handle handle, flat_kind kind, flat_entry **out) {
  static const char *const names[] = {"nothing", "a matrix", "a stream"};
  uint64_t bits = (uint64_t)handle, place = bits & UINT32_MAX, own = bits >> KIND_SHIFT;
  if (handle <= 0 || !place || place > used || (own != FLAT_MATRIX && own != FLAT_STREAM))
    return flat_fail(ADEAD_INVALID_ARGUMENT, "%lld is no handle; %s is wanted", (long long)handle, names[kind]);
  if (own != kind)
    return flat_fail(ADEAD_INVALID_ARGUMENT, "%lld is %s; %s is wanted", (long long)handle, names[own], names[kind]);
  *out = &entries[place - 1];
  if ((*out)->kind != kind || (*out)->generation != (bits >> GENERATION_SHIFT & GENERATIONS))
    return flat_fail(ADEAD_INVALID_ARGUMENT, "%lld was %s and is freed", (long long)handle, names[kind]);
  return ADEAD_OK;
}

void flat_remove(flat_entry *entry) {
  adead_buffer_destroy(entry->buffer);
  adead_stream_destroy(entry->stream);
  entry->kind = 0;
  entry->buffer = NULL;
  entry->stream = NULL;
  freed[freed_count++] = (uint32_t)(entry - entries);
}

int64_t flat_live(void) { return (int64_t)(used - freed_count); }

void flat_remove_all(void) {
  size_t i;
  for (i = 0; i < used; i++)
    if (entries[i].kind) flat_remove(&entries[i]);
}
