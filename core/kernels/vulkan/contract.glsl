// The arithmetic contract's primitives (docs/contract.md). Every module includes this file first.
//
// E operations are written as plain GLSL on `precise` variables: with the two execution modes below they are IEEE-754
// binary32, subnormals kept. Division and square root are `divide` and `root`; the multiply-add of M is `fmaz`.

#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require

// SignedZeroInfNanPreserve and RoundingModeRTE, of 32-bit floats.
spirv_execution_mode(capabilities = [4466], 4461, 32);
spirv_execution_mode(capabilities = [4467], 4462, 32);

// What the probe found out about the device; every pipeline gets them.
// 0: fma() is fused and flushes as fmaz does. 1: fused, and subnormals are kept. 2: neither; fmaz works in integers.
layout(constant_id = 0) const uint FMA_MODE = 2;
// 1: the division and the square root of the device are correctly rounded.
layout(constant_id = 1) const uint EXACT_DIVIDE = 0;
// Invocations of a subgroup, or 1 where shuffles may not be used.
layout(constant_id = 2) const uint SUBGROUP = 1;

const uint SIGN = 0x80000000u;
const uint MAGNITUDE = 0x7fffffffu;
const uint INFINITY = 0x7f800000u;
const uint NAN = 0x7fc00000u;

#define f(bits) uintBitsToFloat(bits)

bool is_nan(const float x) {
    return (floatBitsToUint(x) & MAGNITUDE) > INFINITY;
}

// What arithmetic stores.
float canonical(const float x) {
    return is_nan(x) ? f(NAN) : x;
}

vec4 canonical(const vec4 x) {
    return mix(x, vec4(f(NAN)), greaterThan(floatBitsToUint(x) & MAGNITUDE, uvec4(INFINITY)));
}

// What M totals and SUMs store: −0 becomes +0, and NaN canonical.
float total(const float x) {
    return floatBitsToUint(x) == SIGN ? 0.0 : canonical(x);
}

// The integer whose order is MAX's order; its own inverse on the bits.
int max_key(const float x) {
    int u = floatBitsToInt(canonical(x));
    return u ^ ((u >> 31) & 0x7fffffff);
}

float max_of_key(const int key) {
    return intBitsToFloat(key ^ ((key >> 31) & 0x7fffffff));
}

// The upper word of a product.
uint multiply_high(const uint a, const uint b) {
    uint h, l;
    umulExtended(a, b, h, l);
    return h;
}

// q / 2^drop to nearest even, for 1 ≤ drop ≤ 31; sticky is 1 if q stands for slightly more, else 0.
uint round_shift(const uint q, const uint drop, const uint sticky) {
    uint kept = q >> drop, rest = q - (kept << drop);
    return kept + uint((rest << 1 | kept & 1u | sticky) > 1u << drop);
}

// The exponent of a positive number, as if it were unbounded, and in m its significand of 24 bits.
int normalised(const uint u, out uint m) {
    precise float scaled = f(u) * 16777216.0;
    bool subnormal = u < 0x800000u;
    uint v = subnormal ? floatBitsToUint(scaled) : u;
    m = v & 0x7fffffu | 0x800000u;
    return int(v >> 23) - (subnormal ? 24 : 0);
}

// a / b for positive finite numbers: an estimate of 24 bits, its remainder in 32, and then q·B ≤ A·2²⁴ < (q + 1)·B whatever the
// estimate's last bits were.
uint long_division(const uint a, const uint b) {
    uint ma, mb;
    int e = normalised(a, ma);
    e -= normalised(b, mb);
    uint less = uint(ma < mb);
    ma <<= less;
    // The quotient is q·2^(e − 151), the exponent of the result e unless it is subnormal.
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
    // The hidden bit of a normal number counts as one in its exponent.
    uint kept = round_shift(q, uint(clamp(2 - e, 1, 26)), sticky);
    return min((uint(max(e, 1) - 1) << 23) + kept, INFINITY);
}

// 1 / b to half a unit in the last place or a little more, by a fused multiply-add.
float reciprocal(const float b) {
    precise float y = 1.0 / b;
    y = fma(fma(-b, y, 1.0), y, y);
    return y;
}

// a / b from the reciprocal of b, where no step leaves the normal numbers: a quotient that is off by less than one unit in the last
// place, its exact remainder, and such a reciprocal give the correctly rounded one (Markstein, "Computation of elementary functions
// on the IBM RISC System/6000 processor", 1990), unless all bits of b are ones.
float quotient(const float a, const float b, const float y) {
    precise float q = a * y;
    q = fma(fma(-b, q, a), y, q);
    q = fma(fma(-b, q, a), y, q);
    return q;
}

const uint FRACTION = 0x7fffffu;

// E division.
float divide(const float a, const float b) {
    if (EXACT_DIVIDE == 1u) {
        precise float native = a / b;
        return native;
    }
    uint ua = floatBitsToUint(a) & MAGNITUDE, ub = floatBitsToUint(b) & MAGNITUDE;
    // +0 goes the quick way too.
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

// E square root: an estimate, then the exact remainder in integers.
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
    // m·2^(23 or 24) is the square of 24 bits, at an even exponent.
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

// fmaz by a 64-bit sum in integers.
float fmaz_integer(const float fa, const float fb, const float fc) {
    float x = flushed(fa), y = flushed(fb), z = flushed(fc);
    uint a = floatBitsToUint(x), b = floatBitsToUint(y), c = floatBitsToUint(z);
    uint ea = a >> 23 & 255u, eb = b >> 23 & 255u, ec = c >> 23 & 255u;
    // Zeros, infinities and NaN leave nothing to round together.
    if (max(ea, eb) == 255u || min(ea, eb) == 0u) {
        precise float r = x * y;
        r = r + z;
        return r;
    }
    if (ec == 255u) {
        return z;
    }
    // The product as h:l·2^e with h:l in [2⁶¹, 2⁶³), the summand as h:l·2^(e − d) with h:l in [2⁶², 2⁶³) or 0; then their signs.
    uint h, l;
    umulExtended((a & 0x7fffffu | 0x800000u) << 7, (b & 0x7fffffu | 0x800000u) << 8, h, l);
    int e = int(ea + eb) - 315, d = ec == 0u ? 0 : e - int(ec) + 189;
    uvec3 p = uvec3(h, l, (a ^ b) & SIGN), s = uvec3(ec == 0u ? 0u : (c & 0x7fffffu | 0x800000u) << 7, 0u, c & SIGN);
    e -= min(d, 0);
    uvec3 large = mix(p, s, bvec3(d < 0)), small = mix(s, p, bvec3(d < 0));
    // The smaller exponent's number moves right; that something was lost stays in its last bit.
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
    // The exponent, less one for the hidden bit, is unbounded while rounding, so that what reaches 2⁻¹²⁶ then stays.
    e += 189 - int(left);
    uint bits = min((uint(e) << 23) + kept, INFINITY);
    return f(sign | (e + int(kept >> 24) < 0 ? 0u : bits));
}

// The multiply-add of M: a·b + c rounded once, subnormals read as zeros, a result below 2⁻¹²⁶ a zero.
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
    // Kept subnormals round at 2⁻¹⁴⁹ already: what rounded up to 2⁻¹²⁶ is decided by all 24 bits.
    if ((floatBitsToUint(r) & MAGNITUDE) == 0x800000u) {
        return fmaz_integer(a, b, c);
    }
    return flushed(r);
}
