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

    int key = int(SIGN);
    precise float sum = 0.0;
    for (uint k = 0u; k < mine; k += VECTORS) {
        float v[VECTORS];
        for (uint j = 0u; j < VECTORS; j++) {
            v[j] = k + j < mine ? load(x, base + 32u * (k + j)) : 0.0;
        }
        for (uint j = 0u; j < VECTORS; j++) {
            values[(k + j) * SIZE + t] = v[j];
            if (k + j < mine) {
                precise float u = v[j];
                if (FUNCTION == SOFTMAX_ROWS) {
                    key = max(key, max_key(u));
                } else if (FUNCTION == LAYERNORM_ROWS) {
                    sum = sum + u;
                } else {
                    u = u * u;
                    sum = sum + u;
                }
            }
        }
    }
    precise float middle = 0.0;
    if (FUNCTION == SOFTMAX_ROWS) {
        atomicMax(best[slot], key);
        barrier();
        middle = max_of_key(best[slot]);
    } else {
        sum = row_sum(sum);
        sum = divide(sum, value);
        middle = sum;
    }
    if (FUNCTION != RMSNORM_ROWS) {
        sum = 0.0;
        for (uint k = 0u; k < mine; k++) {
            precise float u = values[k * SIZE + t];
            u = u - middle;
            if (FUNCTION == SOFTMAX_ROWS) {
                u = function_exp(u);
            }
            values[k * SIZE + t] = u;
            if (FUNCTION == LAYERNORM_ROWS) {
                u = u * u;
            }
            sum = sum + u;
        }
        sum = row_sum(sum);
    }
    if (FUNCTION == LAYERNORM_ROWS) {
        sum = divide(sum, value);
    }
    precise float factor = sum + eps;
    if (FUNCTION != SOFTMAX_ROWS) {
        factor = function_rsqrt(factor);
    }
    for (uint k = 0u; k < mine; k++) {
        precise float u = values[k * SIZE + t];
        if (FUNCTION == SOFTMAX_ROWS) {
            u = divide(u, sum);
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
