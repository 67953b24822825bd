#include "emulator.h"

namespace {
#include "elementwise.cu"

const Unit unit{
    ENTRY(elementwise),
};
}
