// SUM, MAX and argmax of blocks of 1024 along lines, where a longer line's results are reduced again; softmax, layernorm and
// rmsnorm of contiguous rows that a block of threads can hold: read once, written once.
#include "glsl.cuh"

struct Arguments {
    // p: one statistic for each line. q: where argmax's index goes, beside the maximum in y.
    const float *x, *p;
    float *q, *y;
    const float *gamma, *beta;
    const void *outer;
    // Elements of a line or row; elements between neighbours of a line.
    uint n, inner, x_row, p_row, rank;
    // Blocks of a line, and of all lines. Rows: how many.
    uint blocks, units;
    // n as a number.
    float value;
    float eps;
};

// As specialization constants elsewhere.
struct Choice {
    uint function, size, vectors, parts;
    // Reductions: lines are contiguous, lie at multiples of 16 bytes and may be read by fours; rows: every lane has all its elements.
    uint vector;
    // Reductions: a line's elements lie `inner` apart.
    uint across;
    // SUM, of what: 0 x, 1 exp(x − p), 2 (x − p)², 3 x². argmax, 1: of maxima, whose indices are at p.
    uint map;
    // SUM: 0 the sum, 1 divided by `value`, 2 the reciprocal square root of that plus eps. argmax: 0 the maximum, and its index to
    // q; 1 the index in one word; 2 in two.
    uint finish;
    // Rows: blocks of a row; rows of a block of threads; elements of a lane; which of gamma and beta are there.
    uint blocks, rows, steps, affine;
};

const uint SUM = 0, MAX = 1, ARGMAX = 2, SOFTMAX = 3, LAYERNORM = 4, RMSNORM = 5;
const uint ALL = 0xffffffffu;

// SUM's tree over 32 lanes, for every one of them: both of two lanes add the same two numbers.
INLINE float tree(float v) {
#pragma unroll
    for (uint step = 16; step > 0; step /= 2) {
        v = v + __shfl_xor_sync(ALL, v, step);
    }
    return total(v);
}

INLINE float mapped(const uint map, const float x, const float stat) {
    if (map == 0) {
        return x;
    }
    if (map == 3) {
        return x * x;
    }
    float u = x - stat;
    return map == 1 ? function_exp(u) : u * u;
}

INLINE float finished(const Arguments &s, const uint finish, float sum) {
    if (finish != 0) {
        sum = sum / s.value;
    }
    if (finish == 2) {
        sum = function_rsqrt(sum + s.eps);
    }
    return canonical(sum);
}

// A warp takes a block of 1024 along contiguous lines; a lane takes four neighbouring lanes' elements by turns, so that they are
// read in vectors, and lanes exchange them: lane l of SUM has the elements l, l + 32, l + 64 …
extern "C" __global__ void __launch_bounds__(256) reduce_along(const Arguments s, const Choice c, TABLE) {
    uint unit = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (unit >= s.units) {
        return;
    }
    uint line = unit / s.blocks, block = (unit - line * s.blocks) * 1024, size = min(s.n - block, 1024u);
    const float *from = s.x + size_t(line) * s.n + block;
    float stat = c.function == SUM && (c.map == 1 || c.map == 2) ? s.p[line] : 0.0f;
    float sum = 0.0f;
    int best = int(SIGN);
    uint found = 0;
#pragma unroll 4
    for (uint i = lane; i < size; i += 32) {
        float x = from[i];
        if (c.function == SUM) {
            sum = sum + mapped(c.map, x, stat);
        } else {
            int key = max_key(x);
            if (key > best) {
                best = key;
                found = i;
            }
        }
    }
    if (c.function == SUM) {
        sum = tree(sum);
        if (lane == 0) {
            s.y[unit] = finished(s, c.finish, sum);
        }
        return;
    }
    // The first of the greatest.
#pragma unroll
    for (uint step = 16; step > 0; step /= 2) {
        int key = __shfl_xor_sync(ALL, best, step);
        uint index = __shfl_xor_sync(ALL, found, step);
        if (key > best || (key == best && index < found)) {
            best = key;
            found = index;
        }
    }
    if (lane > 0) {
        return;
    }
    if (c.function == MAX || c.finish == 0) {
        s.y[unit] = canonical(max_of_key(best));
    }
    if (c.function == ARGMAX) {
        uint index = c.map == 1 ? reinterpret_cast<const uint *>(s.p)[size_t(line) * s.n + block + found] : block + found;
        if (c.finish == 0) {
            reinterpret_cast<uint *>(s.q)[unit] = index;
        } else if (c.finish == 1) {
            reinterpret_cast<uint *>(s.y)[unit] = index;
        } else {
            reinterpret_cast<uint2 *>(s.y)[unit] = make_uint2(index, 0);
        }
    }
}

