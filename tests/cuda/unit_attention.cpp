#include "emulator.h"
namespace {
#include "../../core/kernels/cuda/attention.cu"
}
#include "unit.h"

bool run_attention(const char *name, const char *parameters, dim3u grid, dim3u block) {
    if (!strcmp(name, "attention_merge")) return call(attention_merge, parameters, grid, block), true;
    if (!strcmp(name, "attention_64")) return call(attention_64, parameters, grid, block), true;
    if (!strcmp(name, "attention_128")) return call(attention_128, parameters, grid, block), true;
    if (!strcmp(name, "attention_few")) return call(attention_few, parameters, grid, block), true;
    return false;
}
