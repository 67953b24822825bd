// The arithmetic contract's primitives (docs/contract.md). Every module includes this file first.
//
// E operations are plain GLSL on `precise` variables. With the two execution modes below, they are IEEE-754 binary32
// and keep subnormals. Division and square root are `divide` and `root`; M's multiply-add is `fmaz`.

#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require

// SignedZeroInfNanPreserve and RoundingModeRTE, for 32-bit floats.
spirv_execution_mode(capabilities = [4466], 4461, 32);
spirv_execution_mode(capabilities = [4467], 4462, 32);

// The device's modes, as the probe found them; every pipeline gets them. fmaz: 0 uses fma(), which is fused and flushes
// as fmaz does; 1 uses fma() and flushes around it, because fma() is fused and keeps subnormals; 2 uses integers.
layout(constant_id = 0) const uint FMA_MODE = 2;
// 1 if the device's division and square root are correctly rounded.
layout(constant_id = 1) const uint EXACT_DIVIDE = 0;
// Invocations of a subgroup; 1 if shuffles can't be used.
layout(constant_id = 2) const uint SUBGROUP = 1;

const uint SIGN = 0x80000000u;
const uint MAGNITUDE = 0x7fffffffu;
const uint INFINITY = 0x7f800000u;
const uint NAN = 0x7fc00000u;

#define f(bits) uintBitsToFloat(bits)

bool is_nan(const float x) {
    return (floatBitsToUint(x) & MAGNITUDE) > INFINITY;
}

// Returns the value that arithmetic stores: every NaN becomes the canonical NaN.
float canonical(const float x) {
    return is_nan(x) ? f(NAN) : x;
}

vec4 canonical(const vec4 x) {
    return mix(x, vec4(f(NAN)), greaterThan(floatBitsToUint(x) & MAGNITUDE, uvec4(INFINITY)));
}

// Returns the value that M totals and SUMs store: −0 becomes +0, and NaN the canonical NaN.
float total(const float x) {
    return floatBitsToUint(x) == SIGN ? 0.0 : canonical(x);
}

// Returns an integer whose order is MAX's order. On the bits, the map is its own inverse.
int max_key(const float x) {
    int u = floatBitsToInt(canonical(x));
    return u ^ ((u >> 31) & 0x7fffffff);
}

float max_of_key(const int key) {
    return intBitsToFloat(key ^ ((key >> 31) & 0x7fffffff));
}

// Returns the upper word of a product.
uint multiply_high(const uint a, const uint b) {
    uint h, l;
    umulExtended(a, b, h, l);
    return h;
}

// Returns q / 2^drop rounded to nearest even, for 1 ≤ drop ≤ 31. sticky is 1 if the exact value is slightly above q,
// else 0.
uint round_shift(const uint q, const uint drop, const uint sticky) {
    uint kept = q >> drop, rest = q - (kept << drop);
    return kept + uint((rest << 1 | kept & 1u | sticky) > 1u << drop);
}

// Returns the exponent of a positive number, as if it were unbounded, and in m its significand of 24 bits.
int normalised(const uint u, out uint m) {
    precise float scaled = f(u) * 16777216.0;
    bool subnormal = u < 0x800000u;
    uint v = subnormal ? floatBitsToUint(scaled) : u;
    m = v & 0x7fffffu | 0x800000u;
    return int(v >> 23) - (subnormal ? 24 : 0);
}

// Returns a / b for positive finite numbers. It corrects an estimate of 24 bits with its 32-bit remainder. Then q·B ≤
// A·2²⁴ < (q + 1)·B holds, whatever the estimate's last bits were.
uint long_division(const uint a, const uint b) {
    uint ma, mb;
    int e = normalised(a, ma);
    e -= normalised(b, mb);
    uint less = uint(ma < mb);
    ma <<= less;
    // The quotient is q·2^(e − 151). e is the result's exponent, unless the result is subnormal.
    e += 127 - int(less);
    precise float fb = float(mb);
    precise float estimate = float(ma) / fb * 16777216.0;
    uint q = uint(estimate);
    precise float off = float(int((ma << 24) - q * mb)) / fb;
    q += uint(int(floor(off)));
    int r = int((ma << 24) - q * mb);
    int correction = int(r >= int(mb)) - int(r < 0);
    q += uint(correction);
    uint sticky = uint(r != correction * int(mb));
    // A normal number's hidden bit adds one to its exponent.
    uint kept = round_shift(q, uint(clamp(2 - e, 1, 26)), sticky);
    return min((uint(max(e, 1) - 1) << 23) + kept, INFINITY);
}

