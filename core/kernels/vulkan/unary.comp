// y = f(x), element by element.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "functions.glsl"
#include "memory.glsl"

layout(local_size_x = 256) in;

// Below 7 that of contract::Activation; 7 scale, 8 neg, 9 abs, 10 exp, 11 log, 12 sqrt, 13 rsqrt.
layout(constant_id = 10) const uint FUNCTION = 0;
// 1: x and y lie at multiples of 16 bytes.
layout(constant_id = 11) const uint VECTOR = 0;
// Vectors of four that an invocation has under way.
layout(constant_id = 12) const uint VECTORS = 4;

layout(push_constant, scalar) uniform Push {
    uvec2 x;
    uvec2 y;
    uint n;
    float alpha;
};

float apply(const float v) {
    precise float y = v;
    if (FUNCTION < 7u) {
        y = activate(FUNCTION, v);
    } else if (FUNCTION == 7u) {
        y = v * alpha;
    } else if (FUNCTION == 8u) {
        y = f(floatBitsToUint(v) ^ SIGN);
    } else if (FUNCTION == 9u) {
        y = f(floatBitsToUint(v) & MAGNITUDE);
    } else if (FUNCTION == 10u) {
        y = function_exp(v);
    } else if (FUNCTION == 11u) {
        y = function_log(v);
    } else if (FUNCTION == 12u) {
        y = root(v);
    } else {
        y = function_rsqrt(v);
    }
    return y;
}

void main() {
    uint t = gl_LocalInvocationIndex;
    uint first = gl_WorkGroupID.x * (1024u * VECTORS);
    bool whole = VECTOR == 1u && n - first >= 1024u * VECTORS;
    vec4 v[VECTORS];
    for (uint j = 0u; j < VECTORS; j++) {
        if (whole) {
            v[j] = load4(x, first + 1024u * j + 4u * t);
        } else {
            for (uint k = 0u; k < 4u; k++) {
                uint i = first + 1024u * j + 256u * k + t;
                v[j][k] = i < n && i >= first ? load(x, i) : 0.0;
            }
        }
    }
    for (uint j = 0u; j < VECTORS; j++) {
        for (uint k = 0u; k < 4u; k++) {
            v[j][k] = apply(v[j][k]);
        }
        if (whole) {
            store4(y, first + 1024u * j + 4u * t, v[j]);
        } else {
            for (uint k = 0u; k < 4u; k++) {
                uint i = first + 1024u * j + 256u * k + t;
                if (i < n && i >= first) {
                    store(y, i, v[j][k]);
                }
            }
        }
    }
}
