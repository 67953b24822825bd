/* The oracle's fast half: every operation of docs/operations.md by the letter of docs/contract.md, in plain C99.
 *
 * M arithmetic (fmaz) is integers only. E arithmetic is the C float type, one IEEE operation a step; the build forbids
 * contraction and fast-math. Everything works on binary32 buffers; native.py widens before and narrows after.
 * Clarity wins over speed: the only concession is packing matmul operands so that chains run over contiguous memory. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;
typedef __int128 i128;
typedef unsigned __int128 u128;

enum { F32, F16, BF16, I32, I64, U32, BOOL, U8, F64 };
enum { NONE, RELU, SIGMOID, TANH, GELU_TANH, GELU_ERF, SILU, NEG, ABS, EXP, LOG, SQRT, RSQRT, SCALE, ERF,
       FLOOR, ROUND, CLAMP, SIN, COS, LOG1P, EXPM1 };

static float as_float(u32 u) { float f; memcpy(&f, &u, 4); return f; }
static u32 as_bits(float f) { u32 u; memcpy(&u, &f, 4); return u; }
static int is_nan(float f) { return (as_bits(f) & 0x7fffffffu) > 0x7f800000u; }
static float canonical(float f) { return is_nan(f) ? as_float(0x7fc00000u) : f; }
static float plus_zero(float f) { return as_bits(f) == 0x80000000u ? 0.0f : f; }
static const float NEG_INF = -INFINITY;

/* ---------------------------------------------------------------- M: fmaz */

static u32 fmaz_special(u32 a, u32 b, u32 c) /* at least one exponent field is 255; subnormals already zeroed */
{
    u32 ma = a & 0x7fffffffu, mb = b & 0x7fffffffu, mc = c & 0x7fffffffu, sp = (a ^ b) & 0x80000000u;
    if (ma > 0x7f800000u || mb > 0x7f800000u || mc > 0x7f800000u) return 0x7fc00000u;
    if (ma == 0x7f800000u || mb == 0x7f800000u) {
        if (ma == 0 || mb == 0) return 0x7fc00000u;                                      /* inf * 0 */
        if (mc == 0x7f800000u && (c & 0x80000000u) != sp) return 0x7fc00000u;            /* inf - inf */
        return sp | 0x7f800000u;
    }
    return c; /* only c is infinite */
}

static inline int top_bit(u128 v)
{
    u64 hi = (u64)(v >> 64);
    return hi ? 127 - __builtin_clzll(hi) : 63 - __builtin_clzll((u64)v);
}

static inline u32 fmaz(u32 a, u32 b, u32 c)
{
    int xa = a >> 23 & 255, xb = b >> 23 & 255, xc = c >> 23 & 255;
    if (xa == 0) a &= 0x80000000u;
    if (xb == 0) b &= 0x80000000u;
    if (xc == 0) c &= 0x80000000u;
    if (xa == 255 || xb == 255 || xc == 255) return fmaz_special(a, b, c);

    u32 sp = (a ^ b) >> 31, sc = c >> 31;
    int product_is_zero = xa == 0 || xb == 0;
    if (product_is_zero) {
        if (xc) return c;
        return sp == sc ? sp << 31 : 0;
    }
    /* product = p * 2^ep exactly, c = q * 2^ec exactly */
    u64 p = (u64)(a & 0x7fffffu | 0x800000u) * (b & 0x7fffffu | 0x800000u);
    u64 q = xc ? (c & 0x7fffffu | 0x800000u) : 0;
    int ep = xa + xb - 300, ec = xc - 150, e;
    i128 P = p, Q = q;
    int gap = q ? ep - ec : 0;
    if (gap > 70) { /* so far apart, the lower term can only break ties: any nonzero stand-in will do */
        P <<= 70; Q = 1; e = ep - 70;
    } else if (gap < -70) {
        Q <<= 70; P = 1; e = ec - 70;
    } else { /* one of the two shifts is by zero */
        P <<= gap > 0 ? gap : 0;
        Q <<= gap < 0 ? -gap : 0;
        e = gap > 0 ? ec : ep;
    }
    i128 sum = ((P ^ -(i128)sp) + sp) + ((Q ^ -(i128)sc) + sc); /* signs applied without branches */
    if (sum == 0) return 0; /* exact cancellation is +0 to nearest */
    u32 sign = sum < 0 ? 0x80000000u : 0;
    u128 mag = sum < 0 ? (u128)-sum : (u128)sum;
    int drop = top_bit(mag) - 23; /* places below a 24-bit significand */
    u32 m;
    if (drop > 0) {
        u128 rest = mag & (((u128)1 << drop) - 1), half = (u128)1 << (drop - 1);
        m = (u32)(mag >> drop);
        m += (rest > half) | ((rest == half) & m);
        if (m == 0x1000000u) { m = 0x800000u; drop++; }
    } else m = (u32)mag << -drop;
    int field = e + drop + 150; /* biased exponent of a 24-bit m */
    if (field >= 255) return sign | 0x7f800000u;
    if (field < 1) return sign; /* below 2^-126 after rounding */
    return sign | (u32)field << 23 | (m & 0x7fffffu);
}

/* The M total: chains of 256 from +0, merged by fmaz(p, 1, t), then -0 stored as +0. */
static float m_dot(const u32 *a, const u32 *b, i64 K)
{
    u32 t = 0;
    for (i64 k0 = 0; k0 < K; k0 += 256) {
        u32 p = 0;
        i64 k1 = k0 + 256 < K ? k0 + 256 : K;
        for (i64 k = k0; k < k1; k++) p = fmaz(a[k], b[k], p);
        t = k0 == 0 ? p : fmaz(p, 0x3f800000u, t);
    }
    return plus_zero(as_float(t));
}

/* ---------------------------------------------------------------- functions, each in one place */

/* fmaz of numbers */
static float fused(float a, float b, float c) { return as_float(fmaz(as_bits(a), as_bits(b), as_bits(c))); }

static float horner(float x, const u32 *c, int n)
{
    float q = as_float(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) q = fused(q, x, as_float(c[i]));
    return q;
}
#define HORNER(x, c) horner(x, c, (int)(sizeof c / sizeof *c))

static float pow2(int32_t n) { return as_float((u32)(n + 127) << 23); }
static float with_sign(float magnitude, float s)
{
    return as_float((as_bits(magnitude) & 0x7fffffffu) | (as_bits(s) & 0x80000000u));
}
static float magnitude_of(float x) { return as_float(as_bits(x) & 0x7fffffffu); }

static const u32 EXP_SERIES[] = {0x3efffffe, 0x3e2aaa45, 0x3d2aac27, 0x3c091f97, 0x3ab56890};

/* e^x = (1 + r + r * r * q) * 2^n */
static void exp_core(float x, float *r_out, float *q_out, int32_t *n_out)
{
    float t = fused(x, as_float(0x3fb8aa3b), as_float(0x4b400000));
    *n_out = (int32_t)(as_bits(t) - 0x4b400000u);
    float nf = t - as_float(0x4b400000);
    float r = fused(nf, -as_float(0x3f317200), x);
    r = fused(nf, -as_float(0x35bfbe8e), r);
    *q_out = HORNER(r, EXP_SERIES);
    *r_out = r;
}

/* e^r - 1 */
static float less_one(float r, float q)
{
    float rr = r * r;
    return fused(rr, q, r);
}

static float times_power(float x, int32_t n)
{
    float y = x * pow2(n >> 1);
    return y * pow2(n - (n >> 1));
}

static float f_exp(float x)
{
    float r, q;
    int32_t n;
    if (is_nan(x)) return x;
    x = x < -105.0f ? -105.0f : x;
    x = x > 89.0f ? 89.0f : x;
    exp_core(x, &r, &q, &n);
    float s = fused(q, r, 1.0f);
    return times_power(fused(s, r, 1.0f), n);
}

