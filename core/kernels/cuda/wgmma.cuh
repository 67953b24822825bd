// Hopper's instruction for products of 8-bit integers, `wgmma`. Only machine code for 9.0 has it, because no later GPU supports it.
#pragma once
#include "bulk.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

typedef unsigned long long address;

// Describes a matrix in shared memory, `further` bytes from `at`, for `wgmma`: lines of 16 bytes of k are contiguous, and the next 16
// bytes of k are `chunk` bytes further on. All are multiples of 16, and no address has more than 18 bits.
INLINE address operand(const uint at, const uint further, const uint chunk) {
    return address((at >> 4) + ((further >> 4) + (chunk >> 4 << 16))) | address(128 >> 4) << 32;
}

// c += a·b for the warpgroup's 64 rows of a and all columns of b, over 32 of k. c is the thread's share. It must not be
// used before `multiplied`.
INLINE void multiply_lines(int (&c)[16], const address a, const address b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1;"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]), "+r"(c[8]),
                   "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15])
                 : "l"(a), "l"(b));
}

INLINE void multiply_lines(int (&c)[32], const address a, const address b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1;"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]), "+r"(c[8]),
                   "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]), "+r"(c[16]), "+r"(c[17]),
                   "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]), "+r"(c[24]), "+r"(c[25]), "+r"(c[26]),
                   "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31])
                 : "l"(a), "l"(b));
}

INLINE void multiply_lines(int (&c)[64], const address a, const address b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
                 "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
                 "%62, %63}, %64, %65, 1;"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]), "+r"(c[8]),
                   "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]), "+r"(c[16]), "+r"(c[17]),
                   "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]), "+r"(c[24]), "+r"(c[25]), "+r"(c[26]),
                   "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31]), "+r"(c[32]), "+r"(c[33]), "+r"(c[34]), "+r"(c[35]),
                   "+r"(c[36]), "+r"(c[37]), "+r"(c[38]), "+r"(c[39]), "+r"(c[40]), "+r"(c[41]), "+r"(c[42]), "+r"(c[43]), "+r"(c[44]),
                   "+r"(c[45]), "+r"(c[46]), "+r"(c[47]), "+r"(c[48]), "+r"(c[49]), "+r"(c[50]), "+r"(c[51]), "+r"(c[52]), "+r"(c[53]),
                   "+r"(c[54]), "+r"(c[55]), "+r"(c[56]), "+r"(c[57]), "+r"(c[58]), "+r"(c[59]), "+r"(c[60]), "+r"(c[61]), "+r"(c[62]),
                   "+r"(c[63])
                 : "l"(a), "l"(b));
}

// Products may start after this: registers and shared memory hold what they read.
INLINE void begin_multiply() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Makes one group of everything started since the last group.
INLINE void end_multiply() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all but the last `N` groups are done.
template <uint N>
INLINE void multiplied() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps compilers from moving uses of c past this point, because `wgmma` writes c after its instruction.
template <uint N>
INLINE void pin(int (&c)[N]) {
#pragma unroll
    for (uint i = 0; i < N; i++) {
        asm volatile("" : "+r"(c[i])::"memory");
    }
}

#endif
