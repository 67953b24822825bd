/* Sentence encoders, on the small model of tests/sentences. */
#define _POSIX_C_SOURCE 200809L
#include "sentences.h"

#include <pthread.h>

enum { WIDTH = 32, MOST = 24, THREADS = 4 };

static const char *const model = SENTENCES "/tiny";
static adead_sentence_encoder *encoder;
static sentence_lines lines;
static float *expected;
static uint8_t *cut;

static void opening(void) {
  adead_context_options options = ADEAD_CONTEXT_OPTIONS_INIT;
  adead_sentence_encoder *none = NULL;
  const char *device = NULL;
  size_t width = 0, most = 0;
  FAILS(adead_sentence_encoder_open(SENTENCES "/nowhere", "cpu", NULL, &none), ADEAD_IO, "nowhere");
  FAILS(adead_sentence_encoder_open(SENTENCES "/tiny.txt", "cpu", NULL, &none), ADEAD_INVALID_ARGUMENT, "folder");
  FAILS(adead_sentence_encoder_open(NULL, "cpu", NULL, &none), ADEAD_INVALID_ARGUMENT, "folder is NULL");
  FAILS(adead_sentence_encoder_open(model, "cpu", NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_sentence_encoder_open(model, "tpu", NULL, &none), ADEAD_INVALID_ARGUMENT, "tpu");
  FAILS(adead_sentence_encoder_open("\xff", "cpu", NULL, &none), ADEAD_INVALID_ARGUMENT, "folder is not UTF-8");
  options.struct_size = 1;
  FAILS(adead_sentence_encoder_open(model, "cpu", &options, &none), ADEAD_INVALID_ARGUMENT, "struct_size");
  options.struct_size = sizeof options;
  options.isa = "mmx";
  FAILS(adead_sentence_encoder_open(model, "cpu", &options, &none), ADEAD_INVALID_ARGUMENT, "mmx");
  CHECK(!none);
  OK(adead_sentence_encoder_width(encoder, &width));
  OK(adead_sentence_encoder_max_tokens(encoder, &most));
  OK(adead_sentence_encoder_device(encoder, &device));
  CHECK(width == WIDTH && most == MOST && !strcmp(device, "cpu"));
  FAILS(adead_sentence_encoder_width(NULL, &width), ADEAD_INVALID_ARGUMENT, "encoder is NULL");
  FAILS(adead_sentence_encoder_max_tokens(encoder, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_sentence_encoder_device(NULL, &device), ADEAD_INVALID_ARGUMENT, "encoder is NULL");
  adead_sentence_encoder_destroy(NULL);
  CHECK(adead_models_abi_version() == ADEAD_MODELS_ABI_VERSION);
  /* Both libraries are one version, and each has its own runtime and its own texts. */
  CHECK(!strcmp(adead_models_version(), adead_version()));
  CHECK(!strcmp(adead_last_error(), ""));
}

/* The bits that every language has. */
static void bits(void) {
  sentence_lines hash = read_lines(SENTENCES "/tiny.sha256");
  char hex[65];
  size_t i, count = 0;
  cut = malloc(lines.count);
  CHECK(cut);
  expected = embeddings(encoder, &lines, NULL, cut);
  sha256_hex(expected, lines.count * WIDTH * sizeof *expected, hex);
  CHECK(hash.lengths[0] == 64 && !strncmp(hex, hash.lines[0], 64));
  for (i = 0; i < lines.count; i++) {
    CHECK(cut[i] <= 1);
    count += cut[i];
  }
  CHECK(count == 3);
  free_lines(&hash);
}

static void batches(void) {
  static const size_t sizes[] = {1, 3, 100, ADEAD_BATCH_AUTO};
  adead_encode_options options = ADEAD_ENCODE_OPTIONS_INIT;
  const char *texts[2] = {"The ferry came in.", ""};
  size_t lengths[2] = {9, 0}, i;
  float rows[3 * WIDTH], other[2 * WIDTH];
  for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (options.padded = -1; options.padded <= 1; options.padded++) {
      float *found;
      options.batch = sizes[i];
      found = embeddings(encoder, &lines, &options, NULL);
      CHECK(!memcmp(found, expected, lines.count * WIDTH * sizeof *found));
      free(found);
    }
  }
  /* Texts that end with NUL, and parts of them; what is behind the rows stays. */
  memset(rows, 7, sizeof rows);
  OK(adead_sentence_encoder_encode(encoder, texts, lengths, 2, NULL, rows, 3 * WIDTH, NULL));
  texts[0] = "The ferry";
  OK(adead_sentence_encoder_encode(encoder, texts, NULL, 2, NULL, other, 2 * WIDTH, NULL));
  CHECK(!memcmp(rows, other, sizeof other) && ((char *)rows)[sizeof other] == 7 && ((char *)rows)[sizeof rows - 1] == 7);
  texts[1] = NULL;
  OK(adead_sentence_encoder_encode(encoder, texts, (lengths[0] = 9, lengths), 2, NULL, rows, 2 * WIDTH, NULL));
  CHECK(!memcmp(rows, other, sizeof other));
  OK(adead_sentence_encoder_encode(encoder, NULL, NULL, 0, NULL, NULL, 0, NULL));
}

/* A call that fails says why and writes nothing. */
static void errors(void) {
  adead_encode_options options = ADEAD_ENCODE_OPTIONS_INIT;
  const char *texts[3] = {"a", "b", "c\xff"};
  size_t lengths[3] = {1, 1, 2};
  float rows[3 * WIDTH], before[3 * WIDTH];
  uint8_t truncated[3] = {9, 9, 9};
  memset(before, 5, sizeof before);
  memcpy(rows, before, sizeof rows);
#define ENCODE(encoder, texts, lengths, rows, capacity) \
  adead_sentence_encoder_encode(encoder, texts, lengths, 3, &options, rows, capacity, truncated)
  FAILS(ENCODE(encoder, texts, lengths, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "sentence 2 is not UTF-8");
  FAILS(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "sentence 2 is not UTF-8");
  texts[2] = "\xe2\x82";
  FAILS(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "sentence 2 is not UTF-8");
  texts[2] = "c";
  texts[1] = NULL;
  FAILS(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "sentence 1 is NULL");
  FAILS(ENCODE(encoder, texts, lengths, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "sentence 1 is NULL");
  texts[1] = "b";
  lengths[1] = (size_t)-1;
  FAILS(ENCODE(encoder, texts, lengths, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "can't be an array");
  FAILS(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH - 1), ADEAD_INVALID_ARGUMENT, "room for 95 values");
  FAILS(ENCODE(encoder, texts, NULL, NULL, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "rows is NULL");
  FAILS(ENCODE(encoder, NULL, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "sentences is NULL");
  FAILS(ENCODE(NULL, texts, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "encoder is NULL");
  FAILS(adead_sentence_encoder_encode(encoder, texts, NULL, (size_t)-1 / 8, NULL, rows, 3 * WIDTH, NULL),
        ADEAD_INVALID_ARGUMENT, "can't be an array");
  options.batch = 0;
  FAILS(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "at least 1 sentence, not 0");
  options.batch = 1;
  options.padded = 2;
  FAILS(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "padded is 2");
  options.padded = -1;
  options.struct_size = 0;
  FAILS(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH), ADEAD_INVALID_ARGUMENT, "struct_size");
  options.struct_size = sizeof options;
  CHECK(!memcmp(rows, before, sizeof rows) && truncated[0] == 9 && truncated[1] == 9 && truncated[2] == 9);
  OK(ENCODE(encoder, texts, NULL, rows, 3 * WIDTH));
  CHECK(memcmp(rows, before, sizeof rows) && !truncated[0] && !truncated[1] && !truncated[2]);
#undef ENCODE
}

/* A stream of the lines again and again. `most` is where it ends, `fails` where the source fails, `stop` where whoever takes
 * rows wants no more, `bad` where a text is not UTF-8. */
typedef struct {
  uint64_t most, fails, stop, bad, given, taken, computed;
  int by_nul;
  char text[4096];
} state;

static const uint64_t never = (uint64_t)-1;

static int32_t next(void *user, const char **text, size_t *length) {
  state *s = user;
  size_t i = s->given % lines.count;
  CHECK(!*text && *length == (size_t)-1);
  if (s->given == s->fails) return -3;
  if (s->given == s->most) return 0;
  if (s->given++ == s->bad) {
    *text = "\xc3(";
    return 1;
  }
  /* It is read before the next call. */
  memcpy(s->text, lines.lines[i], lines.lengths[i]);
  s->text[lines.lengths[i]] = 0;
  *text = s->text;
  if (!s->by_nul) *length = lines.lengths[i];
  return 1;
}

static int32_t take(void *user, uint64_t first, const float *rows, const uint8_t *truncated, size_t count) {
  state *s = user;
  size_t i;
  CHECK(first == s->taken && count);
  for (i = 0; i < count; i++) {
    CHECK(!memcmp(rows + i * WIDTH, expected + (first + i) % lines.count * WIDTH, WIDTH * sizeof *rows));
    CHECK(truncated[i] == cut[(first + i) % lines.count]);
  }
  s->taken += count;
  return s->taken >= s->stop;
}

static int32_t progress(void *user, uint64_t computed) {
  state *s = user;
  CHECK(computed > s->computed);
  s->computed = computed;
  return 0;
}

static int32_t progress_stops(void *user, uint64_t computed) {
  (void)user;
  return computed >= 10;
}

static void streams(void) {
  adead_encode_options options = ADEAD_ENCODE_OPTIONS_INIT;
  uint64_t counts[3] = {0, 1, 500}, count;
  size_t i;
  for (i = 0; i < 3; i++) {
    state s = {counts[i], never, never, never, 0, 0, 0, i % 2, ""};
    adead_sentence_stream stream = ADEAD_SENTENCE_STREAM_INIT;
    stream.user = &s;
    stream.next = next;
    stream.take = take;
    if (i) stream.progress = progress;
    options.batch = i ? 7 : ADEAD_BATCH_AUTO;
    count = never;
    OK(adead_sentence_encoder_batch_embed(encoder, &stream, &options, &count));
    CHECK(count == counts[i] && s.taken == counts[i] && s.given == counts[i] && (!i || s.computed == counts[i]));
  }
}

static void stream_errors(void) {
  adead_encode_options options = ADEAD_ENCODE_OPTIONS_INIT;
  adead_sentence_stream stream = ADEAD_SENTENCE_STREAM_INIT;
  uint64_t count = 77;
  state failing = {never, 150, never, never, 0, 0, 0, 0, ""}, bad = {never, never, never, 150, 0, 0, 0, 0, ""};
  state endless = {never, never, 300, never, 0, 0, 0, 0, ""}, halted = {never, never, never, never, 0, 0, 0, 0, ""};
  FAILS(adead_sentence_encoder_batch_embed(encoder, &stream, NULL, &count), ADEAD_INVALID_ARGUMENT, "next and take");
  FAILS(adead_sentence_encoder_batch_embed(encoder, NULL, NULL, &count), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  stream.next = next;
  FAILS(adead_sentence_encoder_batch_embed(encoder, &stream, NULL, &count), ADEAD_INVALID_ARGUMENT, "next and take");
  stream.take = take;
  stream.user = &failing;
  FAILS(adead_sentence_encoder_batch_embed(NULL, &stream, NULL, &count), ADEAD_INVALID_ARGUMENT, "encoder is NULL");
  FAILS(adead_sentence_encoder_batch_embed(encoder, &stream, NULL, NULL), ADEAD_INVALID_ARGUMENT, "count is NULL");
  CHECK(!failing.given);
  FAILS(adead_sentence_encoder_batch_embed(encoder, &stream, NULL, &count), ADEAD_IO, "failed at sentence 150 with -3");
  CHECK(failing.given == 150 && failing.taken <= 150);
  stream.user = &bad;
  FAILS(adead_sentence_encoder_batch_embed(encoder, &stream, NULL, &count), ADEAD_INVALID_ARGUMENT,
        "sentence 150 is not UTF-8");
  CHECK(bad.taken <= 150);
  options.batch = 0;
  bad.given = bad.taken = 0;
  FAILS(adead_sentence_encoder_batch_embed(encoder, &stream, &options, &count), ADEAD_INVALID_ARGUMENT, "not 0");
  CHECK(count == 77 && !bad.taken);
  /* Who takes rows ends an endless stream, of which no more is taken ahead than some thousand sentences. */
  stream.user = &endless;
  OK(adead_sentence_encoder_batch_embed(encoder, &stream, NULL, &count));
  CHECK(count == endless.taken && count >= 300 && endless.given >= count && endless.given - count <= 2 * 4096);
  stream.user = &halted;
  stream.progress = progress_stops;
  OK(adead_sentence_encoder_batch_embed(encoder, &stream, NULL, &count));
  CHECK(count == 0 && !halted.taken);
}

static void *share(void *number) {
  adead_encode_options options = ADEAD_ENCODE_OPTIONS_INIT;
  const char *text = "\xff";
  float row[WIDTH], *found;
  char words[64];
  options.batch = (size_t)*(int *)number + 1;
  found = embeddings(encoder, &lines, &options, NULL);
  CHECK(!memcmp(found, expected, lines.count * WIDTH * sizeof *found));
  free(found);
  sprintf(words, "room for %d values", *(int *)number);
  FAILS(adead_sentence_encoder_encode(encoder, &text, NULL, 1, NULL, row, (size_t)*(int *)number, NULL),
        ADEAD_INVALID_ARGUMENT, words);
  return NULL;
}

static void threads(void) {
  pthread_t all[THREADS];
  int numbers[THREADS], i;
  for (i = 0; i < THREADS; i++) {
    numbers[i] = i;
    CHECK(!pthread_create(&all[i], NULL, share, &numbers[i]));
  }
  for (i = 0; i < THREADS; i++) CHECK(!pthread_join(all[i], NULL));
}

int main(void) {
  adead_context_options options = ADEAD_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  lines = read_lines(SENTENCES "/tiny.txt");
  CHECK(!strcmp(adead_models_last_error(), ""));
  OK(adead_sentence_encoder_open(model, "cpu", &options, &encoder));
  opening();
  bits();
  batches();
  errors();
  streams();
  stream_errors();
  threads();
  adead_sentence_encoder_destroy(encoder);
  free(expected);
  free(cut);
  free_lines(&lines);
  return 0;
}
