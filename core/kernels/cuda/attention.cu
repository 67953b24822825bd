// Scaled dot-product attention by blocks of 64 keys.
//
// A block of threads has the query rows of one tile of a head and goes through the keys' blocks. Eight neighbouring lanes have TQ
// rows: of a block's scores 8 keys each, of its results DV / 8 columns each. So what a row needs of its other keys comes by
// shuffles, and only weights pass through shared memory, within a warp.
//
// Stored blocks, where each block of threads computes one block of keys, are merged by a kernel of its own.
#include "glsl.cuh"

// What lowering says of attention, as its push constants.
struct Attention {
    const float *q, *k, *v, *mask;
    float *y;
    // Blocks: [block][row][column], columns rounded up to vectors, and behind them MAX and SUM.
    float *blocks;
    // The table, for each axis of the scores before the last two, the last one first: its length and the mask's step.
    const void *table;
    uint rows, queries, keys, width, value_width, heads, kv_heads;
    // lead: what to add to a query's number for `queries` more than the keys that it sees.
    uint lead, tiles, columns, axes, mask_row, mask_column;
    float scale;
    // Elements from one row to the next of q and k, and of v, multiples of 4, and they lie at multiples of 16 bytes.
    uint pitch, value_pitch;
};

// Bits of `has`: the result is written in vectors; some keys of a block are not seen; there is a mask; each
// block of threads computes one block of keys and stores it.
const uint VECTORS = 1, HIDDEN = 8, MASK = 16, SPLIT = 32;
const uint ALL = 0xffffffffu;
const uint KEYS = 64, K_BLOCK = 256;
// Columns of q and k in shared memory at a time; rows there are apart by four more, so that eight of them meet no bank twice.
const uint CHUNK = 64, PITCH = CHUNK + 4;
// Keys whose weights are in shared memory at a time.
const uint HALF = 32, WEIGHTS = HALF + 4;
// Steps of four in an unrolled loop.
const uint TWO = UNROLLED > 2 ? 2 : 1;

// Four numbers from global to shared memory, of which so many are there, the rest zeros.
INLINE void bring(float *to, const float *from, const uint there) {
#if __CUDA_ARCH__ >= 800
    uint at = static_cast<uint>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(4 * there));
#else
#pragma unroll
    for (uint e = 0; e < 4; e++) {
        to[e] = e < there ? from[e] : 0.0f;
    }
#endif
}

