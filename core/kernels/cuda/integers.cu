// Arithmetic on integers and bools. An element is computed as a 64-bit integer.
#include "broadcast.cuh"
#include "../vulkan/integer_operations.glsl"

typedef long long long64;

struct Arguments {
    const void *x;
    // arithmetic: the second operand; of an operation of one operand, it is x. fold: NULL, or the places in each line that are looked at.
    const void *other;
    void *y;
    // arithmetic: the table, for x, other and other. fold: how many places a line has at other.
    ulong64 outer;
    // fold: the parts of a line, each of which has a result.
    uint rank;
    // The operation's number.
    uint op;
    // Elements of the result.
    uint n;
    // fold: elements of a line, and from one to the next.
    uint rows, inner;
    // fold: 1 if a block of threads has one part; the words of a result that is an index, or 0.
    uint together, words;
};

// As specialization constants elsewhere. `function`: 0 arithmetic, 1 fold. `kind`: dtype::DType's number.
struct Choice {
    uint function, kind;
};

INLINE ulong64 integer(const uint kind, const void *of, const size_t i) {
    if (kind == I64) {
        return static_cast<const ulong64 *>(of)[i];
    }
    if (kind == I32) {
        return ulong64(long64(static_cast<const int *>(of)[i]));
    }
    if (kind == U32) {
        return static_cast<const uint *>(of)[i];
    }
    uint u = static_cast<const unsigned char *>(of)[i];
    return kind == BOOL ? min(u, 1u) : u;
}

INLINE void store_integer(const uint kind, void *to, const size_t i, const ulong64 v) {
    if (kind == I64) {
        static_cast<ulong64 *>(to)[i] = v;
    } else if (kind == BOOL || kind == U8) {
        static_cast<unsigned char *>(to)[i] = (unsigned char)(kind == BOOL ? v != 0 : v);
    } else {
        static_cast<uint *>(to)[i] = uint(v);
    }
}

// The quotient rounded down; 0 if b is 0.
INLINE ulong64 quotient_of(const ulong64 a, const ulong64 b) {
    if (b == 0) {
        return 0;
    }
    ulong64 of = long64(a) < 0 ? 0 - a : a, by = long64(b) < 0 ? 0 - b : b, whole = of / by;
    if (long64(a ^ b) >= 0) {
        return whole;
    }
    return whole * by == of ? 0 - whole : ~whole;
}

INLINE ulong64 computed(const uint op, const ulong64 a, const ulong64 b) {
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return quotient_of(a, b);
    case OP_NEG: return 0 - a;
    case OP_ABS: return long64(a) < 0 ? 0 - a : a;
    // What is left is the larger or the smaller one.
    default: return (long64(a) < long64(b)) == (op == OP_MAXIMUM) ? b : a;
    }
}

extern "C" __global__ void __launch_bounds__(256) arithmetic(const Arguments s, const Choice c, TABLE t) {
    begin();
    uint first = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll 1
    for (uint i = first; i < s.n && i < first + 1024; i += 256) {
        size_t from[3];
        sources(s.rank, t, i, from);
        ulong64 a = integer(c.kind, s.x, from[0]), b = integer(c.kind, s.other, from[1]);
        store_integer(c.kind, s.y, i, computed(s.op, a, b));
    }
}

// What was found in a part of a line: a value and, of an element of the line, its place.
struct Found {
    ulong64 value, place;
};

// The place of no element.
const ulong64 NOWHERE = ~0ull;

INLINE Found joined(const uint op, const Found &a, const Found &b) {
    if (op == OP_SUM) {
        return {a.value + b.value, NOWHERE};
    }
    if (op == OP_PROD) {
        return {a.value * b.value, NOWHERE};
    }
    bool greatest = op == OP_MAX || op == OP_ARGMAX;
    bool better = greatest ? long64(a.value) < long64(b.value) : long64(b.value) < long64(a.value);
    bool is_b = b.place != NOWHERE && (a.place == NOWHERE || better || (a.value == b.value && b.place < a.place));
    return is_b ? b : a;
}

// A part of a line of `rows` elements, which are `inner` apart, by a thread or, if together is 1, by a block of threads.
extern "C" __global__ void __launch_bounds__(256) fold(const Arguments s, const Choice c, TABLE t) {
    begin();
#ifdef __CUDA_ARCH__
    __shared__ Found parts[256];
#else
    Found *parts = reinterpret_cast<Found *>(pool);
#endif
    bool together = s.together == 1;
    uint part = together ? blockIdx.x : blockIdx.x * 256 + threadIdx.x;
    Found found = {s.op == OP_PROD ? 1ull : 0ull, NOWHERE};
    if (part < s.n) {
        uint line = part / s.rank, outer = line / s.inner;
        size_t first = size_t(outer) * s.rows * s.inner + (line - outer * s.inner);
        uint most = (s.rows - 1) / s.rank + 1, start = (part - line * s.rank) * most;
        const uint *chosen = static_cast<const uint *>(s.other);
        uint count = chosen ? uint(s.outer) : min(s.rows - start, most);
#pragma unroll 1
        for (uint k = together ? threadIdx.x : 0; k < count; k += together ? 256 : 1) {
            uint row = chosen ? chosen[size_t(line) * count + k] : start + k;
            found = joined(s.op, found, {integer(c.kind, s.x, first + size_t(row) * s.inner), row});
        }
    }
    if (together) {
        parts[threadIdx.x] = found;
#pragma unroll 1
        for (uint half = 128; half > 0; half >>= 1) {
            __syncthreads();
            if (threadIdx.x < half) {
                found = joined(s.op, found, parts[threadIdx.x + half]);
                parts[threadIdx.x] = found;
            }
        }
        if (threadIdx.x > 0) {
            return;
        }
    }
    if (part >= s.n) {
        return;
    }
    if (s.words == 0) {
        store_integer(c.kind, s.y, part, found.value);
    } else if (s.words == 1) {
        static_cast<uint *>(s.y)[part] = uint(found.place);
    } else {
        static_cast<ulong64 *>(s.y)[part] = found.place;
    }
}

#include "few.cuh"
