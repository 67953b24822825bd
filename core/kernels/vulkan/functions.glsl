// The contract's functions (docs/contract.md, "Functions"): what stands around their steps, and the primitives that the steps
// call. `multiply_add` is the document's fmaz. NaN passes through all functions by itself, except log, whose steps use bits.
// Include after contract.glsl.

// 2^n for n in [−126, 127].
float power_of_two(const int n) {
    return intBitsToFloat((n + 127) << 23);
}

// Returns the integer n of t = n + 4b400000.
int integer_of(const float t) {
    return floatBitsToInt(t) - 0x4b400000;
}

float power_of(const float t) {
    return power_of_two(integer_of(t));
}

// Returns x·2^n for t = n + 4b400000, in two steps, so that both powers are normal numbers.
float scale_by_power(const float x, const float t) {
    int n = integer_of(t), h = n >> 1;
    precise float y = x * power_of_two(h);
    y = y * power_of_two(n - h);
    return y;
}

// Returns k with x = m·2^k, where m lies around 1.
float exponent_of(const float x) {
    return float((floatBitsToInt(x) - 0x3f3504f3) >> 23);
}

// Returns the m of exponent_of.
float mantissa_of(const float x) {
    int bits = floatBitsToInt(x);
    return intBitsToFloat(bits - (((bits - 0x3f3504f3) >> 23) << 23));
}

// Returns the upper 12 of a significand's 24 bits.
float upper_half(const float x) {
    return f(floatBitsToUint(x) & 0xfffff000u);
}

float magnitude_of(const float x) {
    return f(floatBitsToUint(x) & MAGNITUDE);
}

float with_sign_of(const float y, const float x) {
    return f((floatBitsToUint(y) & MAGNITUDE) | (floatBitsToUint(x) & SIGN));
}

#include "steps.glsl"

float function_exp(const float x) {
    return exp_steps(x);
}

float function_log(const float x) {
    uint u = floatBitsToUint(x);
    if (u == 0u || u >= INFINITY) {
        return (u & MAGNITUDE) == 0u ? f(INFINITY | SIGN) : u == INFINITY ? x : f(NAN);
    }
    return log_steps(x);
}

float function_tanh(const float x) {
    float a = magnitude_of(x), y;
    if (a < 0.92f) {
        // Flushing would change the sum of smaller numbers. All of them round to a.
        y = a < 1.2207031e-4f ? a : tanh_near(a);
    } else {
        y = tanh_far(a);
    }
    return with_sign_of(y, x);
}

// Whether erf_near computes erf of a number. Of others, and of NaN, erf_far does.
bool erf_is_near(const float x) {
    return magnitude_of(x) < 0.83f;
}

float function_erf(const float x) {
    float a = magnitude_of(x), y;
    if (erf_is_near(x)) {
        y = erf_near(a);
    } else {
        y = erf_far(a);
    }
    return with_sign_of(y, x);
}

float function_sigmoid(const float x) {
    vec3 power = sigmoid_power(x);
    return sigmoid_of_power(x, power.x, power.y, power.z);
}

float function_relu(const float x) {
    return floatBitsToInt(x) > 0 || is_nan(x) ? x : 0.0f;
}

float function_rsqrt(const float x) {
    return divide(1.0f, root(x));
}

// The nearest integer, ties to even. Numbers from 2²³ up have no fraction.
float function_round(const float x) {
    float a = f(floatBitsToUint(x) & MAGNITUDE);
    precise float y = a + 8388608.0f;
    y = y - 8388608.0f;
    return a < 8388608.0f ? with_sign_of(y, x) : x;
}

// Compares by MAX's order, because a device's comparisons may treat a subnormal number as zero.
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

// The words of 2/π behind 32 zero bits.
uint two_over_pi(const uint i) {
    return i == 0u ? 0u : i == 1u ? 0xa2f9836eu : i == 2u ? 0x4e441529u : i == 3u ? 0xfc2757d1u : i == 4u ? 0xf534ddc0u
        : i == 5u ? 0xdb629599u : i == 6u ? 0x3c439041u : 0xfe5163abu;
}

