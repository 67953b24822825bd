// Where the matrices of a batch are, for every kind of product.
#pragma once
#include "contract.cuh"

struct Starts {
    size_t a, b, c;
};

// Of a product's struct: `axes` of the table are the batch's inner axes, and `a_step`, `b_step`, `c_step` belong to the outermost.
template <class P>
INLINE Starts starts(const P &p, const uint batch, const Table &t) {
    Starts at = {0, 0, 0};
    uint rest = batch;
#pragma unroll 1
    for (uint i = 0; i < p.axes; i++) {
        uint length = t.words[4 * i], here = rest % length;
        at.a += size_t(here) * t.words[4 * i + 1];
        at.b += size_t(here) * t.words[4 * i + 2];
        at.c += size_t(here) * t.words[4 * i + 3];
        rest /= length;
    }
    at.a += size_t(rest) * p.a_step;
    at.b += size_t(rest) * p.b_step;
    at.c += size_t(rest) * p.c_step;
    return at;
}
