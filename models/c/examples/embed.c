/* embed MODEL: prints the cosine of two sentences, then embeds the lines of stdin. */
#include <adead/models.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 1024 };

/* Returns a line of stdin. The library copies it before it calls this function again. */
static int32_t next(void *user, const char **text, size_t *length) {
  char *line = user;
  (void)length; /* Not set: the text ends with NUL. */
  if (!fgets(line, 4096, stdin)) return ferror(stdin) ? -1 : 0;
  line[strcspn(line, "\n")] = 0;
  *text = line;
  return 1;
}

static int32_t take(void *user, uint64_t first, const float *rows, const uint8_t *truncated, size_t count) {
  (void)user, (void)rows, (void)truncated;
  printf("rows %u to %u\n", (unsigned)first, (unsigned)(first + count));
  return 0;
}

int main(int argc, char **argv) {
  const char *sentences[] = {"The ferry came in.", "A boat arrived."};
  float rows[2 * WIDTH], cosine = 0;
  char line[4096];
  adead_sentence_encoder *encoder = NULL;
  adead_sentence_stream stream = ADEAD_SENTENCE_STREAM_INIT;
  size_t width = 0, i;
  uint64_t count = 0;
  int failed = argc < 2 || adead_sentence_encoder_open(argv[1], NULL, NULL, &encoder) ||
               adead_sentence_encoder_width(encoder, &width) ||
               adead_sentence_encoder_encode(encoder, sentences, NULL, 2, NULL, rows, 2 * WIDTH, NULL);
  if (!failed) {
    for (i = 0; i < width; i++) cosine += rows[i] * rows[width + i];
    printf("%u values, cosine %g\n", (unsigned)width, cosine);
    stream.user = line;
    stream.next = next;
    stream.take = take;
    failed = adead_sentence_encoder_batch_embed(encoder, &stream, NULL, &count);
  }
  if (failed) fprintf(stderr, "%s\n", adead_models_last_error());
  adead_sentence_encoder_destroy(encoder);
  return failed != 0;
}
