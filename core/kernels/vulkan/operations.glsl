// Elementwise operations by their numbers. Include after functions.glsl.

// Of x: below 7 those of contract::Activation; then scale, which needs `value`. Of x and p: from add on.
const uint SCALE = 7u, NEG = 8u, ABS = 9u, EXP = 10u, LOG = 11u, SQRT = 12u, RSQRT = 13u, ADD = 14u, SUB = 15u, MUL = 16u, DIV = 17u;

float operate(const uint operation, const float x, const float p, const float value) {
    precise float r = x;
    if (operation < SCALE) {
        r = activate(operation, x);
    } else if (operation == SCALE) {
        r = x * value;
    } else if (operation == NEG) {
        r = f(floatBitsToUint(x) ^ SIGN);
    } else if (operation == ABS) {
        r = f(floatBitsToUint(x) & MAGNITUDE);
    } else if (operation == EXP) {
        r = function_exp(x);
    } else if (operation == LOG) {
        r = function_log(x);
    } else if (operation == SQRT) {
        r = root(x);
    } else if (operation == RSQRT) {
        r = function_rsqrt(x);
    } else if (operation == ADD) {
        r = x + p;
    } else if (operation == SUB) {
        r = x - p;
    } else if (operation == MUL) {
        r = x * p;
    } else {
        r = divide(x, p);
    }
    return r;
}
