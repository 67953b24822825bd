/* Multiplies two matrices on the CPU. */
#include <adead.h>
#include <stdio.h>

int main(void) {
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1};
  float product[4];
  if (adead_abi_version() != ADEAD_ABI_VERSION || adead_init(0) || adead_matmul(a, b, product, 2, 2, 3)) {
    fprintf(stderr, "%s\n", adead_last_error());
    return 1;
  }
  printf("adead %s in C: %g %g %g %g\n", adead_version(), product[0], product[1], product[2], product[3]);
  return product[0] != 4 || product[1] != 5 || product[2] != 10 || product[3] != 11;
}
