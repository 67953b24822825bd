/* Multiplies two matrices on the best GPU and compares the product with the CPU's. The kernel is the caller's own; its sizes
 * are specialization constants or push constants.
 *
 *   matmul_demo [KERNEL]      KERNEL is examples/kernels/matmul.spv, through Vulkan, or matmul.ptx, through CUDA; their
 *                             sources are in the same folder
 */
#include <adead.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 300, N = 500, K = 400 };

static void check(adead_status status) {
  if (status == ADEAD_OK) return;
  fprintf(stderr, "matmul_demo: %s (%s)\n", adead_last_error(), adead_status_name(status));
  exit(1);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "examples/kernels/matmul.spv";
  const int ptx = strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".ptx") == 0;
  const adead_constant sizes[3] = {{0, M}, {1, N}, {2, K}};
  const uint32_t pushed[3] = {M, N, K};
  const size_t push_bytes = ptx ? sizeof pushed : 0;
  const uint32_t groups[3] = {(N + 15) / 16, (M + 15) / 16, 1};
  static float a[M * K], b[K * N], c[M * N], expected[M * N];
  adead_context *gpu = NULL;
  adead_kernel *any = NULL, *kernel = NULL;
  adead_buffer *buffers[3] = {NULL, NULL, NULL};
  adead_stream *stream = NULL;
  adead_timestamp *begin = NULL, *end = NULL;
  adead_device_info info;
  uint64_t ns = 0;
  double most = 0;
  int i;
  for (i = 0; i < M * K; i++) a[i] = (float)(i % 101) / 101 - 0.5f;
  for (i = 0; i < K * N; i++) b[i] = (float)(i % 103) / 103 - 0.5f;

  if (adead_context_open(ptx ? "cuda" : "vulkan", NULL, &gpu)) {
    fprintf(stderr, "matmul_demo: no GPU to run on: %s\n", adead_last_error());
    return 1;
  }
  info.struct_size = sizeof info;
  check(adead_context_device_info(gpu, &info));

  if (ptx) {
    /* This kernel of the module takes its sizes as push constants. */
    check(adead_kernel_load_ptx(gpu, path, &any));
    check(adead_pipeline_create(gpu, any, "matmul_mnk", NULL, 0, &kernel));
  } else {
    /* The kernel takes its sizes from the lengths of its buffers. Constants make a variant for these sizes alone. */
    check(adead_kernel_load_spirv(gpu, path, &any));
    check(adead_pipeline_create(gpu, any, NULL, sizes, 3, &kernel));
  }
  check(adead_buffer_create(gpu, a, sizeof a, &buffers[0]));
  check(adead_buffer_create(gpu, b, sizeof b, &buffers[1]));
  check(adead_buffer_create(gpu, NULL, sizeof c, &buffers[2]));

  /* One run to warm up, because drivers finish compiling a kernel at its first run. */
  check(adead_dispatch_with(gpu, kernel, buffers, 3, pushed, push_bytes, groups));
  check(adead_wait(gpu));

  /* The caller's own stream measures the time. */
  check(adead_stream_create(gpu, &stream));
  check(adead_stream_timestamp(stream, &begin));
  check(adead_stream_dispatch(stream, kernel, buffers, 3, pushed, push_bytes, groups));
  check(adead_stream_timestamp(stream, &end));
  check(adead_stream_sync(stream));
  check(adead_timestamp_since(end, begin, &ns));
  check(adead_buffer_read(buffers[2], 0, c, sizeof c));

  /* The kernel sums in its own order and is not an operation of adead, so the last bits may differ. */
  check(adead_init(ADEAD_BACKEND_CPU));
  check(adead_matmul(a, b, expected, M, N, K));
  for (i = 0; i < M * N; i++) {
    double difference = fabs((double)c[i] - (double)expected[i]);
    if (!(difference <= 1e-4)) {
      fprintf(stderr, "matmul_demo: element %d is %g and must be %g\n", i, c[i], expected[i]);
      return 1;
    }
    if (difference > most) most = difference;
  }
  printf("device  %s (%s, %s)\n", info.name, info.id, info.driver);
  printf("matmul  [%d, %d] by [%d, %d] in %.3f ms, %.1f GFLOP/s\n", M, K, K, N, (double)ns / 1e6, 2.0 * M * N * K / (double)ns);
  printf("checked all of %d elements: the largest difference to the CPU's is %.1e\n", M * N, most);

  adead_timestamp_destroy(end);
  adead_timestamp_destroy(begin);
  adead_stream_destroy(stream);
  for (i = 0; i < 3; i++) adead_buffer_destroy(buffers[i]);
  adead_kernel_destroy(kernel);
  adead_kernel_destroy(any);
  adead_context_destroy(gpu);
  return 0;
}
