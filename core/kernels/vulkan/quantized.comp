#version 450
// Products of rows with matrices of quantised blocks, and the conversion of blocks to f32.
//
// STAGE 0 cuts rows of x into integers of eight bits, with a scale and a sum for each unit of 32 elements. STAGE 1 multiplies a
// few rows with blocks as they lie in memory: a thread has one unit, and then one chain. For more rows STAGE 2 unpacks blocks,
// and STAGE 3 multiplies tiles of 64 rows of the matrix by 32 rows of x. STAGE 4 converts blocks to f32. Sums of integers have no
// order; the multiply-adds of a chain and of a total have that of the contract.

#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "contract.glsl"
#include "half.glsl"
#include "memory.glsl"

const uint THREADS = 128u;
layout(local_size_x = 128) in;
const uint CUT = 0u, FEW = 1u, UNPACK = 2u, TILES = 3u, VALUES = 4u;
layout(constant_id = 10) const uint STAGE = 1;
// contract::BlockFormat's number.
layout(constant_id = 11) const uint FORMAT = 0;
// STAGE 1: the most rows of x in a workgroup.
layout(constant_id = 12) const uint ROWS = 1;

layout(push_constant) uniform Push {
    // Rows of x, or blocks.
    uvec2 from;
    // The cut rows: integers, and the scale and the sum of each unit.
    uvec2 q, q_numbers;
    // The unpacked blocks: elements as bytes, and for each unit d, m, the two scales as halves, the minimum.
    uvec2 w, w_numbers;
    uvec2 y;
    // The result's rows and columns, and the units of a row.
    uint m, n, units;
    // The steps here of all along K: of 128 units in STAGE 1, of 2 in STAGE 3.
    uint begin, end, steps;
    // The matrix's rows in scratch, and the first one's number.
    uint rows, first;
    // Elements of x; units; workgroups, which share the rows of the matrix.
    uint count;
};

// Shared memory. Blocks' bytes come first. In STAGE 1 there follow, for each row of x, the units' sums of products, their
// factors and, with minima, the same of these. In STAGE 4 there follow the units' words and numbers.
const uint RAWS = 1100u, PITCH = 144u;
const uint KINDS = FORMAT == 2u || FORMAT == 4u || FORMAT == 5u || FORMAT == 6u ? 4u : 2u;
// STAGE 3: elements of the matrix, with four words of padding in a row, elements of x, and the numbers of both.
const uint TILE_ROWS = 64u, TILE_COLUMNS = 32u, TILE_PITCH = 20u;
const uint TILE_X = TILE_ROWS * TILE_PITCH, TILE_W_NUMBERS = TILE_X + TILE_COLUMNS * TILE_PITCH;
const uint TILE_X_NUMBERS = TILE_W_NUMBERS + TILE_ROWS * 8u, TILE_POOL = TILE_X_NUMBERS + TILE_COLUMNS * 4u;
shared uint pool[STAGE == 1u ? RAWS + ROWS * KINDS * PITCH : STAGE == 4u ? RAWS + 11u * THREADS : TILE_POOL];

#define RAW(i) pool[i]
#define UNROLL [[unroll]]
#include "quantized.glsl"

void cut() {
    uint thread = gl_LocalInvocationIndex, first_element = gl_WorkGroupID.x * 512u + thread * 4u;
    bool there = first_element < count;
    float x[4];
    uint most = 0u;
    for (uint i = 0u; i < 4u; i++) {
        x[i] = there ? load(from, first_element + i) : 0.0;
        most = max(most, floatBitsToUint(x[i]) & MAGNITUDE);
    }
    pool[thread] = most;
    barrier();
    for (uint i = 0u; i < 8u; i++) {
        most = max(most, pool[(thread & ~7u) + i]);
    }
    if (units_of(FORMAT) == 8u) {
        barrier();
        pool[thread] = most;
        barrier();
        for (uint i = 0u; i < 8u; i++) {
            most = max(most, pool[(thread & ~63u) + 8u * i]);
        }
    }
    bool finite = most < INFINITY, counts = finite && most >= LEAST_BLOCK;
    float scale = counts ? divide(f(most), 127.0) : finite ? 0.0 : f(NAN), factor = counts ? divide(127.0, f(most)) : 0.0;
    uint word = 0u;
    int sum = 0;
    for (uint i = 0u; i < 4u; i++) {
        precise float scaled = x[i] * factor;
        // 1.5·2²³ rounds to an integer, which is the sum's low bits.
        scaled = scaled + 12582912.0;
        int integer = counts ? floatBitsToInt(scaled) - 0x4b400000 : 0;
        word |= (uint(integer) & 255u) << 8u * i;
        sum += integer;
    }
    barrier();
    pool[thread] = uint(sum);
    barrier();
    if (!there) {
        return;
    }
    store_word(q, first_element / 4u, word);
    if (thread % 8u == 0u) {
        for (uint i = 1u; i < 8u; i++) {
            sum += int(pool[thread + i]);
        }
        Word2(at(q_numbers, first_element / 32u, 3u)).v = uvec2(floatBitsToUint(scale), uint(sum));
    }
}

