// Arithmetic on integers and bools. An element is computed as a 64-bit integer in two words, the lower one first.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "memory.glsl"
#include "dtypes.glsl"
#include "integer_operations.glsl"

// What is done: an operation on elements, or a reduction of lines.
layout(constant_id = 10) const uint FUNCTION = 0;
// dtype::DType's number of the operands.
layout(constant_id = 11) const uint KIND = 0;

const uint ARITHMETIC = 0u, FOLD = 1u;

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uvec2 x;
    // arithmetic: the second operand; of an operation of one operand, it is x. fold: 0, or the places in each line that are looked at.
    uvec2 other;
    uvec2 y;
    // arithmetic: for each axis, from the last to the first, its size and the elements between neighbours of x, other and other.
    // fold: how many places a line has at other.
    uvec2 outer;
    // fold: the parts of a line, each of which has a result.
    uint rank;
    // The operation's number.
    uint op;
    // Elements of the result.
    uint n;
    // fold: elements of a line, and from one to the next.
    uint rows;
    uint inner;
    // fold: 1 if a workgroup has one part; the words of a result that is an index, or 0.
    uint together;
    uint words;
};

#include "broadcast.glsl"

// What a workgroup's threads found in their parts of a line.
shared uvec2 found_by[256];
shared uint places[256];

// The place of no element.
const uint NOWHERE = 0xffffffffu;

uvec2 integer(const uvec2 address, const uint index) {
    if (KIND == I64) {
        return Word2(at(address, index, 3u)).v;
    }
    if (is_byte(KIND)) {
        uint u = load_byte(address, index);
        return uvec2(KIND == BOOL ? min(u, 1u) : u, 0u);
    }
    uint u = load_word(address, index);
    return uvec2(u, KIND == I32 ? uint(int(u) >> 31) : 0u);
}

bool is_below(const uvec2 a, const uvec2 b) {
    return (a.y ^ SIGN) < (b.y ^ SIGN) || (a.y == b.y && a.x < b.x);
}

uvec2 negated(const uvec2 v) {
    return uvec2(-v.x, ~v.y + uint(v.x == 0u));
}

