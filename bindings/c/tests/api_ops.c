/* Every operation through its typed function gives what it gives by number and text; and the errors of both. */
#include "check.h"

enum { ROWS = 5, COLUMNS = 7 };

static adead_context *context;
static unsigned char seen[256];

/* Runs an operation by number and text and compares; `attrs` is "name=value name=value". */
static void by_name(const char *name, const char *attrs, const adead_tensor *const *operands, size_t count,
                    adead_tensor *expected) {
  char text[96], *at = text, *next;
  adead_attrs *a = NULL;
  adead_tensor *result = NULL;
  adead_op op = -1;
  OK(adead_op_from_name(name, &op));
  CHECK(!strcmp(adead_op_name(op), name));
  OK(adead_attrs_create(&a));
  for (strcpy(text, attrs); *at; at = next) {
    char *value = strchr(at, '=');
    next = at + strcspn(at, " ");
    if (*next) *next++ = 0;
    *value++ = 0;
    OK(adead_attrs_set(a, op, at, value));
  }
  OK(adead_op_run(context, op, operands, count, a, &result));
  CHECK(same(result, expected));
  adead_attrs_destroy(a);
  adead_tensor_destroy(result);
  adead_tensor_destroy(expected);
  CHECK(op >= 0 && (size_t)op < sizeof seen);
  seen[op] = 1;
}

#define SAME(name, attrs, call, ...)                                               \
  do {                                                                             \
    const adead_tensor *operands_[] = {__VA_ARGS__};                               \
    y = NULL;                                                                      \
    OK(call);                                                                      \
    by_name(name, attrs, operands_, sizeof operands_ / sizeof *operands_, y);      \
  } while (0)

static void elementwise(const adead_tensor *x, const adead_tensor *row) {
  adead_tensor *y;
  SAME("add", "", adead_tensor_add(context, x, row, &y), x, row);
  SAME("sub", "", adead_tensor_sub(context, x, row, &y), x, row);
  SAME("mul", "", adead_tensor_mul(context, x, row, &y), x, row);
  SAME("div", "", adead_tensor_div(context, x, row, &y), x, row);
  SAME("scale", "alpha=0.75", adead_tensor_scale(context, x, 0.75f, &y), x);
  SAME("neg", "", adead_tensor_neg(context, x, &y), x);
  SAME("abs", "", adead_tensor_abs(context, x, &y), x);
  SAME("exp", "", adead_tensor_exp(context, x, &y), x);
  SAME("log", "", adead_tensor_log(context, x, &y), x);
  SAME("sqrt", "", adead_tensor_sqrt(context, x, &y), x);
  SAME("rsqrt", "", adead_tensor_rsqrt(context, x, &y), x);
  SAME("relu", "", adead_tensor_relu(context, x, &y), x);
  SAME("sigmoid", "", adead_tensor_sigmoid(context, x, &y), x);
  SAME("tanh", "", adead_tensor_tanh(context, x, &y), x);
  SAME("silu", "", adead_tensor_silu(context, x, &y), x);
  SAME("floor", "", adead_tensor_floor(context, x, &y), x);
  SAME("round", "", adead_tensor_round(context, x, &y), x);
  SAME("erf", "", adead_tensor_erf(context, x, &y), x);
  SAME("sin", "", adead_tensor_sin(context, x, &y), x);
  SAME("cos", "", adead_tensor_cos(context, x, &y), x);
  SAME("log1p", "", adead_tensor_log1p(context, x, &y), x);
  SAME("expm1", "", adead_tensor_expm1(context, x, &y), x);
  SAME("pow", "", adead_tensor_pow(context, x, row, &y), x, row);
  SAME("clamp", "min=-0.5 max=0.75", adead_tensor_clamp(context, x, -0.5f, 0.75f, &y), x);
  SAME("maximum", "", adead_tensor_maximum(context, x, row, &y), x, row);
  SAME("minimum", "", adead_tensor_minimum(context, x, row, &y), x, row);
  SAME("equal", "", adead_tensor_equal(context, x, row, &y), x, row);
  SAME("not_equal", "", adead_tensor_not_equal(context, x, row, &y), x, row);
  SAME("less", "", adead_tensor_less(context, x, row, &y), x, row);
  SAME("less_equal", "", adead_tensor_less_equal(context, x, row, &y), x, row);
  SAME("greater", "", adead_tensor_greater(context, x, row, &y), x, row);
  SAME("greater_equal", "", adead_tensor_greater_equal(context, x, row, &y), x, row);
  SAME("gelu", "", adead_tensor_gelu(context, x, ADEAD_GELU_ERF, &y), x);
  SAME("gelu", "form=tanh", adead_tensor_gelu(context, x, ADEAD_GELU_TANH, &y), x);
}