// Copies the bytes of whole blocks to shared memory, in pieces of 16. Returns where the first one begins there.
uint fetch_blocks(const uint start, const uint bytes) {
    uvec2 first_piece = at_byte(from, start);
    uint offset = first_piece.x & 15u;
    first_piece.x -= offset;
    uint pieces = bytes == 0u ? 0u : (offset + bytes + 15u) / 16u;
    for (uint i = gl_LocalInvocationIndex; i < pieces; i += THREADS) {
        uvec4 v = Word4(at(first_piece, i, 4u)).v;
        for (uint k = 0u; k < 4u; k++) {
            pool[4u * i + k] = v[k];
        }
    }
    return offset;
}

// Returns c plus the products of four signed bytes each.
int dot4(const uint a, const uint b, const int c) {
    ivec4 left = ivec4(int(a) << 24, int(a) << 16, int(a) << 8, int(a)) >> 24;
    ivec4 right = ivec4(int(b) << 24, int(b) << 16, int(b) << 8, int(b)) >> 24;
    ivec4 products = left * right;
    return c + products.x + products.y + products.z + products.w;
}

// Where a unit's number is in shared memory.
uint place(const uint row, const uint kind, const uint unit) {
    return RAWS + (row * KINDS + kind) * PITCH + unit + unit / 8u;
}

// Several whole rows of the matrix, or 128 units of one at a time.
void few() {
    uint thread = gl_LocalInvocationIndex, span = clamp(units, 1u, THREADS), whole = THREADS / span;
    uint first_x = gl_WorkGroupID.y * ROWS, rows_x = min(m - first_x, ROWS);
    uint groups = (n + whole - 1u) / whole, of_block = units_of(FORMAT);
    for (uint group = gl_WorkGroupID.x; group < groups; group += count) {
        uint row = group * whole, rows_here = min(n - row, whole);
        float held = 0.0;
        for (uint step_ = begin; step_ < end; step_++) {
            uint first_unit = step_ * THREADS, here = min(units - first_unit, span);
            uint before = (row * units + first_unit) / of_block, blocks = rows_here * here / of_block;
            uint offset = fetch_blocks(before * bytes_of(FORMAT), blocks * bytes_of(FORMAT));
            barrier();
            if (thread < rows_here * here) {
                Unpacked unit = unpack(FORMAT, offset + thread / of_block * bytes_of(FORMAT), thread % of_block);
                for (uint r = 0u; r < rows_x; r++) {
                    uint of_x = (first_x + r) * units + first_unit + thread % span;
                    uvec2 numbers = Word2(at(q_numbers, of_x, 3u)).v;
                    uvec4 low = Word4(at(q, 2u * of_x, 4u)).v, high = Word4(at(q, 2u * of_x + 1u, 4u)).v;
                    int of_first = 0, of_last = 0;
                    [[unroll]] for (uint k = 0u; k < 4u; k++) {
                        of_first = dot4(unit.w[k], low[k], of_first);
                        of_last = dot4(unit.w[k + 4u], high[k], of_last);
                    }
                    precise float factor = unit.d * f(numbers.x), of_minima = unit.m * f(numbers.x);
                    pool[place(r, 0u, thread)] = uint(unit.first * of_first + unit.last * of_last);
                    pool[place(r, 1u, thread)] = floatBitsToUint(factor);
                    if (KINDS == 4u) {
                        pool[place(r, 2u, thread)] = uint(unit.minimum * int(numbers.y));
                        pool[place(r, 3u, thread)] = floatBitsToUint(of_minima);
                    }
                }
            }
            barrier();
            // A chain for each chunk of 256. Its total replaces its first sum.
            uint chunks = (here + 7u) / 8u;
            for (uint task = thread; task < rows_x * rows_here * chunks; task += THREADS) {
                uint chunk = task % chunks, line = task / chunks, r = line / rows_here;
                uint first_of = line % rows_here * span + 8u * chunk, count_of = min(here - 8u * chunk, 8u);
                float p = 0.0;
                int sum = 0, minima = 0;
                for (uint i = first_of; i < first_of + count_of; i++) {
                    sum += int(pool[place(r, 0u, i)]);
                    minima += KINDS == 4u ? int(pool[place(r, 2u, i)]) : 0;
                    if (of_block == 1u || i + 1u == first_of + count_of) {
                        p = fmaz(float(sum), f(pool[place(r, 1u, i)]), p);
                        if (KINDS == 4u) {
                            p = fmaz(float(minima), f(pool[place(r, 3u, i)]), p);
                        }
                        sum = minima = 0;
                    }
                }
                pool[place(r, 0u, first_of)] = floatBitsToUint(p);
            }
            barrier();
            // With several steps there is one row of the matrix, and each thread has at most one total.
            for (uint task = thread; task < rows_x * rows_here; task += THREADS) {
                uint r = task / rows_here, line = task % rows_here, to = (first_x + r) * n + row + line;
                float t = step_ > begin ? held : begin > 0u ? load(y, to) : 0.0;
                for (uint chunk = 0u; chunk < chunks; chunk++) {
                    t = fmaz(f(pool[place(r, 0u, line * span + 8u * chunk)]), 1.0, t);
                }
                held = t;
                if (step_ + 1u == end) {
                    store(y, to, end == steps ? total(t) : t);
                }
            }
            barrier();
        }
    }
}

