#version 450
// Scaled dot-product attention, in blocks of 64 keys.
//
// A workgroup has BQ query rows of one head and visits all blocks of keys. First its threads compute a block's scores,
// 8 keys by 4 queries each. Then they compute the weights, which go to shared memory. Then they multiply the weights by
// the values, OQ queries by OD columns each. Operands come in slices; while one slice is multiplied, the next one is
// loaded.
//
// STAGE 0 computes everything. In STAGE 1, each workgroup computes one block of keys and stores it. STAGE 2 merges
// stored blocks, with one thread per four results.
//
// STAGES 3 to 5 belong to attention whose products are computed in exact integers, by other kernels: weights of scores, the merge of
// all blocks' results, and values as fixed-point numbers, with zeros behind the last key. q is what they read, k what they write, v the
// factors of weights, [matrix][key], and `blocks` has MAX and SUM: [row][block]. A launch has `rows` rows from row `tiles` on, and
// `columns` of them share keys.

#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "contract.glsl"
#include "functions.glsl"
#include "memory.glsl"
#include "fixed.glsl"

// Two threads per query row.
layout(local_size_x_id = 10) in;
// The columns of the values that a workgroup computes: 32, 64 or 128.
layout(constant_id = 11) const uint DV = 64;
// 4, or 8 with 128 columns.
layout(constant_id = 12) const uint OQ = 4;
layout(constant_id = 13) const uint STAGE = 0;
// Bits: operands and results are read and written in vectors; the width is not a multiple of SLICE; it exceeds a K
// block; some keys of a block are hidden; there is a mask.
layout(constant_id = 14) const uint HAS = 0;

const bool VECTORS = (HAS & 1u) != 0u;
const bool WIDTH_TAIL = (HAS & 2u) != 0u;
const bool WIDE = (HAS & 4u) != 0u;
const bool HIDDEN = (HAS & 8u) != 0u;
const bool MASK = (HAS & 16u) != 0u;

const uint K_BLOCK = 256;
const uint KEYS = 64;
const uint BQ = gl_WorkGroupSize.x / 2u;
const uint SLICE = 16;
const uint V_SLICE = 1024u / DV;
// A thread's part of the scores: keys ky + 8·i and queries 4·qx + j.
const uint TK = 8;
const uint TQ = 4;
const uint OD = DV / (2u * OQ);
// The layout of shared memory, in vectors. First: two slices each of q and k, later the weights. Then: the threads'
// MAXs, later a slice of v. Then: the threads' SUMs. Last: the factors of each query's results in a merge.
const uint QK_STEP = SLICE * (BQ + KEYS) / 4u;
const uint V_STEP = V_SLICE * DV / 4u;
const uint VALUES = 2u * QK_STEP > KEYS * BQ / 4u ? 2u * QK_STEP : KEYS * BQ / 4u;
const uint SUMS = VALUES + V_STEP;
const uint FACTORS = SUMS + 2u * BQ;
const uint POOL = FACTORS + BQ / 2u;
// Results leave through the first part of shared memory.
const uint RESULTS = OQ * OD / 4u;
const uint PART = FACTORS / gl_WorkGroupSize.x < RESULTS ? FACTORS / gl_WorkGroupSize.x : RESULTS;
const uint PARTS = (RESULTS + PART - 1u) / PART;
const uint Q_SHARE = BQ * SLICE / 4u / gl_WorkGroupSize.x;
const uint K_SHARE = KEYS * SLICE / 4u / gl_WorkGroupSize.x;
const uint V_SHARE = V_STEP / gl_WorkGroupSize.x;
const float LOWEST = -1.0 / 0.0;

// Not readonly: compilers would move the loads down to their uses, past the multiplications that should hide them.
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Vectors {
    vec4 v[];
};

layout(push_constant) uniform Push {
    uvec2 q, k, v, mask, y;
    // Stored blocks: [block][row][column], with columns rounded up to vectors, followed by MAX and SUM.
    uvec2 blocks;
    // For each axis of the scores but the last two, innermost first: its length and the mask's step.
    uvec2 table;
    uint rows, queries, keys, width, value_width, heads, kv_heads;
    // lead: a query's number plus `lead` is `queries` more than the number of keys that it sees.
    uint lead, tiles, columns, axes, mask_row, mask_column;
    float scale;
    // Of a number, in the kernel that cuts values.
    uint digits;
};

