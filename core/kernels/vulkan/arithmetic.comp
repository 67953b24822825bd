// Operations that compute, but for the products: elementwise, reductions, softmax and norms, casts. They are one module because they
// share most of their functions; a pipeline has one of them.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "functions.glsl"
#include "half.glsl"
#include "memory.glsl"

// elementwise.glsl. Of x: below 7 that of contract::Activation; 7 scale, 8 neg, 9 abs, 10 exp, 11 log, 12 sqrt, 13 rsqrt. Of x and
// p: 14 add, 15 sub, 16 mul, 17 div. Of x, p and q: 18 softmax (maximum, sum), 19 layernorm (mean, factor); 20 rmsnorm, of x and
// p (factor). Then those below.
layout(constant_id = 10) const uint FUNCTION = 0;
const uint SUM = 21u, MAX = 22u, ARGMAX = 23u, SOFTMAX_ROWS = 24u, LAYERNORM_ROWS = 25u, RMSNORM_ROWS = 26u, CAST = 27u;
// Invocations of a workgroup.
layout(constant_id = 11) const uint SIZE = 256;
// 1: every operand may be read by fours: it lies at a multiple of 16 bytes (a cast's 16-bit elements at one of 8), and so do lines
// and rows.
layout(constant_id = 12) const uint VECTOR = 0;
// Vectors of four, or in rows.glsl elements, that an invocation has under way.
layout(constant_id = 13) const uint VECTORS = 1;
// elementwise: the result's dimensions: 1, 2, or 3 for more, described at `outer`.
layout(constant_id = 14) const uint RANK = 1;
// elementwise: elements from one to the next along the last of them, of x and of p and q: 0 or 1.
layout(constant_id = 15) const uint X_STEP = 1;
layout(constant_id = 16) const uint P_STEP = 1;
// Norms, 1: gamma, 2: beta, 3: both.
layout(constant_id = 17) const uint AFFINE = 0;
// SUM: of what: 0 x, 1 exp(x − p), 2 (x − p)², 3 x², with one p for each line. cast: from which dtype::DType.
layout(constant_id = 18) const uint MAP = 0;
// SUM: 0 the sum, 1 divided by `value`, 2 the reciprocal square root of that plus eps. argmax: 0 the maximum, and its index to q;
// 1 the index in one word; 2 in two. cast: to which dtype::DType.
layout(constant_id = 19) const uint FINISH = 0;
// Reductions, 1: a line's elements lie `inner` apart.
layout(constant_id = 20) const uint ACROSS = 0;
// argmax, 1: of maxima, whose indices are at p.
layout(constant_id = 21) const uint PAIRS = 0;
// rows: blocks of a row, at most 8; a workgroup's rows; elements of an invocation.
layout(constant_id = 22) const uint BLOCKS = 1;
layout(constant_id = 23) const uint ROWS = 1;
layout(constant_id = 24) const uint STEPS = 1;
// Shared memory: STEPS·SIZE values in rows; 288 parts in reductions, SIZE / 4 in rows.
layout(constant_id = 25) const uint VALUES = 1;
layout(constant_id = 26) const uint PARTS = 1;

layout(local_size_x_id = 11) in;

layout(push_constant, scalar) uniform Push {
    uvec2 x;
    uvec2 p;
    uvec2 q;
    uvec2 y;
    uvec2 gamma;
    uvec2 beta;
    // elementwise: for each dimension but the last, from the last but one to the first: its size, the elements of x and of p between
    // neighbours.
    uvec2 outer;
    // Elements, or those of a line or row.
    uint n;
    // elementwise: the last dimension. Reductions across: elements between neighbours of a line.
    uint inner;
    // elementwise: elements between rows of x and of p, and all dimensions.
    uint x_row;
    uint p_row;
    uint rank;
    // Reductions: blocks of a line, and of all lines.
    uint blocks;
    uint units;
    // scale: the factor. Else n as a number.
    float value;
    float eps;
};

shared float values[VALUES];
shared uvec4 parts[PARTS];

#include "elementwise.glsl"
#include "reduce.glsl"
#include "rows.glsl"
#include "cast.glsl"
#include "probe.glsl"

void main() {
    if (FUNCTION < SUM) {
        elementwise();
    } else if (FUNCTION <= ARGMAX) {
        reduce();
    } else if (FUNCTION < CAST) {
        normalise();
    } else if (FUNCTION == CAST) {
        convert_all();
    } else {
        probe();
    }
}
