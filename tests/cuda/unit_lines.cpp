#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/lines.cu"
}
#include "unit.h"

bool run_lines(const char *name, const char *parameters, dim3u grid, dim3u block) {
    if (!strcmp(name, "reduce_along")) return call(reduce_along, parameters, grid, block), true;
    if (!strcmp(name, "reduce_across")) return call(reduce_across, parameters, grid, block), true;
    if (!strcmp(name, "softmax_rows")) return call(softmax_rows, parameters, grid, block), true;
    if (!strcmp(name, "softmax_whole")) return call(softmax_whole, parameters, grid, block), true;
    if (!strcmp(name, "layernorm_rows")) return call(layernorm_rows, parameters, grid, block), true;
    if (!strcmp(name, "layernorm_whole")) return call(layernorm_whole, parameters, grid, block), true;
    if (!strcmp(name, "rmsnorm_rows")) return call(rmsnorm_rows, parameters, grid, block), true;
    if (!strcmp(name, "rmsnorm_whole")) return call(rmsnorm_whole, parameters, grid, block), true;
    return false;
}
