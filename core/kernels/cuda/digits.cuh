// Numbers as digits of eight bits, and products of digits on tensor cores.
#pragma once
#include "glsl.cuh"
#include "../vulkan/fixed.glsl"

// Stores a line's scale and 2^scale, which may not be a binary32 number and so is split in two. Each multiplication is exact, or so small
// that the integer is 0.
INLINE void powers_of(float &power, float &rest, const int scale) {
    int half = scale >> 1;
    power = scale == NOT_FINITE ? 0.0f : power_of_two(half);
    rest = scale == NOT_FINITE ? 0.0f : power_of_two(scale - half);
}

// Rounds four scaled numbers, and stores their digits, lowest first: a word for each digit. Two digits leave the third word unused.
INLINE void digits_of(uint (&words)[3], const float (&scaled)[4], const uint digits) {
    // All bits if there is a third digit. A choice would make the compiler write loops twice.
    uint q[4], third = 0 - (digits & 1);
#pragma unroll
    for (uint e = 0; e < 4; e++) {
        // Adds half of each digit but the highest, so those bytes are their digits plus 128.
        q[e] = uint(__float2int_rn(scaled[e])) + 0x80u + (third & 0x8000u);
    }
    // Byte i of the four numbers becomes word i.
    uint low = __byte_perm(q[0], q[1], 0x5140), high = __byte_perm(q[2], q[3], 0x5140);
    words[0] = __byte_perm(low, high, 0x5410) ^ 0x80808080u;
    words[1] = __byte_perm(low, high, 0x7632) ^ (third & 0x80808080u);
    words[2] = __byte_perm(__byte_perm(q[0], q[1], 0x0062), __byte_perm(q[2], q[3], 0x0062), 0x5410);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// Loads four squares of 8 lines and 16 bytes. The addresses of each square's lines are in 8 threads.
INLINE void load_squares(uint (&to)[4], const uint4 *line) {
#ifdef __CUDA_ARCH__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(uint(__cvta_generic_to_shared(line))));
#else
    warp_squares(to, line);
#endif
}

// Adds 16 × 8 exact sums of products of 32 digits.
INLINE void add_products(int (&sums)[4], const uint (&a)[4], const uint b0, const uint b1) {
#ifdef __CUDA_ARCH__
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    warp_products(sums, a, b0, b1);
#endif
}
#endif
