// Scaled dot-product attention, in blocks of 64 keys.
//
// A block of threads has the query rows of one tile of a head and visits all blocks of keys. In a warp, eight threads
// share TQ rows: each has 8 keys of a block's scores, and DV / 8 columns of its results. So shuffles bring what a row
// needs of its other keys, and only weights go through shared memory, within a warp. Shared memory is laid out for the
// products: the rows, keys or columns of a thread are contiguous, so an operand and its chains are in different
// register banks.
//
// If each block of threads computes and stores one block of keys, a separate kernel merges them.
#include "glsl.cuh"
#include "memory.cuh"
#include "digits.cuh"

// The push constants of attention, as lowering writes them.
struct Attention {
    const float *q, *k, *v, *mask;
    float *y;
    // Stored blocks: [block][row][column], with columns rounded up to vectors, followed by MAX and SUM.
    float *blocks;
    // The table has, for each axis of the scores but the last two, innermost first: its length and the mask's step.
    const void *table;
    uint rows, queries, keys, width, value_width, heads, kv_heads;
    // lead: a query's number plus `lead` is `queries` more than the number of keys that it sees.
    uint lead, tiles, columns, axes, mask_row, mask_column;
    float scale;
    // Distances between the rows of q and k, and of v, in elements: multiples of 4. The rows start at multiples of 16
    // bytes.
    uint pitch, value_pitch;
};

// Bits of `has`: the result is written in vectors; some keys of a block are hidden; there is a mask; each block of
// threads computes one block of keys and stores it.
const uint VECTORS = 1, HIDDEN = 8, MASK = 16, SPLIT = 32;
const uint ALL = 0xffffffffu;
const uint KEYS = 64, K_BLOCK = 256;
// The columns of q and k in shared memory at a time. There, consecutive keys are contiguous.
const uint CHUNK = 64, PITCH = KEYS + 4;
// How often a loop is unrolled.
const uint EIGHT = UNROLLED > 8 ? 8 : UNROLLED;

// Copies ROWS rows of CHUNK columns, transposed: column `d` goes to line `d`. Rows behind the last one repeat it,
// because their results are unused. Columns from `width` on are zeros.
template <uint ROWS, uint WARPS>
INLINE void bring_turned(float *to, const float *from, const uint pitch, const uint first, const uint extent, const uint start,
    const uint width) {
    // A warp copies eight columns of four rows at a time, so no two of its threads write to one bank.
    const uint EACH = 8 / WARPS;
    uint t = this_thread(), d = t / 32 * 8 + t % 8, row = t / 8 % 4;
    to += d * (ROWS + 4) + row;
    uint there[EACH];
    const float *columns[EACH];
#pragma unroll
    for (uint n = 0; n < EACH; n++) {
        uint column = start + d + n * 8 * WARPS;
        there[n] = column < width ? 1 : 0;
        columns[n] = from + (column < width ? column : 0);
    }
#pragma unroll EIGHT
    for (uint i = 0; i < ROWS / 4; i++) {
        uint line = min(first + row + 4 * i, extent - 1);
#pragma unroll
        for (uint n = 0; n < EACH; n++) {
            copy_async<1>(to + n * 8 * WARPS * (ROWS + 4) + 4 * i, row_of(columns[n], line, pitch), there[n]);
        }
    }
}

// Copies the values of KEYS keys: COLUMNS columns, of which `width` exist. Zeros follow the last key and column.
template <uint COLUMNS, uint THREADS>
INLINE void bring_values(float *to, const float *from, const uint pitch, const uint first, const uint extent, const uint width) {
    const uint ACROSS = COLUMNS / 4, ROWS = THREADS / ACROSS;
    uint t = this_thread(), column = t % ACROSS * 4, row = t / ACROSS, some = column < width ? min(width - column, 4u) : 0;
    to += row * COLUMNS + column;
    from += some > 0 ? column : 0;
#pragma unroll EIGHT
    for (uint i = 0; i < KEYS / ROWS; i++) {
        uint key = first + row + i * ROWS;
        copy_async<4>(to + i * ROWS * COLUMNS, row_of(from, min(key, extent - 1), pitch), key < extent ? some : 0);
    }
}

