// Defines the words of GLSL that the sources shared with Vulkan use.
#pragma once
#include "contract.cuh"

#define precise
#define f(u) of_bits(u)
#define floatBitsToUint __float_as_uint
#define floatBitsToInt __float_as_int
#define intBitsToFloat __int_as_float
#define findMSB(x) (31 - __clz(x))
#define multiply_add fmaz

struct vec2 {
    float x, y;
    INLINE vec2(float x, float y) : x(x), y(y) {}
};

struct vec3 {
    float x, y, z;
    INLINE vec3(float x, float y, float z) : x(x), y(y), z(z) {}
};

INLINE float divide(const float a, const float b) {
    return a / b;
}

// 1 / x, for x between 1 and 2^32 or NaN: what the compiler makes of a division, without its test for other numbers. That test is a
// branch, behind which nothing of other elements is under way.
INLINE float inverse(const float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return __fmaf_rn(__fmaf_rn(-x, y, 1.0f), y, y);
#else
    return 1.0f / x;
#endif
}

INLINE float root(const float x) {
    return __fsqrt_rn(x);
}

// Returns the upper word of a product.
INLINE uint multiply_high(const uint a, const uint b) {
    return __umulhi(a, b);
}

// Returns q / 2^drop rounded to nearest even, for 1 ≤ drop ≤ 31. sticky is 1 if the exact value is slightly above q,
// else 0.
INLINE uint round_shift(const uint q, const uint drop, const uint sticky) {
    uint kept = q >> drop, rest = q - (kept << drop);
    return kept + uint((rest << 1 | (kept & 1u) | sticky) > 1u << drop);
}

// Returns an integer whose order is MAX's order. On the bits, the map is its own inverse.
INLINE int max_key(const float x) {
    int u = __float_as_int(canonical(x));
    return u ^ ((u >> 31) & 0x7fffffff);
}

INLINE float max_of_key(const int key) {
    return __int_as_float(key ^ ((key >> 31) & 0x7fffffff));
}

#include "../vulkan/functions.glsl"
