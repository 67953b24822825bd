// Products of rows with matrices of quantised blocks, and the conversion of blocks to f32. kernels/vulkan/quantized.comp describes the
// steps.
#include "glsl.cuh"
#include "memory.cuh"
#include "bytes.cuh"
#include "sums.cuh"
#include "../vulkan/half.glsl"

#ifdef __CUDA_ARCH__
extern __shared__ uint4 pieces[];
#else
#define pieces (reinterpret_cast<uint4 *>(pool))
#endif
#define WORDS (reinterpret_cast<uint *>(pieces))

#define RAW(i) WORDS[i]
#define UNROLL _Pragma("unroll")
#include "../vulkan/quantized.glsl"

// The push constants, as lowering writes them.
struct Product {
    // Rows of x, or blocks.
    const void *from;
    // The cut rows: integers, and the scale and the sum of each unit.
    uint4 *q;
    uint2 *q_numbers;
    // The unpacked blocks: elements as bytes, and for each unit d, m, the two scales as halves, the minimum.
    uint4 *w, *w_numbers;
    float *y;
    // The result's rows and columns, and the units of a row.
    uint m, n, units;
    // Steps along K: of 128 units with few rows, of 2 in tiles. They are never divided among launches here.
    uint begin, end, steps;
    // The matrix's rows in scratch, and the first one's number.
    uint rows, first;
    // Elements of x; units; blocks of threads, which share the rows of the matrix.
    uint count;
    // What x is made of. CUT: rows are cut already, or x is there. If not, the rows are stored at `made`, if it is there.
    // With few rows: `q` has the f32 that a function is applied to, and `q_numbers` what they are multiplied by.
    // To cut: these are at `from` and `w`, with `rows` and `first` elements from one row to the next; `y` and `w_numbers` are where
    // copies of them go, if anywhere.
    // A product of few rows: `w` has rows that are added to the result, and `w_numbers` where the sum goes.
    uint origin;
    float eps;
    float *made;
};

// The origins of x.
const uint CUT = 0, ROWS = 1, NORM = 2, SILU_GATE = 3, GELU_GATE = 4;

const uint THREADS = 128;
// Shared memory, in words: blocks' bytes come first.
const uint RAWS = 1100, PITCH = 144;

INLINE void take(float *to, const float *from) {
    float4 v = *reinterpret_cast<const float4 *>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

// Four neighbouring elements of x as integers, and what their unit's threads know of it: its scale and its sum.
struct Four {
    uint word;
    float scale;
    int sum;
};

// Cuts 512 elements, of which each thread has four. `maxima` has room for a word of each warp.
INLINE Four cut_four(const float (&x)[4], const uint format, uint *maxima) {
    uint thread = threadIdx.x, most = 0;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        most = max(most, bits(x[i]) & MAGNITUDE);
    }
#pragma unroll
    for (uint step = 4; step > 0; step /= 2) {
        most = max(most, __shfl_xor_sync(ALL, most, step));
    }
    if (units_of(format) == 8) {
#pragma unroll
        for (uint step = 16; step >= 8; step /= 2) {
            most = max(most, __shfl_xor_sync(ALL, most, step));
        }
        // A block of 256 is two warps'.
        __syncthreads();
        maxima[thread / 32] = most;
        __syncthreads();
        most = max(most, maxima[thread / 32 ^ 1]);
    }
    bool finite = most < INFINITY, counts = finite && most >= LEAST_BLOCK;
    float factor = counts ? 127.0f / of_bits(most) : 0.0f;
    Four four = {0, counts ? of_bits(most) / 127.0f : finite ? 0.0f : of_bits(NAN), 0};
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        int integer = counts ? __float2int_rn(x[i] * factor) : 0;
        four.word |= (uint(integer) & 255) << 8 * i;
        four.sum += integer;
    }
#pragma unroll
    for (uint step = 4; step > 0; step /= 2) {
        four.sum += __shfl_xor_sync(ALL, four.sum, step);
    }
    return four;
}

