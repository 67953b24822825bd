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
    uint n, count, steps[24];
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

// Elements that a thread has at a time.
const uint WIDE = 4;

// Its elements: one vector, one element four times, or wherever they are.
INLINE void fetch(float *v, const float *from, const uint *index, const bool whole, const uint step) {
    if (whole && step) {
        float4 x = *reinterpret_cast<const float4 *>(from + index[0]);
        v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
        return;
    }
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        v[k] = from[index[whole ? 0 : k]];
    }
}

// Where element i, or each of four, is in rows of so many; or which row it is. No rows: all is one.
INLINE void within(uint (&at)[WIDE], const uint i, const uint n, const bool whole, const bool first, const uint per,
                   const bool row) {
#pragma unroll 1
    for (uint k = first ? 1 : WIDE; k > 0;) {
        k--;
#pragma unroll
        for (uint l = WIDE - 1; l > 0; l--) {
            at[l] = at[l - 1];
        }
        uint e = min(whole ? i + k : i + 256 * k, n - 1), q = per ? e / per : 0;
        at[0] = row ? q : e - q * per;
    }
}

#define EACH(EXPRESSION) \
    _Pragma("unroll") for (uint k = 0; k < WIDE; k++) { \
        float x = v[k]; \
        v[k] = (EXPRESSION); \
    }

// The same by turns, for what is long and yet faster than memory: it is there once.
#define BY_TURNS(EXPRESSION) \
    _Pragma("unroll 1") for (uint turn = 0; turn < WIDE; turn++) { \
        float x = v[0]; \
        shift(v); \
        v[WIDE - 1] = (EXPRESSION); \
    }

template <class T>
INLINE void shift(T (&of)[WIDE]) {
#pragma unroll
    for (uint k = 1; k < WIDE; k++) {
        of[k - 1] = of[k];
    }
}

