// Matrix products, y = alpha·(a·b) + beta·c + bias, a batch of them at once.
//
// A block of threads computes a tile of BM × BN, its threads TM × TN each, in steps of BK along k: while one step is multiplied
// from shared memory, the next one is on its way there. Every K block of 256 is a chain of its own; totals of several wait in
// shared memory, where there is room for them, so that registers have the chains alone.
#include "contract.cuh"

// What lowering says of a product, as its push constants.
struct Product {
    const float *a, *b, *c, *bias;
    float *y;
    // Blocks: [block][batch][row][column], columns rounded up to vectors.
    float *blocks;
    // The table, for each batch axis but the first, the last one first: its length, and the steps of a, b and c along it.
    const void *table;
    uint m, n, k, batches, tiles_m, tiles_n;
    uint axes, a_step, b_step, c_step, c_row, c_column;
    float alpha, beta;
    // Elements from one row to the next of a and b, multiples of 4, and they lie at multiples of 16 bytes.
    uint a_pitch, b_pitch;
};

const uint K_BLOCK = 256;
// Rows of tiles that are computed together, for the sake of the caches.
const uint BAND = 8;
// Bits of `has`.
const uint A_ALONG_K = 1, B_ALONG_K = 2, A_VECTORS = 4, Y_VECTORS = 16;
const uint HAS_C = 128, HAS_BIAS = 256, RELU = 512;
// Each block of threads computes one K block and stores it.
const uint SPLIT = 4096;

// So many elements, 1 or 4, from global to shared memory, of which the first `there` are read; the others become zeros.
template <uint ELEMENTS>
INLINE void copy_async(float *to, const float *from, const uint there) {
#if __CUDA_ARCH__ >= 800
    uint at = static_cast<uint>(__cvta_generic_to_shared(to));
    if (ELEMENTS == 4) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(4 * there));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(4 * there));
    }
#else
#pragma unroll
    for (uint e = 0; e < ELEMENTS; e++) {
        to[e] = e < there ? from[e] : 0.0f;
    }
#endif
}

// What was begun since is one group.
INLINE void end_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}

// Waits until all but the last `N` groups have arrived.
template <uint N>
INLINE void arrived() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// One operand's way into shared memory: EDGE of the tile's rows or columns, BK of k, THREADS threads. There, lines are along k
// (LINES), or rows of one k each. Behind the last row or column others are read again, as nobody takes the results; behind the last k
// are zeros.
template <uint EDGE, uint BK, uint THREADS, bool LINES>
struct Operand {
    static const uint PITCH = (LINES ? BK : EDGE) + 4, SIZE = (LINES ? EDGE : BK) * PITCH;

    const float *from;
    uint pitch, extent, first, k;
    bool along_k;

    // Neighbouring threads copy neighbours of global memory, in vectors where they stay neighbours.
    template <bool ALONG_K>
    INLINE void copy(float *to, const uint start) const {
        const uint ELEMENTS = LINES == ALONG_K ? 4 : 1, ACROSS = (ALONG_K ? BK : EDGE) / ELEMENTS;
        const uint SHARE = (EDGE * BK / ELEMENTS + THREADS - 1) / THREADS;
        uint t = this_thread();
        if (EDGE * BK / ELEMENTS < THREADS && t >= EDGE * BK / ELEMENTS) {
            return;
        }
#pragma unroll
        for (uint i = 0; i < SHARE; i++) {
            uint x = (ACROSS > THREADS ? i * THREADS % ACROSS + t : t % ACROSS) * ELEMENTS;
            uint y = ACROSS > THREADS ? i * THREADS / ACROSS : t / ACROSS + i * (THREADS / ACROSS);
            uint inner = ALONG_K ? x : y, outer = ALONG_K ? y : x, at = start + inner;
            uint there = at < k ? (ALONG_K ? min(k - at, ELEMENTS) : ELEMENTS) : 0;
            // What lies beyond is there to be read, but not taken.
            uint other = min(first + outer, ALONG_K ? extent - 1 : pitch - ELEMENTS);
            at = at < k ? at : 0;
            const float *here = from + (ALONG_K ? size_t(other) * pitch + at : size_t(at) * pitch + other);
            copy_async<ELEMENTS>(to + (LINES ? outer * PITCH + inner : inner * PITCH + outer), here, there);
        }
    }

