// Conversions between element types: what cast does, and the widening and narrowing around every other kernel.

// The bits of a binary32 to those of the same number as a binary64, in two words, the lower one first; NaN becomes canonical.
uvec2 widen_f32(const uint u) {
    uint sign = u & SIGN, magnitude = u & MAGNITUDE;
    if (magnitude >= INFINITY) {
        return magnitude > INFINITY ? uvec2(0u, 0x7ff80000u) : uvec2(0u, sign | 0x7ff00000u);
    }
    if (magnitude == 0u) {
        return uvec2(0u, sign);
    }
    // A subnormal's highest bit becomes the hidden one.
    uint up = uint(23 - min(findMSB(magnitude), 23)), m = magnitude << up;
    uint e = (up == 0u ? magnitude >> 23 : 1u - up) + 896u;
    return uvec2(m << 29, sign | e << 20 | (m & 0x7fffffu) >> 3);
}

bool is_nan_f64(const uvec2 v) {
    return (v.y & MAGNITUDE) + uint(v.x != 0u) > 0x7ff00000u;
}

// The bits of a binary64 to those of the nearest binary32; or, for a second narrowing, truncated, with the lowest bit set unless
// that is exact: the second one then rounds as if it were the only one.
uint narrow_f64(const uvec2 v, const bool again) {
    uint sign = v.y & SIGN, high = v.y & MAGNITUDE;
    int e = int(high >> 20) - 896;
    if (is_nan_f64(v)) {
        return 0x7fc00000u;
    }
    if (e > 254) {
        return sign | (again && high < 0x7ff00000u ? INFINITY - 1u : INFINITY);
    }
    if (e < -23) {
        return sign | uint(again && (high | v.x) != 0u);
    }
    // 31 bits of the significand. Those that are dropped are at least 7.
    uint q = (high & 0xfffffu | 0x100000u) << 10 | v.x >> 22, sticky = uint((v.x & 0x3fffffu) != 0u);
    uint drop = uint(7 + max(1 - e, 0));
    uint kept = again ? q >> drop | uint((q & (1u << drop) - 1u | sticky) != 0u) : round_shift(q, drop, sticky);
    return sign | (uint(max(e, 1) - 1) << 23) + kept;
}

// The bits of a binary64 to an integer: truncated, saturated, NaN to 0.
uvec2 to_integer(const uvec2 v) {
    bool negative = v.y >= SIGN;
    int e = int(v.y >> 20 & 0x7ffu) - 1023;
    int width = TO == I64 ? 63 : TO == I32 ? 31 : TO == U32 ? 32 : 8;
    if (is_nan_f64(v) || ((TO == U32 || TO == U8) && negative)) {
        return uvec2(0u);
    }
    if (e >= width) {
        uint top = uint(negative) + (TO == U32 ? 0xffffffffu : TO == U8 ? 255u : 0x7fffffffu);
        return TO == I64 ? uvec2(negative ? 0u : 0xffffffffu, top) : uvec2(top, 0u);
    }
    // The significand, shifted to where the point is.
    uvec2 m = uvec2(v.x, v.y & 0xfffffu | 0x100000u);
    uint left = uint(max(e - 52, 0)), right = uint(clamp(52 - e, 0, 63));
    m = uvec2(m.x << left, m.y << left | m.x >> 1 >> (31u - left));
    m = right < 32u ? uvec2(m.x >> right | m.y << 1 << (31u - right), m.y >> right) : uvec2(m.y >> (right - 32u), 0u);
    return negative ? uvec2(-m.x, ~m.y + uint(m.x == 0u)) : m;
}

