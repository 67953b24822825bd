// Runs CUDA sources on the host, block by block, a fiber for each thread: to test kernels where there is no GPU.
#pragma once
#include <ucontext.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>
#include <xmmintrin.h>
#include <immintrin.h>
// A unit's own: each has its threads.
namespace {
#define __device__
#define __host__
#define __global__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__
#define __align__(n) alignas(n)
struct dim3u { unsigned x, y, z; };
static dim3u threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline int __float_as_int(float f) { int u; memcpy(&u, &f, 4); return u; }
inline float __int_as_float(int u) { float f; memcpy(&f, &u, 4); return f; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float host_fmaz(float a, float b, float c) {
    unsigned old = _mm_getcsr();
    _mm_setcsr(0x1f80 | 0x8040);
    volatile float r = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
    _mm_setcsr(old);
    return r;
}
static float4 pool[1 << 16];
static ucontext_t scheduler;
static std::vector<ucontext_t> fibers;
static std::vector<char> done;
static unsigned current;
static std::function<void()> body;
struct Barrier { unsigned arrived, generation; };
static Barrier whole, of_warp[32];
static unsigned live, live_of_warp[32];
static unsigned exchanged[1024];
inline void yield_() { swapcontext(&fibers[current], &scheduler); }
inline void meet(Barrier &b, unsigned &n) {
    unsigned own = b.generation;
    b.arrived++;
    while (b.generation == own) {
        if (b.arrived >= n) { b.arrived = 0; b.generation++; break; }
        yield_();
    }
}
inline void __syncthreads() { meet(whole, live); }
inline void __syncwarp(unsigned = 0) { unsigned w = current / 32; meet(of_warp[w], live_of_warp[w]); }
template <class T> inline T __shfl_xor_sync(unsigned, T v, unsigned mask) {
    unsigned t = current; memcpy(&exchanged[t], &v, 4); __syncwarp();
    T r; memcpy(&r, &exchanged[t ^ mask], 4); __syncwarp(); return r;
}
template <class T> inline T __shfl_sync(unsigned, T v, unsigned lane) {
    unsigned t = current; memcpy(&exchanged[t], &v, 4); __syncwarp();
    T r; memcpy(&r, &exchanged[t / 32 * 32 + lane % 32], 4); __syncwarp(); return r;
}
inline int max(int a, int b) { return a > b ? a : b; }
inline int __float2int_rz(float x) { return x != x ? 0 : x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : int(x); }
inline unsigned __float2uint_rz(float x) { return !(x > 0) ? 0 : x >= 4294967296.0f ? UINT32_MAX : unsigned(x); }
inline long long __float2ll_rz(float x) { return x != x ? INT64_MIN : x >= 9223372036854775808.0f ? INT64_MAX : x <= -9223372036854775808.0f ? INT64_MIN : (long long)(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline int atomicMax(int *p, int v) { int o = *p; if (v > o) *p = v; return o; }
inline unsigned atomicMax(unsigned *p, unsigned v) { unsigned o = *p; if (v > o) *p = v; return o; }
struct uint3 { unsigned x, y, z; };
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static void entry() { body(); done[current] = 1; live--; live_of_warp[current / 32]--; swapcontext(&fibers[current], &scheduler); }
inline void launch(dim3u grid, dim3u block, std::function<void()> f) {
    static std::vector<std::vector<char>> stacks;
    unsigned n = block.x * block.y * block.z;
    while (stacks.size() < n) stacks.emplace_back(1 << 16);
    body = f; gridDim = grid; blockDim = block;
    fibers.resize(n); done.assign(n, 0);
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
    for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
        memset(pool, 0xee, sizeof pool);
        std::fill(done.begin(), done.end(), 0);
        live = n; whole = {}; for (unsigned w = 0; w < 32; w++) { of_warp[w] = {}; live_of_warp[w] = n > w * 32 ? (n - w * 32 < 32 ? n - w * 32 : 32) : 0; }
        for (unsigned t = 0; t < n; t++) {
            getcontext(&fibers[t]);
            fibers[t].uc_stack.ss_sp = stacks[t].data(); fibers[t].uc_stack.ss_size = stacks[t].size();
            fibers[t].uc_link = nullptr; makecontext(&fibers[t], entry, 0);
        }
        for (unsigned left = n; left;) {
            left = 0;
            for (unsigned t = 0; t < n; t++) if (!done[t]) {
                current = t; threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
                swapcontext(&scheduler, &fibers[t]);
                left += !done[t];
            }
        }
    }
}
}
