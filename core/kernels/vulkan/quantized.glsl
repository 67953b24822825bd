// Blocks of quantised matrices (docs/contract.md, "Quantised blocks"). CUDA's kernels include this file too. Include after
// half.glsl. RAW(i) is a word of shared memory, into which a workgroup has copied the blocks' bytes. UNROLL stands before loops
// whose arrays must become registers.

// contract::BlockFormat's numbers.
const uint Q8_0 = 0u, Q4_0 = 1u, Q4_1 = 2u, Q5_0 = 3u, Q5_1 = 4u, Q4_K = 5u, Q5_K = 6u, Q6_K = 7u;

// 32 elements of a row.
struct Unpacked {
    // The elements as signed bytes, four in a word.
    uint w[8];
    // The block's scale, and the factor of its minima.
    float d, m;
    // The integer scales of the first and the last 16 elements, and the minimum.
    int first, last, minimum;
};

bool has_minima(const uint format) {
    return format == Q4_1 || format == Q5_1 || format == Q4_K || format == Q5_K;
}

// Returns the units of a block.
uint units_of(const uint format) {
    return format < Q4_K ? 1u : 8u;
}

// Returns the bytes of a block.
uint bytes_of(const uint format) {
    return format < Q4_K ? (format == Q8_0 ? 34u : 16u + 2u * format) : (format == Q4_K ? 144u : format == Q5_K ? 176u : 210u);
}

// The largest magnitude, as bits, of a block of x that counts as zero: below 2⁻⁹⁰.
const uint LEAST_BLOCK = 37u << 23;

// Returns the four bytes that begin at a byte.
uint raw_at(const uint position) {
    uint i = position >> 2, shift = (position & 3u) * 8u;
    return RAW(i) >> shift | RAW(i + 1u) << 1 << (31u - shift);
}

// Subtracts `middle` from each of four unsigned bytes below 128. `sign` is 80808080, or 0 where there is no middle.
uint less(const uint bytes, const uint sign, const uint middle) {
    return (bytes | sign) - middle ^ sign;
}

// Unpacks a unit of the block that begins at a byte.
Unpacked unpack(const uint format, const uint block, const uint unit) {
    Unpacked of;
    uint head = raw_at(block + (format == Q6_K ? 206u : 0u));
    of.d = f(widen_f16(format == Q6_K ? head >> 16 : head & 0xffffu));
    // Minima of blocks of 256 are subtracted.
    of.m = f(widen_f16(head >> 16) ^ (format >= Q4_K ? SIGN : 0u));
    of.first = of.last = of.minimum = 1;
    if (format != Q8_0 && format < Q4_K) {
        bool five = format >= Q5_0;
        // The fifth bits stand before the nibbles.
        uint from = block + bytes_of(format) - 16u, i = from >> 2, shift = (from & 3u) * 8u, last = RAW(i);
        uint fifths = five ? raw_at(from - 4u) : 0u;
        uint sign = has_minima(format) ? 0u : 0x80808080u, middle = has_minima(format) ? 0u : five ? 0x10101010u : 0x08080808u;
        UNROLL for (uint k = 0u; k < 4u; k++) {
            uint next = RAW(i + 1u + k), four = last >> shift | next << 1 << (31u - shift);
            last = next;
            // The product moves four neighbouring bits into four bytes.
            uint low = (fifths >> 4u * k & 15u) * 0x204081u & 0x01010101u;
            uint high = (fifths >> 4u * k + 16u & 15u) * 0x204081u & 0x01010101u;
            of.w[k] = less(four & 0x0f0f0f0fu | low << 4, sign, middle);
            of.w[k + 4u] = less(four >> 4 & 0x0f0f0f0fu | high << 4, sign, middle);
        }
        return of;
    }
    // 32 bytes with the low bits, and 32 with the high ones.
    uint low = block + 2u, high = block, low_shift = 0u, high_shift = 0u, low_mask = 0xffffffffu, high_mask = 0u;
    uint sign = 0u, middle = 0u;
    if (format == Q6_K) {
        low = block + unit / 4u * 64u + unit % 2u * 32u;
        high = block + 128u + unit / 4u * 32u;
        low_shift = unit % 4u / 2u * 4u;
        high_shift = unit % 4u * 2u;
        high_mask = 0x03030303u;
        sign = 0x80808080u;
        middle = 0x20202020u;
        int scales = int(raw_at(block + 192u + 2u * unit));
        of.first = scales << 24 >> 24;
        of.last = scales << 16 >> 24;
    } else if (format != Q8_0) {
        high = block + 16u;
        low = high + (format == Q5_K ? 32u : 0u) + unit / 2u * 32u;
        low_shift = unit % 2u * 4u;
        high_shift = unit;
        high_mask = format == Q5_K ? 0x01010101u : 0u;
        uint of_four = unit % 4u * 8u;
        uint scales = raw_at(block + 4u) >> of_four, minima = raw_at(block + 8u) >> of_four, rest = raw_at(block + 12u) >> of_four;
        of.first = int(unit < 4u ? scales & 63u : rest & 15u | scales >> 2 & 48u);
        of.minimum = int(unit < 4u ? minima & 63u : rest >> 4 & 15u | minima >> 2 & 48u);
        of.last = of.first;
    }
    low_mask = format == Q8_0 ? 0xffffffffu : 0x0f0f0f0fu;
    uint i = low >> 2, j = high >> 2, shift = (low & 3u) * 8u, other_shift = (high & 3u) * 8u, last = RAW(i), last_high = RAW(j);
    UNROLL for (uint k = 0u; k < 8u; k++) {
        uint next = RAW(i + 1u + k), next_high = RAW(j + 1u + k);
        uint four = (last >> shift | next << 1 << (31u - shift)) >> low_shift & low_mask;
        four |= ((last_high >> other_shift | next_high << 1 << (31u - other_shift)) >> high_shift & high_mask) << 4;
        last = next;
        last_high = next_high;
        of.w[k] = less(four, sign, middle);
    }
    return of;
}

// Returns the value of an element, which is byte `i` of a unit's word.
float value_of(const uint word, const uint i, const float scale, const float minimum, const bool minima) {
    precise float x = scale * float(int(word << 24u - 8u * i) >> 24);
    if (minima) {
        x = x + minimum;
    }
    return x;
}
