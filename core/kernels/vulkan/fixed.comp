#version 450
// Batched matrix products of fixed-point numbers: y = alpha·(a·b) + beta·c + bias.
//
// STAGE 3 and STAGE 4 cut the operands' lines along k: they find each line's largest element, and then its scale and its
// digits of eight bits. Digits lie in blocks of 128 lines and 64 of k: [plane, highest digit first][16 bytes of k][line].
// STAGE 1 multiplies blocks, in tiles of 64 × 32. It rebuilds the numbers from digits and splits them into halves. So sums
// of products of halves fit in 32 bits over 256 of k. Totals have 96 bits.

#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "contract.glsl"
#include "memory.glsl"
#include "fixed.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;
layout(constant_id = 10) const uint STAGE = 1;
#include "fixed_products.glsl"

const uint BM = 64, BN = 32, BK = 32;

// The numbers of a step, one k after the other.
shared int pool[BK * (BM + BN)];

// What a workgroup works on to cut lines: those of a, then those of b, one matrix after the other. A matrix has tiles of
// lines, and a tile has steps along k.
struct Piece {
    bool of_a, along;
    uint lines, line_step, k_step, matrix, line, step_;
};

Piece piece_of(const uint tile, const uint steps) {
    Piece p;
    p.of_a = gl_WorkGroupID.x < w1;
    p.along = p.of_a ? A_ALONG : B_ALONG;
    p.lines = p.of_a ? w2 : w3;
    p.line_step = p.of_a ? axes : b_step;
    p.k_step = p.of_a ? a_step : c_step;
    uint group = p.of_a ? gl_WorkGroupID.x : gl_WorkGroupID.x - w1, tiles = (p.lines + tile - 1u) / tile;
    p.step_ = group % steps;
    p.line = group / steps % tiles * tile;
    p.matrix = group / steps / tiles;
    return p;
}

uint element(const Piece p, const uint line, const uint k) {
    return load_word(p.of_a ? p0 : p1, p.matrix * p.lines * w0 + line * p.line_step + k * p.k_step);
}

// Stores the largest magnitudes of parts of 32 lines. Neighbouring threads read neighbouring elements: of the same line, or
// of 32 lines.
void find_most() {
    Piece p = piece_of(32u, (w0 + w4 - 1u) / w4);
    uint thread = gl_LocalInvocationIndex, lane = thread % 32u, warp = thread / 32u;
    uint first = p.step_ * w4, last = min(first + w4, w0), own = p.along ? warp : lane;
    if (thread < 32u) {
        pool[thread] = 0;
    }
    barrier();
    uint most[8] = uint[](0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u);
    [[dont_unroll]] for (uint k = first + (p.along ? lane : warp); k < last; k += 32u) {
        // Eight loads are on their way.
        [[unroll]] for (uint i = 0u; i < 8u; i++) {
            uint line = p.line + own + (p.along ? 4u * i : 0u), at = k + (p.along ? 0u : 4u * i);
            uint x = line < p.lines && at < last ? element(p, line, at) : 0u;
            most[i] = max(most[i], x & MAGNITUDE);
        }
    }
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        atomicMax(pool[own + (p.along ? 4u * i : 0u)], int(most[i]));
    }
    barrier();
    if (thread < 32u && p.line + thread < p.lines) {
        uint place = (p.matrix * ((w0 + w4 - 1u) / w4) + p.step_) * p.lines + p.line + thread;
        store_word(p.of_a ? y : totals, place, uint(pool[thread]));
    }
}

