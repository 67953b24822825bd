// The contract's functions (docs/contract.md, "Functions"), from E primitives alone, in its order. Include after contract.glsl.
// NaN goes through every one of them by itself, except through log's, whose steps work on bits.

// 2^n for n in [−126, 127].
float power_of_two(const int n) {
    return intBitsToFloat((n + 127) << 23);
}

// x·2^n in two steps, so that each power is a normal number.
float scale_by_power(const float x, const int n) {
    int h = n >> 1;
    precise float y = x * power_of_two(h);
    y = y * power_of_two(n - h);
    return y;
}

// e^x as (1 + u + r)·2^n, for x between −105 and 89: r in x, u in y and the bits of n in z.
vec3 exp_core(const float x) {
    precise float t = x * f(0x3fb8aa3bu) + f(0x4b400000u);
    precise float nf = t - f(0x4b400000u);
    precise float r = nf * f(0xbf317200u) + x;
    r = nf * f(0xb5bfbe8eu) + r;
    precise float q = f(0x3ab56890u) * r + f(0x3c091f97u);
    q = q * r + f(0x3d2aac27u);
    q = q * r + f(0x3e2aaa45u);
    q = q * r + f(0x3efffffeu);
    q = (r * r) * q;
    return vec3(r, q, intBitsToFloat(floatBitsToInt(t) - 0x4b400000));
}

float function_exp(const float x) {
    float low = x < -105.0 ? -105.0 : x;
    vec3 core = exp_core(low > 89.0 ? 89.0 : low);
    precise float s = core.y + core.x;
    s = s + 1.0;
    return scale_by_power(s, floatBitsToInt(core.z));
}

float function_log(const float x) {
    uint u = floatBitsToUint(x);
    if (u == 0u || u >= INFINITY) {
        return (u & MAGNITUDE) == 0u ? f(INFINITY | SIGN) : u == INFINITY ? x : f(NAN);
    }
    bool subnormal = u < 0x800000u;
    precise float scaled = x * 8388608.0;
    int bits = floatBitsToInt(subnormal ? scaled : x);
    int n = (bits - 0x3f3504f3) >> 23;
    float k = float(subnormal ? n - 23 : n);
    precise float v = intBitsToFloat(bits - (n << 23)) - 1.0;
    precise float r = f(0xbd9ce31eu) * v + f(0x3e02d7b0u);
    r = r * v + f(0xbe06c2edu);
    r = r * v + f(0x3e116a09u);
    r = r * v + f(0xbe2a38c7u);
    r = r * v + f(0x3e4cd01bu);
    r = r * v + f(0xbe800114u);
    r = r * v + f(0x3eaaaaaau);
    precise float square = v * v;
    precise float h = 0.5 * square;
    precise float lo = k * f(0x35bfbe8eu) + square * (v * r);
    precise float d = v - h;
    precise float e = (v - d) - h;
    precise float s = k * f(0x3f317200u);
    precise float hi = s + d;
    precise float e2 = (s - hi) + d;
    precise float y = hi + (lo + (e + e2));
    return y;
}

float with_sign_of(const float y, const float x) {
    return f((floatBitsToUint(y) & MAGNITUDE) | (floatBitsToUint(x) & SIGN));
}

float function_tanh(const float x) {
    float a = f(floatBitsToUint(x) & MAGNITUDE);
    precise float y;
    if (a < f(0x3f6b851fu)) {
        y = a * a;
        precise float q = f(0xb9e403e9u) * y + f(0x3b25b194u);
        q = q * y + f(0xbc067dd8u);
        q = q * y + f(0x3cb13d3fu);
        q = q * y + f(0xbd5cddb2u);
        q = q * y + f(0x3e088766u);
        q = q * y + f(0xbeaaaaa6u);
        y = a * (y * q) + a;
    } else {
        precise float twice = a + a;
        y = function_exp(twice > 20.0 ? 20.0 : twice) + 1.0;
        y = 1.0 - divide(2.0, y);
    }
    return with_sign_of(y, x);
}

float function_erf(const float x) {
    float a = f(floatBitsToUint(x) & MAGNITUDE);
    precise float y, q;
    if (a < f(0x3f547ae1u)) {
        y = a * a;
        q = f(0xba28e39du) * y + f(0x3ba63a36u);
        q = q * y + f(0xbcdbac93u);
        q = q * y + f(0x3de713aau);
        q = q * y + f(0xbec09397u);
        q = q * y + f(0x3e0375d4u);
        y = a * q + a;
    } else {
        // 1 − e^P with P about the logarithm of erfc, expanded where it is nearly a binary32 number.
        y = (a > f(0x407ccccdu) ? f(0x407ccccdu) : a) - f(0x3f7f4000u);
        q = f(0x395ce34fu) * y + f(0xbafb9c7eu);
        q = q * y + f(0x3c24525eu);
        q = q * y + f(0xbd2ab2c8u);
        q = q * y + f(0xbf57bddfu);
        q = q * y + f(0xc02893edu);
        q = q * y + f(0xbfebc2c5u);
        vec3 core = exp_core(q);
        float p = power_of_two(floatBitsToInt(core.z));
        y = (1.0 - p) - p * (core.y + core.x);
    }
    return with_sign_of(y, x);
}

float function_sigmoid(const float x) {
    float a = f(floatBitsToUint(x) | SIGN);
    vec3 core = exp_core(a < -105.0 ? -105.0 : a);
    precise float h = 1.0 + (core.y + core.x);
    precise float l = core.y - ((h - 1.0) - core.x);
    int n = floatBitsToInt(core.z);
    float z = scale_by_power(h, n);
    precise float sum = 1.0 + z;
    float v = divide(z, sum);
    precise float g = 1.0 - v;
    precise float w = (((z - v) - v * z) + scale_by_power(l, n) * g) * g + v;
    precise float rest = 1.0 - w;
    return x >= 0.0 ? rest : w;
}

float function_relu(const float x) {
    return floatBitsToInt(x) > 0 || is_nan(x) ? x : 0.0;
}

float function_rsqrt(const float x) {
    return divide(1.0, root(x));
}

// contract::Activation by its number; then, for the module of elementwise functions, the other ones.
float activate(const uint activation, const float x) {
    precise float y = x;
    if (activation == 1u) {
        y = function_relu(x);
    } else if (activation == 3u) {
        y = function_tanh(x);
    } else if (activation == 5u) {
        precise float t = x * f(0x3f3504f3u);
        y = 0.5 * x;
        y = y * function_erf(t) + y;
    } else if (activation != 0u) {
        // sigmoid, and x·sigmoid of x or of a polynomial.
        precise float t = x;
        if (activation == 4u) {
            t = x * ((x * x) * f(0x3d922279u) + f(0x3fcc422au));
        }
        y = function_sigmoid(t);
        if (activation != 2u) {
            y = x * y;
        }
    }
    return y;
}