// Returns rmsnorm's factor of a row: lanes take every 32nd element of a block of 1024, warps the blocks.
INLINE float norm_factor(const float *x, const uint n, const float eps, uint *sums) {
    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = (n + 1023) / 1024, first = warp * 1024 + lane;
    float sum = 0.0f;
    if (warp < blocks) {
        // All are on their way at once. Zeros behind the last one don't change the sum.
        float u[32];
#pragma unroll
        for (uint i = 0; i < 32; i++) {
            u[i] = first + 32 * i < n ? x[first + 32 * i] : 0.0f;
        }
#pragma unroll
        for (uint i = 0; i < 32; i++) {
            sum = sum + u[i] * u[i];
        }
    }
    sum = tree(sum);
    // No thread reads any longer what was there.
    __syncthreads();
    if (lane == 0) {
        sums[warp] = bits(sum);
    }
    __syncthreads();
    // The sums of several blocks are lanes once more, and zeros.
    sum = of_bits(sums[0]);
    if (blocks > 1) {
        sum = tree(lane < blocks ? of_bits(sums[lane]) : 0.0f);
    }
    return function_rsqrt(sum / float(n) + eps);
}

// SILU, or GELU with tanh, as `activate` computes them.
INLINE float gate(const float x, const bool gelu) {
    float t = gelu ? x * ((x * x) * 0.071354814f + 1.5957692f) : x;
    return canonical(x * function_sigmoid(t));
}

// What a row of x is made of, and where it and copies of its sources are stored, if anywhere.
struct Sources {
    const float *x, *by;
    float *made, *of_x, *of_by;
};

INLINE void store(float *to, const uint i, const float (&x)[4]) {
    if (to) {
        *reinterpret_cast<float4 *>(to + i) = make_float4(x[0], x[1], x[2], x[3]);
    }
}

// Four elements of what a row of x is made of.
INLINE void take_sources(float (&x)[4], float (&by)[4], const Sources &of, const uint i, const uint k) {
    x[0] = x[1] = x[2] = x[3] = 0.0f;
    if (i < k) {
        take(x, of.x + i);
        if (of.by) {
            take(by, of.by + i);
        }
    }
}

// Makes a row of x and cuts it.
INLINE void make_row(const Product &p, const Sources &of, const uint format, uint *words, uint2 *numbers) {
    const uint k = 32 * p.units;
    float next[4], next_by[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    take_sources(next, next_by, of, 4 * threadIdx.x, k);
    float factor = p.origin == NORM ? norm_factor(of.x, k, p.eps, WORDS) : 1.0f;
#pragma unroll 1
    for (uint begin = 0; begin < k; begin += 4 * THREADS) {
        uint i = begin + 4 * threadIdx.x;
        float x[4], by[4];
#pragma unroll
        for (uint e = 0; e < 4; e++) {
            x[e] = next[e];
            by[e] = next_by[e];
        }
        // The next ones travel meanwhile.
        take_sources(next, next_by, of, i + 4 * THREADS, k);
        if (i < k) {
            store(of.of_x, i, x);
            store(of.of_by, i, by);
            if (p.origin != ROWS) {
                // One after the other, four functions would wait for each step of each other.
#pragma unroll
                for (uint e = 0; e < 4; e++) {
                    float v = p.origin == NORM ? x[e] * factor : gate(x[e], p.origin == GELU_GATE);
                    x[e] = canonical(v * by[e]);
                }
                store(of.made, i, x);
            }
        }
        Four four = cut_four(x, format, WORDS);
        if (i < k) {
            words[i / 4] = four.word;
            if (threadIdx.x % 8 == 0) {
                numbers[i / 32] = make_uint2(bits(four.scale), uint(four.sum));
            }
        }
    }
}

// Makes rows of x and cuts them, to shared memory: `words` with the integers, then the numbers of units. Every block of threads makes
// the rows that it needs, because that takes less time than a kernel of its own.
INLINE void make_rows(const Product &p, const uint format, const uint first_x, const uint rows, uint *words) {
    uint2 *numbers = reinterpret_cast<uint2 *>(words + rows * 8 * p.units);
#pragma unroll 1
    for (uint r = 0; r < rows; r++) {
        const size_t first = size_t(first_x + r) * 32 * p.units;
        float *made = blockIdx.x == 0 && p.made ? p.made + first : nullptr;
        const float *by = reinterpret_cast<const float *>(p.q_numbers);
        by = by && p.origin != NORM ? by + first : by;
        Sources of = {reinterpret_cast<const float *>(p.q) + first, by, made, nullptr, nullptr};
        make_row(p, of, format, words + r * 8 * p.units, numbers + r * p.units);
    }
    __syncthreads();
}

// Cuts 512 elements of x, or makes a row of x and cuts it.
extern "C" __global__ void __launch_bounds__(128) quantized_cut(const Product p, const uint format, const uint, TABLE) {
    begin();
    uint thread = threadIdx.x;
    if (p.origin != CUT) {
        uint row = blockIdx.x, units = row * p.units;
        size_t first = 32 * size_t(units);
        const float *x = static_cast<const float *>(p.from) + size_t(row) * p.rows;
        const float *by = reinterpret_cast<const float *>(p.w) + size_t(row) * p.first;
        float *of_by = reinterpret_cast<float *>(p.w_numbers);
        Sources of = {x, by, p.made + first, p.y ? p.y + first : nullptr, of_by ? of_by + first : nullptr};
        make_row(p, of, format, reinterpret_cast<uint *>(p.q) + 8 * size_t(units), p.q_numbers + units);
        return;
    }
    uint first = blockIdx.x * 512 + thread * 4;
    bool there = first < p.count;
    float x[4];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        x[i] = there ? static_cast<const float *>(p.from)[first + i] : 0.0f;
    }
    Four four = cut_four(x, format, WORDS);
    if (there) {
        reinterpret_cast<uint *>(p.q)[first / 4] = four.word;
        if (thread % 8 == 0) {
            p.q_numbers[first / 32] = make_uint2(bits(four.scale), uint(four.sum));
        }
    }
}