extern "C" __global__ void __launch_bounds__(256, 8) elementwise(GIVEN given, const Choice c, TABLE t) {
    begin();
    const Arguments &s = given.one;
    const Run &run = given.run;
    const bool is_run = c.function == RUN;
    const uint n = s.n;
    uint i = blockIdx.x * 1024;
    bool whole = c.vector == 1 && n - i >= 1024;
    i += threadIdx.x * (whole ? 4 : 1);
    uint2 place = locate(s, c, t, min(i, n - 1));
    uint of_x[WIDE] = {place.x}, of_p[WIDE] = {place.y};
    if (!whole) {
        // The others come from behind, so that this is there once.
#pragma unroll 1
        for (uint k = 1; k < WIDE; k++) {
#pragma unroll
            for (uint l = 1; l + 1 < WIDE; l++) {
                of_x[l] = of_x[l + 1], of_p[l] = of_p[l + 1];
            }
            place = locate(s, c, t, min(i + 256 * k, n - 1));
            of_x[WIDE - 1] = place.x, of_p[WIDE - 1] = place.y;
        }
    }
    // x; the second operand, or what is divided by; the other one.
    float v[WIDE];
    fetch(v, s.x, of_x, whole, c.x_step);
    const float *p = s.p;
    // What a function of x is given besides.
    float value = s.value, second = s.eps;
    uint function = c.function, code = 0, p_step = c.p_step, steps = 0;
    bool p_whole = whole;
#pragma unroll 1
    do {
        float a[WIDE], b[WIDE];
        if (is_run) {
            const uint *words = run.steps + 3 * steps;
            code = words[2];
            function = code & 63;
            value = of_bits(words[0]);
            second = of_bits(words[1]);
            p = reinterpret_cast<const float *>(size_t(words[1]) << 32 | words[0]);
            p_step = code & 128;
            p_whole = whole && (code & 384);
            within(of_p, i, n, whole, p_whole, code >> 10, code & 512);
        }
        if (of_two(function)) {
            if ((code & 384) == 384) {
                EACH(a[k] = x);
            } else {
                fetch(a, p, of_p, p_whole, p_step);
            }
            if (code & 64) {
#pragma unroll
                for (uint k = 0; k < WIDE; k++) {
                    float x = v[k];
                    v[k] = a[k];
                    a[k] = x;
                }
            }
        }
        if (function == SOFTMAX || function == LAYERNORM || function == ROPE) {
            fetch(b, s.q, of_p, whole, c.p_step);
        }
        // What is long is there once, whatever goes before and behind it.
        switch (function) {
        case RELU:
            EACH(function_relu(x));
            break;
        case TANH:
            EACH(function_tanh(x));
            break;
        case ERF:
        case GELU_ERF:
            // As `activate`.
            if (function == GELU_ERF) {
#pragma unroll
                for (uint k = 0; k < WIDE; k++) {
                    a[k] = 0.5f * v[k];
                }
                EACH(x * 0.70710677f);
            }
            EACH(function_erf(x));
            if (function == GELU_ERF) {
                EACH(a[k] * x + a[k]);
            }
            break;
        case SIGMOID:
        case GELU_TANH:
        case SILU:
            // As `activate`.
#pragma unroll
            for (uint k = 0; k < WIDE; k++) {
                a[k] = v[k];
            }
            if (function == GELU_TANH) {
                EACH(x * ((x * x) * 0.071354814f + 1.5957692f));
            }
            EACH(function_sigmoid(x));
            if (function != SIGMOID) {
                EACH(a[k] * x);
            }
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
        case LOG:
            BY_TURNS(function_log(x));
            break;
        case SQRT:
        case RSQRT:
            BY_TURNS(root(x));
            break;
        case ADD:
            EACH(x + a[k]);
            break;
        case SUB:
        case SOFTMAX:
            EACH(x - a[k]);
            break;
        case MUL:
            EACH(x * a[k]);
            break;
        case LAYERNORM:
        case RMSNORM: {
            EACH(function == LAYERNORM ? (x - a[k]) * b[k] : x * a[k]);
            uint of_g[WIDE];
            within(of_g, i, n, whole, whole, c.rank == 1 ? 0 : s.inner, false);
            if (c.affine & 1) {
                fetch(a, s.gamma, of_g, whole, 1);
                EACH(x * a[k]);
            }
            if (c.affine & 2) {
                fetch(a, s.beta, of_g, whole, 1);
                EACH(x + a[k]);
            }
            break;
        }
        case ROPE:
            // The pair's other element is `blocks` away.
#pragma unroll 1
            for (uint k = 0; k < WIDE; k++) {
                uint e = min(whole ? i + k : i + 256 * k, n - 1);
                bool second = e / s.blocks & 1;
                float other = s.x[second ? e - s.blocks : e + s.blocks] * b[0];
                float y = v[0] * a[0];
                y = second ? y + other : y - other;
                shift(v);
                shift(a);
                shift(b);
                v[WIDE - 1] = y;
            }
            break;
        case EXP:
        case DIV:
            break;
        default:
            // By turns too.
#pragma unroll 1
            for (uint k = 0; k < WIDE; k++) {
                float y = called(function, v[0], of_two(function) ? a[0] : value, second);
                shift(v);
                shift(a);
                v[WIDE - 1] = y;
            }
        }
        if (function == EXP || function == SOFTMAX) {
            BY_TURNS(function_exp(x));
        }
        if (function == RSQRT || function == DIV || function == SOFTMAX) {
#pragma unroll
            for (uint k = 0; k < WIDE; k++) {
                b[k] = function == RSQRT ? v[k] : function == DIV ? a[k] : b[k];
                v[k] = function == RSQRT ? 1.0f : v[k];
            }
#pragma unroll 1
            for (uint k = 0; k < WIDE; k++) {
                float y = divide(v[0], b[0]);
                shift(v);
                shift(b);
                v[WIDE - 1] = y;
            }
        }
        EACH(canonical(x));
        // Nothing of them is kept.
#pragma unroll
        for (uint k = 0; k < WIDE; k++) {
            of_p[k] = 0;
        }
    } while (is_run && ++steps < run.count);
    if (whole) {
        *reinterpret_cast<float4 *>(s.y + i) = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
#pragma unroll
    for (uint k = 0; k < WIDE; k++) {
        if (i + 256 * k < n) {
            s.y[i + 256 * k] = v[k];
        }
    }
}
