// Operations without arithmetic: transpose, concat, embedding, cast, comparisons, where.
#include "glsl.cuh"
#include "broadcast.cuh"
#include "../vulkan/half.glsl"

struct Arguments {
    const void *x;
    void *y;
    // The table, for each of the axes that are not spoken of below, from the last to the first: its size, the units of x and of y between
    // neighbours. compare, select: the same of x, ids and flag.
    const void *outer;
    const void *ids;
    // Not 0 where an id is wrong.
    const uint *flag;
    // Where wrong ids are said: the complement of the first one's position, the id in two words, the table's rows.
    uint *fault;
    uint rank;
    // transpose: i is below m and j below n. Else n units, ids or elements; copy: of a row, m units are x's, and then the last again;
    // along: m elements of the result have the axis's and all behind it, x_row those behind it. compare: the outcomes of which it is true, as bits: 1 less, 2 equal,
    // 4 greater, 8 unordered.
    uint m, n;
    // transpose: squares along both; elements between neighbours along j of x and along i of y.
    uint m_squares, n_squares, x_row, y_row;
    // Units of a row. check: 1 where it is the last step.
    uint inner;
    // Of the table, or of the axis.
    uint rows;
};

// As specialization constants elsewhere. `function`: 0 copy, 1 gather, 2 check, 3 collect, 4 transpose, 5 cast, 6 gather along an axis, 7 compare, 8 select,
// 9 heads, where `kind` is 1 if rope's pairs are neighbours. `bytes` of a unit: 1, 2, 4 or 16, of an element in a transposition: 2, 4 or 8. `kind`: dtype::DType's number of ids, or of what is compared. `from`, `to`: those of a cast.
struct Choice {
    uint function, bytes, kind, from, to, vector;
};

const uint GATHER = 1, COLLECT = 3, ALONG = 6, HEADS = 9;
// Ids that a block of threads checks.
const uint CHECKED = 16384;

// Units that a thread has at a time.
const uint WIDE = 4;

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
    begin();
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
#pragma unroll WIDE
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

template <class T>
INLINE void shift(T (&of)[WIDE], const T last) {
#pragma unroll
    for (uint k = 1; k < WIDE; k++) {
        of[k - 1] = of[k];
    }
    of[WIDE - 1] = last;
}

template <class UNIT>
INLINE void copy_units(const Arguments &s, const uint first, const size_t (&from)[WIDE], const size_t (&to)[WIDE]) {
    UNIT v[WIDE];
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        v[k] = static_cast<const UNIT *>(s.x)[from[k]];
    }
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        if (first + 256 * k < s.n) {
            static_cast<UNIT *>(s.y)[to[k]] = v[k];
        }
    }
}

// Rows are found by strides, or by ids.
extern "C" __global__ void __launch_bounds__(256) copy(const Arguments s, const Choice c, TABLE t) {
    begin();
    if ((c.function == GATHER || c.function == ALONG) && *s.flag != 0) {
        return;
    }
    uint first = blockIdx.x * 1024 + threadIdx.x;
    size_t from[WIDE], to[WIDE];
#pragma unroll 1
    for (uint k = 0; k < WIDE; k++) {
        uint i = min(first + 256 * k, s.n - 1), row = i / s.inner, column = i - row * s.inner;
        size_t of_x = min(column, s.m - 1), of_y = column;
        if (c.function == GATHER) {
            of_x = column + size_t(id(s, c.kind, row)) * s.inner;
            of_y = i;
        } else if (c.function == ALONG) {
            of_x = ((size_t(row / s.m) * s.rows + size_t(id(s, c.kind, row))) * s.x_row + row % s.x_row) * s.inner + column;
            of_y = i;
        } else {
#pragma unroll 1
            for (uint d = 0; d < s.rank; d++) {
                uint size = t.words[3 * d], rest = row / size;
                of_x += size_t(row - rest * size) * t.words[3 * d + 1];
                of_y += size_t(row - rest * size) * t.words[3 * d + 2];
                row = rest;
            }
        }
        shift(from, of_x);
        shift(to, of_y);
    }
    if (c.bytes == 1) {
        copy_units<unsigned char>(s, first, from, to);
    } else if (c.bytes == 2) {
        copy_units<unsigned short>(s, first, from, to);
    } else if (c.bytes == 4) {
        copy_units<uint>(s, first, from, to);
    } else {
        copy_units<uint4>(s, first, from, to);
    }
}

