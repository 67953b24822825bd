#version 450
// Batched matrix products: y = alpha·(a·b) + beta·c + bias.
//
// A workgroup computes a tile of BM × BN, and each thread TM × TN of it, in steps of BK along k. While a step is
// multiplied from shared memory, the next one travels from global memory to registers. Reads outside a matrix take its
// edge, and their results are unused.
//
// Every K block of 256 has its own chain. STAGE selects what happens to chains. 0: they are added to totals in
// registers, and the results follow. 1: each workgroup computes one block and stores it. 2: stored blocks are added to
// totals, and the results follow. 3: as 1 for a product of two vectors, with one block per thread.

#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "contract.glsl"
#include "memory.glsl"

layout(local_size_x_id = 10) in;
layout(constant_id = 11) const uint BM = 64;
layout(constant_id = 12) const uint BN = 64;
// Must be multiples of 4.
layout(constant_id = 13) const uint TM = 8;
layout(constant_id = 14) const uint TN = 8;
layout(constant_id = 15) const uint BK = 16;
layout(constant_id = 16) const uint STAGE = 0;
// The steps in shared memory: with 2, one is written while the other is read. In STAGE 2: the result vectors of a
// workgroup.
layout(constant_id = 17) const uint BUFFERS = 2;
// Bits: A's rows are contiguous along k; B's columns are; A is read in vectors; B is; the result is written in vectors;
// k is not a multiple of BK; there are several K blocks; there is a C; there is a bias; relu comes last; each thread
// has its own four rows of A, which skip shared memory; each thread has its own four columns of B.
layout(constant_id = 18) const uint HAS = 0;

const bool A_ALONG_K = (HAS & 1u) != 0u;
const bool B_ALONG_K = (HAS & 2u) != 0u;
const bool A_VECTORS = (HAS & 4u) != 0u;
const bool B_VECTORS = (HAS & 8u) != 0u;
const bool Y_VECTORS = (HAS & 16u) != 0u;
const bool TAIL = (HAS & 32u) != 0u;
const bool BLOCKS = (HAS & 64u) != 0u;
const bool HAS_C = (HAS & 128u) != 0u;
const bool HAS_BIAS = (HAS & 256u) != 0u;
const bool RELU = (HAS & 512u) != 0u;
const bool A_DIRECT = (HAS & 1024u) != 0u;
const bool B_DIRECT = (HAS & 2048u) != 0u;

