/* The first papers: each call that they name does what its name says, with their program as they have it. */
#include "gpu.h"

#include <math.h>

enum { SIDE = 512, COUNT = SIDE * SIDE };

static void their_program(const adead_context *gpu) {
  float *a = malloc(COUNT * sizeof *a), *b = malloc(COUNT * sizeof *b), *c = malloc(COUNT * sizeof *c);
  adead_buffer *A, *B, *C = NULL;
  adead_buffer *all[3];
  const uint32_t groups[3] = {32, 32, 1};
  adead_kernel *matmul = kernel(gpu, "matmul");
  size_t i, j, k, size = 0;
  CHECK(a && b && c);
  for (i = 0; i < COUNT; i++) {
    a[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    b[i] = (float)(i * 59 % 101) / 50.0f - 1.0f;
  }
  A = buffer(gpu, a, COUNT * sizeof *a);
  B = buffer(gpu, b, COUNT * sizeof *b);
  C = buffer(gpu, NULL, COUNT * sizeof *c);
  all[0] = A, all[1] = B, all[2] = C;
  OK(adead_dispatch(gpu, matmul, all, 3, groups));
  OK(adead_wait(gpu));
  OK(adead_buffer_size(C, &size));
  CHECK(size == COUNT * sizeof *c);
  OK(adead_buffer_read(C, 0, c, size));
  for (i = 0; i < SIDE; i++) {
    for (j = 0; j < SIDE; j++) {
      double exact = 0;
      for (k = 0; k < SIDE; k++) exact += (double)a[i * SIDE + k] * b[k * SIDE + j];
      CHECK(fabs(c[i * SIDE + j] - exact) < 1e-3);
    }
  }
  adead_buffer_destroy(A);
  adead_buffer_destroy(B);
  adead_buffer_destroy(C);
  adead_kernel_destroy(matmul);
  free(a);
  free(b);
  free(c);
}

int main(void) {
  adead_context *gpu = open_gpu();
  their_program(gpu);
  adead_context_destroy(gpu);
  return 0;
}