// A square of 32 × 32 through shared memory.
template <class UNIT>
INLINE void exchange(const Arguments &s, const size_t of_x, const size_t of_y, const uint i0, const uint j0) {
#ifdef __CUDA_ARCH__
    __shared__ UNIT square[32][33];
#else
    UNIT (&square)[32][33] = *reinterpret_cast<UNIT (*)[32][33]>(pool);
#endif
    uint column = threadIdx.x % 32, row = threadIdx.x / 32;
    const UNIT *x = static_cast<const UNIT *>(s.x) + of_x;
    UNIT *y = static_cast<UNIT *>(s.y) + of_y;
    // Behind the last row is that again: nothing waits for what is there.
    UNIT v[WIDE];
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        v[k] = x[size_t(min(j0 + row + 8 * k, s.n - 1)) * s.x_row];
    }
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        square[row + 8 * k][column] = v[k];
    }
    __syncthreads();
#pragma unroll WIDE
    for (uint k = 0; k < 4; k++) {
        uint i = row + 8 * k;
        if (i0 + i < s.m && j0 + column < s.n) {
            y[size_t(i0 + i) * s.y_row] = square[column][i];
        }
    }
}

// Two axes exchanged: y[i][j] = x[j][i], for each index of the axes around them.
extern "C" __global__ void __launch_bounds__(256) transpose(const Arguments s, const Choice c, TABLE t) {
    begin();
    uint column = threadIdx.x % 32, rest = blockIdx.x / s.n_squares, j0 = (blockIdx.x - rest * s.n_squares) * 32;
    uint other = rest / s.m_squares, i0 = (rest - other * s.m_squares) * 32;
    size_t of_x = min(i0 + column, s.m - 1), of_y = j0 + column;
#pragma unroll 1
    for (uint d = 0; d < s.rank; d++) {
        uint size = t.words[3 * d], next = other / size;
        of_x += size_t(other - next * size) * t.words[3 * d + 1];
        of_y += size_t(other - next * size) * t.words[3 * d + 2];
        other = next;
    }
    if (c.bytes == 2) {
        exchange<unsigned short>(s, of_x, of_y, i0, j0);
    } else if (c.bytes == 4) {
        exchange<uint>(s, of_x, of_y, i0, j0);
    } else {
        exchange<ulong64>(s, of_x, of_y, i0, j0);
    }
}

INLINE bool is_long(const uint dtype) { return dtype == I64 || dtype == F64; }

// Integers and bools.
INLINE bool is_whole(const uint dtype) { return dtype >= I32 && dtype != F64; }

INLINE double double_of(const ulong64 v) { return __longlong_as_double((long long)(v)); }

INLINE ulong64 bits(const double x) {
    return x == x ? ulong64(__double_as_longlong(x)) : 0x7ff8000000000000;
}

// A binary64 to the bits of the nearest binary32; or, for a second narrowing, truncated, with the lowest bit set unless that is
// exact: the second one then rounds as if it were the only one.
INLINE uint narrow_f64(const double x, const bool again) {
    if (!again) {
        return bits(canonical(__double2float_rn(x)));
    }
    float truncated = __double2float_rz(x);
    return bits(truncated) | uint(x == x && double(truncated) != x);
}

// One element as bits, to the bits of another type. Floats are truncated and saturate, NaN becomes 0; integers wrap.
INLINE ulong64 convert(const uint from, const uint to, const ulong64 v) {
    uint u = uint(v);
    if (is_whole(from)) {
        long long wide = from == I64 ? (long long)(v) : from == I32 ? (long long)(int(u)) : (long long)(from == BOOL ? min(u, 1u) : u);
        if (to == BOOL) {
            return wide != 0;
        }
        if (is_whole(to)) {
            return ulong64(wide);
        }
        if (to == F64) {
            return bits(__ll2double_rn(wide));
        }
        u = bits(__ll2float_rn(wide));
    } else if (from == F64) {
        double x = double_of(v);
        // Unlike those of floats, conversions of doubles don't make 0 of NaN.
        double number = x == x ? x : 0;
        switch (to) {
        case I32: return uint(__double2int_rz(number));
        case U32: return __double2uint_rz(number);
        case BOOL: return v << 1 != 0;
        case U8: return min(__double2uint_rz(number), 255u);
        case I64: return ulong64(__double2ll_rz(number));
        }
        u = narrow_f64(x, to != F32);
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
    case F64: return bits(double(x));
    case I32: return uint(__float2int_rz(x));
    case U32: return __float2uint_rz(x);
    case BOOL: return (u & MAGNITUDE) != 0;
    case U8: return min(__float2uint_rz(x), 255u);
    default: return is_nan(x) ? 0 : ulong64(__float2ll_rz(x));
    }
}

