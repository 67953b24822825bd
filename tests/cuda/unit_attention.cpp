#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/attention.cu"
}
#include "unit.h"

bool run_attention(const char *name, const char *parameters, const unsigned *g, const unsigned *b) {
    dim3u grid = {g[0], g[1], g[2]}, block = {b[0], b[1], b[2]};
    if (!strcmp(name, "attention_merge")) return call(attention_merge, parameters, grid, block), true;
    if (!strcmp(name, "attention_64")) return call(attention_64, parameters, grid, block), true;
    if (!strcmp(name, "attention_64_few")) return call(attention_64_few, parameters, grid, block), true;
    if (!strcmp(name, "attention_128")) return call(attention_128, parameters, grid, block), true;
    if (!strcmp(name, "attention_few")) return call(attention_few, parameters, grid, block), true;
    return false;
}
