#version 450
// C = A B for row-major matrices: A is m by k, B is k by n, C is m by n. Each workgroup computes a tile of 16 by 16, so
// dispatch (ceil(n / 16), ceil(m / 16), 1) of them. The sizes are specialization constants: with the defaults,
// dispatch (32, 32, 1) multiplies matrices of 512 by 512.
layout(constant_id = 0) const uint M = 512;
layout(constant_id = 1) const uint N = 512;
layout(constant_id = 2) const uint K = 512;

const uint TILE = 16;
layout(local_size_x = TILE, local_size_y = TILE) in;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };

// A column more than needed, so that neighbours fall into different banks.
shared float tile_a[TILE][TILE + 1];
shared float tile_b[TILE][TILE + 1];

void main() {
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    uint row = gl_WorkGroupID.y * TILE + y, column = gl_WorkGroupID.x * TILE + x;
    float sum = 0.0;
    for (uint first = 0; first < K; first += TILE) {
        // What lies outside the matrices counts as zero.
        tile_a[y][x] = row < M && first + x < K ? a[row * K + first + x] : 0.0;
        tile_b[y][x] = first + y < K && column < N ? b[(first + y) * N + column] : 0.0;
        barrier();
        for (uint i = 0; i < TILE; i++) {
            sum = fma(tile_a[y][i], tile_b[i][x], sum);
        }
        barrier();
    }
    if (row < M && column < N) {
        c[row * N + column] = sum;
    }
}