extern "C" __global__ void __launch_bounds__(256) cast(const Arguments s, const Choice c, TABLE t) {
    begin();
    uint first = blockIdx.x * 1024 + threadIdx.x;
    bool short_from = c.from == F16 || c.from == BF16, short_to = c.to == F16 || c.to == BF16;
    if (first >= s.n) {
        return;
    }
    ulong64 v[WIDE];
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        uint i = min(first + 256 * k, s.n - 1);
        if (short_from) {
            v[k] = static_cast<const unsigned short *>(s.x)[i];
        } else if (c.from == BOOL || c.from == U8) {
            v[k] = static_cast<const unsigned char *>(s.x)[i];
        } else if (is_long(c.from)) {
            v[k] = static_cast<const ulong64 *>(s.x)[i];
        } else {
            v[k] = static_cast<const uint *>(s.x)[i];
        }
    }
    // One after the other, so that this is there once.
#pragma unroll 1
    for (uint k = 0; k < WIDE; k++) {
        shift(v, convert(c.from, c.to, v[0]));
    }
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        uint i = first + 256 * k;
        if (i >= s.n) {
            return;
        }
        if (short_to) {
            static_cast<unsigned short *>(s.y)[i] = (unsigned short)(v[k]);
        } else if (c.to == BOOL || c.to == U8) {
            static_cast<unsigned char *>(s.y)[i] = (unsigned char)(v[k]);
        } else if (is_long(c.to)) {
            static_cast<ulong64 *>(s.y)[i] = v[k];
        } else {
            static_cast<uint *>(s.y)[i] = uint(v[k]);
        }
    }
}

// An element as a number whose order is that of values. A float that is no NaN: -0 is +0.
INLINE long long key(const uint kind, const void *of, const size_t i, bool &unordered) {
    if (kind == BOOL || kind == U8) {
        uint u = static_cast<const unsigned char *>(of)[i];
        return kind == BOOL ? min(u, 1u) : u;
    }
    if (kind == I64) {
        return static_cast<const long long *>(of)[i];
    }
    if (kind == F64) {
        ulong64 u = static_cast<const ulong64 *>(of)[i], magnitude = u << 1 >> 1;
        unordered |= magnitude > 0x7ff0000000000000;
        return u != magnitude ? -(long long)(magnitude) : (long long)(magnitude);
    }
    uint u = static_cast<const uint *>(of)[i];
    if (kind == U32) {
        return u;
    }
    if (kind == F32) {
        unordered |= (u & MAGNITUDE) > INFINITY;
        return u >= SIGN ? -(long long)(u & MAGNITUDE) : (long long)(u);
    }
    return int(u);
}

extern "C" __global__ void __launch_bounds__(256) compare(const Arguments s, const Choice c, TABLE t) {
    begin();
    uint first = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll 1
    for (uint i = first; i < s.n && i < first + 1024; i += 256) {
        size_t from[3];
        sources(s.rank, t, i, from);
        bool unordered = false;
        long long a = key(c.kind, s.x, from[0], unordered), b = key(c.kind, s.ids, from[1], unordered);
        uint outcome = unordered ? 8 : a < b ? 1 : a == b ? 2 : 4;
        static_cast<unsigned char *>(s.y)[i] = (outcome & s.m) != 0;
    }
}

template <class UNIT>
INLINE void select_unit(const Arguments &s, const bool is_x, const size_t from, const uint to) {
    static_cast<UNIT *>(s.y)[to] = static_cast<const UNIT *>(is_x ? s.x : s.ids)[from];
}

