#include "emulator.h"

namespace {
#include "lines.cu"

const Unit unit{
    ENTRY(reduce_along), ENTRY(reduce_across), ENTRY(softmax_rows), ENTRY(softmax_whole), ENTRY(layernorm_rows),
    ENTRY(layernorm_whole), ENTRY(rmsnorm_rows), ENTRY(rmsnorm_whole),
};
}
