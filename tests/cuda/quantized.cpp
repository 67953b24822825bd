#include "emulator.h"

namespace {
#include "quantized.cu"

const Unit unit{
    ENTRY(quantized_cut), ENTRY(quantized_few), ENTRY(quantized_convert), ENTRY(quantized_tiles),
};
}
