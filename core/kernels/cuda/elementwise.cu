// y = f(x), y = a op b with broadcasting, and the last step of softmax and the norms, whose statistics are broadcast operands too.
//
// The result's dimensions are merged where the operands allow it, so that along the last one an operand goes on by one element or
// stays.
#include "glsl.cuh"

struct Arguments {
    const float *x, *p, *q;
    float *y;
    const float *gamma, *beta;
    // The table, for each dimension but the last, from the last but one to the first: its size, the elements of x and of p between
    // neighbours.
    const void *outer;
    uint n, inner, x_row, p_row, rank, blocks, units;
    float value, eps;
};

// As specialization constants elsewhere. `function`: below 7 that of contract::Activation; 7 scale, 8 neg, 9 abs, 10 exp, 11 log,
// 12 sqrt, 13 rsqrt; 14 add, 15 sub, 16 mul, 17 div of x and p; 18 softmax (maximum, sum), 19 layernorm (mean, factor) of x, p and
// q; 20 rmsnorm of x and p (factor). `vector`: everything lies at multiples of 16 bytes, and the last dimension is a multiple of
// four unless it is the only one. `rank`: 1, 2, or 3 for more. Steps along the last dimension are 0 or 1. `affine`: gamma, beta.
struct Choice {
    uint function, vector, rank, x_step, p_step, affine;
};

// Which elements make element i: of x, of p and q, of gamma and beta.
INLINE uint3 locate(const Arguments &s, const Choice &c, const Table &t, const uint i) {
    if (c.rank == 1) {
        return make_uint3(i * c.x_step, i * c.p_step, i);
    }
    uint row = i / s.inner, column = i - row * s.inner;
    uint3 place = make_uint3(column * c.x_step, column * c.p_step, column);
    if (c.rank == 2) {
        place.x += row * s.x_row;
        place.y += row * s.p_row;
        return place;
    }
#pragma unroll 1
    for (uint d = 0; d + 1 < s.rank; d++) {
        uint size = t.words[3 * d], rest = row / size;
        place.x += (row - rest * size) * t.words[3 * d + 1];
        place.y += (row - rest * size) * t.words[3 * d + 2];
        row = rest;
    }
    return place;
}

// Four elements: one vector, one element four times, or wherever they are.
INLINE void fetch(float *v, const float *from, const uint *index, const bool whole, const uint step) {
    if (whole && step == 1) {
        float4 x = *reinterpret_cast<const float4 *>(from + index[0]);
        v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
        return;
    }
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        v[k] = from[index[whole ? 0 : k]];
    }
}

#define EACH(EXPRESSION) \
    _Pragma("unroll") for (uint k = 0; k < 4; k++) { \
        float x = v[k]; \
        v[k] = (EXPRESSION); \
    } \
    break

extern "C" __global__ void __launch_bounds__(256) elementwise(const Arguments s, const Choice c, TABLE t) {
    uint i = blockIdx.x * 1024;
    bool whole = c.vector == 1 && s.n - i >= 1024;
    i += threadIdx.x * (whole ? 4 : 1);
    uint of_x[4], of_p[4], of_g[4];
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        if (k == 0 || !whole) {
            uint3 place = locate(s, c, t, min(i + 256 * k, s.n - 1));
            of_x[k] = place.x, of_p[k] = place.y, of_g[k] = place.z;
        }
    }
    float v[4], a[4], b[4], g[4], h[4];
    fetch(v, s.x, of_x, whole, c.x_step);
    if (c.function >= 14) {
        fetch(a, s.p, of_p, whole, c.p_step);
    }
    if (c.function == 18 || c.function == 19) {
        fetch(b, s.q, of_p, whole, c.p_step);
    }
    if (c.affine & 1) {
        fetch(g, s.gamma, of_g, whole, 1);
    }
    if (c.affine & 2) {
        fetch(h, s.beta, of_g, whole, 1);
    }
    switch (c.function) {
    case 1: EACH(function_relu(x));
    case 2: EACH(function_sigmoid(x));
    case 3: EACH(function_tanh(x));
    case 4: EACH(activate(4, x));
    case 5: EACH(activate(5, x));
    case 6: EACH(activate(6, x));
    case 7: EACH(x * s.value);
    case 8: EACH(of_bits(bits(x) ^ SIGN));
    case 9: EACH(of_bits(bits(x) & MAGNITUDE));
    case 10: EACH(function_exp(x));
    case 11: EACH(function_log(x));
    case 12: EACH(root(x));
    case 13: EACH(function_rsqrt(x));
    case 14: EACH(x + a[k]);
    case 15: EACH(x - a[k]);
    case 16: EACH(x * a[k]);
    case 17: EACH(divide(x, a[k]));
    case 18: EACH(divide(function_exp(x - a[k]), b[k]));
    case 19: EACH((x - a[k]) * b[k]);
    case 20: EACH(x * a[k]);
    }
    if (c.affine & 1) {
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            v[k] = v[k] * g[k];
        }
    }
    if (c.affine & 2) {
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            v[k] = v[k] + h[k];
        }
    }
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        v[k] = canonical(v[k]);
    }
    if (whole) {
        *reinterpret_cast<float4 *>(s.y + i) = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        if (i + 256 * k < s.n) {
            s.y[i + 256 * k] = v[k];
        }
    }
}
