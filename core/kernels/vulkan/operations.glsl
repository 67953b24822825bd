// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-core --lib function`; don't edit.
// CUDA's kernels include it too.

// The functions of elementwise kernels.
const uint RELU = 1u;
const uint SIGMOID = 2u;
const uint TANH = 3u;
const uint GELU_TANH = 4u;
const uint GELU_ERF = 5u;
const uint SILU = 6u;
const uint SCALE = 7u;
const uint NEG = 8u;
const uint ABS = 9u;
const uint EXP = 10u;
const uint LOG = 11u;
const uint SQRT = 12u;
const uint RSQRT = 13u;
const uint ADD = 14u;
const uint SUB = 15u;
const uint MUL = 16u;
const uint DIV = 17u;
const uint SOFTMAX = 18u;
const uint LAYERNORM = 19u;
const uint RMSNORM = 20u;
const uint RUN = 21u;
const uint FLOOR = 22u;
const uint ROUND = 23u;
const uint ERF = 24u;
const uint CLAMP = 25u;
const uint MAXIMUM = 26u;
const uint MINIMUM = 27u;
const uint SIN = 28u;
const uint COS = 29u;
const uint LOG1P = 30u;
const uint EXPM1 = 31u;
const uint POW = 32u;
const uint ROPE = 63u;

// Those that have a second operand, as bits: numbers below 32, then the others.
const uint OF_TWO = 1u << ADD | 1u << SUB | 1u << MUL | 1u << DIV | 1u << SOFTMAX | 1u << LAYERNORM | 1u << RMSNORM | 1u << MAXIMUM | 1u << MINIMUM;
const uint HIGH_OF_TWO = 1u << POW - 32u | 1u << ROPE - 32u;

bool of_two(const uint function) {
    return ((function < 32u ? OF_TWO : HIGH_OF_TWO) >> (function & 31u) & 1u) != 0u;
}

// What kernels call by number: of x, and of the second operand or what else the operation was given; NaN of another
// number.
float called(const uint function, const float x, const float a, const float b) {
    precise float y = f(NAN);
    if (function == FLOOR) {
        y = function_floor(x);
    } else if (function == ROUND) {
        y = function_round(x);
    } else if (function == CLAMP) {
        y = function_clamp(x, a, b);
    } else if (function == MAXIMUM) {
        y = function_maximum(x, a);
    } else if (function == MINIMUM) {
        y = function_minimum(x, a);
    } else if (function == SIN) {
        y = function_sin(x);
    } else if (function == COS) {
        y = function_cos(x);
    } else if (function == LOG1P) {
        y = function_log1p(x);
    } else if (function == EXPM1) {
        y = function_expm1(x);
    } else if (function == POW) {
        y = function_pow(x, a);
    }
    return y;
}
