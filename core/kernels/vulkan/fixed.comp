#version 450
// Batched matrix products of fixed-point numbers: y = alpha·(a·b) + beta·c + bias.
//
// STAGE 0 cuts the operands' lines along k. It finds each line's largest element and its scale, and stores digits of
// eight bits. They lie in blocks of 128 lines and 64 of k: [plane, highest digit first][16 bytes of k][line]. STAGE 1
// multiplies blocks, in tiles of 64 × 32. It rebuilds the numbers from digits and splits them into halves. So sums of
// products of halves fit in 32 bits over 256 of k. Totals have 96 bits.

#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "contract.glsl"
#include "memory.glsl"
#include "fixed.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;
layout(constant_id = 10) const uint STAGE = 1;
layout(constant_id = 11) const uint DIGITS = 3;
// Bits: there is a C; there is a bias; relu comes last; this dispatch starts at the first k; it ends at the last k. For
// cutting: the elements of a's lines are contiguous; those of b's lines are; b's scale is that of attention's values.
layout(constant_id = 12) const uint HAS = 0;

const bool HAS_C = (HAS & 1u) != 0u;
const bool HAS_BIAS = (HAS & 2u) != 0u;
const bool RELU = (HAS & 4u) != 0u;
const bool FIRST = (HAS & 8u) != 0u;
const bool LAST = (HAS & 16u) != 0u;
const bool A_ALONG = (HAS & 32u) != 0u;
const bool B_ALONG = (HAS & 64u) != 0u;
const bool GIVEN = (HAS & 128u) != 0u;

const uint BM = 64, BN = 32, BK = 32;
// The 16-byte chunks of a plane in a block.
const uint PLANE = 512;

layout(push_constant) uniform Push {
    // Products: digits and scales of both operands. Cutting: both operands, then their digits.
    uvec2 p0, p1, p2, p3;
    // Cutting: the scales of both operands.
    uvec2 c, bias;
    uvec2 y, totals;
    // For each batch axis but the outermost, innermost first: its length, and the steps along it in a and b (in
    // matrices) and c.
    uvec2 table;
    // Products: m, n, blocks of k in total, the first block here, the block behind the last here. Cutting: k, groups of
    // eight lines of a, lines of a matrix of a, and of b.
    uint w0, w1, w2, w3, w4;
    // Products: steps of the batches. Cutting: a's distances between lines and along k, then b's.
    uint axes, a_step, b_step, c_step, c_row, c_column;
    float alpha, beta;
};

// The numbers of a step, one k after the other.
shared int pool[BK * (BM + BN)];

// Cuts eight lines: the lines of a, then those of b, one matrix after the other, each padded to blocks of 128. If a
// line is contiguous, sixteen threads read it. If lines lie side by side, eight neighbouring threads read one element
// of each.
void cut_lines() {
    bool of_a = gl_WorkGroupID.x < w1, along = of_a ? A_ALONG : B_ALONG;
    uint lines = of_a ? w2 : w3, line_step = of_a ? axes : b_step, k_step = of_a ? a_step : c_step;
    uint group = of_a ? gl_WorkGroupID.x : gl_WorkGroupID.x - w1, groups = (lines + 127u) / 128u * 16u;
    uint matrix = group / groups, first_line = group % groups * 8u, origin = matrix * lines * w0;
    uvec2 from = of_a ? p0 : p1, to = of_a ? p2 : p3;
    uint thread = gl_LocalInvocationIndex, own = along ? thread / 16u : thread % 8u, begin = along ? thread % 16u : thread / 8u;
    uint most = 0u;
    if (first_line + own < lines) {
        [[dont_unroll]] for (uint p = begin; p < w0; p += 16u) {
            most = max(most, load_word(from, origin + (first_line + own) * line_step + p * k_step) & MAGNITUDE);
        }
    }
    pool[own * 16u + begin] = int(most);
    barrier();
    if (thread < 8u) {
        [[dont_unroll]] for (uint i = 0u; i < 16u; i++) {
            most = max(i == 0u ? 0u : most, uint(pool[thread * 16u + i]));
        }
        int scale = GIVEN && !of_a ? value_scale(DIGITS) : scale_of(most, DIGITS);
        pool[THREADS + thread] = scale;
        if (first_line + thread < lines) {
            store_word(of_a ? c : bias, matrix * lines + first_line + thread, uint(scale));
        }
    }
    barrier();
    uint blocks = (w0 + 63u) / 64u;
    [[dont_unroll]] for (uint task = thread; task < 32u * blocks; task += THREADS) {
        uint chunk = task / 8u, line = first_line + task % 8u, k = chunk * 16u;
        uvec4 planes[3] = uvec4[](uvec4(0u), uvec4(0u), uvec4(0u));
        [[dont_unroll]] for (uint i = 0u; i < 16u; i++) {
            // Adds half a digit, so each byte is its digit plus 128.
            uint x = line < lines && k + i < w0 ? load_word(from, origin + line * line_step + (k + i) * k_step) : 0u;
            uint q = uint(cut(x, pool[THREADS + task % 8u])) + (DIGITS == 3u ? 0x8080u : 0x80u);
            uint shift = i % 4u * 8u;
            planes[0][i / 4u] |= (q & 0xffu ^ 0x80u) << shift;
            planes[1][i / 4u] |= (q >> 8 & 0xffu ^ (DIGITS == 3u ? 0x80u : 0u)) << shift;
            planes[2][i / 4u] |= (q >> 16 & 0xffu) << shift;
        }
        uint place = (group / 16u * blocks + chunk / 4u) * (DIGITS * PLANE) + chunk % 4u * 128u + line % 128u;
        for (uint i = 0u; i < DIGITS; i++) {
            Word4(at(to, place + (DIGITS - 1u - i) * PLANE, 4u)).v = planes[i];
        }
    }
}

// Returns a batch's matrices of a and b, and its offset in c.
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

void finish(const Total t, const uint batch, const uint row, const uint column, const uvec3 origin) {
    int s = int(load_word(p2, origin.x * w0 + row)), r = int(load_word(p3, origin.y * w1 + column));
    precise float x = f(s == NOT_FINITE || r == NOT_FINITE ? NAN : rounded(t, -s - r));
    x = canonical(x * alpha);
    if (HAS_C) {
        x = x + beta * load(c, origin.z + row * c_row + column * c_column);
    }
    if (HAS_BIAS) {
        x = x + load(bias, column);
    }
    if (RELU) {
        x = floatBitsToInt(x) > 0 || is_nan(x) ? x : 0.0;
    }
    store(y, (batch * w0 + row) * w1 + column, x);
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
            finish(sums[i], batch, row, column, origin);
        }
    }
}

void main() {
    if (STAGE == 0u) {
        cut_lines();
    } else {
        product();
    }
}