static void reductions(const adead_tensor *x, const adead_tensor *row) {
  adead_tensor *y;
  SAME("sum", "", adead_tensor_sum(context, x, ADEAD_AXIS_ALL, 0, &y), x);
  SAME("sum", "axis=0 keepdim=1", adead_tensor_sum(context, x, 0, 1, &y), x);
  SAME("mean", "axis=-1", adead_tensor_mean(context, x, -1, 0, &y), x);
  SAME("max", "axis=1", adead_tensor_max(context, x, 1, 0, &y), x);
  SAME("argmax", "axis=1 dtype=u32", adead_tensor_argmax(context, x, 1, 0, ADEAD_DTYPE_U32, &y), x);
  SAME("min", "axis=0", adead_tensor_min(context, x, 0, 0, &y), x);
  SAME("argmin", "axis=-1 keepdim=1 dtype=i32", adead_tensor_argmin(context, x, -1, 1, ADEAD_DTYPE_I32, &y), x);
  SAME("prod", "axes=1,0", adead_tensor_prod(context, x, ADEAD_AXIS_ALL, 0, &y), x);
  SAME("softmax", "axis=0", adead_tensor_softmax(context, x, 0, &y), x);
  SAME("layernorm", "", adead_tensor_layernorm(context, x, row, NULL, 1e-5f, &y), x, row, NULL);
  SAME("layernorm", "eps=0.5", adead_tensor_layernorm(context, x, row, row, 0.5f, &y), x, row, row);
  SAME("rmsnorm", "", adead_tensor_rmsnorm(context, x, NULL, 1e-5f, &y), x);
  SAME("layernorm", "eps=0.5", adead_tensor_add_layernorm(context, x, x, row, NULL, 0.5f, &y), x, row, NULL, x);
  SAME("rmsnorm", "", adead_tensor_add_rmsnorm(context, x, x, row, 1e-5f, &y), x, row, x);
  SAME("cumsum", "axis=0", adead_tensor_cumsum(context, x, 0, &y), x);
  SAME("topk", "k=3", adead_tensor_topk(context, x, 3, -1, &y), x);
  SAME("argtopk", "k=2 axis=0 dtype=i32", adead_tensor_argtopk(context, x, 2, 0, ADEAD_DTYPE_I32, &y), x);
}

static void rope(const float *values) {
  adead_tensor *y, *x = tensor(values, 2, 4, 6), *cosines = tensor(values, 1, 3, 0), *sines = tensor(values + 3, 1, 3, 0);
  SAME("rope", "", adead_tensor_rope(context, x, cosines, sines, 0, &y), x, cosines, sines);
  SAME("rope", "interleaved=1", adead_tensor_rope(context, x, cosines, sines, 1, &y), x, cosines, sines);
  FAILS(adead_tensor_rope(context, cosines, cosines, sines, 0, &y), ADEAD_SHAPE_MISMATCH, "must be even");
  adead_tensor_destroy(x);
  adead_tensor_destroy(cosines);
  adead_tensor_destroy(sines);
}

/* Two rows of two blocks of q4_1: d, m and 16 bytes each. */
static void blocks(void) {
  unsigned char bytes[2 * 2 * 20];
  const size_t dims[2] = {2, 40};
  float values[64];
  adead_tensor *y, *w, *x;
  size_t i;
  for (i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i % 20 == 1 || i % 20 == 3 ? 0x2c : 37 * i);
  for (i = 0; i < 64; i++) values[i] = (float)(int)(i * 29 % 64) / 8 - 4;
  OK(adead_tensor_create(ADEAD_DTYPE_U8, dims, 2, bytes, sizeof bytes, &w));
  x = tensor(values, 1, 64, 0);
  SAME("quantized_matmul", "format=q4_1", adead_tensor_quantized_matmul(context, x, w, ADEAD_BLOCK_FORMAT_Q4_1, &y), x, w);
  SAME("dequantize", "format=q4_1", adead_tensor_dequantize(context, w, ADEAD_BLOCK_FORMAT_Q4_1, &y), w);
  FAILS(adead_tensor_dequantize(context, w, 8, &y), ADEAD_INVALID_ARGUMENT, "format is 8");
  FAILS(adead_tensor_dequantize(context, w, ADEAD_BLOCK_FORMAT_Q8_0, &y), ADEAD_SHAPE_MISMATCH, "of 34 bytes each");
  FAILS(adead_tensor_quantized_matmul(context, w, w, ADEAD_BLOCK_FORMAT_Q4_1, &y), ADEAD_DTYPE_MISMATCH, "x is u8");
  adead_tensor_destroy(w);
  adead_tensor_destroy(x);
}

