// Conversions between element types: what cast does, and the widening and narrowing around every other kernel.

// The bits of a binary32 to an integer: truncated, saturated, NaN to 0.
uvec2 to_integer(const uint u) {
    bool negative = u >= SIGN;
    int e = int((u >> 23) & 255u) - 127;
    int width = TO == I64 ? 63 : TO == I32 ? 31 : TO == U32 ? 32 : 8;
    if ((u & MAGNITUDE) > INFINITY || ((TO == U32 || TO == U8) && negative)) {
        return uvec2(0u);
    }
    if (e >= width) {
        uint top = uint(negative) + (TO == U32 ? 0xffffffffu : TO == U8 ? 255u : 0x7fffffffu);
        return TO == I64 ? uvec2(negative ? 0u : 0xffffffffu, top) : uvec2(top, 0u);
    }
    // The significand, shifted to where the point is.
    uint m = u & 0x7fffffu | 0x800000u;
    uint left = uint(clamp(e - 23, 0, 39)), right = uint(clamp(23 - e, 0, 31));
    uvec2 v = left < 32u ? uvec2(m << left, m >> 1 >> (31u - left)) : uvec2(0u, m << (left - 32u));
    v.x >>= right;
    return negative ? uvec2(-v.x, ~v.y + uint(v.x == 0u)) : v;
}

// A 64-bit integer to the bits of the nearest binary32.
uint from_integer(const uvec2 v) {
    uint sign = v.y & SIGN;
    uvec2 m = sign != 0u ? uvec2(-v.x, ~v.y + uint(v.x == 0u)) : v;
    uint e = 127u + 62u;
    if (m.y == 0u) {
        m = m.yx;
        e -= 32u;
    }
    if (m.y == 0u) {
        return 0u;
    }
    uint left = uint(31 - findMSB(m.y));
    uint top = m.y << left | m.x >> 1 >> (31u - left);
    // The hidden bit counts as one in the exponent.
    return sign | ((e - left) << 23) + round_shift(top, 8u, uint(m.x << left != 0u));
}

// One element, in two words where it needs them.
uvec2 convert(const uvec2 v) {
    uint u = v.x;
    if (FROM == F16) {
        u = widen_f16(u);
    } else if (FROM == BF16) {
        u = widen_bf16(u);
    } else if (FROM >= I32) {
        uvec2 wide = FROM == I64 ? v : uvec2(FROM == BOOL ? min(u, 1u) : u, FROM == I32 ? uint(int(u) >> 31) : 0u);
        if (TO == BOOL) {
            return uvec2(min(wide.x | wide.y, 1u), 0u);
        }
        if (TO >= I32) {
            return wide;
        }
        u = from_integer(wide);
    }
    if (TO == BOOL) {
        return uvec2(min(u & MAGNITUDE, 1u), 0u);
    }
    if (TO >= I32) {
        return to_integer(u);
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
            } else if (FROM == I64) {
                u = Word2(at(x, i, 3u)).v;
            } else {
                u.x = load_word(x, i);
            }
            u = convert(u);
            if (is_half(TO)) {
                store_half(y, i, u.x);
            } else if (is_byte(TO)) {
                store_byte(y, i, u.x & 0xffu);
            } else if (TO == I64) {
                Word2(at(y, i, 3u)).v = u;
            } else {
                store_word(y, i, u.x);
            }
        }
    }
}
