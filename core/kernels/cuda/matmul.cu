// Batched matrix products: y = alpha·(a·b) + beta·c + bias.
//
// A block of threads computes a tile of BM × BN, and each thread TM × TN of it, in steps of BK along k. While a step is
// multiplied from shared memory, the next one travels there. Every K block of 256 has its own chain. Totals of several
// blocks wait in shared memory, which has room for them, so registers hold only the chains.
#include "batches.cuh"
#include "memory.cuh"

// The push constants of a product, as lowering writes them.
struct Product {
    const float *a, *b, *c, *bias;
    float *y;
    // Stored blocks: [block][batch][row][column], with columns rounded up to vectors.
    float *blocks;
    // The table has, for each batch axis but the outermost, innermost first: its length, and the steps along it in a, b
    // and c.
    const void *table;
    uint m, n, k, batches, tiles_m, tiles_n;
    uint axes, a_step, b_step, c_step, c_row, c_column;
    float alpha, beta;
    // Distances between the rows of a and b, in elements: multiples of 4. The rows start at multiples of 16 bytes.
    uint a_pitch, b_pitch;
};

const uint K_BLOCK = 256;
// Tiles are computed in bands of this many tile rows, which share cached operands.
const uint BAND = 8;
// The bits of `has`.
const uint A_ALONG_K = 1, B_ALONG_K = 2, A_VECTORS = 4, Y_VECTORS = 16;
const uint HAS_C = 128, HAS_BIAS = 256, RELU = 512;
// Each block of threads computes one K block and stores it.
const uint SPLIT = 4096;

// Copies one operand to shared memory, where each row has one k: EDGE rows or columns of the tile, BK of k, THREADS
// threads. Zeros follow the last k. Behind the last row or column are zeros or repeated elements, because their results
// are unused. An operand that is contiguous along k is transposed on the way: through registers (THROUGH), or one
// element at a time, which takes more instructions.
template <uint EDGE, uint BK, uint THREADS, bool THROUGH>
struct Operand {
    // Rows are padded, so that transposing causes few bank conflicts.
    static const uint PITCH = EDGE + 4, SIZE = BK * PITCH;
    static const uint VECTORS = EDGE * BK / 4, SHARE = (VECTORS + THREADS - 1) / THREADS;

    const float *from;
    uint pitch, extent, first, k;
    bool along_k;
    float4 moved[THROUGH ? SHARE : 1];

    // Starts copying a step.
    INLINE void fetch(float *to, const uint start) {
        uint t = this_thread();
        if (!along_k) {
            if (VECTORS < THREADS && t >= VECTORS) {
                return;
            }
            const uint ACROSS = EDGE / 4, ROWS = THREADS > ACROSS ? THREADS / ACROSS : 1;
            uint inner = start + (THREADS > ACROSS ? t / ACROSS : 0);
            // Padding at a row's end is not requested. Machine code reads all 16 bytes anyway, so the padding exists
            // and is initialised.
            uint outer = first + t % ACROSS * 4, some = outer < extent ? min(extent - outer, 4u) : 0;
            const float *column = from + (outer < extent ? outer : 0);
            to += (THREADS > ACROSS ? t / ACROSS : 0) * PITCH + t % ACROSS * 4;
#pragma unroll
            for (uint i = 0; i < SHARE; i++) {
                uint at = inner + i * ROWS;
                copy_async<4>(to + i * ROWS * PITCH, row_of(column, min(at, k - 1), pitch), at < k ? some : 0);
            }
        } else if (THROUGH) {
            const uint ACROSS = BK / 4, ROWS = THREADS / ACROSS;
            uint inner = start + t % ACROSS * 4, outer = first + t / ACROSS;
            if (start + BK <= k) {
#pragma unroll
                for (uint i = 0; i < SHARE; i++) {
                    moved[THROUGH ? i : 0] = read_global(row_of(from + inner, min(outer + i * ROWS, extent - 1), pitch));
                }
            } else {
#pragma unroll
                for (uint i = 0; i < SHARE; i++) {
                    const float *line = row_of(from, min(outer + i * ROWS, extent - 1), pitch);
                    float4 x = make_float4(0, 0, 0, 0);
                    if (inner < k) {
                        x.x = line[inner];
                    }
                    if (inner + 1 < k) {
                        x.y = line[inner + 1];
                    }
                    if (inner + 2 < k) {
                        x.z = line[inner + 2];
                    }
                    if (inner + 3 < k) {
                        x.w = line[inner + 3];
                    }
                    moved[THROUGH ? i : 0] = x;
                }
            }
        } else {
            const uint ROWS = THREADS / BK, EACH = (EDGE + ROWS - 1) / ROWS;
            uint inner = start + t % BK, outer = first + t / BK;
            if (EDGE < ROWS && t / BK >= EDGE) {
                return;
            }
            const float *line = from + min(inner, k - 1);
            to += t % BK * PITCH + t / BK;
#pragma unroll
            for (uint i = 0; i < EACH; i++) {
                copy_async<1>(to + i * ROWS, row_of(line, min(outer + i * ROWS, extent - 1), pitch), inner < k ? 1 : 0);
            }
        }
    }

