// Batched matrix products of fixed-point numbers: y = alpha·(a·b) + beta·c + bias. kernels/vulkan/fixed.comp describes
// the steps. Products of digits are added by i + j, the digits' indices from the highest. At most three products of 2¹⁴
// are added per k, so 32 bits hold 43,690 of k. A launch has at most 32,768.
#include "glsl.cuh"
#include "batches.cuh"
#include "bytes.cuh"
#include "digits.cuh"
#include "finish.cuh"
#include "wgmma.cuh"

// The push constants of a product, as lowering writes them.
struct Product {
    // Digits of both operands, in blocks of 128 lines and 64 of k: [plane, highest first][16 bytes of k][line].
    const uint4 *a, *b;
    const int *a_scales, *b_scales;
    const float *c, *bias;
    float *y;
    // Totals of each tile from earlier launches.
    uint4 *totals;
    // The table has, for each batch axis but the outermost, innermost first: its length, and the steps along it in a
    // and b (in matrices) and c.
    const void *table;
    // Blocks of k: in total, the first one here, and the one behind the last here.
    uint m, n, blocks, begin, end;
    uint axes, a_step, b_step, c_step, c_row, c_column;
    float alpha, beta;
};

// The push constants for cutting both operands.
struct Cut {
    const uint *a, *b;
    uint4 *a_digits, *b_digits;
    int *a_scales, *b_scales;
    // The largest magnitudes of parts of lines, [matrix][part][line], and the length of a part.
    uint *a_most, *b_most;
    const void *table;
    // The workgroups of a, and the lines of a matrix.
    uint k, a_groups, a_lines, b_lines, part;
    // Distances between lines, and along k.
    uint a_line_step, a_k_step, b_line_step, b_k_step, nothing[2];
    float alpha, beta;
};

const uint FIRST = 8, LAST = 16, A_ALONG = 32, B_ALONG = 64, GIVEN = 128, MOST = 256;

// Loads 16 elements of a line; those behind `there` are 0.
INLINE void load_chunk(uint (&x)[16], const uint *element, const uint k_step, const bool quads, const uint there) {
    if (quads) {
#pragma unroll
        for (uint i = 0; i < 16; i += 4) {
            uint4 four = i < there ? *reinterpret_cast<const uint4 *>(element + i) : make_uint4(0, 0, 0, 0);
            x[i] = four.x;
            x[i + 1] = four.y;
            x[i + 2] = four.z;
            x[i + 3] = four.w;
        }
    } else {
#pragma unroll
        for (uint i = 0; i < 16; i++) {
            x[i] = i < there ? element[size_t(i) * k_step] : 0;
        }
    }
}

// Multiplies them by power and rest, and stores the digits of the integers.
INLINE void cut_chunk(uint4 *to, const uint (&x)[16], const float power, const float rest, const uint digits) {
    uint words[4][3];
#pragma unroll
    for (uint w = 0; w < 4; w++) {
        float scaled[4];
#pragma unroll
        for (uint e = 0; e < 4; e++) {
            scaled[e] = of_bits(x[4 * w + e]) * power * rest;
        }
        digits_of(words[w], scaled, digits);
    }
    if (digits == 3) {
        to[0] = make_uint4(words[0][2], words[1][2], words[2][2], words[3][2]);
        to += PLANE;
    }
    to[0] = make_uint4(words[0][1], words[1][1], words[2][1], words[3][1]);
    to[PLANE] = make_uint4(words[0][0], words[1][0], words[2][0], words[3][0]);
}

// What a workgroup of the next kernel works on.
struct Piece {
    const uint *from;
    uint *most;
    uint lines, line_step, k_step, matrix, line, step;
    bool of_a, along, quads;
};

