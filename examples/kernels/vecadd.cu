// c = a + b, elementwise. Dispatch (ceil(n / 256), 1, 1) workgroups.
//
// A kernel's leading pointers are its buffers, what follows are its push constants. vecadd.ptx is made of it for compute
// capability 7.0 and later; `nvcc -ptx -arch=compute_70 vecadd.cu` does as well.
extern "C" __global__ void __launch_bounds__(256) vecadd(const float *a, const float *b, float *c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
