/* Chains: their results are those of single calls, compiled and executed; plans as text; the errors. */
#include "check.h"

enum { ROWS = 7, N = 40, WIDE = 60 };

static adead_context *context;
static adead_tensor *x, *w1, *b1, *w2, *expected;
static float values[N * WIDE];

/* relu(x*w1 + b1)*w2, from x on. */
static adead_value record(adead_chain *chain, adead_value from) {
  adead_value value = 0, operands[2];
  adead_attrs *attrs = NULL;
  operands[0] = from;
  OK(adead_chain_constant(chain, w1, &operands[1]));
  OK(adead_chain_op(chain, ADEAD_OP_MATMUL, operands, 2, NULL, &operands[0]));
  OK(adead_chain_constant(chain, b1, &operands[1]));
  OK(adead_chain_op(chain, ADEAD_OP_ADD, operands, 2, NULL, &operands[0]));
  OK(adead_chain_op(chain, ADEAD_OP_RELU, operands, 1, NULL, &operands[0]));
  OK(adead_chain_constant(chain, w2, &operands[1]));
  OK(adead_attrs_create(&attrs));
  OK(adead_attrs_set(attrs, ADEAD_OP_MATMUL, "alpha", "0.5"));
  OK(adead_chain_op(chain, ADEAD_OP_MATMUL, operands, 2, attrs, &value));
  adead_attrs_destroy(attrs);
  return value;
}

static void single_calls(void) {
  adead_tensor *h = NULL, *sum = NULL, *relu = NULL;
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  OK(adead_tensor_matmul(context, x, w1, NULL, &h));
  OK(adead_tensor_add(context, h, b1, &sum));
  OK(adead_tensor_relu(context, sum, &relu));
  options.alpha = 0.5f;
  OK(adead_tensor_matmul(context, relu, w2, &options, &expected));
  adead_tensor_destroy(h);
  adead_tensor_destroy(sum);
  adead_tensor_destroy(relu);
}

static void executed(void) {
  int i;
  for (i = 0; i < 3; i++) {
    adead_chain *chain = NULL;
    adead_value from;
    adead_tensor *y = NULL;
    adead_cache_use use;
    OK(adead_chain_create(context, &chain));
    OK(adead_chain_constant(chain, x, &from));
    record(chain, from);
    OK(adead_chain_execute(chain, &y, 1));
    CHECK(same(y, expected));
    adead_tensor_destroy(y);
    adead_chain_destroy(chain);
    use.struct_size = sizeof use;
    OK(adead_chain_cache(context, &use));
    CHECK(use.entries == 1 && use.hits == (uint64_t)i && use.misses == 1 && use.most >= 1);
  }
  OK(adead_context_trim(context));
}

/* Halves a gradient, takes one as it is, fails with the library's error, and with a status of its own. */
static adead_status hook(adead_chain *chain, size_t number, adead_value gradient, adead_value *out, void *user) {
  adead_attrs *half = NULL;
  adead_value unused;
  CHECK(*out == gradient && number < 2);
  ++*(int *)user;
  if (number == 1 && *(int *)user < 10) return ADEAD_OK;
  if (*(int *)user == 11) return adead_chain_detach(chain, gradient + (adead_value)1000000, out);
  if (*(int *)user == 21) return 777;
  if (*(int *)user == 31) return adead_chain_gradients(chain, gradient, &gradient, 1, &unused);
  OK(adead_attrs_create(&half));
  OK(adead_attrs_set(half, ADEAD_OP_SCALE, "alpha", "0x3f000000"));
  OK(adead_chain_op(chain, ADEAD_OP_SCALE, &gradient, 1, half, out));
  adead_attrs_destroy(half);
  return ADEAD_OK;
}

