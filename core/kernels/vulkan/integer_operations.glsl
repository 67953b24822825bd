// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-core --lib integers`; don't edit.
// CUDA's kernels include it too.

// The operations on integers, by their numbers.
const uint OP_ADD = 2u;
const uint OP_SUB = 3u;
const uint OP_MUL = 4u;
const uint OP_DIV = 5u;
const uint OP_NEG = 7u;
const uint OP_ABS = 8u;
const uint OP_SUM = 19u;
const uint OP_MAX = 21u;
const uint OP_ARGMAX = 22u;
const uint OP_MAXIMUM = 35u;
const uint OP_MINIMUM = 36u;
const uint OP_MIN = 53u;
const uint OP_ARGMIN = 54u;
const uint OP_PROD = 55u;
