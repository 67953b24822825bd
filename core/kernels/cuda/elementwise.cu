// y = f(x), y = a op b with broadcasting, and the last step of softmax and the norms, whose statistics are broadcast operands too;
// and runs, several of the first two of what stays in registers.
//
// The result's dimensions are merged where the operands allow it, so that along the last one an operand goes on by one element or
// stays.
#include "glsl.cuh"
#include "../vulkan/operations.glsl"

struct Arguments {
    const float *x;
    float *y;
    uint n, inner;
    const float *p, *q, *gamma, *beta;
    // The table, for each dimension but the last, from the last but one to the first: its size, the elements of x and of p between
    // neighbours.
    const void *outer;
    uint x_row, p_row, rank, blocks, units;
    float value, eps;
};

// What a run has in their place; `elementwise.comp` says what the words of a step mean.
struct Run {
    const float *x;
    float *y;
    uint n, count, steps[3 * 8], divides, per;
};

// As a kernel's parameter: read where it is, not copied by each thread.
union Given {
    Arguments one;
    Run run;
};
#ifdef __CUDA_ARCH__
#define GIVEN const __grid_constant__ Given
#else
#define GIVEN const Given
#endif

// As specialization constants elsewhere. `function`: one of operations.glsl's, of x, of x and p, of x, p and q. `vector`: everything
// lies at multiples of 16 bytes, and the last dimension is a multiple of four unless it is the only one. `rank`: 1, 2, or 3 for
// more. Steps along the last dimension are 0 or 1. `affine`: gamma, beta.
struct Choice {
    uint function, vector, rank, x_step, p_step, affine;
};

// Which elements make element i: of x, of p and q.
INLINE uint2 locate(const Arguments &s, const Choice &c, const Table &t, const uint i) {
    if (c.rank == 1) {
        return make_uint2(i * c.x_step, i * c.p_step);
    }
    uint row = i / s.inner, column = i - row * s.inner;
    uint2 place = make_uint2(column * c.x_step, column * c.p_step);
    if (c.rank == 2) {
        place.x += row * s.x_row;
        place.y += row * s.p_row;
        return place;
    }
#pragma unroll 1
    for (uint d = 0; d + 1 < s.rank; d++) {
        uint size = t.words[3 * d], rest = row / size;
        place.x += (row - rest * size) * t.words[3 * d + 1];
        place.y += (row - rest * size) * t.words[3 * d + 2];
        row = rest;
    }
    return place;
}

// Elements that a thread has at a time: vectors of four, a workgroup's elements of four apart, or single ones, a workgroup apart.
const uint WIDE = 8, VECTORS = WIDE / 4, VECTOR = 1024, SINGLE = 256;

// The number of a thread's element k, if its first one is i.
INLINE uint element(const uint i, const uint k, const bool whole) {
    return whole ? i + VECTOR * (k / 4) + k % 4 : i + SINGLE * k;
}

INLINE void load(float *v, const float *from) {
    float4 x = *reinterpret_cast<const float4 *>(from);
    v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
}

// Loops that are not unrolled fill an array from behind: an index that is known only at run time would put it in memory.
template <uint W, class T>
INLINE void push(T (&to)[W], const T last) {
#pragma unroll
    for (uint k = 1; k < W; k++) {
        to[k - 1] = to[k];
    }
    to[W - 1] = last;
}

// A thread's elements, wherever they are; of whole vectors, the last places are where each begins, or has its only value.
INLINE void fetch(float (&v)[WIDE], const float *from, const uint (&places)[WIDE], const bool whole, const bool goes_on) {
    if (!whole) {
#pragma unroll
        for (uint k = 0; k < WIDE; k++) {
            v[k] = from[places[k]];
        }
        return;
    }
#pragma unroll
    for (uint j = 0; j < VECTORS; j++) {
        const float *at = from + places[WIDE - VECTORS + j];
        if (goes_on) {
            load(v + 4 * j, at);
        } else {
            v[4 * j] = v[4 * j + 1] = v[4 * j + 2] = v[4 * j + 3] = *at;
        }
    }
}

// Where its elements or vectors are in rows of so many elements. No rows: all is one.
INLINE void within(uint (&places)[WIDE], const uint i, const uint n, const bool whole, const uint per) {
#pragma unroll 1
    for (uint k = 0; k < WIDE; k += whole ? 4 : 1) {
        uint e = min(element(i, k, whole), n - 1);
        push(places, per ? e % per : e);
    }
}

#define EACH(EXPRESSION) \
    _Pragma("unroll") for (uint k = 0; k < W; k++) { \
        float x = v[k]; \
        v[k] = (EXPRESSION); \
    }

