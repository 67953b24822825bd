// The steps of the contract's functions. Generated from docs/contract.md by `ADEAD_BLESS=1 cargo test -p adead-core --test steps`; don't edit.
// CUDA's kernels include it too.

// (e^r − 1 − r)/r² for |r| up to ln 2 / 2. The polynomial is minimax.
float exp_series(const float r) {
    precise float result = multiply_add(multiply_add(multiply_add(multiply_add(0.0013840366f, r, 0.008369348f), r, 0.041668084f), r, 0.16666515f), r, 0.49999994f);
    return result;
}

// e^x as (1 + r + r²·q)·2ⁿ, for x between −105 and 89. Returns r, q and t = n + 4b400000. (Cody and Waite's reduction.)
vec3 exp_core(const float x) {
    precise float t = multiply_add(x, 1.442695f, 12582912.0f);
    precise float n = t - 12582912.0f;
    precise float s = multiply_add(n, -0.69314575f, x);
    precise float r = multiply_add(n, -1.4286068e-6f, s);
    return vec3(r, exp_series(r), t);
}

// e^r, from exp_core's r and q.
float exp_near_0(const float r, const float q) {
    precise float result = multiply_add(multiply_add(q, r, 1.0f), r, 1.0f);
    return result;
}

// e^r − 1, from exp_core's r and q.
float exp_less_1(const float r, const float q) {
    precise float square = r * r;
    precise float result = multiply_add(square, q, r);
    return result;
}

// e^x.
float exp_steps(const float x) {
    precise float low = x < -105.0f ? -105.0f : x;
    precise float v = low > 89.0f ? 89.0f : low;
    vec3 rqt = exp_core(v);
    float r = rqt.x, q = rqt.y, t = rqt.z;
    precise float result = scale_by_power(exp_near_0(r, q), t);
    return result;
}

// log(1 + f) + k·ln 2 + g. The upper part of ln 2 has 15 bits, so its product with k is exact.
float log_sum(const float f, const float k, const float g) {
    precise float q = multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(-0.07703892f, f, 0.1274934f), f, -0.1312531f), f, 0.1420088f), f, -0.16627061f), f, 0.20001408f), f, -0.25000718f), f, 0.33333328f), f, -0.5f);
    precise float s = k * 0.69314575f;
    precise float h = s + f;
    precise float e = f - (h - s);
    precise float l = multiply_add(k, 1.4286068e-6f, e) + g;
    precise float square = f * f;
    precise float result = h + multiply_add(square, q, l);
    return result;
}

// The logarithm of a positive finite number.
float log_steps(const float a) {
    bool below = floatBitsToUint(a) < 0x800000u;
    precise float scaled = a * 8388608.0f;
    precise float s = below ? scaled : a;
    precise float e = exponent_of(s);
    precise float lower = e - 23.0f;
    precise float k = below ? lower : e;
    precise float f = mantissa_of(s) - 1.0f;
    precise float result = log_sum(f, k, 0.0f);
    return result;
}

// tanh(a) for a from 0 to 3f6b851f.
float tanh_near(const float a) {
    precise float y = a * a;
    precise float p = a * y;
    precise float result = multiply_add(p, multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(-0.00043490462f, y, 0.0025282847f), y, -0.008208714f), y, 0.02163565f), y, -0.053922363f), y, 0.133329f), y, -0.3333332f), a);
    return result;
}

// tanh(a) for a from 3f6b851f.
float tanh_far(const float a) {
    precise float twice = a + a;
    precise float v = twice > 20.0f ? 20.0f : twice;
    vec3 rqt = exp_core(v);
    float r = rqt.x, q = rqt.y, t = rqt.z;
    precise float p = power_of(t);
    precise float above = p + 1.0f;
    precise float sum = multiply_add(p, exp_less_1(r, q), above);
    precise float result = 1.0f - 2.0f * inverse(sum);
    return result;
}

// erf(a) for a from 0 to 3f547ae1.
float erf_near(const float a) {
    precise float y = a * a;
    precise float result = a * multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(-0.00064426084f, y, 0.0050728573f), y, -0.026815688f), y, 0.112830475f), y, -0.37612602f), y, 0.12837917f) + a;
    return result;
}

