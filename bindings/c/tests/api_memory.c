/* The allocators. */
#include "check.h"

#include <stdint.h>

static void allocator(void) {
  adead_allocator *a = NULL;
  adead_allocator_stats stats;
  size_t first = 1, second = 1, third = 1, size = 0;
  void *p = NULL, *q = NULL;
  FAILS(adead_allocator_create(100, 0, &a), ADEAD_INVALID_ARGUMENT, "power of two");
  FAILS(adead_allocator_create(0, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(!a);
  OK(adead_allocator_create(64, 8, &a));
  OK(adead_allocator_alloc(a, 100, &first));
  OK(adead_allocator_alloc(a, 1, &second));
  CHECK(first == 0 && second == 128);
  OK(adead_allocator_pointer(a, first, &p));
  OK(adead_allocator_pointer(a, second, &q));
  CHECK((char *)q - (char *)p == 128 && (uintptr_t)p % 64 == 0 && *(char *)p == 0);
  memset(p, 7, 128);
  OK(adead_allocator_size(a, first, &size));
  CHECK(size == 128);
  FAILS(adead_allocator_alloc(a, 6 * 64, &third), ADEAD_OUT_OF_MEMORY, "384 bytes");
  FAILS(adead_allocator_free(a, 64), ADEAD_INVALID_ARGUMENT, "offset 64");
  FAILS(adead_allocator_pointer(a, 64, &p), ADEAD_INVALID_ARGUMENT, "offset 64");
  FAILS(adead_allocator_alloc(NULL, 1, &third), ADEAD_INVALID_ARGUMENT, "allocator is NULL");
  CHECK(third == 1);
  OK(adead_allocator_free(a, first));
  FAILS(adead_allocator_free(a, first), ADEAD_INVALID_ARGUMENT, "offset 0");
  stats.struct_size = sizeof stats;
  OK(adead_allocator_report(a, &stats));
  CHECK(stats.block_size == 64 && stats.capacity == 512 && stats.used == 64 && stats.available == 448);
  CHECK(stats.largest_free == 320 && stats.live == 1 && stats.high_water == 192);
  OK(adead_allocator_reset(a));
  OK(adead_allocator_alloc(a, 512, &third));
  CHECK(third == 0);
  adead_allocator_destroy(a);
  adead_allocator_destroy(NULL);
  OK(adead_allocator_create(0, 0, &a));
  OK(adead_allocator_report(a, &stats));
  CHECK(stats.block_size == 4096 && stats.capacity == (size_t)65536 * 4096);
  adead_allocator_destroy(a);
}

static void arena(void) {
  adead_arena *a = NULL;
  void *p = NULL, *q = NULL;
  size_t used = 0, capacity = 0;
  FAILS(adead_arena_create(10, 5, &a), ADEAD_INVALID_ARGUMENT, "limit");
  FAILS(adead_arena_create(0, 5, &a), ADEAD_INVALID_ARGUMENT, "limit");
  CHECK(!a);
  OK(adead_arena_create(256, 256, &a));
  OK(adead_arena_alloc(a, 10, 64, &p));
  OK(adead_arena_alloc(a, 10, 64, &q));
  CHECK((char *)q - (char *)p == 64 && (uintptr_t)p % 64 == 0);
  FAILS(adead_arena_alloc(a, 1, 3, &q), ADEAD_INVALID_ARGUMENT, "powers of two");
  FAILS(adead_arena_alloc(a, 1000, 1, &q), ADEAD_OUT_OF_MEMORY, "1000 bytes");
  OK(adead_arena_used(a, &used));
  OK(adead_arena_capacity(a, &capacity));
  CHECK(used == 74 && capacity == 256);
  OK(adead_arena_reset(a));
  OK(adead_arena_used(a, &used));
  OK(adead_arena_alloc(a, 1, 1, &q));
  CHECK(used == 0 && p == q);
  adead_arena_destroy(a);
  adead_arena_destroy(NULL);
  OK(adead_arena_create(0, 0, &a));
  OK(adead_arena_alloc(a, 1 << 20, 4096, &p));
  memset(p, 1, 1 << 20);
  adead_arena_destroy(a);
}

int main(void) {
  allocator();
  arena();
  return 0;
}