INLINE void commit() {
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

// ROWS rows of COLUMNS, from row `first` of `extent` and column `start` of `width` on, zeros outside.
template <uint ROWS, uint COLUMNS, uint THREADS>
INLINE void bring_rows(float *to, const uint to_pitch, const float *from, const uint pitch, const uint first, const uint extent,
    const uint start, const uint width) {
#pragma unroll 2
    for (uint i = this_thread(); i < ROWS * COLUMNS / 4; i += THREADS) {
        uint row = i / (COLUMNS / 4), column = i % (COLUMNS / 4) * 4;
        bool inside = first + row < extent && start + column < width;
        const float *at = inside ? from + ((first + row) * pitch + start + column) : from;
        bring(to + row * to_pitch + column, at, inside ? min(width - start - column, 4u) : 0);
    }
}

// e^x for x ≤ 0, scaled so that it is rounded once.
INLINE float weight(const float x) {
    vec3 core = exp_core(x < -105.0f ? -105.0f : x);
    float y = core.y + core.x;
    y = y + 1.0f;
    return (y * __int_as_float((__float_as_int(core.z) + 159) << 23)) * 2.3283064e-10f;
}

// A running MAX and SUM takes in a block's, unless that has no live key: what to multiply its results by and the block's. MAX passes
// over NaN here: their weights are NaN, and so are a block's SUM and results, and all that follows.
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

// The keys that a query sees.
INLINE uint visible(const Attention &p, const uint has, const uint query) {
    return has & HIDDEN ? min(p.keys, max(query + p.lead, p.queries) - p.queries) : p.keys;
}

INLINE float part(const float4 &v, const uint e) {
    return e == 0 ? v.x : e == 1 ? v.y : e == 2 ? v.z : v.w;
}

// WARPS warps of 4·TQ query rows, DV columns of the values; WIDE: the width may be more than a K block.
template <uint TQ, uint DV, uint WARPS, bool WIDE>
INLINE void attention(const Attention &p, const uint has, const Table &t) {
    const uint THREADS = 32 * WARPS, BQ = 4 * TQ * WARPS, OD = DV / 8, OWN = 4 * TQ;
#ifdef __CUDA_ARCH__
    extern __shared__ float4 pool[];
#endif
    const uint q_pitch = (p.width + CHUNK - 1) / CHUNK * CHUNK + 4, chunks = q_pitch / CHUNK;
    float *of_k = reinterpret_cast<float *>(pool);
    float *of_v = of_k + 2 * KEYS * PITCH;
    float *of_w = of_v + KEYS * DV;
    float *of_q = of_w + WARPS * OWN * WEIGHTS;
    const bool split = (has & SPLIT) != 0;

    uint first_column = blockIdx.x % p.columns * DV, tile = blockIdx.x / p.columns, head = tile / p.tiles;
    // What takes longest begins first.
    uint first = (p.tiles - 1 - tile % p.tiles) * BQ;
    uint kv = head / p.heads * p.kv_heads + head % p.heads / (p.heads / p.kv_heads);
    const float *q = p.q + size_t(head) * p.queries * p.pitch, *k = p.k + size_t(kv) * p.keys * p.pitch;
    const float *v = p.v + size_t(kv) * p.keys * p.value_pitch + first_column, *mask = p.mask;
    if (has & MASK) {
        for (uint i = 0, rest = head; i < p.axes; i++) {
            uint length = t.words[2 * i];
            mask += size_t(rest % length) * t.words[2 * i + 1];
            rest /= length;
        }
    }
    uint lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = warp * OWN + lane / 8 * TQ, eighth = lane % 8;
    uint begin = split ? blockIdx.y * KEYS : 0, end = split ? begin + KEYS : visible(p, has, min(first + BQ, p.queries) - 1);
    float results[TQ][OD], m[TQ], l[TQ];
#pragma unroll
    for (uint j = 0; j < TQ; j++) {
        m[j] = of_bits(INFINITY | SIGN);
        l[j] = 0.0f;
#pragma unroll
        for (uint c = 0; c < OD; c++) {
            results[j][c] = 0.0f;
        }
    }
    for (uint i = 0; i < chunks; i++) {
        bring_rows<BQ, CHUNK, THREADS>(of_q + i * CHUNK, q_pitch, q, p.pitch, first, p.queries, i * CHUNK, p.width);
    }
    if (begin < end && chunks > 0) {
        bring_rows<KEYS, CHUNK, THREADS>(of_k, PITCH, k, p.pitch, begin, p.keys, 0, p.width);
    }
    commit();
    uint current = 0;
#pragma unroll 1
    for (uint block = begin; block < end; block += KEYS) {
        bring_rows<KEYS, DV, THREADS>(of_v, DV, v, p.value_pitch, block, p.keys, 0, p.value_width - first_column);
        commit();
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
            // The next chunk, of this block or the next one, is on its way while this one is multiplied.
            bool last = chunk + 1 == chunks;
            uint next = last ? block + KEYS : block;
            if (next < end) {
                uint start = last ? 0 : (chunk + 1) * CHUNK;
                bring_rows<KEYS, CHUNK, THREADS>(of_k + (1 - current) * KEYS * PITCH, PITCH, k, p.pitch, next, p.keys, start, p.width);
            }
            commit();
            // What was just begun may be under way still, and with the first chunk the values too.
            if (chunk == 0) {
                arrived<2>();
            } else {
                arrived<1>();
            }
            __syncthreads();
            const float *keys = of_k + current * KEYS * PITCH + eighth * PITCH, *queries = of_q + own * q_pitch + chunk * CHUNK;
#pragma unroll TWO
            for (uint d = 0; d < CHUNK; d += 4) {
                float4 key[8], query[TQ];
#pragma unroll
                for (uint i = 0; i < 8; i++) {
                    key[i] = *reinterpret_cast<const float4 *>(keys + 8 * i * PITCH + d);
                }
#pragma unroll
                for (uint j = 0; j < TQ; j++) {
                    query[j] = *reinterpret_cast<const float4 *>(queries + j * q_pitch + d);
                }
#pragma unroll
                for (uint e = 0; e < 4; e++) {
#pragma unroll
                    for (uint j = 0; j < TQ; j++) {
#pragma unroll
                        for (uint i = 0; i < 8; i++) {
                            uint to = j % 2 == 0 ? i : 7 - i;
                            scores[j][to] = fmaz(part(key[to], e), part(query[j], e), scores[j][to]);
                        }
                    }
                }
            }
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
            if (last) {
                arrived<1>();
            }
            // Nobody writes over what another still reads, and all have the values.
            __syncthreads();
            current = 1 - current;
        }
        if (chunks == 0) {
            arrived<0>();
            __syncthreads();
        }

        // Scores, their MAX, weights and their SUM: of a row's 64, eight lanes have eight each.
        float2 factors[TQ];
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
            uint query = first + own + j, limit = visible(p, has, query);
            float highest = of_bits(INFINITY | SIGN);
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                uint key = block + eighth + 8 * i;
                float x = scores[j][i] * p.scale;
                if (has & MASK) {
                    uint row = min(query, p.queries - 1), column = min(key, p.keys - 1);
                    x = x + mask[size_t(row) * p.mask_row + size_t(column) * p.mask_column];
                }
                x = !(has & HIDDEN) || key < limit ? x : of_bits(INFINITY | SIGN);
                scores[j][i] = x;
                highest = x > highest ? x : highest;
            }
#pragma unroll
            for (uint step = 4; step > 0; step /= 2) {
                float other = __shfl_xor_sync(ALL, highest, step);
                highest = other > highest ? other : highest;
            }
            // Where there is no live key, a NaN must show.
            float from = highest == of_bits(INFINITY | SIGN) ? 0.0f : highest, lanes[4];
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                scores[j][i] = weight(scores[j][i] - from);
            }
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                lanes[i] = scores[j][i] + scores[j][i + 4];
            }
            float sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