// The pieces of 16 bytes that a thread copies to shared memory: up to three, as 128 units have at most 4,352 bytes, anywhere.
struct Pieces {
    uint4 v[3];
    // The pieces of all threads, and where the first block begins in shared memory.
    uint count, offset;
};

// Reads the bytes of whole blocks.
INLINE Pieces fetch_blocks(const void *from, const uint start, const uint bytes) {
    Pieces of;
    size_t at = reinterpret_cast<size_t>(from) + start;
    of.offset = at % 16;
    of.count = bytes == 0 ? 0 : (of.offset + bytes + 15) / 16;
    const uint4 *first = reinterpret_cast<const uint4 *>(at - of.offset);
#pragma unroll
    for (uint i = 0; i < 3; i++) {
        uint piece = threadIdx.x + THREADS * i;
        of.v[i] = piece < of.count ? first[piece] : make_uint4(0, 0, 0, 0);
    }
    return of;
}

// Brings to the L2 cache what `fetch_blocks` reads.
INLINE void announce_blocks(const void *from, const uint start, const uint bytes) {
#if __CUDA_ARCH__ >= 900
    // They are less than a line for each thread.
    const uint at = 128 * threadIdx.x;
    if (at < bytes) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const char *>(from) + start + at));
    }
#endif
}

INLINE void put(const Pieces &of) {
#pragma unroll
    for (uint i = 0; i < 3; i++) {
        uint piece = threadIdx.x + THREADS * i;
        if (piece < of.count) {
            pieces[piece] = of.v[i];
        }
    }
}

// Where a unit's number is in shared memory.
INLINE uint place(const uint row, const uint kind, const uint unit) {
    return RAWS + (row * 4 + kind) * PITCH + unit + unit / 8;
}

