#include "emulator.h"

namespace {
#include "integers.cu"

const Unit unit{ENTRY(arithmetic), ENTRY(fold), ENTRY(fixed_few)};
}