#pragma unroll
            for (uint step = 4; step > 0; step /= 2) {
                sum = sum + __shfl_xor_sync(ALL, sum, step);
            }
            if (split) {
                m[j] = highest;
                l[j] = sum;
            } else {
                factors[j] = merged(m[j], l[j], highest, sum);
            }
        }

        float chains[TQ][OD];
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
#pragma unroll
            for (uint c = 0; c < OD; c++) {
                chains[j][c] = 0.0f;
            }
        }
        float *weights = of_w + own * WEIGHTS;
#pragma unroll
        for (uint half = 0; half < 2; half++) {
            __syncwarp();
#pragma unroll
            for (uint j = 0; j < TQ; j++) {
#pragma unroll
                for (uint i = 0; i < 4; i++) {
                    weights[j * WEIGHTS + eighth + 8 * i] = scores[j][4 * half + i];
                }
            }
            __syncwarp();
            const float *values = of_v + half * HALF * DV + eighth * 4;
#pragma unroll TWO
            for (uint key = 0; key < HALF; key += 4) {
                float4 w[TQ];
#pragma unroll
                for (uint j = 0; j < TQ; j++) {
                    w[j] = *reinterpret_cast<const float4 *>(weights + j * WEIGHTS + key);
                }
#pragma unroll
                for (uint e = 0; e < 4; e++) {
                    float value[OD];
#pragma unroll
                    for (uint c = 0; c < OD / 4; c++) {
                        float4 x = *reinterpret_cast<const float4 *>(values + (key + e) * DV + c * 32);
                        value[4 * c] = x.x, value[4 * c + 1] = x.y, value[4 * c + 2] = x.z, value[4 * c + 3] = x.w;
                    }
#pragma unroll
                    for (uint j = 0; j < TQ; j++) {
#pragma unroll
                        for (uint c = 0; c < OD; c++) {
                            uint to = j % 2 == 0 ? c : OD - 1 - c;
                            chains[j][to] = fmaz(part(w[j], e), value[to], chains[j][to]);
                        }
                    }
                }
            }
        }
