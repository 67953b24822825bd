/* What a library built with ADEAD_MINIMAL leaves out: each call says so and writes nothing. The rest of the API works. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

static int told;

static void tell(adead_log_level level, const char *target, const char *text, void *user) {
  (void)level, (void)target, (void)text, (void)user;
  told++;
}

static void messages(void) {
  static const char words[] = "this is a minimal build of adead, which has no messages: build it without ADEAD_MINIMAL";
  FAILS(adead_log_set(ADEAD_LOG_TRACE, tell, NULL), ADEAD_UNSUPPORTED, words);
  FAILS(adead_log_set(9, NULL, NULL), ADEAD_UNSUPPORTED, words);
}

static void profiles(const adead_context *context) {
  static const char words[] = "this is a minimal build of adead, which has no profiler: build it without ADEAD_MINIMAL";
  adead_profile *const untouched = (adead_profile *)&words, *profile = untouched;
  union {
    adead_profile_summary summary;
    adead_profile_record record;
    adead_profile_total total;
    adead_profile_device device;
    unsigned char bytes[256];
  } out;
  const char *text = words;
  size_t i;
  memset(&out, 0x55, sizeof out);
  FAILS(adead_profile_begin(context, 0, &profile), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_begin(NULL, 0, NULL), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_finish(profile), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_report(profile, &out.summary), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_record_at(profile, 0, &out.record), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_total_at(profile, 0, &out.total), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_device_at(profile, 0, &out.device), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_table(profile, &text), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_json(profile, &text), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_trace(profile, &text), ADEAD_UNSUPPORTED, words);
  adead_profile_destroy(NULL);
  CHECK(profile == untouched && text == words);
  for (i = 0; i < sizeof out; i++) CHECK(((const unsigned char *)&out)[i] == 0x55);
}

static void layers(const adead_context *context) {
  static const char words[] = "this is a minimal build of adead, which has no layers: build it without ADEAD_MINIMAL";
  adead_module *const untouched = (adead_module *)&words, *module = untouched;
  adead_safetensors *file = (adead_safetensors *)&words;
  FAILS(adead_module_relu(context, &module), ADEAD_UNSUPPORTED, words);
  FAILS(adead_module_load(NULL, NULL, NULL, NULL, NULL), ADEAD_UNSUPPORTED, words);
  FAILS(adead_module_forward(module, NULL, NULL, NULL), ADEAD_UNSUPPORTED, words);
  FAILS(adead_safetensors_open("any", &file), ADEAD_UNSUPPORTED, words);
  adead_module_destroy(NULL);
  adead_safetensors_close(NULL);
  CHECK(module == untouched && file == (adead_safetensors *)&words);
}

static adead_status no_batch(adead_batch *batch, void *user) {
  (void)batch, (void)user;
  told++;
  return ADEAD_OK;
}

static adead_status no_work(adead_stage *stage, void *user) {
  (void)stage, (void)user;
  told++;
  return ADEAD_OK;
}

static adead_status no_take(size_t index, const void *data, size_t bytes, void *user) {
  (void)index, (void)data, (void)bytes, (void)user;
  told++;
  return ADEAD_OK;
}

static void batches(const adead_context *context) {
  static const char words[] = "this is a minimal build of adead, which has no batches: build it without ADEAD_MINIMAL";
  adead_batches *all = NULL;
  adead_loader *loader = NULL;
  adead_buffer *buffer = NULL;
  const void *data = words;
  void *memory = NULL;
  size_t index = 7, bytes = 7;
  FAILS(adead_overlap(context, 2, no_batch, no_work, no_take, NULL), ADEAD_UNSUPPORTED, words);
  FAILS(adead_batches_create(context, 2, no_batch, no_work, NULL, &all), ADEAD_UNSUPPORTED, words);
  FAILS(adead_batches_next(all, &index, &data, &bytes), ADEAD_UNSUPPORTED, words);
  FAILS(adead_loader_create(no_batch, NULL, 2, &loader), ADEAD_UNSUPPORTED, words);
  FAILS(adead_loader_next(loader, &data, &bytes), ADEAD_UNSUPPORTED, words);
  FAILS(adead_batch_memory(NULL, 4, &memory), ADEAD_UNSUPPORTED, words);
  FAILS(adead_batch_borrow(NULL, words, 4), ADEAD_UNSUPPORTED, words);
  FAILS(adead_stage_buffer(NULL, 4, &buffer), ADEAD_UNSUPPORTED, words);
  FAILS(adead_stage_result(NULL, NULL, 0, 4), ADEAD_UNSUPPORTED, words);
  CHECK(!adead_stage_index(NULL) && !adead_stage_stream(NULL) && !adead_stage_input(NULL));
  adead_batches_destroy(NULL);
  adead_loader_destroy(NULL);
  CHECK(!all && !loader && !buffer && !memory && data == words && index == 7 && bytes == 7);
}

static void gradients(void) {
  static const char words[] = "this is a build of adead, which has no gradients: build it with ADEAD_GRADIENTS";
  adead_value value = 7;
  FAILS(adead_chain_detach(NULL, 7, &value), ADEAD_UNSUPPORTED, words);
  FAILS(adead_chain_gradients(NULL, 7, &value, 1, &value), ADEAD_UNSUPPORTED, words);
  CHECK(value == 7);
}

static void numbers(void) {
  static const char words[] = "this is a minimal build of adead, which has no matrices as numbers: build it without ADEAD_MINIMAL";
  adead_flat_handle matrix = 7;
  int64_t count = 7;
  FAILS(adead_flat_alloc_zeros(2, 2, 0, 0, &matrix), ADEAD_UNSUPPORTED, words);
  FAILS(adead_flat_count(&count), ADEAD_UNSUPPORTED, words);
  FAILS(adead_flat_reset(), ADEAD_UNSUPPORTED, words);
  CHECK(matrix == 7 && count == 7);
}

/* A settings file is refused, not passed over; one that says nothing is none. */
static void settings(void) {
  static const char name[] = "minimal_test.toml";
  adead_context *context = NULL;
  FILE *file = fopen(name, "w");
  CHECK(file && fputs("device = \"cpu\"\n", file) >= 0 && fclose(file) == 0);
  CHECK(setenv("ADEAD_CONFIG", name, 1) == 0);
  FAILS(adead_context_open("cpu", NULL, &context), ADEAD_UNSUPPORTED,
        "minimal_test.toml has settings, and this is a minimal build of adead, which reads none");
  CHECK(!context);
  file = fopen(name, "w");
  CHECK(file && fclose(file) == 0);
  OK(adead_context_open("cpu", NULL, &context));
  adead_context_destroy(context);
  CHECK(remove(name) == 0 && unsetenv("ADEAD_CONFIG") == 0);
}

