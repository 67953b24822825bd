// Memory access by address. Operands have up to 2³² elements, so byte offsets are summed in 64 bits, as uvec2 because
// not every device has 64-bit integers. Include after contract.glsl.

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Word {
    uint v;
};
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Word2 {
    uvec2 v;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Word4 {
    uvec4 v;
};

// Returns the address of element `index`, with elements of 2^shift bytes (1 ≤ shift ≤ 4).
uvec2 at(const uvec2 address, const uint index, const uint shift) {
    uint carry;
    uint low = uaddCarry(address.x, index << shift, carry);
    return uvec2(low, address.y + (index >> (32u - shift)) + carry);
}

uint load_word(const uvec2 address, const uint index) {
    return Word(at(address, index, 2u)).v;
}

void store_word(const uvec2 address, const uint index, const uint value) {
    Word(at(address, index, 2u)).v = value;
}

float load(const uvec2 address, const uint index) {
    return f(load_word(address, index));
}

// Stores the result of arithmetic: every NaN becomes the canonical NaN.
void store(const uvec2 address, const uint index, const float value) {
    store_word(address, index, floatBitsToUint(canonical(value)));
}

// Loads four elements from `index`, which must be at a multiple of 16 bytes.
vec4 load4(const uvec2 address, const uint index) {
    return uintBitsToFloat(Word4(at(address, index, 2u)).v);
}

void store4(const uvec2 address, const uint index, const vec4 value) {
    Word4(at(address, index, 2u)).v = floatBitsToUint(canonical(value));
}

// Loads four elements: one vector, one element four times, or four separate elements.
vec4 fetch(const uvec2 address, const uvec4 index, const bool whole, const uint step_) {
    if (whole) {
        return step_ == 1u ? load4(address, index.x) : vec4(load(address, index.x));
    }
    vec4 v;
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        v[k] = load(address, index[k]);
    }
    return v;
}

// Returns the address of a byte.
uvec2 at_byte(const uvec2 address, const uint index) {
    uint carry;
    uint low = uaddCarry(address.x, index, carry);
    return uvec2(low, address.y + carry);
}

// Loads a byte at any position in its word.
uint load_byte(const uvec2 address, const uint index) {
    uvec2 a = at_byte(address, index);
    return (Word(uvec2(a.x & ~3u, a.y)).v >> ((a.x & 3u) << 3)) & 0xffu;
}

// Stores one byte of a word. Other invocations may write the other bytes at the same time.
void store_byte(const uvec2 address, const uint index, const uint value) {
    uvec2 a = at_byte(address, index);
    uint shift = (a.x & 3u) << 3;
    Word word = Word(uvec2(a.x & ~3u, a.y));
    atomicAnd(word.v, ~(0xffu << shift));
    atomicOr(word.v, value << shift);
}

// Loads a 16-bit element from either half of its word.
uint load_half(const uvec2 address, const uint index) {
    uvec2 a = at(address, index, 1u);
    return (Word(uvec2(a.x & ~3u, a.y)).v >> ((a.x & 2u) << 3)) & 0xffffu;
}

// Stores one half of a word. Another invocation may write the other half at the same time.
void store_half(const uvec2 address, const uint index, const uint value) {
    uvec2 a = at(address, index, 1u);
    uint shift = (a.x & 2u) << 3;
    Word word = Word(uvec2(a.x & ~3u, a.y));
    atomicAnd(word.v, ~(0xffffu << shift));
    atomicOr(word.v, value << shift);
}
