// The arithmetic contract's primitives (docs/contract.md). Every module includes this file first.
//
// E operations are written as plain GLSL on `precise` variables: with the two execution modes below they are IEEE-754
// binary32, subnormals kept. Division and square root are `divide` and `root`; the multiply-add of M is `fmaz`.

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

float f(const uint bits) {
    return uintBitsToFloat(bits);
}

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

// Rounds (q + something in (0, 1) if sticky)·2^(e − 151), for q in [2²⁴, 2²⁵), to nearest even with gradual underflow: the
// bits without a sign.
uint rounded(const uint q, const bool sticky, const int e) {
    if (e >= 255) {
        return INFINITY;
    }
    uint drop = uint(clamp(2 - e, 1, 26));
    uint kept = q >> drop;
    uint rest = q & ((1u << drop) - 1u);
    uint half_unit = 1u << (drop - 1u);
    bool up = rest > half_unit || (rest == half_unit && (sticky || (kept & 1u) == 1u));
    // The hidden bit of a normal number counts as one in its exponent.
    return (uint(max(e, 1) - 1) << 23) + kept + uint(up);
}

// The exponent and the 24-bit significand of a positive number, also of a subnormal one.
int normalised(const uint u, out uint m) {
    int e = int(u >> 23);
    m = (u & 0x7fffffu) | 0x800000u;
    if (e == 0) {
        int shift = 23 - findMSB(u);
        m = u << uint(shift);
        e = 1 - shift;
    }
    return e;
}

// a / b by long division from an estimate: q·B ≤ A·2²⁴ < (q + 1)·B with a remainder of 32 bits, whatever the estimate's last bits.
uint long_division(const uint a, const uint b) {
    if (a >= INFINITY || b >= INFINITY || a == 0u || b == 0u) {
        bool invalid = a > INFINITY || b > INFINITY || (a == b);
        return invalid ? NAN : a == INFINITY || b == 0u ? INFINITY : 0u;
    }
    uint ma, mb;
    int ea = normalised(a, ma);
    int eb = normalised(b, mb);
    if (ma < mb) {
        ma <<= 1;
        ea -= 1;
    }
    precise float fb = float(mb);
    precise float estimate = float(ma) / fb;
    uint q = uint(estimate * 16777216.0);
    int r = int((ma << 24) - q * mb);
    precise float off = float(r) / fb;
    int step_ = int(floor(off));
    q += uint(step_);
    r -= step_ * int(mb);
    if (r < 0) {
        q -= 1u;
        r += int(mb);
    }
    if (r >= int(mb)) {
        q += 1u;
        r -= int(mb);
    }
    return rounded(q, r != 0, ea - eb + 127);
}

// E division.
float divide(const float a, const float b) {
    precise float q;
    if (EXACT_DIVIDE == 1u) {
        q = a / b;
        return q;
    }
    uint ua = floatBitsToUint(a) & MAGNITUDE, ub = floatBitsToUint(b) & MAGNITUDE;
    int ea = int(ua >> 23), eb = int(ub >> 23);
    // With a fused multiply-add, where no step leaves the normal numbers: a quotient that is off by less than one unit in the last
    // place, its exact remainder, and a reciprocal good to half a unit give the correctly rounded one (Markstein, "Computation
    // of elementary functions on the IBM RISC System/6000 processor", 1990). Zeros in front go the same way.
    if (FMA_MODE < 2u && (uint(ea - 64) < 190u || floatBitsToUint(a) == 0u) && uint(eb - 2) < 250u
        && (ea == 0 || uint(ea - eb + 124) < 250u)) {
        precise float y = 1.0 / b;
        y = fma(fma(-b, y, 1.0), y, y);
        q = a * y;
        q = fma(fma(-b, q, a), y, q);
        q = fma(fma(-b, q, a), y, q);
        return q;
    }
    return f(((floatBitsToUint(a) ^ floatBitsToUint(b)) & SIGN) | long_division(ua, ub));
}