static void programs(const adead_context *context) {
  static const char words[] = "this is a minimal build of adead, which has no programs: build it without ADEAD_MINIMAL";
  static const char text[] = ".agpu 1\nend\n";
  adead_program *const untouched = (adead_program *)&words, *program = untouched;
  adead_outcome *outcome = (adead_outcome *)&words;
  FAILS(adead_program_assemble(text, &program), ADEAD_UNSUPPORTED, words);
  FAILS(adead_program_decode(text, sizeof text - 1, &program), ADEAD_UNSUPPORTED, words);
  FAILS(adead_program_load("any", &program), ADEAD_UNSUPPORTED, words);
  FAILS(adead_program_run(context, program, NULL, NULL, 0, NULL, &outcome), ADEAD_UNSUPPORTED, words);
  adead_program_destroy(NULL);
  adead_outcome_destroy(NULL);
  CHECK(program == untouched && outcome == (adead_outcome *)&words);
}

/* Texts of choices and of plans are refused. */
static void texts(const adead_context *context) {
  static const char words[] = "this is a minimal build of adead, which has no texts of choices and plans";
  const float values[8] = {1, 2, 3, 4, 4, 0, 0, 0};
  adead_tensor *x = tensor(values, 2, 2, 4), *y = NULL;
  const adead_tensor *inputs[1];
  adead_explanation why = {0};
  adead_chain *chain = NULL;
  adead_compiled *plan = NULL;
  adead_value input, sum;
  const char *out = NULL;
  inputs[0] = x;

  why.struct_size = sizeof why;
  FAILS(adead_explain(context, ADEAD_OP_RELU, inputs, 1, NULL, &why), ADEAD_UNSUPPORTED, words);
  OK(adead_chain_create(context, &chain));
  OK(adead_chain_constant(chain, x, &input));
  OK(adead_chain_op(chain, ADEAD_OP_RELU, &input, 1, NULL, &sum));
  OK(adead_chain_output(chain, sum));
  OK(adead_chain_compile(chain, &plan));
  FAILS(adead_compiled_text(plan, &out), ADEAD_UNSUPPORTED, words);
  FAILS(adead_compiled_dot(plan, &out), ADEAD_UNSUPPORTED, words);
  OK(adead_compiled_run(plan, NULL, 0, &y, 1));
  CHECK(!out);
  /* A float in an error is its bits there. */
  adead_tensor_destroy(y);
  adead_compiled_destroy(plan);
  adead_chain_destroy(chain);
  adead_tensor_destroy(x);
}

static void instruction_sets(void) {
#ifdef __x86_64__
  adead_context_options options = {0};
  adead_context *context = NULL;
  options.struct_size = sizeof options;
  options.isa = "avx512";
  FAILS(adead_context_open("cpu", &options, &context), ADEAD_UNSUPPORTED,
        "this is a minimal build of adead, which has no kernels for avx512: build it without ADEAD_MINIMAL");
  CHECK(!context);
#endif
}

int main(void) {
  const float values[3] = {1, -2, 3};
  float out[3];
  adead_context *context = NULL, *none = NULL;
  messages();
  settings();
  instruction_sets();
  OK(adead_context_open("cpu", NULL, &context));
  profiles(context);
  programs(context);
  texts(context);
  layers(context);
  batches(context);
  gradients();
  numbers();
  OK(adead_relu(values, out, 3));
  CHECK(out[0] == 1 && out[1] == 0 && out[2] == 3);
  CHECK(told == 0);
  adead_context_destroy(context);
  FAILS(adead_context_open("cuda", NULL, &none), ADEAD_BACKEND_UNAVAILABLE, "build it without ADEAD_MINIMAL");
  CHECK(!none);
  printf("nothing but what a minimal build has\n");
  return 0;
}