// 128 units of a matrix: unpacked, or as f32.
void convert() {
    uint thread = gl_LocalInvocationIndex, of_block = units_of(FORMAT), first_unit = gl_WorkGroupID.x * THREADS;
    uint here = min(count - first_unit, THREADS);
    uint offset = fetch_blocks(first_unit / of_block * bytes_of(FORMAT), here / of_block * bytes_of(FORMAT));
    barrier();
    uint words = RAWS + 9u * thread;
    if (thread < here) {
        Unpacked unit = unpack(FORMAT, offset + thread / of_block * bytes_of(FORMAT), thread % of_block);
        if (STAGE == UNPACK) {
            uint to = first_unit + thread;
            Word4(at(w, 2u * to, 4u)).v = uvec4(unit.w[0], unit.w[1], unit.w[2], unit.w[3]);
            Word4(at(w, 2u * to + 1u, 4u)).v = uvec4(unit.w[4], unit.w[5], unit.w[6], unit.w[7]);
            Word4(at(w_numbers, to, 4u)).v = uvec4(floatBitsToUint(unit.d), floatBitsToUint(unit.m),
                uint(unit.first) & 0xffffu | uint(unit.last) << 16, uint(unit.minimum));
        } else {
            precise float low = unit.d * float(unit.first), high = unit.d * float(unit.last), minimum = unit.m * float(unit.minimum);
            [[unroll]] for (uint k = 0u; k < 8u; k++) {
                pool[words + k] = unit.w[k];
            }
            pool[words + 8u] = floatBitsToUint(minimum);
            pool[RAWS + 9u * THREADS + thread] = floatBitsToUint(low);
            pool[RAWS + 10u * THREADS + thread] = floatBitsToUint(high);
        }
    }
    if (STAGE == UNPACK) {
        return;
    }
    barrier();
    for (uint i = thread; i < 32u * here; i += THREADS) {
        uint unit = i / 32u, element = i % 32u;
        float scale = f(pool[RAWS + (9u + element / 16u) * THREADS + unit]), minimum = f(pool[RAWS + 9u * unit + 8u]);
        store(y, first_unit * 32u + i, value_of(pool[RAWS + 9u * unit + element / 4u], element % 4u, scale, minimum, has_minima(FORMAT)));
    }
}

// The vectors of a row's two units in shared memory, or zeros.
void stage_row(const uvec2 of, const uint line, const bool there, const uint unit, const uint part, const uint to) {
    uvec4 v = there && unit < units ? Word4(at(of, 2u * (line * units + unit) + part, 4u)).v : uvec4(0u);
    for (uint k = 0u; k < 4u; k++) {
        pool[to + k] = v[k];
    }
}

