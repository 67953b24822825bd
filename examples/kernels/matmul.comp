#version 450
// C = A B for row-major matrices: A is m by k, B is k by n, C is m by n. Each workgroup computes a tile of 16 by 16, so
// dispatch (ceil(n / 16), ceil(m / 16), 1) of them. The sizes follow from the buffers' lengths, which are m k, k n and m n;
// larger buffers need all three as specialization constants.
layout(constant_id = 0) const uint M = 0;
layout(constant_id = 1) const uint N = 0;
layout(constant_id = 2) const uint K = 0;

const uint TILE = 16;
layout(local_size_x = TILE, local_size_y = TILE) in;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };

// One extra column, so that neighbours are in different memory banks.
shared float tile_a[TILE][TILE + 1];
shared float tile_b[TILE][TILE + 1];

void main() {
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    uint row = gl_WorkGroupID.y * TILE + y, column = gl_WorkGroupID.x * TILE + x;
    uint m = M, n = N, k = K;
    bool exact = true;
    if (m == 0 || n == 0 || k == 0) {
        // (m k) (m n) / (k n) is m squared.
        m = max(uint(round(sqrt(float(a.length()) * (float(c.length()) / float(b.length()))))), 1);
        k = max(a.length() / m, 1);
        n = max(c.length() / m, 1);
        exact = m * k == a.length() && k * n == b.length() && m * n == c.length();
    }
    if (!exact || k > a.length() / m || n > b.length() / k || n > c.length() / m) {
        // No product has these lengths: return NaN.
        uint i = row * gl_NumWorkGroups.x * TILE + column;
        if (i < c.length()) {
            c[i] = uintBitsToFloat(0x7fc00000);
        }
        return;
    }
    float sum = 0.0;
    for (uint first = 0; first < k; first += TILE) {
        // Elements outside the matrices count as zero.
        tile_a[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0.0;
        tile_b[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0.0;
        barrier();
        for (uint i = 0; i < TILE; i++) {
            sum = fma(tile_a[y][i], tile_b[i][x], sum);
        }
        barrier();
    }
    if (row < m && column < n) {
        c[row * n + column] = sum;
    }
}
