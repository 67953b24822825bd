// SUM, PROD, MAX, MIN and their indices, of blocks of 1024 along lines. A longer line's results are reduced again. MIN(x) is
// −MAX(−x).
//
// A workgroup takes 32 blocks, eight invocations each: one of them adds up four neighbouring lanes of SUM.

const bool INDEX = (OF_INDEX >> FUNCTION & 1u) != 0u;
const bool FOLD = FUNCTION == SUM || FUNCTION == PROD;
// What sign bits are flipped by before and after elements are compared. (Of MAX and ARGMAX by nothing.)
const uint FLIP = FUNCTION == MIN || FUNCTION == ARGMIN ? SIGN : 0u;

void reduce() {
    uint t = gl_LocalInvocationIndex;
    // Which of the workgroup's blocks, and which part of it.
    uvec2 place = mix(uvec2(t >> 3, t & 7u), uvec2(t & 31u, t >> 5), bvec2(ACROSS == 1u));
    uint first = gl_WorkGroupID.x * 32u, unit = first + place.x, rest = unit / inner;
    uint column = unit - rest * inner, outer_ = rest / blocks, block = (rest - outer_ * blocks) * 1024u;
    uint base = (outer_ * n + block) * inner + column;
    uint size = unit < units ? min(n - block, 1024u) : 0u;
    precise float stat = 0.0;
    if (FUNCTION == SUM && (MAP == 1u || MAP == 2u) && size > 0u) {
        stat = load(p, outer_ * inner + column);
    }

    precise vec4 sum = vec4(FUNCTION == PROD ? 1.0 : 0.0);
    int best = int(SIGN);
    uint found = 0u;
    for (uint from = 4u * place.y; from < size; from += 32u * VECTORS) {
        vec4 v[VECTORS];
        bool whole = VECTOR == 1u && from + (32u * VECTORS - 28u) <= size;
        [[unroll]] for (uint j = 0u; j < VECTORS; j++) {
            uvec4 index = from + 32u * j + uvec4(0u, 1u, 2u, 3u);
            v[j] = fetch(x, base + (whole ? index : min(index, uvec4(size - 1u)) * inner), whole, 1u);
        }
        [[unroll]] for (uint j = 0u; j < VECTORS; j++) {
            [[unroll]] for (uint k = 0u; k < 4u; k++) {
                uint i = from + 32u * j + k;
                precise float u = v[j][k];
                int key = max_key(uintBitsToFloat(floatBitsToUint(u) ^ FLIP));
                if (MAP == 1u || MAP == 2u) {
                    u = u - stat;
                }
                if (MAP == 1u) {
                    u = function_exp(u);
                } else if (MAP >= 2u) {
                    u = u * u;
                }
                if (i < size) {
                    sum[k] = FUNCTION == PROD ? sum[k] * u : sum[k] + u;
                    if (key > best) {
                        best = key;
                        found = i;
                    }
                }
            }
        }
    }
    if (INDEX && size > 0u) {
        found = MAP == 1u ? load_word(p, base + found * inner) : block + found;
    }
    // A ninth part for each block keeps banks apart.
    parts[place.x * 9u + place.y] = FOLD ? floatBitsToUint(sum) : uvec4(uint(best), found, 0u, 0u);
    barrier();

    unit = first + t;
    if (t >= 32u || unit >= units) {
        return;
    }
    uint o = t * 9u;
    if (FUNCTION == PROD) {
        store(y, unit, tree_of_product(o));
        return;
    }
    if (FUNCTION == SUM) {
        precise float result = tree(o);
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
    if (!INDEX || FINISH == 0u) {
        store(y, unit, uintBitsToFloat(floatBitsToUint(max_of_key(best)) ^ FLIP));
    }
    if (INDEX) {
        if (FINISH == 2u) {
            Word2(at(y, unit, 3u)).v = uvec2(found, 0u);
        } else {
            store_word(FINISH == 1u ? y : q, unit, found);
        }
    }
}
