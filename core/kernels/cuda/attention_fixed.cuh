// Attention whose products are computed in exact integers (docs/contract.md, "attention"): small kernels around the products of fixed.cu,
// and one kernel that does everything on tensor cores.
#pragma once
#include "bulk.cuh"
#include "bytes.cuh"
#include "digits.cuh"

// kernels/vulkan/attention.comp describes these three, and what the push constants mean in them.

// Returns where a block of a row's weights or results is, counted in such blocks.
INLINE size_t of_block(const Attention &p, const uint row, const uint block) {
    return (size_t(row / p.columns) * ((p.keys + KEYS - 1) / KEYS) + block) * p.columns + row % p.columns;
}

INLINE float *written(const Attention &p) {
    return const_cast<float *>(p.k);
}

// A block of threads computes the weights of a row in one block of keys, their MAX and SUM. A thread has a key of 32 lanes.
extern "C" __global__ void __launch_bounds__(64) attention_weights(const Attention p, const uint has, TABLE t) {
    begin();
#ifdef __CUDA_ARCH__
    __shared__ float shared[KEYS];
#else
    float *shared = reinterpret_cast<float *>(pool);
#endif
    uint row = blockIdx.x, block = blockIdx.y, key = block * KEYS + threadIdx.x;
    uint head = (p.tiles + row) / p.queries, query = (p.tiles + row) % p.queries;
    float score = of_bits(INFINITY | SIGN);
    if (key < visible(p, has, query)) {
        score = (p.width > 0 ? p.q[size_t(row) * p.keys + key] : 0.0f) * p.scale;
        if (has & MASK) {
            const float *mask = p.mask + size_t(query) * p.mask_row + size_t(key) * p.mask_column;
#pragma unroll 1
            for (uint i = 0, rest = head; i < p.axes; i++) {
                uint length = t.words[2 * i];
                mask += size_t(rest % length) * t.words[2 * i + 1];
                rest /= length;
            }
            score = score + *mask;
        }
    }
    float most = fmaxf(of_bits(INFINITY | SIGN), score);
#pragma unroll 1
    for (uint step = 16; step > 0; step /= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
    }
    shared[threadIdx.x] = most;
    __syncthreads();
    most = fmaxf(most, shared[threadIdx.x ^ 32]);
    __syncthreads();
    float own = weight(score - (most == of_bits(INFINITY | SIGN) ? 0.0f : most));
    float factor = p.v[size_t(row / p.columns) * ((p.keys + KEYS - 1) / KEYS * KEYS) + key];
    written(p)[of_block(p, row, block) * KEYS + threadIdx.x] = canonical(own * factor);
    shared[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x < 32) {
        float sum = own + shared[threadIdx.x + 32];
#pragma unroll 1
        for (uint step = 16; step > 0; step /= 2) {
            sum = sum + __shfl_xor_sync(ALL, sum, step);
        }
        if (threadIdx.x == 0) {
            float *state = p.blocks + 2 * (size_t(row) * ((p.keys + KEYS - 1) / KEYS) + block);
            state[0] = most;
            state[1] = sum;
        }
    }
}

// Merges the blocks' results of a row in one column.
extern "C" __global__ void __launch_bounds__(64) attention_join(const Attention p, const uint, TABLE) {
    begin();
    uint row = blockIdx.x, column = blockIdx.y * 64 + threadIdx.x, count = (p.keys + KEYS - 1) / KEYS;
    if (column >= p.value_width) {
        return;
    }
    float m = of_bits(INFINITY | SIGN), l = 0.0f, x = 0.0f;
#pragma unroll 1
    for (uint block = 0; block < count; block++) {
        const float *state = p.blocks + 2 * (size_t(row) * count + block);
        float2 factors = merged(m, l, state[0], state[1]);
        x = merged_result(x, p.q[of_block(p, row, block) * p.value_width + column], factors);
    }
    written(p)[size_t(p.tiles + row) * p.value_width + column] = l == 0.0f ? 0.0f : canonical(x / l);
}

