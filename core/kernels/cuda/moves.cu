// Operations without arithmetic: transpose, concat, embedding, cast.
#include "glsl.cuh"
#include "../vulkan/half.glsl"

typedef unsigned long long ulong64;

struct Arguments {
    const void *x;
    void *y;
    // The table, for each of the axes that are not spoken of below, from the last to the first: its size, the units of x and of y between
    // neighbours.
    const void *outer;
    const void *ids;
    // Not 0 where an id is wrong.
    const uint *flag;
    // Where wrong ids are said: the complement of the first one's position, the id in two words, the table's rows.
    uint *fault;
    uint rank;
    // transpose: i is below m and j below n. Else n units, ids or elements.
    uint m, n;
    // transpose: squares along both; elements between neighbours along j of x and along i of y.
    uint m_squares, n_squares, x_row, y_row;
    // Units of a row. check: 1 where it is the last step.
    uint inner;
    // Of the table.
    uint rows;
};

// As specialization constants elsewhere. `function`: 0 copy, 1 gather, 2 check, 3 collect, 4 transpose, 5 cast. `bytes` of a unit:
// 2, 4 or 16, of an element in a transposition: 2, 4 or 8. `kind`: dtype::DType's number of ids. `from`, `to`: those of a cast.
struct Choice {
    uint function, bytes, kind, from, to, vector;
};

const uint GATHER = 1, COLLECT = 3;
const uint F32 = 0, F16 = 1, BF16 = 2, I32 = 3, I64 = 4, U32 = 5;
// Ids that a block of threads checks.
const uint CHECKED = 16384;

INLINE ulong64 id(const Arguments &s, const uint kind, const uint i) {
    if (kind == I64) {
        return static_cast<const ulong64 *>(s.ids)[i];
    }
    uint v = static_cast<const uint *>(s.ids)[i];
    return kind == I32 ? ulong64((long long)(int(v))) : v;
}

// Looks for the first id outside the table: among CHECKED of them, or among what such blocks found. The complement of its position
// goes to y.
extern "C" __global__ void __launch_bounds__(256) check(const Arguments s, const Choice c, TABLE t) {
#ifdef __CUDA_ARCH__
    __shared__ uint worst;
#else
    uint &worst = *reinterpret_cast<uint *>(pool);
#endif
    if (threadIdx.x == 0) {
        worst = 0;
    }
    __syncthreads();
    uint first = blockIdx.x * CHECKED, found = 0;
    uint end = c.function == COLLECT ? s.n : min(s.n - first, CHECKED) + first;
    for (uint i = first + threadIdx.x; i < end; i += 256) {
        found = max(found, c.function == COLLECT ? static_cast<const uint *>(s.x)[i] : id(s, c.kind, i) >= s.rows ? ~i : 0);
    }
    atomicMax(&worst, found);
    __syncthreads();
    if (threadIdx.x > 0) {
        return;
    }
    static_cast<uint *>(s.y)[blockIdx.x] = worst;
    if (s.inner == 1 && worst != 0) {
        // Nobody else looks: say it.
        ulong64 v = id(s, c.kind, ~worst);
        s.fault[0] = worst;
        s.fault[1] = uint(v);
        s.fault[2] = uint(v >> 32);
        s.fault[3] = s.rows;
    }
}

