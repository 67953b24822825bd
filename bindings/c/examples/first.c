#include <adead.h>
#include <stdio.h>

int main(void) {
  float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1}, c[4];
  adead_status failed = adead_matmul(a, b, c, 2, 2, 3); /* [2, 3] x [3, 2] */
  if (failed) return fprintf(stderr, "%s\n", adead_last_error()), 1;
  printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);
}
