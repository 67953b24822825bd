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
  size_t i;
  memset(&out, 0x55, sizeof out);
  FAILS(adead_profile_begin(context, 0, &profile), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_begin(NULL, 0, NULL), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_finish(profile), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_report(profile, &out.summary), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_record_at(profile, 0, &out.record), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_total_at(profile, 0, &out.total), ADEAD_UNSUPPORTED, words);
  FAILS(adead_profile_device_at(profile, 0, &out.device), ADEAD_UNSUPPORTED, words);
  adead_profile_destroy(NULL);
  CHECK(profile == untouched);
  for (i = 0; i < sizeof out; i++) CHECK(((const unsigned char *)&out)[i] == 0x55);
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
  OK(adead_relu(values, out, 3));
  CHECK(out[0] == 1 && out[1] == 0 && out[2] == 3);
  CHECK(told == 0);
  adead_context_destroy(context);
  FAILS(adead_context_open("cuda", NULL, &none), ADEAD_BACKEND_UNAVAILABLE, "build it without ADEAD_MINIMAL");
  CHECK(!none);
  printf("nothing but what a minimal build has\n");
  return 0;
}