// The workgroups of a matrix are `steps` along k for each tile of so many lines.
INLINE Piece piece_of(const Cut &s, const uint has, const uint tile, const uint steps) {
    Piece p;
    p.of_a = blockIdx.x < s.a_groups;
    p.along = has & (p.of_a ? A_ALONG : B_ALONG);
    p.lines = p.of_a ? s.a_lines : s.b_lines;
    p.line_step = p.of_a ? s.a_line_step : s.b_line_step;
    p.k_step = p.of_a ? s.a_k_step : s.b_k_step;
    uint group = p.of_a ? blockIdx.x : blockIdx.x - s.a_groups, tiles = (p.lines + tile - 1) / tile;
    p.step = group % steps;
    p.line = group / steps % tiles * tile;
    p.matrix = group / steps / tiles;
    p.from = (p.of_a ? s.a : s.b) + size_t(p.matrix) * p.lines * s.k;
    p.most = (p.of_a ? s.a_most : s.b_most) + size_t(p.matrix) * ((s.k + s.part - 1) / s.part) * p.lines;
    p.quads = p.along && s.k % 4 == 0 && reinterpret_cast<size_t>(p.from) % 16 == 0;
    return p;
}

// Stores the largest magnitudes of parts of 32 lines; or, if these are known, the scales of 128 lines and the digits of 64 of k; or does
// both for all of 32 lines. Then they are read twice, and what was read last is still in registers.
extern "C" __global__ void __launch_bounds__(1024) fixed_cut(const Cut s, const uint digits, const uint has, TABLE) {
    begin();
#ifdef __CUDA_ARCH__
    __shared__ uint found[128];
    __shared__ float powers[256];
#else
    uint *found = reinterpret_cast<uint *>(pool);
    float *powers = reinterpret_cast<float *>(pool) + 128;
#endif
    const uint blocks = (s.k + 63) / 64, parts = (s.k + s.part - 1) / s.part;
    const bool given = has & GIVEN, stores_most = has & MOST, known = !stores_most && (given || parts > 1);
    // The logarithm of the number of lines. In a round, each thread has 16 elements along k.
    const uint bits = known ? 7 : 5, round = (blockDim.x * 16) >> bits, span = known ? round : s.part;
    Piece p = piece_of(s, has, 1 << bits, (s.k + span - 1) / span);
    // Neighbouring threads read what lies side by side: 64 elements of each of eight lines, or one of each line.
    uint t = threadIdx.x, own = t & ((1 << bits) - 1), chunk = t >> bits;
    if (p.along) {
        own = (t / 32 * 8 + t % 8) & ((1 << bits) - 1);
        chunk = (t >> (bits + 2) << 2) + t / 8 % 4;
    }
    uint line = p.line + own, tiles = (p.lines + 127) / 128, first = p.step * span, last = min(first + span, s.k);
    const uint *from = p.from + size_t(line) * p.line_step;
    uint4 *to = (p.of_a ? s.a_digits : s.b_digits) + (size_t(p.matrix) * tiles + line / 128) * blocks * (digits * PLANE) + line % 128;
    if (t < 128) {
        found[t] = 0;
    }
    __syncthreads();
    uint most = 0, rounds = (span + round - 1) / round;
#pragma unroll 1
    for (uint i = 1; i < 2 * rounds; i++) {
        uint x[16], k = first + (i < rounds ? i - 1 : 2 * rounds - 1 - i) * round + chunk * 16;
        load_chunk(x, from + size_t(k) * p.k_step, p.k_step, p.quads, line < p.lines && k < last ? min(last - k, 16u) : 0);
        if (i <= rounds && !known) {
#pragma unroll
            for (uint e = 0; e < 16; e++) {
                most = max(most, x[e] & MAGNITUDE);
            }
            atomicMax(found + own, most);
        }
        if (i == rounds) {
            __syncthreads();
            if (t < (1u << bits) && p.line + t < p.lines) {
                uint *place = p.most + p.line + t;
                most = found[t];
                if (stores_most) {
                    place[size_t(p.step) * p.lines] = most;
                } else {
#pragma unroll 8
                    for (uint part = 0; part < (known && !given ? parts : 0); part++) {
                        most = max(most, place[size_t(part) * p.lines]);
                    }
                    int scale = given ? value_scale(digits) : scale_of(most, digits);
                    powers_of(powers[t], powers[128 + t], scale);
                    if (p.step == 0) {
                        (p.of_a ? s.a_scales : s.b_scales)[size_t(p.matrix) * p.lines + p.line + t] = scale;
                    }
                }
            }
            if (stores_most) {
                return;
            }
            __syncthreads();
        }
        if (i >= rounds && k < blocks * 64) {
            cut_chunk(to + k / 64 * (digits * PLANE) + k / 16 % 4 * 128, x, powers[own], powers[128 + own], digits);
        }
    }
}

