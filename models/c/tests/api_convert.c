/* adead_convert: a folder and a file as GGUF files, notes, progress, errors. */
#define _POSIX_C_SOURCE 200809L
#define LAST_ERROR adead_models_last_error
#include <adead/models.h>

#include "check.h"

#include <unistd.h>

typedef struct {
  uint64_t written, all, most;
  size_t notes;
} told;

static int32_t progress(void *user, uint64_t written, uint64_t all) {
  told *so_far = user;
  CHECK(written > so_far->written && written <= all);
  so_far->written = written;
  so_far->all = all;
  return written > so_far->most;
}

static void note(void *user, const char *text) {
  told *so_far = user;
  CHECK(*text);
  so_far->notes++;
}

int main(void) {
  adead_convert_options options = ADEAD_CONVERT_OPTIONS_INIT;
  adead_text_generator *model = NULL;
  told so_far = {0, 0, UINT64_MAX, 0};
  char first[64], second[64];
  size_t length = 0;
  snprintf(first, sizeof first, "converted-%ld.gguf", (long)getpid());
  snprintf(second, sizeof second, "again-%ld.gguf", (long)getpid());
  OK(adead_convert(TEXT "/llama-hf", first, NULL));
  OK(adead_text_generator_open(first, NULL, &model));
  OK(adead_text_generator_context_length(model, &length));
  CHECK(length == 256);
  adead_text_generator_destroy(model);

  options.kind = "q4_k"; /* Rows of 64 values are no whole blocks of 256: they become f16, which notes tell. */
  options.progress = progress;
  options.note = note;
  options.user = &so_far;
  OK(adead_convert(TEXT "/llama-hf", second, &options));
  CHECK(so_far.notes > 0 && so_far.all > 0 && so_far.written == so_far.all);
  options.kind = "Q8_0";
  so_far.written = so_far.notes = 0;
  OK(adead_convert(first, second, &options));
  CHECK(so_far.written == so_far.all);
  model = NULL;
  OK(adead_text_generator_open(second, NULL, &model));
  adead_text_generator_destroy(model);
  CHECK(!remove(second));

  so_far.written = 0;
  so_far.most = 1;
  FAILS(adead_convert(first, second, &options), ADEAD_NOT_READY, "progress ended the conversion");
  CHECK(access(second, F_OK) != 0);
  options.kind = NULL;
  FAILS(adead_convert(first, second, &options), ADEAD_INVALID_ARGUMENT, "name one, such as q8_0");
  options.kind = "q3_k";
  FAILS(adead_convert(first, second, &options), ADEAD_INVALID_ARGUMENT, "no kind of values 'q3_k'");
  FAILS(adead_convert(TEXT "/nowhere", second, NULL), ADEAD_IO, "nowhere: no such file or folder");
  FAILS(adead_convert(TEXT "/llama-hf", "no-such-folder/new.gguf", NULL), ADEAD_IO, "no-such-folder");
  FAILS(adead_convert(NULL, second, NULL), ADEAD_INVALID_ARGUMENT, "model is NULL");
  FAILS(adead_convert(first, NULL, NULL), ADEAD_INVALID_ARGUMENT, "file is NULL");
  options.struct_size = 3;
  FAILS(adead_convert(first, second, &options), ADEAD_INVALID_ARGUMENT, "struct_size");
  CHECK(access(second, F_OK) != 0);
  CHECK(!remove(first));
  return 0;
}
