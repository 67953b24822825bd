// The examples of users' kernels.
#include "emulator.h"
#include <mutex>

// They declare shared memory as every program for CUDA does. Here it is static, so only one of these kernels runs at a time.
#undef __shared__
#define __shared__ static

namespace {
// By its path, as a file of the operations' has the same name.
#include "../../examples/kernels/matmul.cu"
#include "vecadd.cu"

std::mutex one;
#define ALONE(NAME) \
    {#NAME, [](const char *p, dim3u g, dim3u b, size_t s) { std::lock_guard<std::mutex> lock(one); call(NAME, p, g, b, s); }}

const Unit unit{
    ALONE(matmul),
    ALONE(matmul_mnk),
    ENTRY(vecadd),
};
}