// A 64-bit integer to the bits of the nearest binary32, or of the nearest binary64.
uvec2 from_integer(const uvec2 v) {
    uint sign = v.y & SIGN;
    uvec2 m = sign != 0u ? uvec2(-v.x, ~v.y + uint(v.x == 0u)) : v;
    uint e = 62u;
    if (m.y == 0u) {
        m = uvec2(0u, m.x);
        e -= 32u;
    }
    if (m.y == 0u) {
        return uvec2(0u);
    }
    uint left = uint(31 - findMSB(m.y));
    uint top = m.y << left | m.x >> 1 >> (31u - left), low = m.x << left;
    // The hidden bit counts as one in the exponent.
    if (TO == F64) {
        uint carry, kept = uaddCarry(top << 21 | low >> 11, round_shift(low & 0xfffu, 11u, 0u) - (low >> 11 & 1u), carry);
        return uvec2(kept, sign | (1023u + e - left << 20) + (top >> 11) + carry);
    }
    return uvec2(sign | (127u + e - left << 23) + round_shift(top, 8u, uint(low != 0u)), 0u);
}

// One element, in two words where it needs them.
uvec2 convert(const uvec2 v) {
    uint u = v.x;
    if (is_whole(FROM)) {
        uvec2 wide = FROM == I64 ? v : uvec2(FROM == BOOL ? min(u, 1u) : u, FROM == I32 ? uint(int(u) >> 31) : 0u);
        if (TO == BOOL) {
            return uvec2(min(wide.x | wide.y, 1u), 0u);
        }
        if (is_whole(TO)) {
            return wide;
        }
        wide = from_integer(wide);
        if (TO == F64) {
            return wide;
        }
        u = wide.x;
    } else if (FROM == F64) {
        if (TO == BOOL) {
            return uvec2(min(v.x | v.y & MAGNITUDE, 1u), 0u);
        }
        if (is_whole(TO)) {
            return to_integer(v);
        }
        u = narrow_f64(v, is_half(TO));
    } else {
        if (FROM == F16) {
            u = widen_f16(u);
        } else if (FROM == BF16) {
            u = widen_bf16(u);
        }
        if (TO == BOOL) {
            return uvec2(min(u & MAGNITUDE, 1u), 0u);
        }
        if (is_whole(TO) || TO == F64) {
            uvec2 wide = widen_f32(u);
            return TO == F64 ? wide : to_integer(wide);
        }
    }
    if (TO == F16) {
        u = narrow_f16(u);
    } else if (TO == BF16) {
        u = narrow_bf16(u);
    } else {
        u = floatBitsToUint(canonical(f(u)));
    }
    return uvec2(u, 0u);
}

void convert_all() {
    uint first = gl_WorkGroupID.x * 1024u + gl_LocalInvocationIndex * (VECTOR == 1u ? 4u : 1u);
    // Where four elements may be read and written at once, none of them has two words, or a byte.
    if (VECTOR == 1u && first + 4u <= n) {
        uvec4 v;
        if (is_half(FROM)) {
            uvec2 w = Word2(at(x, first, 1u)).v;
            v = uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16);
        } else {
            v = Word4(at(x, first, 2u)).v;
        }
        for (uint k = 0u; k < 4u; k++) {
            v[k] = convert(uvec2(v[k], 0u)).x;
        }
        if (is_half(TO)) {
            Word2(at(y, first, 1u)).v = uvec2(v.x | v.y << 16, v.z | v.w << 16);
        } else {
            Word4(at(y, first, 2u)).v = v;
        }
        return;
    }
    for (uint k = 0u; k < 4u; k++) {
        uint i = first + k * (VECTOR == 1u ? 1u : 256u);
        if (i < n) {
            uvec2 u = uvec2(0u);
            if (is_half(FROM)) {
                u.x = load_half(x, i);
            } else if (is_byte(FROM)) {
                u.x = load_byte(x, i);
            } else if (is_long(FROM)) {
                u = Word2(at(x, i, 3u)).v;
            } else {
                u.x = load_word(x, i);
            }
            u = convert(u);
            if (is_half(TO)) {
                store_half(y, i, u.x);
            } else if (is_byte(TO)) {
                store_byte(y, i, u.x & 0xffu);
            } else if (is_long(TO)) {
                Word2(at(y, i, 3u)).v = u;
            } else {
                store_word(y, i, u.x);
            }
        }
    }
}
