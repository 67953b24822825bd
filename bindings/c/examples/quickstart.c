#include <adead.h>
#include <stdio.h>

int main(void) {
  /* The simple API: float arrays of your own. */
  float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1}, c[4];
  adead_matmul(a, b, c, 2, 2, 3); /* [2, 3] x [3, 2] */
  printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);

  /* The object API: tensors of any shape and dtype. */
  adead_context *ctx = NULL;
  adead_tensor *x = NULL, *y = NULL;
  size_t dims[] = {2, 3};
  float probabilities[6];
  if (adead_context_open("auto", NULL, &ctx) || adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, a, sizeof a, &x) ||
      adead_tensor_softmax(ctx, x, -1, &y) || adead_tensor_read(y, probabilities, sizeof probabilities)) {
    fprintf(stderr, "%s\n", adead_last_error());
    return 1;
  }
  printf("%.9g %.9g %.9g\n", probabilities[0], probabilities[1], probabilities[2]);
  adead_tensor_destroy(y);
  adead_tensor_destroy(x);
  adead_context_destroy(ctx);
}