static void products(const adead_tensor *x, const adead_tensor *row) {
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  adead_attention_options attention = ADEAD_ATTENTION_OPTIONS_INIT;
  adead_tensor *y, *square = NULL;
  SAME("dot", "", adead_tensor_dot(context, row, row, &y), row, row);
  OK(adead_tensor_reshape(x, (const size_t[]){COLUMNS, ROWS}, 2, &square));
  SAME("matmul", "", adead_tensor_matmul(context, x, square, NULL, &y), x, square);
  SAME("matmul", "", adead_tensor_matmul(context, x, square, &options, &y), x, square);
  adead_tensor_destroy(square);
  options.trans_a = 1;
  options.alpha = 0.5f;
  options.beta = -2;
  options.c = row;
  options.bias = row;
  options.activation = ADEAD_ACTIVATION_GELU_TANH;
  SAME("matmul", "trans_a=1 alpha=0.5 beta=-2 activation=gelu_tanh",
       adead_tensor_matmul(context, x, x, &options, &y), x, x, row, row);
  options.precision = ADEAD_PRECISION_FIXED16;
  SAME("matmul", "trans_a=1 alpha=0.5 beta=-2 activation=gelu_tanh precision=fixed16",
       adead_tensor_matmul(context, x, x, &options, &y), x, x, row, row);
  SAME("attention", "", adead_tensor_attention(context, x, x, x, NULL, &y), x, x, x);
  attention.causal = 1;
  attention.scale = 0.25f;
  OK(adead_tensor_zeros(ADEAD_DTYPE_F32, (const size_t[]){ROWS, ROWS}, 2, &square));
  attention.mask = square;
  SAME("attention", "causal=1 scale=0.25", adead_tensor_attention(context, x, x, x, &attention, &y), x, x, x, square);
  attention.precision = ADEAD_PRECISION_FIXED24;
  SAME("attention", "causal=1 scale=0.25 precision=fixed24", adead_tensor_attention(context, x, x, x, &attention, &y), x, x, x,
       square);
  attention.precision = 7;
  FAILS(adead_tensor_attention(context, x, x, x, &attention, &y), ADEAD_INVALID_ARGUMENT, "precision is 7");
  /* An older header has no precision: what stands in its place is not read. */
  attention.struct_size = 24;
  SAME("attention", "causal=1 scale=0.25", adead_tensor_attention(context, x, x, x, &attention, &y), x, x, x, square);
  adead_tensor_destroy(square);
  OK(adead_tensor_reshape(x, (const size_t[]){COLUMNS, ROWS}, 2, &square));
  SAME("ffn", "activation=silu", adead_tensor_ffn(context, x, square, NULL, x, row, ADEAD_ACTIVATION_SILU, &y), x,
       square, NULL, x, row);
  adead_tensor_destroy(square);
}

static void moves(const adead_tensor *x) {
  const int32_t numbers[4] = {4, 0, 0, 2}, perm[2] = {1, 0};
  const int32_t start[2] = {1, 0}, stop[2] = {-1, 6}, step[2] = {1, 2};
  const adead_tensor *nine[9];
  adead_tensor *y, *ids = NULL, *one, *line, *places = NULL, *less = NULL;
  float values[4] = {0.5f, -1, 2, 3};
  size_t i;
  OK(adead_tensor_create(ADEAD_DTYPE_I32, (const size_t[]){2, 2}, 2, numbers, sizeof numbers, &ids));
  SAME("embedding", "", adead_tensor_embedding(context, x, ids, &y), x, ids);
  SAME("transpose", "", adead_tensor_transpose(context, x, NULL, 0, &y), x);
  SAME("transpose", "perm=1,0", adead_tensor_transpose(context, x, perm, 2, &y), x);
  one = tensor(values, 1, 1, 0);
  line = tensor(values, 2, 2, 2);
  OK(adead_tensor_create(ADEAD_DTYPE_I32, (const size_t[]){1, 2}, 2, perm, sizeof perm, &places));
  SAME("slice", "start=1,0 stop=-1,6 step=1,2", adead_tensor_slice(context, x, start, stop, step, 2, &y), x);
  SAME("slice", "start=1", adead_tensor_slice(context, x, start, NULL, NULL, 1, &y), x);
  SAME("pad", "before=1,0 after=1,2", adead_tensor_pad(context, x, one, start, step, NULL, 2, &y), x, one);
  SAME("pad", "before=1,0 step=1,2", adead_tensor_pad(context, x, one, start, NULL, step, 2, &y), x, one);
  SAME("gather", "axis=0", adead_tensor_gather(context, line, places, 0, &y), line, places);
  OK(adead_tensor_less(context, x, one, &less));
  SAME("where", "", adead_tensor_where(context, less, x, one, &y), less, x, one);
  adead_tensor_destroy(less);
  adead_tensor_destroy(one);
  adead_tensor_destroy(line);
  adead_tensor_destroy(places);
  SAME("cast", "dtype=bf16", adead_tensor_cast(context, x, ADEAD_DTYPE_BF16, &y), x);
  for (i = 0; i < 9; i++) nine[i] = x;
  y = NULL;
  OK(adead_tensor_concat(context, nine, 9, -1, &y));
  by_name("concat", "axis=1", nine, 9, y);
  adead_tensor_destroy(ids);
}

