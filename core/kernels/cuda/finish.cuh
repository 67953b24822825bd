// What follows a total of a product of digits.
#pragma once
#include "batches.cuh"
#include "glsl.cuh"

const uint HAS_C = 1, HAS_BIAS = 2, RELU = 4;
// The 16-byte chunks of a plane in a block of digits.
const uint PLANE = 512;

// Applies what follows a total, and stores the result.
template <class P>
INLINE void finish(const P &p, const uint has, float x, const uint batch, const uint row, const uint column, const Starts &at) {
    x = x * p.alpha;
    if (has & HAS_C) {
        x = x + p.beta * p.c[at.c + size_t(row) * p.c_row + size_t(column) * p.c_column];
    }
    if (has & HAS_BIAS) {
        x = x + p.bias[column];
    }
    if (has & RELU) {
        x = __float_as_int(x) > 0 || is_nan(x) ? x : 0.0f;
    }
    p.y[(size_t(batch) * p.m + row) * p.n + column] = canonical(x);
}