// Those for exact integers share a number for each thread, so that many workgroups run at the same time.
shared vec4 pool[STAGE >= 3u ? KEYS / 4u : POOL];

vec4 moved[Q_SHARE + K_SHARE];
vec4 moved_v[V_SHARE];
// For a block: dot products, then scores, then weights.
float scores[TK * TQ];
float totals[TK * TQ];
vec4 chains[RESULTS];
vec4 results[RESULTS];

// e^x for x ≤ 0, scaled so that it rounds once.
float weight(const float x) {
    vec3 core = exp_core(x < -105.0 ? -105.0 : x);
    precise float y = (exp_near_0(core.x, core.y) * intBitsToFloat((floatBitsToInt(core.z) + 159) << 23)) * 2.3283064e-10;
    return y;
}

// Starts loading a thread's share of a slice of q or k: SLICE columns of some rows.
void fetch_rows(const uvec2 operand, const uint origin, const uint slot, const uint count, const uint first, const uint extent,
    const uint start) {
    for (uint i = 0; i < count; i++) {
        uint at_i = i * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
        uint row = origin + min(first + at_i / (SLICE / 4u), extent - 1u) * width, d = start + at_i % (SLICE / 4u) * 4u;
        if (VECTORS) {
            moved[slot + i] = Vectors(operand).v[row / 4u + (WIDTH_TAIL ? min(d, width - 4u) : d) / 4u];
        } else {
            for (uint e = 0; e < 4; e++) {
                moved[slot + i][e] = load(operand, row + min(d + e, width - 1u));
            }
        }
    }
}

void fetch_values(const uint origin, const uint first, const uint start) {
    for (uint i = 0; i < V_SHARE; i++) {
        uint at_i = i * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
        uint row = origin + min(start + at_i / (DV / 4u), keys - 1u) * value_width, d = first + at_i % (DV / 4u) * 4u;
        if (VECTORS) {
            moved_v[i] = Vectors(v).v[row / 4u + min(d, value_width - 4u) / 4u];
        } else {
            for (uint e = 0; e < 4; e++) {
                moved_v[i][e] = load(v, row + min(d + e, value_width - 1u));
            }
        }
    }
}

// Vectors of a row are shuffled, so threads that write one column of several rows use different banks.
uint shuffled(const uint vector, const uint by) {
    return vector ^ (by & (BQ / 4u - 1u));
}

// Returns the position of e among the keys ky + 8·(4·i + e), at a k of a slice. Positions rotate, to use different
// banks too.
uint turned(const uint e, const uint p) {
    return e ^ (p / 4u & 3u);
}

// Stores a thread's share of slices of q and k in shared memory, with zeros behind the last column.
void stage_rows(const uint base, const uint start) {
    for (uint i = 0; i < Q_SHARE + K_SHARE; i++) {
        bool is_key = i >= Q_SHARE;
        uint at_i = (is_key ? i - Q_SHARE : i) * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
        uint row = at_i / (SLICE / 4u), d = at_i % (SLICE / 4u) * 4u;
        uint to = is_key ? base + SLICE * BQ / 4u + d * (KEYS / 4u) + row / 32u * 8u + row % 8u
                         : base + d * (BQ / 4u) + shuffled(row / 4u, d / 2u);
        for (uint e = 0; e < 4; e++) {
            pool[to + e * (is_key ? KEYS / 4u : BQ / 4u)][is_key ? turned(row / 8u & 3u, d) : row & 3u] =
                WIDTH_TAIL && start + d + e >= width ? 0.0 : moved[i][e];
        }
    }
}

void stage_values(const uint base, const uint start) {
    for (uint i = 0; i < V_SHARE; i++) {
        uint at_i = i * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
        pool[base + at_i] = HIDDEN && start + at_i / (DV / 4u) >= keys ? vec4(0.0) : moved_v[i];
    }
}

