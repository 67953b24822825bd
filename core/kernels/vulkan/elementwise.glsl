// y = f(x), y = a op b with broadcasting, and the last step of softmax and the norms, whose statistics are broadcast operands too.

// The result's dimensions are merged where the operands allow it, so that along the last one an operand goes on by one element or
// stays.

// Which elements make element i: of x, of p and q, of gamma and beta.
uvec3 locate(const uint i) {
    if (RANK == 1u) {
        return i * uvec3(X_STEP, P_STEP, 1u);
    }
    uint row = i / inner;
    uvec3 place = (i - row * inner) * uvec3(X_STEP, P_STEP, 1u);
    if (RANK == 2u) {
        return place + row * uvec3(x_row, p_row, 0u);
    }
    for (uint d = 0u; d + 1u < rank; d++) {
        uint size = load_word(outer, 3u * d), rest = row / size;
        place.xy += (row - rest * size) * uvec2(load_word(outer, 3u * d + 1u), load_word(outer, 3u * d + 2u));
        row = rest;
    }
    return place;
}

// Four elements: one vector, one element four times, or wherever they are.
vec4 fetch(const uvec2 address, const uvec4 index, const bool whole, const uint step_) {
    if (whole) {
        return step_ == 1u ? load4(address, index.x) : vec4(load(address, index.x));
    }
    vec4 v;
    for (uint k = 0u; k < 4u; k++) {
        v[k] = load(address, index[k]);
    }
    return v;
}

float apply(const float v, const float a, const float b, const float g, const float h) {
    precise float r = v;
    if (FUNCTION < 7u) {
        r = activate(FUNCTION, v);
    } else if (FUNCTION == 7u) {
        r = v * value;
    } else if (FUNCTION == 8u) {
        r = f(floatBitsToUint(v) ^ SIGN);
    } else if (FUNCTION == 9u) {
        r = f(floatBitsToUint(v) & MAGNITUDE);
    } else if (FUNCTION == 10u) {
        r = function_exp(v);
    } else if (FUNCTION == 11u) {
        r = function_log(v);
    } else if (FUNCTION == 12u) {
        r = root(v);
    } else if (FUNCTION == 13u) {
        r = function_rsqrt(v);
    } else if (FUNCTION == 14u) {
        r = v + a;
    } else if (FUNCTION == 15u) {
        r = v - a;
    } else if (FUNCTION == 16u) {
        r = v * a;
    } else if (FUNCTION == 17u) {
        r = divide(v, a);
    } else if (FUNCTION == 18u) {
        r = v - a;
        r = divide(function_exp(r), b);
    } else {
        if (FUNCTION == 19u) {
            r = v - a;
            r = r * b;
        } else {
            r = v * a;
        }
        if ((AFFINE & 1u) != 0u) {
            r = r * g;
        }
        if ((AFFINE & 2u) != 0u) {
            r = r + h;
        }
    }
    return r;
}

void elementwise() {
    uint first = gl_WorkGroupID.x * (1024u * VECTORS);
    bool whole = VECTOR == 1u && n - first >= 1024u * VECTORS;
    uint step_ = whole ? 1u : 256u;
    first += gl_LocalInvocationIndex * (whole ? 4u : 1u);
    vec4 v[VECTORS], a[VECTORS], b[VECTORS], g[VECTORS], h[VECTORS];
    for (uint j = 0u; j < VECTORS; j++) {
        uvec4 of_x, of_p, of_g;
        for (uint k = 0u; k < 4u; k++) {
            uvec3 place = locate(min(first + 1024u * j + step_ * k, n - 1u));
            of_x[k] = place.x;
            of_p[k] = place.y;
            of_g[k] = place.z;
        }
        v[j] = fetch(x, of_x, whole, X_STEP);
        if (FUNCTION >= 14u) {
            a[j] = fetch(p, of_p, whole, P_STEP);
        }
        if (FUNCTION == 18u || FUNCTION == 19u) {
            b[j] = fetch(q, of_p, whole, P_STEP);
        }
        if ((AFFINE & 1u) != 0u) {
            g[j] = fetch(gamma, of_g, whole, 1u);
        }
        if ((AFFINE & 2u) != 0u) {
            h[j] = fetch(beta, of_g, whole, 1u);
        }
    }
    for (uint j = 0u; j < VECTORS; j++) {
        for (uint k = 0u; k < 4u; k++) {
            v[j][k] = apply(v[j][k], a[j][k], b[j][k], g[j][k], h[j][k]);
        }
        uint i = first + 1024u * j;
        if (whole) {
            store4(y, i, v[j]);
        } else {
            for (uint k = 0u; k < 4u; k++) {
                if (i + 256u * k < n) {
                    store(y, i + 256u * k, v[j][k]);
                }
            }
        }
    }
}
