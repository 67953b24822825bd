/* The conformance cases through the C API: tests/conformance/FORMAT.md, bit for bit.
 *
 *   conformance [--list] FOLDER|FILE.txt [ID-PREFIX ...]
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static adead_context *context;
static size_t ran, skipped;

static adead_status make_tensor(const value *v, adead_tensor **out) {
  elements e = read_value(v);
  adead_status status = adead_tensor_create(e.dtype, e.dims, e.rank, e.data, e.bytes, out);
  free(e.data);
  return status;
}

static void check_tensor(const char *id, const value *out, const adead_tensor *result) {
  size_t rank = 0, bytes = 0;
  const size_t *dims = NULL;
  const void *data = NULL;
  adead_dtype dtype = -1;
  adead_tensor_dtype(result, &dtype);
  adead_tensor_rank(result, &rank);
  adead_tensor_dims(result, &dims);
  adead_tensor_bytes(result, &bytes);
  adead_tensor_data(result, &data);
  check_result(id, out, dtype, dims, rank, data, bytes);
}

static void run_operation(const test_case *c) {
  adead_tensor *operands[MAX_OPERANDS] = {NULL}, *result = NULL;
  adead_attrs *attrs = NULL;
  adead_op op = -1;
  size_t i;
  adead_status status = adead_op_from_name(c->op, &op);
  if (!status) status = adead_attrs_create(&attrs);
  for (i = 0; !status && i < c->attr_count; i++) status = adead_attrs_set(attrs, op, c->attrs[i][0], c->attrs[i][1]);
  for (i = 0; !status && i < c->operand_count; i++) {
    if (c->operands[i].shape) status = make_tensor(&c->operands[i], &operands[i]);
  }
  if (!status) {
    status = adead_op_run(context, op, (const adead_tensor *const *)operands, c->operand_count, attrs, &result);
    if (status && result) fail(c->id, "no output of a failed call", "one");
  }
  if (c->error ? strcmp(adead_status_name(status), c->error) : status) {
    fail(c->id, c->error ? c->error : "ok", status ? adead_last_error() : "ok");
  } else if (!status) {
    check_tensor(c->id, &c->out, result);
  }
  for (i = 0; i < c->operand_count; i++) adead_tensor_destroy(operands[i]);
  adead_tensor_destroy(result);
  adead_attrs_destroy(attrs);
}

/* Makes the gradients of the last value the outputs. An output is a copy, as a gradient may be a constant, which a pipeline does not
 * give. */
static adead_status record_gradients(const pipeline_case *p, const adead_value *values, adead_chain *chain) {
  adead_value by[MAX_OUTPUTS], gradients[MAX_OUTPUTS];
  adead_status status;
  size_t i;
  for (i = 0; i < p->by_count; i++) by[i] = values[p->by[i]];
  status = adead_chain_gradients(chain, values[p->value_count - 1], by, p->by_count, gradients);
  for (i = 0; !status && i < p->by_count; i++) {
    adead_value copy = 0;
    status = adead_chain_op(chain, ADEAD_OP_SCALE, &gradients[i], 1, NULL, &copy);
    if (!status) status = adead_chain_output(chain, copy);
  }
  return status;
}

/* Records a pipeline, its inputs as inputs, or, where they are a run's, as constants. */
static adead_status record(const pipeline_case *p, const pipeline_run *executed, adead_chain **chain) {
  adead_value values[MAX_VALUES];
  adead_status status = adead_chain_create(context, chain);
  size_t i, j, inputs = 0, dims[ADEAD_MAX_RANK], rank;
  for (i = 0; !status && i < p->value_count; i++) {
    const recorded_value *v = &p->values[i];
    if (v->source == VALUE_INPUT && !executed) {
      elements e = read_value(&v->given);
      status = adead_chain_input(*chain, e.dtype, e.dims, e.rank, &values[i]);
      free(e.data);
    } else if (v->source == VALUE_INPUT || v->source == VALUE_CONSTANT) {
      adead_tensor *constant = NULL;
      status = make_tensor(v->source == VALUE_INPUT ? &executed->inputs[inputs++] : &v->given, &constant);
      if (!status) status = adead_chain_constant(*chain, constant, &values[i]);
      adead_tensor_destroy(constant);
    } else if (v->source == VALUE_RESHAPE) {
      rank = read_shape(v->given.shape, dims);
      status = adead_chain_reshape(*chain, values[v->operands[0]], dims, rank, &values[i]);
    } else {
      adead_value operands[8];
      adead_attrs *attrs = NULL;
      adead_op op = -1;
      for (j = 0; j < v->operand_count; j++) operands[j] = v->operands[j] < 0 ? ADEAD_NO_VALUE : values[v->operands[j]];
      status = adead_op_from_name(v->op, &op);
      if (!status && v->attr_count) status = adead_attrs_create(&attrs);
      for (j = 0; !status && j < v->attr_count; j++) status = adead_attrs_set(attrs, op, v->attrs[j][0], v->attrs[j][1]);
      if (!status) status = adead_chain_op(*chain, op, operands, v->operand_count, attrs, &values[i]);
      adead_attrs_destroy(attrs);
    }
  }
  for (i = 0; !status && i < p->give_count; i++) status = adead_chain_output(*chain, values[p->gives[i]]);
  if (!status && p->by_count) status = record_gradients(p, values, *chain);
  return status;
}