// Returns the greater number, or NaN if x is NaN.
INLINE float at_least(const float x, const float low) {
#if __CUDA_ARCH__ >= 800
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(low));
    return r;
#else
    return x < low ? low : x;
#endif
}

// e^x for x ≤ 0, scaled so that it rounds once.
INLINE float weight(const float x) {
    vec3 core = exp_core(at_least(x, -105.0f));
    return (exp_near_0(core.x, core.y) * __int_as_float((__float_as_int(core.z) + 159) << 23)) * 2.3283064e-10f;
}

// Merges a block's MAX and SUM into the running ones, and returns the factors of the running and the block's results. A
// block without a live key changes nothing. MAX skips NaN here: its weights are NaN, and so are the block's SUM and all
// later results.
INLINE float2 merged(float &m, float &l, const float block_m, const float block_l) {
    if (block_m == of_bits(INFINITY | SIGN) && !is_nan(block_l)) {
        return make_float2(-1.0f, 0.0f);
    }
    float higher = block_m > m ? block_m : m;
    float a = weight(m - higher), c = weight(block_m - higher);
    l = l * a + block_l * c;
    m = higher;
    return make_float2(a, c);
}

INLINE float merged_result(const float result, const float chain, const float2 factors) {
    float r = result * factors.x + chain * factors.y;
    return factors.x < 0.0f ? result : r;
}

INLINE void finish(const Attention &p, const uint has, const float4 x, const float l, const uint row, const uint column) {
    float r[4] = {x.x, x.y, x.z, x.w};
    float *y = p.y + size_t(row) * p.value_width + column;
#pragma unroll
    for (uint e = 0; e < 4; e++) {
        r[e] = l == 0.0f ? 0.0f : canonical(r[e] / l);
        if (!(has & VECTORS) && column + e < p.value_width) {
            y[e] = r[e];
        }
    }
    if (has & VECTORS) {
        *reinterpret_cast<float4 *>(y) = make_float4(r[0], r[1], r[2], r[3]);
    }
}

// Returns the number of multiprocessors of the GPU, or slightly more.
INLINE uint multiprocessors() {
#ifdef __CUDA_ARCH__
    uint n;
    asm("mov.u32 %0, %%nsmid;" : "=r"(n));
    return n;
#else
    return 1;
#endif
}

// Returns the number of keys that a query sees.
INLINE uint visible(const Attention &p, const uint has, const uint query) {
    return has & HIDDEN ? min(p.keys, max(query + p.lead, p.queries) - p.queries) : p.keys;
}

