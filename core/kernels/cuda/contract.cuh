// The arithmetic contract's primitives (docs/contract.md) in CUDA. Every source includes this file first.
//
// Compiled without contraction and with subnormals kept, + − * / and sqrt are IEEE-754 binary32: the contract's E operations.
// The multiply-add of M is `fmaz`.
#pragma once

typedef unsigned int uint;

#define INLINE __device__ __forceinline__

// How far inner loops are unrolled.
const uint UNROLLED = 16;

#undef INFINITY
#undef NAN
const uint SIGN = 0x80000000u;
const uint MAGNITUDE = 0x7fffffffu;
const uint INFINITY = 0x7f800000u;
const uint NAN = 0x7fc00000u;

INLINE float of_bits(const uint u) {
    return __uint_as_float(u);
}

INLINE uint bits(const float x) {
    return __float_as_uint(x);
}

INLINE bool is_nan(const float x) {
    return (bits(x) & MAGNITUDE) > INFINITY;
}

// What arithmetic stores.
INLINE float canonical(const float x) {
    return is_nan(x) ? of_bits(NAN) : x;
}

// What M totals and SUMs store: −0 becomes +0, and NaN canonical.
INLINE float total(const float x) {
    return bits(x) == SIGN ? 0.0f : canonical(x);
}

// The thread's number, of which compilers don't know that it stays: what follows from it is computed where it is used, not kept in
// registers over loops.
INLINE uint this_thread() {
    uint t = threadIdx.x;
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(t));
#endif
    return t;
}

// The multiply-add of M: a·b + c rounded once, subnormals read as zeros, a result below 2⁻¹²⁶ a zero.
INLINE float fmaz(const float a, const float b, const float c) {
#ifdef __CUDA_ARCH__
    float r;
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
#else
    return host_fmaz(a, b, c);
#endif
}

// Words that lowering describes strides with, by value: dimensions or axes.
struct Table {
    uint words[32];
};

// As a kernel's parameter: read where it is, not copied by each thread.
#ifdef __CUDA_ARCH__
#define TABLE const __grid_constant__ Table
#else
#define TABLE const Table
#endif