// A tile of the result: a thread has four rows of the matrix, 16 apart, by four rows of x, 8 apart.
void tiles() {
    uint thread = gl_LocalInvocationIndex, own_row = thread % 16u, own_x = thread / 16u, of_block = units_of(FORMAT);
    uint first_row = gl_WorkGroupID.y * TILE_ROWS, first_x = gl_WorkGroupID.x * TILE_COLUMNS;
    ivec4 sums[4], minima[4];
    vec4 chains[4], totals[4];
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        sums[i] = minima[i] = ivec4(0);
        chains[i] = totals[i] = vec4(0.0);
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            uint row = first_row + own_row + 16u * j, of_x = first_x + own_x + 8u * i;
            if (begin > 0u && row < rows && of_x < m) {
                totals[i][j] = load(y, of_x * n + first + row);
            }
        }
    }
    [[dont_unroll]] for (uint step_ = begin; step_ < end; step_++) {
        uint first_unit = 2u * step_;
        barrier();
        for (uint i = thread; i < TILE_ROWS * 4u; i += THREADS) {
            uint line = first_row + i / 4u, unit = first_unit + i / 2u % 2u;
            stage_row(w, line, line < rows, unit, i % 2u, i / 4u * TILE_PITCH + i % 4u * 4u);
        }
        uint line = first_x + thread / 4u;
        stage_row(q, line, line < m, first_unit + thread / 2u % 2u, thread % 2u, TILE_X + thread / 4u * TILE_PITCH + thread % 4u * 4u);
        line = first_row + thread / 2u;
        uint unit = first_unit + thread % 2u;
        uvec4 numbers = line < rows && unit < units ? Word4(at(w_numbers, line * units + unit, 4u)).v : uvec4(0u);
        for (uint k = 0u; k < 4u; k++) {
            pool[TILE_W_NUMBERS + 4u * thread + k] = numbers[k];
        }
        if (thread < 2u * TILE_COLUMNS) {
            line = first_x + thread / 2u;
            uvec2 of_x = line < m && unit < units ? Word2(at(q_numbers, line * units + unit, 3u)).v : uvec2(0u);
            pool[TILE_X_NUMBERS + 2u * thread] = of_x.x;
            pool[TILE_X_NUMBERS + 2u * thread + 1u] = of_x.y;
        }
        barrier();
        [[dont_unroll]] for (uint u = 0u; u < min(units - first_unit, 2u); u++) {
            uint w_numbers_at = TILE_W_NUMBERS + 8u * own_row + 4u * u, x_numbers_at = TILE_X_NUMBERS + 4u * own_x + 2u * u;
            [[dont_unroll]] for (uint half_ = 0u; half_ < 2u; half_++) {
                ivec4 scale;
                ivec4 products[4];
                [[unroll]] for (uint j = 0u; j < 4u; j++) {
                    scale[j] = int(pool[w_numbers_at + 128u * j + 2u]) << int(16u - 16u * half_) >> 16;
                    products[j] = ivec4(0);
                }
                [[dont_unroll]] for (uint k = 8u * u + 4u * half_; k < 8u * u + 4u * half_ + 4u; k++) {
                    uint right[4];
                    [[unroll]] for (uint i = 0u; i < 4u; i++) {
                        right[i] = pool[TILE_X + (own_x + 8u * i) * TILE_PITCH + k];
                    }
                    [[unroll]] for (uint j = 0u; j < 4u; j++) {
                        uint left = pool[(own_row + 16u * j) * TILE_PITCH + k];
                        [[unroll]] for (uint i = 0u; i < 4u; i++) {
                            products[i][j] = dot4(left, right[i], products[i][j]);
                        }
                    }
                }
                [[unroll]] for (uint i = 0u; i < 4u; i++) {
                    sums[i] += scale * products[i];
                }
            }
            vec4 d, m_;
            ivec4 minimum;
            [[unroll]] for (uint j = 0u; j < 4u; j++) {
                d[j] = f(pool[w_numbers_at + 128u * j]);
                m_[j] = f(pool[w_numbers_at + 128u * j + 1u]);
                minimum[j] = int(pool[w_numbers_at + 128u * j + 3u]);
            }
            uint next = first_unit + u + 1u;
            bool ends_block = next % of_block == 0u, ends_chunk = next % 8u == 0u || next == units;
            [[unroll]] for (uint i = 0u; i < 4u; i++) {
                float scale = f(pool[x_numbers_at + 32u * i]);
                if (KINDS == 4u) {
                    minima[i] += minimum * int(pool[x_numbers_at + 32u * i + 1u]);
                }
                if (ends_block) {
                    [[unroll]] for (uint j = 0u; j < 4u; j++) {
                        precise float factor = d[j] * scale, of_minima = m_[j] * scale;
                        chains[i][j] = fmaz(float(sums[i][j]), factor, chains[i][j]);
                        if (KINDS == 4u) {
                            chains[i][j] = fmaz(float(minima[i][j]), of_minima, chains[i][j]);
                        }
                    }
                    sums[i] = minima[i] = ivec4(0);
                }
                if (ends_chunk) {
                    [[unroll]] for (uint j = 0u; j < 4u; j++) {
                        totals[i][j] = fmaz(chains[i][j], 1.0, totals[i][j]);
                    }
                    chains[i] = vec4(0.0);
                }
            }
        }
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            uint row = first_row + own_row + 16u * j, of_x = first_x + own_x + 8u * i;
            if (row < rows && of_x < m) {
                store(y, of_x * n + first + row, end == steps ? total(totals[i][j]) : totals[i][j]);
            }
        }
    }
}

void main() {
    if (STAGE == CUT) {
        cut();
    } else if (STAGE == FEW) {
        few();
    } else if (STAGE == TILES) {
        tiles();
    } else {
        convert();
    }
}
