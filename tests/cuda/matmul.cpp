#include "emulator.h"

namespace {
#include "matmul.cu"

const Unit unit{
    ENTRY(matmul_merge), ENTRY(matmul_vectors), ENTRY(matmul_128x128), ENTRY(matmul_64x64),
    ENTRY(matmul_32x64), ENTRY(matmul_16x32), ENTRY(matmul_4x128), ENTRY(matmul_1x32),
};
}
