/* Adds two vectors on the best GPU with the caller's own kernel, and checks every sum.
 *
 *   vecadd_demo [KERNEL]      KERNEL is examples/kernels/vecadd.spv, through Vulkan, or vecadd.ptx, through CUDA; their
 *                             sources are in the same folder
 */
#include <adead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4 << 20, BYTES = N * 4 };

static void check(adead_status status) {
  if (status == ADEAD_OK) return;
  fprintf(stderr, "vecadd_demo: %s (%s)\n", adead_last_error(), adead_status_name(status));
  exit(1);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "examples/kernels/vecadd.spv";
  const int ptx = strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".ptx") == 0;
  const uint32_t n = N, groups[3] = {(N + 255) / 256, 1, 1};
  float *a = malloc(BYTES), *b = malloc(BYTES), *c = malloc(BYTES);
  adead_context *gpu = NULL;
  adead_kernel *kernel = NULL;
  adead_buffer *buffers[3] = {NULL, NULL, NULL};
  adead_stream *stream = NULL;
  adead_timestamp *begin = NULL, *end = NULL;
  adead_device_info info;
  uint64_t ns = 0;
  int i;
  if (!a || !b || !c) return 1;
  for (i = 0; i < N; i++) {
    a[i] = (float)i / 3;
    b[i] = (float)(N - i) / 7;
  }

  if (adead_context_open(ptx ? "cuda" : "vulkan", NULL, &gpu)) {
    fprintf(stderr, "vecadd_demo: no GPU to run on: %s\n", adead_last_error());
    return 1;
  }
  info.struct_size = sizeof info;
  check(adead_context_device_info(gpu, &info));

  check(ptx ? adead_kernel_load_ptx(gpu, path, &kernel) : adead_kernel_load_spirv(gpu, path, &kernel));
  check(adead_buffer_create(gpu, a, BYTES, &buffers[0]));
  check(adead_buffer_create(gpu, b, BYTES, &buffers[1]));
  check(adead_buffer_create(gpu, NULL, BYTES, &buffers[2]));

  /* One run to warm up, because drivers finish compiling a kernel at its first run. */
  check(adead_dispatch_with(gpu, kernel, buffers, 3, &n, sizeof n, groups));
  check(adead_wait(gpu));

  /* The caller's own stream measures the time. */
  check(adead_stream_create(gpu, &stream));
  check(adead_stream_timestamp(stream, &begin));
  check(adead_stream_dispatch(stream, kernel, buffers, 3, &n, sizeof n, groups));
  check(adead_stream_timestamp(stream, &end));
  check(adead_stream_sync(stream));
  check(adead_timestamp_since(end, begin, &ns));
  check(adead_buffer_read(buffers[2], 0, c, BYTES));

  for (i = 0; i < N; i++) {
    if (c[i] != a[i] + b[i]) {
      fprintf(stderr, "vecadd_demo: c[%d] is %g and must be %g\n", i, c[i], a[i] + b[i]);
      return 1;
    }
  }
  printf("device  %s (%s, %s)\n", info.name, info.id, info.driver);
  printf("vecadd  %d sums in %.3f ms, %.1f GB/s\n", N, (double)ns / 1e6, 3.0 * BYTES / (double)ns);
  printf("checked all of them: exact\n");

  adead_timestamp_destroy(end);
  adead_timestamp_destroy(begin);
  adead_stream_destroy(stream);
  for (i = 0; i < 3; i++) adead_buffer_destroy(buffers[i]);
  adead_kernel_destroy(kernel);
  adead_context_destroy(gpu);
  free(a);
  free(b);
  free(c);
  return 0;
}