/* log((1 + f)·2^k) of the contract, plus g. */
static float log_sum(float kf, float f, float g)
{
    static const u32 C[] = {0xbf000000, 0x3eaaaaa9, 0xbe8000f1, 0x3e4cd07e, 0xbe2a42d8,
                            0x3e116ac1, 0xbe066736, 0x3e028da1, 0xbd9dc695};
    float q = HORNER(f, C);
    float s = kf * as_float(0x3f317200);
    float h = s + f;
    float l = h - s;
    l = f - l;
    l = fused(kf, as_float(0x35bfbe8e), l);
    l = l + g;
    float ff = f * f;
    l = fused(ff, q, l);
    return h + l;
}

static float f_log(float x)
{
    if (is_nan(x) || x < 0.0f) return as_float(0x7fc00000u);
    if (x == 0.0f) return NEG_INF;
    if (x == INFINITY) return x;
    int32_t lowered = 0;
    if (as_bits(x) < 0x00800000u) { x = x * 8388608.0f; lowered = 23; }
    u32 u = as_bits(x);
    int32_t k = (int32_t)(u - 0x3f3504f3u) >> 23;
    float f = as_float(u - ((u32)k << 23)) - 1.0f;
    float kf = (float)(k - lowered);
    return log_sum(kf, f, 0.0f);
}

static float f_tanh(float x)
{
    static const u32 C[] = {0xbeaaaaa6, 0x3e088766, 0xbd5cddb2, 0x3cb13d3f, 0xbc067dd8, 0x3b25b194, 0xb9e403e9};
    if (is_nan(x)) return x;
    float a = magnitude_of(x), r;
    if (a < as_float(0x3f6b851f)) {
        float y = a * a;
        float q = HORNER(y, C);
        y = a * y;
        r = a < as_float(0x39000000) ? a : fused(y, q, a);
    } else {
        float z = 2.0f * a, s, q;
        int32_t n;
        exp_core(z < 20.0f ? z : 20.0f, &s, &q, &n);
        float p = pow2(n);
        z = p + 1.0f;
        z = fused(p, less_one(s, q), z);
        z = 2.0f / z;
        r = 1.0f - z;
    }
    return with_sign(r, x);
}

static float f_erf(float x)
{
    static const u32 NEAR[] = {0x3e0375d4, 0xbec09397, 0x3de713aa, 0xbcdbac93, 0x3ba63a36, 0xba28e39d};
    static const u32 FAR[] = {0xbfebc2c5, 0xc02893ed, 0xbf57bddf, 0xbd2ab2c8, 0x3c24525e, 0xbafb9c7e, 0x395ce34f};
    if (is_nan(x)) return x;
    float a = magnitude_of(x), y;
    if (a < as_float(0x3f547ae1)) {
        float square = a * a;
        y = a * HORNER(square, NEAR);
        y = y + a;
    } else {
        float limit = as_float(0x407ccccd), r, q;
        int32_t n;
        a = a > limit ? limit : a;
        float d = a - as_float(0x3f7f4000);
        exp_core(HORNER(d, FAR), &r, &q, &n);
        float p = pow2(n);
        y = 1.0f - p;
        y = fused(-p, less_one(r, q), y);
    }
    return with_sign(y, x);
}

static float f_log1p(float x)
{
    if (is_nan(x) || x < -1.0f) return as_float(0x7fc00000u);
    if (x == -1.0f) return NEG_INF;
    if (x == INFINITY) return x;
    float u = 1.0f + x;
    int32_t k = (int32_t)(as_bits(u) - 0x3f3504f3u) >> 23;
    float f = x, g = 0.0f;
    if (k != 0) {
        f = as_float(as_bits(u) - ((u32)k << 23)) - 1.0f;
        g = u - 1.0f;
        g = x - g;
        g = g / u;
    }
    return with_sign(log_sum((float)k, f, g), x);
}

static float f_expm1(float x)
{
    static const u32 C[] = {0x3f000000, 0x3e2aaaab, 0x3d2aaa7b, 0x3c088802, 0x3ab69e56, 0x3951217b};
    if (is_nan(x)) return x;
    float v = x < -18.0f ? -18.0f : x;
    v = v > 89.0f ? 89.0f : v;
    float t = fused(v, as_float(0x3fb8aa3b), as_float(0x4b400000));
    int32_t n = (int32_t)(as_bits(t) - 0x4b400000u);
    float nf = t - as_float(0x4b400000);
    float a = nf * -as_float(0x3f317200);
    a = a + v;
    float g = nf * as_float(0x35bfbe8e);
    float r = a - g;
    float w = a - r;
    w = w - g;
    float rr = r * r;
    float u = rr * HORNER(r, C);
    u = u + w;
    float p = pow2(n > 127 ? 127 : n);
    float b = p - 1.0f;
    float d = p * r;
    float s = b + d;
    float l = s - b;
    l = d - l;
    u = p * u;
    l = l + u;
    float y = s + l;
    return with_sign(n > 127 ? 2.0f * y : y, x);
}

/* |x| less q quarters of a turn as h + l; x is finite. */
static u32 reduce_angle(float a, float *h, float *l)
{
    /* 2/pi in bytes, behind four that are 0: of their bits the product with a's 24 takes 96. */
    static const u32 TWO_OVER_PI[] = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    if (a < 6400.0f) {
        float t = a * as_float(0x3f22f983);
        t = t + as_float(0x4b400000);
        float n = t - as_float(0x4b400000), r, w;
        w = n * as_float(0x3fc91000);
        r = a - w;
        w = n * as_float(0xb6960000);
        r = r - w;
        w = n * as_float(0x32888000);
        *h = r - w;
        *l = r - *h;
        *l = *l - w;
        w = n * as_float(0x2c34611a);
        *l = *l - w;
        return as_bits(t) - 0x4b400000u;
    }
    u32 first = (as_bits(a) >> 23) - 120;
    u128 window = 0;
    for (u32 i = first; i < first + 96; i++) window = window << 1 | (TWO_OVER_PI[i / 32] >> (31 - i % 32) & 1);
    u64 p = (u64)((u128)((as_bits(a) & 0x7fffffu) | 0x800000u) * window >> 32);
    u32 q = (u32)(p >> 62);
    u64 f = p << 2;
    int negative = f >> 63 != 0;
    if (negative) { f = 0 - f; q++; }
    int z = __builtin_clzll(f);
    u64 top = f << z >> 32;
    u32 r = (u32)(top * 0xc90fdaa2u >> 33);
    float scale = negative ? -pow2(-30 - z) : pow2(-30 - z);
    *h = (float)(r & ~127u) * scale;
    *l = (float)(r & 127u) * scale;
    return q;
}

/* The sine of |x| and some right angles. */
static float f_angle(float x, u32 quarters)
{
    static const u32 S[] = {0xbe2aaaa3, 0x3c0883be, 0xb94caae3}, C[] = {0x3d2aaaa5, 0xbab6060d, 0x37ccf072};
    float h, l, y, w;
    if ((as_bits(x) & 0x7fffffffu) >= 0x7f800000u) return as_float(0x7fc00000u);
    u32 q = reduce_angle(magnitude_of(x), &h, &l) + quarters;
    float z = h * h;
    float half = 0.5f * z;
    float one = 1.0f - half;
    if (q % 2 == 0) {
        y = h * z;
        y = y * HORNER(z, S);
        w = l * one;
        y = y + w;
        y = h + y;
    } else {
        y = z * z;
        y = y * HORNER(z, C);
        w = h * l;
        y = y - w;
        w = 1.0f - one;
        w = w - half;
        y = w + y;
        y = one + y;
    }
    return q % 4 >= 2 ? -y : y;
}