#pragma unroll
        for (uint j = 0; j < TQ; j++) {
#pragma unroll
            for (uint c = 0; c < OD; c++) {
                // −0 becomes +0.
                float chain = chains[j][c] + 0.0f;
                results[j][c] = split ? chain : merged_result(results[j][c], chain, factors[j]);
            }
        }
        // The values are read by all before the next ones come.
        __syncthreads();
    }
    arrived<0>();
    // Results leave through shared memory, where the keys were, so that the code that finishes them is there once.
    __syncthreads();
    float4 *leaving = reinterpret_cast<float4 *>(pool) + threadIdx.x;
#pragma unroll
    for (uint j = 0; j < TQ; j++) {
#pragma unroll
        for (uint c = 0; c < OD / 4; c++) {
            leaving[(j * (OD / 4) + c) * THREADS] =
                make_float4(results[j][4 * c], results[j][4 * c + 1], results[j][4 * c + 2], results[j][4 * c + 3]);
        }
    }
    float2 *states = reinterpret_cast<float2 *>(of_v) + threadIdx.x;
#pragma unroll
    for (uint j = 0; j < TQ; j++) {
        states[j * THREADS] = make_float2(m[j], l[j]);
    }
    uint across = (p.value_width + 3) / 4;
#pragma unroll 1
    for (uint i = 0; i < TQ * OD / 4; i++) {
        uint j = i / (OD / 4), query = first + own + j, column = first_column + i % (OD / 4) * 32 + eighth * 4;
        if (query >= p.queries) {
            break;
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

// Stored blocks, a thread for each four results.
extern "C" __global__ void __launch_bounds__(64) attention_merge(const Attention p, const uint has, TABLE) {
    uint across = (p.value_width + 3) / 4, at = blockIdx.x * 64 + threadIdx.x, row = at / across, column = at % across;
    if (row >= p.rows) {
        return;
    }
    float m = of_bits(INFINITY | SIGN), l = 0.0f;
    float4 x = make_float4(0, 0, 0, 0);
    const float4 *blocks = reinterpret_cast<const float4 *>(p.blocks);
    for (uint block = 0; block < (p.keys + KEYS - 1) / KEYS; block++) {
        size_t here = (size_t(block) * p.rows + row) * (across + 1);
        float4 state = blocks[here + across], chain = blocks[here + column];
        float2 factors = merged(m, l, state.x, state.y);
        x.x = merged_result(x.x, chain.x, factors), x.y = merged_result(x.y, chain.y, factors);
        x.z = merged_result(x.z, chain.z, factors), x.w = merged_result(x.w, chain.w, factors);
    }
    finish(p, has, x, l, row, 4 * column);
}

#define KERNEL(NAME, TQ, DV, WARPS, WIDE, LEAST) \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, LEAST) NAME(const Attention p, const uint has, TABLE t) { \
        attention<TQ, DV, WARPS, WIDE>(p, has, t); \
    }

KERNEL(attention_64, 8, 64, 4, false, 2)
KERNEL(attention_128, 4, 128, 4, false, 2)
KERNEL(attention_few, 4, 64, 1, true, 1)
