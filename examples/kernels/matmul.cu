// C = A B for row-major matrices: A is m by k, B is k by n, C is m by n. Each workgroup computes a tile of 16 by 16.
//
// A kernel's leading pointers are its buffers, and the other parameters its push constants. CUDA does not tell a kernel how
// long its buffers are, so there are two kernels. Neither checks the sizes:
//
//   matmul      for square matrices of 16 gridDim.x rows: dispatch (n / 16, n / 16, 1) workgroups; it has no push constants
//   matmul_mnk  for every size, with m, n and k as push constants: dispatch (ceil(n / 16), ceil(m / 16), 1) workgroups
//
// matmul.ptx is compiled from this file for compute capability 7.0 and later, as by `nvcc -ptx -arch=compute_70 matmul.cu`.
#define TILE 16

static __device__ void product(const float *a, const float *b, float *c, unsigned m, unsigned n, unsigned k) {
    // One extra column, so that neighbours are in different memory banks.
    __shared__ float tile_a[TILE][TILE + 1];
    __shared__ float tile_b[TILE][TILE + 1];
    unsigned x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    unsigned row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (unsigned first = 0; first < k; first += TILE) {
        // Elements outside the matrices count as zero.
        tile_a[y][x] = row < m && first + x < k ? a[size_t(row) * k + first + x] : 0.0f;
        tile_b[y][x] = first + y < k && column < n ? b[size_t(first + y) * n + column] : 0.0f;
        __syncthreads();
        for (unsigned i = 0; i < TILE; i++) {
            sum = fmaf(tile_a[y][i], tile_b[i][x], sum);
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[size_t(row) * n + column] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256) matmul(const float *a, const float *b, float *c) {
    unsigned n = gridDim.x * TILE;
    product(a, b, c, gridDim.y * TILE, n, n);
}

extern "C" __global__ void __launch_bounds__(256)
matmul_mnk(const float *a, const float *b, float *c, unsigned m, unsigned n, unsigned k) {
    product(a, b, c, m, n, k);
}
