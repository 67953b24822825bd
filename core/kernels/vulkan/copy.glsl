// Rows moved to other places, for transpose, concat, embedding, slice, pad and gather, and the check of ids.

const uint UNITS = 4u;
const uint CHECKED = 16384u;

uvec2 id(const uint i) {
    if (KIND == 4u) {
        return Word2(at(ids, i, 3u)).v;
    }
    uint v = load_word(ids, i);
    return uvec2(v, KIND == 3u ? uint(int(v) >> 31) : 0u);
}

shared uint worst;

// Looks for the first id outside the table: among CHECKED of them, or among what such workgroups found. The complement of its
// position goes to y.
void check() {
    uint t = gl_LocalInvocationIndex;
    if (t == 0u) {
        worst = 0u;
    }
    barrier();
    uint first = gl_WorkGroupID.x * CHECKED, found = 0u;
    uint end = FUNCTION == COLLECT ? n : min(n - first, CHECKED) + first;
    for (uint i = first + t; i < end; i += 256u) {
        if (FUNCTION == COLLECT) {
            found = max(found, load_word(x, i));
        } else {
            uvec2 v = id(i);
            found = max(found, v.y != 0u || v.x >= rows ? ~i : 0u);
        }
    }
    atomicMax(worst, found);
    barrier();
    if (t > 0u) {
        return;
    }
    store_word(y, gl_WorkGroupID.x, worst);
    if (inner == 1u && worst != 0u) {
        // Nobody else looks: say it.
        uvec2 v = id(~worst);
        store_word(fault, 0u, worst);
        store_word(fault, 1u, v.x);
        store_word(fault, 2u, v.y);
        store_word(fault, 3u, rows);
    }
}

// A unit of at most four bytes.
uint load_unit(const uvec2 address, const uint index) {
    return BYTES == 4u ? load_word(address, index) : BYTES == 1u ? load_byte(address, index) : load_half(address, index);
}

void store_unit(const uint index, const uint value) {
    if (BYTES == 4u) {
        store_word(y, index, value);
    } else if (BYTES == 1u) {
        store_byte(y, index, value);
    } else {
        store_half(y, index, value);
    }
}

void copy() {
    uint first = gl_WorkGroupID.x * (256u * UNITS) + gl_LocalInvocationIndex;
    if ((FUNCTION == GATHER || FUNCTION == ALONG) && load_word(flag, 0u) != 0u) {
        return;
    }
    uint from[UNITS], to[UNITS];
    uvec4 v[UNITS];
    for (uint k = 0u; k < UNITS; k++) {
        uint i = min(first + 256u * k, n - 1u);
        uint row = i / inner, column = i - row * inner;
        if (FUNCTION == GATHER) {
            from[k] = id(row).x * inner + column;
            to[k] = i;
        } else if (FUNCTION == ALONG) {
            from[k] = (((row / m) * rows + id(row).x) * x_row + row % x_row) * inner + column;
            to[k] = i;
        } else {
            from[k] = column;
            to[k] = column;
            for (uint d = 0u; d < rank; d++) {
                uint size = load_word(outer, 3u * d), rest = row / size;
                from[k] += (row - rest * size) * load_word(outer, 3u * d + 1u);
                to[k] += (row - rest * size) * load_word(outer, 3u * d + 2u);
                row = rest;
            }
        }
        if (BYTES == 16u) {
            v[k] = Word4(at(x, from[k], 4u)).v;
        } else {
            v[k].x = load_unit(x, from[k]);
        }
    }
    for (uint k = 0u; k < UNITS; k++) {
        if (first + 256u * k < n) {
            if (BYTES == 16u) {
                Word4(at(y, to[k], 4u)).v = v[k];
            } else {
                store_unit(to[k], v[k].x);
            }
        }
    }
}
