/* Reads the conformance cases of tests/conformance/FORMAT.md, for the runners in C and C++. */
#ifndef CASES_H
#define CASES_H

#include <adead.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MAX_OPERANDS = 64, MAX_ATTRS = 16, MAX_VALUES = 64, MAX_OUTPUTS = 8, MAX_RUNS = 4 };

typedef struct {
  const char *dtype, *shape, *data;
} value;

/* The source of a pipeline's value. */
enum { VALUE_INPUT, VALUE_CONSTANT, VALUE_RESHAPE, VALUE_OPERATION };

typedef struct {
  int source;
  /* The given value, or an input in the first run; for a reshape of another value, the new shape. */
  value given;
  /* An operation, and the numbers of the values that are its operands; -1 for an absent one. */
  const char *op;
  const char *attrs[MAX_ATTRS][2];
  int operands[8];
  size_t attr_count, operand_count;
} recorded_value;

typedef struct {
  value inputs[MAX_OPERANDS], outputs[MAX_OUTPUTS];
  size_t input_count, output_count;
  const char *error;
} pipeline_run;

typedef struct {
  recorded_value values[MAX_VALUES];
  size_t gives[MAX_OUTPUTS];
  /* If there are any, the last value is a loss, and its outputs are the gradients by these values. */
  size_t by[MAX_OUTPUTS], by_count;
  pipeline_run runs[MAX_RUNS];
  size_t value_count, give_count, run_count;
} pipeline_case;

typedef struct {
  const char *id, *op, *error;
  const char *attrs[MAX_ATTRS][2];
  value operands[MAX_OPERANDS], out;
  size_t attr_count, operand_count;
  /* Whether it needs arithmetic on integers, or quantised matrices. */
  int integers, quantized;
  /* The pipeline of such a case; else NULL. */
  const pipeline_case *pipeline;
} test_case;

/* Makes the value that a case's text describes. The caller frees `data`. */
typedef struct {
  adead_dtype dtype;
  size_t dims[ADEAD_MAX_RANK], rank, bytes;
  void *data;
} elements;

/* The number of failed cases. */
extern size_t failures;

/* Calls `run` for each case of each file of a folder, or of one file, in order, whose id begins with one of `prefixes`, which
 * NULL ends. Without prefixes, for all. Ends the process if a file is malformed. */
void each_case(const char *place, char **prefixes, void (*run)(const test_case *));

elements read_value(const value *v);

/* Writes the dimensions of a shape and returns how many there are. */
size_t read_shape(const char *text, size_t dims[ADEAD_MAX_RANK]);

/* Returns whether a run's inputs have the recorded dtypes and shapes. Other inputs need another pipeline. */
int fits_recording(const pipeline_case *p, const pipeline_run *run);

/* Reports a failure. */
void fail(const char *id, const char *expected, const char *got);

/* Reports a failure unless the result equals the expected one, bit for bit. */
void check_result(const char *id, const value *out, adead_dtype dtype, const size_t *result_dims, size_t result_rank, const void *data,
                  size_t bytes);

/* Ends the process with a text. */
void fatal(const char *where, const char *what);

#ifdef __cplusplus
}
#endif

#endif