// Stores the scales of 128 lines, and their digits of 64 of k.
void cut_lines() {
    uint blocks = (w0 + 63u) / 64u, parts = (w0 + w4 - 1u) / w4, thread = gl_LocalInvocationIndex;
    Piece p = piece_of(128u, blocks);
    uint own_line = p.line + thread, most = 0u;
    if (own_line < p.lines && !GIVEN) {
        [[dont_unroll]] for (uint i = 0u; i < parts; i++) {
            most = max(most, load_word(p.of_a ? y : totals, (p.matrix * parts + i) * p.lines + own_line));
        }
    }
    int scale = GIVEN ? value_scale(DIGITS) : scale_of(most, DIGITS);
    pool[thread] = scale;
    if (own_line < p.lines && p.step_ == 0u) {
        store_word(p.of_a ? c : bias, p.matrix * p.lines + own_line, uint(scale));
    }
    barrier();
    uint block = ((p.matrix * ((p.lines + 127u) / 128u) + p.line / 128u) * blocks + p.step_) * (DIGITS * PLANE);
    // Neighbouring threads read 64 elements of eight lines, or one of 128 lines.
    [[dont_unroll]] for (uint task = thread; task < 512u; task += THREADS) {
        uint own = p.along ? task / 32u * 8u + task % 8u : task % 128u, chunk = p.along ? task / 8u % 4u : task / 128u;
        uint line = p.line + own, k = p.step_ * 64u + chunk * 16u;
        if (line >= p.lines) {
            continue;
        }
        uvec4 planes[3] = uvec4[](uvec4(0u), uvec4(0u), uvec4(0u));
        [[unroll]] for (uint i = 0u; i < 16u; i++) {
            // Adds half a digit, so each byte is its digit plus 128.
            uint x = k + i < w0 ? element(p, line, k + i) : 0u;
            uint q = uint(cut(x, pool[own])) + (DIGITS == 3u ? 0x8080u : 0x80u);
            uint shift = i % 4u * 8u;
            planes[0][i / 4u] |= (q & 0xffu ^ 0x80u) << shift;
            planes[1][i / 4u] |= (q >> 8 & 0xffu ^ (DIGITS == 3u ? 0x80u : 0u)) << shift;
            planes[2][i / 4u] |= (q >> 16 & 0xffu) << shift;
        }
        uint place = block + chunk * 128u + own;
        for (uint i = 0u; i < DIGITS; i++) {
            Word4(at(p.of_a ? p2 : p3, place + (DIGITS - 1u - i) * PLANE, 4u)).v = planes[i];
        }
    }
}

// Rebuilds 16 numbers of a line from their digits, and stores them at `to` and every `edge` behind it.
void gather(const uvec2 operand, const uint from, const uint to, const uint edge) {
    uvec4 planes[3] = uvec4[](uvec4(0u), uvec4(0u), uvec4(0u));
    for (uint i = 0u; i < DIGITS; i++) {
        planes[i] = Word4(at(operand, from + i * PLANE, 4u)).v;
    }
    [[dont_unroll]] for (uint i = 0u; i < 16u; i++) {
        int shift = int(i % 4u * 8u);
        int x = bitfieldExtract(int(planes[0][i / 4u]), shift, 8);
        x = x * 256 + bitfieldExtract(int(planes[1][i / 4u]), shift, 8);
        pool[to + i * edge] = DIGITS == 3u ? x * 256 + bitfieldExtract(int(planes[2][i / 4u]), shift, 8) : x;
    }
}

Total sums[16];
// Sums of products of halves: high·high, the mixed ones, low·low. With 16 bits only b is split, and the mixed ones are
// unused.
ivec4 highs[4], middles[4], lows[4];

#define ROW(i)                                        \
    highs[i] += (DIGITS == 3u ? left_high[i] : left[i]) * right_high; \
    middles[i] += DIGITS == 3u ? left_high[i] * right_low + left_low[i] * right_high : ivec4(0); \
    lows[i] += (DIGITS == 3u ? left_low[i] : left[i]) * right_low;

void multiply(const uint row, const uint column) {
    [[dont_unroll]] for (uint p = 0u; p < BK; p++) {
        ivec4 left, right;
        uint a = p * BM + row, b = BK * BM + p * BN + column;
        left = ivec4(pool[a], pool[a + 1u], pool[a + 2u], pool[a + 3u]);
        right = ivec4(pool[b], pool[b + 1u], pool[b + 2u], pool[b + 3u]);
        const int BITS = DIGITS == 3u ? 12 : 8;
        ivec4 left_high = left + 2048 >> 12, left_low = left - (left_high << 12);
        ivec4 right_high = right + (1 << BITS - 1) >> BITS, right_low = right - (right_high << BITS);
        ROW(0) ROW(1) ROW(2) ROW(3)
    }
}