INLINE void take(float *to, const float *from) {
    float4 v = *reinterpret_cast<const float4 *>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

// Adds the products of TQ rows' and N columns' numbers to their chains, in alternating direction: neighbours share an
// operand, which saves a register read. The order with fewer bank conflicts was found by counting them.
template <uint TQ, uint N>
INLINE void multiply(float (&chains)[TQ][N], const float (&left)[TQ], const float (&right)[N]) {
    const uint OUTER = TQ == 8 ? TQ : N, INNER = TQ == 8 ? N : TQ;
#pragma unroll
    for (uint x = 0; x < OUTER; x++) {
#pragma unroll
        for (uint y = 0; y < INNER; y++) {
            uint to = x % 2 == 0 ? y : INNER - 1 - y, j = TQ == 8 ? x : to, i = TQ == 8 ? to : x;
            chains[j][i] = fmaz(left[j], right[i], chains[j][i]);
        }
    }
}

// Adds up ROWS rows' 32 lanes of SUM, of which each thread of a group has four. Each thread gets the sum of one row: it
// exchanges half of its rows with its neighbour, for half of the neighbour's.
template <uint STEP, uint ROWS>
INLINE float row_sum(float (&lanes)[ROWS][4]) {
    if constexpr (STEP < 4) {
        return (lanes[0][0] + lanes[0][2]) + (lanes[0][1] + lanes[0][3]);
    } else if constexpr (ROWS == 1) {
#pragma unroll
        for (uint e = 0; e < 4; e++) {
            lanes[0][e] = lanes[0][e] + __shfl_xor_sync(ALL, lanes[0][e], STEP);
        }
        return row_sum<STEP / 2>(lanes);
    } else {
        bool upper = (threadIdx.x & STEP) != 0;
        float kept[ROWS / 2][4];
#pragma unroll
        for (uint j = 0; j < ROWS / 2; j++) {
#pragma unroll
            for (uint e = 0; e < 4; e++) {
                float low = lanes[j][e], high = lanes[j + ROWS / 2][e];
                kept[j][e] = (upper ? high : low) + __shfl_xor_sync(ALL, upper ? low : high, STEP);
            }
        }
        return row_sum<STEP / 2>(kept);
    }
}

// WARPS warps of 4·TQ query rows, and DV columns of the values. WIDE: the width may exceed a K block.
template <uint TQ, uint DV, uint WARPS, bool WIDE>
INLINE void attention(const Attention &p, const uint has, const Table &t) {
    const uint THREADS = 32 * WARPS, BQ = 4 * TQ * WARPS, OD = DV / 8, OWN = 4 * TQ, Q_PITCH = BQ + 4, W_PITCH = OWN + 4;
#ifdef __CUDA_ARCH__
    extern __shared__ float4 pool[];
#endif
    const uint chunks = (p.width + CHUNK - 1) / CHUNK;
    float *of_k = reinterpret_cast<float *>(pool);
    float *of_v = of_k + CHUNK * PITCH;
    float *of_w = of_v + KEYS * DV;
    float *of_q = of_w + WARPS * KEYS * W_PITCH;
    const bool split = (has & SPLIT) != 0;

    uint first_column = blockIdx.x % p.columns * DV, index = blockIdx.x / p.columns, heads = p.rows / p.queries;
    uint tile = index % p.tiles, head = index / p.tiles;
    if (p.lead != p.keys + p.queries) {
        // The tiles that take longest start first. If all run at once, they are paired so that every multiprocessor's
        // two take equally long.
        uint count = gridDim.x / p.columns, half = (count + 1) / 2;
        index = index < half || count > 2 * multiprocessors() ? index : count - 1 - (index - half);
        tile = p.tiles - 1 - index / heads;
        head = index % heads;
    }
    uint first = tile * BQ;
    uint kv = head / p.heads * p.kv_heads + head % p.heads / (p.heads / p.kv_heads);
    const float *q = p.q + size_t(head) * p.queries * p.pitch, *k = p.k + size_t(kv) * p.keys * p.pitch;
    const float *v = p.v + size_t(kv) * p.keys * p.value_pitch + first_column, *mask = p.mask;
    if (has & MASK) {
#pragma unroll 1
        for (uint i = 0, rest = head; i < p.axes; i++) {
            uint length = t.words[2 * i];
            mask += size_t(rest % length) * t.words[2 * i + 1];
            rest /= length;
        }
    }
    // A thread's rows are fours that are 16 apart; its keys and columns are fours that are 32 apart.
    uint lane = threadIdx.x % 32, warp = threadIdx.x / 32, eighth = lane / 4, own = warp * OWN + lane % 4 * 4;
    uint begin = split ? blockIdx.y * KEYS : 0, end = split ? begin + KEYS : visible(p, has, min(first + BQ, p.queries) - 1);
    // Each thread has MAX and SUM of one row. Lanes that differ only in `eighth` have the others.
    float results[TQ][OD], m = of_bits(INFINITY | SIGN), l = 0.0f;
    const uint mine = eighth / (8 / TQ);
#pragma unroll
    for (uint j = 0; j < TQ; j++) {
#pragma unroll
        for (uint c = 0; c < OD; c++) {
            results[j][c] = 0.0f;
        }
    }
#pragma unroll 1
    for (uint i = 0; i < chunks; i++) {
        bring_turned<BQ, WARPS>(of_q + i * CHUNK * Q_PITCH, q, p.pitch, first, p.queries, i * CHUNK, p.width);
    }
    if (begin < end && chunks > 0) {
        bring_turned<KEYS, WARPS>(of_k, k, p.pitch, begin, p.keys, 0, p.width);
    }
    end_group();
#pragma unroll 1
    for (uint block = begin; block < end; block += KEYS) {
        bring_values<DV, THREADS>(of_v, v, p.value_pitch, block, p.keys, p.value_width - first_column);
        end_group();
        float scores[TQ][8], totals[WIDE ? TQ : 1][8];
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                scores[j][i] = 0.0f;
                if (WIDE) {
                    totals[WIDE ? j : 0][i] = 0.0f;
                }
            }
        }
#pragma unroll 1
        for (uint chunk = 0; chunk < chunks; chunk++) {
            // The values, which were requested last, may still be in flight.
            if (chunk == 0) {
                arrived<1>();
            } else {
                arrived<0>();
            }
            __syncthreads();
            const float *keys = of_k + eighth * 4, *queries = of_q + chunk * CHUNK * Q_PITCH + own;
#pragma unroll EIGHT
            for (uint d = 0; d < CHUNK; d++) {
                float left[TQ], right[8];
#pragma unroll
                for (uint j = 0; j < TQ; j += 4) {
                    take(left + j, queries + d * Q_PITCH + 4 * j);
                }
                take(right, keys + d * PITCH);
                take(right + 4, keys + d * PITCH + 32);
                multiply(scores, left, right);
            }
            const bool last = chunk + 1 == chunks;
            if (WIDE && ((chunk + 1) * CHUNK % K_BLOCK == 0 || last)) {
#pragma unroll
                for (uint j = 0; j < TQ; j++) {
#pragma unroll
                    for (uint i = 0; i < 8; i++) {
                        float &sum = totals[WIDE ? j : 0][i];
                        sum = fmaz(scores[j][i], 1.0f, sum);
                        scores[j][i] = last && p.width > K_BLOCK ? sum : last ? scores[j][i] : 0.0f;
                    }
                }
            }
            // No thread reads any longer what is overwritten: the next chunk, of this or the next block, is copied
            // while the weights are computed.
            __syncthreads();
            uint next = last ? block + KEYS : block;
            if (next < end) {
                bring_turned<KEYS, WARPS>(of_k, k, p.pitch, next, p.keys, last ? 0 : (chunk + 1) * CHUNK, p.width);
            }
            end_group();
        }

        // Scores, their MAX, weights and their SUM.
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                scores[j][i] = scores[j][i] * p.scale;
            }
        }
        if (has & MASK) {
#pragma unroll
            for (uint j = 0; j < TQ; j++) {
                const float *row = mask + size_t(min(first + own + j % 4 + j / 4 * 16, p.queries - 1)) * p.mask_row;
#pragma unroll
                for (uint i = 0; i < 8; i++) {
                    uint key = min(block + eighth * 4 + i % 4 + i / 4 * 32, p.keys - 1);
                    scores[j][i] = scores[j][i] + row[size_t(key) * p.mask_column];
                }
            }
        }
        if ((has & HIDDEN) && block + KEYS > visible(p, has, first)) {
#pragma unroll
            for (uint j = 0; j < TQ; j++) {
                uint limit = visible(p, has, first + own + j % 4 + j / 4 * 16);
#pragma unroll
                for (uint i = 0; i < 8; i++) {
                    scores[j][i] = block + eighth * 4 + i % 4 + i / 4 * 32 < limit ? scores[j][i] : of_bits(INFINITY | SIGN);
                }
            }
        }
        float lanes[TQ][4], highest = 0.0f;
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
            float most = of_bits(INFINITY | SIGN);
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                most = fmaxf(most, scores[j][i]);
            }
