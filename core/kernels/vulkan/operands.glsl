// The push constants of lines.comp. elementwise.comp has its own.
layout(push_constant, scalar) uniform Push {
    uvec2 x;
    uvec2 y;
    // Elements of a line or row, and the distance between neighbours in a line, in elements.
    uint n;
    uint inner;
    uvec2 p;
    uvec2 q;
    uvec2 gamma;
    uvec2 beta;
    uvec2 outer;
    uint x_row;
    uint p_row;
    uint rank;
    // For reductions: the blocks of a line, and of all lines. For rows: the number of rows.
    uint blocks;
    uint units;
    // n as a float.
    float value;
    float eps;
};
