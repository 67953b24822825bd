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
    // With few rows: what x is made of. CUT: rows are cut already; if not, `q` has their f32, the ones that a function is applied to,
    // and `q_numbers` what they are multiplied by. The rows are stored at `made`, if it is there. `w` has rows that are added to the
    // result, and `w_numbers` where the sum goes.
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

// Cuts 512 elements of x.
extern "C" __global__ void __launch_bounds__(128) quantized_cut(const Product p, const uint format, const uint, TABLE) {
    uint thread = threadIdx.x, first = blockIdx.x * 512 + thread * 4;
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

// Returns rmsnorm's factor of a row: lanes take every 32nd element of a block of 1024, warps the blocks.
INLINE float norm_factor(const float *x, const uint n, const float eps, uint *sums) {
    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = (n + 1023) / 1024;
    float sum = 0.0f;
#pragma unroll 2
    for (uint i = warp * 1024 + lane; i < n && i < warp * 1024 + 1024; i += 32) {
        float u = x[i];
        sum = sum + u * u;
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

// Makes rows of x and cuts them, to shared memory: `words` with the integers, then the numbers of units. Every block of threads makes
// the rows that it needs, because that takes less time than a kernel of its own.
INLINE void make_rows(const Product &p, const uint format, const uint first_x, const uint rows, uint *words) {
    const uint k = 32 * p.units;
#pragma unroll 1
    for (uint r = 0; r < rows; r++) {
        const size_t first = size_t(first_x + r) * k;
        const float *from = reinterpret_cast<const float *>(p.q) + first;
        const float *by = reinterpret_cast<const float *>(p.q_numbers) + (p.origin == NORM ? 0 : first);
        float *made = blockIdx.x == 0 && p.made ? p.made + first : nullptr;
        float factor = p.origin == NORM ? norm_factor(from, k, p.eps, WORDS) : 1.0f;
#pragma unroll 1
        for (uint begin = 0; begin < k; begin += 4 * THREADS) {
            uint i = begin + 4 * threadIdx.x;
            float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (i < k) {
                take(x, from + i);
                if (p.origin != ROWS) {
                    float y[4];
                    take(y, by + i);
#pragma unroll 1
                    for (uint e = 0; e < 4; e++) {
                        float v = p.origin == NORM ? x[0] * factor : gate(x[0], p.origin == GELU_GATE);
                        v = canonical(v * y[0]);
                        x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = v;
                        y[0] = y[1], y[1] = y[2], y[2] = y[3];
                    }
                    if (made) {
                        *reinterpret_cast<float4 *>(made + i) = make_float4(x[0], x[1], x[2], x[3]);
                    }
                }
            }
            Four four = cut_four(x, format, WORDS);
            if (i < k) {
                words[r * 8 * p.units + i / 4] = four.word;
                if (threadIdx.x % 8 == 0) {
                    uint *number = words + rows * 8 * p.units + 2 * (r * p.units + i / 32);
                    number[0] = bits(four.scale);
                    number[1] = uint(four.sum);
                }
            }
        }
    }
    __syncthreads();
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
    bool minima = has_minima(format);
    uint next_group = blockIdx.x, next_step = 0, group = groups, step = 0;
    Pieces next;
    float held = 0.0f;
    const uint4 *q = p.q + 2 * size_t(first_x) * p.units;
    const uint2 *q_numbers = p.q_numbers + size_t(first_x) * p.units;
    if (p.origin != CUT) {
        uint *words = WORDS + RAWS + most_x * 4 * PITCH;
        make_rows(p, format, first_x, rows_x, words);
        q = reinterpret_cast<const uint4 *>(words);
        q_numbers = reinterpret_cast<const uint2 *>(words + rows_x * 8 * p.units);
    }
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
            continue;
        }
        if (thread < rows * here) {
            Unpacked unit = unpack(format, offset + thread / of_block * bytes, thread % of_block);
            uint of_x = first_unit + thread % span;
#pragma unroll 1
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
#pragma unroll 1
            for (uint i = 0; i < there; i++) {
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