// Returns a total as a number of the result.
INLINE float value(const Product &p, const Total &t, const uint row, const uint column, const Starts &at) {
    int s = p.a_scales[at.a * p.m + row], r = p.b_scales[at.b * p.n + column];
    return of_bits(s == NOT_FINITE || r == NOT_FINITE ? NAN : rounded(t, -s - r));
}

// Adds the total of earlier launches.
INLINE Total add_words(Total total, const uint4 before) {
    total.low += before.x;
    uint carry = uint(total.low < before.x), middle = total.middle + carry;
    total.high += before.z + uint(middle < carry);
    total.middle = middle + before.y;
    total.high += uint(total.middle < before.y);
    return total;
}

#ifndef __CUDA_ARCH_FEAT_SM90_ALL
const uint EDGE = 64;

// Adds the products of a block's digits. With tensor cores, a warp has 16 rows and 32 columns. Without, a thread's are
// 16 apart.
template <uint DIGITS>
INLINE void multiply(int (&sums)[2 * DIGITS - 1][4][4], const uint4 *left, const uint4 *right) {
#if __CUDA_ARCH__ >= 800
    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    left += warp % 4 * 16 + lane % 16 + lane / 16 * EDGE;
    right += warp / 4 * 32 + lane % 8 + lane / 16 * 8 + lane / 8 % 2 * EDGE;
#pragma unroll
    for (uint half = 0; half < 2; half++) {
        uint a[DIGITS][4];
#pragma unroll
        for (uint i = 0; i < DIGITS; i++) {
            load_squares(a[i], left + (i * 4 + 2 * half) * EDGE);
        }
#pragma unroll
        for (uint j = 0; j < DIGITS; j++) {
#pragma unroll
            for (uint e = 0; e < 4; e += 2) {
                uint b[4];
                load_squares(b, right + (j * 4 + 2 * half) * EDGE + 8 * e);
#pragma unroll
                for (uint i = 0; i < DIGITS; i++) {
                    add_products(sums[i + j][e], a[i], b[0], b[1]);
                    add_products(sums[i + j][e + 1], a[i], b[2], b[3]);
                }
            }
        }
    }
#else
    left += threadIdx.x / 16;
    right += threadIdx.x % 16;
#pragma unroll 1
    for (uint chunk = 0; chunk < 4; chunk++) {
#pragma unroll
        for (uint i = 0; i < DIGITS; i++) {
            uint4 a[4];
#pragma unroll
            for (uint r = 0; r < 4; r++) {
                a[r] = left[(i * 4 + chunk) * EDGE + 16 * r];
            }
#pragma unroll
            for (uint j = 0; j < DIGITS; j++) {
#pragma unroll
                for (uint e = 0; e < 4; e++) {
                    uint4 b = right[(j * 4 + chunk) * EDGE + 16 * e];
#pragma unroll
                    for (uint r = 0; r < 4; r++) {
                        int sum = sums[i + j][r][e];
                        sum = dot4(a[r].x, b.x, sum);
                        sum = dot4(a[r].y, b.y, sum);
                        sum = dot4(a[r].z, b.z, sum);
                        sums[i + j][r][e] = dot4(a[r].w, b.w, sum);
                    }
                }
            }
        }
    }
#endif
}

// Returns where result i of a thread is in its tile.
INLINE uint2 place(const uint i) {
#if __CUDA_ARCH__ >= 800
    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return make_uint2(warp % 4 * 16 + lane / 4 + i % 4 / 2 * 8, warp / 4 * 32 + i / 4 * 8 + lane % 4 * 2 + i % 2);
#else
    return make_uint2(threadIdx.x / 16 + i / 4 * 16, threadIdx.x % 16 + i % 4 * 16);
#endif
}

