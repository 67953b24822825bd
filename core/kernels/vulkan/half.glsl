// f16 and bf16 as integers: widened exactly, narrowed to the nearest value, ties to even. Include after contract.glsl.

// Widens the bits of a binary16 to those of a binary32.
uint widen_f16(const uint h) {
    uint sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) {
        return sign | INFINITY | ((magnitude & 0x3ffu) << 13);
    }
    if (magnitude >= 0x400u) {
        return sign | ((magnitude << 13) + 0x38000000u);
    }
    // magnitude·2⁻²⁴, which is a normal binary32.
    int top = findMSB(magnitude);
    return magnitude == 0u ? sign : sign | (uint(102 + top) << 23) + (magnitude << uint(23 - top));
}

// Narrows the bits of a binary32 to a binary16; NaN becomes 7e00.
uint narrow_f16(const uint u) {
    uint sign = (u >> 16) & 0x8000u, magnitude = u & MAGNITUDE;
    if (magnitude > INFINITY) {
        return 0x7e00u;
    }
    // 65520 and above rounds to infinity.
    if (magnitude >= 0x477ff000u) {
        return sign | 0x7c00u;
    }
    uint significand = magnitude - 0x38000000u, drop = 13u;
    if (magnitude < 0x38800000u) {
        // The result is subnormal, in units of 2⁻²⁴.
        drop = min(126u - (magnitude >> 23), 25u);
        significand = (magnitude & 0x7fffffu) | 0x800000u;
    }
    return sign | round_shift(significand, drop, 0u);
}

uint widen_bf16(const uint b) {
    return b << 16;
}

// Narrows the bits of a binary32 to a bfloat16; NaN becomes 7fc0.
uint narrow_bf16(const uint u) {
    // Adding half a unit, or one less if the kept part is even, carries exactly when the value rounds up.
    return (u & MAGNITUDE) > INFINITY ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}