// Several whole rows of the matrix, or 128 units of one at a time. While they are multiplied, the next ones travel to registers.
extern "C" __global__ void __launch_bounds__(128) quantized_few(const Product p, const uint format, const uint most_x, TABLE) {
    uint thread = threadIdx.x, span = max(min(p.units, THREADS), 1u), whole = THREADS / span;
    uint first_x = blockIdx.y * most_x, rows_x = min(p.m - first_x, most_x);
    uint groups = (p.n + whole - 1) / whole, of_block = units_of(format), bytes = bytes_of(format);
    uint first_row = blockIdx.x * whole, first_bytes = first_row * p.units / of_block * bytes;
    announce_blocks(p.from, first_bytes, min(p.n - first_row, whole) * span / of_block * bytes);
    begin();
    bool minima = has_minima(format);
    uint next_group = blockIdx.x, next_step = 0, group = groups, step = 0;
    Pieces next;
    float held = 0.0f;
    const uint4 *q = p.q + 2 * size_t(first_x) * p.units;
    const uint2 *q_numbers = p.q_numbers + size_t(first_x) * p.units;
    // One round more than there are steps: the first only fetches.
#pragma unroll 1
    do {
        bool first_round = group == groups;
        if (!first_round) {
            put(next);
        }
        uint offset = next.offset, row = group * whole, rows = min(p.n - row, whole), first_unit = step * THREADS;
        uint here = min(p.units - first_unit, span);
        group = next_group;
        step = next_step;
        __syncthreads();
        if (next_group < groups) {
            uint from = next_group * whole * p.units + next_step * THREADS;
            uint count = min(p.n - next_group * whole, whole) * min(p.units - next_step * THREADS, span);
            next = fetch_blocks(p.from, from / of_block * bytes, count / of_block * bytes);
            next_step++;
            if (next_step == p.steps) {
                next_step = 0;
                next_group += p.count;
            }
        }
        if (first_round) {
            // Rows are made while the blocks travel.
            if (p.origin != CUT) {
                uint *words = WORDS + RAWS + most_x * 4 * PITCH;
                make_rows(p, format, first_x, rows_x, words);
                q = reinterpret_cast<const uint4 *>(words);
                q_numbers = reinterpret_cast<const uint2 *>(words + rows_x * 8 * p.units);
            }
            continue;
        }
        if (thread < rows * here) {
            Unpacked unit = unpack(format, offset + thread / of_block * bytes, thread % of_block);
            uint of_x = first_unit + thread % span;
            // Rows of x are on their way at once.
#pragma unroll 4
            for (uint r = 0; r < rows_x; r++, of_x += p.units) {
                uint4 low = q[2 * of_x], high = q[2 * of_x + 1];
                uint2 numbers = q_numbers[of_x];
                int of_first = dot4(unit.w[3], low.w, dot4(unit.w[2], low.z, dot4(unit.w[1], low.y, dot4(unit.w[0], low.x, 0))));
                int of_last = dot4(unit.w[7], high.w, dot4(unit.w[6], high.z, dot4(unit.w[5], high.y, dot4(unit.w[4], high.x, 0))));
                uint *to = WORDS + place(r, 0, thread);
                to[0] = uint(unit.first * of_first + unit.last * of_last);
                to[PITCH] = bits(unit.d * of_bits(numbers.x));
                if (minima) {
                    to[2 * PITCH] = uint(unit.minimum * int(numbers.y));
                    to[3 * PITCH] = bits(unit.m * of_bits(numbers.x));
                }
            }
        }
        __syncthreads();
        // A chain for each chunk of 256. Its total replaces its first sum.
        uint chunks = (here + 7) / 8;
#pragma unroll 1
        for (uint task = thread; task < rows_x * rows * chunks; task += THREADS) {
            uint chunk = task % chunks, line = task / chunks, r = line / rows;
            uint first = line % rows * span + 8 * chunk, there = min(here - 8 * chunk, 8u);
            float p_ = 0.0f;
            int sum = 0, of_minima = 0;
            // All are on their way at once.
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                if (i < there) {
                    const uint *at = WORDS + place(r, 0, first + i);
                    sum += int(at[0]);
                    of_minima += minima ? int(at[2 * PITCH]) : 0;
                    if (of_block == 1 || i + 1 == there) {
                        p_ = fmaz(float(sum), of_bits(at[PITCH]), p_);
                        if (minima) {
                            p_ = fmaz(float(of_minima), of_bits(at[3 * PITCH]), p_);
                        }
                        sum = of_minima = 0;
                    }
                }
            }
            WORDS[place(r, 0, first)] = bits(p_);
        }
        __syncthreads();
        // With several steps there is one row of the matrix, and each thread has at most one total.
#pragma unroll 1
        for (uint task = thread; task < rows_x * rows; task += THREADS) {
            uint r = task / rows, line = task % rows;
            held = first_unit == 0 ? 0.0f : held;
#pragma unroll 1
            for (uint chunk = 0; chunk < chunks; chunk++) {
                held = fmaz(of_bits(WORDS[place(r, 0, line * span + 8 * chunk)]), 1.0f, held);
            }
            if (first_unit + here == p.units) {
                size_t at = size_t(first_x + r) * p.n + row + line;
                float y = total(held);
                p.y[at] = y;
                if (p.w) {
                    reinterpret_cast<float *>(p.w_numbers)[at] = canonical(y + reinterpret_cast<const float *>(p.w)[at]);
                }
            }
        }
    } while (group < groups);
}

