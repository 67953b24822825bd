/* Where tensors' values are: misuse as a status, on the CPU and on a GPU. */
#include <stdint.h>

#include "gpu.h"

enum { SIDE = 40, COUNT = SIDE * SIDE, BYTES = 4 * COUNT };

static int is_on(const adead_tensor *it, const char *place) {
  int32_t found = 7;
  OK(adead_tensor_is_on(it, place, &found));
  CHECK(found == 0 || found == 1);
  return found;
}

static adead_tensor_cache_use used(const adead_context *context, const char *device) {
  adead_tensor_cache_use it;
  memset(&it, 0x55, sizeof it);
  it.struct_size = sizeof it;
  OK(adead_context_tensor_cache(context, device, &it));
  CHECK(it.struct_size == sizeof it);
  return it;
}

static adead_tensor *some(unsigned seed) {
  static float values[COUNT];
  some_values(values, COUNT, seed);
  return tensor(values, 2, SIDE, SIDE);
}

static adead_tensor *relu(const adead_context *context, const adead_tensor *x) {
  adead_tensor *y = NULL;
  OK(adead_tensor_relu(context, x, &y));
  return y;
}

/* Everything that can be wrong, and nothing changes. */
static void misuse(const adead_context *context) {
  adead_tensor *x = some(1);
  adead_tensor_cache_use use;
  struct {
    adead_tensor_cache_use use;
    uint64_t more;
  } later;
  int32_t found = 7;
  FAILS(adead_tensor_to(NULL, x, "cpu"), ADEAD_INVALID_ARGUMENT, "context");
  FAILS(adead_tensor_to(context, NULL, "cpu"), ADEAD_INVALID_ARGUMENT, "tensor");
  FAILS(adead_tensor_to(context, x, NULL), ADEAD_INVALID_ARGUMENT, "device");
  FAILS(adead_tensor_to(context, x, "cuda:77"), ADEAD_INVALID_ARGUMENT, "no device 'cuda:77' in this context: it has cpu");
  FAILS(adead_tensor_to(context, x, ""), ADEAD_INVALID_ARGUMENT, "no device ''");
  FAILS(adead_tensor_to(context, x, "\xff"), ADEAD_INVALID_ARGUMENT, "device");
  FAILS(adead_tensor_is_on(NULL, "cpu", &found), ADEAD_INVALID_ARGUMENT, "tensor");
  FAILS(adead_tensor_is_on(x, NULL, &found), ADEAD_INVALID_ARGUMENT, "device");
  FAILS(adead_tensor_is_on(x, "\xff", &found), ADEAD_INVALID_ARGUMENT, "device");
  FAILS(adead_tensor_is_on(x, "cpu", NULL), ADEAD_INVALID_ARGUMENT, "out");
  CHECK(found == 7);
  memset(&use, 0x55, sizeof use);
  use.struct_size = sizeof use;
  FAILS(adead_context_tensor_cache(NULL, "cpu", &use), ADEAD_INVALID_ARGUMENT, "context");
  FAILS(adead_context_tensor_cache(context, NULL, &use), ADEAD_INVALID_ARGUMENT, "device");
  FAILS(adead_context_tensor_cache(context, "cuda:77", &use), ADEAD_INVALID_ARGUMENT, "cuda:77");
  FAILS(adead_context_tensor_cache(context, "cpu", NULL), ADEAD_INVALID_ARGUMENT, "out");
  use.struct_size = 4;
  FAILS(adead_context_tensor_cache(context, "cpu", &use), ADEAD_INVALID_ARGUMENT, "struct_size");
  CHECK(use.struct_size == 4 && use.tensors == UINT64_C(0x5555555555555555));
  FAILS(adead_context_set_tensor_cache(NULL, 0), ADEAD_INVALID_ARGUMENT, "context");
  /* A later version's, which may be longer. */
  memset(&later, 0x55, sizeof later);
  later.use.struct_size = sizeof later;
  if (adead_context_tensor_cache(context, "cpu", &later.use) == ADEAD_OK) CHECK(later.use.tensors == 0);
  CHECK(is_on(x, "cpu") && !is_on(x, "cuda:77") && !is_on(x, "") && !is_on(x, "CPU"));
  adead_tensor_destroy(x);
}

