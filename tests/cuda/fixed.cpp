#include "emulator.h"

namespace {
#include "fixed.cu"

const Unit unit{
    ENTRY(fixed_cut), ENTRY(fixed_product_3), ENTRY(fixed_product_2), ENTRY(fixed_wide_3),
    ENTRY(fixed_wide_2), ENTRY(fixed_narrow_3), ENTRY(fixed_narrow_2),
};
}
