// Operations without arithmetic: transpose, concat, embedding, cast, comparisons, where.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "half.glsl"
#include "memory.glsl"

// What is done.
layout(constant_id = 10) const uint FUNCTION = 0;
// Bytes that are moved at a time, a unit: 1, 2, 4 or 16, or an element in a transposition: 2, 4 or 8.
layout(constant_id = 11) const uint BYTES = 4;
// transpose, 1: pairs of 16-bit elements along j are whole words of y. Of ids, dtype::DType's number: 3 i32, 4 i64, 5 u32; of
// compare's operands, any but f16's and bf16's.
layout(constant_id = 12) const uint KIND = 0;
// cast: dtype::DType's numbers, and 1 where four elements may be read and written at once: 32-bit ones at a multiple of 16 bytes,
// 16-bit ones at one of 8.
layout(constant_id = 13) const uint FROM = 0;
layout(constant_id = 14) const uint TO = 0;
layout(constant_id = 15) const uint VECTOR = 0;

// Rows are found by strides, or by ids; ids are checked, and what workgroups found is collected. ALONG: elements by ids along an axis. COMPARE: whether
// elements of x and ids are to each other as m says. SELECT: elements of x where flag's bools are true, and of ids elsewhere.
const uint COPY = 0u, GATHER = 1u, CHECK = 2u, COLLECT = 3u, TRANSPOSE = 4u, CAST = 5u, ALONG = 6u, COMPARE = 7u, SELECT = 8u;

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uvec2 x;
    uvec2 y;
    // For each of the axes that are not spoken of below, from the last to the first: its size, the units of x and of y between
    // neighbours. compare, select: the same of x, ids and flag.
    uvec2 outer;
    uvec2 ids;
    // Not 0 where an id is wrong.
    uvec2 flag;
    // Where wrong ids are said: the complement of the first one's position, the id in two words, the table's rows.
    uvec2 fault;
    uint rank;
    // transpose: i is below m and j below n. Else n units, ids or elements. along: m elements of the result have the axis's and all
    // behind it, x_row those behind it. compare: the outcomes of which it is true, as bits: 1 less, 2 equal,
    // 4 greater, 8 unordered. select: the units of a thread.
    uint m;
    uint n;
    // transpose: squares along both.
    uint m_squares;
    uint n_squares;
    // transpose: elements between neighbours along j of x and along i of y.
    uint x_row;
    uint y_row;
    // Units of a row. check: 1 where it is the last step.
    uint inner;
    // Of the table, or of the axis.
    uint rows;
};

#include "dtypes.glsl"
#include "cast.glsl"
#include "copy.glsl"
#include "broadcast.glsl"
#include "compare.glsl"
#include "transpose.glsl"

void main() {
    if (FUNCTION == TRANSPOSE) {
        transpose();
    } else if (FUNCTION == CAST) {
        convert_all();
    } else if (FUNCTION == COMPARE) {
        compare();
    } else if (FUNCTION == SELECT) {
        select_units();
    } else if (FUNCTION < CHECK || FUNCTION == ALONG) {
        copy();
    } else {
        check();
    }
}
