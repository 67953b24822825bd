// Products of few rows with digits. They are in the file of integers, whose kernels are PTX in every library: machine code for one more
// would take the C library's archive above its limit.
#pragma once
#include "bytes.cuh"
#include "digits.cuh"
#include "finish.cuh"

// The push constants, as lowering writes them.
struct Few {
    const uint *a;
    // Digits of b, in blocks of 128 lines and 64 of k: [plane, highest first][16 bytes of k][line].
    const uint4 *b;
    const int *b_scales;
    const float *c, *bias;
    float *y;
    uint m, n, k, blocks;
    uint c_row, c_column;
    float alpha, beta;
};

// Loads a chunk's digits of a line, if there is such a chunk. Two digits are the lower ones of three; what is loaded as the highest doesn't
// count then. A branch would make the compiler write the loop twice.
INLINE void fetch(uint4 (&to)[3], const uint4 *b, const uint chunk, const uint chunks, const uint digits) {
    if (chunk < chunks) {
        const uint4 *from = b + size_t(chunk / 4) * (digits * PLANE) + chunk % 4 * 128;
        to[0] = from[0];
        from += (digits - 2) * PLANE;
        to[1] = from[0];
        to[2] = from[PLANE];
    }
}

// A product of at most four rows with the digits of b: bound by reading them. A workgroup has 32 columns, its warps take turns at chunks
// of 16 of k. Each workgroup cuts the rows itself.
extern "C" __global__ void __launch_bounds__(512, 1) fixed_few(const Few p, const uint digits, const uint has, TABLE) {
    begin();
    const uint ROWS = 4, WARPS = 16, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint chunks = p.blocks * 4, column = blockIdx.x * 32 + lane;
    const uint4 *b = p.b + size_t(blockIdx.x / 4) * p.blocks * (digits * PLANE) + column % 128;
#ifdef __CUDA_ARCH__
    extern __shared__ uint4 rows[];
    __shared__ uint most[ROWS];
    __shared__ int scales[ROWS];
#else
    uint4 *rows = reinterpret_cast<uint4 *>(pool);
    uint *most = reinterpret_cast<uint *>(rows + chunks * p.m * 3 + ROWS * WARPS * 16);
    int *scales = reinterpret_cast<int *>(most + ROWS);
#endif
    const uint *a = p.a;
    // All bits if there are three digits.
    const uint third = 0 - (digits & 1);
    if (threadIdx.x < ROWS) {
        most[threadIdx.x] = 0;
    }
    __syncthreads();
#pragma unroll 1
    for (uint row = 0; row < p.m; row++) {
        uint largest = 0;
#pragma unroll 4
        for (uint k = threadIdx.x; k < p.k; k += 512) {
            largest = max(largest, a[size_t(row) * p.k + k] & MAGNITUDE);
        }
        atomicMax(most + row, largest);
    }
    __syncthreads();
    if (threadIdx.x < p.m) {
        scales[threadIdx.x] = scale_of(most[threadIdx.x], digits);
    }
    __syncthreads();
    // [chunk][row][plane, highest first], always with room for three planes.
#pragma unroll 1
    for (uint row = 0; row < p.m; row++) {
        float power, rest;
        powers_of(power, rest, scales[row]);
#pragma unroll 1
        for (uint quad = threadIdx.x; quad < chunks * 4; quad += 512) {
            float scaled[4];
            uint words[3];
#pragma unroll
            for (uint e = 0; e < 4; e++) {
                uint k = 4 * quad + e;
                scaled[e] = (k < p.k ? of_bits(a[size_t(row) * p.k + k]) : 0.0f) * power * rest;
            }
            digits_of(words, scaled, digits);
            uint *to = reinterpret_cast<uint *>(rows + (quad / 4 * p.m + row) * 3) + quad % 4;
            to[0] = words[2] & third;
            to[4] = words[1];
            to[8] = words[0];
        }
    }
    __syncthreads();
    int sums[ROWS][5] = {};
    // The next chunk travels while one is multiplied.
    uint4 next[3] = {};
    fetch(next, b, warp, chunks, digits);
#pragma unroll 1
    for (uint chunk = warp; chunk < chunks; chunk += WARPS) {
        uint4 right[3] = {make_uint4(next[0].x & third, next[0].y & third, next[0].z & third, next[0].w & third), next[1], next[2]};
        fetch(next, b, chunk + WARPS, chunks, digits);
#pragma unroll
        for (uint row = 0; row < ROWS; row++) {
#pragma unroll
            for (uint i = 0; i < 3 && row < p.m; i++) {
                uint4 left = rows[(chunk * p.m + row) * 3 + i];
#pragma unroll
                for (uint j = 0; j < 3; j++) {
                    int sum = sums[row][i + j];
                    sum = dot4(left.x, right[j].x, sum);
                    sum = dot4(left.y, right[j].y, sum);
                    sum = dot4(left.z, right[j].z, sum);
                    sums[row][i + j] = dot4(left.w, right[j].w, sum);
                }
            }
        }
    }
    __syncthreads();
    // The rows' digits are not needed any more: the warps' totals take their place, [row][warp][lane].
    long long *totals = reinterpret_cast<long long *>(rows);
#pragma unroll
    for (uint row = 0; row < ROWS; row++) {
        if (row < p.m) {
            long long total = 0;
#pragma unroll
            for (uint g = 0; g < 5; g++) {
                total = total * 256 + sums[row][g];
            }
            totals[(row * WARPS + warp) * 32 + lane] = total;
        }
    }
    __syncthreads();
    if (warp < p.m && column < p.n) {
        long long sum = 0;
#pragma unroll 1
        for (uint i = 0; i < WARPS; i++) {
            sum += totals[(warp * WARPS + i) * 32 + lane];
        }
        Total total;
        total.low = uint(sum);
        total.middle = uint(sum >> 32);
        total.high = uint(int(total.middle) >> 31);
        int s = scales[warp], r = p.b_scales[column];
        float x = of_bits(s == NOT_FINITE || r == NOT_FINITE ? NAN : rounded(total, -s - r));
        Starts at = {0, 0, 0};
        finish(p, has, x, 0, warp, column, at);
    }
}
