/* The conformance cases of tests/conformance/FORMAT.md, read for the runners in C and C++. */
#ifndef CASES_H
#define CASES_H

#include <adead.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MAX_OPERANDS = 64, MAX_ATTRS = 16 };

typedef struct {
  const char *dtype, *shape, *data;
} value;

typedef struct {
  const char *id, *op, *error;
  const char *attrs[MAX_ATTRS][2];
  value operands[MAX_OPERANDS], out;
  size_t attr_count, operand_count;
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

/* Reports a failure. */
void fail(const char *id, const char *expected, const char *got);

/* Reports one unless the result is as the case says, bit for bit. */
void check_result(const test_case *c, adead_dtype dtype, const size_t *result_dims, size_t result_rank, const void *data,
                  size_t bytes);

/* Ends the process with a text. */
void fatal(const char *where, const char *what);

#ifdef __cplusplus
}
#endif

#endif
