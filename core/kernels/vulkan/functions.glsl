// The contract's functions (docs/contract.md, "Functions"), from E primitives alone, in its order. Include after contract.glsl.
// Its bit patterns are written as the shortest decimals that give them. NaN goes through every one of them by itself, except through log's, whose steps work on bits.

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

// The same of an x about 1, for which a power that leaves the result normal is a sum of exponents.
float scale_near_one(const float x, const int n) {
    return uint(n + 125) < 253u ? f(floatBitsToUint(x) + (uint(n) << 23)) : scale_by_power(x, n);
}

// e^x as (1 + u + r)·2^n, for x between −105 and 89: r in x, u in y and the bits of n in z.
vec3 exp_core(const float x) {
    precise float t = x * 1.442695f + 1.2582912e+07f;
    precise float nf = t - 1.2582912e+07f;
    precise float r = nf * -0.69314575f + x;
    r = nf * -1.4286068e-06f + r;
    precise float q = 0.0013840366f * r + 0.008369348f;
    q = q * r + 0.041668084f;
    q = q * r + 0.16666515f;
    q = q * r + 0.49999994f;
    q = (r * r) * q;
    return vec3(r, q, intBitsToFloat(floatBitsToInt(t) - 0x4b400000));
}

float function_exp(const float x) {
    float low = x < -105.0f ? -105.0f : x;
    vec3 core = exp_core(low > 89.0f ? 89.0f : low);
    precise float s = core.y + core.x;
    s = s + 1.0f;
    return scale_near_one(s, floatBitsToInt(core.z));
}

float function_log(const float x) {
    uint u = floatBitsToUint(x);
    if (u == 0u || u >= INFINITY) {
        return (u & MAGNITUDE) == 0u ? f(INFINITY | SIGN) : u == INFINITY ? x : f(NAN);
    }
    bool subnormal = u < 0x800000u;
    precise float scaled = x * 8388608.0f;
    int bits = floatBitsToInt(subnormal ? scaled : x);
    int n = (bits - 0x3f3504f3) >> 23;
    float k = float(subnormal ? n - 23 : n);
    precise float v = intBitsToFloat(bits - (n << 23)) - 1.0f;
    precise float r = -0.07660507f * v + 0.12777591f;
    r = r * v + -0.13160296f;
    r = r * v + 0.14200605f;
    r = r * v + -0.16623221f;
    r = r * v + 0.20001261f;
    r = r * v + -0.25000823f;
    r = r * v + 0.3333333f;
    precise float square = v * v;
    precise float h = 0.5f * square;
    precise float lo = k * 1.4286068e-06f + square * (v * r);
    precise float d = v - h;
    precise float e = (v - d) - h;
    precise float s = k * 0.69314575f;
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
    if (a < 0.92f) {
        y = a * a;
        precise float q = -4.3490462e-04f * y + 0.0025282847f;
        q = q * y + -0.008208714f;
        q = q * y + 0.02163565f;
        q = q * y + -0.053922363f;
        q = q * y + 0.133329f;
        q = q * y + -0.3333332f;
        y = a * (y * q) + a;
    } else {
        precise float twice = a + a;
        y = function_exp(twice > 20.0f ? 20.0f : twice) + 1.0f;
        y = 1.0f - divide(2.0f, y);
    }
    return with_sign_of(y, x);
}

float function_erf(const float x) {
    float a = f(floatBitsToUint(x) & MAGNITUDE);
    precise float y, q;
    if (a < 0.83f) {
        y = a * a;
        q = -6.4426084e-04f * y + 0.0050728573f;
        q = q * y + -0.026815688f;
        q = q * y + 0.112830475f;
        q = q * y + -0.37612602f;
        q = q * y + 0.12837917f;
        y = a * q + a;
    } else {
        // 1 − e^P with P about the logarithm of erfc, expanded where it is nearly a binary32 number.
        y = (a > 3.95f ? 3.95f : a) - 0.9970703f;
        q = 2.1065514e-04f * y + -0.0019196419f;
        q = q * y + 0.0100294035f;
        q = q * y + -0.041674405f;
        q = q * y + -0.84274095f;
        q = q * y + -2.6340287f;
        q = q * y + -1.8418814f;
        vec3 core = exp_core(q);
        float p = power_of_two(floatBitsToInt(core.z));
        y = (1.0f - p) - p * (core.y + core.x);
    }
    return with_sign_of(y, x);
}

float function_sigmoid(const float x) {
    float a = f(floatBitsToUint(x) | SIGN);
    vec3 core = exp_core(a < -105.0f ? -105.0f : a);
    precise float h = 1.0f + (core.y + core.x);
    precise float l = core.y - ((h - 1.0f) - core.x);
    int n = floatBitsToInt(core.z);
    float z = scale_near_one(h, n);
    precise float sum = 1.0f + z;
    float v = divide(z, sum);
    precise float g = 1.0f - v;
    precise float w = (((z - v) - v * z) + scale_by_power(l, n) * g) * g + v;
    precise float rest = 1.0f - w;
    return x >= 0.0f ? rest : w;
}

float function_relu(const float x) {
    return floatBitsToInt(x) > 0 || is_nan(x) ? x : 0.0f;
}

float function_rsqrt(const float x) {
    return divide(1.0f, root(x));
}

// To the nearest integer, ties to even: 2²³ above |x| nothing is left of a fraction.
float function_round(const float x) {
    float a = f(floatBitsToUint(x) & MAGNITUDE);
    precise float y = a + 8388608.0f;
    y = y - 8388608.0f;
    return a < 8388608.0f ? with_sign_of(y, x) : x;
}

// By MAX's order, as a device may take a subnormal number for a zero where it compares.
float function_floor(const float x) {
    float r = function_round(x);
    precise float less = r - 1.0f;
    return max_key(r) > max_key(x) ? less : r;
}

float function_maximum(const float a, const float b) {
    int p = max_key(a), q = max_key(b);
    return max_of_key(p > q ? p : q);
}

float function_minimum(const float a, const float b) {
    int p = max_key(a), q = max_key(b);
    return is_nan(a) || is_nan(b) ? f(NAN) : max_of_key(p < q ? p : q);
}

float function_clamp(const float x, const float low, const float high) {
    return function_minimum(function_maximum(x, low), high);
}

// contract::Activation by its number; then, for the module of elementwise functions, the other ones.
float activate(const uint activation, const float x) {
    precise float y = x;
    if (activation == 1u) {
        y = function_relu(x);
    } else if (activation == 3u) {
        y = function_tanh(x);
    } else if (activation == 5u) {
        precise float t = x * 0.70710677f;
        y = 0.5f * x;
        y = y * function_erf(t) + y;
    } else if (activation != 0u) {
        // sigmoid, and x·sigmoid of x or of a polynomial.
        precise float t = x;
        if (activation == 4u) {
            t = x * ((x * x) * 0.071354814f + 1.5957692f);
        }
        y = function_sigmoid(t);
        if (activation != 2u) {
            y = x * y;
        }
    }
    return y;
}
