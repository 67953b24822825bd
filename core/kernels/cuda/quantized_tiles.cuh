// Tiles of products with quantised blocks: on tensor cores from 8.0 on.
//
// Each of four warps has 16 of the tile's 64 rows of the matrix, and all 32 of x. A lane's number is 4·g + t: of each eight rows of x, it
// has the results of the rows 2·t and 2·t + 1 with row g of the matrix, then with row g + 8. For tensor cores, it reads the bytes 4·t to
// 4·t + 3, and those 16 further on, of the rows g and g + 8 of the matrix and of row g of x.
#pragma once

// The steps that are on their way to shared memory.
const uint AHEAD = 3;

// What a lane knows of a step in shared memory: its bytes of the matrix and of x, and the numbers of its rows of both.
struct Step {
    const uint *left, *right;
    const uint4 *of_rows, *of_x;
};

// Words between rows of a step.
const uint ROW = 20;

#if __CUDA_ARCH__ >= 800
// Adds 16 × 8 exact sums of products of 16 bytes. `low` and `high` are of the rows g and g + 8.
INLINE void add_products(int (&sums)[4], const uint low, const uint high, const uint b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]) : "r"(low), "r"(high), "r"(b));
}
#endif

// Adds the exact sums of half a unit, 16 bytes, for the eight rows of x that begin at `right`.
INLINE void add_half(int (&sums)[4], const uint *left, const uint *right) {
#if __CUDA_ARCH__ >= 800
    add_products(sums, left[0], left[8 * ROW], right[0]);
#else
#pragma unroll
    for (uint e = 0; e < 4; e++) {
        const uint4 a = *reinterpret_cast<const uint4 *>(left + e / 2 * 8 * ROW);
        const uint4 b = *reinterpret_cast<const uint4 *>(right + e % 2 * ROW);
        sums[e] = dot4(a.w, b.w, dot4(a.z, b.z, dot4(a.y, b.y, dot4(a.x, b.x, sums[e]))));
    }
#endif
}

#define EACH_RESULT _Pragma("unroll") for (uint i = 0; i < 16; i++)

// Multiplies a unit of a step. Blocks of 256, WIDE, add up exactly what the block's scales multiply at its end. Others have a chain.
template <bool WIDE>
INLINE void multiply_unit(const Step &step, const uint u, int (&sums)[16], int (&of_minima)[16], float (&chains)[16]) {
    const uint *left = step.left + 8 * u, *right = step.right + 8 * u;
    const uint4 number[2] = {step.of_rows[u], step.of_rows[16 + u]};
#pragma unroll
    for (uint j = 0; j < 4; j++) {
        // The scale and the sum of row 2·t of x, then of row 2·t + 1.
        const uint4 numbers = step.of_x[16 * u + 4 * j];
        const uint scales[2] = {numbers.x, numbers.z}, of_both[2] = {numbers.y, numbers.w};
        int exact[4] = {0, 0, 0, 0}, others[4] = {0, 0, 0, 0};
        add_half(exact, left, right + 8 * ROW * j);
        add_half(WIDE ? others : exact, left + 4, right + 8 * ROW * j + 4);
#pragma unroll
        for (uint e = 0; e < 4; e++) {
            const uint i = 4 * j + e;
            const uint4 &of_row = number[e / 2];
            if (WIDE) {
                sums[i] += (int(of_row.z << 16) >> 16) * exact[e] + (int(of_row.z) >> 16) * others[e];
                of_minima[i] += int(of_row.w) * int(of_both[e % 2]);
            } else {
                float scale = of_bits(scales[e % 2]);
                chains[i] = fmaz(float(exact[e]), of_bits(of_row.x) * scale, chains[i]);
                chains[i] = fmaz(float(int(of_both[e % 2])), of_bits(of_row.y) * scale, chains[i]);
            }
        }
    }
}

