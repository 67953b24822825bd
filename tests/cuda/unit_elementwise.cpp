#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/elementwise.cu"
}
#include "unit.h"

bool run_elementwise(const char *name, const char *parameters, const unsigned *g, const unsigned *b) {
    dim3u grid = {g[0], g[1], g[2]}, block = {b[0], b[1], b[2]};
    if (!strcmp(name, "elementwise")) return call(elementwise, parameters, grid, block), true;
    return false;
}
