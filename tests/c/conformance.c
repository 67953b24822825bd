/* The conformance cases through the C API: tests/conformance/FORMAT.md, bit for bit.
 *
 *   conformance [--list] FOLDER [ID-PREFIX ...]
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static adead_context *context;
static size_t ran;

static adead_status make_tensor(const value *v, adead_tensor **out) {
  elements e = read_value(v);
  adead_status status = adead_tensor_create(e.dtype, e.dims, e.rank, e.data, e.bytes, out);
  free(e.data);
  return status;
}

static void check_tensor(const test_case *c, const adead_tensor *result) {
  size_t rank = 0, bytes = 0;
  const size_t *dims = NULL;
  const void *data = NULL;
  adead_dtype dtype = -1;
  adead_tensor_dtype(result, &dtype);
  adead_tensor_rank(result, &rank);
  adead_tensor_dims(result, &dims);
  adead_tensor_bytes(result, &bytes);
  adead_tensor_data(result, &data);
  check_result(c, dtype, dims, rank, data, bytes);
}

static void run(const test_case *c) {
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
    check_tensor(c, result);
  }
  for (i = 0; i < c->operand_count; i++) adead_tensor_destroy(operands[i]);
  adead_tensor_destroy(result);
  adead_attrs_destroy(attrs);
  ran++;
}

static void list(const test_case *c) { puts(c->id); }

int main(int argc, char **argv) {
  int listing = argc > 1 && !strcmp(argv[1], "--list");
  char **arguments = argv + 1 + listing;
  if (!*arguments) fatal(NULL, "usage: conformance [--list] FOLDER [ID-PREFIX ...]");
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
  if (!listing) printf("%lu ran, %lu failed, 0 skipped\n", (unsigned long)ran, (unsigned long)failures);
  return failures > 0;
}
