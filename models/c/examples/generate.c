/* generate MODEL PROMPT: prints the text piece by piece, and why it ended. */
#include <adead/models.h>
#include <stdio.h>

static int32_t write_piece(void *user, const char *text, size_t length) {
  (void)user;
  fwrite(text, 1, length, stdout);
  return fflush(stdout); /* A number other than 0 ends the text. */
}

int main(int argc, char **argv) {
  adead_text_generator *generator = NULL;
  adead_generation *answer = NULL;
  adead_generate_options options = ADEAD_GENERATE_OPTIONS_INIT;
  const uint32_t *tokens = NULL;
  size_t count = 0;
  adead_finish finish = ADEAD_FINISH_NONE;
  int failed;
  options.max_tokens = 20;
  options.temperature = 0.8f; /* Sampled. A seed gives the same text on every device. */
  options.seed = 7;
  failed = argc < 3 || adead_text_generator_open(argv[1], NULL, &generator) ||
           adead_text_generate(generator, argv[2], &options, write_piece, NULL, &answer) ||
           adead_generation_tokens(answer, &tokens, &count) || adead_generation_finish(answer, &finish);
  if (failed) {
    fprintf(stderr, "%s\n", adead_models_last_error());
  } else {
    printf("\n%u tokens, finish %d\n", (unsigned)count, (int)finish);
  }
  adead_generation_destroy(answer);
  adead_text_generator_destroy(generator);
  return failed != 0;
}