// Continues the chains of q·k over a slice.
void multiply_rows(const uint base, const uint ky, const uint qx) {
    for (uint p = 0; p < SLICE; p++) {
        float key[TK];
        for (uint i = 0; i < TK / 4u; i++) {
            vec4 x = pool[base + ky + SLICE * BQ / 4u + p * (KEYS / 4u) + 8u * i];
            for (uint e = 0; e < 4; e++) {
                key[4u * i + turned(e, p)] = x[e];
            }
        }
        vec4 query = pool[base + shuffled(qx, p / 4u * 2u) + p * (BQ / 4u)];
        // In alternating direction: neighbours share an operand, which saves a register read.
        for (uint j = 0; j < TQ; j++) {
            for (uint i = 0; i < TK; i++) {
                uint to = (j & 1u) == 0u ? i : TK - 1u - i;
                scores[TQ * to + j] = fmaz(key[to], query[j], scores[TQ * to + j]);
            }
        }
    }
}

// Continues the chains of weights·v over a slice.
void multiply_values(const uint base, const uint start, const uint ox, const uint oy) {
    for (uint p = 0; p < V_SLICE; p++) {
        float w[OQ], value[OD];
        for (uint i = 0; i < OQ / 4u; i++) {
            vec4 x = pool[start * (BQ / 4u) + shuffled(i * (BQ / OQ) + oy, p & 7u) + p * (BQ / 4u)];
            for (uint e = 0; e < 4; e++) {
                w[4u * i + e] = x[e];
            }
        }
        for (uint i = 0; i < OD / 4u; i++) {
            vec4 x = pool[base + ox + p * (DV / 4u) + i * (DV / OD)];
            for (uint e = 0; e < 4; e++) {
                value[4u * i + e] = x[e];
            }
        }
        for (uint i = 0; i < OQ; i++) {
            for (uint j = 0; j < OD; j++) {
                uint to = (i & 1u) == 0u ? j : OD - 1u - j;
                uint at_j = (OD * i + to) / 4u;
                chains[at_j][to & 3u] = fmaz(w[i], value[to], chains[at_j][to & 3u]);
            }
        }
    }
}

// Merges a block's MAX and SUM into the running ones, and returns the factors of the running and the block's results. A
// block without a live key changes nothing. MAX skips NaN here: its weights are NaN, and so are the block's SUM and all
// later results.
vec2 merged(inout float m, inout float l, const float block_m, const float block_l) {
    if (block_m == LOWEST && !is_nan(block_l)) {
        return vec2(-1.0, 0.0);
    }
    float higher = block_m > m ? block_m : m;
    precise float a = m - higher, c = block_m - higher;
    a = weight(a);
    c = weight(c);
    precise float both = l * a + block_l * c;
    l = both;
    m = higher;
    return vec2(a, c);
}

// Merges a block's results into the running ones.
vec4 merged_results(const vec4 result, const vec4 chain, const float old, const float new) {
    precise vec4 r = result * old + chain * new;
    return old < 0.0 ? result : r;
}

void finish(const vec4 x, const float l, const uint row, const uint column) {
    vec4 result;
    for (uint e = 0; e < 4; e++) {
        result[e] = l == 0.0 ? 0.0 : divide(x[e], l);
        if (!VECTORS && column + e < value_width) {
            store(y, row * value_width + column + e, result[e]);
        }
    }
    if (VECTORS) {
        store4(y, row * value_width + column, result);
    }
}

void merge() {
    uint across = (value_width + 3u) / 4u;
    uint at_x = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationIndex, row = at_x / across, column = at_x % across;
    if (row >= rows) {
        return;
    }
    float m = LOWEST, l = 0.0;
    vec4 x = vec4(0.0);
    for (uint block = 0; block < (keys + KEYS - 1u) / KEYS; block++) {
        uint at_block = (block * rows + row) * (across + 1u);
        vec4 state = Vectors(blocks).v[at_block + across], chain = Vectors(blocks).v[at_block + column];
        vec2 factors = merged(m, l, state.x, state.y);
        x = merged_results(x, chain, factors.x, factors.y);
    }
    finish(x, l, row, 4u * column);
}

// Returns the number of keys that a query sees.
uint visible(const uint query) {
    return HIDDEN ? min(keys, max(query + lead, queries) - queries) : keys;
}

void put(const uint i, const float x) {
    pool[i / 4u][i % 4u] = x;
}

float got(const uint i) {
    return pool[i / 4u][i % 4u];
}

// Returns where a block of a row's weights or results is, counted in such blocks.
uint of_block(const uint row, const uint block) {
    return (row / columns * ((keys + KEYS - 1u) / KEYS) + block) * columns + row % columns;
}