#pragma unroll
            for (uint step = 16; step >= 4; step /= 2) {
                most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
            }
            highest = mine == j ? most : highest;
            // Without a live key, a NaN must stay visible.
            float from = most == of_bits(INFINITY | SIGN) ? 0.0f : most;
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                scores[j][i] = weight(scores[j][i] - from);
            }
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                lanes[j][i] = scores[j][i] + scores[j][i + 4];
            }
        }
        float sum = row_sum<16>(lanes);
        // A stored block keeps its own MAX and SUM.
        float2 factors = make_float2(0, 1);
        if (split) {
            m = highest;
            l = sum;
        } else {
            factors = merged(m, l, highest, sum);
        }

        float chains[TQ][OD];
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
#pragma unroll
            for (uint c = 0; c < OD; c++) {
                chains[j][c] = 0.0f;
            }
        }
        float *weights = of_w + warp * KEYS * W_PITCH + own % OWN;
#pragma unroll
        for (uint i = 0; i < 8; i++) {
#pragma unroll
            for (uint j = 0; j < TQ; j += 4) {
                *reinterpret_cast<float4 *>(weights + (eighth * 4 + i % 4 + i / 4 * 32) * W_PITCH + 4 * j) =
                    make_float4(scores[j][i], scores[j + 1][i], scores[j + 2][i], scores[j + 3][i]);
            }
        }
        // All threads need the values. The keys, which were requested last, may still be in flight.
        if (chunks > 0) {
            arrived<1>();
        } else {
            arrived<0>();
        }
        __syncthreads();
        const float *values = of_v + eighth * 4;
