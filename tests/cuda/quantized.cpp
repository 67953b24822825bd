#include "emulator.h"

namespace {
#include "quantized.cu"

const Unit unit{
    ENTRY(quantized_cut), ENTRY(quantized_few), ENTRY(quantized_unpack), ENTRY(quantized_tiles), ENTRY(quantized_values),
};
}
