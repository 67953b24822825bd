// What CUDA sources need to run on the host, block by block, a fiber for each thread: to test kernels where there is no GPU.
// Needs x86-64 with FMA3.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>

#define __device__
#define __host__
#define __global__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__
#define __align__(n) alignas(n)

struct dim3u { unsigned x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(8) int2 { int x, y; };
struct uint3 { unsigned x, y, z; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

// The block that a thread of the host runs, and the kernel's thread in it that has its turn.
struct Barrier { unsigned arrived, generation; };
// What a thread leaves for the others of its warp, in instructions on squares of bytes.
struct Operands { const unsigned *line; unsigned a[4], b[2]; };
struct Block {
    dim3u thread, index, size, grid;
    unsigned current, live, live_of_warp[32], exchanged[1024];
    Operands operands[1024];
    Barrier whole, of_warp[32];
    float4 *shared;
};
// Of the thread that runs: kernels ask for it in their inner loops.
extern __thread Block *running __attribute__((tls_model("initial-exec")));
#define threadIdx (running->thread)
#define blockIdx (running->index)
#define blockDim (running->size)
#define gridDim (running->grid)
// The shared memory of every kernel.
#define pool (running->shared)

// Lets the block's other threads go on until all that live have come here.
void meet(Barrier &barrier, const unsigned &members);
// Runs a grid; a block has that many bytes of shared memory, or 48 KiB.
void launch(dim3u grid, dim3u block, size_t shared, const std::function<void()> &kernel);

inline void __syncthreads() { meet(running->whole, running->live); }
inline void __syncwarp(unsigned = 0) {
    unsigned warp = running->current / 32;
    meet(running->of_warp[warp], running->live_of_warp[warp]);
}
template <class T> T exchange(T value, unsigned from) {
    static_assert(sizeof value == 4, "shuffles are of words");
    unsigned own = running->current;
    memcpy(&running->exchanged[own], &value, 4);
    __syncwarp();
    memcpy(&value, &running->exchanged[from], 4);
    __syncwarp();
    return value;
}
template <class T> T __shfl_xor_sync(unsigned, T value, unsigned mask) { return exchange(value, running->current ^ mask); }
template <class T> T __shfl_sync(unsigned, T value, unsigned lane) {
    return exchange(value, running->current / 32 * 32 + lane % 32);
}

inline bool __all_sync(unsigned, bool value) {
    for (unsigned step = 1; step < 32; step *= 2) {
        value = __shfl_xor_sync(0, unsigned(value), step) && value;
    }
    return value;
}

// Instructions of a whole warp on squares of bytes (kernels/cuda/digits.cuh).
inline void warp_squares(unsigned (&to)[4], const void *line) {
    unsigned lane = running->current % 32, warp = running->current - lane;
    running->operands[running->current].line = static_cast<const unsigned *>(line);
    __syncwarp();
    for (unsigned i = 0; i < 4; i++) {
        to[i] = running->operands[warp + 8 * i + lane / 4].line[lane % 4];
    }
    __syncwarp();
}
inline int dot_of_bytes(unsigned a, unsigned b) {
    int sum = 0;
    for (unsigned e = 0; e < 32; e += 8) {
        sum += int(static_cast<signed char>(a >> e)) * int(static_cast<signed char>(b >> e));
    }
    return sum;
}
inline void warp_products(int (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    unsigned lane = running->current % 32, warp = running->current - lane;
    Operands &own = running->operands[running->current];
    memcpy(own.a, a, sizeof own.a);
    own.b[0] = b0;
    own.b[1] = b1;
    __syncwarp();
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < 4; k++) {
            const Operands &left = running->operands[warp + lane / 4 * 4 + k];
            const Operands &right = running->operands[warp + (lane % 4 * 2 + i % 2) * 4 + k];
            sums[i] += dot_of_bytes(left.a[i / 2], right.b[0]) + dot_of_bytes(left.a[i / 2 + 2], right.b[1]);
        }
    }
    __syncwarp();
}

inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline int __float_as_int(float f) { int i; memcpy(&i, &f, 4); return i; }
// Of NaN 0, as the processor's has another.
inline int __float2int_rn(float x) { return x == x ? int(nearbyintf(x)) : 0; }
// Four bytes of the eight of x and y, by the lower three bits of each digit of the selector.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t both = uint64_t(y) << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        r |= unsigned(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    }
    return r;
}
inline float __int_as_float(int i) { float f; memcpy(&f, &i, 4); return f; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int max(int a, int b) { return a > b ? a : b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline int __float2int_rz(float x) {
    return x != x ? 0 : x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : int(x);
}
inline unsigned __float2uint_rz(float x) { return !(x > 0) ? 0 : x >= 4294967296.0f ? UINT32_MAX : unsigned(x); }
inline long long __float2ll_rz(float x) {
    return x != x || x <= -9223372036854775808.0f ? INT64_MIN : x >= 9223372036854775808.0f ? INT64_MAX : (long long)x;
}
inline float __ll2float_rn(long long x) { return float(x); }
inline float __double2float_rn(double x) { return float(x); }
inline float __double2float_rz(double x) {
    float near = float(x);
    return fabs(double(near)) > fabs(x) ? nextafterf(near, 0) : near;
}
inline int __double2int_rz(double x) {
    return x != x ? INT32_MIN : x >= 2147483648.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : int(x);
}
// GPUs make 2^31 of NaN here, where they make 0 of a float's.
inline unsigned __double2uint_rz(double x) {
    return x != x ? 1u << 31 : !(x > 0) ? 0 : x >= 4294967296.0 ? UINT32_MAX : unsigned(x);
}
inline long long __double2ll_rz(double x) {
    return x != x || x <= -9223372036854775808.0 ? INT64_MIN : x >= 9223372036854775808.0 ? INT64_MAX : (long long)x;
}
inline double __ll2double_rn(long long x) { return double(x); }
inline double __longlong_as_double(long long i) { double x; memcpy(&x, &i, 8); return x; }
inline long long __double_as_longlong(double x) { long long i; memcpy(&i, &x, 8); return i; }
template <class T> T atomicMax(T *place, T value) {
    T old = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(place, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return old;
}

// fma.rn.ftz: subnormal operands and results are zeros. Where none is near, that is the processor's fma as it stands.
inline float host_fmaz(float a, float b, float c) {
    float result = __builtin_fmaf(a, b, c);
    // Without the sign and less one, zero is the largest: what is less than the second is subnormal, or may have been rounded up.
    auto beyond = [](float x, unsigned least) { return 2 * __float_as_uint(x) - 1 >= least; };
    const unsigned normal = 0x00ffffff;
    if (__builtin_expect(beyond(a, normal) & beyond(b, normal) & beyond(c, normal) & beyond(result, normal + 1), 1))
        return result;
    const unsigned flushing = 0x1f80 | 0x8040, usual = 0x1f80;
    asm volatile("vldmxcsr %3\n\tvfmadd213ss %2, %1, %0\n\tvldmxcsr %4"
                 : "+x"(a) : "x"(b), "x"(c), "m"(flushing), "m"(usual));
    return a;
}

// A kernel, called with parameters as they lie in memory, each at a multiple of its alignment.
typedef void (*Kernel)(const char *parameters, dim3u grid, dim3u block, size_t shared);

template <class T> T taken(const char *&from) {
    const size_t align = alignof(T) > 8 ? 8 : alignof(T);
    from = reinterpret_cast<const char *>((reinterpret_cast<uintptr_t>(from) + align - 1) / align * align);
    T value;
    memcpy(&value, from, sizeof value);
    from += sizeof value;
    return value;
}
template <class... A>
void call(void (*kernel)(A...), const char *parameters, dim3u grid, dim3u block, size_t shared) {
    std::tuple<std::remove_const_t<A>...> arguments{taken<std::remove_const_t<A>>(parameters)...};
    launch(grid, block, shared, [&] { std::apply(kernel, arguments); });
}

// The kernels by name: each unit adds its own.
std::map<std::string, Kernel> &kernels();
struct Unit {
    Unit(std::initializer_list<std::pair<const std::string, Kernel>> list) { kernels().insert(list); }
};
#define ENTRY(NAME) {#NAME, [](const char *p, dim3u g, dim3u b, size_t s) { call(NAME, p, g, b, s); }}
