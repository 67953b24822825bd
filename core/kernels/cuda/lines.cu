// SUM, PROD, MAX, MIN and their indices, of blocks of 1024 along lines, where a longer line's results are reduced again. MIN(x) is
// −MAX(−x). softmax, layernorm and
// rmsnorm of contiguous rows that a block of threads can hold: read once, written once.
#include "glsl.cuh"
#include "memory.cuh"
#include "sums.cuh"
#include "../vulkan/reductions.glsl"

struct Arguments {
    const float *x;
    float *y;
    // Elements of a line or row; elements between neighbours of a line.
    uint n, inner;
    // p: one statistic for each line. q: where an element's index goes, beside the element in y.
    const float *p;
    float *q;
    const float *gamma, *beta;
    const void *outer;
    uint x_row, p_row, rank;
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
    // SUM, of what: 0 x, 1 exp(x − p), 2 (x − p)², 3 x². Of an index, 1: of elements, whose indices are at p.
    uint map;
    // SUM: 0 the sum, 1 divided by `value`, 2 the reciprocal square root of that plus eps. Of an index: 0 the element, and its index
    // to q; 1 the index in one word; 2 in two.
    uint finish;
    // Rows: blocks of a row; rows of a block of threads; elements of a lane; as bits: 1 gamma, 2 beta, 4 a residual at p,
    // 8 the sum with it goes to q, 16 all operands but beta come through shared memory.
    uint blocks, rows, steps, affine;
};

// Elements of a line that a thread has at a time.
const uint WIDE = 4;

// PROD's.
INLINE float tree_of_product(float v) {
#pragma unroll 1
    for (uint step = 16; step > 0; step /= 2) {
        v = v * __shfl_xor_sync(ALL, v, step);
    }
    return v;
}

// What sign bits are flipped by before and after elements are compared: of MAX and ARGMAX by nothing.
INLINE uint flip(const uint function) {
    return function == MIN || function == ARGMIN ? SIGN : 0;
}

