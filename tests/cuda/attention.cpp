#include "emulator.h"

namespace {
#include "attention.cu"

const Unit unit{
    ENTRY(attention_merge), ENTRY(attention_weights), ENTRY(attention_join), ENTRY(attention_cut), ENTRY(attention_digits), ENTRY(attention_whole_3), ENTRY(attention_whole_2), ENTRY(attention_rows), ENTRY(attention_64), ENTRY(attention_64_few), ENTRY(attention_128), ENTRY(attention_few),
};
}
