// What follows a total of a product of digits.
#pragma once
#include "batches.cuh"
#include "glsl.cuh"

const uint HAS_C = 1, HAS_BIAS = 2, RELU = 4;
// The 16-byte chunks of a plane in a block of digits.
const uint PLANE = 512;

// Returns what follows a total x. −0, which changes no number, is added for an absent C or bias.
template <class P>
INLINE float finished(const P &p, const uint has, float x, const float c, const float bias) {
    x = x * p.alpha + (has & HAS_C ? p.beta * c : -0.0f) + (has & HAS_BIAS ? bias : -0.0f);
    return canonical(!(has & RELU) || __float_as_int(x) > 0 || is_nan(x) ? x : 0.0f);
}

// Applies what follows a total, and stores the result.
template <class P>
INLINE void finish(const P &p, const uint has, const float x, const uint batch, const uint row, const uint column, const Starts &at) {
    float c = has & HAS_C ? p.c[at.c + size_t(row) * p.c_row + size_t(column) * p.c_column] : 0.0f;
    float bias = has & HAS_BIAS ? p.bias[column] : 0.0f;
    p.y[(size_t(batch) * p.m + row) * p.n + column] = finished(p, has, x, c, bias);
}