    // Starts a step on its way.
    INLINE void fetch(float *to, const uint start) const {
        if (along_k) {
            copy<true>(to, start);
        } else {
            copy<false>(to, start);
        }
    }
};

// Four results of a row, from totals.
INLINE void finish(const Product &p, const uint has, const float4 t, const uint batch, const uint row, const uint column,
    const float *c) {
    float x[4] = {t.x, t.y, t.z, t.w};
    float *y = p.y + (size_t(batch) * p.m + row) * p.n + column;
#pragma unroll
    for (uint e = 0; e < 4; e++) {
        // Behind the last column the last one is computed again.
        uint j = min(column + e, p.n - 1);
        x[e] = total(x[e]) * p.alpha;
        if (has & HAS_C) {
            x[e] = x[e] + p.beta * c[size_t(row) * p.c_row + size_t(j) * p.c_column];
        }
        if (has & HAS_BIAS) {
            x[e] = x[e] + p.bias[j];
        }
        if (has & RELU) {
            x[e] = __float_as_int(x[e]) > 0 || is_nan(x[e]) ? x[e] : 0.0f;
        }
        x[e] = canonical(x[e]);
        if (!(has & Y_VECTORS) && column + e < p.n) {
            y[e] = x[e];
        }
    }
    if (has & Y_VECTORS) {
        *reinterpret_cast<float4 *>(y) = make_float4(x[0], x[1], x[2], x[3]);
    }
}