#pragma unroll EIGHT
        for (uint key = 0; key < KEYS; key++) {
            float left[TQ], right[OD];
#pragma unroll
            for (uint j = 0; j < TQ; j += 4) {
                take(left + j, weights + key * W_PITCH + 4 * j);
            }
#pragma unroll
            for (uint c = 0; c < OD; c += 4) {
                take(right + c, values + key * DV + 8 * c);
            }
            multiply(chains, left, right);
        }
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
            uint from = lane % 4 + j * (8 / TQ) * 4;
            float2 f = make_float2(__shfl_sync(ALL, factors.x, from), __shfl_sync(ALL, factors.y, from));
#pragma unroll
            for (uint c = 0; c < OD; c++) {
                // −0 becomes +0.
                float chain = chains[j][c] + 0.0f;
                results[j][c] = merged_result(results[j][c], chain, f);
            }
        }
        // All threads must have read the values before the next ones arrive.
        __syncthreads();
    }
    arrived<0>();
    // Results leave through shared memory, in place of keys and values, so the code that finishes them exists only
    // once.
    __syncthreads();
    float4 *leaving = reinterpret_cast<float4 *>(pool) + threadIdx.x;
    float2 *states = reinterpret_cast<float2 *>(of_w) + threadIdx.x;
#pragma unroll
    for (uint j = 0; j < TQ; j++) {
#pragma unroll
        for (uint c = 0; c < OD / 4; c++) {
            leaving[(j * (OD / 4) + c) * THREADS] =
                make_float4(results[j][4 * c], results[j][4 * c + 1], results[j][4 * c + 2], results[j][4 * c + 3]);
        }
        uint from = lane % 4 + j * (8 / TQ) * 4;
        states[j * THREADS] = make_float2(__shfl_sync(ALL, m, from), __shfl_sync(ALL, l, from));
    }
    uint across = (p.value_width + 3) / 4;
#pragma unroll 1
    for (uint i = 0; i < TQ * OD / 4; i++) {
        uint j = i / (OD / 4), query = first + own + j % 4 + j / 4 * 16, column = first_column + i % (OD / 4) * 32 + eighth * 4;
        if (query >= p.queries) {
            continue;
        }
        uint row = head * p.queries + query;
        float2 state = states[j * THREADS];
        if (!split) {
            if (column < p.value_width) {
                finish(p, has, leaving[i * THREADS], state.y, row, column);
            }
            continue;
        }
        float4 *stored = reinterpret_cast<float4 *>(p.blocks) + (size_t(blockIdx.y) * p.rows + row) * (across + 1);
        if (eighth == 0 && first_column == 0 && i % (OD / 4) == 0) {
            stored[across] = make_float4(state.x, state.y, 0, 0);
        }
        if (column < p.value_width) {
            stored[column / 4] = leaving[i * THREADS];
        }
    }
}