void add_up() {
    [[dont_unroll]] for (uint i = 0u; i < 16u; i++) {
        Total t = add_shifted(sums[i], lows[i / 4u][i % 4u], 0u);
        if (DIGITS == 3u) {
            t = add_shifted(t, middles[i / 4u][i % 4u], 12u);
        }
        sums[i] = add_shifted(t, highs[i / 4u][i % 4u], DIGITS == 3u ? 24u : 8u);
    }
    for (uint i = 0u; i < 4u; i++) {
        highs[i] = middles[i] = lows[i] = ivec4(0);
    }
}

// Computes a tile of a product over some blocks of k.
void product() {
    uint tiles_m = (w0 + BM - 1u) / BM, tiles_n = (w1 + BN - 1u) / BN;
    uint tile = gl_WorkGroupID.x % (tiles_m * tiles_n), batch = gl_WorkGroupID.x / (tiles_m * tiles_n);
    uint first_row = tile / tiles_n * BM, first_column = tile % tiles_n * BN;
    uvec3 origin = origins(batch);
    // The blocks of 128 lines start here.
    uint from_a = (origin.x * ((w0 + 127u) / 128u) + first_row / 128u) * w2;
    uint from_b = (origin.y * ((w1 + 127u) / 128u) + first_column / 128u) * w2;
    uint own_row = gl_LocalInvocationIndex / 8u * 4u, own_column = gl_LocalInvocationIndex % 8u * 4u;
    uint held = (gl_WorkGroupID.x * THREADS + gl_LocalInvocationIndex) * 48u;
    for (uint i = 0u; i < 4u; i++) {
        highs[i] = middles[i] = lows[i] = ivec4(0);
    }
    [[dont_unroll]] for (uint i = 0u; i < 16u; i++) {
        sums[i].low = FIRST ? 0u : load_word(totals, held + 3u * i);
        sums[i].middle = FIRST ? 0u : load_word(totals, held + 3u * i + 1u);
        sums[i].high = FIRST ? 0u : load_word(totals, held + 3u * i + 2u);
    }
    [[dont_unroll]] for (uint step_ = 2u * w3; step_ < 2u * w4; step_++) {
        uint chunk = step_ % 2u * 2u, block = step_ / 2u;
        barrier();
        uint line = gl_LocalInvocationIndex % BM, of_step = gl_LocalInvocationIndex / BM;
        gather(p0, (from_a + block) * (DIGITS * PLANE) + (chunk + of_step) * 128u + first_row % 128u + line, of_step * 16u * BM + line, BM);
        if (gl_LocalInvocationIndex < 2u * BN) {
            line = gl_LocalInvocationIndex % BN;
            of_step = gl_LocalInvocationIndex / BN;
            gather(p1, (from_b + block) * (DIGITS * PLANE) + (chunk + of_step) * 128u + first_column % 128u + line,
                BK * BM + of_step * 16u * BN + line, BN);
        }
        barrier();
        multiply(own_row, own_column);
        // After 256 of k, the 32-bit sums are added to the totals.
        if (step_ % 8u == 7u || step_ + 1u == 2u * w4) {
            add_up();
        }
    }
    [[dont_unroll]] for (uint i = 0u; i < 16u; i++) {
        if (!LAST) {
            store_word(totals, held + 3u * i, sums[i].low);
            store_word(totals, held + 3u * i + 1u, sums[i].middle);
            store_word(totals, held + 3u * i + 2u, sums[i].high);
            continue;
        }
        uint row = first_row + own_row + i / 4u, column = first_column + own_column + i % 4u;
        if (row < w0 && column < w1) {
            int s = int(load_word(p2, origin.x * w0 + row)), r = int(load_word(p3, origin.y * w1 + column));
            finish(sums[i], s, r, batch, row, column, origin);
        }
    }
}

void main() {
    if (STAGE == 3u) {
        find_most();
    } else if (STAGE == 4u) {
        cut_lines();
    } else {
        product();
    }
}