// Computes the weights of a row in a block of keys, their MAX and SUM.
void weigh() {
    uint tid = gl_LocalInvocationIndex, row = gl_WorkGroupID.x, block = gl_WorkGroupID.y, key = block * KEYS + tid;
    uint head = (tiles + row) / queries, query = (tiles + row) % queries;
    float score = LOWEST;
    if (key < visible(query)) {
        precise float x = (width > 0u ? load(q, row * keys + key) : 0.0) * scale;
        score = x;
        if (MASK) {
            uint mask_at = query * mask_row + key * mask_column;
            for (uint i = 0, rest = head; i < axes; i++) {
                uint length = load_word(table, 2u * i);
                mask_at += rest % length * load_word(table, 2u * i + 1u);
                rest /= length;
            }
            precise float masked = x + load(mask, mask_at);
            score = masked;
        }
    }
    // MAX skips NaN, as in `merged`.
    put(tid, score > LOWEST ? score : LOWEST);
    barrier();
    for (uint step_ = KEYS / 2u; step_ > 0u; step_ /= 2u) {
        if (tid < step_) {
            float other = got(tid + step_);
            put(tid, other > got(tid) ? other : got(tid));
        }
        barrier();
    }
    float highest = got(0u);
    barrier();
    precise float below = score - (highest == LOWEST ? 0.0 : highest);
    float own = weight(below);
    precise float weighted = own * load(v, row / columns * ((keys + KEYS - 1u) / KEYS * KEYS) + key);
    store(k, of_block(row, block) * KEYS + tid, weighted);
    put(tid, own);
    barrier();
    for (uint step_ = KEYS / 2u; step_ > 0u; step_ /= 2u) {
        if (tid < step_) {
            precise float sum = got(tid) + got(tid + step_);
            put(tid, sum);
        }
        barrier();
    }
    if (tid == 0u) {
        uint state = 2u * (row * ((keys + KEYS - 1u) / KEYS) + block);
        store(blocks, state, highest);
        store(blocks, state + 1u, got(0u));
    }
}

// Merges the blocks' results of a row in one column.
void join() {
    uint row = gl_WorkGroupID.x, column = gl_WorkGroupID.y * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    uint count = (keys + KEYS - 1u) / KEYS;
    if (column >= value_width) {
        return;
    }
    float m = LOWEST, l = 0.0;
    vec4 x = vec4(0.0);
    for (uint block = 0; block < count; block++) {
        float block_m = load(blocks, 2u * (row * count + block)), block_l = load(blocks, 2u * (row * count + block) + 1u);
        vec2 factors = merged(m, l, block_m, block_l);
        x = merged_results(x, vec4(load(q, of_block(row, block) * value_width + column)), factors.x, factors.y);
    }
    store(k, (tiles + row) * value_width + column, l == 0.0 ? 0.0 : divide(x.x, l));
}

// Cuts a row of values to fixed-point numbers of one scale, and stores the factor of its key's weights. Rows behind the last key are
// zeros.
void cut_row() {
    uint tid = gl_LocalInvocationIndex, padded = (keys + KEYS - 1u) / KEYS * KEYS, row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint key = row % padded, from = (row / padded * keys + key) * value_width, largest = 0u;
    if (key < keys) {
        for (uint d = tid; d < value_width; d += KEYS) {
            largest = max(largest, load_word(q, from + d) & MAGNITUDE);
        }
    }
    put(tid, f(largest));
    barrier();
    for (uint step_ = KEYS / 2u; step_ > 0u; step_ /= 2u) {
        if (tid < step_) {
            put(tid, f(max(floatBitsToUint(got(tid)), floatBitsToUint(got(tid + step_)))));
        }
        barrier();
    }
    largest = floatBitsToUint(got(0u));
    int scale = scale_of(largest, digits);
    float factor = value_factor(largest, scale, digits);
    if (row >= rows) {
        return;
    }
    if (tid == 0u) {
        store(v, row, factor);
    }
    for (uint d = tid; d < value_width; d += KEYS) {
        int integer = factor > 0.0 ? cut(load_word(q, from + d), scale) : 0;
        precise float value = float(integer) * f(uint(127 - value_scale(digits)) << 23u);
        store(k, row * value_width + d, value);
    }
}

