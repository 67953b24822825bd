/* Programs: assembled, written, decoded, run with tensors by slot name. */
#include "check.h"

static const char source[] =
    ".adead 1\n"
    "input  a f32[2,2]\n"
    "const  w f32[2,2] = 3f800000 40000000 0.5 -1.0\n"
    "temp   t f32[2,2]\n"
    "output c f32[2,2]\n"
    "t = matmul a w trans_b=1\n"
    "c = relu t\n"
    "halt\n";

static void shape_of(adead_program *program) {
  adead_slot slot;
  adead_format format = -1;
  size_t count = 0, bytes = 0, length = 0;
  slot.struct_size = sizeof slot;
  OK(adead_program_slot_count(program, &count));
  OK(adead_program_length(program, &length));
  OK(adead_program_format(program, &format));
  CHECK(count == 2 && length == 3 && format == ADEAD_FORMAT_TEXT);
  OK(adead_program_slot_at(program, 0, &slot));
  CHECK(!strcmp(slot.name, "a") && slot.direction == ADEAD_DIRECTION_IN && slot.dtype == ADEAD_DTYPE_F32);
  CHECK(slot.bytes == 16 && slot.typed && slot.required && slot.rank == 2 && slot.dims[1] == 2);
  OK(adead_program_slot_at(program, 1, &slot));
  CHECK(!strcmp(slot.name, "c") && slot.direction == ADEAD_DIRECTION_OUT && !slot.required);
  FAILS(adead_program_slot_at(program, 2, &slot), ADEAD_INVALID_ARGUMENT, "index is 2");
  OK(adead_program_validate(program, 0, &bytes));
  CHECK(bytes >= 32);
  FAILS(adead_program_validate(program, 8, &bytes), ADEAD_OUT_OF_MEMORY, "limit is 8");
  OK(adead_program_note_count(program, &count));
  CHECK(count == 0);
}

static void run_it(adead_context *context, adead_program *program) {
  const float values[4] = {1, 0, 0, 1}, expected[4] = {1, 0.5f, 2, 0};
  const char *names[1] = {"a"}, *wrong[1] = {"b"}, *name = NULL;
  adead_run_options options = ADEAD_RUN_OPTIONS_INIT;
  adead_outcome *outcome = NULL;
  adead_outcome_stats stats;
  adead_trace trace;
  adead_tensor *a = tensor(values, 2, 2, 2), *c = NULL, *d = tensor(expected, 2, 2, 2);
  const adead_tensor *inputs[1], *none[1] = {NULL};
  size_t count = 0;
  inputs[0] = a;
  FAILS(adead_program_run(context, program, NULL, NULL, 0, NULL, &outcome), ADEAD_INVALID_ARGUMENT, "'a'");
  FAILS(adead_program_run(context, program, wrong, inputs, 1, NULL, &outcome), ADEAD_INVALID_ARGUMENT, "'b'");
  FAILS(adead_program_run(context, program, names, none, 1, NULL, &outcome), ADEAD_INVALID_ARGUMENT, "tensors[0]");
  FAILS(adead_program_run(context, program, names, NULL, 1, NULL, &outcome), ADEAD_INVALID_ARGUMENT, "tensors is NULL");
  options.memory_limit = 8;
  FAILS(adead_program_run(context, program, names, inputs, 1, &options, &outcome), ADEAD_OUT_OF_MEMORY, "limit is 8");
  CHECK(!outcome);
  options.memory_limit = 1 << 20;
  options.parallel = 1;
  OK(adead_program_run(context, program, names, inputs, 1, &options, &outcome));
  OK(adead_outcome_output_count(outcome, &count));
  OK(adead_outcome_output_name(outcome, 0, &name));
  CHECK(count == 1 && !strcmp(name, "c"));
  FAILS(adead_outcome_output_name(outcome, 1, &name), ADEAD_INVALID_ARGUMENT, "index is 1");
  FAILS(adead_outcome_output(outcome, "a", &c), ADEAD_INVALID_ARGUMENT, "no output 'a'");
  OK(adead_outcome_output(outcome, "c", &c));
  stats.struct_size = sizeof stats;
  OK(adead_outcome_report(outcome, &stats));
  CHECK(stats.instructions == 3 && stats.flops > 16 && stats.memory >= 32 && stats.seconds >= 0);
  trace.struct_size = sizeof trace;
  OK(adead_outcome_trace_count(outcome, &count));
  CHECK(count == 3);
  OK(adead_outcome_trace_at(outcome, 0, &trace));
  CHECK(trace.instruction == 0 && strstr(trace.name, "matmul") && !strcmp(trace.device, "cpu"));
  adead_outcome_destroy(outcome);
  adead_outcome_destroy(NULL);
  CHECK(same(c, d)); /* The tensor outlives the outcome. */
  adead_tensor_destroy(a);
  adead_tensor_destroy(c);
  adead_tensor_destroy(d);
}

static void written_and_read(adead_program *program) {
  adead_program *again = NULL;
  const char *text = NULL, *text_again = NULL;
  const void *data = NULL;
  adead_format format = -1;
  size_t bytes = 0;
  OK(adead_program_disassemble(program, &text));
  OK(adead_program_encode(program, ADEAD_FORMAT_ADEAD, &data, &bytes));
  OK(adead_program_decode(data, bytes, &again));
  OK(adead_program_disassemble(again, &text_again));
  CHECK(!strcmp(text, text_again));
  OK(adead_program_format(again, &format));
  CHECK(format == ADEAD_FORMAT_ADEAD);
  adead_program_destroy(again);
  OK(adead_program_encode(program, ADEAD_FORMAT_TEXT, &data, &bytes));
  CHECK(bytes == strlen(text) && !strcmp(data, text));
  bytes = 77;
  FAILS(adead_program_encode(program, ADEAD_FORMAT_AGPU, &data, &bytes), ADEAD_UNSUPPORTED, "");
  FAILS(adead_program_encode(program, ADEAD_FORMAT_AHYB, &data, &bytes), ADEAD_UNSUPPORTED, "AHYB");
  FAILS(adead_program_encode(program, 9, &data, &bytes), ADEAD_INVALID_ARGUMENT, "format is 9");
  CHECK(bytes == 77);
  FAILS(adead_program_decode("ADEAD", 5, &again), ADEAD_INVALID_PROGRAM, "");
  FAILS(adead_program_decode(NULL, 5, &again), ADEAD_INVALID_ARGUMENT, "data is NULL");
  FAILS(adead_program_decode(NULL, 0, &again), ADEAD_INVALID_PROGRAM, "");
  FAILS(adead_program_assemble(".adead 1\nx = nothing y\n", &again), ADEAD_INVALID_PROGRAM, "2");
  FAILS(adead_program_assemble(NULL, &again), ADEAD_INVALID_ARGUMENT, "source is NULL");
}

int main(void) {
  adead_context *context = NULL;
  adead_program *program = NULL;
  OK(adead_context_open(NULL, NULL, &context));
  OK(adead_program_assemble(source, &program));
  shape_of(program);
  run_it(context, program);
  written_and_read(program);
  adead_program_destroy(program);
  adead_program_destroy(NULL);
  adead_context_destroy(context);
  return 0;
}
