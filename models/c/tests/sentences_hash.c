/* The SHA-256 of the embeddings of a file's lines: sentences_hash MODEL FILE DEVICE. */
#include "sentences.h"

int main(int count, char **arguments) {
  adead_sentence_encoder *encoder = NULL;
  sentence_lines lines;
  size_t width = 0;
  float *rows;
  char hex[65];
  CHECK(count == 4);
  lines = read_lines(arguments[2]);
  OK(adead_sentence_encoder_open(arguments[1], arguments[3], NULL, &encoder));
  OK(adead_sentence_encoder_width(encoder, &width));
  rows = embeddings(encoder, &lines, NULL, NULL);
  sha256_hex(rows, lines.count * width * sizeof *rows, hex);
  puts(hex);
  free(rows);
  free_lines(&lines);
  adead_sentence_encoder_destroy(encoder);
  return 0;
}
