#version 450
// Batched products of fixed-point numbers, as fixed.comp computes them, by a device's matrix units
// (VK_KHR_cooperative_matrix). Digits are multiplied as signed bytes and added up in 32 bits. Four subgroups compute a
// tile of 64 × 64, 32 × 32 each.

#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "contract.glsl"
#include "memory.glsl"
#include "fixed.glsl"
#include "fixed_products.glsl"

layout(local_size_x_id = 10) in;
// Four subgroups.
layout(constant_id = 10) const uint THREADS = 128;
// The device multiplies matrices of 16 × K by K × 16. K is 16 or 32.
layout(constant_id = 13) const uint K = 32;
const uint M = 16, N = 16;

const uint PART = 32, SUBGROUPS = 4, TILE = 2 * PART, LINES = 2 * TILE;
const uint ROWS = PART / M, COLUMNS = PART / N;
// Digits i of a and j of b belong to group i + j.
const uint GROUPS = 2 * DIGITS - 1;
// What a step multiplies along k, in chunks of 16 bytes. Three digits leave fewer registers for it.
const uint STEP = DIGITS == 3 ? 2 : 4;
// The chunks from one line to the next in shared memory: an odd number, so neighbouring lines are in different banks.
const uint PITCH = STEP + 1;
// The chunks of a step in an operand's plane, and those of them that a thread copies.
const uint CHUNKS = TILE * STEP, OWN = (CHUNKS + THREADS - 1) / THREADS;
// The chunks of a step in shared memory, which holds two steps.
const uint HELD = DIGITS * LINES * PITCH;
// The elements of a matrix of sums that a thread finishes, and the chunks from one of its rows to the next in shared memory.
const uint ELEMENTS = M * N * SUBGROUPS / THREADS, SUMS_PITCH = N / 4 + 1;

#define LEFT coopmat<int8_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA>
#define RIGHT coopmat<int8_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB>
#define SUMS coopmat<int, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>

// The digits of two steps, [step][plane][line of a, then of b][chunk]; later the matrices of sums of a place, for each subgroup.
shared uvec4 pool[2 * HELD];

// The scales of the tile's rows, and of its columns.
shared int scales[LINES];

// A plane of a block, [chunk][line].
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Plane {
    uvec4 v[];
};

// A thread's chunks of the next step: of each plane of a, then of b.
uvec4 own[2 * DIGITS * OWN];

// Whether a thread has chunks. Large subgroups have more threads than a plane has chunks.
bool copies() {
    return THREADS <= CHUNKS || gl_LocalInvocationIndex < CHUNKS;
}

// Reads a thread's chunks of a step. Those of both operands are at these addresses.
void read(const uvec2 of_a, const uvec2 of_b) {
    if (copies()) {
        [[unroll]] for (uint i = 0u; i < 2u * DIGITS * OWN; i++) {
            uint plane = i / OWN % DIGITS, further = i % OWN * THREADS;
            own[i] = Plane(i < DIGITS * OWN ? of_a : of_b).v[plane * PLANE + further / TILE * 128u + further % TILE];
        }
    }
}

// Stores them from a place in shared memory.
void share(const uint to) {
    if (copies()) {
        uint first = to + gl_LocalInvocationIndex % TILE * PITCH + gl_LocalInvocationIndex / TILE;
        [[unroll]] for (uint i = 0u; i < 2u * DIGITS * OWN; i++) {
            uint line = i / OWN % DIGITS * LINES + i / (DIGITS * OWN) * TILE, further = i % OWN * THREADS;
            pool[first + (line + further % TILE) * PITCH + further / TILE] = own[i];
        }
    }
}

// Returns the total of the sums at a word of shared memory, one for each group of digits. It fits in 64 bits.
Total joined(const uint word) {
    uint low = 0u, high = 0u;
    [[unroll]] for (uint group = 0u; group < GROUPS; group++) {
        int x = int(pool[group * (M * SUMS_PITCH) + word / 4u][word % 4u]);
        uint carry;
        high = high << 8 | low >> 24;
        low = uaddCarry(low << 8, uint(x), carry);
        high += uint(x >> 31) + carry;
    }
    return Total(low, high, uint(int(high) >> 31));
}

Total added(const Total t, const Total u) {
    Total sum;
    uint carry, carry_of_carry;
    sum.low = uaddCarry(t.low, u.low, carry);
    sum.middle = uaddCarry(t.middle, carry, carry);
    sum.middle = uaddCarry(sum.middle, u.middle, carry_of_carry);
    sum.high = t.high + u.high + carry + carry_of_carry;
    return sum;
}

// Returns the place of an element in the result's tiles: a thread's element e in its subgroup's matrix i.
uint place_of(const uint i, const uint e) {
    uint element = e * (THREADS / SUBGROUPS) + gl_SubgroupInvocationID;
    uint row = gl_SubgroupID / 2u * PART + i / COLUMNS * M + element / N;
    uint column = gl_SubgroupID % 2u * PART + i % COLUMNS * N + element % N;
    return (gl_WorkGroupID.x * TILE + row) * TILE + column;
}