// Lines that lie across: a thread takes a block's lane of SUM, neighbouring threads neighbouring lines. 32 lines, 32 lanes of
// them in four turns of eight.
extern "C" __global__ void __launch_bounds__(256) reduce_across(const Arguments s, const Choice c, TABLE) {
#ifdef __CUDA_ARCH__
    __shared__ float sums[32][33];
    __shared__ int keys[8][33];
    __shared__ uint places[8][33];
#else
    float (&sums)[32][33] = *reinterpret_cast<float (*)[32][33]>(pool);
    int (&keys)[8][33] = *reinterpret_cast<int (*)[8][33]>(pool + 1000);
    uint (&places)[8][33] = *reinterpret_cast<uint (*)[8][33]>(pool + 2000);
#endif
    uint t = threadIdx.x, own = t % 32, unit = blockIdx.x * 32 + own;
    bool there = unit < s.units;
    uint rest = unit / s.inner, column = unit - rest * s.inner, outer = rest / s.blocks, block = (rest - outer * s.blocks) * 1024;
    uint size = there ? min(s.n - block, 1024u) : 0;
    const float *from = s.x + (size_t(outer) * s.n + block) * s.inner + column;
    float stat = there && c.function == SUM && (c.map == 1 || c.map == 2) ? s.p[outer * s.inner + column] : 0.0f;
    int best = int(SIGN);
    uint found = 0;
#pragma unroll 1
    for (uint lane = t / 32; lane < 32; lane += 8) {
        float sum = 0.0f;
#pragma unroll 4
        for (uint i = lane; i < size; i += 32) {
            float x = from[size_t(i) * s.inner];
            if (c.function == SUM) {
                sum = sum + mapped(c.map, x, stat);
            } else {
                int key = max_key(x);
                if (key > best || (key == best && i < found)) {
                    best = key;
                    found = i;
                }
            }
        }
        sums[lane][own] = sum;
    }
    keys[t / 32][own] = best;
    places[t / 32][own] = found;
    __syncthreads();
    if (c.function == SUM) {
        // A warp adds up the lanes of four lines.
        for (uint k = 0; k < 4; k++) {
            uint line = t / 32 * 4 + k;
            float sum = tree(sums[own][line]);
            if (own == 0 && blockIdx.x * 32 + line < s.units) {
                s.y[blockIdx.x * 32 + line] = finished(s, c.finish, sum);
            }
        }
        return;
    }
    if (t >= 32 || !there) {
        return;
    }
    for (uint k = 1; k < 8; k++) {
        int key = keys[k][own];
        uint index = places[k][own];
        if (key > best || (key == best && index < found)) {
            best = key;
            found = index;
        }
    }
    if (c.function == MAX || c.finish == 0) {
        s.y[unit] = canonical(max_of_key(best));
    }
    if (c.function == ARGMAX) {
        const uint *indices = reinterpret_cast<const uint *>(s.p);
        uint index = c.map == 1 ? indices[(size_t(outer) * s.n + block + found) * s.inner + column] : block + found;
        if (c.finish == 0) {
            reinterpret_cast<uint *>(s.q)[unit] = index;
        } else if (c.finish == 1) {
            reinterpret_cast<uint *>(s.y)[unit] = index;
        } else {
            reinterpret_cast<uint2 *>(s.y)[unit] = make_uint2(index, 0);
        }
    }
}

// SUM of the row's lanes, for every one of its threads.
INLINE float row_sum(const float v, const uint blocks, float *of_blocks) {
    float sum = tree(v);
    if (blocks == 1) {
        return sum;
    }
    // The sums of the blocks are lanes once more, and zeros.
    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();
    if (lane == 0) {
        of_blocks[warp] = sum;
    }
    __syncthreads();
    return tree(lane < blocks ? of_blocks[warp / blocks * blocks + lane] : 0.0f);
}