// E square root: an estimate, then the exact remainder in integers.
float root(const float x) {
    uint u = floatBitsToUint(x);
    if (EXACT_DIVIDE == 1u) {
        precise float native = sqrt(x);
        return native;
    }
    if ((u & MAGNITUDE) == 0u || u >= INFINITY) {
        return u <= SIGN ? (u > INFINITY && u < SIGN ? f(NAN) : x) : f(NAN);
    }
    uint m;
    int e = normalised(u, m) - 127;
    // m·2^(23 or 24) is the square of 24 bits, at an even exponent.
    uint shift = 23u + uint(e & 1);
    precise float estimate = sqrt(float(m) * (shift == 23u ? 8388608.0 : 16777216.0));
    uint s = uint(estimate);
    int r = int((m << shift) - s * s);
    precise float off = float(r) / (2.0 * estimate);
    s += uint(int(floor(off)));
    r = int((m << shift) - s * s);
    if (r < 0) {
        s -= 1u;
        r += int(2u * s + 1u);
    }
    if (r > int(2u * s)) {
        r -= int(2u * s + 1u);
        s += 1u;
    }
    // The square of s + ½ is s² + s + ¼.
    s += uint(r > int(s));
    return f((uint((e >> 1) + 126) << 23) + s);
}

float flushed(const float x) {
    uint u = floatBitsToUint(x);
    return (u & INFINITY) == 0u ? f(u & SIGN) : x;
}

// Shifts right by n, keeping that something was lost in the last bit.
uvec2 shift_jam(const uvec2 v, const uint n) {
    if (n >= 32u) {
        uint lost = v.x | (v.y << 1 << (63u - min(n, 63u)));
        return uvec2((v.y >> min(n - 32u, 31u)) | uint(lost != 0u), 0u);
    }
    uint lost = n == 0u ? 0u : v.x << (32u - n);
    return uvec2((v.x >> n) | (v.y << 1 << (31u - n)) | uint(lost != 0u), v.y >> n);
}

// fmaz by a 64-bit sum in integers.
float fmaz_integer(const float fa, const float fb, const float fc) {
    float x = flushed(fa), y = flushed(fb), z = flushed(fc);
    uint a = floatBitsToUint(x), b = floatBitsToUint(y), c = floatBitsToUint(z);
    uint sign = (a ^ b) & SIGN;
    int ea = int((a >> 23) & 255u), eb = int((b >> 23) & 255u), ec = int((c >> 23) & 255u);
    if (max(ea, eb) == 255) {
        precise float product = x * y;
        precise float sum = product + z;
        return sum;
    }
    if (ec == 255) {
        return z;
    }
    if (min(ea, eb) == 0) {
        return ec == 0 ? f(sign & c) : z;
    }
    // The product as P·2^e with P in [2⁶¹, 2⁶³), the summand as C·2^(ec − 189) with C in [2⁶², 2⁶³).
    uvec2 p, s = uvec2(0u);
    umulExtended(((a & 0x7fffffu) | 0x800000u) << 7, ((b & 0x7fffffu) | 0x800000u) << 8, p.y, p.x);
    int e = ea + eb - 315;
    if (ec != 0) {
        s.y = ((c & 0x7fffffu) | 0x800000u) << 7;
        int d = e - (ec - 189);
        if (d >= 0) {
            s = shift_jam(s, uint(d));
        } else {
            p = shift_jam(p, uint(-d));
            e = ec - 189;
        }
    }
    uint carry;
    if (((sign ^ c) & SIGN) == 0u) {
        p.x = uaddCarry(p.x, s.x, carry);
        p.y += s.y + carry;
    } else {
        if (p.y < s.y || (p.y == s.y && p.x < s.x)) {
            uvec2 swap = p;
            p = s;
            s = swap;
            sign ^= SIGN;
        }
        p.x = usubBorrow(p.x, s.x, carry);
        p.y -= s.y + carry;
    }
    if (p.y == 0u) {
        if (p.x == 0u) {
            return 0.0;
        }
        p = p.yx;
        e -= 32;
    }
    uint left = uint(31 - findMSB(p.y));
    p = uvec2(p.x << left, (p.y << left) | (p.x >> 1 >> (31u - left)));
    uint kept = p.y >> 8, rest = p.y & 255u;
    kept += uint(rest > 128u || (rest == 128u && (p.x != 0u || (kept & 1u) == 1u)));
    // The exponent is unbounded while rounding, so that what reaches 2⁻¹²⁶ then stays.
    e += 190 - int(left) + int(kept >> 24);
    return f(sign | (e < 1 ? 0u : e >= 255 ? INFINITY : (uint(e) << 23) | (kept & (kept >> 24 != 0u ? 0u : 0x7fffffu))));
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
