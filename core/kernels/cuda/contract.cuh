// The arithmetic contract's primitives (docs/contract.md) in CUDA. Every source includes this file first.
//
// Compiled without contraction and with subnormals, + − * / and sqrt are IEEE-754 binary32: the contract's E
// operations. M's multiply-add is `fmaz`.
#pragma once

typedef unsigned int uint;

#define INLINE __device__ __forceinline__

// How often inner loops are unrolled.
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

// Returns the value that arithmetic stores: every NaN becomes the canonical NaN.
INLINE float canonical(const float x) {
    return is_nan(x) ? of_bits(NAN) : x;
}

// Returns the value that M totals and SUMs store: −0 becomes +0, and NaN the canonical NaN.
INLINE float total(const float x) {
    return bits(x) == SIGN ? 0.0f : canonical(x);
}

// Returns the thread's number and hides that it never changes. Otherwise compilers keep values derived from it in
// registers over loops, instead of computing them where they are used.
INLINE uint this_thread() {
    uint t = threadIdx.x;
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(t));
#endif
    return t;
}

// Every kernel begins with this. From compute capability 9.0 on, a stream may start a kernel while the one before it runs: nothing that
// other kernels write is read or written before this.
INLINE void begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    // Not before: kernels that wait would take the place of those that run.
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// M's multiply-add: a·b + c rounded once. Subnormal operands count as zeros, and a result below 2⁻¹²⁶ becomes a zero.
INLINE float fmaz(const float a, const float b, const float c) {
#ifdef __CUDA_ARCH__
    float r;
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
#else
    return host_fmaz(a, b, c);
#endif
}

// A table of words by value, in which lowering describes the strides of dimensions or axes.
struct Table {
    uint words[32];
};

// A kernel's table parameter: threads read it in place, without copying it.
#ifdef __CUDA_ARCH__
#define TABLE const __grid_constant__ Table
#else
#define TABLE const Table
#endif