/* f64 is moved, compared and cast; arithmetic refuses it. */
static void doubles(const adead_tensor *x) {
  const double values[4] = {0.1, -2.5, 1e300, 16777217}, others[4] = {0.1000000015, -2.5, 1e299, 16777216};
  const int64_t whole[4] = {0, -2, INT64_MAX, 16777217};
  const float rounded[4] = {0.1f, -2.5f, (float)1e300, 16777216};
  const unsigned char less[4] = {1, 0, 0, 0};
  const int32_t indices[2] = {3, 0}, start = 1, after = 2;
  const size_t four = 4, two = 2;
  const void *data;
  const char *refused = "not f64; cast it first";
  adead_tensor *y, *a = NULL, *b = NULL, *ids = NULL, *condition = NULL, *one = NULL, *out = NULL;
  adead_dtype dtype = -1;
  OK(adead_tensor_create(ADEAD_DTYPE_F64, &four, 1, values, sizeof values, &a));
  OK(adead_tensor_create(ADEAD_DTYPE_F64, &four, 1, others, sizeof others, &b));
  OK(adead_tensor_create(ADEAD_DTYPE_F64, NULL, 0, values, sizeof *values, &one));
  OK(adead_tensor_create(ADEAD_DTYPE_I32, &two, 1, indices, sizeof indices, &ids));
  OK(adead_tensor_less(context, a, b, &condition));
  OK(adead_tensor_dtype(condition, &dtype));
  OK(adead_tensor_data(condition, &data));
  CHECK(dtype == ADEAD_DTYPE_BOOL && !memcmp(data, less, sizeof less));
  SAME("equal", "", adead_tensor_equal(context, a, b, &y), a, b);
  SAME("greater_equal", "", adead_tensor_greater_equal(context, a, one, &y), a, one);
  SAME("slice", "start=1", adead_tensor_slice(context, a, &start, NULL, NULL, 1, &y), a);
  SAME("pad", "after=2", adead_tensor_pad(context, a, one, NULL, &after, NULL, 1, &y), a, one);
  SAME("gather", "axis=0", adead_tensor_gather(context, a, ids, 0, &y), a, ids);
  SAME("embedding", "", adead_tensor_embedding(context, a, ids, &y), a, ids);
  SAME("transpose", "", adead_tensor_transpose(context, a, NULL, 0, &y), a);
  SAME("where", "", adead_tensor_where(context, condition, a, b, &y), condition, a, b);
  SAME("concat", "axis=0", adead_tensor_concat(context, (const adead_tensor *[]){a, b}, 2, 0, &y), a, b);
  OK(adead_tensor_where(context, condition, b, a, &y));
  OK(adead_tensor_data(y, &data));
  CHECK(((const double *)data)[0] == others[0] && !memcmp((const double *)data + 1, values + 1, 3 * sizeof *values));
  adead_tensor_destroy(y);
  OK(adead_tensor_concat(context, (const adead_tensor *[]){a, b}, 2, 0, &y));
  OK(adead_tensor_data(y, &data));
  CHECK(!memcmp(data, values, sizeof values) && !memcmp((const double *)data + 4, others, sizeof others));
  adead_tensor_destroy(y);

  /* A cast rounds once; the way back is exact. */
  SAME("cast", "dtype=i64", adead_tensor_cast(context, a, ADEAD_DTYPE_I64, &y), a);
  OK(adead_tensor_cast(context, a, ADEAD_DTYPE_I64, &y));
  OK(adead_tensor_data(y, &data));
  CHECK(!memcmp(data, whole, sizeof whole));
  adead_tensor_destroy(y);
  OK(adead_tensor_cast(context, a, ADEAD_DTYPE_F32, &y));
  OK(adead_tensor_data(y, &data));
  CHECK(!memcmp(data, rounded, sizeof rounded));
  adead_tensor_destroy(y);
  SAME("cast", "dtype=f64", adead_tensor_cast(context, x, ADEAD_DTYPE_F64, &y), x);
  OK(adead_tensor_cast(context, x, ADEAD_DTYPE_F64, &y));
  OK(adead_tensor_cast(context, y, ADEAD_DTYPE_F32, &out));
  CHECK(same(out, x));
  adead_tensor_destroy(y);
  adead_tensor_destroy(out);

  out = a;
  FAILS(adead_tensor_add(context, a, b, &out), ADEAD_DTYPE_MISMATCH, refused);
  FAILS(adead_tensor_mul(context, a, b, &out), ADEAD_DTYPE_MISMATCH, refused);
  FAILS(adead_tensor_relu(context, a, &out), ADEAD_DTYPE_MISMATCH, refused);
  FAILS(adead_tensor_scale(context, a, 2, &out), ADEAD_DTYPE_MISMATCH, refused);
  FAILS(adead_tensor_sum(context, a, 0, 0, &out), ADEAD_DTYPE_MISMATCH, refused);
  FAILS(adead_tensor_matmul(context, a, b, NULL, &out), ADEAD_DTYPE_MISMATCH, refused);
  FAILS(adead_tensor_less(context, a, x, &out), ADEAD_DTYPE_MISMATCH, "f64");
  FAILS(adead_tensor_embedding(context, x, a, &out), ADEAD_DTYPE_MISMATCH, "f64");
  CHECK(out == a);
  adead_tensor_destroy(a);
  adead_tensor_destroy(b);
  adead_tensor_destroy(ids);
  adead_tensor_destroy(condition);
  adead_tensor_destroy(one);
}

