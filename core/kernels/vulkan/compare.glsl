// Comparisons, which give bools, and where, which takes one.

// An element as two words, the upper one first, whose order is that of values: -0 is +0. Of NaN `unordered` is set.
uvec2 key(const uvec2 address, const uint index, inout bool unordered) {
    if (KIND == I64) {
        uvec2 v = Word2(at(address, index, 3u)).v;
        return uvec2(v.y ^ SIGN, v.x);
    }
    if (KIND == F64) {
        uvec2 v = Word2(at(address, index, 3u)).v;
        unordered = unordered || is_nan_f64(v);
        bool negative = v.y > SIGN || (v.y == SIGN && v.x != 0u);
        return negative ? uvec2(~v.y, ~v.x) : uvec2(v.y | SIGN, v.x);
    }
    uint u;
    if (KIND == BOOL || KIND == U8) {
        u = min(load_byte(address, index), KIND == BOOL ? 1u : 255u);
    } else {
        u = load_word(address, index);
    }
    if (KIND == F32) {
        unordered = unordered || (u & MAGNITUDE) > INFINITY;
        u = u > SIGN ? ~u ^ SIGN : u & MAGNITUDE;
    }
    return uvec2(KIND == F32 || KIND == I32 ? u ^ SIGN : u, 0u);
}

// Four bools, which are one word of y where it lies so.
void compare() {
    uint first = (gl_WorkGroupID.x * 256u + gl_LocalInvocationIndex) * 4u, found = 0u;
    for (uint k = 0u; k < 4u && first + k < n; k++) {
        uvec3 from = sources(first + k);
        bool unordered = false;
        uvec2 a = key(x, from.x, unordered), b = key(ids, from.y, unordered);
        bool below = a.x < b.x || (a.x == b.x && a.y < b.y);
        uint outcome = unordered ? 8u : a == b ? 2u : below ? 1u : 4u;
        found |= min(outcome & m, 1u) << (8u * k);
    }
    if (first + 4u <= n && (y.x & 3u) == 0u) {
        Word(at_byte(y, first)).v = found;
        return;
    }
    for (uint k = 0u; k < 4u && first + k < n; k++) {
        store_byte(y, first + k, found >> (8u * k) & 1u);
    }
}

void select_units() {
    if (rows != 0u) {
        // In place, 16 invocations look at the bool of so many neighbours.
        uint whole = (gl_WorkGroupID.x * 256u + gl_LocalInvocationIndex) / 16u * rows;
        if (whole < n) {
            uvec3 from = sources(whole);
            if (load_byte(flag, from.z) != 0u) {
                for (uint i = gl_LocalInvocationIndex % 16u; i < rows; i += 16u) {
                    store_unit(whole + i, load_unit(x, from.x + i));
                }
            }
        }
        return;
    }
    uint first = gl_WorkGroupID.x * 256u * m + gl_LocalInvocationIndex;
    for (uint k = 0u; k < m && first + 256u * k < n; k++) {
        uint i = first + 256u * k, element = i / inner;
        uvec3 from = sources(element);
        bool is_x = load_byte(flag, from.z) != 0u;
        // In place, what is not selected is there already.
        if ((is_x ? x : ids) == y) {
            continue;
        }
        store_unit(i, load_unit(is_x ? x : ids, (is_x ? from.x : from.y) * inner + (i - element * inner)));
    }
}