// LM × LN threads of a warp, WM × WN warps; STEPS steps are in shared memory at a time.
template <uint TM, uint TN, uint LM, uint LN, uint WM, uint WN, uint BK, uint STEPS>
INLINE void product(const Product &p, const uint has, const Table &t) {
    const uint BM = TM * LM * WM, BN = TN * LN * WN, THREADS = 32 * WM * WN, RESULTS = TM * TN / 4;
    typedef Operand<BM, BK, THREADS, true> A;
    typedef Operand<BN, BK, THREADS, false> B;
    const uint STEP = A::SIZE + B::SIZE;
#ifdef __CUDA_ARCH__
    extern __shared__ float4 pool[];
#endif
    float *steps = reinterpret_cast<float *>(pool);
    float4 *held = pool + STEPS * STEP / 4 + threadIdx.x;

    uint tiles = p.tiles_m * p.tiles_n, batch = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    uint band = tile / (BAND * p.tiles_n) * BAND, high = min(p.tiles_m - band, BAND);
    tile %= BAND * p.tiles_n;
    uint first_row = (band + tile % high) * BM, first_column = tile / high * BN;
    bool split = (has & SPLIT) != 0;
    size_t a_at = 0, b_at = 0, c_at = 0;
    uint rest = batch;
#pragma unroll 1
    for (uint i = 0; i < p.axes; i++) {
        uint length = t.words[4 * i], here = rest % length;
        a_at += size_t(here) * t.words[4 * i + 1];
        b_at += size_t(here) * t.words[4 * i + 2];
        c_at += size_t(here) * t.words[4 * i + 3];
        rest /= length;
    }
    const A a = {p.a + a_at + size_t(rest) * p.a_step, p.a_pitch, p.m, first_row, p.k, (has & A_ALONG_K) != 0};
    const B b = {p.b + b_at + size_t(rest) * p.b_step, p.b_pitch, p.n, first_column, p.k, (has & B_ALONG_K) != 0};
    const float *c = p.c + c_at + size_t(rest) * p.c_step;

    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint row = warp / WN * (TM * LM) + lane % LM, column = warp % WN * (TN * LN) + lane / LM * 4;
    float chains[TM][TN];
#pragma unroll
    for (uint i = 0; i < TM; i++) {
#pragma unroll
        for (uint j = 0; j < TN; j++) {
            chains[i][j] = 0.0f;
        }
    }
    uint begin = split ? blockIdx.y * K_BLOCK : 0, end = split ? min(p.k, begin + K_BLOCK) : p.k;
    // What comes next, and where to; how many rounds only fetch, so that this code is there once; where the step is that is multiplied.
    uint coming = begin, slot = 0, early = STEPS - 1, now = 0;
#pragma unroll 1
    for (uint start = begin; start < end;) {
        if (early == 0) {
            arrived<STEPS - 2>();
            // All have their part of it, and nobody reads any more what is written over now.
            __syncthreads();
        }
        if (coming < end) {
            a.fetch(steps + slot, coming);
            b.fetch(steps + slot + A::SIZE, coming);
        }
        end_group();
        coming += BK;
        slot = slot == (STEPS - 1) * STEP ? 0 : slot + STEP;
        if (early > 0) {
            early--;
            continue;
        }
        const float *own_a = steps + now + row * A::PITCH, *own_b = steps + now + A::SIZE + column;
        now = now == (STEPS - 1) * STEP ? 0 : now + STEP;
#pragma unroll UNROLLED
        for (uint q = 0; q < BK; q += 4) {
            float right[4][TN];
#pragma unroll
            for (uint e = 0; e < 4; e++) {
#pragma unroll
                for (uint j = 0; j < TN / 4; j++) {
                    float4 v = *reinterpret_cast<const float4 *>(own_b + (q + e) * B::PITCH + j * 4 * LN);
                    right[e][4 * j] = v.x, right[e][4 * j + 1] = v.y, right[e][4 * j + 2] = v.z, right[e][4 * j + 3] = v.w;
                }
            }
#pragma unroll
            for (uint i = 0; i < TM; i++) {
                float4 v = *reinterpret_cast<const float4 *>(own_a + i * LM * A::PITCH + q);
                float left[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (uint e = 0; e < 4; e++) {
#pragma unroll
                    for (uint j = 0; j < TN; j++) {
                        // There and back, so that neighbours have an operand in common, which then needs no read from the registers.
                        uint to = e % 2 == 0 ? j : TN - 1 - j;
                        chains[i][to] = fmaz(left[e], right[e][to], chains[i][to]);
                    }
                }
            }
        }
        start += BK;
        if (start >= end || start % K_BLOCK == 0) {
            // The end of a block: its chains go into the totals. Of one block alone they are what is wanted.
            bool first = start - begin <= K_BLOCK, alone = first && start >= end;
#pragma unroll
            for (uint i = 0; i < RESULTS; i++) {
                float4 t = first ? make_float4(0, 0, 0, 0) : held[i * THREADS];
                float *chain = &chains[i / (TN / 4)][i % (TN / 4) * 4];
                t.x = alone ? chain[0] : fmaz(chain[0], 1.0f, t.x), t.y = alone ? chain[1] : fmaz(chain[1], 1.0f, t.y);
                t.z = alone ? chain[2] : fmaz(chain[2], 1.0f, t.z), t.w = alone ? chain[3] : fmaz(chain[3], 1.0f, t.w);
                held[i * THREADS] = t;
                chain[0] = chain[1] = chain[2] = chain[3] = 0.0f;
            }
        }
    }
#pragma unroll 1
    for (uint i = 0; i < RESULTS; i++) {
        uint of_row = i / (TN / 4);
        uint r = first_row + row + of_row * LM, at = first_column + column + i % (TN / 4) * 4 * LN;
        if (r >= p.m || at >= p.n) {
            continue;
        }
        float4 v = held[i * THREADS];
        if (split) {
            size_t row_at = (size_t(blockIdx.y) * p.batches + batch) * p.m + r;
            *reinterpret_cast<float4 *>(p.blocks + row_at * ((p.n + 3) & ~3u) + at) = v;
            continue;
        }
        finish(p, has, v, batch, r, at, c);
    }
}

// Totals of stored blocks: `own` vectors of results for a block of threads, each fetched by so many threads as there are for it.
extern "C" __global__ void __launch_bounds__(256) matmul_merge(const Product p, const uint has, const uint own, TABLE table) {
    const uint MERGED = 4;
#ifdef __CUDA_ARCH__
    __shared__ float4 pool[MERGED * 256];
#endif
    uint vectors = (p.n + 3) / 4, groups = p.batches * p.m * vectors, count = (p.k + K_BLOCK - 1) / K_BLOCK;
    uint member = threadIdx.x % own, lane = threadIdx.x / own, lanes = blockDim.x / own, group = blockIdx.x * own + member;
    const float4 *blocks = reinterpret_cast<const float4 *>(p.blocks);
    float4 t = make_float4(0, 0, 0, 0);
    for (uint first = 0; first < count; first += MERGED * lanes) {
#pragma unroll
        for (uint i = 0; i < MERGED; i++) {
            uint block = min(first + i * lanes + lane, count - 1);
            pool[(i * lanes + lane) * own + member] = blocks[size_t(block) * groups + min(group, groups - 1)];
        }
        __syncthreads();
        if (lane == 0) {
            for (uint i = 0; i < min(MERGED * lanes, count - first); i++) {
                float4 x = pool[i * own + member];
                t.x = fmaz(x.x, 1.0f, t.x), t.y = fmaz(x.y, 1.0f, t.y);
                t.z = fmaz(x.z, 1.0f, t.z), t.w = fmaz(x.w, 1.0f, t.w);
            }
        }
        __syncthreads();
    }
    if (lane > 0 || group >= groups) {
        return;
    }
    uint row = group / vectors, batch = row / p.m, rest = batch;
    size_t c_at = 0;
    for (uint i = 0; i < p.axes; i++) {
        uint length = table.words[4 * i];
        c_at += size_t(rest % length) * table.words[4 * i + 3];
        rest /= length;
    }
    finish(p, has, t, batch, row % p.m, group % vectors * 4, p.c + c_at + size_t(rest) * p.c_step);
}

// Blocks of the product of two vectors, one for each thread.
extern "C" __global__ void __launch_bounds__(64) matmul_vectors(const Product p, const uint has, const uint, TABLE) {
    uint block = blockIdx.x * 64 + threadIdx.x, start = block * K_BLOCK;
    if (block > (p.k - 1) / K_BLOCK) {
        return;
    }
    float chain = 0.0f;
    if (has & A_VECTORS) {
        for (uint i = start; i < min(start + K_BLOCK, p.k); i += 4) {
            float4 x = *reinterpret_cast<const float4 *>(p.a + i), y = *reinterpret_cast<const float4 *>(p.b + i);
            chain = fmaz(x.x, y.x, chain), chain = fmaz(x.y, y.y, chain);
            chain = fmaz(x.z, y.z, chain), chain = fmaz(x.w, y.w, chain);
        }
    } else {
        for (uint i = start; i < min(start + K_BLOCK, p.k); i++) {
            chain = fmaz(p.a[i], p.b[i], chain);
        }
    }
    reinterpret_cast<float4 *>(p.blocks)[block] = make_float4(chain, 0, 0, 0);
}

#define KERNEL(NAME, TM, TN, LM, LN, WM, WN, BK, LEAST) \
    extern "C" __global__ void __launch_bounds__(32 * WM * WN, LEAST) NAME(const Product p, const uint has, const uint, TABLE t) { \
        product<TM, TN, LM, LN, WM, WN, BK>(p, has, t); \
    }

KERNEL(matmul_256x128, 16, 8, 4, 8, 4, 2, 16, 1)
KERNEL(matmul_128x128, 8, 8, 4, 8, 4, 2, 8, 2)
KERNEL(matmul_64x64, 8, 4, 4, 8, 2, 2, 16, 4)
KERNEL(matmul_32x32, 4, 4, 4, 8, 2, 1, 16, 8)
KERNEL(matmul_16x128, 4, 4, 4, 8, 1, 4, 16, 4)
KERNEL(matmul_128x16, 4, 4, 8, 4, 4, 1, 16, 4)
KERNEL(matmul_4x256, 4, 4, 1, 32, 1, 2, 8, 8)
KERNEL(matmul_256x4, 4, 4, 32, 1, 2, 1, 8, 8)