INLINE bool of_index(const uint function) {
    return OF_INDEX >> function & 1;
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

// What has been seen of a line.
struct Seen {
    float sum;
    // The greatest element's key, and which it is.
    int best;
    uint found;

    INLINE void take(const int key, const uint index) {
        if (key > best || (key == best && index < found)) {
            best = key;
            found = index;
        }
    }
};

// A lane of SUM, in its order, or the greatest of its elements: those at i, i + 32, i + 64 … below size, `apart` from each other.
INLINE void scan(Seen &seen, const Choice &c, const float *from, const uint i, const uint size, const size_t apart, const float stat) {
#pragma unroll 1
    for (uint first = i; first < size; first += 32 * WIDE) {
        float v[WIDE];
#pragma unroll
        for (uint k = 0; k < WIDE; k++) {
            uint index = first + 32 * k;
            v[k] = index < size ? from[index * apart] : 0.0f;
        }
        if (c.function == PROD) {
#pragma unroll
            for (uint k = 0; k < WIDE; k++) {
                seen.sum = first + 32 * k < size ? seen.sum * v[k] : seen.sum;
            }
            continue;
        }
        if (c.function != SUM) {
            uint sign = flip(c.function);
#pragma unroll
            for (uint k = 0; k < WIDE; k++) {
                uint index = first + 32 * k;
                if (index < size) {
                    seen.take(max_key(of_bits(bits(v[k]) ^ sign)), index);
                }
            }
            continue;
        }
        if (c.map == 1 || c.map == 2) {
#pragma unroll
            for (uint k = 0; k < WIDE; k++) {
                v[k] = v[k] - stat;
            }
        }
        if (c.map == 1) {
#pragma unroll
            for (uint k = 0; k < WIDE; k++) {
                v[k] = function_exp(v[k]);
            }
        } else if (c.map != 0) {
#pragma unroll
            for (uint k = 0; k < WIDE; k++) {
                v[k] = v[k] * v[k];
            }
        }
#pragma unroll
        for (uint k = 0; k < WIDE; k++) {
            seen.sum = first + 32 * k < size ? seen.sum + v[k] : seen.sum;
        }
    }
}

// Stores the greatest of a line's block: `first` is its first element, `at` where that lies if it is of other maxima.
INLINE void store_best(const Arguments &s, const Choice &c, const uint unit, const Seen &seen, const uint first, const size_t at) {
    if (!of_index(c.function) || c.finish == 0) {
        s.y[unit] = canonical(of_bits(bits(max_of_key(seen.best)) ^ flip(c.function)));
    }
    if (of_index(c.function)) {
        uint index = c.map == 1 ? reinterpret_cast<const uint *>(s.p)[at] : first + seen.found;
        if (c.finish == 2) {
            reinterpret_cast<uint2 *>(s.y)[unit] = make_uint2(index, 0);
        } else {
            reinterpret_cast<uint *>(c.finish == 0 ? s.q : s.y)[unit] = index;
        }
    }
}

// A warp takes a block of 1024 along contiguous lines, a lane of it a lane of SUM.
extern "C" __global__ void __launch_bounds__(256) reduce_along(const Arguments s, const Choice c, TABLE) {
    begin();
    uint unit = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (unit >= s.units) {
        return;
    }
    uint line = unit / s.blocks, block = (unit - line * s.blocks) * 1024;
    size_t base = size_t(line) * s.n + block;
    float stat = c.function == SUM && (c.map == 1 || c.map == 2) ? s.p[line] : 0.0f;
    Seen seen = {c.function == PROD ? 1.0f : 0.0f, int(SIGN), 0};
    uint size = min(s.n - block, 1024u);
    if (c.function == SUM && c.map == 0 && size == 1024) {
        // All of it is on its way at once.
        float v[32];
#pragma unroll
        for (uint k = 0; k < 32; k++) {
            v[k] = s.x[base + lane + 32 * k];
        }
#pragma unroll
        for (uint k = 0; k < 32; k++) {
            seen.sum = seen.sum + v[k];
        }
    } else {
        scan(seen, c, s.x + base, lane, size, 1, stat);
    }
    if (c.function == SUM || c.function == PROD) {
        float sum = c.function == SUM ? tree(seen.sum) : tree_of_product(seen.sum);
        if (lane == 0) {
            s.y[unit] = finished(s, c.finish, sum);
        }
        return;
    }
    // The first of the greatest.
#pragma unroll 1
    for (uint step = 16; step > 0; step /= 2) {
        int key = __shfl_xor_sync(ALL, seen.best, step);
        seen.take(key, __shfl_xor_sync(ALL, seen.found, step));
    }
    if (lane == 0) {
        store_best(s, c, unit, seen, block, base + seen.found);
    }
}

// Lines that lie across: a thread takes a lane of SUM in a block of a line, neighbouring threads neighbouring lines.
extern "C" __global__ void __launch_bounds__(1024, 1) reduce_across(const Arguments s, const Choice c, TABLE) {
    begin();
#ifdef __CUDA_ARCH__
    __shared__ float sums[32][33];
    __shared__ int keys[32][33];
    __shared__ uint places[32][33];
#else
    float (&sums)[32][33] = *reinterpret_cast<float (*)[32][33]>(pool);
    int (&keys)[32][33] = *reinterpret_cast<int (*)[32][33]>(pool + 300);
    uint (&places)[32][33] = *reinterpret_cast<uint (*)[32][33]>(pool + 600);
#endif
    uint own = threadIdx.x % 32, lane = threadIdx.x / 32, warps = blockDim.x / 32, unit = blockIdx.x * 32 + own;
    bool there = unit < s.units;
    uint rest = unit / s.inner, column = unit - rest * s.inner, outer = rest / s.blocks, block = (rest - outer * s.blocks) * 1024;
    uint size = there ? min(s.n - block, 1024u) : 0;
    size_t base = (size_t(outer) * s.n + block) * s.inner + column;
    float stat = there && c.function == SUM && (c.map == 1 || c.map == 2) ? s.p[outer * s.inner + column] : 0.0f;
    Seen seen = {c.function == PROD ? 1.0f : 0.0f, int(SIGN), 0};
    if (c.function == SUM && c.map == 0 && size == 1024) {
        // All of it is on its way at once.
        float v[32];
#pragma unroll
        for (uint k = 0; k < 32; k++) {
            v[k] = s.x[base + size_t(lane + 32 * k) * s.inner];
        }
#pragma unroll
        for (uint k = 0; k < 32; k++) {
            seen.sum = seen.sum + v[k];
        }
    } else {
        scan(seen, c, s.x + base, lane, size, s.inner, stat);
    }
    sums[lane][own] = seen.sum;
    keys[lane][own] = seen.best;
    places[lane][own] = seen.found;
    __syncthreads();
    if (c.function == SUM || c.function == PROD) {
        // Now a warp has the lanes of a line. Lanes that no element belongs to have no warp.
#pragma unroll 1
        for (uint line = lane; line < 32; line += warps) {
            float v = own < warps ? sums[own][line] : c.function == PROD ? 1.0f : 0.0f;
            float sum = c.function == SUM ? tree(v) : tree_of_product(v);
            if (own == 0 && blockIdx.x * 32 + line < s.units) {
                s.y[blockIdx.x * 32 + line] = finished(s, c.finish, sum);
            }
        }
        return;
    }
    if (lane > 0 || !there) {
        return;
    }
#pragma unroll 1
    for (uint k = 1; k < warps; k++) {
        seen.take(keys[k][own], places[k][own]);
    }
    store_best(s, c, unit, seen, block, base + size_t(seen.found) * s.inner);
}

// A thread takes a block of 256 of a line. finish 0: its total. 1: the sum up to each element, with the one before the block from p.
extern "C" __global__ void __launch_bounds__(256) cumulate(const Arguments s, const Choice c, TABLE) {
    begin();
    uint unit = blockIdx.x * 256 + threadIdx.x;
    if (unit >= s.units) {
        return;
    }
    uint rest = unit / s.inner, outer = rest / s.blocks, block = rest - outer * s.blocks, size = min(s.n - block * 256, 256u);
    size_t base = (size_t(outer) * s.n + block * 256) * s.inner + (unit - rest * s.inner);
    bool later = c.finish == 1 && block > 0;
    float before = later ? s.p[unit - s.inner] : 0.0f, sum = 0.0f;
#pragma unroll 1
    for (uint i = 0; i < size; i += WIDE) {
        float v[WIDE];
#pragma unroll
        for (uint k = 0; k < WIDE; k++) {
            v[k] = s.x[base + size_t(min(i + k, size - 1)) * s.inner];
        }
#pragma unroll
        for (uint k = 0; k < WIDE; k++) {
            if (i + k < size) {
                sum = sum + v[k];
                if (c.finish == 1) {
                    s.y[base + size_t(i + k) * s.inner] = canonical(later ? before + sum : sum);
                }
            }
        }
    }
    if (c.finish == 0) {
        s.y[unit] = canonical(sum);
    }
}

// The greatest elements of lines, the greatest first, of equals that with the lower index: tiles are sorted, runs of what they give
// merged by twos. An element is its key, which is above 0, and behind it its index with all bits flipped.
//
// rank: elements of a tile, a power of two up to 1024. blocks: tiles or runs of a line. x_row, p_row: elements of a run at x and at y.
// finish: what becomes of a run: 0 it stays one; else it is all of its line: 1 elements, 2 indices, 3 indices in two words.
typedef unsigned long long ulong64;

INLINE void put(const Arguments &s, const uint finish, const uint run, const uint place, const ulong64 element) {
    if (finish == 0) {
        reinterpret_cast<ulong64 *>(s.y)[run * s.p_row + place] = element;
        return;
    }
    uint outer = run / s.inner, index = ~uint(element);
    size_t i = (size_t(outer) * s.p_row + place) * s.inner + (run - outer * s.inner);
    if (finish == 1) {
        s.y[i] = max_of_key(int(uint(element >> 32) ^ SIGN));
    } else if (finish == 2) {
        reinterpret_cast<uint *>(s.y)[i] = index;
    } else {
        reinterpret_cast<ulong64 *>(s.y)[i] = index;
    }
}

// A block of threads sorts 1024 elements: of one tile or of several short ones. What is behind a line's end comes last.
extern "C" __global__ void __launch_bounds__(256) topk_sort(const Arguments s, const Choice c, TABLE) {
    begin();
#ifdef __CUDA_ARCH__
    __shared__ ulong64 slots[1024];
#else
    ulong64 *slots = reinterpret_cast<ulong64 *>(pool);
#endif
    uint t = threadIdx.x, tile = s.rank, first = blockIdx.x * (1024 / tile);
#pragma unroll 1
    for (uint at = t; at < 1024; at += 256) {
        uint unit = first + at / tile, line = unit / s.blocks, i = (unit - line * s.blocks) * tile + at % tile;
        ulong64 element = 0;
        if (unit < s.units && i < s.n) {
            uint outer = line / s.inner;
            float v = s.x[(size_t(outer) * s.n + i) * s.inner + (line - outer * s.inner)];
            element = ulong64(uint(max_key(v)) ^ SIGN) << 32 | ~i;
        }
        slots[at] = element;
    }
#pragma unroll 1
    for (uint size = 2; size <= tile; size *= 2) {
#pragma unroll 1
        for (uint apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
#pragma unroll 1
            for (uint j = t; j < 512; j += 256) {
                uint low = 2 * (j & ~(apart - 1)) | (j & (apart - 1)), high = low + apart;
                ulong64 a = slots[low], b = slots[high];
                // Every other part the other way round, but for whole tiles.
                if ((b > a) == ((low & size & (tile - 1)) == 0)) {
                    slots[low] = b;
                    slots[high] = a;
                }
            }
        }
    }
    __syncthreads();
#pragma unroll 1
    for (uint at = t; at < 1024 / tile * s.p_row; at += 256) {
        uint own = at / s.p_row, place = at - own * s.p_row;
        if (first + own < s.units) {
            put(s, c.finish, first + own, place, slots[own * tile + place]);
        }
    }
}

// A thread takes an element of one of two runs. Its place is its own in its run, and as many behind as come before it in the other.
extern "C" __global__ void __launch_bounds__(256) topk_merge(const Arguments s, const Choice c, TABLE) {
    begin();
    uint e = blockIdx.x * 256 + threadIdx.x;
    if (e >= s.units) {
        return;
    }
    uint length = s.x_row, pairs = (s.blocks + 1) / 2, run = e / (2 * length), r = e - run * 2 * length;
    uint line = run / pairs, pair = run - line * pairs;
    bool second = r >= length, both = 2 * pair + 1 < s.blocks;
    const ulong64 *own = reinterpret_cast<const ulong64 *>(s.x) + (line * s.blocks + 2 * pair) * length;
    ulong64 element = 0;
    // Of a run that is not there, its elements come last.
    uint place = r, low = 0, high = both ? length : 0;
    if (both || !second) {
        element = own[r];
        place = second ? r - length : r;
    }
    const ulong64 *other = second ? own : own + length;
#pragma unroll 1
    while (low < high) {
        uint middle = (low + high) / 2;
        // Of equals, those of the first run.
        if (second ? other[middle] >= element : other[middle] > element) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (place + low < s.p_row) {
        put(s, c.finish, run, place + low, element);
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
template <bool SOFT, bool WHOLE>
INLINE void normalise(const Arguments &s, const Choice &c) {
    // All of a lane's elements, or those that it has at a time.
    const uint MOST = 32, GROUP = WHOLE ? MOST : WIDE;
#ifdef __CUDA_ARCH__
    __shared__ float of_blocks[32];
    extern __shared__ float pool[];
    float *own = pool + threadIdx.x;
#else
    float *of_blocks = reinterpret_cast<float *>(pool), *own = of_blocks + 64 + threadIdx.x;
#endif
    const uint apart = blockDim.x;
    float v[GROUP];
    uint lane = threadIdx.x % 32, warp = threadIdx.x / 32, slot = warp / c.blocks;
    uint row = blockIdx.x * c.rows + slot, column = (warp - slot * c.blocks) * 1024 + lane;
    // Rows behind the last one are the last one again.
    uint mine = WHOLE ? MOST : column < s.n ? min((s.n - column + 31) / 32, MOST) : 0;
    size_t base = size_t(min(row, s.units - 1)) * s.n + column;
    const float *from = s.x + base;
    float *to = s.y + base;
    float sum = 0.0f, middle = 0.0f, most = of_bits(INFINITY | SIGN);
    const float *of_x = from, *of_p = s.p + base, *of_gamma = s.gamma + column;
    uint step = 32;
    if (!SOFT && !WHOLE && (c.affine & 16)) {
        // Few rows wait for memory, so all that is read of them is on its way at once.
        float *p_here = own + apart * c.steps, *gamma_here = p_here + (c.affine & 4 ? apart * c.steps : 0);
#pragma unroll 1
        for (uint k = 0; k < mine; k++) {
            copy_async<1>(own + k * apart, from + 32 * k, 1);
            if (c.affine & 4) {
                copy_async<1>(p_here + k * apart, of_p + 32 * k, 1);
            }
            if (c.affine & 1) {
                copy_async<1>(gamma_here + k * apart, of_gamma + 32 * k, 1);
            }
        }
        end_group();
        arrived<0>();
        of_x = own, of_p = p_here, of_gamma = gamma_here, step = apart;
    }
#define GROUPS _Pragma("unroll 1") for (uint first = 0; first < mine; first += GROUP)
#define EACH _Pragma("unroll") for (uint k = 0; k < GROUP; k++) if (WHOLE || first + k < mine)
    GROUPS {
        EACH {
            v[k] = of_x[step * (first + k)];
        }
        if (!SOFT && (c.affine & 4)) {
            EACH {
                v[k] = v[k] + of_p[step * (first + k)];
            }
            if ((c.affine & 8) && row < s.units) {
                EACH {
                    s.q[base + 32 * (first + k)] = canonical(v[k]);
                }
            }
        }
        EACH {
            float u = v[k];
            if (!WHOLE) {
                own[(first + k) * apart] = u;
            }
            if (SOFT) {
                // A NaN that is passed over, or the other zero, changes nothing: the sum is NaN then, and e^±0 is 1.
                most = u > most ? u : most;
            } else {
                sum = sum + u;
            }
        }
    }
    if (SOFT) {
        int best = max_key(most);
#pragma unroll 1
        for (uint step = 16; step > 0; step /= 2) {
            best = max(best, __shfl_xor_sync(ALL, best, step));
        }
        if (c.blocks > 1) {
            if (lane == 0) {
                of_blocks[warp] = __int_as_float(best);
            }
            __syncthreads();
#pragma unroll 1
            for (uint k = 0; k < c.blocks; k++) {
                best = max(best, __float_as_int(of_blocks[slot * c.blocks + k]));
            }
        }
        middle = max_of_key(best);
    } else if (c.function == LAYERNORM) {
        middle = row_sum(sum, c.blocks, of_blocks) / s.value;
    }
    // rmsnorm's middle is 0, which changes nothing.
    sum = 0.0f;
    GROUPS {
        EACH {
            float u = (WHOLE ? v[k] : own[(first + k) * apart]) - middle;
            u = SOFT ? function_exp(u) : u;
            if (WHOLE) {
                v[k] = u;
            } else {
                own[(first + k) * apart] = u;
            }
            sum = sum + (SOFT ? u : u * u);
        }
    }
    sum = row_sum(sum, c.blocks, of_blocks);
    if (row >= s.units) {
        return;
    }
    if (SOFT) {
        // Numbers from 0 to 1 are divided by one from 1 to n: most need no other check (as in contract.glsl, Markstein).
        bool quick = sum < 4294967296.0f && (bits(sum) & 0x7fffffu) != 0x7fffffu;
        float y_sum = 1.0f / sum;
        uint slow = 0;
        GROUPS {
            EACH {
                // From 2⁻⁶³ on, and 0.
                float u = WHOLE ? v[k] : own[(first + k) * apart], q = u * y_sum;
                bool fits = quick && (u >= 1.0842021724855044e-19f || bits(u) == 0);
                q = fmaf(fmaf(-sum, q, u), y_sum, q);
                q = fmaf(fmaf(-sum, q, u), y_sum, q);
                slow |= uint(!fits) << (first + k);
                to[32 * (first + k)] = canonical(fits ? q : u);
            }
        }
#pragma unroll 1
        for (; slow != 0; slow &= slow - 1) {
            uint k = __ffs(slow) - 1;
            to[32 * k] = canonical(to[32 * k] / sum);
        }
        return;
    }
    float factor = function_rsqrt(sum / s.value + s.eps);
    const float *beta = s.beta + column;
    // One after the other, so that what they read is on its way together.
    GROUPS {
        EACH {
            v[k] = (WHOLE ? v[k] : own[(first + k) * apart]) * factor;
        }
        if (c.affine & 1) {
            EACH {
                v[k] = v[k] * of_gamma[step * (first + k)];
            }
        }
        if (c.affine & 2) {
            EACH {
                v[k] = v[k] + beta[32 * (first + k)];
            }
        }
        EACH {
            to[32 * (first + k)] = canonical(v[k]);
        }
    }
#undef GROUPS
#undef EACH
}

#define ROWS(NAME, SOFT, WHOLE) \
    extern "C" __global__ void __launch_bounds__(512) NAME(const Arguments s, const Choice c, TABLE) { \
        begin(); \
        normalise<SOFT, WHOLE>(s, c); \
    }

ROWS(softmax_rows, true, false)
ROWS(norm_rows, false, false)
ROWS(softmax_whole, true, true)
ROWS(norm_whole, false, true)
