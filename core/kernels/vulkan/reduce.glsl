// SUM, MAX and argmax of blocks of 1024 along lines. A longer line's results are reduced again.
//
// A workgroup takes 32 blocks, eight invocations each: one of them adds up four neighbouring lanes of SUM.
void reduce() {
    uint t = gl_LocalInvocationIndex;
    uint slot = ACROSS == 1u ? t & 31u : t >> 3;
    uint part = ACROSS == 1u ? t >> 5 : t & 7u;
    uint unit = gl_WorkGroupID.x * 32u + slot;
    uint line, block, base, stride = 1u;
    if (ACROSS == 1u) {
        uint rest = unit / inner, column = unit - rest * inner, outer = rest / blocks;
        block = rest - outer * blocks;
        base = (outer * n + block * 1024u) * inner + column;
        line = outer * inner + column;
        stride = inner;
    } else {
        line = unit / blocks;
        block = unit - line * blocks;
        base = line * n + block * 1024u;
    }
    uint size = unit < units ? min(n - block * 1024u, 1024u) : 0u;
    precise float stat = (MAP == 1u || MAP == 2u) && size > 0u ? load(p, line) : 0.0;

    precise vec4 sum = vec4(0.0);
    int best = int(SIGN);
    uint found = 0u;
    for (uint from = 4u * part; from < size; from += 32u * VECTORS) {
        vec4 v[VECTORS];
        for (uint j = 0u; j < VECTORS; j++) {
            uint i = from + 32u * j;
            v[j] = vec4(0.0);
            if (VECTOR == 1u && i + 4u <= size) {
                v[j] = load4(x, base + i);
            } else {
                for (uint k = 0u; k < 4u; k++) {
                    if (i + k < size) {
                        v[j][k] = load(x, base + (i + k) * stride);
                    }
                }
            }
        }
        for (uint j = 0u; j < VECTORS; j++) {
            uint i = from + 32u * j;
            if (FUNCTION == SUM) {
                precise vec4 u = v[j];
                if (MAP == 1u || MAP == 2u) {
                    u = u - stat;
                }
                if (MAP == 1u) {
                    for (uint k = 0u; k < 4u; k++) {
                        u[k] = function_exp(u[k]);
                    }
                } else if (MAP >= 2u) {
                    u = u * u;
                }
                // Lanes start at +0, so +0 changes nothing.
                sum = sum + mix(vec4(0.0), u, lessThan(i + uvec4(0u, 1u, 2u, 3u), uvec4(size)));
            } else {
                for (uint k = 0u; k < 4u; k++) {
                    int key = max_key(v[j][k]);
                    if (i + k < size && key > best) {
                        best = key;
                        found = i + k;
                    }
                }
            }
        }
    }
    if (FUNCTION == ARGMAX && size > 0u) {
        found = PAIRS == 1u ? load_word(p, base + found * stride) : block * 1024u + found;
    }
    parts[slot * 9u + part] = FUNCTION == SUM ? floatBitsToUint(sum) : uvec4(uint(best), found, 0u, 0u);
    barrier();

    unit = gl_WorkGroupID.x * 32u + t;
    if (t >= 32u || unit >= units) {
        return;
    }
    uint o = t * 9u;
    if (FUNCTION == SUM) {
        // Steps 16, 8 and 4 between parts, 2 and 1 within.
        precise vec4 s[4];
        for (uint k = 0u; k < 4u; k++) {
            s[k] = uintBitsToFloat(parts[o + k]) + uintBitsToFloat(parts[o + 4u + k]);
        }
        s[0] = (s[0] + s[2]) + (s[1] + s[3]);
        precise vec2 pair = s[0].xy + s[0].zw;
        precise float result = pair.x + pair.y;
        result = total(result);
        if (FINISH != 0u) {
            result = divide(result, value);
        }
        if (FINISH == 2u) {
            result = result + eps;
            result = function_rsqrt(result);
        }
        store(y, unit, result);
        return;
    }
    best = int(SIGN);
    for (uint k = 0u; k < 8u; k++) {
        int key = int(parts[o + k].x);
        uint index = parts[o + k].y;
        if (key > best || (key == best && index < found)) {
            best = key;
            found = index;
        }
    }
    if (FUNCTION == MAX || FINISH == 0u) {
        store_word(y, unit, floatBitsToUint(max_of_key(best)));
    }
    if (FUNCTION == ARGMAX) {
        if (FINISH == 2u) {
            Word2(at(y, unit, 3u)).v = uvec2(found, 0u);
        } else if (FINISH == 1u) {
            store_word(y, unit, found);
        } else {
            store_word(q, unit, found);
        }
    }
}
