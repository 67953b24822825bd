// Fixed-point numbers (docs/contract.md, "fixed24, fixed16"), in integer arithmetic only. CUDA's kernels include this
// file too. Include after contract.glsl.

// Stands for the scale of a line that has an infinity or NaN.
const int NOT_FINITE = -0x7fffffff;

// A sum of products, in 96 bits.
struct Total {
    uint low, middle, high;
};

// Returns t + x·2^shift, for shifts below 32.
Total add_shifted(const Total t, const int x, const uint shift) {
    uint sign = uint(x >> 31), low = uint(x) << shift, middle = shift == 0u ? sign : uint(x >> int(32u - shift));
    Total sum;
    sum.low = t.low + low;
    uint carry = uint(sum.low < low);
    uint with_carry = middle + carry;
    uint carried = uint(with_carry < carry);
    sum.middle = t.middle + with_carry;
    sum.high = t.high + sign + carried + uint(sum.middle < with_carry);
    return sum;
}

// Returns the scale of a line. `largest` is the largest of its elements' bits without signs; `digits` is the number of
// digits.
int scale_of(const uint largest, const uint digits) {
    if (largest >= INFINITY) {
        return NOT_FINITE;
    }
    if (largest == 0u) {
        return 0;
    }
    uint zeros = largest < 0x800000u ? 23u - uint(findMSB(largest)) : 0u;
    uint m = largest < 0x800000u ? largest << zeros : (largest & 0x7fffffu) | 0x800000u;
    int e = largest < 0x800000u ? 1 - int(zeros) : int(largest >> 23);
    return digits == 3u ? 149 - e - int(m > 0xfefefeu) : 141 - e - int(m > 0xfefeffu);
}

// Returns the scale of the values in attention's second product.
int value_scale(const uint digits) {
    return digits == 3u ? 20 : 12;
}

// Returns the factor of a key's weights, whose row of values has this largest element and this scale.
float value_factor(const uint largest, const int scale, const uint digits) {
    return scale == NOT_FINITE ? f(NAN) : largest < 0x1800000u ? 0.0 : f(uint(value_scale(digits) - scale + 127) << 23u);
}

// Returns x·2^scale rounded to the nearest integer, ties to even. x is given by its bits.
int cut(const uint bits_of_x, const int scale) {
    uint magnitude = bits_of_x & MAGNITUDE, field = magnitude >> 23;
    uint m = field == 0u ? magnitude : (magnitude & 0x7fffffu) | 0x800000u;
    int drop = 150 - int(field == 0u ? 1u : field) - scale;
    uint q = 0u;
    if (scale != NOT_FINITE && drop <= 25) {
        q = drop > 0 ? round_shift(m, uint(drop), 0u) : m << uint(-drop);
    }
    return (bits_of_x & SIGN) != 0u ? -int(q) : int(q);
}

// Returns the bits of t·2^exponent, rounded to 24 bits, and once more if the result is subnormal. Zeros are +0.
uint rounded(Total t, const int exponent) {
    uint sign = t.high & SIGN;
    if (sign != 0u) {
        t.low = ~t.low + 1u;
        t.middle = ~t.middle + uint(t.low == 0u);
        t.high = ~t.high + uint((t.low | t.middle) == 0u);
    }
    int e = exponent + 72;
    if (t.high == 0u) {
        t.high = t.middle;
        t.middle = t.low;
        t.low = 0u;
        e -= 32;
    }
    if (t.high == 0u) {
        t.high = t.middle;
        t.middle = 0u;
        e -= 32;
    }
    if (t.high == 0u) {
        return 0u;
    }
    uint shift = 31u - uint(findMSB(t.high));
    if (shift > 0u) {
        t.high = (t.high << shift) | (t.middle >> (32u - shift));
        t.middle = (t.middle << shift) | (t.low >> (32u - shift));
        t.low <<= shift;
    }
    uint m = t.high >> 8, rest = (t.high & 255u) << 1 | uint((t.middle | t.low) != 0u);
    m += uint((rest | (m & 1u)) > 256u);
    int field = e - int(shift) + 150;
    if (m == 0x1000000u) {
        m = 0x800000u;
        field++;
    }
    if (field >= 255) {
        return sign | INFINITY;
    }
    if (field >= 1) {
        return sign | (uint(field) << 23) | (m & 0x7fffffu);
    }
    uint kept = field < -24 ? 0u : round_shift(m, uint(1 - field), 0u);
    return kept == 0u ? 0u : sign | kept;
}