// The same by turns, for what is long and yet faster than memory: it is there once.
#define BY_TURNS(EXPRESSION) \
    _Pragma("unroll 1") for (uint turn = 0; turn < W; turn++) { \
        float x = v[0], p = a[0]; \
        push(v, EXPRESSION); \
        push(a, p); \
    }

// A run's step takes its operand first.
const uint LEFT = 64;

// v = erf(v). A warp mostly has numbers of both kinds, and behind a branch for each one nothing of the others would be under way.
INLINE void erf_of_four(float (&v)[4]) {
    float near[4];
    bool all_near = true;
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        near[k] = erf_near(magnitude_of(v[k]));
        all_near = all_near && erf_is_near(v[k]);
    }
    if (!all_near) {
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            float far = erf_far(magnitude_of(v[k]));
            near[k] = erf_is_near(v[k]) ? near[k] : far;
        }
    }
#pragma unroll
    for (uint k = 0; k < 4; k++) {
        v[k] = with_sign_of(near[k], v[k]);
    }
}

// v = function(v), or of v and a: those that are long.
INLINE void compute_four(const uint function, float (&v)[4], float (&a)[4], const float value, const float second) {
    const uint W = 4;
    switch (function) {
    case TANH:
        EACH(function_tanh(x));
        return;
    case ERF:
    case GELU_ERF:
        // As `activate`.
        if (function == GELU_ERF) {
#pragma unroll
            for (uint k = 0; k < W; k++) {
                a[k] = 0.5f * v[k];
            }
            EACH(x * 0.70710677f);
        }
        erf_of_four(v);
        if (function == GELU_ERF) {
            EACH(a[k] * x + a[k]);
        }
        return;
    case SIGMOID:
    case GELU_TANH:
    case SILU:
        // As `activate`.
#pragma unroll
        for (uint k = 0; k < W; k++) {
            a[k] = v[k];
        }
        if (function == GELU_TANH) {
            EACH(x * ((x * x) * 0.071354814f + 1.5957692f));
        }
        EACH(function_sigmoid(x));
        if (function != SIGMOID) {
            EACH(a[k] * x);
        }
        return;
    case EXP:
        EACH(function_exp(x));
        return;
    case LOG:
        BY_TURNS(function_log(x));
        return;
    case SQRT:
        EACH(root(x));
        return;
    case LEFT | DIV:
        EACH(divide(a[k], x));
        return;
    case RSQRT:
    case DIV:
        if (function == RSQRT) {
#pragma unroll
            for (uint k = 0; k < W; k++) {
                a[k] = root(v[k]);
                v[k] = 1.0f;
            }
        }
        EACH(divide(x, a[k]));
        return;
    default:
        BY_TURNS(called(function, x, of_two(function) ? p : value, second));
    }
}

// v = function(v), or of v and a.
INLINE void compute(const uint function, float (&v)[WIDE], float (&a)[WIDE], const float value, const float second) {
    const uint W = WIDE;
    switch (function) {
    case RELU:
        EACH(function_relu(x));
        break;
    case SCALE:
        EACH(x * value);
        break;
    case NEG:
        EACH(of_bits(bits(x) ^ SIGN));
        break;
    case ABS:
        EACH(of_bits(bits(x) & MAGNITUDE));
        break;
    case ADD:
        EACH(x + a[k]);
        break;
    case SUB:
        EACH(x - a[k]);
        break;
    case LEFT | SUB:
        EACH(a[k] - x);
        break;
    case MUL:
        EACH(x * a[k]);
        break;
    default:
        // By fours, so that it is there once and yet several are under way.
#pragma unroll 1
        for (uint turn = 0; turn < VECTORS; turn++) {
            float four[4], other[4];
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                four[k] = v[k], other[k] = a[k];
            }
            compute_four(function, four, other, value, second);
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                push(v, four[k]);
                push(a, a[0]);
            }
        }
    }
}

// Returns which of a run's rows element e is in. A division would take much longer.
INLINE uint row_of(const Run &run, const uint e) {
    return multiply_high(e, run.divides) >> findMSB(run.per - 1);
}

// Reads what a step has besides the value. `rows`: those of the thread's vectors.
INLINE void operand(float (&a)[WIDE], const Run &run, const uint step, const uint (&rows)[VECTORS], const uint i, const bool whole) {
    const uint *words = run.steps + 3 * step;
    const float *p = reinterpret_cast<const float *>(size_t(words[1]) << 32 | words[0]);
    const uint code = words[2], access = code & 384, per = code >> 10;
    if (!of_two(code & 63) || access == 384) {
        return;
    }
    const bool vectors = whole && access;
    uint places[WIDE];
    if (vectors) {
#pragma unroll
        for (uint j = 0; j < VECTORS; j++) {
            uint row = per ? rows[j] : 0;
            places[WIDE - VECTORS + j] = code & 512 ? row : i + VECTOR * j - row * per;
        }
    } else {
#pragma unroll 1
        for (uint k = 0; k < WIDE; k++) {
            uint e = min(element(i, k, whole), run.n - 1), row = per ? row_of(run, e) : 0;
            push(places, code & 512 ? row : e - row * per);
        }
    }
    fetch(a, p, places, vectors, access == 128);
}

