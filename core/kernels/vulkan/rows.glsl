// softmax, layernorm and rmsnorm of contiguous rows that a workgroup can hold: read once, written once.
//
// 32 invocations take a block of up to 1024 elements, each of them one lane of SUM; what an invocation reads waits in shared memory.
shared int best[ROWS];

void put(const uint o, const uint lane, const float v) {
    parts[o + (lane >> 2)][lane & 3u] = floatBitsToUint(v);
}

// SUM of the row's lanes, for every one of its invocations.
float row_sum(const float v) {
    uint lane = gl_LocalInvocationIndex & 31u, group = gl_LocalInvocationIndex >> 5;
    barrier();
    put(group * 8u, lane, v);
    barrier();
    float sum = tree(group * 8u);
    if (BLOCKS > 1u) {
        // The sums of the blocks are lanes once more, and zeros.
        uint block = group % BLOCKS, o = (group - block) * 8u;
        barrier();
        if (lane == 0u) {
            put(o, block, sum);
        } else if (block == 0u && lane >= BLOCKS) {
            put(o, lane, 0.0);
        }
        barrier();
        sum = tree(o);
    }
    return sum;
}

void normalise() {
    uint t = gl_LocalInvocationIndex;
    uint group = t >> 5, slot = group / BLOCKS;
    uint row = gl_WorkGroupID.x * ROWS + slot;
    uint column = (group - slot * BLOCKS) * 1024u + (t & 31u);
    // Elements of this invocation: every 32nd of its block.
    uint mine = row < units && column < n ? min((n - column + 31u) >> 5, STEPS) : 0u;
    uint base = row * n + column;
    if (t < ROWS) {
        best[t] = int(SIGN);
    }
    barrier();

    precise float sum = 0.0;
    float most = f(INFINITY | SIGN);
    for (uint k = 0u; k < mine; k += VECTORS) {
        float v[VECTORS];
        [[unroll]] for (uint j = 0u; j < VECTORS; j++) {
            v[j] = k + j < mine ? load(x, base + 32u * (k + j)) : 0.0;
        }
        [[unroll]] for (uint j = 0u; j < VECTORS; j++) {
            values[(k + j) * SIZE + t] = v[j];
            if (k + j < mine) {
                precise float u = v[j];
                if (FUNCTION == SOFTMAX) {
                    // A NaN that is passed over, or the other zero, changes nothing: the sum is NaN then, and e^±0 is 1.
                    most = u > most ? u : most;
                } else if (FUNCTION == LAYERNORM) {
                    sum = sum + u;
                } else {
                    u = u * u;
                    sum = sum + u;
                }
            }
        }
    }
    precise float middle = 0.0;
    if (FUNCTION == SOFTMAX) {
        atomicMax(best[slot], max_key(most));
        barrier();
        middle = max_of_key(best[slot]);
    } else {
        sum = row_sum(sum);
        sum = divide(sum, value);
        middle = sum;
    }
    if (FUNCTION != RMSNORM) {
        sum = 0.0;
        for (uint k = 0u; k < mine; k++) {
            precise float u = values[k * SIZE + t];
            u = u - middle;
            if (FUNCTION == SOFTMAX) {
                u = function_exp(u);
            }
            values[k * SIZE + t] = u;
            if (FUNCTION == LAYERNORM) {
                u = u * u;
            }
            sum = sum + u;
        }
        sum = row_sum(sum);
    }
    if (FUNCTION == LAYERNORM) {
        sum = divide(sum, value);
    }
    precise float factor = sum + eps;
    if (FUNCTION != SOFTMAX) {
        factor = function_rsqrt(factor);
    }
    // softmax divides numbers from 0 to 1 by one from 1 to n: most need no other check.
    bool quick = FMA_MODE < 2u && EXACT_DIVIDE == 0u && sum < 4294967296.0 && (floatBitsToUint(sum) & FRACTION) != FRACTION;
    float y_sum = reciprocal(sum);
    for (uint k = 0u; k < mine; k++) {
        precise float u = values[k * SIZE + t];
        if (FUNCTION == SOFTMAX) {
            // From 2⁻⁶³ on, and 0.
            u = quick && (u >= 1.0842021724855044e-19 || floatBitsToUint(u) == 0u) ? quotient(u, sum, y_sum) : divide(u, sum);
        } else {
            u = u * factor;
            if ((AFFINE & 1u) != 0u) {
                u = u * load(gamma, column + 32u * k);
            }
            if ((AFFINE & 2u) != 0u) {
                u = u + load(beta, column + 32u * k);
            }
        }
        store(y, base + 32u * k, u);
    }
}
