// SUM's tree.
#pragma once
#include "contract.cuh"

const uint ALL = 0xffffffffu;

// SUM's tree over 32 lanes, for every one of them: both of two lanes add the same two numbers.
INLINE float tree(float v) {
#pragma unroll
    for (uint step = 16; step > 0; step /= 2) {
        v = v + __shfl_xor_sync(ALL, v, step);
    }
    return total(v);
}
