// The contract's functions (docs/contract.md, "Functions"), with its primitives in its order. Constants are the shortest
// decimals that give its bit patterns. `multiply_add` is the document's fmaz. NaN passes through all functions by itself,
// except log, whose steps use bits. Include after contract.glsl.

// 2^n for n in [−126, 127].
float power_of_two(const int n) {
    return intBitsToFloat((n + 127) << 23);
}

// Returns x·2^n in two steps, so that both powers are normal numbers.
float scale_by_power(const float x, const int n) {
    int h = n >> 1;
    precise float y = x * power_of_two(h);
    y = y * power_of_two(n - h);
    return y;
}

// (e^r − 1 − r)/r² for |r| up to ln 2 / 2.
float exp_series(const float r) {
    float q = multiply_add(0.0013840366f, r, 0.008369348f);
    q = multiply_add(q, r, 0.041668084f);
    q = multiply_add(q, r, 0.16666515f);
    return multiply_add(q, r, 0.49999994f);
}

// e^x as (1 + r + r²·q)·2^n, for x between −105 and 89. Returns r in x, q in y and the bits of n in z.
vec3 exp_core(const float x) {
    float t = multiply_add(x, 1.442695f, 1.2582912e+07f);
    precise float nf = t - 1.2582912e+07f;
    float r = multiply_add(nf, -0.69314575f, x);
    r = multiply_add(nf, -1.4286068e-06f, r);
    return vec3(r, exp_series(r), intBitsToFloat(floatBitsToInt(t) - 0x4b400000));
}

// e^r, from the results of exp_core.
float exp_near_0(const vec3 core) {
    return multiply_add(multiply_add(core.y, core.x, 1.0f), core.x, 1.0f);
}

// e^r − 1, from the results of exp_core.
float exp_minus_1(const vec3 core) {
    precise float square = core.x * core.x;
    return multiply_add(square, core.y, core.x);
}

float function_exp(const float x) {
    float low = x < -105.0f ? -105.0f : x;
    vec3 core = exp_core(low > 89.0f ? 89.0f : low);
    return scale_by_power(exp_near_0(core), floatBitsToInt(core.z));
}

// log(1 + v) + k·ln 2 + lost.
float log_sum(const float v, const float k, const float lost) {
    float r = multiply_add(-0.07703892f, v, 0.1274934f);
    r = multiply_add(r, v, -0.1312531f);
    r = multiply_add(r, v, 0.1420088f);
    r = multiply_add(r, v, -0.16627061f);
    r = multiply_add(r, v, 0.20001408f);
    r = multiply_add(r, v, -0.25000718f);
    r = multiply_add(r, v, 0.33333328f);
    r = multiply_add(r, v, -0.5f);
    precise float upper = k * 0.69314575f;
    precise float h = upper + v;
    precise float l = v - (h - upper);
    l = multiply_add(k, 1.4286068e-06f, l) + lost;
    precise float square = v * v;
    l = multiply_add(square, r, l);
    precise float y = h + l;
    return y;
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
    return log_sum(v, k, 0.0f);
}

float with_sign_of(const float y, const float x) {
    return f((floatBitsToUint(y) & MAGNITUDE) | (floatBitsToUint(x) & SIGN));
}

float function_tanh(const float x) {
    float a = f(floatBitsToUint(x) & MAGNITUDE);
    precise float y;
    if (a < 0.92f) {
        y = a * a;
        precise float q = multiply_add(-4.3490462e-04f, y, 0.0025282847f);
        q = multiply_add(q, y, -0.008208714f);
        q = multiply_add(q, y, 0.02163565f);
        q = multiply_add(q, y, -0.053922363f);
        q = multiply_add(q, y, 0.133329f);
        q = multiply_add(q, y, -0.3333332f);
        // Flushing would change the sum of smaller numbers. All of them round to a.
        y = a * y;
        y = a < 1.2207031e-4f ? a : multiply_add(y, q, a);
    } else {
        precise float twice = a + a;
        vec3 core = exp_core(twice > 20.0f ? 20.0f : twice);
        float p = power_of_two(floatBitsToInt(core.z));
        y = p + 1.0f;
        y = multiply_add(p, exp_minus_1(core), y);
        y = 1.0f - 2.0f * inverse(y);
    }
    return with_sign_of(y, x);
}