// Few query rows: a block of threads computes the part of four rows in one block of keys and stores it. A thread has one score, then
// columns of one row's results, so that little waits for anything else. Widths are multiples of four, up to 128.
extern "C" __global__ void __launch_bounds__(256) attention_rows(const Attention p, const uint has, TABLE t) {
    begin();
    // Older GPUs don't use it, and its code would take 2 KB of the library.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const uint ROWS = 4, WARPS = 8;
#ifdef __CUDA_ARCH__
    extern __shared__ float4 pool[];
#endif
    const uint pitch = p.width + 4;
    float *of_k = reinterpret_cast<float *>(pool), *of_v = of_k + KEYS * pitch, *of_q = of_v + KEYS * p.value_width;
    float *of_w = of_q + ROWS * p.width, *of_warps = of_w + ROWS * KEYS;
    uint thread = this_thread(), lane = thread % 32, warp = thread / 32;
    uint first = blockIdx.x % p.tiles * ROWS, head = blockIdx.x / p.tiles, block = blockIdx.y * KEYS;
    uint kv = head / p.heads * p.kv_heads + head % p.heads / (p.heads / p.kv_heads), column = 4 * lane;
    const float *q = p.q + size_t(head) * p.queries * p.pitch + column, *k = p.k + size_t(kv) * p.keys * p.pitch + column;
    const float *v = p.v + size_t(kv) * p.keys * p.value_pitch + column;
    if (column < p.width) {
        if (warp < ROWS) {
            copy_async<4>(of_q + warp * p.width + column, row_of(q, min(first + warp, p.queries - 1), p.pitch), 4);
        }
#pragma unroll 1
        for (uint key = warp; key < KEYS; key += WARPS) {
            copy_async<4>(of_k + key * pitch + column, row_of(k, min(block + key, p.keys - 1), p.pitch), 4);
        }
    }
    end_group();
    if (column < p.value_width) {
#pragma unroll 1
        for (uint key = warp; key < KEYS; key += WARPS) {
            bool there = block + key < p.keys;
            copy_async<4>(of_v + key * p.value_width + column, row_of(v, there ? block + key : 0, p.value_pitch), there ? 4 : 0);
        }
    }
    end_group();
    uint key = thread % KEYS, row = thread / KEYS, query = min(first + row, p.queries - 1);
    float masked = 0.0f;
    if (has & MASK) {
        const float *mask = p.mask + size_t(query) * p.mask_row + size_t(min(block + key, p.keys - 1)) * p.mask_column;
#pragma unroll 1
        for (uint i = 0, rest = head; i < p.axes; i++) {
            uint length = t.words[2 * i];
            mask += size_t(rest % length) * t.words[2 * i + 1];
            rest /= length;
        }
        masked = *mask;
    }
    arrived<1>();
    __syncthreads();
    float score = 0.0f;
    const float *left = of_q + row * p.width, *right = of_k + key * pitch;
#pragma unroll 1
    for (uint d = 0; d < p.width; d += 4) {
        float a[4], b[4];
        take(a, left + d);
        take(b, right + d);
#pragma unroll
        for (uint e = 0; e < 4; e++) {
            score = fmaz(a[e], b[e], score);
        }
    }
    score = score * p.scale;
    if (has & MASK) {
        score = score + masked;
    }
    if (has & HIDDEN) {
        score = block + key < visible(p, has, query) ? score : of_bits(INFINITY | SIGN);
    }
    float most = fmaxf(of_bits(INFINITY | SIGN), score);
#pragma unroll 1
    for (uint step = 16; step > 0; step /= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
    }
    of_warps[warp] = most;
    arrived<0>();
    __syncthreads();
    most = fmaxf(most, of_warps[warp ^ 1]);
    // Without a live key, a NaN must stay visible.
    float own = weight(score - (most == of_bits(INFINITY | SIGN) ? 0.0f : most));
    of_w[row * KEYS + key] = own;
    __syncthreads();
    uint across = p.value_width / 4;
    float *stored = p.blocks + (size_t(blockIdx.y) * p.rows + head * p.queries) * (across + 1) * 4;
    if (warp % 2 == 0) {
        float sum = own + of_w[row * KEYS + key + 32];
#pragma unroll 1
        for (uint step = 16; step > 0; step /= 2) {
            sum = sum + __shfl_xor_sync(ALL, sum, step);
        }
        if (lane == 0 && first + row < p.queries) {
            float *state = stored + ((first + row) * (across + 1) + across) * 4;
            state[0] = most;
            state[1] = sum;
        }
    }
    uint wide = p.value_width > KEYS ? 2 : 1;
    column = thread % (wide * KEYS);
#pragma unroll 1
    for (row = thread / (wide * KEYS); row < ROWS; row += 4 / wide) {
        if (column < p.value_width && first + row < p.queries) {
            const float *weights = of_w + row * KEYS, *values = of_v + column;
            float chain = 0.0f;
#pragma unroll 1
            for (uint j = 0; j < KEYS; j += 4) {
                float w[4];
                take(w, weights + j);
#pragma unroll
                for (uint e = 0; e < 4; e++) {
                    chain = fmaz(w[e], values[(j + e) * p.value_width], chain);
                }
            }
            // −0 becomes +0.
            stored[(first + row) * (across + 1) * 4 + column] = chain + 0.0f;
        }
    }
#endif
}

