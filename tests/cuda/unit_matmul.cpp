#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/matmul.cu"
}
#include "unit.h"

bool run_matmul(const char *name, const char *parameters, const unsigned *g, const unsigned *b) {
    dim3u grid = {g[0], g[1], g[2]}, block = {b[0], b[1], b[2]};
    if (!strcmp(name, "matmul_merge")) return call(matmul_merge, parameters, grid, block), true;
    if (!strcmp(name, "matmul_vectors")) return call(matmul_vectors, parameters, grid, block), true;
    if (!strcmp(name, "matmul_128x128")) return call(matmul_128x128, parameters, grid, block), true;
    if (!strcmp(name, "matmul_64x64")) return call(matmul_64x64, parameters, grid, block), true;
    if (!strcmp(name, "matmul_32x64")) return call(matmul_32x64, parameters, grid, block), true;
    if (!strcmp(name, "matmul_16x32")) return call(matmul_16x32, parameters, grid, block), true;
    if (!strcmp(name, "matmul_4x256")) return call(matmul_4x256, parameters, grid, block), true;
    return false;
}
