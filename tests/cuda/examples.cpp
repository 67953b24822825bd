// The examples of users' kernels.
#include "emulator.h"

namespace {
#include "vecadd.cu"

const Unit unit{
    ENTRY(vecadd),
};
}