static float f_sin(float x)
{
    float y = f_angle(x, 0);
    return as_bits(x) >> 31 ? -y : y;
}
static float f_cos(float x) { return f_angle(x, 1); }

static float upper(float x) { return as_float(as_bits(x) & 0xfffff000u); }

/* log2 of a positive finite number as h + l */
static void log2_of(float a, float *h_out, float *l_out)
{
    static const u32 C[] = {0x3f1999c0, 0x3edb3de0, 0x3eb3dc68};
    int32_t lowered = 0;
    if (as_bits(a) < 0x00800000u) { a = a * 8388608.0f; lowered = 23; }
    int32_t n = (int32_t)(as_bits(a) - 0x3f3504f3u) >> 23;
    float m = as_float(as_bits(a) - ((u32)n << 23)), k = (float)(n - lowered);
    float f = m - 1.0f, t = m + 1.0f;
    float v = 1.0f / t;
    float s = f * v, w;
    float sh = upper(s), th = upper(t);
    float tl = th - 1.0f;
    tl = m - tl;
    w = sh * th;
    float sl = f - w;
    w = sh * tl;
    sl = sl - w;
    sl = sl * v;
    float z = s * s;
    float r = z * z;
    r = r * HORNER(z, C);
    w = sh + s;
    w = sl * w;
    r = r + w;
    float square = sh * sh;
    float gh = square + 3.0f;
    gh = upper(gh + r);
    float gl = gh - 3.0f;
    gl = gl - square;
    gl = r - gl;
    float p = sh * gh, pl = sl * gh;
    w = gl * s;
    pl = pl + w;
    float ph = upper(p + pl);
    w = ph - p;
    pl = pl - w;
    float zh = ph * as_float(0x3f764000), zl = ph * as_float(0xb8f623c6);
    w = pl * as_float(0x3f76384f);
    zl = zl + w;
    float h = zh + zl;
    h = upper(h + k);
    w = h - k;
    w = w - zh;
    *h_out = h;
    *l_out = zl - w;
}

static float exp2_of(float h, float l, float y)
{
    float limit = as_float(0x53800000), w;
    y = y > limit ? limit : y < -limit ? -limit : y;
    float yh = upper(y);
    float low = y - yh;
    low = low * h;
    w = y * l;
    low = low + w;
    float high = yh * h;
    float total = high + low;
    if (total > 160.0f) { high = 160.0f; low = 0.0f; }
    if (total < -160.0f) { high = -160.0f; low = 0.0f; }
    float t = high + low;
    t = t + as_float(0x4b400000);
    w = t - as_float(0x4b400000);
    float d = high - w;
    float dh = upper(d + low);
    w = dh - d;
    float dl = low - w;
    float p = dh * as_float(0x3f317000);
    w = dl * as_float(0x3f317218);
    float g = dh * as_float(0x3805fdf4);
    w = w + g;
    float r = p + w;
    float u = r * r;
    u = u * HORNER(r, EXP_SERIES);
    g = r - p;
    w = w - g;
    u = u + w;
    float e = 1.0f + r;
    w = e - 1.0f;
    w = r - w;
    w = w + u;
    return times_power(e + w, (int32_t)(as_bits(t) - 0x4b400000u));
}

static float f_pow(float x, float y)
{
    if (y == 0.0f || x == 1.0f) return 1.0f;
    if (is_nan(x) || is_nan(y)) return as_float(0x7fc00000u);
    float a = magnitude_of(x), r;
    int odd = fmod((double)magnitude_of(y), 2.0) == 1.0; /* exact; NaN of an infinity */
    if (a == 0.0f || a == INFINITY) r = (a == 0.0f) == (y > 0.0f) ? 0.0f : INFINITY;
    else if (x < 0.0f && floorf(y) != y) return as_float(0x7fc00000u);
    else {
        float h, l;
        log2_of(a, &h, &l);
        r = exp2_of(h, l, y);
    }
    return odd ? with_sign(r, x) : r;
}

static float f_sigmoid(float x)
{
    float r, q;
    int32_t n;
    if (is_nan(x)) return x;
    float a = -magnitude_of(x);
    a = a < -105.0f ? -105.0f : a;
    exp_core(a, &r, &q, &n);
    float h = 1.0f + less_one(r, q);
    float l = h - 1.0f;
    l = r - l;
    float rr = r * r;
    l = fused(rr, q, l);
    float z = times_power(h, n);
    float v = 1.0f + z;
    v = 1.0f / v;
    float y = h * v;
    float remainder = h - y;
    remainder = fused(-y, z, remainder);
    float w = fused(l, v, remainder);
    w = fused(w, v, y);
    w = times_power(w, n);
    return x >= 0.0f ? 1.0f - w : w;
}

static float f_gelu_tanh(float x)
{
    float w = x * x;
    w = w * as_float(0x3d922279);
    w = w + as_float(0x3fcc422a);
    w = x * w;
    return x * f_sigmoid(w);
}

static float f_gelu_erf(float x)
{
    float h = 0.5f * x;
    float w = x * as_float(0x3f3504f3);
    w = h * f_erf(w);
    return w + h;
}

static float f_relu(float x) { return is_nan(x) ? x : x > 0.0f ? x : 0.0f; }
static float f_silu(float x) { return x * f_sigmoid(x); }
static float f_rsqrt(float x) { float s = sqrtf(x); return 1.0f / s; }

static int32_t max_key(float x)
{
    u32 u = as_bits(canonical(x));
    return (int32_t)(u ^ ((u32)((int32_t)u >> 31) & 0x7fffffffu));
}

/* The order of MAX: NaN above everything here; of numbers -0 below +0. */
static float f_maximum(float a, float b) { return max_key(a) > max_key(b) ? a : b; }
static float f_minimum(float a, float b)
{
    if (is_nan(a) || is_nan(b)) return as_float(0x7fc00000u);
    return max_key(a) < max_key(b) ? a : b;
}

static float apply(int kind, float x, float first, float second)
{
    switch (kind) {
    case RELU: return f_relu(x);
    case SIGMOID: return f_sigmoid(x);
    case TANH: return f_tanh(x);
    case GELU_TANH: return f_gelu_tanh(x);
    case GELU_ERF: return f_gelu_erf(x);
    case SILU: return f_silu(x);
    case NEG: return as_float(as_bits(x) ^ 0x80000000u);
    case ABS: return magnitude_of(x);
    case EXP: return f_exp(x);
    case LOG: return f_log(x);
    case SQRT: return sqrtf(x);
    case RSQRT: return f_rsqrt(x);
    case SCALE: return x * first;
    case ERF: return f_erf(x);
    case FLOOR: return floorf(x);
    case ROUND: return rintf(x); /* the process rounds to nearest even */
    case SIN: return f_sin(x);
    case COS: return f_cos(x);
    case LOG1P: return f_log1p(x);
    case EXPM1: return f_expm1(x);
    case CLAMP: return f_minimum(f_maximum(x, first), second);
    default: return x;
    }
}

/* ---------------------------------------------------------------- reductions over one strided row */

static float sum_row(const float *x, i64 n, i64 stride)
{
    if (n <= 1024) {
        float lane[32] = {0};
        for (i64 i = 0; i < n; i++) lane[i % 32] = lane[i % 32] + x[i * stride];
        for (int s = 16; s >= 1; s /= 2)
            for (int l = 0; l < s; l++) lane[l] = lane[l] + lane[l + s];
        return plus_zero(lane[0]);
    }
    i64 blocks = (n + 1023) / 1024;
    float *part = malloc((size_t)blocks * sizeof *part);
    for (i64 b = 0; b < blocks; b++) {
        i64 left = n - b * 1024;
        part[b] = sum_row(x + b * 1024 * stride, left < 1024 ? left : 1024, stride);
    }
    float total = sum_row(part, blocks, 1);
    free(part);
    return total;
}

