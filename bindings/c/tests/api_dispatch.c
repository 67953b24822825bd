/* Which device an operation runs on, and why: selection, explanations, thresholds, a forced device. */
#include "check.h"

static void selects(adead_context *context) {
  size_t n, index = 99, count = 0;
  OK(adead_context_device_count(context, &count));
  for (n = 1; n < (size_t)-1 / 2; n *= 3) {
    OK(adead_select(context, n, &index));
    CHECK(index < count);
  }
  index = 99;
  FAILS(adead_select(NULL, 1, &index), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_select(context, 1, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(index == 99);
}

static void explains(adead_context *context) {
  float values[12];
  adead_tensor *a, *b;
  const adead_tensor *operands[2];
  adead_explanation it;
  adead_device_info info;
  const adead_estimate *own;
  some_values(values, 12, 1);
  a = tensor(values, 2, 3, 4);
  b = tensor(values, 2, 4, 3);
  operands[0] = a;
  operands[1] = b;
  memset(&it, 0x55, sizeof it);
  it.struct_size = sizeof it;
  OK(adead_explain(context, ADEAD_OP_MATMUL, operands, 2, NULL, &it));
  CHECK(it.family == ADEAD_FAMILY_MATMUL && !strcmp(adead_family_name(it.family), "matmul"));
  CHECK(it.flops == 2 * 3 * 4 * 3 && it.bytes == 4 * (12 + 12 + 9) && it.elements == 12);
  CHECK(it.estimate_count >= 1 && it.device < it.estimate_count && strlen(it.reason) > 0);
  own = &it.estimates[it.device];
  CHECK(own->fits == 1 && own->compute_ns > 0 && own->total_ns == own->compute_ns + own->launch_ns + own->transfer_ns);
  info.struct_size = sizeof info;
  OK(adead_context_device_at(context, it.device, &info));
  CHECK(!strcmp(info.id, it.id));
  CHECK(it.rows[0] == 0 && it.split_ns == 0);
  it.family = 77;
  operands[1] = a;
  FAILS(adead_explain(context, ADEAD_OP_MATMUL, operands, 2, NULL, &it), ADEAD_SHAPE_MISMATCH, "[3, 4]");
  FAILS(adead_explain(context, 9999, operands, 2, NULL, &it), ADEAD_INVALID_ARGUMENT, "op is 9999");
  FAILS(adead_explain(context, ADEAD_OP_RELU, NULL, 1, NULL, &it), ADEAD_INVALID_ARGUMENT, "operands is NULL");
  FAILS(adead_explain(NULL, ADEAD_OP_RELU, operands, 1, NULL, &it), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_explain(context, ADEAD_OP_RELU, operands, 1, NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(it.family == 77);
  it.struct_size = 8;
  FAILS(adead_explain(context, ADEAD_OP_RELU, operands, 1, NULL, &it), ADEAD_INVALID_ARGUMENT, "adead_explanation");
  adead_tensor_destroy(a);
  adead_tensor_destroy(b);
}

/* What is set changes choices, never results. */
static void sets(adead_context *context) {
  float values[300];
  adead_tensor *x, *before = NULL, *after = NULL;
  adead_explanation it;
  const adead_tensor *operands[1];
  some_values(values, 300, 2);
  operands[0] = x = tensor(values, 1, 300, 0);
  it.struct_size = sizeof it;
  OK(adead_tensor_tanh(context, x, &before));
  OK(adead_context_set_threshold(context, ADEAD_FAMILY_FUNCTION, 100));
  OK(adead_context_force(context, "cpu"));
  OK(adead_explain(context, ADEAD_OP_TANH, operands, 1, NULL, &it));
  CHECK(!strcmp(it.id, "cpu") && !strcmp(it.reason, "cpu was forced"));
  OK(adead_tensor_tanh(context, x, &after));
  CHECK(same(before, after));
  FAILS(adead_context_force(context, "cuda:7"), ADEAD_INVALID_ARGUMENT, "no device 'cuda:7': the devices are cpu");
  FAILS(adead_context_force(NULL, "cpu"), ADEAD_INVALID_ARGUMENT, "context is NULL");
  OK(adead_context_force(context, NULL));
  OK(adead_context_set_threshold(context, ADEAD_FAMILY_FUNCTION, ADEAD_NO_THRESHOLD));
  OK(adead_explain(context, ADEAD_OP_TANH, operands, 1, NULL, &it));
  CHECK(strcmp(it.reason, "cpu was forced"));
  FAILS(adead_context_set_threshold(context, 6, 1), ADEAD_INVALID_ARGUMENT, "family is 6");
  FAILS(adead_context_set_threshold(context, -1, 1), ADEAD_INVALID_ARGUMENT, "family is -1");
  FAILS(adead_context_set_threshold(NULL, 0, 1), ADEAD_INVALID_ARGUMENT, "context is NULL");
  CHECK(!adead_family_name(6) && !adead_family_name(-1));
  adead_tensor_destroy(x);
  adead_tensor_destroy(before);
  adead_tensor_destroy(after);
}

/* Several devices as one: who does how many rows. */
static void divides(void) {
  static float values[1 << 22];
  adead_context *context = NULL;
  adead_tensor *x;
  const adead_tensor *operands[2];
  adead_explanation it;
  adead_status status = adead_context_open("cpu,vulkan:0", NULL, &context);
  if (status == ADEAD_BACKEND_UNAVAILABLE) {
    printf("not here: %s\n", adead_last_error());
    return;
  }
  OK(status);
  x = tensor(values, 2, 2048, 2048);
  operands[0] = operands[1] = x;
  it.struct_size = sizeof it;
  OK(adead_explain(context, ADEAD_OP_MATMUL, operands, 2, NULL, &it));
  CHECK(it.estimate_count == 2 && it.rows[2] == 0);
  CHECK(it.split_ns > 0 ? it.rows[0] + it.rows[1] == 2048 : it.rows[0] + it.rows[1] == 0);
  adead_tensor_destroy(x);
  adead_context_destroy(context);
}

int main(void) {
  adead_context *context = NULL;
  divides();
  OK(adead_context_open("auto", NULL, &context));
  selects(context);
  explains(context);
  sets(context);
  adead_context_destroy(context);
  return 0;
}