// Merges stored blocks: a warp has a row. Each of its threads computes the factors of one of 32 blocks, then merges four columns.
extern "C" __global__ void __launch_bounds__(64) attention_merge(const Attention p, const uint has, TABLE) {
    begin();
    uint across = (p.value_width + 3) / 4, row = blockIdx.x * 2 + threadIdx.x / 32, lane = threadIdx.x % 32;
    uint count = (p.keys + KEYS - 1) / KEYS;
    if (row >= p.rows) {
        return;
    }
    const float4 *blocks = reinterpret_cast<const float4 *>(p.blocks) + size_t(row) * (across + 1);
    const size_t apart = size_t(p.rows) * (across + 1);
#pragma unroll 1
    for (uint column = lane; column - lane < across; column += 32) {
        float m = of_bits(INFINITY | SIGN), l = 0.0f;
        float4 x = make_float4(0, 0, 0, 0);
#pragma unroll 1
        for (uint first = 0; first < count; first += 32) {
            float4 state = make_float4(of_bits(INFINITY | SIGN), 0, 0, 0);
            if (first + lane < count) {
                state = blocks[(first + lane) * apart + across];
            }
            // The greatest MAX up to each block.
            float highest = state.x;
#pragma unroll 1
            for (uint step = 1; step < 32; step *= 2) {
                float other = __shfl_sync(ALL, highest, (lane - step) % 32);
                highest = lane >= step && other > highest ? other : highest;
            }
            float before = __shfl_sync(ALL, highest, (lane + 31) % 32);
            before = lane > 0 && before > m ? before : m;
            m = __shfl_sync(ALL, highest, 31) > m ? __shfl_sync(ALL, highest, 31) : m;
            float none = 0.0f;
            float2 factors = merged(before, none, state.x, state.y);
            uint here = min(count - first, 32u);
            // Four results are on their way at once. Those behind the last block change nothing: their MAX is −inf.
            const uint AT_ONCE = 4;
#pragma unroll 1
            for (uint begin = 0; begin < here; begin += AT_ONCE) {
                float4 chains[AT_ONCE];
#pragma unroll
                for (uint i = 0; i < AT_ONCE; i++) {
                    bool there = begin + i < here && column < across;
                    chains[i] = there ? blocks[(first + begin + i) * apart + column] : make_float4(0, 0, 0, 0);
                }
#pragma unroll
                for (uint i = 0; i < AT_ONCE; i++) {
                    uint from = begin + i;
                    float2 f = make_float2(__shfl_sync(ALL, factors.x, from), __shfl_sync(ALL, factors.y, from));
                    float own = __shfl_sync(ALL, state.y, from);
                    x.x = merged_result(x.x, chains[i].x, f), x.y = merged_result(x.y, chains[i].y, f);
                    x.z = merged_result(x.z, chains[i].z, f), x.w = merged_result(x.w, chains[i].w, f);
                    l = merged_result(l, own, f);
                }
            }
        }
        if (column < across) {
            finish(p, has, x, l, row, 4 * column);
        }
    }
}

#include "attention_fixed.cuh"

#define KERNEL(NAME, TQ, DV, WARPS, WIDE, LEAST) \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, LEAST) NAME(const Attention p, const uint has, TABLE t) { \
        begin(); \
        attention<TQ, DV, WARPS, WIDE>(p, has, t); \
    }

KERNEL(attention_64, 8, 64, 4, false, 2)
KERNEL(attention_128, 4, 128, 4, false, 2)
KERNEL(attention_64_few, 4, 64, 4, false, 3)
KERNEL(attention_few, 4, 64, 1, true, 1)
