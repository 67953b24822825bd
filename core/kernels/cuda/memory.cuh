// Copies from global to shared memory that overlap with computation, and addresses that take few instructions.
#pragma once
#include "contract.cuh"

// Copies NUMBERS (1 or 4) numbers from global to shared memory: the first `there`, and zeros for the rest. Unless
// `there` is 0, the rest must be readable too, because ptxas reads all or none. From 8.0 on, the copy completes later.
template <uint NUMBERS>
INLINE void copy_async(float *to, const float *from, const uint there) {
#if __CUDA_ARCH__ >= 800
    uint at = static_cast<uint>(__cvta_generic_to_shared(to));
    if (NUMBERS == 4) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(4 * there));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(4 * there));
    }
#elif defined(__CUDA_ARCH__)
    // The same shape as above, so both versions' PTX is alike and packs well together.
    uint at = static_cast<uint>(__cvta_generic_to_shared(to));
    if (NUMBERS == 4) {
        asm volatile("{.reg .pred p, q, r, s;\n.reg .f32 x, y, z, w;\n"
                     "setp.gt.u32 p, %2, 0;\nsetp.gt.u32 q, %2, 4;\nsetp.gt.u32 r, %2, 8;\nsetp.gt.u32 s, %2, 12;\n"
                     "mov.f32 x, 0f00000000;\nmov.f32 y, 0f00000000;\nmov.f32 z, 0f00000000;\nmov.f32 w, 0f00000000;\n"
                     "@p ld.global.f32 x, [%1];\n@q ld.global.f32 y, [%1+4];\n@r ld.global.f32 z, [%1+8];\n"
                     "@s ld.global.f32 w, [%1+12];\nst.shared.v4.f32 [%0], {x, y, z, w};}" ::"r"(at), "l"(from), "r"(4 * there));
    } else {
        asm volatile("{.reg .pred p;\n.reg .f32 x;\nsetp.gt.u32 p, %2, 0;\nmov.f32 x, 0f00000000;\n@p ld.global.f32 x, [%1];\n"
                     "st.shared.f32 [%0], x;}" ::"r"(at), "l"(from), "r"(4 * there));
    }
#else
    for (uint e = 0; e < NUMBERS; e++) {
        to[e] = e < there ? from[e] : 0.0f;
    }
#endif
}

// Makes one group of all copies started since the last group.
INLINE void end_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#elif defined(__CUDA_ARCH__)
    asm volatile("// nothing is on its way");
#endif
}

// Waits until all but the last `N` groups have arrived.
template <uint N>
INLINE void arrived() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#elif defined(__CUDA_ARCH__)
    asm volatile("// all but %0 are there" ::"n"(N) : "memory");
#endif
}

// Reads four numbers from global memory.
INLINE float4 read_global(const float *at) {
#ifdef __CUDA_ARCH__
    float4 v;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(at));
    return v;
#else
    return *reinterpret_cast<const float4 *>(at);
#endif
}

// Reads a number from global memory here, not where it is used.
INLINE float read_one(const float *at) {
#ifdef __CUDA_ARCH__
    float v;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(at));
    return v;
#else
    return *at;
#endif
}

// Returns the address `row` rows of `pitch` numbers further on, with one instruction. A row must have fewer than 2³²
// bytes.
INLINE const float *row_of(const float *first, const uint row, const uint pitch) {
#ifdef __CUDA_ARCH__
    const float *at;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(4 * pitch), "l"(first));
    return at;
#else
    return first + size_t(row) * pitch;
#endif
}

// Hides how an address was computed. Otherwise compilers compute it again wherever it is used.
INLINE const float *kept(const float *at) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(at));
#endif
    return at;
}