static void on_the_host(const adead_context *cpu) {
  adead_tensor *x = some(2), *y = relu(cpu, x);
  adead_tensor_cache_use now = used(cpu, "cpu");
  OK(adead_tensor_to(cpu, x, "cpu"));
  CHECK(is_on(x, "cpu") && is_on(y, "cpu"));
  CHECK(!now.budget && !now.used && !now.tensors && !now.hits && !now.misses && !now.evictions);
  OK(adead_context_set_tensor_cache(cpu, 0));
  OK(adead_context_set_tensor_cache(cpu, UINT64_MAX));
  adead_tensor_destroy(x);
  adead_tensor_destroy(y);
}

static const char *id_of(const adead_context *gpu) {
  static char id[64];
  adead_device_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  OK(adead_context_device_info(gpu, &info));
  snprintf(id, sizeof id, "%s", info.id);
  return id;
}

static void on_a_gpu(const adead_context *cpu) {
  adead_context *gpu = open_gpu();
  const char *id = id_of(gpu);
  adead_tensor *x = some(3), *y = relu(gpu, x), *expected = relu(cpu, x), *z = NULL, *part = NULL;
  adead_tensor *xs[8], *ys[8];
  adead_tensor_cache_use now;
  const void *data = NULL, *again = NULL;
  size_t dims[1] = {COUNT};
  float *copy = malloc(BYTES);
  int i;
  misuse(gpu);
  /* The result stays, and the operand left a copy. */
  CHECK(is_on(x, "cpu") && is_on(x, id) && is_on(y, id) && !is_on(y, "cpu"));
  OK(adead_tensor_add(gpu, y, x, &z));
  now = used(gpu, id);
  CHECK(now.hits == 2 && now.misses == 1 && now.tensors == 3 && now.used == 3 * BYTES && now.budget > now.used);
  OK(adead_tensor_reshape(y, dims, 1, &part));
  CHECK(is_on(part, id) && !is_on(part, "cpu"));
  /* Reading brings it once. */
  FAILS(adead_tensor_read(y, copy, BYTES - 4), ADEAD_INVALID_ARGUMENT, "bytes");
  CHECK(!is_on(y, "cpu"));
  OK(adead_tensor_read(y, copy, BYTES));
  OK(adead_tensor_data(part, &data));
  OK(adead_tensor_data(y, &again));
  CHECK(data == again && !memcmp(copy, data, BYTES) && is_on(part, "cpu") && (uintptr_t)data % 64 == 0);
  CHECK(same(y, expected));
  OK(adead_tensor_to(gpu, z, "cpu"));
  OK(adead_tensor_to(gpu, z, id));
  adead_tensor_destroy(part);
  adead_tensor_destroy(y);
  y = NULL;
  OK(adead_tensor_add(cpu, expected, x, &y));
  CHECK(same(y, z) && is_on(z, id));
  adead_tensor_destroy(z);
  /* A budget of three tensors. */
  OK(adead_context_set_tensor_cache(gpu, 3 * BYTES));
  for (i = 0; i < 8; i++) {
    xs[i] = some(10 + i);
    OK(adead_tensor_to(gpu, xs[i], id));
    ys[i] = relu(gpu, xs[i]);
    CHECK(used(gpu, id).used <= 3 * BYTES);
  }
  now = used(gpu, id);
  CHECK(now.budget == 3 * BYTES && now.tensors == 3 && now.evictions > 0 && is_on(ys[7], id) && !is_on(ys[0], id));
  OK(adead_context_set_tensor_cache(gpu, 0));
  CHECK(used(gpu, id).tensors == 0);
  z = relu(gpu, x);
  CHECK(is_on(z, id));
  /* What a tensor needs it has, whether its context is there or not. */
  adead_context_destroy(gpu);
  CHECK(same(z, expected));
  for (i = 0; i < 8; i++) {
    adead_tensor *right = relu(cpu, xs[i]);
    CHECK(same(ys[i], right));
    adead_tensor_destroy(right);
    adead_tensor_destroy(xs[i]);
    adead_tensor_destroy(ys[i]);
  }
  adead_tensor_destroy(x);
  adead_tensor_destroy(y);
  adead_tensor_destroy(z);
  adead_tensor_destroy(expected);
  free(copy);
}

int main(void) {
  adead_context *cpu = NULL;
  OK(adead_context_open("cpu", NULL, &cpu));
  misuse(cpu);
  on_the_host(cpu);
  on_a_gpu(cpu);
  adead_context_destroy(cpu);
  return 0;
}
