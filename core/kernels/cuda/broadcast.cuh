// Element types, and operands that are broadcast to a result. A table has for each of `rank` axes, from the last to the first, its
// size and the elements between neighbours of three operands.
#pragma once
#include "contract.cuh"

typedef unsigned long long ulong64;

// dtype::DType's numbers.
const uint F32 = 0, F16 = 1, BF16 = 2, I32 = 3, I64 = 4, U32 = 5, BOOL = 6, U8 = 7, F64 = 8;

// Which elements of the operands make element i.
INLINE void sources(const uint rank, const Table &t, uint i, size_t (&from)[3]) {
    from[0] = from[1] = from[2] = 0;
#pragma unroll 1
    for (uint d = 0; d < rank; d++) {
        uint size = t.words[4 * d], rest = i / size;
#pragma unroll
        for (uint k = 0; k < 3; k++) {
            from[k] += size_t(i - rest * size) * t.words[4 * d + 1 + k];
        }
        i = rest;
    }
}