void main() {
    if (STAGE == 2u) {
        merge();
        return;
    }
    if (STAGE == 3u) {
        weigh();
        return;
    }
    if (STAGE == 4u) {
        join();
        return;
    }
    if (STAGE == 5u) {
        cut_row();
        return;
    }
    uint tid = gl_LocalInvocationIndex;
    uint first_column = gl_WorkGroupID.x % columns * DV, tile = gl_WorkGroupID.x / columns, head = tile / tiles;
    // The tiles that take longest start first.
    uint first = (tiles - 1u - tile % tiles) * BQ;
    uint kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
    uint q_at = head * queries * width, k_at = kv * keys * width, v_at = kv * keys * value_width;
    uint ky = tid % 8u, qx = tid / 8u, ox = tid % (DV / OD), oy = tid / (DV / OD);
    uint mask_at = 0;
    if (MASK) {
        for (uint i = 0, rest = head; i < axes; i++) {
            uint length = load_word(table, 2u * i);
            mask_at += rest % length * load_word(table, 2u * i + 1u);
            rest /= length;
        }
    }
    uint begin = STAGE == 1u ? gl_WorkGroupID.y * KEYS : 0u;
    uint end = STAGE == 1u ? begin + KEYS : visible(min(first + BQ, queries) - 1u);
    for (uint i = 0; i < RESULTS; i++) {
        results[i] = vec4(0.0);
    }
    // MAX and SUM of the query with this thread's number.
    float m = LOWEST, l = 0.0;
    if (width > 0u) {
        fetch_rows(q, q_at, 0u, Q_SHARE, first, queries, 0u);
        fetch_rows(k, k_at, Q_SHARE, K_SHARE, begin, keys, 0u);
    }
    for (uint block = begin; block < end; block += KEYS) {
        for (uint i = 0; i < TK * TQ; i++) {
            scores[i] = 0.0;
            totals[i] = 0.0;
        }
        uint current = 0;
        // Loop conditions stay simple: otherwise compilers copy all registers at the ends of loops.
        uint k_end = WIDE ? width : min(width, 1u);
        for (uint k_block = 0; k_block < k_end; k_block += K_BLOCK) {
            uint stop = WIDE ? min(k_block + K_BLOCK, width) : width;
            for (uint start = k_block; start < stop; start += SLICE) {
                stage_rows(current, start);
                bool last = start + SLICE >= width;
                fetch_rows(q, q_at, 0u, Q_SHARE, first, queries, last ? 0u : start + SLICE);
                fetch_rows(k, k_at, Q_SHARE, K_SHARE, last ? block + KEYS : block, keys, last ? 0u : start + SLICE);
                barrier();
                multiply_rows(current, ky, qx);
                current = QK_STEP - current;
            }
            if (WIDE) {
                for (uint i = 0; i < TK * TQ; i++) {
                    totals[i] = fmaz(scores[i], 1.0, totals[i]);
                    scores[i] = 0.0;
                }
            }
        }
        fetch_values(v_at, first_column, block);

        // Scores, and MAX of this thread's scores.
        for (uint i = 0; i < TK * TQ; i++) {
            precise float x = (WIDE ? totals[i] : scores[i]) * scale;
            scores[i] = x;
        }
        if (MASK) {
            for (uint i = 0; i < TK * TQ; i++) {
                uint query = min(first + 4u * qx + i % TQ, queries - 1u), key = min(block + ky + i / TQ * 8u, keys - 1u);
                precise float x = scores[i] + load(mask, mask_at + query * mask_row + key * mask_column);
                scores[i] = x;
            }
        }
        vec4 highest = vec4(LOWEST);
        for (uint j = 0; j < TQ; j++) {
            uint limit = visible(first + 4u * qx + j);
            for (uint i = 0; i < TK; i++) {
                float x = !HIDDEN || block + ky + 8u * i < limit ? scores[TQ * i + j] : LOWEST;
                scores[TQ * i + j] = x;
                highest[j] = x > highest[j] ? x : highest[j];
            }
        }
        pool[VALUES + ky * (BQ / 4u) + shuffled(qx, ky)] = highest;
        barrier();
        for (uint i = 0; i < 8; i++) {
            vec4 x = pool[VALUES + i * (BQ / 4u) + shuffled(qx, i)];
            for (uint j = 0; j < TQ; j++) {
                highest[j] = x[j] > highest[j] ? x[j] : highest[j];
            }
        }
        if (ky == 0u) {
            pool[FACTORS + qx] = highest;
        }
        // Weights, and this thread's part of their SUM.
        vec4 sum;
        for (uint j = 0; j < TQ; j++) {
            // Without a live key, a NaN must stay visible.
            float from = highest[j] == LOWEST ? 0.0 : highest[j];
            for (uint i = 0; i < TK; i++) {
                precise float x = scores[TQ * i + j] - from;
                scores[TQ * i + j] = weight(x);
            }
            precise float lanes[4];
            for (uint i = 0; i < 4; i++) {
                lanes[i] = scores[TQ * i + j] + scores[TQ * (i + 4u) + j];
            }
            precise float s = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
            sum[j] = s;
        }
        pool[SUMS + ky * (BQ / 4u) + shuffled(qx, ky)] = sum;
        for (uint i = 0; i < TK; i++) {
            vec4 x;
            for (uint j = 0; j < TQ; j++) {
                x[j] = scores[TQ * i + j];
            }
            pool[ky * (BQ / 4u) + shuffled(qx, ky) + 2u * BQ * i] = x;
        }
        barrier();
        if (tid < BQ) {
            precise float lanes[8];
            for (uint i = 0; i < 8; i++) {
                lanes[i] = pool[SUMS + i * (BQ / 4u) + shuffled(tid / 4u, i)][tid % 4u];
            }
            precise float block_l = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
            float block_m = pool[FACTORS + tid / 4u][tid % 4u];
            if (STAGE == 1u) {
                m = block_m;
                l = block_l;
            } else {
                vec2 factors = merged(m, l, block_m, block_l);
                pool[FACTORS + tid / 4u][tid % 4u] = factors.x;
                pool[FACTORS + BQ / 4u + tid / 4u][tid % 4u] = factors.y;
            }
        }

        for (uint i = 0; i < RESULTS; i++) {
            chains[i] = vec4(0.0);
        }
        uint stop = min(KEYS, keys - block);
        for (uint start = 0; start < stop; start += V_SLICE) {
            stage_values(VALUES, block + start);
            fetch_values(v_at, first_column, block + start + V_SLICE);
            barrier();
            multiply_values(VALUES, start, ox, oy);
            barrier();
        }
        for (uint i = 0; i < OQ / 4u; i++) {
            vec4 old = pool[FACTORS + i * (BQ / OQ) + oy], new = pool[FACTORS + BQ / 4u + i * (BQ / OQ) + oy];
            for (uint j = 0; j < OD; j++) {
                // −0 becomes +0.
                precise vec4 chain = chains[OD * i + j] + 0.0;
                results[OD * i + j] = STAGE == 1u ? chain : merged_results(results[OD * i + j], chain, old[4u * j / OD], new[4u * j / OD]);
            }
        }
        barrier();
    }

    uint across = (value_width + 3u) / 4u;
    uint block_row = STAGE == 1u ? (gl_WorkGroupID.y * rows + head * queries + first) * (across + 1u) : 0u;
    if (tid < BQ) {
        pool[FACTORS + tid / 4u][tid % 4u] = l;
        if (STAGE == 1u && first + tid < queries && first_column == 0u) {
            store4(blocks, 4u * (block_row + tid * (across + 1u) + across), vec4(m, l, 0.0, 0.0));
        }
    }
    barrier();
    [[dont_unroll]] for (uint part = 0; part < PARTS; part++) {
        for (uint i = 0; i < PART; i++) {
            vec4 x;
            for (uint p = 0; p < PARTS; p++) {
                x = part == p ? results[min(p * PART + i, RESULTS - 1u)] : x;
            }
            pool[i * gl_WorkGroupSize.x + tid] = x;
        }
        [[dont_unroll]] for (uint i = 0; i < min(PART, RESULTS - part * PART); i++) {
            vec4 x = pool[i * gl_WorkGroupSize.x + tid];
            uint at_i = part * PART + i, of_query = at_i / (OD / 4u);
            uint row = (of_query / 4u * (BQ / OQ) + oy) * 4u + of_query % 4u;
            uint column = first_column + (at_i % (OD / 4u) * (DV / OD) + ox) * 4u;
            if (first + row >= queries || column >= value_width) {
                continue;
            }
            if (STAGE == 1u) {
                store4(blocks, 4u * (block_row + row * (across + 1u)) + column, x);
            } else {
                finish(x, pool[FACTORS + row / 4u][row % 4u], head * queries + first + row, column);
            }
        }
    }
}
