// c = a + b, elementwise. Dispatch (ceil(n / 256), 1, 1) workgroups.
//
// A kernel's leading pointers are its buffers, and the other parameters its push constants. vecadd.ptx is compiled from this
// file for compute capability 7.0 and later, as by `nvcc -ptx -arch=compute_70 vecadd.cu`.
extern "C" __global__ void __launch_bounds__(256) vecadd(const float *a, const float *b, float *c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
