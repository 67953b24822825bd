/* GPUs: what there is, buffers, users' kernels, and every way to misuse them. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000, BYTES = N * 4 };

static void devices(const adead_context *context) {
  size_t count = 0, backends, i, j, found = 0;
  adead_device_info info, own;
  adead_hardware hardware;
  adead_memory_use memory;
  own.struct_size = sizeof own;
  OK(adead_context_device_info(context, &own));
  CHECK(!strncmp(own.id, "vulkan:", 7) && own.kind >= ADEAD_KIND_DISCRETE && own.kind <= ADEAD_KIND_SOFTWARE);
  CHECK(own.has_uuid == 1 && strlen(own.vendor) > 0 && strlen(own.driver) > 0 && own.memory > 0);
  OK(adead_gpu_count(&count));
  CHECK(count >= 1);
  for (i = 0; i < count; i++) {
    memset(&info, 0x55, sizeof info);
    info.struct_size = sizeof info;
    OK(adead_gpu_info(i, &info));
    CHECK(strchr(info.id, ':') && strlen(info.name) > 0);
    OK(adead_gpu_backend_count(i, &backends));
    CHECK(backends >= 1);
    for (j = 0; j < backends; j++) {
      adead_device_info through;
      through.struct_size = sizeof through;
      OK(adead_gpu_backend_info(i, j, &through));
      CHECK(j > 0 || !strcmp(through.id, info.id));
      CHECK(j == 0 || (strcmp(through.id, info.id) && !memcmp(through.uuid, info.uuid, 16)));
      if (!strcmp(through.id, own.id)) {
        found++;
        CHECK(!memcmp(through.uuid, own.uuid, 16) && !strcmp(through.name, own.name) && !strcmp(through.bus, own.bus));
      }
    }
    FAILS(adead_gpu_backend_info(i, backends, &info), ADEAD_INVALID_ARGUMENT, "backend is ");
  }
  CHECK(found == 1);
  FAILS(adead_gpu_backend_count(count, &backends), ADEAD_INVALID_ARGUMENT, "there are ");
  FAILS(adead_gpu_backend_count(0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  hardware.struct_size = sizeof hardware;
  OK(adead_hardware_report(&hardware));
  CHECK(hardware.gpu_count == count);
  FAILS(adead_gpu_count(NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_gpu_info(0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_gpu_info(count, &info), ADEAD_INVALID_ARGUMENT, "there are ");
  info.struct_size = 8;
  FAILS(adead_gpu_info(0, &info), ADEAD_INVALID_ARGUMENT, "adead_device_info");
  /* A struct of before GPUs is filled as far as it goes. */
  memset(&info, 0x55, sizeof info);
  info.struct_size = 216;
  OK(adead_gpu_info(0, &info));
  CHECK(info.kind == 0x55555555 && info.uuid[0] == 0x55);
  memory.struct_size = sizeof memory;
  OK(adead_memory(context, &memory));
  CHECK(memory.total > 0 && memory.free <= memory.total && memory.used <= memory.held);
  FAILS(adead_memory(NULL, &memory), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_memory(context, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
}

/* The best GPU, without its name: the same device. */
static void best(const adead_context *context) {
  adead_context *opened = NULL;
  adead_device_info info, own;
  info.struct_size = own.struct_size = sizeof own;
  OK(adead_gpu_open(&opened));
  OK(adead_context_device_info(opened, &info));
  OK(adead_context_device_info(context, &own));
  CHECK(!strcmp(info.id, own.id));
  adead_context_destroy(opened);
  FAILS(adead_gpu_open(NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
}

static void buffers(const adead_context *context) {
  const unsigned char data[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, zeros[10] = {0};
  unsigned char changed[10] = {1, 2, 3, 77, 78, 6, 7, 8, 9, 10}, part[4] = {0}, two[2] = {77, 78};
  adead_buffer *a, *b, *none = (adead_buffer *)part;
  adead_memory_use before, after;
  size_t size = 99;
  a = buffer(context, data, 10);
  CHECK(has(a, data, 10));
  OK(adead_buffer_write(a, 3, two, 2));
  CHECK(has(a, changed, 10));
  OK(adead_buffer_read(a, 2, part, 4));
  CHECK(!memcmp(part, changed + 2, 4));
  b = buffer(context, NULL, 10);
  CHECK(has(b, zeros, 10));
  OK(adead_buffer_write(b, 10, NULL, 0)); /* Nothing fits everywhere. */
  OK(adead_buffer_read(b, 0, NULL, 0));
  FAILS(adead_buffer_write(a, 9, two, 2), ADEAD_INVALID_ARGUMENT, "2 bytes at offset 9");
  FAILS(adead_buffer_write(a, SIZE_MAX, two, 2), ADEAD_INVALID_ARGUMENT, "offset 18446744073709551615");
  FAILS(adead_buffer_write(a, 0, NULL, 1), ADEAD_INVALID_ARGUMENT, "data is NULL");
  FAILS(adead_buffer_write(NULL, 0, two, 2), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  FAILS(adead_buffer_read(a, 7, part, 4), ADEAD_INVALID_ARGUMENT, "4 bytes at offset 7");
  FAILS(adead_buffer_read(a, 0, NULL, 4), ADEAD_INVALID_ARGUMENT, "dst is NULL");
  FAILS(adead_buffer_read(a, 0, part, SIZE_MAX), ADEAD_INVALID_ARGUMENT, "dst at");
  FAILS(adead_buffer_read(NULL, 0, part, 4), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  FAILS(adead_buffer_size(NULL, &size), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  FAILS(adead_buffer_size(a, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_buffer_create(NULL, data, 10, &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_buffer_create(context, data, 10, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_buffer_create(context, data, SIZE_MAX, &none), ADEAD_INVALID_ARGUMENT, "data at");
  FAILS(adead_buffer_create(context, NULL, SIZE_MAX / 2, &none), ADEAD_OUT_OF_MEMORY, "");
  CHECK(none == (adead_buffer *)part && size == 99 && has(a, changed, 10));
  /* Freed memory is not to be used, nor freed again; the handle is still there to be destroyed. */
  OK(adead_buffer_free(b));
  FAILS(adead_buffer_free(b), ADEAD_INVALID_ARGUMENT, "freed before");
  FAILS(adead_buffer_free(NULL), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  FAILS(adead_buffer_read(b, 0, part, 4), ADEAD_INVALID_ARGUMENT, "was freed");
  FAILS(adead_buffer_write(b, 0, two, 2), ADEAD_INVALID_ARGUMENT, "was freed");
  OK(adead_buffer_size(b, &size));
  CHECK(size == 10);
  adead_buffer_destroy(b);
  adead_buffer_destroy(NULL);
  b = buffer(context, NULL, 0);
  CHECK(has(b, zeros, 0));
  adead_buffer_destroy(b);
  adead_buffer_destroy(a);
  /* Memory comes back when it is freed and when its handle goes. */
  before.struct_size = after.struct_size = sizeof before;
  OK(adead_wait(context));
  OK(adead_memory(context, &before));
  a = buffer(context, NULL, 1 << 20);
  b = buffer(context, NULL, 1 << 20);
  OK(adead_memory(context, &after));
  CHECK(after.used >= before.used + (2 << 20) && after.allocations == before.allocations + 2);
  OK(adead_buffer_free(a));
  adead_buffer_destroy(a);
  adead_buffer_destroy(b);
  OK(adead_wait(context));
  OK(adead_memory(context, &after));
  CHECK(after.used == before.used && after.allocations == before.allocations);
}

static void kernels(const adead_context *context) {
  char path[1024];
  adead_kernel *vecadd = kernel(context, "vecadd"), *reduce = kernel(context, "reduce"), *other = NULL, *none;
  adead_kernel_details details;
  adead_parameter parameter;
  adead_constant constants[2] = {{0, 64}, {99, 1}};
  unsigned char code[64] = {3, 2, 0x23, 7, 0, 5, 1, 0};
  size_t i;
  details.struct_size = sizeof details;
  OK(adead_kernel_info(vecadd, &details));
  CHECK(!strcmp(details.name, "main") && details.parameter_count == 3 && details.push_bytes == 4);
  CHECK(details.workgroup[0] == 256 && details.workgroup[1] == 1 && details.workgroup[2] == 1);
  for (i = 0; i < 3; i++) {
    parameter.struct_size = sizeof parameter;
    OK(adead_kernel_parameter_at(vecadd, i, &parameter));
    CHECK(parameter.set == 0 && parameter.binding == i && parameter.stride == 4 && parameter.readonly == (i < 2));
  }
  FAILS(adead_kernel_parameter_at(vecadd, 3, &parameter), ADEAD_INVALID_ARGUMENT, "the kernel has 3 buffers");
  FAILS(adead_kernel_parameter_at(NULL, 0, &parameter), ADEAD_INVALID_ARGUMENT, "kernel is NULL");
  FAILS(adead_kernel_parameter_at(vecadd, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_kernel_info(NULL, &details), ADEAD_INVALID_ARGUMENT, "kernel is NULL");
  FAILS(adead_kernel_info(vecadd, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  /* Constants and entry points. */
  OK(adead_pipeline_create(context, reduce, NULL, constants, 1, &other));
  OK(adead_kernel_info(other, &details));
  CHECK(details.workgroup[0] == 64);
  none = other;
  FAILS(adead_pipeline_create(context, reduce, NULL, constants, 2, &none), ADEAD_INVALID_ARGUMENT, "constant 99");
  FAILS(adead_pipeline_create(context, reduce, "none", NULL, 0, &none), ADEAD_INVALID_ARGUMENT, "'none'");
  FAILS(adead_pipeline_create(context, reduce, "\xff", NULL, 0, &none), ADEAD_INVALID_ARGUMENT, "entry is not UTF-8");
  FAILS(adead_pipeline_create(context, reduce, NULL, NULL, 1, &none), ADEAD_INVALID_ARGUMENT, "constants is NULL");
  FAILS(adead_pipeline_create(context, NULL, NULL, NULL, 0, &none), ADEAD_INVALID_ARGUMENT, "kernel is NULL");
  FAILS(adead_pipeline_create(NULL, reduce, NULL, NULL, 0, &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_pipeline_create(context, reduce, NULL, NULL, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  constants[0].value = 4096; /* No device has workgroups as large. */
  FAILS(adead_pipeline_create(context, reduce, NULL, constants, 1, &none), ADEAD_UNSUPPORTED, "4096");
  /* What is no module never reaches the driver. */
  FAILS(adead_kernel_load_spirv(context, "nowhere.spv", &none), ADEAD_IO, "nowhere.spv");
  FAILS(adead_kernel_load_spirv(context, NULL, &none), ADEAD_INVALID_ARGUMENT, "path is NULL");
  FAILS(adead_kernel_load_spirv(NULL, "nowhere.spv", &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_kernel_load_spirv(context, "nowhere.spv", NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_kernel_load_spirv_bytes(context, NULL, 0, &none), ADEAD_INVALID_KERNEL, "0 bytes");
  FAILS(adead_kernel_compile(context, NULL, NULL, NULL, NULL, &none), ADEAD_INVALID_ARGUMENT, "source is NULL");
  FAILS(adead_kernel_compile(NULL, "x", NULL, NULL, NULL, &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  if (system("glslangValidator --version >/dev/null 2>&1") == 0)
    FAILS(adead_kernel_compile(context, "wrong", "wrong.comp", NULL, NULL, &none), ADEAD_INVALID_KERNEL, "wrong.comp:1:");
  FAILS(adead_kernel_load_spirv_bytes(context, code, 3, &none), ADEAD_INVALID_KERNEL, "3 bytes");
  FAILS(adead_kernel_load_spirv_bytes(context, code, 64, &none), ADEAD_INVALID_KERNEL, "SPIR-V");
  FAILS(adead_kernel_load_spirv_bytes(context, NULL, 64, &none), ADEAD_INVALID_ARGUMENT, "data is NULL");
  FAILS(adead_kernel_load_spirv_bytes(NULL, code, 64, &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_kernel_load_spirv_bytes(context, code, 64, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  /* What CUDA takes is refused with the device to open, or with that it is not there. */
  snprintf(path, sizeof path, "%s/vecadd.ptx", KERNELS);
  FAILS(adead_kernel_load_ptx(context, path, &none), ADEAD_UNSUPPORTED, "cuda");
  FAILS(adead_kernel_load_cubin(context, path, &none), ADEAD_UNSUPPORTED, "cuda");
  FAILS(adead_kernel_load_ptx_bytes(context, code, 64, NULL, NULL, &none), ADEAD_UNSUPPORTED, "cuda");
  FAILS(adead_kernel_load_cubin_bytes(context, code, 64, NULL, NULL, &none), ADEAD_UNSUPPORTED, "cuda");
  FAILS(adead_kernel_load_ptx(context, "nowhere.ptx", &none), ADEAD_IO, "nowhere.ptx");
  FAILS(adead_kernel_load_ptx(context, NULL, &none), ADEAD_INVALID_ARGUMENT, "path is NULL");
  FAILS(adead_kernel_load_ptx_bytes(context, NULL, 64, NULL, NULL, &none), ADEAD_INVALID_ARGUMENT, "data is NULL");
  FAILS(adead_kernel_load_ptx_bytes(context, code, 64, "\xff", NULL, &none), ADEAD_INVALID_ARGUMENT, "entry");
  FAILS(adead_kernel_load_ptx_bytes(context, code, 64, NULL, NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(none == other);
  adead_kernel_destroy(other);
  adead_kernel_destroy(reduce);
  adead_kernel_destroy(vecadd);
  adead_kernel_destroy(NULL);
}

/* A module is taken from bytes at any address, and refused wherever it is cut. */
static void modules(const adead_context *context) {
  adead_kernel *made = NULL;
  char path[1024];
  char *bytes = malloc(1 << 16);
  size_t length, cut;
  FILE *file;
  snprintf(path, sizeof path, "%s/vecadd.spv", KERNELS);
  file = fopen(path, "rb");
  CHECK(file);
  length = fread(bytes + 1, 1, (1 << 16) - 1, file);
  CHECK(length > 100 && length % 4 == 0);
  fclose(file);
  OK(adead_kernel_load_spirv_bytes(context, bytes + 1, length, &made));
  adead_kernel_destroy(made);
  made = NULL;
  for (cut = 0; cut < length; cut += 4) {
    FAILS(adead_kernel_load_spirv_bytes(context, bytes + 1, cut, &made), ADEAD_INVALID_KERNEL, "SPIR-V");
  }
  CHECK(!made);
  free(bytes);
}

static void dispatches(const adead_context *context) {
  const uint32_t groups[3] = {(N + 255) / 256, 1, 1}, no_groups[3] = {4, 0, 1}, n = N;
  float x[N], y[N], sums[N];
  adead_context *another = open_gpu();
  adead_kernel *vecadd = kernel(context, "vecadd"), *foreign = kernel(another, "vecadd");
  adead_buffer *a, *b, *c, *lists[4];
  size_t i;
  some_values(x, N, 1);
  some_values(y, N, 2);
  for (i = 0; i < N; i++) sums[i] = x[i] + y[i];
  lists[0] = a = buffer(context, x, BYTES);
  lists[1] = b = buffer(context, y, BYTES);
  lists[2] = c = buffer(context, NULL, BYTES);
  lists[3] = NULL;
  OK(adead_dispatch_with(context, vecadd, lists, 3, &n, 4, groups));
  OK(adead_wait(context));
  CHECK(has(c, sums, BYTES));
  FAILS(adead_dispatch(context, vecadd, lists, 3, groups), ADEAD_INVALID_ARGUMENT, "4 bytes of push constants and got 0");
  FAILS(adead_dispatch_with(context, vecadd, lists, 3, &n, 3, groups), ADEAD_INVALID_ARGUMENT, "got 3");
  FAILS(adead_dispatch_with(context, vecadd, lists, 3, NULL, 4, groups), ADEAD_INVALID_ARGUMENT, "push is NULL");
  FAILS(adead_dispatch_with(context, vecadd, lists, 2, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "got 2");
  FAILS(adead_dispatch_with(context, vecadd, NULL, 0, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "got 0");
  FAILS(adead_dispatch_with(context, vecadd, NULL, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "buffers is NULL");
  FAILS(adead_dispatch_with(context, vecadd, lists + 1, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "buffers[2] is NULL");
  FAILS(adead_dispatch_with(context, vecadd, lists, 3, &n, 4, no_groups), ADEAD_INVALID_ARGUMENT, "[4, 0, 1]");
  FAILS(adead_dispatch_with(context, vecadd, lists, 3, &n, 4, NULL), ADEAD_INVALID_ARGUMENT, "groups is NULL");
  FAILS(adead_dispatch_with(context, NULL, lists, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "kernel is NULL");
  FAILS(adead_dispatch_with(NULL, vecadd, lists, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_wait(NULL), ADEAD_INVALID_ARGUMENT, "context is NULL");
  /* A context's kernels and buffers are its own. */
  FAILS(adead_dispatch_with(another, vecadd, lists, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "");
  FAILS(adead_dispatch_with(another, foreign, lists, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "another");
  /* Sizes must suit the kernel's declaration. */
  lists[1] = buffer(context, NULL, BYTES - 1);
  FAILS(adead_dispatch_with(context, vecadd, lists, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "buffer 1");
  adead_buffer_destroy(lists[1]);
  lists[1] = b;
  OK(adead_buffer_free(b));
  FAILS(adead_dispatch_with(context, vecadd, lists, 3, &n, 4, groups), ADEAD_INVALID_ARGUMENT, "was freed");
  CHECK(has(c, sums, BYTES));
  /* What is enqueued outlives the handles that it was enqueued with, and results their context. */
  lists[1] = a;
  for (i = 0; i < N; i++) sums[i] = x[i] + x[i];
  OK(adead_dispatch_with(context, vecadd, lists, 3, &n, 4, groups));
  adead_kernel_destroy(vecadd);
  OK(adead_buffer_free(a));
  adead_buffer_destroy(a);
  adead_buffer_destroy(b);
  CHECK(has(c, sums, BYTES));
  adead_buffer_destroy(c);
  a = buffer(another, x, BYTES);
  adead_context_destroy(another);
  CHECK(has(a, x, BYTES));
  adead_buffer_destroy(a);
  adead_kernel_destroy(foreign);
}

/* A child has the handles and not the driver's threads: it is told so, and the parent goes on. */
static void forked(const adead_context *context) {
  const float x[4] = {1, 2, 3, 4};
  adead_buffer *a = buffer(context, x, sizeof x);
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    float found[4];
    adead_buffer *none = NULL;
    alarm(60); /* A child that waits for the driver would wait for ever. */
    FAILS(adead_buffer_read(a, 0, found, sizeof found), ADEAD_BACKEND_UNAVAILABLE, "fork");
    FAILS(adead_buffer_write(a, 0, x, sizeof x), ADEAD_BACKEND_UNAVAILABLE, "fork");
    FAILS(adead_buffer_create(context, x, sizeof x, &none), ADEAD_BACKEND_UNAVAILABLE, "fork");
    adead_buffer_destroy(a);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(has(a, x, sizeof x));
  adead_buffer_destroy(a);
}

/* On the CPU buffers are in host memory and kernels don't run. */
static void without_gpu(void) {
  const float x[4] = {1, 2, 3, 4};
  adead_context *context = NULL;
  adead_kernel *none = NULL;
  adead_memory_use memory;
  adead_buffer *a;
  char path[1024];
  OK(adead_context_open("cpu", NULL, &context));
  a = buffer(context, x, sizeof x);
  CHECK(has(a, x, sizeof x));
  OK(adead_wait(context));
  OK(adead_buffer_free(a));
  FAILS(adead_buffer_free(a), ADEAD_INVALID_ARGUMENT, "freed before");
  adead_buffer_destroy(a);
  memory.struct_size = sizeof memory;
  OK(adead_memory(context, &memory));
  CHECK(memory.total > 0);
  snprintf(path, sizeof path, "%s/vecadd.spv", KERNELS);
  FAILS(adead_kernel_load_spirv(context, path, &none), ADEAD_UNSUPPORTED, "vulkan");
  CHECK(!none);
  adead_context_destroy(context);
}

/* Without devices that may be seen there are none; the file of a kernel is not even looked for. */
static void hidden(void) {
  size_t count = 99;
  adead_context *context = NULL;
  adead_device_info info;
  OK(setenv("ADEAD_VISIBLE_DEVICES", "none", 1));
  OK(adead_gpu_count(&count));
  CHECK(count == 0);
  info.struct_size = sizeof info;
  FAILS(adead_gpu_info(0, &info), ADEAD_INVALID_ARGUMENT, "there are 0 GPUs");
  FAILS(adead_context_open("vulkan", NULL, &context), ADEAD_BACKEND_UNAVAILABLE, "vulkan");
  FAILS(adead_vulkan_compute("nowhere.spv", 1, 1, 1), ADEAD_BACKEND_UNAVAILABLE, "vulkan");
  CHECK(!context);
  OK(unsetenv("ADEAD_VISIBLE_DEVICES"));
}

/* The simple API runs a shader on what adead_alloc gave, in its order. */
static void simple(void) {
  enum { K = 512 };
  float *a, *b, *c;
  void *p;
  size_t i, j, k;
  char path[1024], add[1024];
  snprintf(path, sizeof path, "%s/matmul.spv", KERNELS);
  snprintf(add, sizeof add, "%s/vecadd.spv", KERNELS);
  OK(adead_vulkan_init());
  FAILS(adead_vulkan_compute(path, 32, 32, 1), ADEAD_INVALID_ARGUMENT, "takes 3 buffers; adead_alloc gave 0");
  OK(adead_alloc(8, &p));
  OK(adead_alloc(K * K * 4, (void **)&a));
  OK(adead_alloc(K * K * 4, (void **)&b));
  OK(adead_alloc(K * K * 4, (void **)&c));
  OK(adead_free(p)); /* What is freed is not counted. */
  for (i = 0; i < K * K; i++) {
    a[i] = (float)(i % 7) - 3;
    b[i] = (float)(i % 5) - 2;
  }
  OK(adead_vulkan_compute(path, K / 16, K / 16, 1));
  for (i = 0; i < K; i += 37) {
    for (j = 0; j < K; j += 41) {
      float sum = 0; /* Small integers: exact in any order. */
      for (k = 0; k < K; k++) sum += a[i * K + k] * b[k * K + j];
      CHECK(c[i * K + j] == sum);
    }
  }
  FAILS(adead_vulkan_compute(add, 1, 1, 1), ADEAD_INVALID_ARGUMENT, "push constants");
  FAILS(adead_vulkan_compute("nowhere.spv", 1, 1, 1), ADEAD_IO, "nowhere.spv");
  FAILS(adead_vulkan_compute(path, -1, 1, 1), ADEAD_INVALID_ARGUMENT, "x is -1");
  OK(adead_shutdown());
}

int main(void) {
  adead_context *context;
  without_gpu();
  hidden();
  context = open_gpu();
  devices(context);
  best(context);
  buffers(context);
  kernels(context);
  modules(context);
  dispatches(context);
  forked(context);
  simple();
  adead_context_destroy(context);
  return 0;
}
