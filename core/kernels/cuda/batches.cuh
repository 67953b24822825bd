// The offsets of a batch's matrices, for every kind of product.
#pragma once
#include "contract.cuh"

struct Starts {
    size_t a, b, c;
};

// Returns a batch's offsets. `axes` of the table are the inner batch axes; `a_step`, `b_step` and `c_step` are for the
// outermost.
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