// Computes a tile of 64 × 64. While a block of k is multiplied from shared memory, the next one travels there.
template <uint DIGITS>
INLINE void product(const Product &p, const uint has, const Table &t) {
    const uint STEP = DIGITS * 4 * EDGE, SUMS = 2 * DIGITS - 1;
#ifdef __CUDA_ARCH__
    extern __shared__ uint4 chunks[];
#else
    uint4 *chunks = reinterpret_cast<uint4 *>(pool);
#endif
    uint tiles_m = (p.m + EDGE - 1) / EDGE, tiles_n = (p.n + EDGE - 1) / EDGE;
    uint tile = blockIdx.x % (tiles_m * tiles_n), batch = blockIdx.x / (tiles_m * tiles_n);
    // Tiles are computed in bands, which share cached operands.
    uint band = tile / (8 * tiles_n) * 8, high = min(tiles_m - band, 8u);
    tile %= 8 * tiles_n;
    uint first_row = (band + tile % high) * EDGE, first_column = tile / high * EDGE;
    Starts at = starts(p, batch, t);
    const uint4 *a = p.a + (at.a * ((p.m + 127) / 128) + first_row / 128) * p.blocks * (DIGITS * PLANE) + first_row % 128;
    const uint4 *b = p.b + (at.b * ((p.n + 127) / 128) + first_column / 128) * p.blocks * (DIGITS * PLANE) + first_column % 128;
    // Each thread copies one line of one chunk in each plane.
    a += threadIdx.x / EDGE * 128 + threadIdx.x % EDGE;
    b += threadIdx.x / EDGE * 128 + threadIdx.x % EDGE;
    int sums[SUMS][4][4];
#pragma unroll
    for (uint g = 0; g < SUMS; g++) {
#pragma unroll
        for (uint i = 0; i < 16; i++) {
            sums[g][i / 4][i % 4] = 0;
        }
    }
    // One round more than there are blocks: the first only fetches.
#pragma unroll 1
    for (uint block = p.begin; block <= p.end; block++) {
        uint4 *next = chunks + (block - p.begin) % 2 * (2 * STEP), *now = chunks + (block - p.begin + 1) % 2 * (2 * STEP);
        if (block < p.end) {
#pragma unroll
            for (uint i = 0; i < DIGITS; i++) {
                size_t from = size_t(block) * (DIGITS * PLANE) + i * PLANE;
                copy_chunk(next + i * 256 + threadIdx.x, a + from);
                copy_chunk(next + STEP + i * 256 + threadIdx.x, b + from);
            }
        }
        if (block > p.begin) {
            multiply<DIGITS>(sums, now, now + STEP);
        }
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;" ::: "memory");
#endif
        __syncthreads();
    }
    // Results are finished in a loop, so this code exists only once. Until then they wait in the thread's local memory.
    Total totals[16];
#pragma unroll
    for (uint i = 0; i < 16; i++) {
        Total total;
        total.low = total.middle = total.high = 0;
#pragma unroll
        for (uint g = 0; g < SUMS; g++) {
            // A shift by 32 bits is a shift by one word.
            uint shift = 8 * (SUMS - 1 - g);
            if (shift < 32) {
                total = add_shifted(total, sums[g][i / 4][i % 4], shift);
            } else {
                uint word = uint(sums[g][i / 4][i % 4]), sign = uint(int(word) >> 31);
                total.middle += word;
                total.high += sign + uint(total.middle < word);
            }
        }
        totals[i] = total;
    }
#pragma unroll 1
    for (uint i = 0; i < 16; i++) {
        uint4 *held = p.totals + (size_t(blockIdx.x) * 16 + i) * 256 + threadIdx.x;
        Total total = totals[i];
        if (!(has & FIRST)) {
            total = add_words(total, *held);
        }
        uint row = first_row + place(i).x, column = first_column + place(i).y;
        if (!(has & LAST)) {
            *held = make_uint4(total.low, total.middle, total.high, 0);
        } else if (row < p.m && column < p.n) {
            finish(p, has, value(p, total, row, column, at), batch, row, column, at);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) fixed_product_3(const Product p, const uint, const uint has, TABLE t) {
    begin();
    product<3>(p, has, t);
}

extern "C" __global__ void __launch_bounds__(256, 2) fixed_product_2(const Product p, const uint, const uint has, TABLE t) {
    begin();
    product<2>(p, has, t);
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// Returns the place of a wide tile among all batches. Tiles form bands of rows, so tiles that run at the same time
// share lines.
struct Place {
    uint batch, row, column;
};

template <uint ROWS, uint COLUMNS>
INLINE Place place_of(const Product &p, const uint tile) {
    const uint BAND_ROWS = 12;
    uint down = (p.m + ROWS - 1) / ROWS, across = (p.n + COLUMNS - 1) / COLUMNS, rest = tile % (down * across);
    uint first = rest / (BAND_ROWS * across) * BAND_ROWS, rows = min(down - first, BAND_ROWS), of_band = rest % (BAND_ROWS * across);
    Place at = {tile / (down * across), (first + of_band % rows) * ROWS, of_band / rows * COLUMNS};
    return at;
}

// Adds a 64-bit total to those of earlier launches. Returns the rounded result, or keeps the total for the next launch. `s` and `r` are
// the scales of its lines.
INLINE float value_wide(const Product &p, const uint has, const long long sum, const uint held, const int s, const int r) {
    Total total;
    total.low = uint(sum);
    total.middle = uint(sum >> 32);
    total.high = uint(int(total.middle) >> 31);
    if (!(has & FIRST)) {
        total = add_words(total, p.totals[held]);
    }
    if (!(has & LAST)) {
        p.totals[held] = make_uint4(total.low, total.middle, total.high, 0);
    }
    return of_bits(s == NOT_FINITE || r == NOT_FINITE ? NAN : rounded(total, -s - r));
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Stands for NOT_FINITE in a tile's scales: its sum with any other scale is outside binary32's exponents.
const int FAR = 0x20000000;

INLINE int far(const int scale) {
    return scale == NOT_FINITE ? FAR : scale;
}

INLINE int scale(const int kept) {
    return kept == FAR ? NOT_FINITE : kept;
}

// Synchronises a warpgroup that multiplies. The other one is somewhere else.
INLINE void meet(const uint group) {
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}
#endif

// Computes tiles of 128 rows and `COLUMNS` columns, for GPUs whose tensor cores multiply 8-bit integers in warpgroups. Blocks of threads
// take tiles in turn. One warp requests steps of 64 of k from the copy engine. Each of two warpgroups multiplies its 64 rows by all
// columns. A warp's results go through shared memory, so the epilogue runs along rows and its stores coalesce.
template <uint DIGITS, uint COLUMNS, uint STEPS>
INLINE void wide(const Product &p, const uint has, const uint tiles, const Table &t) {
    const uint ROWS = 128, SUMS = 2 * DIGITS - 1;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // A step has the digits of the rows, then those of the columns: [plane][16 bytes of k][line].
    const uint PLANE_A = ROWS * 64, PLANE_B = COLUMNS * 64, OF_A = DIGITS * PLANE_A, STEP = OF_A + DIGITS * PLANE_B;
    // Eight columns of padding keep the rows of results in different banks. A thread finishes EACH results at once, BESIDE of them in a row.
    const uint PITCH = COLUMNS + 8, EACH = DIGITS == 3 && COLUMNS == 64 ? 16 : 8, BESIDE = COLUMNS / 32, DOWN = EACH / BESIDE;
    extern __shared__ __align__(128) unsigned char steps[];
    float *results = reinterpret_cast<float *>(steps + STEPS * STEP) + threadIdx.x / 32 * 16 * PITCH - 4 * 16 * PITCH;
    __shared__ __align__(8) unsigned long long barriers[2 * STEPS];
    // The scales of each warpgroup's lines. Reading them from device memory for each result would take longer than the product.
    __shared__ int scales[2][64 + COLUMNS];
    uint full = shared_at(barriers), empty = full + 8 * STEPS, base = shared_at(steps), group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (uint i = 0; i < STEPS; i++) {
            Barrier::start(full + 8 * i, 1);
            Barrier::start(empty + 8 * i, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    // Only now: all this may happen while the kernel before runs.
    begin();
    uint step = 0, phase = 0;
    if (group == 0) {
        // This warpgroup gives up registers that it doesn't need.
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x != 0) {
            return;
        }
#pragma unroll 1
        for (uint tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            Place at = place_of<ROWS, COLUMNS>(p, tile);
            Starts from = starts(p, at.batch, t);
            size_t size = size_t(p.blocks) * (DIGITS * PLANE);
            const uint4 *a = p.a + (from.a * ((p.m + 127) / 128) + at.row / 128) * size;
            const uint4 *b = p.b + (from.b * ((p.n + 127) / 128) + at.column / 128) * size + at.column % 128;
#pragma unroll 1
            for (uint block = p.begin; block < p.end; block++) {
                uint to = base + step * STEP, here = full + 8 * step;
                Barrier::wait(empty + 8 * step, phase ^ 1);
                Barrier::expect(here, STEP);
                copy_bulk(to, a + size_t(block) * (DIGITS * PLANE), OF_A, here);
                if (COLUMNS == 128) {
                    copy_bulk(to + OF_A, b + size_t(block) * (DIGITS * PLANE), DIGITS * PLANE_B, here);
                } else {
                    for (uint i = 0; i < 4 * DIGITS; i++) {
                        copy_bulk(to + OF_A + i * COLUMNS * 16, b + size_t(block) * (DIGITS * PLANE) + i * 128, COLUMNS * 16, here);
                    }
                }
                step = step + 1 == STEPS ? 0 : step + 1;
                phase ^= step == 0;
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    group -= 1;
    int sums[SUMS][COLUMNS / 2];
    uint thread = threadIdx.x % 128;
    int *row_scales = scales[group], *column_scales = row_scales + 64;
#pragma unroll 1
    for (uint tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        uint last = STEPS;
        Place at = place_of<ROWS, COLUMNS>(p, tile);
        Starts from = starts(p, at.batch, t);
        uint row = at.row + group * 64;
        // The warpgroup has read the scales of the tile before.
        meet(group);
        if (thread < 64) {
            row_scales[thread] = row + thread < p.m ? far(p.a_scales[from.a * p.m + row + thread]) : 0;
        }
        if (thread < COLUMNS) {
            uint column = at.column + thread;
            column_scales[thread] = column < p.n ? far(p.b_scales[from.b * p.n + column]) : 0;
        }
#pragma unroll
        for (uint g = 0; g < SUMS; g++) {
#pragma unroll
            for (uint i = 0; i < COLUMNS / 2; i++) {
                sums[g][i] = 0;
            }
        }
        if (row >= p.m) {
            // All rows of this warpgroup are padding.
#pragma unroll 1
            for (uint block = p.begin; block < p.end; block++) {
                Barrier::wait(full + 8 * step, phase);
                if (thread == 0) {
                    Barrier::arrive(empty + 8 * step);
                }
                step = step + 1 == STEPS ? 0 : step + 1;
                phase ^= step == 0;
            }
            continue;
        }
#pragma unroll 1
        for (uint block = p.begin; block < p.end; block++) {
            uint a = base + step * STEP + group * 64 * 16, b = base + step * STEP + OF_A;
            Barrier::wait(full + 8 * step, phase);
#pragma unroll
            for (uint g = 0; g < SUMS; g++) {
                pin(sums[g]);
            }
            begin_multiply();
#pragma unroll
            for (uint half = 0; half < 2; half++) {
#pragma unroll
                for (uint i = 0; i < DIGITS; i++) {
#pragma unroll
                    for (uint j = 0; j < DIGITS; j++) {
                        multiply_lines(sums[i + j], operand(a, i * PLANE_A + half * ROWS * 32, ROWS * 16),
                            operand(b, j * PLANE_B + half * COLUMNS * 32, COLUMNS * 16));
                    }
                }
            }
            end_multiply();
#pragma unroll
            for (uint g = 0; g < SUMS; g++) {
                pin(sums[g]);
            }
            // The previous step is done, and its memory is free.
            multiplied<1>();
            if (last < STEPS && thread == 0) {
                Barrier::arrive(empty + 8 * last);
            }
            last = step;
            step = step + 1 == STEPS ? 0 : step + 1;
            phase ^= step == 0;
        }
        multiplied<0>();
#pragma unroll
        for (uint g = 0; g < SUMS; g++) {
            pin(sums[g]);
        }
        if (thread == 0) {
            Barrier::arrive(empty + 8 * last);
        }
        long long totals[COLUMNS / 2];
#pragma unroll
        for (uint i = 0; i < COLUMNS / 2; i++) {
            totals[i] = sums[0][i] * 256ll + sums[1][i];
            if (DIGITS == 3) {
                totals[i] = totals[i] * 65536 + (sums[2][i] * 256ll + sums[3][i]);
            }
            totals[i] = totals[i] * 256 + sums[SUMS - 1][i];
        }
        // The scales are in shared memory now.
        meet(group);
        uint lane = thread % 32, own_row = thread / 32 * 16, first_row = lane / 4, first_column = lane % 4 * 2;
        row += own_row;
        // The conversion rounds to 24 bits. The multiplication by 2^−(row's scale + column's) rounds only if the result is subnormal.
        int first = row_scales[own_row + first_row], second = row_scales[own_row + first_row + 8], least = FAR, most = -FAR;
#pragma unroll
        for (uint i = 0; i < COLUMNS / 2; i += 2) {
            uint down = first_row + i / 2 % 2 * 8, column = first_column + i / 4 * 8, bits = uint(127 - (i / 2 % 2 ? second : first)) << 23;
            int r = column_scales[column], next = column_scales[column + 1];
            least = min(least, min(r, next));
            most = max(most, max(r, next));
            *reinterpret_cast<float2 *>(results + down * PITCH + column) = make_float2(
                static_cast<float>(totals[i]) * of_bits(bits - (r << 23)), static_cast<float>(totals[i + 1]) * of_bits(bits - (next << 23)));
        }
        // Factors that are no normal numbers, or several launches.
        if (min(first, second) + least < -127 || max(first, second) + most > 126 || (has & (FIRST | LAST)) != (FIRST | LAST)) {
            // A loop over local memory keeps this code small.
            long long waiting[COLUMNS / 2];
#pragma unroll
            for (uint i = 0; i < COLUMNS / 2; i++) {
                waiting[i] = totals[i];
            }
#pragma unroll 1
            for (uint i = 0; i < COLUMNS / 2; i++) {
                uint down = first_row + i / 2 % 2 * 8, column = first_column + i / 4 * 8 + i % 2;
                results[down * PITCH + column] = value_wide(p, has, waiting[i], (tile * ROWS + group * 64 + own_row + down) * COLUMNS + column,
                    scale(row_scales[own_row + down]), scale(column_scales[column]));
            }
        }
        __syncwarp();
        if (has & LAST) {
            uint column = at.column + lane;
            const float *c = p.c + from.c + size_t(row) * p.c_row + size_t(column) * p.c_column;
            float *y = p.y + (size_t(at.batch) * p.m + row) * p.n + column, bias[BESIDE];
#pragma unroll
            for (uint b = 0; b < BESIDE; b++) {
                bias[b] = has & HAS_BIAS && column + b * 32 < p.n ? p.bias[column + b * 32] : 0.0f;
            }
            // All are read before results are stored, which could change them as far as a compiler knows.
#pragma unroll 1
            for (uint i = 0; i < 16; i += DOWN) {
                float before[EACH], x[EACH];
#pragma unroll
                for (uint j = 0; j < EACH; j++) {
                    uint d = j / BESIDE, b = j % BESIDE;
                    bool there = has & HAS_C && row + d < p.m && column + b * 32 < p.n;
                    before[j] = there ? c[size_t(d) * p.c_row + size_t(b * 32) * p.c_column] : 0.0f;
                    x[j] = results[(i + d) * PITCH + b * 32 + lane];
                }
#pragma unroll
                for (uint j = 0; j < EACH; j++) {
                    x[j] = finished(p, has, x[j], before[j], bias[j % BESIDE]);
                }
#pragma unroll
                for (uint j = 0; j < EACH; j++) {
                    uint d = j / BESIDE, b = j % BESIDE;
                    if (row + d < p.m && column + b * 32 < p.n) {
                        y[size_t(d) * p.n + b * 32] = x[j];
                    }
                }
                row += DOWN;
                c += size_t(DOWN) * p.c_row;
                y += size_t(DOWN) * p.n;
            }
        }
    }
#else
    // The same tiles without those instructions, for tests on the CPU and for drivers that compile PTX.
    begin();
#pragma unroll 1
    for (uint tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        Place at = place_of<ROWS, COLUMNS>(p, tile);
        Starts from = starts(p, at.batch, t);
        size_t size = size_t(p.blocks) * (DIGITS * PLANE);
#pragma unroll 1
        for (uint i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
            uint row = i / COLUMNS, column = i % COLUMNS, beside = at.column + column;
            const uint4 *a = p.a + (from.a * ((p.m + 127) / 128) + at.row / 128) * size + row;
            const uint4 *b = p.b + (from.b * ((p.n + 127) / 128) + beside / 128) * size + beside % 128;
            long long sum = 0;
            bool there = at.row + row < p.m && beside < p.n;
#pragma unroll 1
            for (uint chunk = there ? 4 * p.begin : 0; chunk < (there ? 4 * p.end : 0); chunk++) {
                size_t first = size_t(chunk / 4) * (DIGITS * PLANE) + chunk % 4 * 128;
                int sums[SUMS] = {};
#pragma unroll
                for (uint d = 0; d < DIGITS * DIGITS; d++) {
                    uint4 left = a[first + d / DIGITS * PLANE], right = b[first + d % DIGITS * PLANE];
                    int &to = sums[d / DIGITS + d % DIGITS];
                    to = dot4(left.w, right.w, dot4(left.z, right.z, dot4(left.y, right.y, dot4(left.x, right.x, to))));
                }
                long long of_chunk = 0;
#pragma unroll
                for (uint g = 0; g < SUMS; g++) {
                    of_chunk = of_chunk * 256 + sums[g];
                }
                sum += of_chunk;
            }
            if (there) {
                float x = value_wide(p, has, sum, (tile * ROWS + row) * COLUMNS + column, p.a_scales[from.a * p.m + at.row + row],
                    p.b_scales[from.b * p.n + beside]);
                if (has & LAST) {
                    finish(p, has, x, at.batch, at.row + row, beside, from);
                }
            }
        }
    }
#endif
}

extern "C" __global__ void __launch_bounds__(384, 1) fixed_wide_3(const Product p, const uint tiles, const uint has, TABLE t) {
    wide<3, 64, 5>(p, has, tiles, t);
}

extern "C" __global__ void __launch_bounds__(384, 1) fixed_wide_2(const Product p, const uint tiles, const uint has, TABLE t) {
    wide<2, 128, 4>(p, has, tiles, t);
}

// For products with fewer wide tiles than the GPU has multiprocessors.
extern "C" __global__ void __launch_bounds__(384, 1) fixed_narrow_3(const Product p, const uint tiles, const uint has, TABLE t) {
    wide<3, 32, 5>(p, has, tiles, t);
}

extern "C" __global__ void __launch_bounds__(384, 1) fixed_narrow_2(const Product p, const uint tiles, const uint has, TABLE t) {
    wide<2, 64, 5>(p, has, tiles, t);
}
#endif
