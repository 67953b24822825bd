// y = f(x), y = a op b with broadcasting, and the last step of softmax and the norms, whose statistics are broadcast operands too;
// and runs, several of the first two of what stays in registers.
//
// The result's dimensions are merged where the operands allow it, so that along the last one an operand goes on by one element or
// stays.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "functions.glsl"
#include "memory.glsl"
#include "operations.glsl"

layout(local_size_x = 256) in;

// One of operations.glsl's: of x, of x and p, of x, p and q.
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
// Fours of elements that a thread has in a run, 1 or 2: to find out what a step is takes as long as the step of one four.
layout(constant_id = 16) const uint FOURS = 1;

layout(push_constant, scalar) uniform Push {
    uvec2 x;
    uvec2 y;
    // Elements.
    uint n;
    // The last dimension. Of a run: its steps.
    uint inner;
    // The others' addresses, and where for each dimension but the last, from the last but one to the first, are its size, the
    // elements of x and of p between neighbours; elements between rows of x and of p; all dimensions; elements
    // between rope's pairs; a word; what a function is given besides: scale's factor, clamp's bounds.
    //
    // Of a run: of each step the other operand's address, or what the function is given besides; and, from the lowest bit on, in
    // 6 bits: the function, one that is of operands alone;
    // 1: whether the other operand is the left one;
    // 2: which it is. 0 an element for each, 1 four at once, 2 one for four, the latter where x and y are read by fours; 3 the
    //    value itself;
    // 1: whether it has one element for each row, not one row for all of them;
    // the others: elements of a row, or 0 where it has as many elements as x, and of one value. Rows of a run have one length.
    // Behind the steps: 2^(31 + s) / the elements of a row, rounded up, where s is the least for which 2^s ≥ these elements, because
    // a division would take much longer; and the elements of a row.
    uint more[26];
};
const uint P = 0u, Q = 2u, GAMMA = 4u, BETA = 6u, OUTER = 8u, X_ROW = 10u, P_ROW = 11u, ALL = 12u, APART = 13u, VALUE = 15u, SECOND = 16u;

uvec2 address(const uint at) {
    return uvec2(more[at], more[at + 1u]);
}

// Which elements make element i: of x, of p and q, of gamma and beta.
uvec3 locate(const uint i) {
    if (RANK == 1u) {
        return i * uvec3(X_STEP, P_STEP, 1u);
    }
    uint row = i / inner;
    uvec3 place = (i - row * inner) * uvec3(X_STEP, P_STEP, 1u);
    if (RANK == 2u) {
        return place + row * uvec3(more[X_ROW], more[P_ROW], 0u);
    }
    for (uint d = 0u; d + 1u < more[ALL]; d++) {
        uint size = load_word(address(OUTER), 3u * d), rest = row / size;
        place.xy += (row - rest * size) * uvec2(load_word(address(OUTER), 3u * d + 1u), load_word(address(OUTER), 3u * d + 2u));
        row = rest;
    }
    return place;
}

// a and b are p and q, or what a function of x is given besides. What has no case here is called by its number.
float apply(const uint function, const float v, const float a, const float b, const float g, const float h) {
    precise float r;
    if (function == RELU || function == SIGMOID || function == TANH || function == GELU_TANH || function == GELU_ERF
        || function == SILU) {
        r = activate(function, v);
    } else if (function == SCALE) {
        r = v * a;
    } else if (function == NEG) {
        r = f(floatBitsToUint(v) ^ SIGN);
    } else if (function == ABS) {
        r = f(floatBitsToUint(v) & MAGNITUDE);
    } else if (function == EXP) {
        r = function_exp(v);
    } else if (function == LOG) {
        r = function_log(v);
    } else if (function == ERF) {
        r = function_erf(v);
    } else if (function == SQRT) {
        r = root(v);
    } else if (function == RSQRT) {
        r = function_rsqrt(v);
    } else if (function == ADD) {
        r = v + a;
    } else if (function == SUB) {
        r = v - a;
    } else if (function == MUL) {
        r = v * a;
    } else if (function == DIV) {
        r = divide(v, a);
    } else if (FUNCTION == SOFTMAX) {
        r = v - a;
        r = divide(function_exp(r), b);
    } else if (FUNCTION == LAYERNORM || FUNCTION == RMSNORM) {
        if (FUNCTION == LAYERNORM) {
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
    } else if (FUNCTION == ROPE) {
        // g is the pair's other element; h says that this one is the second.
        precise float other = g * b;
        r = v * a;
        r = h != 0.0 ? r + other : r - other;
    } else {
        r = called(function, v, a, b);
    }
    return r;
}

// erf or gelu of four numbers. A subgroup mostly has numbers of both kinds, and behind a branch for each one nothing of the others would
// be under way.
vec4 erf_of_four(const uint function, const vec4 v) {
    bool all_near = true;
    precise vec4 x = v, half_ = 0.5 * v, y;
    if (function == GELU_ERF) {
        // As `activate`.
        x = v * 0.70710677;
    }
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        y[k] = erf_near(magnitude_of(x[k]));
        all_near = all_near && erf_is_near(x[k]);
    }
    if (!all_near) {
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            float far = erf_far(magnitude_of(x[k]));
            y[k] = erf_is_near(x[k]) ? y[k] : far;
        }
    }
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        y[k] = with_sign_of(y[k], x[k]);
    }
    if (function == GELU_ERF) {
        y = half_ * y;
        y = y + half_;
    }
    return y;
}

