// y = f(x), y = a op b with broadcasting, and the last step of softmax and the norms, whose statistics are broadcast operands too.
//
// The result's dimensions are merged where the operands allow it, so that along the last one an operand goes on by one element or
// stays.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "functions.glsl"
#include "operations.glsl"
#include "memory.glsl"
#include "operands.glsl"

layout(local_size_x = 256) in;

// An operation; of x, p and q: 18 softmax (maximum, sum), 19 layernorm (mean, factor); 20 rmsnorm, of x and p (factor).
layout(constant_id = 10) const uint FUNCTION = 0;
// 1: everything lies at multiples of 16 bytes, and the last dimension is a multiple of four unless it is the only one.
layout(constant_id = 11) const uint VECTOR = 0;
// The result's dimensions: 1, 2, or 3 for more, described at `outer`.
layout(constant_id = 12) const uint RANK = 1;
// Elements from one to the next along the last of them, of x and of p and q: 0 or 1.
layout(constant_id = 13) const uint X_STEP = 1;
layout(constant_id = 14) const uint P_STEP = 1;
// 1: gamma, 2: beta, 3: both.
layout(constant_id = 15) const uint AFFINE = 0;

// Which elements make element i: of x, of p and q, of gamma and beta.
uvec3 locate(const uint i) {
    if (RANK == 1u) {
        return i * uvec3(X_STEP, P_STEP, 1u);
    }
    uint row = i / inner;
    uvec3 place = (i - row * inner) * uvec3(X_STEP, P_STEP, 1u);
    if (RANK == 2u) {
        return place + row * uvec3(x_row, p_row, 0u);
    }
    for (uint d = 0u; d + 1u < rank; d++) {
        uint size = load_word(outer, 3u * d), rest = row / size;
        place.xy += (row - rest * size) * uvec2(load_word(outer, 3u * d + 1u), load_word(outer, 3u * d + 2u));
        row = rest;
    }
    return place;
}

float apply(const float v, const float a, const float b, const float g, const float h) {
    precise float r;
    if (FUNCTION <= DIV) {
        r = operate(FUNCTION, v, a, value);
    } else if (FUNCTION == 18u) {
        r = v - a;
        r = divide(function_exp(r), b);
    } else {
        if (FUNCTION == 19u) {
            r = v - a;
            r = r * b;
        } else {
            r = v * a;
        }
        if ((AFFINE & 1u) != 0u) {
            r = r * g;
        }
        if ((AFFINE & 2u) != 0u) {
            r = r + h;
        }
    }
    return r;
}

void main() {
    uint i = gl_WorkGroupID.x * 1024u;
    bool whole = VECTOR == 1u && n - i >= 1024u;
    i += gl_LocalInvocationIndex * (whole ? 4u : 1u);
    uvec4 of_x, of_p, of_g;
    if (whole) {
        uvec3 place = locate(i);
        of_x.x = place.x;
        of_p.x = place.y;
        of_g.x = place.z;
    } else {
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uvec3 place = locate(min(i + 256u * k, n - 1u));
            of_x[k] = place.x;
            of_p[k] = place.y;
            of_g[k] = place.z;
        }
    }
    vec4 a, b, g, h, v = fetch(x, of_x, whole, X_STEP);
    if (FUNCTION >= 14u) {
        a = fetch(p, of_p, whole, P_STEP);
    }
    if (FUNCTION == 18u || FUNCTION == 19u) {
        b = fetch(q, of_p, whole, P_STEP);
    }
    if ((AFFINE & 1u) != 0u) {
        g = fetch(gamma, of_g, whole, 1u);
    }
    if ((AFFINE & 2u) != 0u) {
        h = fetch(beta, of_g, whole, 1u);
    }
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        v[k] = apply(v[k], a[k], b[k], g[k], h[k]);
    }
    if (whole) {
        store4(y, i, v);
        return;
    }
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        if (i + 256u * k < n) {
            store(y, i + 256u * k, v[k]);
        }
    }
}