/* Hooks at x*x and x of the sum of x*x, and a square through which nothing passes. */
static void hooks(void) {
  adead_chain *chain = NULL;
  adead_compiled *plan = NULL;
  const float numbers[2] = {3.f, -0.25f};
  const size_t dims[1] = {2};
  adead_tensor *given = NULL, *outputs[1] = {NULL};
  adead_value x, square, sum, operands[2], hooked[2], slope = 7;
  int32_t before = 7;
  int calls = 0;
  float got[2];
  OK(adead_chain_create(context, &chain));
  OK(adead_chain_input(chain, ADEAD_DTYPE_F32, dims, 1, &x));
  operands[0] = operands[1] = x;
  OK(adead_chain_set_grad_enabled(chain, 0, &before));
  CHECK(before == 1);
  OK(adead_chain_op(chain, ADEAD_OP_MUL, operands, 2, NULL, &square));
  OK(adead_chain_set_grad_enabled(chain, 1, &before));
  CHECK(before == 0);
  OK(adead_chain_set_grad_enabled(chain, 1, NULL));
  OK(adead_chain_op(chain, ADEAD_OP_SUM, &square, 1, NULL, &sum));
  FAILS(adead_chain_gradients(chain, sum, &x, 1, &slope), ADEAD_INVALID_ARGUMENT, "does not depend");
  OK(adead_chain_op(chain, ADEAD_OP_MUL, operands, 2, NULL, &square));
  OK(adead_chain_op(chain, ADEAD_OP_SUM, &square, 1, NULL, &sum));
  hooked[0] = square, hooked[1] = x;
  FAILS(adead_chain_gradients_with(chain, sum, &x, 1, hooked, 2, NULL, NULL, &slope), ADEAD_INVALID_ARGUMENT, "hook is NULL");
  FAILS(adead_chain_gradients_with(chain, sum, &x, 1, NULL, 2, hook, &calls, &slope), ADEAD_INVALID_ARGUMENT, "hooked is NULL");
  calls = 10;
  FAILS(adead_chain_gradients_with(chain, sum, &x, 1, hooked, 2, hook, &calls, &slope), ADEAD_INVALID_ARGUMENT,
        "hook 0 returned invalid_argument: ");
  calls = 20;
  FAILS(adead_chain_gradients_with(chain, sum, &x, 1, hooked, 2, hook, &calls, &slope), 777, "hook 0 returned 777");
  calls = 30;
  FAILS(adead_chain_gradients_with(chain, sum, &x, 1, hooked, 2, hook, &calls, &slope), ADEAD_INVALID_ARGUMENT,
        "a hook can't record gradients");
  CHECK(slope == 7);
  calls = 0;
  OK(adead_chain_gradients_with(chain, sum, &x, 1, hooked, 2, hook, &calls, &slope));
  CHECK(calls == 2);
  OK(adead_chain_output(chain, slope));
  OK(adead_chain_compile(chain, &plan));
  OK(adead_tensor_create(ADEAD_DTYPE_F32, dims, 1, numbers, sizeof numbers, &given));
  OK(adead_compiled_run(plan, (const adead_tensor *const *)&given, 1, outputs, 1));
  OK(adead_tensor_read(outputs[0], got, sizeof got));
  CHECK(got[0] == 3.f && got[1] == -0.25f);
  adead_tensor_destroy(outputs[0]);
  adead_tensor_destroy(given);
  adead_compiled_destroy(plan);
  adead_chain_destroy(chain);
}

