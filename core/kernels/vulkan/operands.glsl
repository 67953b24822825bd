// The push constants of lines.comp; elementwise.comp has some of its own.
layout(push_constant, scalar) uniform Push {
    uvec2 x;
    uvec2 y;
    // Elements of a line or row; elements between neighbours of a line.
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
    // Reductions: blocks of a line, and of all lines. Rows: how many.
    uint blocks;
    uint units;
    // n as a number.
    float value;
    float eps;
};
