/* Helpers that the programs about sentences share: they read files of sentences, and hash
 * embeddings. */
#ifndef SENTENCES_H
#define SENTENCES_H

#define LAST_ERROR adead_models_last_error
#include <adead/models.h>

#include "check.h"
#include "sha256.h"

/* Reads a text file's lines, without their ends. */
typedef struct {
  char *text;
  const char **lines;
  size_t *lengths;
  size_t count;
} sentence_lines;

static inline sentence_lines read_lines(const char *path) {
  sentence_lines all = {NULL, NULL, NULL, 0};
  long bytes;
  char *line, *end;
  FILE *file = fopen(path, "rb");
  CHECK(file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) > 0 && !fseek(file, 0, SEEK_SET));
  all.text = malloc((size_t)bytes);
  /* No file has more lines than bytes. */
  all.lines = malloc((size_t)bytes * sizeof *all.lines);
  all.lengths = malloc((size_t)bytes * sizeof *all.lengths);
  CHECK(all.text && all.lines && all.lengths && fread(all.text, 1, (size_t)bytes, file) == (size_t)bytes);
  fclose(file);
  for (line = all.text; line < all.text + bytes; line = end + 1) {
    end = memchr(line, '\n', (size_t)(all.text + bytes - line));
    CHECK(end);
    all.lines[all.count] = line;
    all.lengths[all.count++] = (size_t)(end - line);
  }
  return all;
}

static inline void free_lines(sentence_lines *all) {
  free(all->text);
  free(all->lines);
  free(all->lengths);
}

/* Computes the embeddings of lines. The caller frees them. */
static inline float *embeddings(const adead_sentence_encoder *encoder, const sentence_lines *all,
                                const adead_encode_options *options, uint8_t *truncated) {
  size_t width = 0;
  float *rows;
  OK(adead_sentence_encoder_width(encoder, &width));
  rows = malloc(all->count * width * sizeof *rows);
  CHECK(rows);
  OK(adead_sentence_encoder_encode(encoder, all->lines, all->lengths, all->count, options, rows, all->count * width,
                                   truncated));
  return rows;
}

#endif
