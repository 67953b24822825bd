#include <adead.h>
#include <stdio.h>

int main(void) {
  const float x[4] = {-1, 0, 2, 3};
  float y[4];
  if (adead_abi_version() != ADEAD_ABI_VERSION || adead_relu(x, y, 4)) return 1;
  printf("adead %s: %g %g %g %g\n", adead_version(), y[0], y[1], y[2], y[3]);
  return adead_shutdown() || y[0] != 0 || y[3] != 3;
}