static float prod_row(const float *x, i64 n, i64 stride)
{
    if (n <= 1024) {
        float lane[32];
        for (int l = 0; l < 32; l++) lane[l] = 1;
        for (i64 i = 0; i < n; i++) lane[i % 32] = lane[i % 32] * x[i * stride];
        for (int s = 16; s >= 1; s /= 2)
            for (int l = 0; l < s; l++) lane[l] = lane[l] * lane[l + s];
        return canonical(lane[0]);
    }
    i64 blocks = (n + 1023) / 1024;
    float *part = malloc((size_t)blocks * sizeof *part);
    for (i64 b = 0; b < blocks; b++) {
        i64 left = n - b * 1024;
        part[b] = prod_row(x + b * 1024 * stride, left < 1024 ? left : 1024, stride);
    }
    float total = prod_row(part, blocks, 1);
    free(part);
    return total;
}

static i64 argmax_row(const float *x, i64 n, i64 stride)
{
    i64 best = 0;
    for (i64 i = 1; i < n; i++)
        if (max_key(x[i * stride]) > max_key(x[best * stride])) best = i;
    return best;
}

static float max_row(const float *x, i64 n, i64 stride) { return canonical(x[argmax_row(x, n, stride) * stride]); }

/* a is before b as a minimum: NaN first, then numbers upwards with -0 before +0 */
static int below(float a, float b)
{
    if (is_nan(a) || is_nan(b)) return is_nan(a) && !is_nan(b);
    if (a == b) return as_bits(a) >> 31 && !(as_bits(b) >> 31);
    return a < b;
}

static i64 argmin_row(const float *x, i64 n, i64 stride)
{
    i64 best = 0;
    for (i64 i = 1; i < n; i++)
        if (below(x[i * stride], x[best * stride])) best = i;
    return best;
}

enum { SUM, MEAN, MAX, MIN, PROD };

static float reduce_row(i64 kind, const float *x, i64 n, i64 stride)
{
    switch (kind) {
    case MAX: return max_row(x, n, stride);
    case MIN: return x[argmin_row(x, n, stride) * stride];
    case PROD: return prod_row(x, n, stride);
    case MEAN: return sum_row(x, n, stride) / (float)n;
    default: return sum_row(x, n, stride);
    }
}

void o_reduce(i64 kind, i64 outer, i64 n, i64 inner, const float *x, float *out)
{
    for (i64 o = 0; o < outer; o++)
        for (i64 i = 0; i < inner; i++) {
            out[o * inner + i] = canonical(reduce_row(kind, x + o * n * inner + i, n, inner));
        }
}

void o_place(i64 least, i64 outer, i64 n, i64 inner, const float *x, i64 *out)
{
    for (i64 o = 0; o < outer; o++)
        for (i64 i = 0; i < inner; i++) {
            const float *row = x + o * n * inner + i;
            out[o * inner + i] = least ? argmin_row(row, n, inner) : argmax_row(row, n, inner);
        }
}

void o_softmax(i64 outer, i64 n, i64 inner, const float *x, float *out)
{
    for (i64 o = 0; o < outer; o++)
        for (i64 i = 0; i < inner; i++) {
            const float *row = x + o * n * inner + i;
            float *y = out + o * n * inner + i;
            if (n == 0) continue;
            float m = max_row(row, n, inner);
            for (i64 j = 0; j < n; j++) y[j * inner] = f_exp(row[j * inner] - m);
            float total = sum_row(y, n, inner);
            for (i64 j = 0; j < n; j++) y[j * inner] = canonical(y[j * inner] / total);
        }
}

/* y[i] += the sum up to y[i - 1], for blocks of 256 and then, in the same way, for their totals */
static void cumsum_row(float *y, i64 n, i64 stride)
{
    i64 blocks = (n + 255) / 256;
    float *totals = malloc((size_t)(blocks + 1) * sizeof *totals);
    for (i64 b = 0; b < blocks; b++) {
        float chain = 0.0f;
        for (i64 i = b * 256; i < n && i < b * 256 + 256; i++) y[i * stride] = chain = chain + y[i * stride];
        totals[b] = chain;
    }
    if (blocks > 1) cumsum_row(totals, blocks, 1);
    for (i64 i = 256; i < n; i++) y[i * stride] = totals[i / 256 - 1] + y[i * stride];
    free(totals);
}

void o_cumsum(i64 outer, i64 n, i64 inner, const float *x, float *out)
{
    memcpy(out, x, (size_t)(outer * n * inner) * sizeof *x);
    for (i64 o = 0; o < outer; o++)
        for (i64 i = 0; i < inner; i++) cumsum_row(out + o * n * inner + i, n, inner);
    for (i64 i = 0; i < outer * n * inner; i++) out[i] = canonical(out[i]);
}

/* a row has `half` pairs, with a cosine and a sine each */
void o_rope(i64 rows, i64 half, i64 interleaved, const float *x, const float *cosines, const float *sines, float *out)
{
    for (i64 r = 0; r < rows; r++, x += 2 * half, out += 2 * half)
        for (i64 i = 0; i < half; i++) {
            i64 first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
            float c = cosines[r * half + i], s = sines[r * half + i], a = x[first], b = x[second];
            float ac = a * c, bs = b * s, bc = b * c, as = a * s;
            out[first] = canonical(ac - bs);
            out[second] = canonical(bc + as);
        }
}

/* the indices of each line's k greatest elements: every element is put behind those that it is not greater than */
void o_topk(i64 outer, i64 n, i64 inner, i64 k, const float *x, i64 *out)
{
    i64 *best = malloc((size_t)(k + 1) * sizeof *best);
    for (i64 o = 0; o < outer; o++)
        for (i64 i = 0; i < inner; i++) {
            const float *row = x + o * n * inner + i;
            i64 count = 0;
            for (i64 j = 0; j < n; j++) {
                i64 place = count;
                while (place > 0 && max_key(row[j * inner]) > max_key(row[best[place - 1] * inner])) place--;
                if (place == k) continue;
                if (count < k) count++;
                memmove(best + place + 1, best + place, (size_t)(count - 1 - place) * sizeof *best);
                best[place] = j;
            }
            for (i64 j = 0; j < k; j++) out[(o * k + j) * inner + i] = best[j];
        }
    free(best);
}

void o_canonical(i64 n, float *x)
{
    for (i64 i = 0; i < n; i++) x[i] = canonical(x[i]);
}

/* gamma and beta may be NULL */
void o_layernorm(i64 rows, i64 n, const float *x, const float *gamma, const float *beta, float eps, float *out)
{
    float *sq = malloc((size_t)(n + 1) * sizeof *sq);
    for (i64 r = 0; r < rows; r++, x += n, out += n) {
        float mu = sum_row(x, n, 1) / (float)n;
        for (i64 i = 0; i < n; i++) { out[i] = x[i] - mu; sq[i] = out[i] * out[i]; }
        float v = sum_row(sq, n, 1) / (float)n;
        float inv = f_rsqrt(v + eps);
        for (i64 i = 0; i < n; i++) {
            float y = out[i] * inv;
            if (gamma) y = y * gamma[i];
            if (beta) y = y + beta[i];
            out[i] = canonical(y);
        }
    }
    free(sq);
}