void main() {
    uint tiles_m = (w0 + TILE - 1u) / TILE, tiles_n = (w1 + TILE - 1u) / TILE;
    uint tile = gl_WorkGroupID.x % (tiles_m * tiles_n), batch = gl_WorkGroupID.x / (tiles_m * tiles_n);
    // Tiles that run at the same time share lines: they are taken from eight rows of tiles, column by column.
    uint first = tile / (8u * tiles_n) * 8u, rows = min(8u, tiles_m - first), of_rows = tile - first * tiles_n;
    uint first_row = (first + of_rows % rows) * TILE, first_column = of_rows / rows * TILE;
    uvec3 origin = origins(batch);
    uvec2 from = uvec2(origin.x * ((w0 + 127u) / 128u) + first_row / 128u, origin.y * ((w1 + 127u) / 128u) + first_column / 128u) * w2;
    uvec2 lines = uvec2(first_row, first_column) % 128u;
    uint part_row = gl_SubgroupID / 2u * PART, part_column = gl_SubgroupID % 2u * PART;

    SUMS sums[GROUPS * ROWS * COLUMNS];
    [[unroll]] for (uint i = 0u; i < GROUPS * ROWS * COLUMNS; i++) {
        sums[i] = SUMS(0);
    }
    // A block has one step or two.
    const uint OF_BLOCK = 4 / STEP;
    uint own_line = gl_LocalInvocationIndex / TILE * 128u + gl_LocalInvocationIndex % TILE;
    uvec2 of_a = at(p0, (from.x + w3) * (DIGITS * PLANE) + lines.x + own_line, 4u);
    uvec2 of_b = at(p1, (from.y + w3) * (DIGITS * PLANE) + lines.y + own_line, 4u);
    read(of_a, of_b);
    [[dont_unroll]] for (uint step_ = OF_BLOCK * w3; step_ < OF_BLOCK * w4; step_++) {
        // Nobody reads from there any more: the barrier of the step before was behind that.
        uint held = step_ % 2u * HELD;
        share(held);
        // While a step is multiplied, the next one is on its way. Before the barrier its loads have more time, behind it two digits
        // are 10 % faster.
        if (DIGITS == 2u) {
            barrier();
        }
        if (step_ + 1u < OF_BLOCK * w4) {
            uint by = OF_BLOCK == 2u && step_ % 2u == 0u ? 256u : (DIGITS * PLANE) - (OF_BLOCK - 1u) * 256u;
            of_a = at(of_a, by, 4u);
            of_b = at(of_b, by, 4u);
            read(of_a, of_b);
        }
        if (DIGITS == 3u) {
            barrier();
        }
        [[unroll]] for (uint k = 0u; k < STEP; k += K / 16u) {
            RIGHT right[DIGITS * COLUMNS];
            [[unroll]] for (uint i = 0u; i < DIGITS * COLUMNS; i++) {
                uint line = i / COLUMNS * LINES + TILE + part_column + i % COLUMNS * N;
                coopMatLoad(right[i], pool, held + line * PITCH + k, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
            }
            [[unroll]] for (uint i = 0u; i < DIGITS * ROWS; i++) {
                LEFT left;
                uint line = i / ROWS * LINES + part_row + i % ROWS * M;
                coopMatLoad(left, pool, held + line * PITCH + k, PITCH, gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint j = 0u; j < DIGITS * COLUMNS; j++) {
                    uint to = ((i / ROWS + j / COLUMNS) * ROWS + i % ROWS) * COLUMNS + j % COLUMNS;
                    sums[to] = coopMatMulAdd(left, right[j], sums[to]);
                }
            }
        }
    }

    // A device has its own order of a matrix's elements, so they pass through shared memory.
    [[dont_unroll]] for (uint i = gl_LocalInvocationIndex; i < LINES; i += THREADS) {
        uint line = i < TILE ? first_row + i : first_column + i - TILE;
        if (line < (i < TILE ? w0 : w1)) {
            scales[i] = int(load_word(i < TILE ? p2 : p3, (i < TILE ? origin.x * w0 : origin.y * w1) + line));
        }
    }
    barrier();
    uint held = gl_SubgroupID * (GROUPS * M * SUMS_PITCH);
    [[unroll]] for (uint i = 0u; i < ROWS * COLUMNS; i++) {
        [[unroll]] for (uint group = 0u; group < GROUPS; group++) {
            coopMatStore(sums[group * ROWS * COLUMNS + i], pool, held + group * (M * SUMS_PITCH), SUMS_PITCH,
                gl_CooperativeMatrixLayoutRowMajor);
        }
        subgroupBarrier();
        [[dont_unroll]] for (uint e = 0u; e < ELEMENTS; e++) {
            uint place = place_of(i, e), own_row = place / TILE % TILE, own_column = place % TILE;
            uint element = e * (THREADS / SUBGROUPS) + gl_SubgroupInvocationID;
            Total t = joined(4u * (held + element / N * SUMS_PITCH) + element % N);
            if (!FIRST) {
                t = added(t, Total(load_word(totals, 3u * place), load_word(totals, 3u * place + 1u), load_word(totals, 3u * place + 2u)));
            }
            uint row = first_row + own_row, column = first_column + own_column;
            if (!LAST) {
                store_word(totals, 3u * place, t.low);
                store_word(totals, 3u * place + 1u, t.middle);
                store_word(totals, 3u * place + 2u, t.high);
            } else if (row < w0 && column < w1) {
                finish(t, scales[own_row], scales[TILE + own_column], batch, row, column, origin);
            }
        }
        subgroupBarrier();
    }
}