// Returns 1 / b, with an error of half a unit in the last place or slightly more. It needs a fused multiply-add.
float reciprocal(const float b) {
    precise float y = 1.0 / b;
    y = fma(fma(-b, y, 1.0), y, y);
    return y;
}

// Returns a / b from b's reciprocal y, if every step's result is normal. The first quotient is off by less than one
// unit in the last place. Its exact remainder and such a reciprocal correct it to the rounded quotient, unless all bits
// of b's significand are 1. (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor",
// 1990.)
float quotient(const float a, const float b, const float y) {
    precise float q = a * y;
    q = fma(fma(-b, q, a), y, q);
    q = fma(fma(-b, q, a), y, q);
    return q;
}

const uint FRACTION = 0x7fffffu;

// The division of E.
float divide(const float a, const float b) {
    if (EXACT_DIVIDE == 1u) {
        precise float native = a / b;
        return native;
    }
    uint ua = floatBitsToUint(a) & MAGNITUDE, ub = floatBitsToUint(b) & MAGNITUDE;
    // +0 takes the fast path too.
    int eb = int(ub >> 23), ea = floatBitsToUint(a) == 0u ? eb : int(ua >> 23);
    if (FMA_MODE < 2u
        && all(lessThan(uvec4(ea - 64, eb - 2, ea - eb + 124, ub & FRACTION), uvec4(190u, 250u, 250u, FRACTION)))) {
        return quotient(a, b, reciprocal(b));
    }
    uint q = ua == INFINITY || ub == 0u ? INFINITY : 0u;
    if (all(lessThan(uvec2(ua, ub) - 1u, uvec2(INFINITY - 1u)))) {
        q = long_division(ua, ub);
    } else if (max(ua, ub) > INFINITY || ua == ub) {
        q = NAN;
    }
    return f((floatBitsToUint(a) ^ floatBitsToUint(b)) & SIGN | q);
}

// 1 / x, for x between 1 and 2^32 or NaN.
float inverse(const float x) {
    return divide(1.0f, x);
}

// The square root of E: an estimate, corrected by its exact remainder in integers.
float root(const float x) {
    precise float estimate = sqrt(x);
    if (EXACT_DIVIDE == 1u) {
        return estimate;
    }
    uint u = floatBitsToUint(x);
    if (u - 1u >= INFINITY - 1u) {
        return u > SIGN ? f(NAN) : x;
    }
    uint m;
    int e = normalised(u, m) - 127;
    // m·2^(23 or 24) has a root of 24 bits and an even exponent.
    uint shift = 23u + uint(e & 1);
    estimate = sqrt(float(m) * float(1u << shift));
    uint s = uint(estimate);
    precise float off = float(int((m << shift) - s * s)) / (2.0 * estimate);
    s += uint(int(floor(off)));
    int r = int((m << shift) - s * s);
    uint down = uint(r < 0), up = uint(r > int(2u * s));
    r += int(down * (2u * s - 1u)) - int(up * (2u * s + 1u));
    s += up - down;
    // The square of s + ½ is s² + s + ¼.
    s += uint(r > int(s));
    return f((uint((e >> 1) + 126) << 23) + s);
}

float flushed(const float x) {
    uint u = floatBitsToUint(x);
    return (u & INFINITY) == 0u ? f(u & SIGN) : x;
}

