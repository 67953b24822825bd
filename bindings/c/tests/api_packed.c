/* Packed matrices: products with them are those without, and the errors of both. */
#include "check.h"

enum { M = 5, K = 300, N = 37 };

static adead_context *context;
static float values[K * N];

/* b packed and not, with and without options. */
static void products(const adead_tensor *a, const adead_tensor *b, int32_t trans_b, const adead_tensor *bias) {
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  adead_packed *packed = NULL;
  adead_tensor *y = NULL, *expected = NULL;
  const size_t *dims = NULL;
  size_t bytes = 0;
  adead_dtype dtype = -1, of_b = -2;
  int i;
  OK(adead_packed_create(context, b, trans_b, &packed));
  OK(adead_packed_dims(packed, &dims));
  CHECK(dims[0] == K && dims[1] == N);
  OK(adead_packed_dtype(packed, &dtype));
  OK(adead_tensor_dtype(b, &of_b));
  CHECK(dtype == of_b);
  OK(adead_packed_bytes(packed, &bytes));
  CHECK(bytes >= K * N * sizeof(float) && bytes <= K * (N + 31) * sizeof(float));
  for (i = 0; i < 3; i++) {
    options.trans_b = trans_b;
    OK(adead_tensor_matmul(context, a, b, i || trans_b ? &options : NULL, &expected));
    options.trans_b = 0;
    OK(adead_packed_matmul(context, a, packed, i ? &options : NULL, &y));
    CHECK(same(y, expected));
    adead_tensor_destroy(y);
    adead_tensor_destroy(expected);
    options.alpha = 0.5f;
    options.beta = -2;
    options.c = bias;
    options.bias = bias;
    options.activation = ADEAD_ACTIVATION_GELU_TANH;
  }
  adead_packed_destroy(packed);
}