// Cuts a row of values to fixed-point numbers of one scale, and stores the factor of its key's weights. Rows behind the last key are
// zeros.
extern "C" __global__ void __launch_bounds__(64) attention_cut(const Attention p, const uint, TABLE) {
    begin();
#ifdef __CUDA_ARCH__
    __shared__ uint shared[2];
#else
    uint *shared = reinterpret_cast<uint *>(pool);
#endif
    uint padded = (p.keys + KEYS - 1) / KEYS * KEYS, row = blockIdx.y * gridDim.x + blockIdx.x, key = row % padded, largest = 0;
    const float *from = p.q + (size_t(row / padded) * p.keys + key) * p.value_width;
    if (row < p.rows && key < p.keys) {
        for (uint d = threadIdx.x; d < p.value_width; d += 64) {
            largest = max(largest, uint(__float_as_int(from[d])) & MAGNITUDE);
        }
    }
#pragma unroll 1
    for (uint step = 16; step > 0; step /= 2) {
        largest = max(largest, __shfl_xor_sync(ALL, largest, step));
    }
    shared[threadIdx.x / 32] = largest;
    __syncthreads();
    largest = max(shared[0], shared[1]);
    int scale = scale_of(largest, p.pitch);
    float factor = value_factor(largest, scale, p.pitch), unit = of_bits(uint(127 - value_scale(p.pitch)) << 23);
    if (row >= p.rows) {
        return;
    }
    if (threadIdx.x == 0) {
        const_cast<float *>(p.v)[row] = factor;
    }
    for (uint d = threadIdx.x; d < p.value_width; d += 64) {
        int integer = factor > 0.0f ? cut(uint(__float_as_int(from[d])), scale) : 0;
        written(p)[size_t(row) * p.value_width + d] = static_cast<float>(integer) * unit;
    }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// The rows of queries in a tile. Values are cut in parts of 32 columns, queries and keys in slices of 64.
const uint ROWS = 64, PART = 32, SLICE = 64;

// The push constants of the kernel that cuts the operands, and of the one that does everything else.
struct Whole {
    const float *q, *k, *v, *mask;
    float *y;
    uint4 *cut;
    // See `Attention` for the table, `lead` and `axes`.
    const void *table;
    // `rows` are those of the heads that share keys.
    uint rows, queries, keys, width, value_width, lead, axes, mask_row, mask_column, matrices, tiles;
    float scale;
};

// What cutting leaves of a matrix, tile by tile of queries, and block by block of keys and of values, in units of 16 bytes. Digits of
// queries and keys are [slice][digit, highest first][16 columns][line], those of values [digit][16 keys][column]. Their keys lie in
// pairs: 0, 4, 1, 5, 2, 6, 3, 7 of each 8. The numbers of a tile of queries are their scales. Those of a block of keys are the scales of
// keys and the factors of their weights.
struct Room {
    uint slices, columns, blocks, of_tile, of_values, OF_NUMBERS = 2 * KEYS / 4;
    uint4 *queries, *keys, *values, *of_queries, *numbers;

    INLINE Room(const Whole &p, const uint digits) {
        slices = (p.width + SLICE - 1) / SLICE;
        columns = (p.value_width + PART - 1) / PART * PART;
        blocks = (p.keys + KEYS - 1) / KEYS;
        of_tile = slices * digits * 4 * ROWS;
        of_values = digits * 4 * columns;
        size_t tiles = size_t(p.matrices) * p.tiles, all = size_t(p.matrices) * blocks;
        queries = p.cut;
        keys = queries + tiles * of_tile;
        values = keys + all * of_tile;
        of_queries = values + all * of_values;
        numbers = of_queries + tiles * (ROWS / 4);
    }
};

// Stands for NOT_FINITE in a scale: no sum with another scale is like it.
const int FAR = 0x20000000;

INLINE int far(const int scale) {
    return scale == NOT_FINITE ? -FAR : scale;
}

// The greatest of what the four threads of a row have.
INLINE float greatest(float x) {
    x = fmaxf(x, __shfl_xor_sync(ALL, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL, x, 2));
}

INLINE uint greatest(uint x) {
    x = max(x, __shfl_xor_sync(ALL, x, 1));
    return max(x, __shfl_xor_sync(ALL, x, 2));
}

// Cuts the tiles of queries, then blocks of keys, then blocks of values. Four threads read a line of up to 128 columns.
extern "C" __global__ void __launch_bounds__(256) attention_digits(const Whole p, const uint digits, TABLE) {
    begin();
    const uint PITCH_OF_LINES = 2 * SLICE + 1;
#ifdef __CUDA_ARCH__
    __shared__ float read[KEYS * PITCH_OF_LINES];
#else
    float *read = reinterpret_cast<float *>(pool);
#endif
    const Room room(p, digits);
    uint matrix = blockIdx.x % p.matrices, tile = blockIdx.x / p.matrices;
    bool of_queries = tile < p.tiles, of_values = tile >= p.tiles + room.blocks;
    tile -= of_queries ? 0 : of_values ? p.tiles + room.blocks : p.tiles;
    uint width = of_values ? p.value_width : p.width, lines = of_queries ? p.rows : p.keys, row = threadIdx.x / 4, own = threadIdx.x % 4;
    uint line = tile * ROWS + row, largest = 0, wide = of_values ? room.columns : room.slices * SLICE;
    const float *from = (of_queries ? p.q : of_values ? p.v : p.k) + (size_t(matrix) * lines + line) * width;
    float *own_line = read + row * PITCH_OF_LINES;
#pragma unroll 8
    for (uint column = own; column < wide; column += 4) {
        float x = line < lines && column < width ? from[column] : 0.0f;
        own_line[column] = x;
        largest = max(largest, bits(x) & MAGNITUDE);
    }
    largest = greatest(largest);
    int scale = scale_of(largest, digits);
    float power, rest, factor = value_factor(largest, scale, digits);
    powers_of(power, rest, scale);
    if (of_values && !(factor > 0.0f)) {
        power = 0.0f;
    }
    size_t block = size_t(matrix) * (of_queries ? p.tiles : room.blocks) + tile;
    if (own == 0) {
        int *to = of_queries ? reinterpret_cast<int *>(room.of_queries) + block * ROWS : reinterpret_cast<int *>(room.numbers) + block * (2 * KEYS);
        to[row + (of_values ? KEYS : 0)] = of_values ? __float_as_int(factor) : far(scale);
    }
#pragma unroll 4
    for (uint column = own; column < wide; column += 4) {
        own_line[column] = own_line[column] * power * rest;
    }
    __syncthreads();
    // A task has 16 columns of a line, or 16 keys of a column.
    uint4 *to = of_queries ? room.queries + block * room.of_tile : of_values ? room.values + block * room.of_values : room.keys + block * room.of_tile;
#pragma unroll 1
    for (uint task = threadIdx.x; task < 4 * wide; task += 256) {
        uint words[4][3], chunk = of_values ? task / wide : task / ROWS, other = of_values ? task % wide : task % ROWS;
#pragma unroll
        for (uint w = 0; w < 4; w++) {
            float scaled[4];
#pragma unroll
            for (uint e = 0; e < 4; e++) {
                scaled[e] = of_values ? read[(chunk * 16 + 2 * w + e / 2 * 8 + e % 2) * PITCH_OF_LINES + other]
                                      : read[other * PITCH_OF_LINES + chunk * 16 + 4 * w + e];
            }
            digits_of(words[w], scaled, digits);
        }
        uint each = of_values ? wide : ROWS;
#pragma unroll
        for (uint d = 0; d < 3; d++) {
            if (d < digits) {
                uint at = ((chunk / 4 * digits + digits - 1 - d) * 4 + chunk % 4) * each + other;
                to[at] = make_uint4(words[0][d], words[1][d], words[2][d], words[3][d]);
            }
        }
    }
}

// Returns x·2^e, for integers x up to 2^53, rounded once. The first product is exact, or infinite as the second is. If e is that of a
// line that isn't finite, x is 0 and the second factor infinite, which gives NaN.
INLINE float times_power(const float x, const int e) {
    int near = max(min(e, 127), -126), rest = max(min(e - near, 128), -127);
    return x * of_bits(uint(near + 127) << 23) * of_bits(uint(rest + 127) << 23);
}

// Whether x lies between 2^-60 and 2^60, or is 0.
INLINE bool is_common(const float x) {
    uint e = bits(x) & MAGNITUDE;
    return e == 0 || e - (67u << 23) <= 120u << 23;
}

// Whether lines have a scale such that 2 to any two of them is a normal number, and so are totals times that.
INLINE bool is_common(const int scale) {
    return uint(scale + 37) <= 100;
}

// Loads two squares of 8 lines and 32 bytes.
INLINE void load_two(uint (&one)[2], uint (&other)[2], const uint4 *line) {
    uint to[4];
    load_squares(to, line);
    one[0] = to[0];
    one[1] = to[1];
    other[0] = to[2];
    other[1] = to[3];
}

// Sums of digits' products by i + j, for a number of squares of 8 keys or columns.
template <uint SQUARES>
struct Sums {
    int of[5][SQUARES][4];

    // Adds the products of digits 1 and 2 of 16 rows and of all keys or columns.
    INLINE void add_lower(const uint (&a)[3][4], const uint (&b)[3][SQUARES][2]) {
#pragma unroll
        for (uint i = 0; i < 4 * SQUARES; i++) {
            // Neighbours add to different sums: 2, 3, 4, 3.
            uint pair = i / SQUARES, left = 1 + pair / 2, right = pair % 3 == 0 ? 1 : 2, square = i % SQUARES;
            add_products(of[left + right][square], a[left], b[right][square][0], b[right][square][1]);
        }
    }

    // Adds the others.
    INLINE void add_highest(const uint (&a)[3][4], const uint (&b)[3][SQUARES][2]) {
#pragma unroll
        for (uint i = 0; i < 5 * SQUARES; i++) {
            uint pair = i / SQUARES, left = pair < 3 ? pair : 0, right = pair < 3 ? 0 : pair - 2, square = i % SQUARES;
            add_products(of[left + right][square], a[left], b[right][square][0], b[right][square][1]);
        }
    }

    // Joins the sums of a result, which have up to 24 bits, and rounds the total.
    INLINE float joined(const uint i) const {
        long long high = of[0][i / 4][i % 4] * 256 + of[1][i / 4][i % 4], low = of[3][i / 4][i % 4] * 256 + of[4][i / 4][i % 4];
        return static_cast<float>(high * 0x1000000 + (static_cast<long long>(of[2][i / 4][i % 4]) * 0x10000 + low));
    }
};

// Copies that complete a phase of a barrier. One thread requests them from the copy engine where there is one; elsewhere all threads copy,
// and wait for all copies but those of the last group.
struct Arrival {
    uint barrier;

    INLINE void expect(const uint chunks) const {
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0) {
            Barrier::expect(barrier, 16 * chunks);
        }
#endif
    }
    INLINE void copy(uint4 *to, const uint4 *from, const uint chunks) const {
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0) {
            copy_bulk(shared_at(to), from, 16 * chunks, barrier);
        }
#else
#pragma unroll 1
        for (uint i = threadIdx.x; i < chunks; i += 2 * ROWS) {
            copy_chunk(to + i, from + i);
        }
#endif
    }
    INLINE void wait(const uint phase) const {
#if __CUDA_ARCH__ >= 900
        Barrier::wait(barrier, phase);
#else
        arrived<1>();
        __syncthreads();
#endif
    }
};