// Computes fmaz with a 64-bit sum in integers.
float fmaz_integer(const float fa, const float fb, const float fc) {
    float x = flushed(fa), y = flushed(fb), z = flushed(fc);
    uint a = floatBitsToUint(x), b = floatBitsToUint(y), c = floatBitsToUint(z);
    uint ea = a >> 23 & 255u, eb = b >> 23 & 255u, ec = c >> 23 & 255u;
    // With zeros, infinities and NaN, nothing needs to be rounded together.
    if (max(ea, eb) == 255u || min(ea, eb) == 0u) {
        precise float r = x * y;
        r = r + z;
        return r;
    }
    if (ec == 255u) {
        return z;
    }
    // The product is h:l·2^e with h:l in [2⁶¹, 2⁶³). The summand is h:l·2^(e − d) with h:l in [2⁶², 2⁶³), or 0. Signs
    // follow.
    uint h, l;
    umulExtended((a & 0x7fffffu | 0x800000u) << 7, (b & 0x7fffffu | 0x800000u) << 8, h, l);
    int e = int(ea + eb) - 315, d = ec == 0u ? 0 : e - int(ec) + 189;
    uvec3 p = uvec3(h, l, (a ^ b) & SIGN), s = uvec3(ec == 0u ? 0u : (c & 0x7fffffu | 0x800000u) << 7, 0u, c & SIGN);
    e -= min(d, 0);
    uvec3 large = mix(p, s, bvec3(d < 0)), small = mix(s, p, bvec3(d < 0));
    // The number with the smaller exponent moves right. Its last bit records whether bits were lost.
    uint n = uint(min(abs(d), 63)), sh = small.x, sl = small.y, lost = 0u;
    if (n >= 32u) {
        lost = sl;
        sl = sh;
        sh = 0u;
    }
    n &= 31u;
    lost |= sl << 1 << (31u - n);
    sl = sl >> n | sh << 1 << (31u - n) | min(lost, 1u);
    sh >>= n;
    uint sign = large.z;
    bool differ = sign != small.z;
    if (differ) {
        sh = ~sh + uint(sl == 0u);
        sl = -sl;
    }
    l = large.y + sl;
    h = large.x + sh + uint(l < sl);
    if (differ && int(h) < 0) {
        h = ~h + uint(l == 0u);
        l = -l;
        sign ^= SIGN;
    }
    if (h == 0u) {
        h = l;
        l = 0u;
        e -= 32;
    }
    if (h == 0u) {
        return 0.0;
    }
    uint left = uint(31 - findMSB(h));
    uint kept = round_shift(h << left | l >> 1 >> (31u - left), 8u, uint(l << left != 0u));
    // The exponent, less one for the hidden bit, is unbounded while rounding. So a result that rounds up to 2⁻¹²⁶
    // stays.
    e += 189 - int(left);
    uint bits = min((uint(e) << 23) + kept, INFINITY);
    return f(sign | (e + int(kept >> 24) < 0 ? 0u : bits));
}

// M's multiply-add: a·b + c rounded once. Subnormal operands count as zeros, and a result below 2⁻¹²⁶ becomes a zero.
float fmaz(const float a, const float b, const float c) {
    if (FMA_MODE == 2u) {
        return fmaz_integer(a, b, c);
    }
    precise float r;
    if (FMA_MODE == 0u) {
        r = fma(a, b, c);
        return r;
    }
    r = fma(flushed(a), flushed(b), flushed(c));
    // With subnormals kept, the result was rounded at 2⁻¹⁴⁹. Whether it rounds up to 2⁻¹²⁶ depends on all 24 bits.
    if ((floatBitsToUint(r) & MAGNITUDE) == 0x800000u) {
        return fmaz_integer(a, b, c);
    }
    return flushed(r);
}

// Returns fmaz(a, b, c) where flushing can't be told from gradual underflow. Without fma() it computes the product and the
// sum exactly, as two numbers each, rounds the sum of both errors to odd, and adds it. This is shorter than fmaz_integer,
// and functions have many of it. (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
// rounding to odd", 2008.)
float multiply_add(const float a, const float b, const float c) {
    precise float r;
    if (FMA_MODE < 2u) {
        r = fma(a, b, c);
        return r;
    }
    // Dekker's product: halves of 12 bits have exact products.
    float ah = f(floatBitsToUint(a) & 0xfffff000u), bh = f(floatBitsToUint(b) & 0xfffff000u);
    precise float al = a - ah, bl = b - bh;
    precise float p = a * b;
    precise float p_error = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    // Knuth's sums.
    precise float s = p + c;
    precise float t = s - p;
    precise float s_error = (p - (s - t)) + (c - t);
    precise float v = s_error + p_error;
    t = v - s_error;
    precise float v_error = (s_error - (v - t)) + (p_error - t);
    int step = (floatBitsToInt(v_error) ^ floatBitsToInt(v)) < 0 ? -1 : 1;
    bool even = (floatBitsToUint(v) & 1u) == 0u;
    r = s + intBitsToFloat(floatBitsToInt(v) + (even && v_error != 0.0 ? step : 0));
    return r;
}