// Parts of rows, each of some heads of `inner` elements. `n`: the heads of all parts, of which a block of threads has one of a row.
// Copies them, turns them by rope, whose cosines and sines are at `x` and `ids`, and puts them to those of `m` positions whose bool of
// the row at `flag` is true. The table has for each part: addresses of its first row, of the copies, of what is turned, of the positions;
// its heads; the elements from one row to the next.
INLINE void heads(const Arguments &s, const uint interleaved, const Table &t) {
    const uint WORDS = 10, AT_ONCE = 16;
#ifdef __CUDA_ARCH__
    __shared__ float4 of_head[64];
#else
    float4 *of_head = pool;
#endif
    uint row = blockIdx.x / s.n, head = blockIdx.x % s.n, width = s.inner, e = threadIdx.x;
    const uint *part = t.words;
    while (head >= part[8]) {
        head -= part[8];
        part += WORDS;
    }
    float *of[4];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        of[i] = reinterpret_cast<float *>(ulong64(part[2 * i + 1]) << 32 | part[2 * i]);
    }
    // The first bools travel meanwhile.
    const uint4 *flags = reinterpret_cast<const uint4 *>(reinterpret_cast<const unsigned char *>(s.flag) + size_t(row) * s.m);
    uint4 chosen = make_uint4(0, 0, 0, 0);
    if (of[3] && AT_ONCE * e < s.m) {
        chosen = flags[e];
    }
    size_t line = size_t(row) * part[8] + head, to = line * width + e;
    if (e < width) {
        const float *x = of[0] + size_t(row) * part[9] + head * width;
        float v = x[e];
        if (of[1]) {
            of[1][to] = v;
        }
        if (of[2]) {
            uint half = width / 2, pair = interleaved ? e / 2 : e % half, apart = interleaved ? 1 : half;
            bool second = interleaved ? e & 1 : e >= half;
            v = v * static_cast<const float *>(s.x)[row * half + pair];
            float other = x[second ? e - apart : e + apart] * static_cast<const float *>(s.ids)[row * half + pair];
            v = second ? v + other : v - other;
            v = (bits(v) & MAGNITUDE) > INFINITY ? of_bits(NAN) : v;
            of[2][to] = v;
        }
        reinterpret_cast<float *>(of_head)[e] = v;
    }
    __syncthreads();
    if (!of[3]) {
        return;
    }
#pragma unroll 1
    for (uint first = AT_ONCE * e; first < s.m; first += AT_ONCE * 256) {
        if (first >= AT_ONCE * 256) {
            chosen = flags[first / AT_ONCE];
        }
        uint words[4] = {chosen.x, chosen.y, chosen.z, chosen.w};
#pragma unroll 1
        for (uint i = 0; i < AT_ONCE && (words[0] | words[1] | words[2] | words[3]); i++) {
            if (words[0] & 255) {
                float4 *position = reinterpret_cast<float4 *>(of[3] + (line * s.m + first + i) * width);
#pragma unroll 4
                for (uint j = 0; j < width / 4; j++) {
                    position[j] = of_head[j];
                }
            }
            words[0] = words[0] >> 8 | words[1] << 24;
            words[1] = words[1] >> 8 | words[2] << 24;
            words[2] = words[2] >> 8 | words[3] << 24;
            words[3] >>= 8;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) select_units(const Arguments s, const Choice c, TABLE t) {
    begin();
    if (c.function == HEADS) {
        return heads(s, c.kind, t);
    }
    if (s.rows != 0) {
        // In place, 16 threads look at the bool of so many neighbours.
        uint sixteenth = (blockIdx.x * 256 + threadIdx.x) / 16, first = sixteenth * s.rows;
        size_t from[3];
        if (first < s.n) {
            sources(s.rank, t, first, from);
            if (reinterpret_cast<const unsigned char *>(s.flag)[from[2]] != 0) {
#pragma unroll 1
                for (uint i = threadIdx.x % 16; i < s.rows; i += 16) {
                    select_unit<uint>(s, true, from[0] + i, first + i);
                }
            }
        }
        return;
    }
    uint first = blockIdx.x * 256 * s.m + threadIdx.x;
#pragma unroll 1
    for (uint i = first; i < s.n && i < first + 256 * s.m; i += 256) {
        uint element = i / s.inner;
        size_t from[3];
        sources(s.rank, t, element, from);
        bool is_x = reinterpret_cast<const unsigned char *>(s.flag)[from[2]] != 0;
        // In place, what is not selected is there already.
        if ((is_x ? s.x : s.ids) == s.y) {
            continue;
        }
        size_t at = (is_x ? from[0] : from[1]) * s.inner + (i - element * s.inner);
        if (c.bytes == 1) {
            select_unit<unsigned char>(s, is_x, at, i);
        } else if (c.bytes == 2) {
            select_unit<unsigned short>(s, is_x, at, i);
        } else {
            select_unit<uint>(s, is_x, at, i);
        }
    }
}