// A tile of 64 rows that share keys, all keys. A warp has 16 rows. As tensor cores lay out results, a thread has rows `lane / 4` and 8
// more, and of each 8 keys or columns two from `lane % 4 * 2` on. Of operands it has 4 bytes from `lane % 4 * 4` on, so keys of values
// lie in pairs (`Room`), and weights become an operand where they are. While one of a block's operands is used, the next one
// travels to shared memory.
//
// Digits are numbered from the highest of three. Numbers of two digits lack the first, whose products are left out.
template <uint DIGITS>
INLINE void whole(const Whole &p, const uint has, const Table &t) {
    const bool three = DIGITS == 3;
    const uint lower = DIGITS - 2;
#ifdef __CUDA_ARCH__
    extern __shared__ uint4 chunks[];
#else
    uint4 *chunks = reinterpret_cast<uint4 *>(pool);
#endif
    const Room room(p, DIGITS);
    uint warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // Eight columns of padding keep the rows of results in different banks.
    uint columns = room.columns, pitch = columns + 8;
    uint4 *queries = chunks, *keys = queries + room.of_tile, *values = keys + room.of_tile;
    // Of two blocks.
    uint4 *numbers = values + room.of_values;
    float *results = reinterpret_cast<float *>(numbers + 2 * room.OF_NUMBERS) + (warp * 16 + lane / 4) * pitch + lane % 4 * 2;
    // The last tiles start first: if keys are hidden, they see the most.
    uint matrix = blockIdx.x % p.matrices, tile = p.tiles - 1 - blockIdx.x / p.matrices;
    uint first = tile * ROWS, last = min(first + ROWS, p.rows) - 1;
    auto visible = [&](const uint query) {
        return has & HIDDEN ? min(p.keys, max(query + p.lead, p.queries) - p.queries) : p.keys;
    };
    // The last row of one head sees the most keys.
    uint blocks = ((first / p.queries == last / p.queries ? visible(last % p.queries) : p.keys) + KEYS - 1) / KEYS;
    Arrival of_keys, of_block;
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(8) unsigned long long barriers[2];
    of_keys.barrier = shared_at(barriers);
    of_block.barrier = of_keys.barrier + 8;
    if (threadIdx.x == 0) {
        Barrier::start(of_keys.barrier, 1);
        Barrier::start(of_block.barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
#endif
    auto bring_keys = [&](const uint block) {
        if (block < blocks) {
            size_t at = size_t(matrix) * room.blocks + block;
            of_keys.expect(room.of_tile + room.OF_NUMBERS + (block == 0 ? room.of_tile : 0));
            of_keys.copy(keys, room.keys + at * room.of_tile, room.of_tile);
            of_keys.copy(numbers + block % 2 * room.OF_NUMBERS, room.numbers + at * room.OF_NUMBERS, room.OF_NUMBERS);
        }
    };
    auto bring_values = [&](const uint block) {
        if (block < blocks) {
            of_block.expect(room.of_values);
            of_block.copy(values, room.values + (size_t(matrix) * room.blocks + block) * room.of_values, room.of_values);
        }
        end_group();
    };
    bring_keys(0);
    if (blocks > 0) {
        of_keys.copy(queries, room.queries + (size_t(matrix) * p.tiles + tile) * room.of_tile, room.of_tile);
    }
    end_group();
    bring_values(0);
    float m[2], l[2], of_row[2];
    uint own_row[2], sees[2];
    int q_scale[2];
    const float *mask[2];
    bool common_rows = is_common(p.scale);
#pragma unroll
    for (uint r = 0; r < 2; r++) {
        m[r] = of_bits(INFINITY | SIGN);
        l[r] = 0.0f;
        own_row[r] = first + warp * 16 + lane / 4 + 8 * r;
        uint row = min(own_row[r], p.rows - 1), query = row % p.queries;
        sees[r] = visible(query);
        q_scale[r] = reinterpret_cast<const int *>(room.of_queries)[(size_t(matrix) * p.tiles + tile) * ROWS + own_row[r] % ROWS];
        of_row[r] = of_bits(uint(127 - q_scale[r]) << 23);
        common_rows = common_rows && is_common(q_scale[r]);
        mask[r] = p.mask + size_t(query) * p.mask_row;
#pragma unroll 1
        for (uint i = 0, rest = (matrix * p.rows + row) / p.queries; i < p.axes; i++) {
            uint length = t.words[2 * i];
            mask[r] += size_t(rest % length) * t.words[2 * i + 1];
            rest /= length;
        }
#pragma unroll 1
        for (uint column = 0; column < columns; column += 8) {
            *reinterpret_cast<float2 *>(results + 8 * r * pitch + column) = make_float2(0.0f, 0.0f);
        }
    }
#pragma unroll 1
    for (uint block = 0; block < blocks; block++) {
        const int *of_all = reinterpret_cast<const int *>(numbers + block % 2 * room.OF_NUMBERS);
        const int *scales = of_all + lane % 4 * 2;
        const float *factors = reinterpret_cast<const float *>(scales + KEYS);
        // Scores, then weights: of key 8·i + lane % 4 · 2 + e of the block, x[r][2·i + e].
        float x[2][16];
        of_keys.wait(block % 2);
#pragma unroll
        for (uint half = 0; half < 2; half++) {
            Sums<4> sums = {};
#pragma unroll 1
            for (uint step = 0; step < 2 * room.slices; step++) {
                uint a[3][4], b[3][4][2];
                const uint4 *of_queries = queries + (step / 2 * (DIGITS * 4) + step % 2 * 2 + lane / 16) * ROWS + warp * 16 + lane % 16;
                const uint4 *here = keys + (step / 2 * (DIGITS * 4) + step % 2 * 2 + lane / 8 % 2) * KEYS + half * 32 + lane / 16 * 8 + lane % 8;
                auto bring_digit = [&](const uint i, const uint place) {
                    load_squares(a[i], of_queries + 4 * place * ROWS);
                    load_two(b[i][0], b[i][1], here + 4 * place * KEYS);
                    load_two(b[i][2], b[i][3], here + 4 * place * KEYS + 16);
                };
                bring_digit(1, lower);
                bring_digit(2, lower + 1);
                sums.add_lower(a, b);
                if (three) {
                    bring_digit(0, 0);
                    sums.add_highest(a, b);
                }
            }
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                x[i % 4 / 2][half * 8 + i / 4 * 2 + i % 2] = sums.joined(i);
            }
        }
        __syncthreads();
        bring_keys(block + 1);
        end_group();
        bool common = common_rows && !(has & MASK) && (block + 1) * KEYS <= min(sees[0], sees[1]);
        common = __all_sync(ALL, common & is_common(of_all[lane]) & is_common(of_all[lane + 32]));
        if (common) {
            // Powers of two of a common size times p.scale are exact, and so are the totals times such powers.
#pragma unroll
            for (uint i = 0; i < 32; i++) {
                float of_key = of_bits(uint(127 - scales[i % 16 / 2 * 8 + i % 2]) << 23) * p.scale;
                x[i / 16][i % 16] = x[i / 16][i % 16] * of_row[i / 16] * of_key;
            }
        } else {
            // A loop over local memory keeps this code small.
            float each[32];
#pragma unroll
            for (uint i = 0; i < 32; i++) {
                each[i] = x[i / 16][i % 16];
            }
#pragma unroll 1
            for (uint i = 0; i < 32; i++) {
                uint key = i % 16 / 2 * 8 + i % 2, at = block * KEYS + key + lane % 4 * 2, visible = i < 16 ? sees[0] : sees[1];
                float score = times_power(each[i], -(i < 16 ? q_scale[0] : q_scale[1]) - scales[key]) * p.scale;
                if (has & MASK && at < visible) {
                    score = score + (i < 16 ? mask[0] : mask[1])[size_t(at) * p.mask_column];
                }
                each[i] = at < visible ? score : of_bits(INFINITY | SIGN);
            }
#pragma unroll
            for (uint i = 0; i < 32; i++) {
                x[i / 16][i % 16] = each[i];
            }
        }
        uint weights[2][3][4];
        float2 merge[2];
        float factor[2];
        int power[2];
        bool rare = false;
#pragma unroll
        for (uint r = 0; r < 2; r++) {
            float most = of_bits(INFINITY | SIGN), lanes[8];
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                most = fmaxf(most, x[r][i]);
            }
            most = greatest(most);
            float base = most == of_bits(INFINITY | SIGN) ? 0.0f : most;
            uint largest = 0;
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                float own = weight(x[r][i] - base);
                lanes[i % 8] = i < 8 ? own : lanes[i % 8] + own;
                x[r][i] = own * factors[i / 2 * 8 + i % 2];
                largest = max(largest, bits(x[r][i]) & MAGNITUDE);
            }
            // SUM: numbers that are 32 apart, then 16, 8, 4, 2 and 1.
            float two[2];
#pragma unroll
            for (uint e = 0; e < 2; e++) {
                two[e] = (lanes[e] + lanes[4 + e]) + (lanes[2 + e] + lanes[6 + e]);
                two[e] = two[e] + __shfl_xor_sync(ALL, two[e], 2);
                two[e] = two[e] + __shfl_xor_sync(ALL, two[e], 1);
            }
            merge[r] = merged(m[r], l[r], most, two[0] + two[1]);
            int scale = scale_of(greatest(largest), DIGITS);
            float high, rest;
            powers_of(high, rest, scale);
            power[r] = -far(scale) - value_scale(DIGITS);
            // Otherwise totals times 2^power are exact, and so is the product of both factors. A skipped block's first factor is below 0.
            rare = rare || uint(power[r] + 60) > 120 || merge[r].x < 0.0f || !is_common(merge[r].y);
            factor[r] = of_bits(uint(127 + power[r]) << 23) * merge[r].y;
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                float scaled[4];
                uint words[3];
#pragma unroll
                for (uint e = 0; e < 4; e++) {
                    scaled[e] = x[r][4 * i + e] * high * rest;
                }
                digits_of(words, scaled, DIGITS);
#pragma unroll
                for (uint d = 0; d < 3; d++) {
                    weights[i / 2][d][r + i % 2 * 2] = words[2 - d];
                }
            }
        }
        common = __all_sync(ALL, !rare);
        of_block.wait(block % 2);