// erf(a) for a from 3f547ae1: 1 − e^P. P approximates the logarithm of erfc, expanded around a point that is nearly a binary32 number.
float erf_far(const float a) {
    precise float b = a > 3.95f ? 3.95f : a;
    precise float d = b - 0.9970703f;
    vec3 rqt = exp_core(multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(0.00021065514f, d, -0.0019196419f), d, 0.0100294035f), d, -0.041674405f), d, -0.84274095f), d, -2.6340287f), d, -1.8418814f));
    float r = rqt.x, q = rqt.y, t = rqt.z;
    precise float p = power_of(t);
    precise float rest = 1.0f - p;
    precise float result = multiply_add(-p, exp_less_1(r, q), rest);
    return result;
}

// e^−|x| as (h + l)·2ⁿ. Returns h, l and t = n + 4b400000.
vec3 sigmoid_power(const float x) {
    precise float a = -magnitude_of(x);
    precise float v = a < -105.0f ? -105.0f : a;
    vec3 rqt = exp_core(v);
    float r = rqt.x, q = rqt.y, t = rqt.z;
    precise float h = 1.0f + exp_less_1(r, q);
    precise float rest = r - (h - 1.0f);
    precise float square = r * r;
    precise float l = multiply_add(square, q, rest);
    return vec3(h, l, t);
}

// 1/(1 + e^−x), from sigmoid_power's results: one division, whose remainder d is added back, as is e^−|x|'s rounding error. The
// quotient is scaled at the end, so a subnormal result is rounded once.
float sigmoid_of_power(const float x, const float h, const float l, const float t) {
    precise float z = scale_by_power(h, t);
    precise float sum = 1.0f + z;
    precise float v = inverse(sum);
    precise float y = h * v;
    precise float e = h - y;
    precise float d = multiply_add(-y, z, e);
    precise float u = multiply_add(multiply_add(l, v, d), v, y);
    precise float w = scale_by_power(u, t);
    precise float rest = 1.0f - w;
    precise float result = x < 0.0f ? w : rest;
    return result;
}

// What gelu's tanh form gives to sigmoid.
float gelu_argument(const float x) {
    precise float square = x * x;
    precise float result = x * (square * 0.071354814f + 1.5957692f);
    return result;
}

// A magnitude below 6400 as h + l + q·π/2. Returns h, l and t = q + 4b400000. (Cody and Waite's reduction. All products but the last
// are exact, because q and the constants have at most 12 significant bits.)
vec3 small_angle(const float a) {
    precise float t = a * 0.63661975f + 12582912.0f;
    precise float n = t - 12582912.0f;
    precise float s = a - n * 1.5708008f;
    precise float r = s - n * -4.4703484e-6f;
    precise float w = n * 1.5890691e-8f;
    precise float h = r - w;
    precise float l = r - h - w - n * 2.563344e-12f;
    return vec3(h, l, t);
}

// sin(h + l) for |h| up to about π/4.
float sine(const float h, const float l) {
    precise float z = h * h;
    precise float part = 0.5f * z;
    precise float one = 1.0f - part;
    precise float cube = h * z;
    precise float result = h + (cube * multiply_add(multiply_add(-0.00019518616f, z, 0.008332191f), z, -0.16666655f) + l * one);
    return result;
}

// cos(h + l) for |h| up to about π/4.
float cosine(const float h, const float l) {
    precise float z = h * h;
    precise float part = 0.5f * z;
    precise float one = 1.0f - part;
    precise float e = 1.0f - one - part;
    precise float fourth = z * z;
    precise float result = one + (e + (fourth * multiply_add(multiply_add(2.4430661e-5f, z, -0.0013887301f), z, 0.041666646f) - h * l));
    return result;
}

// log(1 + x) for a finite x above −1. g makes up for the rounding error of 1 + x.
float log1p_steps(const float x) {
    precise float u = 1.0f + x;
    precise float k = exponent_of(u);
    precise float m = mantissa_of(u) - 1.0f;
    precise float f = k == 0.0f ? x : m;
    precise float lost = x - (u - 1.0f);
    precise float g;
    if (k == 0.0f) {
        g = 0.0f;
    } else {
        g = divide(lost, u);
    }
    precise float result = log_sum(f, k, g);
    return result;
}