/* Compares a run with what is expected of it, and gives its outputs up. */
static void check_run(const char *id, size_t number, const char *how, const pipeline_run *run, adead_status status,
                      adead_tensor **outputs) {
  char where[400];
  size_t i;
  sprintf(where, "%.300s, run %lu, %s", id, (unsigned long)number, how);
  if (run->error ? strcmp(adead_status_name(status), run->error) : status) {
    fail(where, run->error ? run->error : "ok", status ? adead_last_error() : "ok");
  }
  for (i = 0; i < MAX_OUTPUTS; i++) {
    if (status && outputs[i]) fail(where, "no output of a failed call", "one");
    if (!status && i < run->output_count) check_tensor(where, &run->outputs[i], outputs[i]);
    adead_tensor_destroy(outputs[i]);
  }
}

static void run_pipeline(const test_case *c) {
  const pipeline_case *p = c->pipeline;
  const size_t given = p->give_count + p->by_count, count = given ? given : 1;
  adead_chain *chain = NULL;
  adead_compiled *compiled = NULL;
  adead_status refused = record(p, NULL, &chain), status;
  size_t i, j;
  if (!refused) refused = adead_chain_compile(chain, &compiled);
  adead_chain_destroy(chain);
  for (i = 0; i < p->run_count; i++) {
    const pipeline_run *run = &p->runs[i];
    adead_tensor *inputs[MAX_OPERANDS] = {NULL}, *outputs[MAX_OUTPUTS] = {NULL};
    status = refused;
    for (j = 0; !status && j < run->input_count; j++) status = make_tensor(&run->inputs[j], &inputs[j]);
    if (!status) {
      status = adead_compiled_run(compiled, (const adead_tensor *const *)inputs, run->input_count, outputs, count);
    }
    check_run(c->id, i, "compiled", run, status, outputs);
    for (j = 0; j < run->input_count; j++) adead_tensor_destroy(inputs[j]);
    if (fits_recording(p, run)) {
      memset(outputs, 0, sizeof outputs);
      chain = NULL;
      status = record(p, run, &chain);
      if (!status) status = adead_chain_execute(chain, outputs, count);
      check_run(c->id, i, "executed", run, status, outputs);
      adead_chain_destroy(chain);
    }
  }
  adead_compiled_destroy(compiled);
}

/* What an operation makes of a tensor with one element, 1, and no attributes. */
static adead_status tried(const char *name, adead_dtype dtype) {
  adead_tensor *x = NULL, *y = NULL;
  adead_op op = -1;
  int32_t one = 1;
  adead_status status = adead_op_from_name(name, &op);
  if (!status) status = adead_tensor_create(dtype, NULL, 0, &one, dtype == ADEAD_DTYPE_U8 ? 1 : 4, &x);
  if (!status) status = adead_op_run(context, op, (const adead_tensor *const *)&x, 1, NULL, &y);
  adead_tensor_destroy(x);
  adead_tensor_destroy(y);
  return status;
}

/* Whether the library has what a case needs. */
static int has(const test_case *c) {
  static int integers, quantized, asked;
  if (!asked++) {
    integers = tried("neg", ADEAD_DTYPE_I32) == ADEAD_OK;
    quantized = tried("dequantize", ADEAD_DTYPE_U8) != ADEAD_UNSUPPORTED;
  }
  return (integers || !c->integers) && (quantized || !c->quantized);
}

static void run(const test_case *c) {
  if (!has(c)) {
    if (!skipped++) puts("skipped: cases that need arithmetic on integers, attention in exact integers, or quantised matrices, which a minimal library lacks");
    return;
  }
  if (c->pipeline) run_pipeline(c);
  else run_operation(c);
  ran++;
}

static void list(const test_case *c) { puts(c->id); }

int main(int argc, char **argv) {
  int listing = argc > 1 && !strcmp(argv[1], "--list");
  char **arguments = argv + 1 + listing;
  if (!*arguments) fatal(NULL, "usage: conformance [--list] FOLDER|FILE.txt [ID-PREFIX ...]");
  if (!listing) {
    adead_status status = adead_context_open(NULL, NULL, &context);
    if (status == ADEAD_BACKEND_UNAVAILABLE) {
      printf("skipped: %s\n", adead_last_error());
      return 77;
    }
    if (status) fatal(NULL, adead_last_error());
  }
  each_case(*arguments, arguments + 1, listing ? list : run);
  adead_context_destroy(context);
  if (!listing) printf("%lu ran, %lu failed, %lu skipped\n", (unsigned long)ran, (unsigned long)failures, (unsigned long)skipped);
  return failures > 0;
}