void o_rmsnorm(i64 rows, i64 n, const float *x, const float *gamma, float eps, float *out)
{
    float *sq = malloc((size_t)(n + 1) * sizeof *sq);
    for (i64 r = 0; r < rows; r++, x += n, out += n) {
        for (i64 i = 0; i < n; i++) sq[i] = x[i] * x[i];
        float v = sum_row(sq, n, 1) / (float)n;
        float inv = f_rsqrt(v + eps);
        for (i64 i = 0; i < n; i++) {
            float y = x[i] * inv;
            if (gamma) y = y * gamma[i];
            out[i] = canonical(y);
        }
    }
    free(sq);
}

/* ---------------------------------------------------------------- elementwise */

void o_unary(i64 kind, i64 n, const float *x, float first, float second, float *out)
{
    for (i64 i = 0; i < n; i++) out[i] = canonical(apply((int)kind, x[i], first, second));
}

enum { ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, POW };

void o_binary(i64 kind, i64 n, const float *a, const float *b, float *out)
{
    for (i64 i = 0; i < n; i++) {
        float r = as_float(0x7fc00000u);
        switch (kind) {
        case ADD: r = a[i] + b[i]; break;
        case SUB: r = a[i] - b[i]; break;
        case MUL: r = a[i] * b[i]; break;
        case DIV: r = a[i] / b[i]; break;
        case MAXIMUM: r = f_maximum(a[i], b[i]); break;
        case MINIMUM: r = f_minimum(a[i], b[i]); break;
        case POW: r = f_pow(a[i], b[i]); break;
        }
        out[i] = canonical(r);
    }
}

void o_fmaz(i64 n, const u32 *a, const u32 *b, const u32 *c, u32 *out)
{
    for (i64 i = 0; i < n; i++) out[i] = fmaz(a[i], b[i], c[i]);
}

/* ---------------------------------------------------------------- products */

/* The scale of a line: the largest s with rint(|x|max 2^s) <= limit, found one by one in double, in which all of it is exact.
 * 0 of zeros; returns 0 where the line is not finite. */
static int line_scale(const u32 *x, i64 K, double limit, int *s)
{
    u32 most = 0;
    for (i64 k = 0; k < K; k++) if ((x[k] & 0x7fffffffu) > most) most = x[k] & 0x7fffffffu;
    *s = 0;
    if (most >= 0x7f800000u) return 0;
    if (most == 0) return 1;
    double largest = as_float(most);
    for (*s = 200; rint(ldexp(largest, *s)) > limit; --*s) {}
    return 1;
}

/* total * 2^e, to 24 bits and then to what a float has there. */
static float fixed_result(i128 total, int e)
{
    u128 n = total < 0 ? (u128)-total : (u128)total;
    if (n == 0) return 0.0f;
    int drop = top_bit(n) - 23;
    if (drop > 0) {
        u128 rest = n & (((u128)1 << drop) - 1), half = (u128)1 << (drop - 1);
        n >>= drop;
        n += (rest > half) | ((rest == half) & (n & 1));
        e += drop;
    }
    /* at most 25 bits, exact in double; double to float rounds to nearest even, also where the float is subnormal */
    float r = (float)ldexp((double)(u64)n, e);
    return r == 0.0f ? 0.0f : total < 0 ? -r : r;
}

/* The total of two lines of fixed-point numbers. */
static float fixed_dot(const i64 *a, const i64 *b, i64 K, int e)
{
    i128 total = 0;
    for (i64 k = 0; k < K; k++) total += (i128)(a[k] * b[k]);
    return fixed_result(total, e);
}

/* The lines of an operand as integers, and their scales; a scale of 9999 where a line is not finite. */
static void fixed_lines(i64 lines, i64 K, const u32 *x, double limit, i64 *q, int *s)
{
    for (i64 i = 0; i < lines; i++) {
        if (!line_scale(x + i * K, K, limit, s + i)) { s[i] = 9999; continue; }
        for (i64 k = 0; k < K; k++) q[i * K + k] = (i64)rint(ldexp((double)as_float(x[i * K + k]), s[i]));
    }
}

/* The total of two rows of floats. limit is 0, or the largest of fixed-point numbers: each row is then a line. */
static float row_dot(const u32 *a, const u32 *b, i64 K, i64 limit)
{
    if (!limit) return m_dot(a, b, K);
    i64 *q = malloc((size_t)(2 * K + 1) * sizeof *q);
    int sa = 0, sb = 0;
    fixed_lines(1, K, a, (double)limit, q, &sa);
    fixed_lines(1, K, b, (double)limit, q + K, &sb);
    float t = sa == 9999 || sb == 9999 ? as_float(0x7fc00000u) : fixed_dot(q, q + K, K, -sa - sb);
    free(q);
    return t;
}

/* One matrix product: a is [M,K] ([K,M] with trans_a), b is [K,N] ([N,K] with trans_b). c is [M,N], already broadcast,
 * or NULL; bias is [N] or NULL. limit is 0, or the largest of fixed-point numbers. */
void o_matmul(i64 M, i64 N, i64 K, i64 trans_a, i64 trans_b, const u32 *a, const u32 *b, float alpha, float beta,
              const float *c, const float *bias, i64 activation, i64 limit, float *out)
{
    u32 *pa = malloc((size_t)(M * K + 1) * 4), *pb = malloc((size_t)(N * K + 1) * 4);
    for (i64 m = 0; m < M; m++)
        for (i64 k = 0; k < K; k++) pa[m * K + k] = trans_a ? a[k * M + m] : a[m * K + k];
    for (i64 k = 0; k < K; k++)
        for (i64 n = 0; n < N; n++) pb[n * K + k] = trans_b ? b[n * K + k] : b[k * N + n];
    i64 *qa = malloc((size_t)(M * K + 1) * 8), *qb = malloc((size_t)(N * K + 1) * 8);
    int *sa = malloc((size_t)(M + 1) * sizeof *sa), *sb = malloc((size_t)(N + 1) * sizeof *sb);
    if (limit) {
        fixed_lines(M, K, pa, (double)limit, qa, sa);
        fixed_lines(N, K, pb, (double)limit, qb, sb);
    }
    for (i64 m = 0; m < M; m++)
        for (i64 n = 0; n < N; n++) {
            float t;
            if (!limit) t = m_dot(pa + m * K, pb + n * K, K);
            else if (sa[m] == 9999 || sb[n] == 9999) t = as_float(0x7fc00000u);
            else t = fixed_dot(qa + m * K, qb + n * K, K, -sa[m] - sb[n]);
            t = t * alpha;
            if (beta != 0.0f) { float s = beta * c[m * N + n]; t = t + s; }
            if (bias) t = t + bias[n];
            out[m * N + n] = canonical(apply((int)activation, t, 0, 0));
        }
    free(pa);
    free(pb);
    free(qa);
    free(qb);
    free(sa);
    free(sb);
}

void o_ffn(i64 rows, i64 D, i64 H, i64 E, const float *x, const float *w1, const float *b1, const float *w2,
           const float *b2, i64 activation, i64 limit, float *out)
{
    float *hidden = malloc((size_t)(rows * H + 1) * sizeof *hidden);
    o_matmul(rows, H, D, 0, 0, (const u32 *)x, (const u32 *)w1, 1.0f, 0.0f, NULL, b1, activation, limit, hidden);
    o_matmul(rows, E, H, 0, 0, (const u32 *)hidden, (const u32 *)w2, 1.0f, 0.0f, NULL, b2, NONE, limit, out);
    free(hidden);
}