template <bool WIDE>
INLINE void tile(const Product &p, const uint format) {
    const uint thread = threadIdx.x, g = thread % 32 / 4, t = thread % 4, of_warp = thread / 32 * 16;
    const uint first_row = blockIdx.y * TILE_ROWS, first_x = blockIdx.x * TILE_COLUMNS;
    // What this thread copies of each step. Rows behind the last one repeat it, because their results are unused, or are zeros.
    const uint part = thread % 4, line = thread / 4, unit = part / 2, of_number = thread % 2;
    const uint rows[2] = {min(first_row + line, p.rows - 1), min(first_row + line + 32, p.rows - 1)};
    const uint4 *from[4] = {
        p.w + 2 * size_t(rows[0]) * p.units + part,
        p.w + 2 * size_t(rows[1]) * p.units + part,
        p.q + 2 * size_t(min(first_x + line, p.m - 1)) * p.units + part,
        p.w_numbers + size_t(min(first_row + thread / 2, p.rows - 1)) * p.units + of_number,
    };
    const uint2 *of_x = p.q_numbers + size_t(min(first_x + thread / 2, p.m - 1)) * p.units + of_number;
    // Tensor cores share out a row's bytes and eight rows of x; without, a lane reads all that it multiplies.
#if __CUDA_ARCH__ >= 800
    const uint x_row = g, own_bytes = t;
#else
    const uint x_row = 2 * t, own_bytes = 0;
#endif
    const uint x_place = of_number * TILE_COLUMNS + thread / 2;
    int sums[16], of_minima[16];
    float chains[16], totals[16];
    EACH_RESULT {
        sums[i] = of_minima[i] = 0;
        chains[i] = totals[i] = 0.0f;
    }
#pragma unroll 1
    for (uint next = 0; next < p.steps + AHEAD; next++) {
        if (next < p.steps) {
            uint4 *to = pieces + next % (AHEAD + 1) * TILE_STEP;
            // Behind the last unit are zeros.
            const bool there = 2 * next + unit < p.units;
            stage(to + line * 5 + part, from[0], there);
            stage(to + (line + 32) * 5 + part, from[1], there);
            stage(to + TILE_X + line * 5 + part, from[2], there && first_x + line < p.m);
            const bool numbers_there = 2 * next + of_number < p.units;
            stage(to + TILE_W_NUMBERS + thread, from[3], numbers_there);
            if (thread < 2 * TILE_COLUMNS) {
                uint2 *to_x = reinterpret_cast<uint2 *>(to + TILE_X_NUMBERS) + x_place;
                if (numbers_there) {
                    copy_pair(to_x, of_x);
                } else {
                    *to_x = make_uint2(0, 0);
                }
            }
            from[0] += 4, from[1] += 4, from[2] += 4, from[3] += 2, of_x += 2;
        }
        end_group();
        if (next < AHEAD) {
            continue;
        }
        arrived<AHEAD>();
        __syncthreads();
        const uint here = next - AHEAD;
        const uint4 *now = pieces + here % (AHEAD + 1) * TILE_STEP;
        const Step step = {
            reinterpret_cast<const uint *>(now) + (of_warp + g) * ROW + own_bytes,
            reinterpret_cast<const uint *>(now + TILE_X) + x_row * ROW + own_bytes,
            now + TILE_W_NUMBERS + 2 * (of_warp + g),
            now + TILE_X_NUMBERS + t,
        };
        multiply_unit<WIDE>(step, 0, sums, of_minima, chains);
        multiply_unit<WIDE>(step, 1, sums, of_minima, chains);
        // The end of a chunk of 256.
        if (here % 4 == 3 || here + 1 == p.steps) {
            EACH_RESULT {
                if (WIDE) {
                    const uint4 number = step.of_rows[i % 4 / 2 * 16], numbers = step.of_x[i / 4 * 4];
                    float scale = of_bits(i % 2 == 0 ? numbers.x : numbers.z);
                    chains[i] = fmaz(float(sums[i]), of_bits(number.x) * scale, 0.0f);
                    chains[i] = fmaz(float(of_minima[i]), of_bits(number.y) * scale, chains[i]);
                    sums[i] = of_minima[i] = 0;
                }
                totals[i] = fmaz(chains[i], 1.0f, totals[i]);
                chains[i] = 0.0f;
            }
        }
        // No thread reads any longer what the next step overwrites.
        __syncthreads();
    }
    uint *to = WORDS + 2 * t * TILE_ROWS + of_warp + g;
    EACH_RESULT {
        to[(i / 4 * 8 + i % 2) * TILE_ROWS + i % 4 / 2 * 8] = bits(totals[i]);
    }
    store_tile(p, first_row, first_x);
}

extern "C" __global__ void __launch_bounds__(128, 4) quantized_tiles(const Product p, const uint format, const uint, TABLE) {
    begin();
    if (units_of(format) == 1) {
        tile<false>(p, format);
    } else {
        tile<true>(p, format);
    }
}
