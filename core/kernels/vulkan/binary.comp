// y = a op b, element by element, with broadcasting. The result's dimensions are merged where both operands allow it, so that
// along the last of them an operand goes on by one element or stays.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "memory.glsl"

layout(local_size_x = 256) in;

// 0 add, 1 sub, 2 mul, 3 div.
layout(constant_id = 10) const uint OP = 0;
// 1: everything lies at multiples of 16 bytes, and the last dimension is a multiple of four unless it is the only one.
layout(constant_id = 11) const uint VECTOR = 0;
layout(constant_id = 12) const uint VECTORS = 4;
// Elements from one to the next along the last dimension: 0 or 1.
layout(constant_id = 13) const uint A_STEP = 1;
layout(constant_id = 14) const uint B_STEP = 1;
// Merged dimensions: 1, 2, or 3 for more, described at `outer`.
layout(constant_id = 15) const uint RANK = 1;

layout(push_constant, scalar) uniform Push {
    uvec2 a;
    uvec2 b;
    uvec2 y;
    // For each dimension but the last, from the last but one to the first: its size, a's and b's elements between neighbours.
    uvec2 outer;
    uint n;
    // The last dimension.
    uint inner;
    uint a_row;
    uint b_row;
    uint rank;
};

// Which elements of a and b make element i.
uvec2 locate(const uint i) {
    uvec2 step_ = uvec2(A_STEP, B_STEP);
    if (RANK == 1u) {
        return i * step_;
    }
    uint row = i / inner;
    uvec2 offset = (i - row * inner) * step_;
    if (RANK == 2u) {
        return offset + row * uvec2(a_row, b_row);
    }
    for (uint d = 0u; d + 1u < rank; d++) {
        uint size = load_word(outer, 3u * d), rest = row / size;
        offset += (row - rest * size) * uvec2(load_word(outer, 3u * d + 1u), load_word(outer, 3u * d + 2u));
        row = rest;
    }
    return offset;
}

vec4 apply(const vec4 p, const vec4 q) {
    precise vec4 r;
    if (OP == 0u) {
        r = p + q;
    } else if (OP == 1u) {
        r = p - q;
    } else if (OP == 2u) {
        r = p * q;
    } else {
        for (uint k = 0u; k < 4u; k++) {
            r[k] = divide(p[k], q[k]);
        }
    }
    return r;
}

void main() {
    uint t = gl_LocalInvocationIndex;
    uint first = gl_WorkGroupID.x * (1024u * VECTORS);
    bool whole = VECTOR == 1u && n - first >= 1024u * VECTORS;
    vec4 p[VECTORS], q[VECTORS];
    for (uint j = 0u; j < VECTORS; j++) {
        if (whole) {
            uvec2 from = locate(first + 1024u * j + 4u * t);
            p[j] = A_STEP == 1u ? load4(a, from.x) : vec4(load(a, from.x));
            q[j] = B_STEP == 1u ? load4(b, from.y) : vec4(load(b, from.y));
        } else {
            for (uint k = 0u; k < 4u; k++) {
                uint i = first + 1024u * j + 256u * k + t;
                p[j][k] = q[j][k] = 1.0;
                if (i < n && i >= first) {
                    uvec2 from = locate(i);
                    p[j][k] = load(a, from.x);
                    q[j][k] = load(b, from.y);
                }
            }
        }
    }
    for (uint j = 0u; j < VECTORS; j++) {
        vec4 r = apply(p[j], q[j]);
        if (whole) {
            store4(y, first + 1024u * j + 4u * t, r);
        } else {
            for (uint k = 0u; k < 4u; k++) {
                uint i = first + 1024u * j + 256u * k + t;
                if (i < n && i >= first) {
                    store(y, i, r[k]);
                }
            }
        }
    }
}