extern "C" __global__ void __launch_bounds__(256, 4) elementwise(GIVEN given, const Choice c, TABLE t) {
    begin();
    const Arguments &s = given.one;
    const Run &run = given.run;
    const bool is_run = c.function == RUN;
    const uint W = WIDE, n = s.n;
    uint i = blockIdx.x * (256 * WIDE);
    const bool whole = c.vector == 1 && n - i >= 256 * WIDE;
    i += threadIdx.x * (whole ? 4 : 1);
    uint of_x[WIDE], of_p[WIDE];
#pragma unroll 1
    for (uint k = 0; k < WIDE; k += whole ? 4 : 1) {
        uint e = min(element(i, k, whole), n - 1);
        uint2 place = is_run ? make_uint2(e, 0) : locate(s, c, t, e);
        push(of_x, place.x);
        push(of_p, place.y);
    }
    // x; the second operand, or what is divided by; the other one, or the next step's.
    float v[WIDE], a[WIDE], b[WIDE];
    fetch(v, s.x, of_x, whole, c.x_step);
    uint function = c.function;
    uint rows[VECTORS];
    if (is_run) {
#pragma unroll
        for (uint j = 0; j < VECTORS; j++) {
            rows[j] = row_of(run, i + VECTOR * j);
        }
        operand(b, run, 0, rows, i, whole);
    } else {
        if (of_two(function)) {
            fetch(a, s.p, of_p, whole, c.p_step);
        }
        if (function == SOFTMAX || function == LAYERNORM || function == ROPE) {
            fetch(b, s.q, of_p, whole, c.p_step);
        }
    }
    if (function == LAYERNORM || function == RMSNORM) {
        EACH(function == LAYERNORM ? (x - a[k]) * b[k] : x * a[k]);
        within(of_p, i, n, whole, c.rank == 1 ? 0 : s.inner);
        if (c.affine & 1) {
            fetch(a, s.gamma, of_p, whole, true);
            EACH(x * a[k]);
        }
        if (c.affine & 2) {
            fetch(a, s.beta, of_p, whole, true);
            EACH(x + a[k]);
        }
    } else if (function == ROPE) {
        // The pair's other element is `blocks` away.
#pragma unroll 1
        for (uint k = 0; k < WIDE; k++) {
            uint e = min(element(i, k, whole), n - 1);
            bool second = e / s.blocks & 1;
            float other = s.x[second ? e - s.blocks : e + s.blocks] * b[0];
            float y = v[0] * a[0];
            push(v, second ? y + other : y - other);
            push(a, 0.0f);
            push(b, 0.0f);
        }
    } else {
        // Steps of a run; or of softmax, e^(x − a) / b.
        const uint steps = is_run ? run.count : function == SOFTMAX ? 3 : 1;
#pragma unroll 1
        for (uint step = 0; step < steps; step++) {
            const uint *words = run.steps + 3 * step;
            uint code = function;
            float value = s.value, second = s.eps;
            if (is_run) {
                code = words[2];
                value = of_bits(words[0]), second = of_bits(words[1]);
            } else if (function == SOFTMAX) {
                code = step == 0 ? SUB : step == 1 ? EXP : DIV;
            }
            if (is_run || step == 2) {
#pragma unroll
                for (uint k = 0; k < WIDE; k++) {
                    a[k] = (code & 384) == 384 ? v[k] : b[k];
                }
            }
            // Under way while this step computes.
            if (is_run && step + 1 < steps) {
                operand(b, run, step + 1, rows, i, whole);
            }
            if (code & LEFT && (code & 63) != SUB && (code & 63) != DIV) {
                code ^= LEFT;
                // A loop, because the compiler would make steps without it pay too.
#pragma unroll 1
                for (uint k = 0; k < WIDE; k++) {
                    float x = v[0];
                    push(v, a[0]);
                    push(a, x);
                }
            }
            compute(code & 127, v, a, value, second);
        }
    }
    EACH(canonical(x));
    if (whole) {
#pragma unroll
        for (uint j = 0; j < VECTORS; j++) {
            float4 y = make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
            *reinterpret_cast<float4 *>(s.y + i + VECTOR * j) = y;
        }
        return;
    }
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        if (i + SINGLE * k < n) {
            s.y[i + SINGLE * k] = v[k];
        }
    }
}