// Unpacks 128 units of a matrix, or converts them to f32.
extern "C" __global__ void __launch_bounds__(128) quantized_convert(const Product p, const uint format, const uint values, TABLE) {
    begin();
    uint thread = threadIdx.x, of_block = units_of(format), bytes = bytes_of(format), first = blockIdx.x * THREADS;
    uint here = min(p.count - first, THREADS);
    Pieces of = fetch_blocks(p.from, first / of_block * bytes, here / of_block * bytes);
    put(of);
    __syncthreads();
    if (thread < here) {
        Unpacked unit = unpack(format, of.offset + thread / of_block * bytes, thread % of_block);
        if (values) {
            uint *to = WORDS + RAWS + 9 * thread;
#pragma unroll
            for (uint k = 0; k < 8; k++) {
                to[k] = unit.w[k];
            }
            to[8] = bits(unit.m * float(unit.minimum));
            WORDS[RAWS + 9 * THREADS + thread] = bits(unit.d * float(unit.first));
            WORDS[RAWS + 10 * THREADS + thread] = bits(unit.d * float(unit.last));
        } else {
            size_t to = first + thread;
            p.w[2 * to] = make_uint4(unit.w[0], unit.w[1], unit.w[2], unit.w[3]);
            p.w[2 * to + 1] = make_uint4(unit.w[4], unit.w[5], unit.w[6], unit.w[7]);
            uint scales = (uint(unit.first) & 0xffff) | uint(unit.last) << 16;
            p.w_numbers[to] = make_uint4(bits(unit.d), has_minima(format) ? bits(unit.m) : 0, scales, uint(unit.minimum));
        }
    }
    __syncthreads();
    if (values) {
        bool minima = has_minima(format);
        // An element's place in its unit is the same in all rounds, as is what a thread reads of it.
        uint element = thread % 32, scales = RAWS + (9 + element / 16) * THREADS;
#pragma unroll 1
        for (uint i = thread; i < 32 * here; i += THREADS) {
            uint unit = i / 32;
            const uint *of_unit = WORDS + RAWS + 9 * unit;
            float x = value_of(of_unit[element / 4], element % 4, of_bits(WORDS[scales + unit]), of_bits(of_unit[8]), minima);
            p.y[size_t(first) * 32 + i] = canonical(x);
        }
    }
}

// A step of a tile in shared memory, in vectors: four of elements for each of 64 rows of the matrix and 32 of x, with one of padding;
// one of numbers for each unit of the former, half a one for each of the latter.
const uint TILE_ROWS = 64, TILE_COLUMNS = 32;
const uint TILE_X = TILE_ROWS * 5, TILE_W_NUMBERS = TILE_X + TILE_COLUMNS * 5, TILE_X_NUMBERS = TILE_W_NUMBERS + TILE_ROWS * 2;
const uint TILE_STEP = TILE_X_NUMBERS + TILE_COLUMNS;

// Copies a vector to shared memory. Outside of the operand it is zero.
INLINE void stage(uint4 *to, const uint4 *from, const bool there) {
    if (there) {
        copy_chunk(to, from);
    } else {
        *to = make_uint4(0, 0, 0, 0);
    }
}

// Stores a tile's results, which are in shared memory row by row of x.
INLINE void store_tile(const Product &p, const uint first_row, const uint first_x) {
    __syncthreads();
    uint row = threadIdx.x % TILE_ROWS;
#pragma unroll 1
    for (uint i = threadIdx.x / TILE_ROWS; i < TILE_COLUMNS; i += THREADS / TILE_ROWS) {
        if (first_row + row < p.rows && first_x + i < p.m) {
            p.y[size_t(first_x + i) * p.n + p.first + first_row + row] = total(of_bits(WORDS[i * TILE_ROWS + row]));
        }
    }
}

#include "quantized_tiles.cuh"