// Rows are found by strides, or by ids.
template <class UNIT>
INLINE void copy_units(const Arguments &s, const Choice &c, const Table &t) {
    uint first = blockIdx.x * 1024 + threadIdx.x;
    UNIT v[4];
    size_t to[4];
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        uint i = min(first + 256 * k, s.n - 1), row = i / s.inner, column = i - row * s.inner;
        size_t from = column;
        to[k] = column;
        if (c.function == GATHER) {
            from += size_t(id(s, c.kind, row)) * s.inner;
            to[k] = i;
        } else {
#pragma unroll 1
            for (uint d = 0; d < s.rank; d++) {
                uint size = t.words[3 * d], rest = row / size;
                from += size_t(row - rest * size) * t.words[3 * d + 1];
                to[k] += size_t(row - rest * size) * t.words[3 * d + 2];
                row = rest;
            }
        }
        v[k] = static_cast<const UNIT *>(s.x)[from];
    }
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        if (first + 256 * k < s.n) {
            static_cast<UNIT *>(s.y)[to[k]] = v[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) copy(const Arguments s, const Choice c, TABLE t) {
    if (c.function == GATHER && *s.flag != 0) {
        return;
    }
    switch (c.bytes) {
    case 2: copy_units<unsigned short>(s, c, t); break;
    case 4: copy_units<uint>(s, c, t); break;
    default: copy_units<uint4>(s, c, t);
    }
}

// Two axes exchanged, by squares of 32 × 32 through shared memory: y[i][j] = x[j][i], for each index of the axes around them.
template <class UNIT>
INLINE void exchange(const Arguments &s, const Table &t) {
#ifdef __CUDA_ARCH__
    __shared__ UNIT square[32][33];
#else
    UNIT (&square)[32][33] = *reinterpret_cast<UNIT (*)[32][33]>(pool);
#endif
    uint column = threadIdx.x % 32, row = threadIdx.x / 32;
    uint rest = blockIdx.x / s.n_squares, j0 = (blockIdx.x - rest * s.n_squares) * 32;
    uint other = rest / s.m_squares, i0 = (rest - other * s.m_squares) * 32;
    size_t of_x = 0, of_y = 0;
#pragma unroll 1
    for (uint d = 0; d < s.rank; d++) {
        uint size = t.words[3 * d], next = other / size;
        of_x += size_t(other - next * size) * t.words[3 * d + 1];
        of_y += size_t(other - next * size) * t.words[3 * d + 2];
        other = next;
    }
    const UNIT *x = static_cast<const UNIT *>(s.x) + of_x + i0 + column;
    UNIT *y = static_cast<UNIT *>(s.y) + of_y + j0 + column;
#pragma unroll
    for (uint j = row; j < 32; j += 8) {
        if (i0 + column < s.m && j0 + j < s.n) {
            square[j][column] = x[size_t(j0 + j) * s.x_row];
        }
    }
    __syncthreads();
#pragma unroll
    for (uint i = row; i < 32; i += 8) {
        if (i0 + i < s.m && j0 + column < s.n) {
            y[size_t(i0 + i) * s.y_row] = square[column][i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) transpose(const Arguments s, const Choice c, TABLE t) {
    switch (c.bytes) {
    case 2: exchange<unsigned short>(s, t); break;
    case 4: exchange<uint>(s, t); break;
    default: exchange<ulong64>(s, t);
    }
}

// One element as bits, to the bits of another type. Floats are truncated and saturate, NaN becomes 0; integers wrap.
INLINE ulong64 convert(const uint from, const uint to, const ulong64 v) {
    uint u = uint(v);
    if (from >= I32) {
        long long wide = from == I64 ? (long long)(v) : from == I32 ? (long long)(int(u)) : (long long)(u);
        if (to >= I32) {
            return ulong64(wide);
        }
        u = bits(__ll2float_rn(wide));
    } else if (from == F16) {
        u = widen_f16(u);
    } else if (from == BF16) {
        u = widen_bf16(u);
    }
    float x = of_bits(u);
    switch (to) {
    case F32: return bits(canonical(x));
    case F16: return narrow_f16(u);
    case BF16: return narrow_bf16(u);
    case I32: return uint(__float2int_rz(x));
    case U32: return __float2uint_rz(x);
    default: return is_nan(x) ? 0 : ulong64(__float2ll_rz(x));
    }
}

extern "C" __global__ void __launch_bounds__(256) cast(const Arguments s, const Choice c, TABLE t) {
    uint first = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        uint i = first + 256 * k;
        if (i >= s.n) {
            return;
        }
        ulong64 v;
        if (c.from == F16 || c.from == BF16) {
            v = static_cast<const unsigned short *>(s.x)[i];
        } else if (c.from == I64) {
            v = static_cast<const ulong64 *>(s.x)[i];
        } else {
            v = static_cast<const uint *>(s.x)[i];
        }
        v = convert(c.from, c.to, v);
        if (c.to == F16 || c.to == BF16) {
            static_cast<unsigned short *>(s.y)[i] = (unsigned short)(v);
        } else if (c.to == I64) {
            static_cast<ulong64 *>(s.y)[i] = v;
        } else {
            static_cast<uint *>(s.y)[i] = uint(v);
        }
    }
}
