#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/elementwise.cu"
}
#include "unit.h"

bool run_elementwise(const char *name, const char *parameters, dim3u grid, dim3u block) {
    if (!strcmp(name, "elementwise")) return call(elementwise, parameters, grid, block), true;
    return false;
}