#pragma unroll 1
        for (uint column = 0; column < columns; column += 16) {
            // Of a thread's rows, two results each of the first and of the last eight columns. They are read before the products wait for theirs.
            float2 now[4];
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                now[i] = *reinterpret_cast<float2 *>(results + i % 2 * 8 * pitch + column + i / 2 * 8);
            }
            Sums<2> sums = {};
            const uint4 *here = values + lane / 8 % 2 * columns + column + lane / 16 * 8 + lane % 8;
#pragma unroll
            for (uint half = 0; half < 2; half++) {
                uint b[3][2][2];
                load_two(b[1][0], b[1][1], here + (4 * lower + half * 2) * columns);
                load_two(b[2][0], b[2][1], here + (4 * lower + 4 + half * 2) * columns);
                sums.add_lower(weights[half], b);
                if (three) {
                    load_two(b[0][0], b[0][1], here + half * 2 * columns);
                    sums.add_highest(weights[half], b);
                }
            }
            float more[8];
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                more[i] = sums.joined(i);
            }
            if (common) {
#pragma unroll
                for (uint i = 0; i < 4; i++) {
                    now[i].x = now[i].x * merge[i % 2].x + more[2 * i] * factor[i % 2];
                    now[i].y = now[i].y * merge[i % 2].x + more[2 * i + 1] * factor[i % 2];
                }
            } else {
#pragma unroll
                for (uint i = 0; i < 4; i++) {
                    now[i].x = merged_result(now[i].x, times_power(more[2 * i], power[i % 2]), merge[i % 2]);
                    now[i].y = merged_result(now[i].y, times_power(more[2 * i + 1], power[i % 2]), merge[i % 2]);
                }
            }
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                *reinterpret_cast<float2 *>(results + i % 2 * 8 * pitch + column + i / 2 * 8) = now[i];
            }
        }
        __syncthreads();
        bring_values(block + 1);
    }
#pragma unroll
    for (uint r = 0; r < 2; r++) {
        float *y = p.y + (size_t(matrix) * p.rows + own_row[r]) * p.value_width + lane % 4 * 2;
#pragma unroll 1
        for (uint column = 0; own_row[r] < p.rows && column < columns; column += 8) {
#pragma unroll 1
            for (uint e = 0; e < 2; e++) {
                if (column + lane % 4 * 2 + e < p.value_width) {
                    y[column + e] = l[r] == 0.0f ? 0.0f : canonical(results[8 * r * pitch + column + e] / l[r]);
                }
            }
        }
    }
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_whole_3(const Whole p, const uint has, TABLE t) {
    begin();
    whole<3>(p, has, t);
}

extern "C" __global__ void __launch_bounds__(128, 3) attention_whole_2(const Whole p, const uint has, TABLE t) {
    begin();
    whole<2>(p, has, t);
}
#endif
