// softmax, layernorm and rmsnorm of contiguous rows that fit in a workgroup: each row is read once and written once.
//
// 32 invocations process a block of up to 1024 elements; each invocation is one lane of SUM. The elements stay in
// registers, so loops over them are unrolled.
shared int best[ROWS];

void put(const uint o, const uint lane, const float v) {
    parts[o + (lane >> 2)][lane & 3u] = floatBitsToUint(v);
}

// Returns SUM of the row's lanes, to each of the row's invocations.
float row_sum(const float v) {
    uint lane = gl_LocalInvocationIndex & 31u, group = gl_LocalInvocationIndex >> 5;
    barrier();
    put(group * 8u, lane, v);
    barrier();
    float sum = tree(group * 8u);
    if (BLOCKS > 1u) {
        // The sums of the blocks become lanes themselves, padded with zeros.
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

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Lane {
    float v[];
};

void normalise() {
    uint t = gl_LocalInvocationIndex;
    uint group = t >> 5, slot = group / BLOCKS;
    uint row = gl_WorkGroupID.x * ROWS + slot;
    uint column = (group - slot * BLOCKS) * 1024u + (t & 31u);
    // This invocation's elements: every 32nd of its block. Rows behind the last one repeat it.
    uint mine = column < n ? min((n - column + 31u) >> 5, STEPS) : 0u;
    uint base = min(row, units - 1u) * n + column;
    Lane from = Lane(at(x, base, 2u)), to = Lane(at(y, base, 2u));
    if (t < ROWS) {
        best[t] = int(SIGN);
    }
    barrier();

    float v[STEPS];
    [[unroll]] for (uint k = 0u; k < STEPS; k++) {
        v[k] = 0.0;
        if (WHOLE || k < mine) {
            v[k] = from.v[32u * k];
        }
    }
    if ((AFFINE & 4u) != 0u) {
        Lane residual = Lane(at(p, base, 2u));
        [[unroll]] for (uint k = 0u; k < STEPS; k++) {
            if (WHOLE || k < mine) {
                precise float sum_ = v[k] + residual.v[32u * k];
                v[k] = sum_;
            }
        }
        if ((AFFINE & 8u) != 0u && row < units) {
            Lane stored = Lane(at(q, base, 2u));
            [[unroll]] for (uint k = 0u; k < STEPS; k++) {
                if (WHOLE || k < mine) {
                    stored.v[32u * k] = canonical(v[k]);
                }
            }
        }
    }
    precise float sum = 0.0;
    float most = f(INFINITY | SIGN);
    [[unroll]] for (uint k = 0u; k < STEPS; k++) {
        precise float u = v[k];
        if (FUNCTION == SOFTMAX) {
            // Skipping a NaN or taking the other zero changes no result: with a NaN the sum is NaN, and e^±0 is 1.
            most = u > most && (WHOLE || k < mine) ? u : most;
        } else {
            u = FUNCTION == LAYERNORM ? u : u * u;
            precise float next = sum + u;
            sum = WHOLE || k < mine ? next : sum;
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
        [[unroll]] for (uint k = 0u; k < STEPS; k++) {
            precise float u = v[k];
            u = u - middle;
            if (FUNCTION == SOFTMAX) {
                u = function_exp(u);
            }
            v[k] = u;
            if (FUNCTION == LAYERNORM) {
                u = u * u;
            }
            precise float next = sum + u;
            sum = WHOLE || k < mine ? next : sum;
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
    if (row >= units) {
        return;
    }
    if (FUNCTION == SOFTMAX) {
        // Numbers from 0 to 1 are divided by a number from 1 to n, so most quotients need no other check.
        bool quick = FMA_MODE < 2u && EXACT_DIVIDE == 0u && sum < 4294967296.0 && (floatBitsToUint(sum) & FRACTION) != FRACTION;
        float y_sum = reciprocal(sum);
        uint slow = 0u;
        [[unroll]] for (uint k = 0u; k < STEPS; k++) {
            // Numbers from 2⁻⁶³ up, and 0.
            bool fits = quick && (v[k] >= 1.0842021724855044e-19 || floatBitsToUint(v[k]) == 0u);
            float u = fits ? quotient(v[k], sum, y_sum) : v[k];
            if (WHOLE || k < mine) {
                slow |= uint(!fits) << k;
                to.v[32u * k] = canonical(u);
            }
        }
        for (; slow != 0u; slow &= slow - 1u) {
            uint k = findLSB(slow);
            to.v[32u * k] = canonical(divide(to.v[32u * k], sum));
        }
        return;
    }
    Lane gains = Lane(at(gamma, column, 2u)), shifts = Lane(at(beta, column, 2u));
    [[unroll]] for (uint k = 0u; k < STEPS; k++) {
        if (WHOLE || k < mine) {
            precise float u = v[k] * factor;
            if ((AFFINE & 1u) != 0u) {
                u = u * gains.v[32u * k];
            }
            if ((AFFINE & 2u) != 0u) {
                u = u + shifts.v[32u * k];
            }
            to.v[32u * k] = canonical(u);
        }
    }
}