const uint K_BLOCK = 256;
// The vectors of a step that one thread moves.
const uint A_SHARE = (BM * BK / 4u + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x;
const uint B_SHARE = (BN * BK / 4u + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x;
// The vectors of a step in shared memory, one k after the other.
const uint A_STEP = A_DIRECT ? 0u : BK * BM / 4u;
const uint STEP = A_STEP + (B_DIRECT ? 0u : BK * BN / 4u);
const uint RESULTS = TM * TN / 4u;
// Loads in flight in a thread that merges.
const uint MERGED = 4;
const uint POOL = STAGE >= 2u ? MERGED * gl_WorkGroupSize.x : STEP * BUFFERS > gl_WorkGroupSize.x ? STEP * BUFFERS : gl_WorkGroupSize.x;
// Results go through shared memory in parts, so the code that finishes them exists only once.
const uint FITTING = POOL / gl_WorkGroupSize.x;
const uint PART = FITTING < RESULTS ? FITTING : RESULTS;
const uint PARTS = (RESULTS + PART - 1u) / PART;
// A patch of 32 threads is PATCH threads wide.
const uint PATCH = BN / TN < 8u ? BN / TN : BM / TM < 4u ? 32u / (BM / TM) : 8u;
// Tiles are computed in bands of this many tile rows, which share cached operands.
const uint BAND = 8;

layout(buffer_reference, std430, buffer_reference_align = 16) restrict readonly buffer Vectors {
    vec4 v[];
};

layout(push_constant) uniform Push {
    uvec2 a, b, c, bias, y;
    // Stored blocks: [block][batch][row][column], with columns rounded up to vectors.
    uvec2 blocks;
    // For each batch axis but the outermost, innermost first: its length, and the steps along it in a, b and c.
    uvec2 table;
    uint m, n, k, batches, tiles_m, tiles_n;
    uint axes, a_step, b_step, c_step, c_row, c_column;
    float alpha, beta;
};

shared vec4 pool[POOL];

vec4 moved[A_SHARE + B_SHARE];
vec4 own[A_SHARE + B_SHARE];
float chains[TM * TN];
float totals[TM * TN];

// Returns the offsets of a batch's matrices in a, b and c.
uvec3 origins(const uint batch) {
    uvec3 origin = uvec3(0);
    uint rest = batch;
    for (uint i = 0; i < axes; i++) {
        uint length = load_word(table, 4u * i);
        for (uint j = 0; j < 3; j++) {
            origin[j] += rest % length * load_word(table, 4u * i + j + 1u);
        }
        rest /= length;
    }
    return origin + rest * uvec3(a_step, b_step, c_step);
}

// The positions of vector v of a step: along the tile, and along k.
uint outer_of(const uint v, const bool along_k, const uint tile) {
    return along_k ? v / (BK / 4u) : v % (tile / 4u) * 4u;
}

uint inner_of(const uint v, const bool along_k, const uint tile) {
    return along_k ? v % (BK / 4u) * 4u : v / (tile / 4u);
}

// Starts loading a thread's share of an operand's step.
void fetch(const uvec2 operand, const uint origin, const uint slot, const uint count, const bool along_k, const bool vectors,
    const uint tile, const uint extent, const uint first, const uint start) {
    for (uint i = 0; i < count; i++) {
        uint v = i * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
        uint outer = first + outer_of(v, along_k, tile), inner = start + inner_of(v, along_k, tile);
        if (vectors) {
            if (along_k) {
                inner = TAIL ? min(inner, k - 4u) : inner;
                moved[slot + i] = Vectors(operand).v[(origin + min(outer, extent - 1u) * k) / 4u + inner / 4u];
            } else {
                inner = TAIL || tile * BK / 4u % gl_WorkGroupSize.x != 0u ? min(inner, k - 1u) : inner;
                moved[slot + i] = Vectors(operand).v[(origin + min(outer, extent - 4u)) / 4u + inner * (extent / 4u)];
            }
        } else {
            for (uint e = 0; e < 4; e++) {
                uint o = min(along_k ? outer : outer + e, extent - 1u), p = min(along_k ? inner + e : inner, k - 1u);
                moved[slot + i][e] = load(operand, origin + (along_k ? o * k + p : p * extent + o));
            }
        }
    }
}

// Returns where a vector of one k is stored. Vectors are shuffled, so threads that write a column use different banks.
uint shuffled(const uint vector, const uint inner, const bool along_k, const uint tile) {
    return along_k && tile >= 32u ? vector ^ (inner / 4u * (32u / BK) & 7u) : vector;
}

// The same for a thread's vector i. Its first is `vector`, and the others follow at multiples of `step`.
uint shuffled_own(const uint vector, const uint i, const uint step, const uint inner, const bool along_k, const uint tile) {
    return step % 8u == 0u ? shuffled(vector, inner, along_k, tile) + i * step : shuffled(vector + i * step, inner, along_k, tile);
}

// Stores a thread's share in shared memory, with zeros behind the end of k.
void stage(const uint base, const uint slot, const uint count, const bool along_k, const bool direct, const uint tile,
    const uint start) {
    for (uint i = 0; i < count; i++) {
        uint v = i * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
        if (tile * BK / 4u % gl_WorkGroupSize.x != 0u && v >= tile * BK / 4u) {
            break;
        }
        uint outer = outer_of(v, along_k, tile), inner = inner_of(v, along_k, tile);
        uint to = base + inner * (tile / 4u) + shuffled(outer / 4u, inner, along_k, tile);
        vec4 x = moved[slot + i];
        if (along_k) {
            for (uint e = 0; e < 4; e++) {
                pool[to + e * (tile / 4u)][outer % 4u] = TAIL && start + inner + e >= k ? 0.0 : x[e];
            }
        } else {
            x = TAIL && start + inner >= k ? vec4(0.0) : x;
            if (direct) {
                own[slot + i] = x;
            } else {
                pool[to] = x;
            }
        }
    }
}

void multiply(const uint base, const uint x, const uint y) {
    for (uint p = 0; p < BK; p++) {
        float left[TM], right[TN];
        for (uint i = 0; i < TM / 4u; i++) {
            vec4 v = A_DIRECT ? own[p] : pool[base + shuffled_own(y, i, BM / TM, p, A_ALONG_K, BM) + p * (BM / 4u)];
            for (uint e = 0; e < 4; e++) {
                left[4u * i + e] = v[e];
            }
        }
        for (uint i = 0; i < TN / 4u; i++) {
            vec4 v = B_DIRECT ? own[A_SHARE + p]
                              : pool[base + shuffled_own(x, i, BN / TN, p, B_ALONG_K, BN) + p * (BN / 4u) + A_STEP];
            for (uint e = 0; e < 4; e++) {
                right[4u * i + e] = v[e];
            }
        }
        // In alternating direction: neighbours share an operand, which saves a register read.
        for (uint i = 0; i < TM; i++) {
            for (uint j = 0; j < TN; j++) {
                uint to = (i & 1u) == 0u ? j : TN - 1u - j;
                chains[TN * i + to] = fmaz(left[i], right[to], chains[TN * i + to]);
            }
        }
    }
}

// Finishes four results of a row, from an M total or a block's chains.
void finish(const vec4 chain, const uint batch, const uint row, const uint column, const uint c_at) {
    if (row >= m || column >= n) {
        return;
    }
    if (STAGE == 1u) {
        store4(blocks, ((gl_WorkGroupID.y * batches + batch) * m + row) * ((n + 3u) & ~3u) + column, chain);
        return;
    }
    uint at_y = (batch * m + row) * n + column;
    vec4 result;
    for (uint e = 0; e < 4; e++) {
        precise float x = total(chain[e]) * alpha;
        // Behind the last column, the last one is computed again.
        uint j = min(column + e, n - 1u);
        if (HAS_C) {
            x = x + beta * load(c, c_at + row * c_row + j * c_column);
        }
        if (HAS_BIAS) {
            x = x + load(bias, j);
        }
        if (RELU) {
            x = floatBitsToInt(x) > 0 || is_nan(x) ? x : 0.0;
        }
        result[e] = x;
        if (!Y_VECTORS && column + e < n) {
            store(y, at_y + e, x);
        }
    }
    if (Y_VECTORS) {
        store4(y, at_y, result);
    }
}

// Computes one block of the product of two vectors.
void multiply_vectors() {
    uint block = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationIndex, start = block * K_BLOCK;
    if (block > (k - 1u) / K_BLOCK) {
        return;
    }
    float chain = 0.0;
    // Zeros follow the end of a vector.
    for (uint p = start; p < min(start + K_BLOCK, k); p += 4u) {
        vec4 x = vec4(0.0), y = x;
        if (A_VECTORS) {
            x = Vectors(a).v[p / 4u];
            y = Vectors(b).v[p / 4u];
        } else {
            for (uint e = 0; e < min(4u, k - p); e++) {
                x[e] = load(a, p + e);
                y[e] = load(b, p + e);
            }
        }
        for (uint e = 0; e < 4; e++) {
            chain = fmaz(x[e], y[e], chain);
        }
    }
    store4(blocks, 4u * block, vec4(chain, 0.0, 0.0, 0.0));
}

// Adds the stored blocks of a workgroup's result vectors. There are BUFFERS vectors, and equally many threads fetch
// each.
void merge() {
    uint groups = batches * m * ((n + 3u) / 4u), count = (k + K_BLOCK - 1u) / K_BLOCK;
    uint member = gl_LocalInvocationIndex % BUFFERS, lane = gl_LocalInvocationIndex / BUFFERS, lanes = gl_WorkGroupSize.x / BUFFERS;
    uint group = gl_WorkGroupID.x * BUFFERS + member;
    vec4 t = vec4(0.0);
    for (uint first = 0; first < count; first += MERGED * lanes) {
        for (uint i = 0; i < MERGED; i++) {
            uint block = min(first + i * lanes + lane, count - 1u);
            pool[(i * lanes + lane) * BUFFERS + member] = Vectors(blocks).v[block * groups + min(group, groups - 1u)];
        }
        barrier();
        if (lane == 0u) {
            for (uint i = 0; i < min(MERGED * lanes, count - first); i++) {
                vec4 p = pool[i * BUFFERS + member];
                for (uint e = 0; e < 4; e++) {
                    t[e] = fmaz(p[e], 1.0, t[e]);
                }
            }
        }
        barrier();
    }
    uint row = group / ((n + 3u) / 4u);
    if (lane == 0u && group < groups) {
        finish(t, row / m, row % m, group % ((n + 3u) / 4u) * 4u, origins(row / m).z);
    }
}

void main() {
    if (STAGE >= 2u) {
        if (STAGE == 2u) {
            merge();
        } else {
            multiply_vectors();
        }
        return;
    }
    uint tiles = tiles_m * tiles_n, batch = gl_WorkGroupID.x / tiles, tile = gl_WorkGroupID.x % tiles;
    uint band = tile / (BAND * tiles_n) * BAND, high = min(tiles_m - band, BAND);
    tile %= BAND * tiles_n;
    uint first_row = (band + tile % high) * BM, first_column = tile / high * BN;
    uvec3 origin = origins(batch);
    uint a_at = origin.x, b_at = origin.y;

    uint patch_ = gl_LocalInvocationIndex / 32u, lane = gl_LocalInvocationIndex % 32u;
    uint x = patch_ % (BN / TN / PATCH) * PATCH + lane % PATCH;
    uint y = patch_ / (BN / TN / PATCH) * (32u / PATCH) + lane / PATCH;
    uint begin = STAGE == 1u ? gl_WorkGroupID.y * K_BLOCK : 0u, end = STAGE == 1u ? min(k, begin + K_BLOCK) : k;
    for (uint i = 0; i < TM * TN; i++) {
        totals[i] = 0.0;
        chains[i] = 0.0;
    }
    uint current = 0;
    fetch(a, a_at, 0u, A_SHARE, A_ALONG_K, A_VECTORS, BM, m, first_row, begin);
    fetch(b, b_at, A_SHARE, B_SHARE, B_ALONG_K, B_VECTORS, BN, n, first_column, begin);
    for (uint block = begin; block < end; block += K_BLOCK) {
        for (uint start = block; start < min(block + K_BLOCK, end); start += BK) {
            stage(current, 0u, A_SHARE, A_ALONG_K, A_DIRECT, BM, start);
            stage(current + A_STEP, A_SHARE, B_SHARE, B_ALONG_K, B_DIRECT, BN, start);
            // After the last step, the contents don't matter.
            barrier();
            // The branch prevents compilers from moving the loads down to their uses, past the multiplications that
            // should hide them.
            if (start + BK < end) {
                fetch(a, a_at, 0u, A_SHARE, A_ALONG_K, A_VECTORS, BM, m, first_row, start + BK);
                fetch(b, b_at, A_SHARE, B_SHARE, B_ALONG_K, B_VECTORS, BN, n, first_column, start + BK);
            }
            multiply(current, x, y);
            if (BUFFERS == 1u) {
                barrier();
            } else {
                current = STEP - current;
            }
        }
        if (BLOCKS) {
            for (uint i = 0; i < TM * TN; i++) {
                totals[i] = fmaz(chains[i], 1.0, totals[i]);
                chains[i] = 0.0;
            }
        }
    }
    barrier();
    [[dont_unroll]] for (uint part = 0; part < PARTS; part++) {
        for (uint i = 0; i < PART; i++) {
            vec4 v;
            for (uint e = 0; e < 4; e++) {
                for (uint p = 0; p < PARTS; p++) {
                    uint at_p = min(4u * (p * PART + i) + e, TM * TN - 1u);
                    v[e] = part == p ? BLOCKS ? totals[at_p] : chains[at_p] : v[e];
                }
            }
            pool[i * gl_WorkGroupSize.x + gl_LocalInvocationIndex] = v;
        }
        [[dont_unroll]] for (uint i = 0; i < min(PART, RESULTS - part * PART); i++) {
            uint at_i = part * PART + i, row = at_i / (TN / 4u), column = at_i % (TN / 4u);
            finish(pool[i * gl_WorkGroupSize.x + gl_LocalInvocationIndex], batch,
                first_row + (row / 4u * (BM / TM) + y) * 4u + row % 4u, first_column + (column * (BN / TN) + x) * 4u, origin.z);
        }
    }
}
