#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/lines.cu"
}
#include "unit.h"

bool run_lines(const char *name, const char *parameters, const unsigned *g, const unsigned *b) {
    dim3u grid = {g[0], g[1], g[2]}, block = {b[0], b[1], b[2]};
    if (!strcmp(name, "reduce_along")) return call(reduce_along, parameters, grid, block), true;
    if (!strcmp(name, "reduce_across")) return call(reduce_across, parameters, grid, block), true;
    if (!strcmp(name, "softmax_rows")) return call(softmax_rows, parameters, grid, block), true;
    if (!strcmp(name, "norm_rows")) return call(norm_rows, parameters, grid, block), true;
#ifndef PORTABLE
    if (!strcmp(name, "softmax_whole")) return call(softmax_whole, parameters, grid, block), true;
    if (!strcmp(name, "norm_whole")) return call(norm_whole, parameters, grid, block), true;
#endif
    return false;
}
