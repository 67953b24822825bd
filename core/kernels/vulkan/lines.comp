// Reductions, sums and the greatest elements along lines, and softmax and norms of contiguous rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "functions.glsl"
#include "memory.glsl"
#include "operands.glsl"
#include "reductions.glsl"

layout(constant_id = 10) const uint FUNCTION = 0;
// Invocations of a workgroup: 256 for reductions, 32·BLOCKS·ROWS for rows.
layout(constant_id = 11) const uint SIZE = 256;
// Reductions: vectors of four that an invocation has under way.
layout(constant_id = 12) const uint VECTORS = 1;
// Shared memory: 288 parts for reductions, SIZE / 4 for rows.
layout(constant_id = 13) const uint PARTS = 1;
// 1, reductions: lines are contiguous, lie at multiples of 16 bytes and may be read by fours; rows: every lane has STEPS elements.
layout(constant_id = 14) const uint VECTOR = 0;
const bool WHOLE = VECTOR == 1u;
// Reductions, 1: a line's elements lie `inner` apart.
layout(constant_id = 15) const uint ACROSS = 0;
// SUM, of what: 0 x, 1 exp(x − p), 2 (x − p)², 3 x², with one p for each line. Of an index, 1: of elements, whose indices are at p.
layout(constant_id = 16) const uint MAP = 0;
// SUM: 0 the sum, 1 divided by `value`, 2 the reciprocal square root of that plus eps. Of an index: 0 the element, and its index to q;
// 1 the index in one word; 2 in two.
layout(constant_id = 17) const uint FINISH = 0;
// Rows: blocks of a row, at most 8; rows of a workgroup; elements of an invocation.
layout(constant_id = 18) const uint BLOCKS = 1;
layout(constant_id = 19) const uint ROWS = 1;
layout(constant_id = 20) const uint STEPS = 1;
// Norms, as bits: 1 gamma, 2 beta, 4 a residual at p.
layout(constant_id = 21) const uint AFFINE = 0;

layout(local_size_x_id = 11) in;

shared uvec4 parts[PARTS];

// SUM's tree over 32 lanes: the steps 16, 8 and 4 between parts, 2 and 1 within.
float tree(const uint o) {
    precise vec4 s[4];
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        s[k] = uintBitsToFloat(parts[o + k]) + uintBitsToFloat(parts[o + 4u + k]);
    }
    s[0] = (s[0] + s[2]) + (s[1] + s[3]);
    precise vec2 pair = s[0].xy + s[0].zw;
    precise float sum = pair.x + pair.y;
    return total(sum);
}

// PROD's.
float tree_of_product(const uint o) {
    precise vec4 s[4];
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        s[k] = uintBitsToFloat(parts[o + k]) * uintBitsToFloat(parts[o + 4u + k]);
    }
    s[0] = (s[0] * s[2]) * (s[1] * s[3]);
    precise vec2 pair = s[0].xy * s[0].zw;
    precise float product = pair.x * pair.y;
    return product;
}

#include "reduce.glsl"
#include "rows.glsl"
#include "topk.glsl"

// A block of 256 of a line. FINISH 0: its total. 1: the sum up to each element, with the one before the block from p.
void cumulate() {
    uint unit = gl_WorkGroupID.x * 256u + gl_LocalInvocationIndex;
    if (unit >= units) {
        return;
    }
    uint rest = unit / inner, outer_ = rest / blocks, block = rest - outer_ * blocks;
    uint base = (outer_ * n + block * 256u) * inner + unit - rest * inner, size = min(n - block * 256u, 256u);
    precise float before = 0.0, sum = 0.0;
    bool later = FINISH == 1u && block > 0u;
    if (later) {
        before = load(p, unit - inner);
    }
    for (uint i = 0u; i < size; i += 4u) {
        uvec4 place = base + min(i + uvec4(0u, 1u, 2u, 3u), uvec4(size - 1u)) * inner;
        vec4 v = fetch(x, place, false, 1u);
        for (uint k = 0u; k < 4u && i + k < size; k++) {
            sum = sum + v[k];
            if (FINISH == 1u) {
                precise float whole = before + sum;
                store(y, place[k], later ? whole : sum);
            }
        }
    }
    if (FINISH == 0u) {
        store(y, unit, sum);
    }
}

void main() {
    if (FUNCTION == CUMSUM) {
        cumulate();
    } else if (FUNCTION == TOPK_SORT) {
        sort_tiles();
    } else if (FUNCTION == TOPK_MERGE) {
        merge_runs();
    } else if (FUNCTION < SOFTMAX) {
        reduce();
    } else {
        normalise();
    }
}
