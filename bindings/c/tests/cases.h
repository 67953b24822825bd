/* The conformance cases of tests/conformance/FORMAT.md, read for the runners in C and C++. */
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

/* Where a pipeline's value comes from. */
enum { VALUE_INPUT, VALUE_CONSTANT, VALUE_RESHAPE, VALUE_OPERATION };

typedef struct {
  int source;
  /* What is given, an input in the first run; of another value's elements in another shape, that shape. */
  value given;
  /* An operation, and the values that it is of by their numbers: -1 where one is absent. */
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
  pipeline_run runs[MAX_RUNS];
  size_t value_count, give_count, run_count;
} pipeline_case;

typedef struct {
  const char *id, *op, *error;
  const char *attrs[MAX_ATTRS][2];
  value operands[MAX_OPERANDS], out;
  size_t attr_count, operand_count;
  /* Where it is one of a pipeline; else NULL. */
  const pipeline_case *pipeline;
} test_case;

/* The value that a text of a case describes, ready to be made a tensor of. `data` is to be freed. */
typedef struct {
  adead_dtype dtype;
  size_t dims[ADEAD_MAX_RANK], rank, bytes;
  void *data;
} elements;

/* Cases that failed. */
extern size_t failures;

/* Calls `run` for every case of every file of a folder, in order, whose id begins with one of `prefixes`, which NULL ends;
 * without one, for all. Ends the process where a file is malformed. */
void each_case(const char *folder, char **prefixes, void (*run)(const test_case *));

elements read_value(const value *v);

/* The dimensions of a shape, and how many there are. */
size_t read_shape(const char *text, size_t dims[ADEAD_MAX_RANK]);

/* Whether a run's inputs have the dtypes and shapes that were recorded: others make another pipeline. */
int fits_recording(const pipeline_case *p, const pipeline_run *run);

/* Reports a failure. */
void fail(const char *id, const char *expected, const char *got);

/* Reports one unless a result is what is expected, bit for bit. */
void check_result(const char *id, const value *out, adead_dtype dtype, const size_t *result_dims, size_t result_rank, const void *data,
                  size_t bytes);

/* Ends the process with a text. */
void fatal(const char *where, const char *what);

#ifdef __cplusplus
}
#endif

#endif