static void errors(const adead_tensor *a, const adead_tensor *b) {
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  adead_context_options other = ADEAD_CONTEXT_OPTIONS_INIT;
  adead_context *sse2 = NULL;
  adead_device_info info;
  adead_packed *packed = NULL, *none = NULL;
  adead_tensor *y = NULL, *vector = NULL, *ids = NULL;
  const size_t *dims = NULL;
  size_t bytes = 7;
  adead_dtype dtype = 7;
  OK(adead_packed_create(context, b, 0, &packed));
  FAILS(adead_packed_create(NULL, b, 0, &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_packed_create(context, NULL, 0, &none), ADEAD_INVALID_ARGUMENT, "b is NULL");
  FAILS(adead_packed_create(context, b, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  vector = tensor(values, 1, N, 0);
  FAILS(adead_packed_create(context, vector, 0, &none), ADEAD_SHAPE_MISMATCH, "[37], of rank 1");
  OK(adead_tensor_zeros(ADEAD_DTYPE_I32, (const size_t[]){2, 2}, 2, &ids));
  FAILS(adead_packed_create(context, ids, 0, &none), ADEAD_DTYPE_MISMATCH, "b is i32");
  FAILS(adead_packed_dims(NULL, &dims), ADEAD_INVALID_ARGUMENT, "packed is NULL");
  FAILS(adead_packed_dims(packed, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_packed_dtype(NULL, &dtype), ADEAD_INVALID_ARGUMENT, "packed is NULL");
  FAILS(adead_packed_dtype(packed, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_packed_bytes(NULL, &bytes), ADEAD_INVALID_ARGUMENT, "packed is NULL");
  FAILS(adead_packed_bytes(packed, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_packed_matmul(NULL, a, packed, NULL, &y), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_packed_matmul(context, NULL, packed, NULL, &y), ADEAD_INVALID_ARGUMENT, "(a) is missing");
  FAILS(adead_packed_matmul(context, a, NULL, NULL, &y), ADEAD_INVALID_ARGUMENT, "b is NULL");
  FAILS(adead_packed_matmul(context, a, packed, NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_packed_matmul(context, b, packed, NULL, &y), ADEAD_SHAPE_MISMATCH, "(37) must equal B's rows (300)");
  options.trans_b = 1;
  FAILS(adead_packed_matmul(context, a, packed, &options, &y), ADEAD_INVALID_ARGUMENT, "trans_b must be 0");
  options.trans_b = 0;
  options.precision = ADEAD_PRECISION_FIXED24;
  FAILS(adead_packed_matmul(context, a, packed, &options, &y), ADEAD_INVALID_ARGUMENT, "precision can't be fixed24");
  options.precision = 3;
  FAILS(adead_packed_matmul(context, a, packed, &options, &y), ADEAD_INVALID_ARGUMENT, "precision is 3");
  options.struct_size = 8;
  FAILS(adead_packed_matmul(context, a, packed, &options, &y), ADEAD_INVALID_ARGUMENT,
        "struct_size of adead_matmul_options");
  CHECK(!none && !y && !dims && bytes == 7 && dtype == 7);

  /* Another instruction set has another layout. */
  other.isa = "sse2";
  info.struct_size = sizeof info;
  OK(adead_context_device_info(context, &info));
  if (strcmp(info.arch, "sse2") && !adead_context_open("cpu", &other, &sse2)) {
    FAILS(adead_packed_matmul(sse2, a, packed, NULL, &y), ADEAD_INVALID_ARGUMENT, "and is used on sse2");
    adead_context_destroy(sse2);
  }
  adead_packed_destroy(packed);
  adead_packed_destroy(NULL);
  adead_tensor_destroy(vector);
  adead_tensor_destroy(ids);
}

/* What products without a precision have, and those with one. */
static void precision_of_the_context(const adead_tensor *a, const adead_tensor *b) {
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  adead_tensor *before = NULL, *y = NULL, *said = NULL;
  adead_precision precision = -7;
  adead_context *own = NULL;
  OK(adead_context_precision(context, &precision));
  CHECK(precision == ADEAD_PRECISION_F32);
  OK(adead_tensor_matmul(context, a, b, NULL, &before));
  OK(adead_context_set_precision(context, ADEAD_PRECISION_FIXED24));
  OK(adead_context_precision(context, &precision));
  CHECK(precision == ADEAD_PRECISION_FIXED24);
  OK(adead_tensor_matmul(context, a, b, NULL, &y));
  CHECK(!same(y, before));
  options.precision = ADEAD_PRECISION_FIXED24;
  OK(adead_tensor_matmul(context, a, b, &options, &said));
  CHECK(same(y, said));
  adead_tensor_destroy(said);
  options.precision = ADEAD_PRECISION_F32;
  OK(adead_tensor_matmul(context, a, b, &options, &said));
  CHECK(same(said, before));
  adead_tensor_destroy(said);
  OK(adead_context_set_precision(context, ADEAD_PRECISION_F32));
  OK(adead_context_with_precision(context, ADEAD_PRECISION_FIXED24, &own));
  OK(adead_tensor_matmul(own, a, b, NULL, &said));
  CHECK(same(said, y));
  adead_tensor_destroy(said);
  OK(adead_tensor_matmul(context, a, b, NULL, &said));
  CHECK(same(said, before));
  adead_tensor_destroy(said);
  adead_context_destroy(own);
  own = context;
  FAILS(adead_context_with_precision(context, 3, &own), ADEAD_INVALID_ARGUMENT, "precision is 3");
  CHECK(own == context);
  FAILS(adead_context_with_precision(context, ADEAD_PRECISION_F32, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_context_set_precision(context, 3), ADEAD_INVALID_ARGUMENT, "precision is 3");
  FAILS(adead_context_set_precision(context, ADEAD_PRECISION_DEFAULT), ADEAD_INVALID_ARGUMENT, "precision is -1");
  FAILS(adead_context_set_precision(NULL, ADEAD_PRECISION_F32), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_context_precision(NULL, &precision), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_context_precision(context, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_context_set_precision(context, ADEAD_PRECISION_F32));
  adead_tensor_destroy(before);
  adead_tensor_destroy(y);
}

int main(void) {
  adead_tensor *a, *b, *turned = NULL, *bias, *half_a = NULL, *half_b = NULL, *half_bias = NULL;
  OK(adead_context_open(NULL, NULL, &context));
  some_values(values, K * N, 1);
  a = tensor(values, 2, M, K);
  b = tensor(values, 2, K, N);
  bias = tensor(values, 1, N, 0);
  products(a, b, 0, bias);
  OK(adead_tensor_transpose(context, b, NULL, 0, &turned));
  products(a, turned, 1, bias);
  OK(adead_tensor_cast(context, a, ADEAD_DTYPE_BF16, &half_a));
  OK(adead_tensor_cast(context, b, ADEAD_DTYPE_BF16, &half_b));
  OK(adead_tensor_cast(context, bias, ADEAD_DTYPE_BF16, &half_bias));
  products(half_a, half_b, 0, half_bias);
  errors(a, b);
  precision_of_the_context(a, b);
  adead_tensor_destroy(a);
  adead_tensor_destroy(b);
  adead_tensor_destroy(turned);
  adead_tensor_destroy(bias);
  adead_tensor_destroy(half_a);
  adead_tensor_destroy(half_b);
  adead_tensor_destroy(half_bias);
  adead_context_destroy(context);
  return 0;
}