    // Stores in shared memory what came through registers.
    INLINE void stage(float *to) {
        if (!THROUGH || !along_k) {
            return;
        }
        uint t = this_thread();
        if (VECTORS < THREADS && t >= VECTORS) {
            return;
        }
        const uint ACROSS = BK / 4, ROWS = THREADS / ACROSS;
        uint inner = t % ACROSS * 4;
        to += inner * PITCH + t / ACROSS;
#pragma unroll
        for (uint i = 0; i < SHARE; i++) {
            float4 x = moved[THROUGH ? i : 0];
            float *here = to + i * ROWS;
            here[0] = x.x, here[PITCH] = x.y, here[2 * PITCH] = x.z, here[3 * PITCH] = x.w;
        }
    }
};

// Finishes four results of a row, from totals.
INLINE void finish(const Product &p, const uint has, const float4 t, const uint batch, const uint row, const uint column,
    const float *c) {
    float x[4] = {t.x, t.y, t.z, t.w};
    float *y = p.y + (size_t(batch) * p.m + row) * p.n + column;
#pragma unroll
    for (uint e = 0; e < 4; e++) {
        // Behind the last column, the last one is computed again.
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

// LM × LN threads per warp and WM × WN warps. Two steps of BK are in shared memory at a time.
template <uint TM, uint TN, uint LM, uint LN, uint WM, uint WN, uint BK>
INLINE void product(const Product &p, const uint has, const Table &t) {
    const uint BM = TM * LM * WM, BN = TN * LN * WN, THREADS = 32 * WM * WN, RESULTS = TM * TN / 2, EACH = TM < 4 ? TM : 4;
    typedef Operand<BM, BK, THREADS, true> A;
    typedef Operand<BN, BK, THREADS, false> B;
    const uint STEP = A::SIZE + B::SIZE;
#ifdef __CUDA_ARCH__
    extern __shared__ float4 pool[];
#endif
    float *steps = reinterpret_cast<float *>(pool);
    // The second of two columns comes first. So chains are in another register bank than the operand that is read along
    // with them.
    float2 *held = reinterpret_cast<float2 *>(pool + 2 * STEP / 4) + threadIdx.x;

    uint tiles = p.tiles_m * p.tiles_n, batch = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    uint band = tile / (BAND * p.tiles_n) * BAND, high = min(p.tiles_m - band, BAND);
    tile %= BAND * p.tiles_n;
    uint first_row = (band + tile % high) * BM, first_column = tile / high * BN;
    bool split = (has & SPLIT) != 0;
    Starts at = starts(p, batch, t);
    A a = {kept(p.a + at.a), p.a_pitch, p.m, first_row, p.k, (has & A_ALONG_K) != 0};
    B b = {kept(p.b + at.b), p.b_pitch, p.n, first_column, p.k, (has & B_ALONG_K) != 0};
    const float *c = p.c + at.c;

    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint row = warp / WN * (TM * LM) + lane % LM * EACH, column = warp % WN * (TN * LN) + lane / LM * 4;
    float chains[TM][TN];
#pragma unroll
    for (uint i = 0; i < TM; i++) {
#pragma unroll
        for (uint j = 0; j < TN; j++) {
            chains[i][j] = 0.0f;
        }
    }
    uint begin = split ? blockIdx.y * K_BLOCK : 0, end = split ? min(p.k, begin + K_BLOCK) : p.k;
    // Where the next step goes, and where the current one is.
    float *next = steps, *now = steps;
    // One round more than there are steps: the first only fetches, so this code exists only once.
    bool ready = false;
#pragma unroll 1
    for (uint start = begin; start < end;) {
        uint coming = ready ? start + BK : start;
        if (coming < end) {
            a.fetch(next, coming);
            b.fetch(next + A::SIZE, coming);
        }
        end_group();
        if (ready) {
            const float *own_a = now + row, *own_b = now + A::SIZE + column;
#pragma unroll UNROLLED
            for (uint q = 0; q < BK; q++) {
                float left[TM], right[TN];
                if (TM == 2) {
                    float2 v = *reinterpret_cast<const float2 *>(own_a + q * A::PITCH);
                    left[0] = v.x, left[1] = v.y;
                }
#pragma unroll
                for (uint i = 0; i + 3 < TM; i += 4) {
                    float4 v = *reinterpret_cast<const float4 *>(own_a + q * A::PITCH + i * LM);
                    left[i] = v.x, left[i + 1] = v.y, left[i + 2] = v.z, left[i + 3] = v.w;
                }
#pragma unroll
                for (uint j = 0; j < TN / 4; j++) {
                    float4 v = *reinterpret_cast<const float4 *>(own_b + q * B::PITCH + j * 4 * LN);
                    right[4 * j] = v.x, right[4 * j + 1] = v.y, right[4 * j + 2] = v.z, right[4 * j + 3] = v.w;
                }
#pragma unroll
                for (uint i = 0; i < TM; i++) {
#pragma unroll
                    for (uint j = 0; j < TN; j++) {
                        // In alternating direction: neighbours share an operand, which saves a register read.
                        uint to = i % 2 == 0 ? j : TN - 1 - j;
                        chains[i][to] = fmaz(left[i], right[to], chains[i][to]);
                    }
                }
            }
            start += BK;
            if (start >= end || start % K_BLOCK == 0) {
                // At the end of a block, its chains are added to the totals. The chains of a single block are the
                // result themselves.
                bool first = start - begin <= K_BLOCK, alone = first && start >= end;
#pragma unroll
                for (uint i = 0; i < RESULTS; i++) {
                    float2 t = first ? make_float2(0, 0) : held[i * THREADS];
                    float *chain = &chains[i / (TN / 2)][i % (TN / 2) * 2];
                    t.x = alone ? chain[1] : fmaz(chain[1], 1.0f, t.x), t.y = alone ? chain[0] : fmaz(chain[0], 1.0f, t.y);
                    held[i * THREADS] = t;
                    chain[0] = chain[1] = 0.0f;
                }
            }
        }
        if (coming < end) {
            a.stage(next);
            arrived<0>();
        }
        // All threads have stored their part of the next step, and none reads any longer what the following step
        // overwrites.
        __syncthreads();
        ready = true;
        now = next;
        next = next == steps ? steps + STEP : steps;
    }
#pragma unroll 1
    for (uint i = 0; i < RESULTS / 2; i++) {
        uint of_row = i / (TN / 4);
        uint r = first_row + row + of_row / EACH * EACH * LM + of_row % EACH, at = first_column + column + i % (TN / 4) * 4 * LN;
        if (r >= p.m || at >= p.n) {
            continue;
        }
        float2 low = held[2 * i * THREADS], high = held[(2 * i + 1) * THREADS];
        float4 v = make_float4(low.y, low.x, high.y, high.x);
        if (split) {
            size_t row_at = (size_t(blockIdx.y) * p.batches + batch) * p.m + r;
            *reinterpret_cast<float4 *>(p.blocks + row_at * ((p.n + 3) & ~3u) + at) = v;
            continue;
        }
        finish(p, has, v, batch, r, at, c);
    }
}

// Adds stored blocks: `own` result vectors per block of threads. Equally many threads fetch each vector.
extern "C" __global__ void __launch_bounds__(256) matmul_merge(const Product p, const uint has, const uint own, TABLE table) {
    begin();
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
    uint row = group / vectors, batch = row / p.m;
    finish(p, has, t, batch, row % p.m, group % vectors * 4, p.c + starts(p, batch, table).c);
}

// Computes blocks of the product of two vectors, one per thread.
extern "C" __global__ void __launch_bounds__(64) matmul_vectors(const Product p, const uint has, const uint, TABLE) {
    begin();
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

// At most four rows, with B's rows contiguous: each thread has one column, and B skips shared memory.
extern "C" __global__ void __launch_bounds__(128) matmul_4x128(const Product p, const uint has, const uint, TABLE t) {
    begin();
    // Rows of B in flight at a time.
    const uint MANY = 32;
#ifdef __CUDA_ARCH__
    __shared__ float4 pool[K_BLOCK];
#endif
    float *shared = reinterpret_cast<float *>(pool);
    uint batch = blockIdx.x / p.tiles_n, first = blockIdx.x % p.tiles_n * 128, column = min(first + threadIdx.x, p.n - 1);
    Starts at = starts(p, batch, t);
    const float *a = p.a + at.a, *b = kept(p.b + at.b + column);
    bool split = (has & SPLIT) != 0;
    uint begin = split ? blockIdx.y * K_BLOCK : 0, end = split ? min(p.k, begin + K_BLOCK) : p.k;
    float totals[4];
#pragma unroll 1
    for (uint start = begin; start < end; start += K_BLOCK) {
        uint count = min(end - start, K_BLOCK);
        __syncthreads();
        // Zeros follow the last k. They make −0 of a chain +0, which ends as +0 anyway.
#pragma unroll 1
        for (uint i = threadIdx.x; i < 4 * K_BLOCK; i += 128) {
            uint row = has & A_ALONG_K ? i / K_BLOCK : i % 4, inner = has & A_ALONG_K ? i % K_BLOCK : i / 4;
            size_t from = has & A_ALONG_K ? size_t(row) * p.a_pitch + start + inner : size_t(start + inner) * p.a_pitch + row;
            shared[4 * inner + row] = row < p.m && inner < count ? a[from] : 0.0f;
        }
        __syncthreads();
        float chains[4] = {0, 0, 0, 0}, right[MANY];
#pragma unroll 1
        for (uint q = 0; q < count; q += MANY) {
#pragma unroll
            for (uint i = 0; i < MANY; i++) {
                right[i] = q + i < count ? read_one(row_of(b, start + q + i, p.b_pitch)) : 0.0f;
            }
            // The barrier keeps compilers from merging the two loops again.
            __syncthreads();
#pragma unroll
            for (uint i = 0; i < MANY; i++) {
                float4 left = pool[q + i];
                chains[0] = fmaz(left.x, right[i], chains[0]), chains[1] = fmaz(left.y, right[i], chains[1]);
                chains[2] = fmaz(left.z, right[i], chains[2]), chains[3] = fmaz(left.w, right[i], chains[3]);
            }
        }
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            totals[i] = start > begin ? fmaz(chains[i], 1.0f, totals[i]) : start + K_BLOCK < end ? fmaz(chains[i], 1.0f, 0.0f) : chains[i];
        }
    }
    // Each thread finishes four columns of a row.
    __syncthreads();
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        shared[128 * i + threadIdx.x] = totals[i];
    }
    __syncthreads();
    uint row = threadIdx.x / 32, own = first + threadIdx.x % 32 * 4;
    if (row >= p.m || own >= p.n) {
        return;
    }
    float4 x = pool[threadIdx.x];
    if (split) {
        *reinterpret_cast<float4 *>(p.blocks + ((size_t(blockIdx.y) * p.batches + batch) * p.m + row) * ((p.n + 3) & ~3u) + own) = x;
    } else {
        finish(p, has, x, batch, row, own, p.c + at.c);
    }
}

// One row, with B's rows contiguous: each thread has one column of one K block at a time, and a block of threads has 32 columns. Its
// warps share out the K blocks, up to 16 at a time, so that nothing has to be merged later.
extern "C" __global__ void __launch_bounds__(512) matmul_1x32(const Product p, const uint has, const uint, TABLE t) {
    begin();
    // Rows of B in flight at a time.
    const uint MANY = 64;
#ifdef __CUDA_ARCH__
    // Each warp's part of A, then the ends of the chains.
    __shared__ float4 pool[16 * K_BLOCK / 4 + 16 * 32 / 4];
#endif
    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32, blocks = (p.k + K_BLOCK - 1) / K_BLOCK;
    uint batch = blockIdx.x / p.tiles_n, first = blockIdx.x % p.tiles_n * 32, column = min(first + lane, p.n - 1);
    Starts at = starts(p, batch, t);
    const float *a = p.a + at.a, *b = kept(p.b + at.b + column);
    float4 *left = pool + warp * (K_BLOCK / 4);
    float *own_left = reinterpret_cast<float *>(left), *ends = reinterpret_cast<float *>(pool + 16 * K_BLOCK / 4), sum = 0.0f;
#pragma unroll 1
    for (uint done = 0; done < blocks; done += warps) {
        uint start = (done + warp) * K_BLOCK, count = start < p.k ? min(p.k - start, K_BLOCK) : 0;
        // Zeros follow the last k. They make −0 of a chain +0, which ends as +0 anyway.
#pragma unroll 1
        for (uint i = lane; i < K_BLOCK; i += 32) {
            own_left[i] = i < count ? a[has & A_ALONG_K ? start + i : size_t(start + i) * p.a_pitch] : 0.0f;
        }
        float chain = 0.0f, right[MANY];
#pragma unroll 1
        for (uint q = 0; q < count; q += MANY) {
#pragma unroll
            for (uint i = 0; i < MANY; i++) {
                right[i] = q + i < count ? read_one(row_of(b, start + q + i, p.b_pitch)) : 0.0f;
            }
            // The barrier keeps compilers from merging the two loops again.
            __syncwarp();
#pragma unroll
            for (uint i = 0; i < MANY; i += 4) {
                float4 x = left[(q + i) / 4];
                chain = fmaz(x.x, right[i], chain), chain = fmaz(x.y, right[i + 1], chain);
                chain = fmaz(x.z, right[i + 2], chain), chain = fmaz(x.w, right[i + 3], chain);
            }
        }
        ends[threadIdx.x] = chain;
        __syncthreads();
        for (uint i = 0; warp == 0 && i < min(warps, blocks - done); i++) {
            sum = fmaz(ends[32 * i + lane], 1.0f, sum);
        }
        __syncthreads();
    }
    if (warp == 0) {
        ends[lane] = sum;
    }
    __syncthreads();
    // Eight threads finish four columns each.
    uint own = first + threadIdx.x * 4;
    if (threadIdx.x < 8 && own < p.n) {
        finish(p, has, reinterpret_cast<float4 *>(ends)[threadIdx.x], batch, 0, own, p.c + at.c);
    }
}

#define KERNEL(NAME, TM, TN, LM, LN, WM, WN, BK, LEAST) \
    extern "C" __global__ void __launch_bounds__(32 * WM * WN, LEAST) NAME(const Product p, const uint has, const uint, TABLE t) { \
        begin(); \
        product<TM, TN, LM, LN, WM, WN, BK>(p, has, t); \
    }

KERNEL(matmul_128x128, 8, 8, 8, 4, 2, 4, 16, 2)
KERNEL(matmul_32x64, 4, 4, 8, 4, 1, 4, 32, 4)
KERNEL(matmul_64x64, 8, 4, 8, 4, 1, 4, 32, 4)
KERNEL(matmul_16x32, 2, 4, 8, 4, 1, 2, 64, 4)
