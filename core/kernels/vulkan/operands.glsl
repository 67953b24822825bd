// The push constants of elementwise.comp and lines.comp.
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
    // elementwise: the last dimension. Reductions: elements between neighbours of a line.
    uint inner;
    // elementwise: elements between rows of x and of p, and all dimensions.
    uint x_row;
    uint p_row;
    uint rank;
    // Reductions: blocks of a line, and of all lines. Rows: how many.
    uint blocks;
    uint units;
    // scale: the factor. Else n as a number.
    float value;
    float eps;
};

// Four elements: one vector, one element four times, or wherever they are.
vec4 fetch(const uvec2 address, const uvec4 index, const bool whole, const uint step_) {
    if (whole) {
        return step_ == 1u ? load4(address, index.x) : vec4(load(address, index.x));
    }
    vec4 v;
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        v[k] = load(address, index[k]);
    }
    return v;
}
