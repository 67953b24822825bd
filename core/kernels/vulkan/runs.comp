// Runs: elementwise operations one after another of what is in registers.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "functions.glsl"
#include "operations.glsl"
#include "memory.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    // Of one shape.
    uvec2 x;
    uvec2 y;
    // Elements.
    uint n;
    // Steps, and 256 more where x and y lie at multiples of 16 bytes.
    uint count;
    // Of each step: the other operand's address, or scale's factor; and, from the lowest bit on, in
    // 5 bits: the operation;
    // 1: whether the other operand is the left one;
    // 2: which it is. 0 an element for each, 1 four at once, 2 one for four, each where x and y may be read by fours; 3 the value itself;
    // 1: whether it has one element for each row, not one row for all of them;
    // the others: elements of a row, or 0 where it has as many elements as x.
    uint steps[24];
};

// Element i of an operand, of which those bits say what it has.
uint element(const uint i, const uint code) {
    uint per = code >> 9, row = per == 0u ? 0u : i / per;
    return (code & 256u) != 0u ? row : i - row * per;
}

vec4 fetch(const uvec2 address, const uint i, const bool whole, const uint code) {
    uint first = element(i, code);
    if (whole && (code & 64u) != 0u) {
        return load4(address, first);
    }
    if (whole && (code & 128u) != 0u) {
        return vec4(load(address, first));
    }
    vec4 v;
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        v[k] = load(address, element(min(i + (whole ? k : 256u * k), n - 1u), code));
    }
    return v;
}

void main() {
    uint i = gl_WorkGroupID.x * 1024u;
    bool whole = count >= 256u && n - i >= 1024u;
    i += gl_LocalInvocationIndex * (whole ? 4u : 1u);
    precise vec4 v = fetch(x, min(i, n - 1u), whole, 64u);
    for (uint at = 0u; at < 3u * (count & 255u); at += 3u) {
        uint code = steps[at + 2u], operation = code & 31u;
        vec4 a = v, b = vec4(f(steps[at]));
        if (operation >= ADD) {
            if ((code & 192u) != 192u) {
                b = fetch(uvec2(steps[at], steps[at + 1u]), i, whole, code);
            } else {
                b = v;
            }
            if ((code & 32u) != 0u) {
                a = b;
                b = v;
            }
        }
        if (operation == MUL || operation == SCALE) {
            v = a * b;
        } else if (operation == ADD) {
            v = a + b;
        } else if (operation == SUB) {
            v = a - b;
        } else {
            // Long ones by turns: they are there once.
            [[dont_unroll]] for (uint k = 0u; k < 4u; k++) {
                v = vec4(a.yzw, operate(operation, a.x, b.x, 0.0));
                a = v;
                b = b.yzwx;
            }
        }
        v = canonical(v);
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
