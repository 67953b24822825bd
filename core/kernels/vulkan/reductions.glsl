// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-core --lib function`; don't edit.
// CUDA's kernels include it too.

// The functions of lines, then those of contiguous rows, then others of lines.
const uint SUM = 0u;
const uint MAX = 1u;
const uint ARGMAX = 2u;
const uint MIN = 3u;
const uint ARGMIN = 4u;
const uint PROD = 5u;
const uint SOFTMAX = 16u;
const uint LAYERNORM = 17u;
const uint RMSNORM = 18u;
const uint CUMSUM = 19u;
const uint TOPK_SORT = 20u;
const uint TOPK_MERGE = 21u;

// Those of lines that give an index, as bits.
const uint OF_INDEX = 1u << ARGMAX | 1u << ARGMIN;
