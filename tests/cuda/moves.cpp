#include "emulator.h"

namespace {
#include "moves.cu"

const Unit unit{
    ENTRY(check), ENTRY(copy), ENTRY(transpose), ENTRY(cast), ENTRY(compare), ENTRY(select_units),
};
}
