#include "emulator.h"

namespace {
#include "lines.cu"

const Unit unit{
    ENTRY(reduce_along), ENTRY(reduce_across), ENTRY(softmax_rows), ENTRY(softmax_whole), ENTRY(norm_rows),
    ENTRY(norm_whole), ENTRY(cumulate), ENTRY(topk_sort), ENTRY(topk_merge),
};
}