// The elements from i on, the result of a command.
vec4 one(const uint i, const bool whole) {
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
    vec4 a = vec4(f(more[VALUE])), b = vec4(f(more[SECOND])), g, h, v = fetch(x, of_x, whole, X_STEP);
    if (of_two(FUNCTION)) {
        a = fetch(address(P), of_p, whole, P_STEP);
    }
    if (FUNCTION == SOFTMAX || FUNCTION == LAYERNORM || FUNCTION == ROPE) {
        b = fetch(address(Q), of_p, whole, P_STEP);
    }
    if ((AFFINE & 1u) != 0u) {
        g = fetch(address(GAMMA), of_g, whole, 1u);
    }
    if ((AFFINE & 2u) != 0u) {
        h = fetch(address(BETA), of_g, whole, 1u);
    }
    if (FUNCTION == ROPE) {
        uint apart = more[APART];
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint e = whole ? i + k : min(i + 256u * k, n - 1u);
            bool second = (e / apart & 1u) != 0u;
            g[k] = load(x, second ? e - apart : e + apart);
            h[k] = second ? 1.0 : 0.0;
        }
    }
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        v[k] = apply(FUNCTION, v[k], a[k], b[k], g[k], h[k]);
    }
    return v;
}

// The row of an element of a run, by multiplication and shift.
uvec4 row_of(const uvec4 place) {
    uvec4 rows, low;
    umulExtended(place, uvec4(more[24]), rows, low);
    return rows >> findMSB(more[25] - 1u);
}

// The same, the result of a run.
void run(const uint i, const bool whole, out vec4 result[2]) {
    uvec4 place[2];
    // Of each four's first element: its number, its row, its place in the row.
    uvec3 first[2];
    precise vec4 v[2];
    [[unroll]] for (uint j = 0u; j < FOURS; j++) {
        place[j] = min(i + 1024u * j + (whole ? 1u : 256u) * uvec4(0u, 1u, 2u, 3u), uvec4(n - 1u));
        v[j] = fetch(x, place[j], whole, 1u);
        uint row = row_of(place[j]).x;
        first[j] = uvec3(place[j].x, row, place[j].x - row * more[25]);
    }
    for (uint at = 0u; at < 3u * inner; at += 3u) {
        uint code = more[at + 2u], function = code & 63u;
        vec4 a[2], b[2];
        [[unroll]] for (uint j = 0u; j < FOURS; j++) {
            a[j] = v[j];
            b[j] = vec4(f(more[at]));
        }
        if (of_two(function)) {
            uvec2 p = address(at);
            bool repeated = (code >> 10) != 0u, by_row = (code & 512u) != 0u;
            if ((code & 384u) == 384u) {
                b = v;
            } else if (whole && (code & 384u) != 0u) {
                [[unroll]] for (uint j = 0u; j < FOURS; j++) {
                    uint e = by_row ? (repeated ? first[j].y : 0u) : (repeated ? first[j].z : first[j].x);
                    b[j] = fetch(p, uvec4(e), true, code >> 7 & 1u);
                }
            } else {
                // With 0 elements of a row, the row is 0.
                [[unroll]] for (uint j = 0u; j < FOURS; j++) {
                    uvec4 rows = repeated ? row_of(place[j]) : uvec4(0u);
                    b[j] = fetch(p, by_row ? rows : place[j] - rows * more[25], false, 1u);
                }
            }
            if ((code & 64u) != 0u) {
                a = b;
                b = v;
            }
        }
        if (function == MUL || function == SCALE) {
            [[unroll]] for (uint j = 0u; j < FOURS; j++) {
                v[j] = a[j] * b[j];
            }
        } else if (function == ADD) {
            [[unroll]] for (uint j = 0u; j < FOURS; j++) {
                v[j] = a[j] + b[j];
            }
        } else if (function == SUB) {
            [[unroll]] for (uint j = 0u; j < FOURS; j++) {
                v[j] = a[j] - b[j];
            }
        } else if (function == ERF || function == GELU_ERF) {
            [[unroll]] for (uint j = 0u; j < FOURS; j++) {
                v[j] = erf_of_four(function, a[j]);
            }
        } else {
            // What is long by turns: it is there once.
            [[dont_unroll]] for (uint k = 0u; k < 4u * FOURS; k++) {
                a[0] = vec4(a[0].yzw, apply(function, a[0].x, b[0].x, f(more[at + 1u]), 0.0, 0.0));
                b[0] = b[0].yzwx;
                if (FOURS == 2u && (k & 3u) == 3u) {
                    vec4 other = a[0];
                    a[0] = a[1];
                    a[1] = other;
                    b[0] = b[1];
                }
            }
            v = a;
        }
        [[unroll]] for (uint j = 0u; j < FOURS; j++) {
            v[j] = canonical(v[j]);
        }
    }
    result = v;
}

void main() {
    uint fours = FUNCTION == RUN ? FOURS : 1u;
    uint i = gl_WorkGroupID.x * (1024u * fours);
    bool whole = VECTOR == 1u && n - i >= 1024u * fours;
    i += gl_LocalInvocationIndex * (whole ? 4u : 1u);
    vec4 v[2];
    if (FUNCTION == RUN) {
        run(i, whole, v);
    } else {
        v[0] = one(i, whole);
    }
    [[unroll]] for (uint j = 0u; j < fours; j++) {
        if (whole) {
            store4(y, i + 1024u * j, v[j]);
        } else {
            [[unroll]] for (uint k = 0u; k < 4u; k++) {
                uint e = i + 1024u * j + 256u * k;
                if (e < n) {
                    store(y, e, v[j][k]);
                }
            }
        }
    }
}