uvec2 sum_of(const uvec2 a, const uvec2 b) {
    uint carry;
    uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

uvec2 product_of(const uvec2 a, const uvec2 b) {
    uint high, low;
    umulExtended(a.x, b.x, high, low);
    return uvec2(low, high + a.x * b.y + a.y * b.x);
}

// The quotient rounded down; 0 if b is 0.
uvec2 quotient_of(const uvec2 a, const uvec2 b) {
    if (b == uvec2(0u)) {
        return b;
    }
    uvec2 left = a.y >= SIGN ? negated(a) : a, by = b.y >= SIGN ? negated(b) : b, rest = uvec2(0u);
    // Bit by bit: the bits of the quotient take the places of those that `left` has lost.
    for (uint i = 0u; i < 64u; i++) {
        rest = uvec2(rest.x << 1 | left.y >> 31, rest.y << 1 | rest.x >> 31);
        left = uvec2(left.x << 1, left.y << 1 | left.x >> 31);
        if (rest.y > by.y || (rest.y == by.y && rest.x >= by.x)) {
            rest = sum_of(rest, negated(by));
            left.x |= 1u;
        }
    }
    if ((a.y ^ b.y) < SIGN) {
        return left;
    }
    return rest == uvec2(0u) ? negated(left) : ~left;
}

uvec2 computed(const uvec2 a, const uvec2 b) {
    if (op == OP_ADD) {
        return sum_of(a, b);
    }
    if (op == OP_SUB) {
        return sum_of(a, negated(b));
    }
    if (op == OP_MUL) {
        return product_of(a, b);
    }
    if (op == OP_DIV) {
        return quotient_of(a, b);
    }
    if (op == OP_NEG || (op == OP_ABS && a.y >= SIGN)) {
        return negated(a);
    }
    // What is left is the larger or the smaller one; of abs, a and b are x.
    return is_below(a, b) == (op == OP_MAXIMUM) ? b : a;
}

// The bits of a value in its dtype.
uvec2 stored(const uvec2 v) {
    return KIND == BOOL ? uvec2(min(v.x | v.y, 1u), 0u) : KIND == U8 ? uvec2(v.x & 0xffu, 0u) : v;
}

void store_integer(const uint i, const uvec2 v) {
    if (KIND == I64) {
        Word2(at(y, i, 3u)).v = v;
    } else if (is_byte(KIND)) {
        store_byte(y, i, v.x);
    } else {
        store_word(y, i, v.x);
    }
}

// Four elements. Bytes are one word of y where it is aligned.
void arithmetic() {
    bool bytes = is_byte(KIND);
    uint first = gl_WorkGroupID.x * 1024u + gl_LocalInvocationIndex * (bytes ? 4u : 1u), step_ = bytes ? 1u : 256u, word = 0u;
    bool whole = bytes && first + 4u <= n && (y.x & 3u) == 0u;
    for (uint k = 0u; k < 4u && first + k * step_ < n; k++) {
        uint i = first + k * step_;
        uvec3 from = sources(i);
        uvec2 v = stored(computed(integer(x, from.x), integer(other, from.y)));
        word |= v.x << (8u * (k & 3u));
        if (!whole) {
            store_integer(i, v);
        }
    }
    if (whole) {
        Word(at_byte(y, first)).v = word;
    }
}

// Adds an element, or what was found in another part of the line, to what was found in a part.
void join(inout uvec2 found, inout uint place, const uvec2 v, const uint at_) {
    if (op == OP_SUM) {
        found = sum_of(found, v);
    } else if (op == OP_PROD) {
        found = product_of(found, v);
    } else if (at_ != NOWHERE) {
        bool better = op == OP_MAX || op == OP_ARGMAX ? is_below(found, v) : is_below(v, found);
        if (place == NOWHERE || better || (v == found && at_ < place)) {
            found = v;
            place = at_;
        }
    }
}

// A part of a line of `rows` elements, which are `inner` apart, by a thread or, if together is 1, by a workgroup.
void fold() {
    uint thread = gl_LocalInvocationIndex, start = 0u, apart = 1u, part = gl_WorkGroupID.x * 256u + thread;
    if (together == 1u) {
        part = gl_WorkGroupID.x;
        start = thread;
        apart = 256u;
    }
    uvec2 found = uvec2(op == OP_PROD ? 1u : 0u, 0u);
    uint place = NOWHERE;
    if (part < n) {
        uint line = part / rank, outer_line = line / inner, first = outer_line * rows * inner + (line - outer_line * inner);
        uint most = (rows - 1u) / rank + 1u, begin = (part - line * rank) * most;
        bool chosen = other != uvec2(0u);
        uint count = chosen ? outer.x : min(rows - begin, most);
        for (uint k = start; k < count; k += apart) {
            uint row = chosen ? load_word(other, line * count + k) : begin + k;
            join(found, place, integer(x, first + row * inner), row);
        }
    }
    if (together == 1u) {
        found_by[thread] = found;
        places[thread] = place;
        for (uint half_ = 128u; half_ > 0u; half_ >>= 1) {
            barrier();
            if (thread < half_) {
                join(found, place, found_by[thread + half_], places[thread + half_]);
                found_by[thread] = found;
                places[thread] = place;
            }
        }
        if (thread > 0u) {
            return;
        }
    }
    if (part >= n) {
        return;
    }
    if (words == 0u) {
        store_integer(part, stored(found));
    } else if (words == 1u) {
        store_word(y, part, place);
    } else {
        Word2(at(y, part, 3u)).v = uvec2(place, 0u);
    }
}

void main() {
    if (FUNCTION == ARITHMETIC) {
        arithmetic();
    } else {
        fold();
    }
}