// Reduces a magnitude of 6400 or more by a multiple q of π/2. Returns two numbers and the last bits of q (Payne and
// Hanek).
vec3 reduce_large(const uint a) {
    uint m = a & 0x7fffffu | 0x800000u, at = (a >> 23) - 120u, word = at >> 5, left = at & 31u;
    uint w0 = two_over_pi(word), w1 = two_over_pi(word + 1u), w2 = two_over_pi(word + 2u), w3 = two_over_pi(word + 3u);
    w0 = w0 << left | w1 >> 1 >> (31u - left);
    w1 = w1 << left | w2 >> 1 >> (31u - left);
    w2 = w2 << left | w3 >> 1 >> (31u - left);
    // In quarter turns modulo 4, as 2 and 62 bits.
    uint low = m * w1, carried = multiply_high(m, w2);
    low += carried;
    uint high = m * w0 + multiply_high(m, w1) + uint(low < carried);
    uint q = high >> 30, h = high << 2 | low >> 30, l = low << 2;
    bool negative = int(h) < 0;
    if (negative) {
        q++;
        h = ~h + uint(l == 0u);
        l = 0u - l;
    }
    // h is not 0, because no binary32 number is that close to a multiple of π/2.
    uint z = uint(31 - findMSB(h));
    uint r = multiply_high(h << z | l >> 1 >> (31u - z), 0xc90fdaa2u) >> 1;
    float scale = power_of_two(-30 - int(z));
    precise float big = float(int(r & 0xffffff80u));
    precise float small = float(int(r & 0x7fu));
    big = big * (negative ? -scale : scale);
    small = small * (negative ? -scale : scale);
    return vec3(big, small, intBitsToFloat(int(q & 3u)));
}

// The sine of a magnitude plus some right angles.
float of_quadrant(const uint a, const uint quarters) {
    if (a >= INFINITY) {
        return f(NAN);
    }
    vec3 core = a < 0x45c80000u ? small_angle(f(a)) : reduce_large(a);
    uint q = floatBitsToUint(core.z) + quarters;
    float y;
    if ((q & 1u) == 0u) {
        y = sine(core.x, core.y);
    } else {
        y = cosine(core.x, core.y);
    }
    return f(floatBitsToUint(y) ^ ((q & 2u) << 30));
}

float function_sin(const float x) {
    uint u = floatBitsToUint(x);
    return f(floatBitsToUint(of_quadrant(u & MAGNITUDE, 0u)) ^ (u & SIGN));
}

float function_cos(const float x) {
    return of_quadrant(floatBitsToUint(x) & MAGNITUDE, 1u);
}

float function_log1p(const float x) {
    if (floatBitsToUint(x) >= 0xbf800000u || floatBitsToInt(x) >= 0x7f800000) {
        return floatBitsToUint(x) == 0xbf800000u ? f(INFINITY | SIGN) : floatBitsToUint(x) == INFINITY ? x : f(NAN);
    }
    return with_sign_of(log1p_steps(x), x);
}

float function_expm1(const float x) {
    // Clamps to −18 … 89 by bits: drivers compile float comparisons to minimum and maximum, which flush subnormals.
    float v = floatBitsToUint(x) > 0xc1900000u ? -18.0f : floatBitsToInt(x) > 0x42b20000 ? 89.0f : x;
    return is_nan(x) ? x : with_sign_of(expm1_steps(v), x);
}

float function_pow(const float x, const float y) {
    uint a = floatBitsToUint(x) & MAGNITUDE, b = floatBitsToUint(y) & MAGNITUDE;
    if (floatBitsToUint(x) == 0x3f800000u || b == 0u) {
        return 1.0f;
    }
    if (max(a, b) > INFINITY) {
        return f(NAN);
    }
    // By bits, because a device's comparisons may treat a subnormal number as zero.
    precise float part = 0.5f * y;
    bool whole = floatBitsToUint(function_round(y)) == floatBitsToUint(y);
    bool odd = whole && floatBitsToUint(function_round(part)) != floatBitsToUint(part);
    bool negative = floatBitsToInt(x) < 0;
    float power;
    if (a == 0u || a == INFINITY) {
        power = f((a == 0u) == (floatBitsToInt(y) > 0) ? 0u : INFINITY);
    } else if (negative && !whole) {
        return f(NAN);
    } else {
        vec2 logarithm = log2_of(f(a));
        power = exp2_of(logarithm.x, logarithm.y, y);
    }
    return odd && negative ? f(floatBitsToUint(power) | SIGN) : power;
}

// Applies the activation with this number, in the order of `contract::Activation`.
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
        // sigmoid; or x·sigmoid, of x or of a polynomial in x.
        precise float t = x;
        if (activation == 4u) {
            t = gelu_argument(x);
        }
        y = function_sigmoid(t);
        if (activation != 2u) {
            y = x * y;
        }
    }
    return y;
}