// e^x − 1 for x between −18 and 89. w is the rounding error of r.
float expm1_steps(const float x) {
    precise float t = multiply_add(x, 1.442695f, 12582912.0f);
    precise float n = t - 12582912.0f;
    precise float a = x - n * 0.69314575f;
    precise float b = n * 1.4286068e-6f;
    precise float r = a - b;
    precise float w = a - r - b;
    precise float square = r * r;
    precise float u = square * multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(0.00019944266f, r, 0.0013932686f), r, 0.008333208f), r, 0.04166649f), r, 0.16666667f), r, 0.5f) + w;
    // n is at most 127 here: binary32 can't represent 2¹²⁸, so the last doubling comes after everything else.
    precise float most = t > 12583039.0f ? 12583039.0f : t;
    precise float p = power_of(most);
    precise float less = p - 1.0f;
    precise float d = p * r;
    precise float s = less + d;
    precise float l = d - (s - less);
    precise float y = s + (l + p * u);
    precise float twice = y + y;
    precise float result = n > 127.0f ? twice : y;
    return result;
}

// The base-2 logarithm of a positive finite number, as h + l. h has 12 bits. (The series of artanh((m − 1)/(m + 1)).)
vec2 log2_of(const float a) {
    bool below = floatBitsToUint(a) < 0x800000u;
    precise float scaled = a * 8388608.0f;
    precise float b = below ? scaled : a;
    precise float e = exponent_of(b);
    precise float lower = e - 23.0f;
    precise float k = below ? lower : e;
    precise float m = mantissa_of(b);
    precise float f = m - 1.0f;
    precise float t = m + 1.0f;
    precise float v = inverse(t);
    // s = f/t as sh + sl.
    precise float s = f * v;
    precise float sh = upper_half(s);
    precise float th = upper_half(t);
    precise float tl = m - (th - 1.0f);
    precise float sl = (f - sh * th - sh * tl) * v;
    // The series is s·(3 + s² + …)·2/3. Its second factor is gh + gl.
    precise float z = s * s;
    precise float fourth = z * z;
    precise float r = fourth * multiply_add(multiply_add(0.35129094f, z, 0.42820644f), z, 0.6000023f) + sl * (sh + s);
    precise float square = sh * sh;
    precise float g = square + 3.0f + r;
    precise float gh = upper_half(g);
    precise float gl = r - (gh - 3.0f - square);
    precise float p = sh * gh;
    precise float cross = sl * gh + gl * s;
    precise float sum = p + cross;
    precise float ph = upper_half(sum);
    precise float pl = cross - (ph - p);
    // Multiply by 2/(3·ln 2), and add k.
    precise float zh = ph * 0.96191406f;
    precise float zl = ph * -0.000117368574f + pl * 0.9617967f;
    precise float total = zh + zl + k;
    precise float h = upper_half(total);
    precise float l = zl - (h - k - zh);
    return vec2(h, l);
}

// 2^((h + l)·y).
float exp2_of(const float h, const float l, const float y) {
    precise float below = y > 1099511600000.0f ? 1099511600000.0f : y;
    precise float v = below < -1099511600000.0f ? -1099511600000.0f : below;
    precise float yh = upper_half(v);
    precise float b = (v - yh) * h + v * l;
    precise float a = yh * h;
    precise float sum = a + b;
    precise float above = sum < -160.0f ? -160.0f : sum;
    precise float limit = above > 160.0f ? 160.0f : above;
    bool inside = limit == sum;
    precise float high = inside ? a : limit;
    precise float low = inside ? b : 0.0f;
    precise float t = high + low + 12582912.0f;
    precise float d = high - (t - 12582912.0f);
    precise float e = d + low;
    precise float dh = upper_half(e);
    precise float dl = low - (dh - d);
    // Multiply by ln 2, as r + w.
    precise float p = dh * 0.69311523f;
    precise float w = dl * 0.6931472f + dh * 3.1946183e-5f;
    precise float r = p + w;
    precise float square = r * r;
    precise float u = square * exp_series(r) + (w - (r - p));
    precise float o = 1.0f + r;
    precise float m = o + (r - (o - 1.0f) + u);
    precise float result = scale_by_power(m, t);
    return result;
}