// A warp takes a block of 1024 of a row: WHOLE ones in registers, others in shared memory, so that loops over it are short.
template <uint FUNCTION, bool WHOLE>
INLINE void normalise(const Arguments &s, const Choice &c) {
    const uint MOST = 32, UNROLL = WHOLE ? 32 : 4;
#ifdef __CUDA_ARCH__
    __shared__ float of_blocks[32];
    extern __shared__ float pool[];
    float *own = pool + threadIdx.x;
    const uint apart = blockDim.x;
#else
    float *of_blocks = reinterpret_cast<float *>(pool), *own = of_blocks + 64 + threadIdx.x;
    const uint apart = blockDim.x;
#endif
    float v[WHOLE ? MOST : 1];
#define AT(k) (*(WHOLE ? &v[WHOLE ? (k) : 0] : own + (k) * apart))
    uint lane = threadIdx.x % 32, warp = threadIdx.x / 32, slot = warp / c.blocks;
    uint row = blockIdx.x * c.rows + slot, column = (warp - slot * c.blocks) * 1024 + lane;
    // Rows behind the last one are the last one again.
    uint mine = WHOLE ? MOST : column < s.n ? min((s.n - column + 31) / 32, MOST) : 0;
    size_t base = size_t(min(row, s.units - 1)) * s.n + column;
    const float *from = s.x + base;
    float *to = s.y + base;
    float sum = 0.0f, middle = 0.0f, most = of_bits(INFINITY | SIGN);
#pragma unroll UNROLL
    for (uint k = 0; k < mine; k++) {
        AT(k) = from[32 * k];
    }
#pragma unroll UNROLL
    for (uint k = 0; k < mine; k++) {
        float u = AT(k);
        if (FUNCTION == SOFTMAX) {
            // A NaN that is passed over, or the other zero, changes nothing: the sum is NaN then, and e^±0 is 1.
            most = u > most ? u : most;
        } else {
            sum = sum + (FUNCTION == LAYERNORM ? u : u * u);
        }
    }
    if (FUNCTION == SOFTMAX) {
        int best = max_key(most);
#pragma unroll
        for (uint step = 16; step > 0; step /= 2) {
            best = max(best, __shfl_xor_sync(ALL, best, step));
        }
        if (c.blocks > 1) {
            if (lane == 0) {
                of_blocks[warp] = __int_as_float(best);
            }
            __syncthreads();
            for (uint k = 0; k < c.blocks; k++) {
                best = max(best, __float_as_int(of_blocks[slot * c.blocks + k]));
            }
        }
        middle = max_of_key(best);
    } else {
        sum = row_sum(sum, c.blocks, of_blocks) / s.value;
        middle = sum;
    }
    if (FUNCTION != RMSNORM) {
        sum = 0.0f;
#pragma unroll UNROLL
        for (uint k = 0; k < mine; k++) {
            float u = AT(k) - middle;
            u = FUNCTION == SOFTMAX ? function_exp(u) : u;
            AT(k) = u;
            sum = sum + (FUNCTION == SOFTMAX ? u : u * u);
        }
        sum = row_sum(sum, c.blocks, of_blocks);
        if (FUNCTION == LAYERNORM) {
            sum = sum / s.value;
        }
    }
    if (row >= s.units) {
        return;
    }
    if (FUNCTION == SOFTMAX) {
        // Numbers from 0 to 1 are divided by one from 1 to n: most need no other check (as in contract.glsl, Markstein).
        bool quick = sum < 4294967296.0f && (bits(sum) & 0x7fffffu) != 0x7fffffu;
        float y_sum = 1.0f / sum;
        uint slow = 0;
#pragma unroll UNROLL
        for (uint k = 0; k < mine; k++) {
            // From 2⁻⁶³ on, and 0.
            float u = AT(k), q = u * y_sum;
            bool fits = quick && (u >= 1.0842021724855044e-19f || bits(u) == 0);
            q = fmaf(fmaf(-sum, q, u), y_sum, q);
            q = fmaf(fmaf(-sum, q, u), y_sum, q);
            slow |= uint(!fits) << k;
            to[32 * k] = canonical(fits ? q : u);
        }
        for (; slow != 0; slow &= slow - 1) {
            uint k = __ffs(slow) - 1;
            to[32 * k] = canonical(to[32 * k] / sum);
        }
        return;
    }
    float factor = function_rsqrt(sum + s.eps);
#pragma unroll UNROLL
    for (uint k = 0; k < mine; k++) {
        float u = AT(k) * factor;
        if (c.affine & 1) {
            u = u * s.gamma[column + 32 * k];
        }
        if (c.affine & 2) {
            u = u + s.beta[column + 32 * k];
        }
        to[32 * k] = canonical(u);
    }
#undef AT
}

#define ROWS(NAME, FUNCTION, WHOLE) \
    extern "C" __global__ void __launch_bounds__(512) NAME(const Arguments s, const Choice c, TABLE) { \
        normalise<FUNCTION, WHOLE>(s, c); \
    }

ROWS(softmax_rows, SOFTMAX, false)
ROWS(layernorm_rows, LAYERNORM, false)
ROWS(rmsnorm_rows, RMSNORM, false)
#ifndef PORTABLE
ROWS(softmax_whole, SOFTMAX, true)
ROWS(layernorm_whole, LAYERNORM, true)
ROWS(rmsnorm_whole, RMSNORM, true)
#endif