static void gradients(void) {
  adead_chain *chain = NULL;
  adead_compiled *plan = NULL;
  adead_value from, still, square, product, sum, found[2] = {7, 7};
  const float numbers[3] = {1.f, -2.f, 0.5f};
  const size_t dims[1] = {3};
  adead_tensor *given = NULL, *outputs[2] = {NULL, NULL};
  const adead_tensor *inputs[1];
  float got[3];
  adead_value operands[2], by[2];
  OK(adead_chain_create(context, &chain));
  OK(adead_chain_input(chain, ADEAD_DTYPE_F32, dims, 1, &from));
  operands[0] = operands[1] = from;
  OK(adead_chain_op(chain, ADEAD_OP_MUL, operands, 2, NULL, &square));
  still = square;
  if (adead_chain_detach(chain, square, &still) != ADEAD_UNSUPPORTED) CHECK(still != square);
  operands[1] = still;
  OK(adead_chain_op(chain, ADEAD_OP_MUL, operands, 2, NULL, &product));
  operands[0] = product, operands[1] = square;
  OK(adead_chain_op(chain, ADEAD_OP_ADD, operands, 2, NULL, &product));
  OK(adead_chain_op(chain, ADEAD_OP_SUM, &product, 1, NULL, &sum));
  by[0] = from, by[1] = square;
  if (adead_chain_gradients(chain, sum, by, 2, found) == ADEAD_UNSUPPORTED) {
    FAILS(adead_chain_gradients(chain, sum, by, 2, found), ADEAD_UNSUPPORTED, "no gradients: build it with ADEAD_GRADIENTS");
    CHECK(!getenv("ADEAD_TEST_GRADIENTS"));
    adead_chain_destroy(chain);
    return;
  }
  found[0] = found[1] = 7;
  FAILS(adead_chain_gradients(chain, product, by, 2, found), ADEAD_SHAPE_MISMATCH, "it must have one element");
  FAILS(adead_chain_gradients(chain, sum, &sum, 1, NULL), ADEAD_INVALID_ARGUMENT, "gradients is NULL");
  FAILS(adead_chain_gradients(chain, sum, NULL, 1, found), ADEAD_INVALID_ARGUMENT, "values is NULL");
  FAILS(adead_chain_detach(chain, sum, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(found[0] == 7 && found[1] == 7);
  /* Of x times x squared, which stands still, plus x squared: x squared + 2x, and 1. */
  OK(adead_chain_gradients(chain, sum, by, 2, found));
  OK(adead_chain_output(chain, found[0]));
  OK(adead_chain_compile(chain, &plan));
  OK(adead_tensor_create(ADEAD_DTYPE_F32, dims, 1, numbers, sizeof numbers, &given));
  inputs[0] = given;
  OK(adead_compiled_run(plan, inputs, 1, outputs, 1));
  OK(adead_tensor_read(outputs[0], got, sizeof got));
  CHECK(got[0] == 3.f && got[1] == 0.f && got[2] == 1.25f);
  adead_tensor_destroy(outputs[0]);
  adead_tensor_destroy(given);
  adead_compiled_destroy(plan);
  adead_chain_destroy(chain);
  hooks();
}

static void compiled(void) {
  adead_chain *chain = NULL;
  adead_compiled *plan = NULL;
  adead_compiled_info info;
  adead_value from, y, flat;
  const adead_tensor *inputs[1];
  adead_tensor *outputs[2] = {NULL, NULL}, *reshaped = NULL;
  const size_t dims[2] = {ROWS, N}, all[1] = {ROWS * N};
  const char *text = NULL;
  int i;
  OK(adead_chain_create(context, &chain));
  OK(adead_chain_input(chain, ADEAD_DTYPE_F32, dims, 2, &from));
  y = record(chain, from);
  OK(adead_chain_reshape(chain, y, all, 1, &flat));
  OK(adead_chain_output(chain, flat));
  OK(adead_chain_output(chain, y));
  OK(adead_chain_compile(chain, &plan));
  adead_chain_destroy(chain);
  info.struct_size = sizeof info;
  OK(adead_compiled_describe(plan, &info));
  CHECK(info.inputs == 1 && info.outputs == 2 && info.operations == 4 && info.steps == 2 && info.memory > 0);
  CHECK(strlen(info.device) > 2);
  OK(adead_compiled_text(plan, &text));
  CHECK(strstr(text, "matmul+add+relu(input 0: f32[7, 40]"));
  OK(adead_compiled_dot(plan, &text));
  CHECK(strstr(text, "\"step 0\" -> \"step 1\";"));
  OK(adead_tensor_reshape(expected, all, 1, &reshaped));
  inputs[0] = x;
  for (i = 0; i < 3; i++) {
    OK(adead_compiled_run(plan, inputs, 1, outputs, 2));
    CHECK(same(outputs[0], reshaped) && same(outputs[1], expected));
    adead_tensor_destroy(outputs[0]);
    adead_tensor_destroy(outputs[1]);
  }

  outputs[0] = NULL;
  FAILS(adead_compiled_run(NULL, inputs, 1, outputs, 2), ADEAD_INVALID_ARGUMENT, "compiled is NULL");
  FAILS(adead_compiled_run(plan, NULL, 1, outputs, 2), ADEAD_INVALID_ARGUMENT, "inputs is NULL");
  FAILS(adead_compiled_run(plan, inputs, 0, outputs, 2), ADEAD_INVALID_ARGUMENT, "has 1 inputs and was given 0");
  FAILS(adead_compiled_run(plan, inputs, 1, NULL, 2), ADEAD_INVALID_ARGUMENT, "outputs is NULL");
  FAILS(adead_compiled_run(plan, inputs, 1, outputs, 1), ADEAD_INVALID_ARGUMENT, "room for 1 outputs");
  inputs[0] = w1;
  FAILS(adead_compiled_run(plan, inputs, 1, outputs, 2), ADEAD_SHAPE_MISMATCH, "input 0 is [40, 60]");
  inputs[0] = NULL;
  FAILS(adead_compiled_run(plan, inputs, 1, outputs, 2), ADEAD_INVALID_ARGUMENT, "an input is NULL");
  CHECK(!outputs[0]);
  FAILS(adead_compiled_describe(NULL, &info), ADEAD_INVALID_ARGUMENT, "compiled is NULL");
  FAILS(adead_compiled_describe(plan, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_compiled_text(NULL, &text), ADEAD_INVALID_ARGUMENT, "compiled is NULL");
  FAILS(adead_compiled_text(plan, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_compiled_dot(NULL, &text), ADEAD_INVALID_ARGUMENT, "compiled is NULL");
  FAILS(adead_compiled_dot(plan, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  adead_tensor_destroy(reshaped);
  adead_compiled_destroy(plan);
  adead_compiled_destroy(NULL);
}

static void errors(void) {
  adead_chain *chain = NULL, *other = NULL, *none = NULL;
  adead_compiled *plan = NULL;
  adead_value value = 7, from, strange, operands[2];
  adead_tensor *y = NULL;
  adead_cache_use use;
  const size_t dims[2] = {ROWS, N};
  FAILS(adead_chain_create(NULL, &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_chain_create(context, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_chain_create(context, &chain));
  OK(adead_chain_create(context, &other));
  FAILS(adead_chain_compile(chain, &plan), ADEAD_INVALID_ARGUMENT, "the pipeline is empty");
  FAILS(adead_chain_input(NULL, ADEAD_DTYPE_F32, dims, 2, &value), ADEAD_INVALID_ARGUMENT, "chain is NULL");
  FAILS(adead_chain_input(chain, 99, dims, 2, &value), ADEAD_INVALID_ARGUMENT, "dtype");
  FAILS(adead_chain_input(chain, ADEAD_DTYPE_F32, NULL, 2, &value), ADEAD_INVALID_ARGUMENT, "dims is NULL");
  FAILS(adead_chain_input(chain, ADEAD_DTYPE_F32, dims, 9, &value), ADEAD_INVALID_ARGUMENT, "rank is 9");
  FAILS(adead_chain_input(chain, ADEAD_DTYPE_F32, dims, 2, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_chain_constant(NULL, x, &value), ADEAD_INVALID_ARGUMENT, "chain is NULL");
  FAILS(adead_chain_constant(chain, NULL, &value), ADEAD_INVALID_ARGUMENT, "tensor is NULL");
  FAILS(adead_chain_constant(chain, x, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_chain_input(other, ADEAD_DTYPE_F32, dims, 2, &strange));
  OK(adead_chain_input(chain, ADEAD_DTYPE_F32, dims, 2, &from));
  operands[0] = strange;
  FAILS(adead_chain_op(chain, ADEAD_OP_RELU, operands, 1, NULL, &value), ADEAD_INVALID_ARGUMENT, "another pipeline");
  operands[0] = operands[1] = from;
  FAILS(adead_chain_op(chain, ADEAD_OP_MATMUL, operands, 2, NULL, &value), ADEAD_SHAPE_MISMATCH, "must equal B's rows");
  FAILS(adead_chain_op(chain, ADEAD_OP_MATMUL, operands, 1, NULL, &value), ADEAD_INVALID_ARGUMENT, "(b) is missing");
  FAILS(adead_chain_op(chain, 9999, operands, 2, NULL, &value), ADEAD_INVALID_ARGUMENT, "op is 9999");
  FAILS(adead_chain_op(NULL, ADEAD_OP_RELU, operands, 1, NULL, &value), ADEAD_INVALID_ARGUMENT, "chain is NULL");
  FAILS(adead_chain_op(chain, ADEAD_OP_RELU, NULL, 1, NULL, &value), ADEAD_INVALID_ARGUMENT, "operands is NULL");
  FAILS(adead_chain_op(chain, ADEAD_OP_RELU, operands, 1, NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  operands[1] = ADEAD_NO_VALUE;
  FAILS(adead_chain_op(chain, ADEAD_OP_ADD, operands, 2, NULL, &value), ADEAD_INVALID_ARGUMENT, "(b) is missing");
  FAILS(adead_chain_reshape(chain, from, dims, 1, &value), ADEAD_SHAPE_MISMATCH, "280 elements against 7");
  FAILS(adead_chain_reshape(NULL, from, dims, 1, &value), ADEAD_INVALID_ARGUMENT, "chain is NULL");
  FAILS(adead_chain_reshape(chain, from, dims, 2, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_chain_output(chain, from), ADEAD_INVALID_ARGUMENT, "an output must be computed");
  FAILS(adead_chain_output(chain, strange), ADEAD_INVALID_ARGUMENT, "another pipeline");
  FAILS(adead_chain_output(NULL, from), ADEAD_INVALID_ARGUMENT, "chain is NULL");
  CHECK(value == 7);
  OK(adead_chain_op(chain, ADEAD_OP_RELU, operands, 1, NULL, &value));
  FAILS(adead_chain_execute(chain, &y, 1), ADEAD_INVALID_ARGUMENT, "has 1 inputs");
  FAILS(adead_chain_execute(chain, &y, 2), ADEAD_INVALID_ARGUMENT, "room for 2 outputs");
  FAILS(adead_chain_execute(NULL, &y, 1), ADEAD_INVALID_ARGUMENT, "chain is NULL");
  FAILS(adead_chain_execute(chain, NULL, 1), ADEAD_INVALID_ARGUMENT, "outputs is NULL");
  FAILS(adead_chain_compile(NULL, &plan), ADEAD_INVALID_ARGUMENT, "chain is NULL");
  FAILS(adead_chain_compile(chain, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  use.struct_size = 8;
  FAILS(adead_chain_cache(context, &use), ADEAD_INVALID_ARGUMENT, "struct_size");
  FAILS(adead_chain_cache(NULL, &use), ADEAD_INVALID_ARGUMENT, "context is NULL");
  CHECK(!y && !plan && !none);
  adead_chain_destroy(chain);
  adead_chain_destroy(other);
  adead_chain_destroy(NULL);
}

int main(void) {
  OK(adead_context_open(NULL, NULL, &context));
  some_values(values, N * WIDE, 1);
  x = tensor(values, 2, ROWS, N);
  w1 = tensor(values, 2, N, WIDE);
  b1 = tensor(values, 1, WIDE, 0);
  w2 = tensor(values, 2, WIDE, N);
  single_calls();
  executed();
  gradients();
  compiled();
  errors();
  adead_tensor_destroy(x);
  adead_tensor_destroy(w1);
  adead_tensor_destroy(b1);
  adead_tensor_destroy(w2);
  adead_tensor_destroy(expected);
  adead_context_destroy(context);
  return 0;
}