float function_erf(const float x) {
    float a = f(floatBitsToUint(x) & MAGNITUDE);
    precise float y, q;
    if (a < 0.83f) {
        y = a * a;
        q = multiply_add(-6.4426084e-04f, y, 0.0050728573f);
        q = multiply_add(q, y, -0.026815688f);
        q = multiply_add(q, y, 0.112830475f);
        q = multiply_add(q, y, -0.37612602f);
        q = multiply_add(q, y, 0.12837917f);
        y = a * q + a;
    } else {
        // 1 − e^P. P approximates the logarithm of erfc, expanded around a point that is nearly a binary32 number.
        y = (a > 3.95f ? 3.95f : a) - 0.9970703f;
        q = multiply_add(2.1065514e-04f, y, -0.0019196419f);
        q = multiply_add(q, y, 0.0100294035f);
        q = multiply_add(q, y, -0.041674405f);
        q = multiply_add(q, y, -0.84274095f);
        q = multiply_add(q, y, -2.6340287f);
        q = multiply_add(q, y, -1.8418814f);
        vec3 core = exp_core(q);
        float p = power_of_two(floatBitsToInt(core.z));
        y = multiply_add(-p, exp_minus_1(core), 1.0f - p);
    }
    return with_sign_of(y, x);
}

float function_sigmoid(const float x) {
    float a = f(floatBitsToUint(x) | SIGN);
    vec3 core = exp_core(a < -105.0f ? -105.0f : a);
    precise float square = core.x * core.x;
    precise float h = multiply_add(square, core.y, core.x);
    h = 1.0f + h;
    precise float l = core.x - (h - 1.0f);
    l = multiply_add(square, core.y, l);
    // Both products with 2^n in two steps: the second one may round to a subnormal number.
    int n = floatBitsToInt(core.z), half_n = n >> 1;
    float p = power_of_two(half_n), q = power_of_two(n - half_n);
    precise float z = h * p;
    z = z * q;
    precise float sum = 1.0f + z;
    float v = inverse(sum);
    precise float y = h * v;
    precise float w = h - y;
    w = multiply_add(-y, z, w);
    w = multiply_add(l, v, w);
    w = multiply_add(w, v, y) * p;
    w = w * q;
    precise float rest = 1.0f - w;
    return x >= 0.0f ? rest : w;
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

// The same for a smaller magnitude (Cody and Waite).
vec3 reduce_small(const float a) {
    precise float t = a * 0.63661975f + 1.2582912e+07f;
    precise float n = t - 1.2582912e+07f;
    precise float r = a - n * 1.5708008f;
    r = r - n * -4.4703484e-06f;
    precise float w = n * 1.5890691e-08f;
    precise float h = r - w;
    precise float l = (r - h) - w;
    l = l - n * 2.563344e-12f;
    return vec3(h, l, intBitsToFloat(floatBitsToInt(t) & 3));
}

// The sine of a magnitude plus some right angles.
float of_quadrant(const uint a, const uint quarters) {
    if (a >= INFINITY) {
        return f(NAN);
    }
    vec3 core = a < 0x45c80000u ? reduce_small(f(a)) : reduce_large(a);
    uint q = floatBitsToUint(core.z) + quarters;
    precise float z = core.x * core.x;
    precise float part = 0.5f * z;
    precise float one = 1.0f - part;
    precise float y;
    if ((q & 1u) == 0u) {
        y = multiply_add(-0.00019518616f, z, 0.008332191f);
        y = multiply_add(y, z, -0.16666655f);
        y = (core.x * z) * y + core.y * one;
        y = core.x + y;
    } else {
        y = multiply_add(2.4430661e-05f, z, -0.0013887301f);
        y = multiply_add(y, z, 0.041666646f);
        y = (z * z) * y - core.x * core.y;
        y = ((1.0f - one) - part) + y;
        y = one + y;
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
    precise float u = 1.0f + x;
    int n = (floatBitsToInt(u) - 0x3f3504f3) >> 23;
    precise float v = x, lost = 0.0f;
    if (n != 0) {
        // The rounding error of 1 + x corrects the result.
        lost = u - 1.0f;
        lost = x - lost;
        lost = divide(lost, u);
        v = intBitsToFloat(floatBitsToInt(u) - (n << 23)) - 1.0f;
    }
    return with_sign_of(log_sum(v, float(n), lost), x);
}

float function_expm1(const float x) {
    // Clamps to −18 … 89 by bits: drivers compile float comparisons to minimum and maximum, which flush subnormals.
    precise float v = floatBitsToUint(x) > 0xc1900000u ? -18.0f : floatBitsToInt(x) > 0x42b20000 ? 89.0f : x;
    float t = multiply_add(v, 1.442695f, 1.2582912e+07f);
    int n = floatBitsToInt(t) - 0x4b400000;
    precise float nf = t - 1.2582912e+07f;
    precise float a = nf * -0.69314575f + v;
    precise float g = nf * 1.4286068e-06f;
    precise float r = a - g;
    // The rounding error of r.
    precise float w = (a - r) - g;
    precise float u = multiply_add(0.00019944266f, r, 0.0013932686f);
    u = multiply_add(u, r, 0.008333208f);
    u = multiply_add(u, r, 0.04166649f);
    u = multiply_add(u, r, 0.16666667f);
    u = multiply_add(u, r, 0.5f);
    u = (r * r) * u + w;
    // 2¹²⁸ is not representable, so the last doubling comes after everything else.
    bool last = n == 128;
    float p = power_of_two(last ? 127 : n);
    precise float b = p - 1.0f;
    precise float d = p * r;
    precise float s = b + d;
    precise float l = d - (s - b);
    precise float y = s + (l + p * u);
    precise float twice = y + y;
    return is_nan(x) ? x : with_sign_of(last ? twice : y, x);
}

// The upper 12 of a significand's 24 bits.
float upper_half(const float x) {
    return f(floatBitsToUint(x) & 0xfffff000u);
}

// x^y for a positive finite x and a y that is not NaN.
float power_of(const uint a, const float y) {
    // log2 as a sum of two numbers, by the series of artanh((m − 1)/(m + 1)).
    precise float scaled = f(a) * 8388608.0f;
    bool subnormal = a < 0x800000u;
    int bits = subnormal ? floatBitsToInt(scaled) : int(a);
    int n = (bits - 0x3f3504f3) >> 23;
    float m = intBitsToFloat(bits - (n << 23));
    float k = float(subnormal ? n - 23 : n);
    precise float v = m - 1.0f;
    precise float t = m + 1.0f;
    float reciprocal_of_t = divide(1.0f, t);
    precise float s = v * reciprocal_of_t;
    float sh = upper_half(s), th = upper_half(t);
    precise float sl = m - (th - 1.0f);
    sl = (v - sh * th) - sh * sl;
    sl = sl * reciprocal_of_t;
    precise float z = s * s;
    precise float r = multiply_add(0.35129094f, z, 0.42820644f);
    r = multiply_add(r, z, 0.6000023f);
    r = (z * z) * r + sl * (sh + s);
    precise float square = sh * sh;
    precise float sum = (square + 3.0f) + r;
    float gh = upper_half(sum);
    precise float gl = r - ((gh - 3.0f) - square);
    precise float p = sh * gh;
    precise float pl = sl * gh + gl * s;
    sum = p + pl;
    float ph = upper_half(sum);
    pl = pl - (ph - p);
    precise float zh = ph * 0.96191406f;
    precise float zl = ph * -0.000117368574f + pl * 0.9617967f;
    sum = (zh + zl) + k;
    float h = upper_half(sum);
    zl = zl - ((h - k) - zh);
    // Times y.
    float bounded = y > 1.0995116e+12f ? 1.0995116e+12f : y;
    bounded = bounded < -1.0995116e+12f ? -1.0995116e+12f : bounded;
    float yh = upper_half(bounded);
    precise float low = (bounded - yh) * h + bounded * zl;
    precise float high = yh * h;
    sum = high + low;
    if (sum > 160.0f || sum < -160.0f) {
        high = sum > 160.0f ? 160.0f : -160.0f;
        low = 0.0f;
    }
    // 2 to the power of the product.
    t = (high + low) + 1.2582912e+07f;
    v = high - (t - 1.2582912e+07f);
    sum = v + low;
    float dh = upper_half(sum);
    low = low - (dh - v);
    p = dh * 0.69311523f;
    precise float w = low * 0.6931472f + dh * 3.1946183e-05f;
    r = p + w;
    precise float u = (r * r) * exp_series(r) + (w - (r - p));
    precise float e = 1.0f + r;
    e = e + ((r - (e - 1.0f)) + u);
    return scale_by_power(e, floatBitsToInt(t) - 0x4b400000);
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
        power = power_of(a, y);
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
            t = x * ((x * x) * 0.071354814f + 1.5957692f);
        }
        y = function_sigmoid(t);
        if (activation != 2u) {
            y = x * y;
        }
    }
    return y;
}