/* The values of n keys, as integers of each row's scale, and the factors of the keys' weights. */
static void cut_values(i64 n, i64 Dv, const float *v, i64 limit, i64 *q, float *factor)
{
    for (i64 j = 0; j < n; j++) {
        const float *row = v + j * Dv;
        int s = 0, common = limit > 40000 ? 20 : 12;
        float largest = 0.0f;
        for (i64 d = 0; d < Dv; d++) largest = fabsf(row[d]) > largest ? fabsf(row[d]) : largest;
        fixed_lines(1, Dv, (const u32 *)row, (double)limit, q + j * Dv, &s);
        factor[j] = s == 9999 ? as_float(0x7fc00000u) : largest < 0x1p-124f ? 0.0f : (float)ldexp(1.0, common - s);
        if (!(factor[j] > 0.0f)) memset(q + j * Dv, 0, (size_t)Dv * sizeof *q);
    }
}

/* One head. mask is [Sq,Sk], already broadcast, or NULL. limit is 0, or the largest of fixed-point numbers. */
void o_attention(i64 Sq, i64 Sk, i64 D, i64 Dv, const float *q, const float *k, const float *v, const float *mask,
                 i64 causal, float scale, i64 limit, float *out)
{
    float *O = malloc((size_t)(Dv + 1) * sizeof *O), *factor = malloc((size_t)(Sk + 1) * sizeof *factor);
    i64 *q_v = limit ? malloc((size_t)(Sk * Dv + 1) * sizeof *q_v) : NULL;
    if (limit) cut_values(Sk, Dv, v, limit, q_v, factor);
    if (scale == 0.0f) scale = 1.0f / sqrtf((float)D);
    for (i64 i = 0; i < Sq; i++) {
        float m = NEG_INF, l = 0.0f;
        int any_block = 0;
        for (i64 d = 0; d < Dv; d++) O[d] = 0.0f;
        for (i64 j0 = 0; j0 < Sk; j0 += 64) {
            i64 n = Sk - j0 < 64 ? Sk - j0 : 64;
            float x[64], p[64];
            for (i64 j = 0; j < n; j++) {
                i64 key = j0 + j;
                if (causal && key > i + (Sk - Sq)) { x[j] = NEG_INF; continue; }
                x[j] = row_dot((const u32 *)q + i * D, (const u32 *)k + key * D, D, limit);
                x[j] = x[j] * scale;
                if (mask) x[j] = x[j] + mask[i * Sk + key];
            }
            float mb = max_row(x, n, 1);
            if (mb == NEG_INF) continue;
            any_block = 1;
            for (i64 j = 0; j < n; j++) p[j] = f_exp(x[j] - mb);
            float lb = sum_row(p, n, 1);
            float both[2] = {m, mb};
            float m2 = max_row(both, 2, 1);
            float fa = f_exp(m - m2), fc = f_exp(mb - m2);
            float old = l * fa, new = lb * fc;
            l = old + new;
            u32 weights[64], column[64];
            i64 q_w[64], q_column[64];
            int s_w = 0;
            for (i64 j = 0; j < n; j++) weights[j] = as_bits(limit ? p[j] * factor[j0 + j] : p[j]);
            if (limit) fixed_lines(1, n, weights, (double)limit, q_w, &s_w);
            for (i64 d = 0; d < Dv; d++) {
                float ob;
                if (limit) {
                    for (i64 j = 0; j < n; j++) q_column[j] = q_v[(j0 + j) * Dv + d];
                    ob = s_w == 9999 ? as_float(0x7fc00000u) : fixed_dot(q_w, q_column, n, -s_w - (limit > 40000 ? 20 : 12));
                } else {
                    for (i64 j = 0; j < n; j++) column[j] = as_bits(v[(j0 + j) * Dv + d]);
                    ob = m_dot(weights, column, n);
                }
                float kept = O[d] * fa, added = ob * fc;
                O[d] = kept + added;
            }
            m = m2;
        }
        for (i64 d = 0; d < Dv; d++) out[i * Dv + d] = any_block ? canonical(O[d] / l) : 0.0f;
    }
    free(O);
    free(factor);
    free(q_v);
}

/* ---------------------------------------------------------------- storage and casts */

static float widen_f16(uint16_t h)
{
    u32 s = (u32)(h & 0x8000) << 16, x = h >> 10 & 31, m = h & 0x3ff;
    if (x == 31) return as_float(s | 0x7f800000u | m << 13);
    if (x == 0) return with_sign((float)m * as_float(0x33800000u), as_float(s)); /* m * 2^-24, exact */
    return as_float(s | (x + 112) << 23 | m << 13);
}

static uint16_t narrow_f16(float f)
{
    u32 u = as_bits(f), s = u >> 16 & 0x8000, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return 0x7e00;
    if (a >= 0x47800000u) return (uint16_t)(s | 0x7c00);
    if (a >= 0x38800000u) return (uint16_t)(s | (a + 0xfff + (a >> 13 & 1) - 0x38000000u) >> 13);
    u32 shift = 126 - (a >> 23), m = (a & 0x7fffffu) | 0x800000u;
    if (shift > 25) return (uint16_t)s;
    u32 r = m >> shift, rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);
    r += rest > half || (rest == half && (r & 1));
    return (uint16_t)(s | r);
}