static void errors(adead_tensor *x, const adead_tensor *row) {
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  adead_tensor *out = x;
  adead_attrs *attrs = NULL;
  adead_op op = 77;
  FAILS(adead_tensor_add(NULL, x, x, &out), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_tensor_add(context, x, x, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_tensor_add(context, x, NULL, &out), ADEAD_INVALID_ARGUMENT, "(b) is missing");
  FAILS(adead_tensor_relu(context, NULL, &out), ADEAD_INVALID_ARGUMENT, "(x) is missing");
  FAILS(adead_tensor_matmul(context, x, x, NULL, &out), ADEAD_SHAPE_MISMATCH, "(7) must equal B's rows (5)");
  FAILS(adead_tensor_sum(context, x, 2, 0, &out), ADEAD_INVALID_ARGUMENT, "axis 2");
  FAILS(adead_tensor_add_rmsnorm(context, x, row, NULL, 1e-5f, &out), ADEAD_SHAPE_MISMATCH, "residual is [7]");
  FAILS(adead_tensor_topk(context, x, 8, -1, &out), ADEAD_INVALID_ARGUMENT, "k is 8; axis 1 of [5, 7] has 7 elements");
  FAILS(adead_tensor_argtopk(context, x, 1, 0, 99, &out), ADEAD_INVALID_ARGUMENT, "dtype is 99");
  FAILS(adead_tensor_argmax(context, x, 0, 0, 99, &out), ADEAD_INVALID_ARGUMENT, "dtype is 99");
  FAILS(adead_tensor_gelu(context, x, 2, &out), ADEAD_INVALID_ARGUMENT, "form is 2");
  FAILS(adead_tensor_ffn(context, x, x, NULL, x, NULL, 7, &out), ADEAD_INVALID_ARGUMENT, "activation is 7");
  FAILS(adead_tensor_transpose(context, x, NULL, 2, &out), ADEAD_INVALID_ARGUMENT, "perm is NULL");
  FAILS(adead_tensor_transpose(context, x, NULL, 9, &out), ADEAD_INVALID_ARGUMENT, "rank is 9");
  FAILS(adead_tensor_slice(context, x, NULL, NULL, (const int32_t[]){0}, 1, &out), ADEAD_INVALID_ARGUMENT, "at least 1");
  FAILS(adead_tensor_slice(context, x, (const int32_t[]){0}, NULL, NULL, 9, &out), ADEAD_INVALID_ARGUMENT, "rank is 9");
  FAILS(adead_tensor_pad(context, x, row, NULL, NULL, NULL, 0, &out), ADEAD_SHAPE_MISMATCH, "one element");
  FAILS(adead_tensor_gather(context, x, x, 0, &out), ADEAD_DTYPE_MISMATCH, "ids are");
  FAILS(adead_tensor_where(context, x, x, x, &out), ADEAD_DTYPE_MISMATCH, "condition is bool, not f32");
  FAILS(adead_tensor_concat(context, NULL, 0, 0, &out), ADEAD_INVALID_ARGUMENT, "missing");
  FAILS(adead_tensor_concat(context, NULL, 3, 0, &out), ADEAD_INVALID_ARGUMENT, "tensors is NULL");
  options.struct_size = 8;
  FAILS(adead_tensor_matmul(context, x, x, &options, &out), ADEAD_INVALID_ARGUMENT, "struct_size of adead_matmul_options");
  options.struct_size = sizeof options;
  options.precision = -2;
  FAILS(adead_tensor_matmul(context, x, x, &options, &out), ADEAD_INVALID_ARGUMENT, "precision is -2");

  FAILS(adead_op_run(context, (adead_op)adead_op_count(), NULL, 0, NULL, &out), ADEAD_INVALID_ARGUMENT, "op is");
  FAILS(adead_op_run(context, ADEAD_OP_RELU, NULL, 1, NULL, &out), ADEAD_INVALID_ARGUMENT, "operands is NULL");
  FAILS(adead_op_run(context, ADEAD_OP_RELU, &row, 0, NULL, &out), ADEAD_INVALID_ARGUMENT, "(x) is missing");
  FAILS(adead_op_run(context, ADEAD_OP_RELU, &row, (size_t)-1 / 4, NULL, &out), ADEAD_INVALID_ARGUMENT, "operands");
  FAILS(adead_op_from_name("gemm", &op), ADEAD_INVALID_ARGUMENT, "gemm");
  CHECK(out == x && op == 77);
  CHECK(!adead_op_name(-1) && !adead_op_name((adead_op)adead_op_count()));

  FAILS(adead_attrs_create(NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_attrs_create(&attrs));
  FAILS(adead_attrs_set(NULL, ADEAD_OP_SUM, "axis", "1"), ADEAD_INVALID_ARGUMENT, "attrs is NULL");
  FAILS(adead_attrs_set(attrs, ADEAD_OP_SUM, NULL, "1"), ADEAD_INVALID_ARGUMENT, "name is NULL");
  FAILS(adead_attrs_set(attrs, ADEAD_OP_SUM, "axis", NULL), ADEAD_INVALID_ARGUMENT, "value is NULL");
  FAILS(adead_attrs_set(attrs, ADEAD_OP_SUM, "alpha", "1"), ADEAD_INVALID_ARGUMENT, "alpha");
  FAILS(adead_attrs_set(attrs, ADEAD_OP_SUM, "axis", "one"), ADEAD_INVALID_ARGUMENT, "one");
  FAILS(adead_attrs_set(attrs, 1000, "axis", "1"), ADEAD_INVALID_ARGUMENT, "op is 1000");
  OK(adead_op_run(context, ADEAD_OP_SUM, &row, 1, attrs, &out)); /* Nothing was changed. */
  adead_tensor_destroy(out);
  adead_attrs_destroy(attrs);
  adead_attrs_destroy(NULL);
}

int main(void) {
  float values[ROWS * COLUMNS];
  adead_tensor *x, *row;
  size_t i;
  some_values(values, ROWS * COLUMNS, 1);
  x = tensor(values, 2, ROWS, COLUMNS);
  row = tensor(values, 1, COLUMNS, 0);
  OK(adead_context_open(NULL, NULL, &context));
  elementwise(x, row);
  reductions(x, row);
  rope(values);
  products(x, row);
  blocks();
  moves(x);
  doubles(x);
  for (i = 0; i < adead_op_count(); i++) {
    if (!adead_op_name((adead_op)i)) continue;
    if (!seen[i]) fprintf(stderr, "%s has no test here\n", adead_op_name((adead_op)i));
    CHECK(seen[i]);
  }
  errors(x, row);
  adead_context_destroy(context);
  adead_tensor_destroy(x);
  adead_tensor_destroy(row);
  return 0;
}
