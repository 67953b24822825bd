// Products of signed bytes, and copies of 16 and 8 bytes to shared memory.
#pragma once
#include "contract.cuh"

// Returns c plus the products of four bytes each.
INLINE int dot4(const uint a, const uint b, int c) {
#ifdef __CUDA_ARCH__
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b));
    return c;
#else
    for (uint e = 0; e < 32; e += 8) {
        c += int((signed char)(a >> e)) * int((signed char)(b >> e));
    }
    return c;
#endif
}

// Copies 16 bytes from global to shared memory. From 8.0 on, the copy completes later: see `arrived` in memory.cuh.
INLINE void copy_chunk(uint4 *to, const uint4 *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint(__cvta_generic_to_shared(to))), "l"(from));
#else
    *to = *from;
#endif
}

// The same for 8 bytes.
INLINE void copy_pair(uint2 *to, const uint2 *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(uint(__cvta_generic_to_shared(to))), "l"(from));
#else
    *to = *from;
#endif
}