static uint16_t narrow_bf16(float f)
{
    u32 u = as_bits(f);
    if (is_nan(f)) return 0x7fc0;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

void o_widen(i64 dtype, i64 n, const void *src, float *dst)
{
    for (i64 i = 0; i < n; i++)
        dst[i] = dtype == F32 ? ((const float *)src)[i]
               : dtype == F16 ? widen_f16(((const uint16_t *)src)[i])
                              : as_float((u32)((const uint16_t *)src)[i] << 16);
}

void o_narrow(i64 dtype, i64 n, const float *src, void *dst)
{
    for (i64 i = 0; i < n; i++) {
        if (dtype == F32) ((float *)dst)[i] = canonical(src[i]);
        else ((uint16_t *)dst)[i] = dtype == F16 ? narrow_f16(src[i]) : narrow_bf16(src[i]);
    }
}

/* The nearest number to x that has `bits` bits and no bit below 2^least. */
static double rounded(double x, int bits, int least)
{
    int e;
    if (x == 0 || x != x || x - x != 0) return x;
    frexp(x, &e);
    e = e - bits > least ? e - bits : least;
    /* To units of 2^e: exact, unless x is far below them. */
    return copysign(ldexp(nearbyint(ldexp(x, -e)), e), x);
}

static void from_double(double x, int to, void *dst)
{
    if (to == F32) *(float *)dst = x != x ? as_float(0x7fc00000u) : (float)x;
    else {
        float f = (float)(to == F16 ? rounded(x, 11, -24) : rounded(x, 8, -133));
        o_narrow(to, 1, &f, dst);
    }
}

static i64 double_to_int(double x, int dtype)
{
    double low = dtype == I32 ? -2147483648.0 : dtype == I64 ? -9223372036854775808.0 : 0;
    double above = dtype == I32 ? 2147483648.0 : dtype == U32 ? 4294967296.0 : dtype == U8 ? 256.0 : 9223372036854775808.0;
    if (x != x) return 0;
    if (x >= above) return dtype == I64 ? INT64_MAX : (i64)above - 1;
    return x <= low ? (i64)low : (i64)x;
}

/* Casts from and to f64. */
static void o_cast_double(i64 from, i64 to, const void *src, void *dst)
{
    if (to == F64) {
        float f;
        double x;
        if (from == F32 || from == F16 || from == BF16) o_widen(from, 1, src, &f), x = f;
        else x = from == BOOL ? *(const unsigned char *)src != 0 : from == U8 ? *(const unsigned char *)src
               : from == I32 ? *(const int32_t *)src : from == U32 ? *(const u32 *)src : (double)*(const i64 *)src;
        u64 nan = 0x7ff8000000000000u;
        memcpy(dst, x != x ? (void *)&nan : (void *)&x, 8);
        return;
    }
    double x;
    memcpy(&x, src, 8);
    if (to == F32 || to == F16 || to == BF16) from_double(x, (int)to, dst);
    else if (to == BOOL) *(unsigned char *)dst = x != 0;
    else if (to == U8) *(unsigned char *)dst = (unsigned char)double_to_int(x, U8);
    else if (to == I64) *(i64 *)dst = double_to_int(x, I64);
    else *(u32 *)dst = (u32)(u64)double_to_int(x, (int)to);
}

static i64 float_to_int(float f, int dtype)
{
    if (is_nan(f)) return 0;
    if (dtype == I32) return f >= 2147483648.0f ? INT32_MAX : f <= -2147483648.0f ? INT32_MIN : (int32_t)f;
    if (dtype == U8) return f >= 255.0f ? 255 : f <= 0.0f ? 0 : (i64)f;
    if (dtype == U32) return f >= 4294967296.0f ? (i64)UINT32_MAX : f <= 0.0f ? 0 : (i64)f;
    return f >= 9223372036854775808.0f ? INT64_MAX : f <= -9223372036854775808.0f ? INT64_MIN : (i64)f;
}

/* Different dtypes only: a cast to the same dtype is a copy of the bits. */
void o_cast(i64 from, i64 to, i64 n, const void *src, void *dst)
{
    static const int WIDTH[] = {4, 2, 2, 4, 8, 4, 1, 1, 8};
    for (i64 i = 0; i < n; i++) {
        if (from == F64 || to == F64) {
            o_cast_double(from, to, (const char *)src + i * WIDTH[from], (char *)dst + i * WIDTH[to]);
            continue;
        }
        i64 whole = 0;
        float real = 0;
        int from_float = from == F32 || from == F16 || from == BF16;
        if (from_float) {
            size_t size = from == F32 ? 4 : 2;
            o_widen(from, 1, (const char *)src + (size_t)i * size, &real);
        } else
            whole = from == BOOL ? ((const unsigned char *)src)[i] != 0 : from == U8 ? ((const unsigned char *)src)[i] : from == I32 ? ((const int32_t *)src)[i] : from == U32 ? (i64)((const u32 *)src)[i] : ((const i64 *)src)[i];
        if (to == F32 || to == F16 || to == BF16) {
            size_t size = to == F32 ? 4 : 2;
            if (!from_float) real = (float)whole;
            o_narrow(to, 1, &real, (char *)dst + (size_t)i * size);
        } else {
            if (from_float) whole = to == BOOL ? real != 0 : float_to_int(real, to);
            if (to == I64) ((i64 *)dst)[i] = whole;
            else if (to == BOOL) ((unsigned char *)dst)[i] = whole != 0;
            else if (to == U8) ((unsigned char *)dst)[i] = (unsigned char)((u64)whole & 255);
            else ((u32 *)dst)[i] = (u32)(u64)whole;
        }
    }
}

/* ---------------------------------------------------------------- quantised blocks */

enum { Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K };

/* A block of w: f16 factors widened, and for each element its integer and its part's scale and minimum. */
struct block { float d, m; int w[256], scale[256], minimum[256]; };

static i64 block_size(i64 format) { return format >= Q4_K ? 256 : 32; }
static i64 block_bytes(i64 format)
{
    static const int BYTES[] = {34, 18, 20, 22, 24, 144, 176, 210};
    return BYTES[format];
}
static int has_minima(i64 format) { return format == Q4_1 || format == Q5_1 || format == Q4_K || format == Q5_K; }
static float half_at(const unsigned char *p) { return widen_f16((uint16_t)(p[0] | p[1] << 8)); }

static void unpack_small(i64 format, const unsigned char *p, struct block *out)
{
    int five = format == Q5_0 || format == Q5_1;
    u32 high = 0;
    out->d = half_at(p), p += 2;
    if (has_minima(format)) out->m = half_at(p), p += 2;
    if (five) {
        high = p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
        p += 4;
    }
    for (int byte = 0; byte < (format == Q8_0 ? 32 : 16); byte++) {
        if (format == Q8_0) out->w[byte] = p[byte] < 128 ? p[byte] : p[byte] - 256;
        else out->w[byte] = p[byte] % 16, out->w[byte + 16] = p[byte] / 16;
    }
    for (int i = 0; i < 32; i++) {
        if (five) out->w[i] += (high >> i) % 2 * 16;
        if (format == Q4_0) out->w[i] -= 8;
        if (format == Q5_0) out->w[i] -= 16;
        out->scale[i] = out->minimum[i] = 1;
    }
}

static void unpack_k(i64 format, const unsigned char *p, struct block *out)
{
    const unsigned char *s = p + 4, *h = p + 16, *v = p + (format == Q5_K ? 48 : 16);
    out->d = half_at(p);
    out->m = -half_at(p + 2);
    for (int j = 0; j < 8; j++) {
        int scale = j < 4 ? s[j] % 64 : s[j + 4] % 16 + s[j - 4] / 64 * 16;
        int minimum = j < 4 ? s[j + 4] % 64 : s[j + 4] / 16 + s[j] / 64 * 16;
        for (int i = 0; i < 32; i++) {
            int at = 32 * j + i, byte = v[j / 2 * 32 + i];
            out->w[at] = j % 2 ? byte / 16 : byte % 16;
            if (format == Q5_K) out->w[at] += 16 * (h[i] >> j & 1);
            out->scale[at] = scale;
            out->minimum[at] = minimum;
        }
    }
}

static void unpack_q6(const unsigned char *p, struct block *out)
{
    for (int i = 0; i < 256; i++) {
        int a = i / 128, b = i % 128 / 32, c = i % 32;
        int low = p[64 * a + 32 * (b % 2) + c], high = p[128 + 32 * a + c];
        low = b < 2 ? low % 16 : low / 16;
        high = high >> 2 * b & 3;
        out->w[i] = low + 16 * high - 32;
        int scale = p[192 + i / 16];
        out->scale[i] = scale < 128 ? scale : scale - 256;
    }
    out->d = half_at(p + 208);
}

static struct block unpack(i64 format, const unsigned char *p)
{
    struct block out = {0};
    if (format == Q6_K) unpack_q6(p, &out);
    else if (format >= Q4_K) unpack_k(format, p, &out);
    else unpack_small(format, p, &out);
    return out;
}

/* The scale of a block of x; q are its integers. */
static float cut_block(const float *x, i64 n, int *q)
{
    float m = 0.0f;
    memset(q, 0, (size_t)n * sizeof *q);
    for (i64 i = 0; i < n; i++) {
        if ((as_bits(x[i]) & 0x7fffffffu) >= 0x7f800000u) return as_float(0x7fc00000u);
        if (magnitude_of(x[i]) > m) m = magnitude_of(x[i]);
    }
    if (m < as_float(0x12800000u)) return 0.0f;
    float f = 127.0f / m;
    for (i64 i = 0; i < n; i++) {
        float y = x[i] * f;
        q[i] = (int)rintf(y);
    }
    return m / 127.0f;
}

static float block_dot(i64 format, i64 K, const float *x, const unsigned char *w)
{
    i64 B = block_size(format);
    u32 t = 0, p = 0;
    for (i64 k = 0; k < K; k += B, w += block_bytes(format)) {
        struct block b = unpack(format, w);
        int q[256];
        float dx = cut_block(x + k, B, q), product;
        i64 S = 0, M = 0;
        for (i64 i = 0; i < B; i++) {
            S += (i64)b.scale[i] * b.w[i] * q[i];
            M += (i64)b.minimum[i] * q[i];
        }
        if (k % 256 == 0) p = 0;
        product = b.d * dx;
        p = fmaz(as_bits((float)S), as_bits(product), p);
        if (has_minima(format)) {
            product = b.m * dx;
            p = fmaz(as_bits((float)M), as_bits(product), p);
        }
        if ((k + B) % 256 == 0 || k + B == K) t = k < 256 ? p : fmaz(p, 0x3f800000u, t);
    }
    return plus_zero(as_float(t));
}

void o_quantized_matmul(i64 format, i64 rows, i64 N, i64 K, const float *x, const unsigned char *w, float *out)
{
    i64 row_bytes = K / block_size(format) * block_bytes(format);
    for (i64 r = 0; r < rows; r++)
        for (i64 n = 0; n < N; n++) out[r * N + n] = canonical(block_dot(format, K, x + r * K, w + n * row_bytes));
}

void o_dequantize(i64 format, i64 rows, i64 K, const unsigned char *w, float *out)
{
    i64 B = block_size(format);
    for (i64 at = 0; at < rows * K; at += B, w += block_bytes(format)) {
        struct block b = unpack(format, w);
        for (i64 i = 0; i < B; i++) {
            float y = b.d * (float)b.scale[i], low = b.m * (float)b.minimum[i];
            y = y * (float)b.w[i];
            if (has_minima(format)) y = y + low;
            out[at + i] = canonical(y);
        }
    }
}

/* ---------------------------------------------------------------- comparisons */

enum { EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL };

#define COMPARE(a, b) \
    (kind == EQUAL ? (a) == (b) : kind == NOT_EQUAL ? (a) != (b) : kind == LESS ? (a) < (b) \
     : kind == LESS_EQUAL ? (a) <= (b) : kind == GREATER ? (a) > (b) : (a) >= (b))

/* Halves come widened. */
void o_compare(i64 kind, i64 dtype, i64 n, const void *a, const void *b, unsigned char *out)
{
    for (i64 i = 0; i < n; i++) {
        if (dtype == F32) out[i] = COMPARE(((const float *)a)[i], ((const float *)b)[i]);
        else if (dtype == F64) out[i] = COMPARE(((const double *)a)[i], ((const double *)b)[i]);
        else if (dtype == I32) out[i] = COMPARE(((const int32_t *)a)[i], ((const int32_t *)b)[i]);
        else if (dtype == U32) out[i] = COMPARE(((const u32 *)a)[i], ((const u32 *)b)[i]);
        else if (dtype == I64) out[i] = COMPARE(((const i64 *)a)[i], ((const i64 *)b)[i]);
        else if (dtype == U8) out[i] = COMPARE(((const unsigned char *)a)[i], ((const unsigned char *)b)[i]);
        else out[i] = COMPARE(((const unsigned char *)a)[i] != 0, ((const unsigned char *)b)[i] != 0);
    }
}

void o_where(i64 size, i64 n, const unsigned char *condition, const char *a, const char *b, char *out)
{
    for (i64 i = 0; i < n; i++)
        memcpy(out + i * size, (condition[i] ? a : b) + i * size, (size_t)size);
}

/* ---------------------------------------------------------------- integers */

enum { WHOLE_NEG, WHOLE_ABS, WHOLE_ADD, WHOLE_SUB, WHOLE_MUL, WHOLE_DIV, WHOLE_MAXIMUM, WHOLE_MINIMUM,
       WHOLE_SUM, WHOLE_PROD, WHOLE_MAX, WHOLE_MIN, WHOLE_ARGMAX, WHOLE_ARGMIN };

static i64 floored(i64 a, i64 b)
{
    if (b == 0) return 0;
    if (b == -1) return (i64)(0 - (u64)a);
    i64 q = a / b;
    return q * b > a == (b > 0) && q * b != a ? q - 1 : q;
}

/* Elements come as i64; the result's lowest bits are the element's. b is a where there is one operand. */
void o_integers(i64 kind, i64 n, const i64 *a, const i64 *b, i64 *out)
{
    for (i64 i = 0; i < n; i++) {
        u64 x = (u64)a[i], y = (u64)b[i];
        out[i] = kind == WHOLE_NEG || (kind == WHOLE_ABS && a[i] < 0) ? (i64)(0 - x)
            : kind == WHOLE_ABS ? a[i] : kind == WHOLE_ADD ? (i64)(x + y) : kind == WHOLE_SUB ? (i64)(x - y)
            : kind == WHOLE_MUL ? (i64)(x * y) : kind == WHOLE_DIV ? floored(a[i], b[i])
            : (a[i] < b[i]) == (kind == WHOLE_MAXIMUM) ? b[i] : a[i];
    }
}

/* One result for each line of n elements. */
void o_fold_integers(i64 kind, i64 lines, i64 n, const i64 *x, i64 *out)
{
    for (i64 line = 0; line < lines; line++, x += n) {
        u64 sum = 0, product = 1;
        i64 most = 0, least = 0;
        for (i64 i = 0; i < n; i++) {
            sum += (u64)x[i];
            product *= (u64)x[i];
            if (x[i] > x[most]) most = i;
            if (x[i] < x[least]) least = i;
        }
        out[line] = kind == WHOLE_SUM ? (i64)sum : kind == WHOLE_PROD ? (i64)product : kind == WHOLE_MAX ? x[most]
            : kind == WHOLE_MIN ? x[least] : kind == WHOLE_ARGMAX ? most : least;
    }
}

/* ---------------------------------------------------------------- moves */

/* out[index] = src[sum(index * stride)]: broadcasting and transposition are both a choice of strides. */
void o_gather(i64 size, i64 rank, const i64 *dims, const i64 *strides, const char *src, char *out)
{
    i64 index[9] = {0}, at = 0, total = 1;
    for (int r = 0; r < rank; r++) total *= dims[r];
    for (i64 i = 0; i < total; i++, out += size) {
        memcpy(out, src + at * size, (size_t)size);
        for (int r = rank - 1; r >= 0; r--) {
            at += strides[r];
            if (++index[r] < dims[r]) break;
            at -= index[r] * strides[r];
            index[r] = 0;
        }
    }
}

/* ---------------------------------------------------------------- the generators of FORMAT.md */

static u64 splitmix(u64 seed, u64 i)
{
    u64 z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void o_rand(i64 dtype, i64 n, u64 seed, i64 E, void *out)
{
    int bits = dtype == F32 ? 23 : dtype == F16 ? 10 : 7;
    for (i64 i = 0; i < n; i++) {
        i64 whole = (i64)(splitmix(seed, (u64)i) >> (63 - bits)) - ((i64)1 << bits);
        float f = (float)whole * pow2(E - bits);
        o_narrow(dtype, 1, &f, (char *)out + i * (dtype == F32 ? 4 : 2));
    }
}

void o_wild(i64 dtype, i64 n, u64 seed, void *out)
{
    static const u32 W32[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                              0x7f800001, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff};
    static const uint16_t W16[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
                                   0x7c01, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x7bff, 0xfbff};
    static const uint16_t WB16[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0xffc1,
                                    0x7f81, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x7f7f, 0xff7f};
    for (i64 i = 0; i < n; i++) {
        u64 z = splitmix(seed, (u64)i);
        int special = (z & 3) == 0, entry = (int)(z >> 2 & 15);
        if (dtype == F32) ((u32 *)out)[i] = special ? W32[entry] : (u32)(z >> 32);
        else ((uint16_t *)out)[i] = special ? (dtype == F16 ? W16 : WB16)[entry] : (uint16_t)(z >> 48);
    }
}

void o_ids(i64 dtype, i64 n, u64 seed, u64 N, void *out)
{
    for (i64 i = 0; i < n; i++) {
        u64 id = ((splitmix(seed, (u64)i) >> 32) * N) >> 32;
        if (dtype == I64) ((u64 *)out)[i] = id;
        else if (dtype == BOOL || dtype == U8) ((unsigned char *)out)[i] = (unsigned char)id;
        else ((u32 *)out)[i] = (u32)id;
    }
}
