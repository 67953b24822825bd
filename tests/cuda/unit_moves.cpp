#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/moves.cu"
}
#include "unit.h"

bool run_moves(const char *name, const char *parameters, const unsigned *g, const unsigned *b) {
    dim3u grid = {g[0], g[1], g[2]}, block = {b[0], b[1], b[2]};
    if (!strcmp(name, "check")) return call(check, parameters, grid, block), true;
    if (!strcmp(name, "copy")) return call(copy, parameters, grid, block), true;
    if (!strcmp(name, "transpose")) return call(transpose, parameters, grid, block), true;
    if (!strcmp(name, "cast")) return call(cast, parameters, grid, block), true;
    return false;
}
