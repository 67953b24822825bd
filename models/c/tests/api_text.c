/* Text generators, on a small made-up model of tests/text. */
#define _POSIX_C_SOURCE 200809L
#define LAST_ERROR adead_models_last_error
#include <adead/models.h>

#include "check.h"

#include <pthread.h>

enum { MOST = 60, THREADS = 4, ROOM = 4096, WIDTH = 64 };

static const char *const model = TEXT "/llama.gguf";
static adead_text_generator *generator;
/* The answer that every language has. */
static char expected[ROOM];
static uint32_t expected_tokens[MOST];

static void read_answer(void) {
  FILE *file = fopen(TEXT "/answer.txt", "rb");
  size_t count;
  CHECK(file);
  expected[fread(expected, 1, ROOM - 1, file)] = 0;
  fclose(file);
  file = fopen(TEXT "/answer.tokens", "rb");
  CHECK(file);
  for (count = 0; count < MOST; count++) {
    unsigned token;
    CHECK(fscanf(file, "%u", &token) == 1);
    expected_tokens[count] = token;
  }
  fclose(file);
}

/* The options of that answer. */
static adead_generate_options warm(void) {
  adead_generate_options options = ADEAD_GENERATE_OPTIONS_INIT;
  options.max_tokens = MOST;
  options.ignore_end = 1;
  options.temperature = 1.5f;
  options.top_k = 60;
  options.top_p = 0.98f;
  options.min_p = 0.001f;
  options.repeat_penalty = 1.1f;
  options.repeat_last = 16;
  options.seed = 42;
  return options;
}

/* Checks a whole answer, and destroys it. */
static void check_answer(adead_generation *answer) {
  const char *text = NULL;
  const uint32_t *tokens = NULL;
  size_t length = 0, count = 0, prompt = 0, known = 0;
  adead_finish finish = ADEAD_FINISH_NONE;
  OK(adead_generation_text(answer, &text, &length));
  OK(adead_generation_tokens(answer, &tokens, &count));
  OK(adead_generation_prompt_tokens(answer, &prompt));
  OK(adead_generation_finish(answer, &finish));
  OK(adead_text_tokenize(generator, "the ferry", NULL, 0, &known));
  CHECK(length == strlen(expected) && !strcmp(text, expected));
  CHECK(count == MOST && !memcmp(tokens, expected_tokens, sizeof expected_tokens));
  CHECK(prompt == known && finish == ADEAD_FINISH_MAX_TOKENS);
  adead_generation_destroy(answer);
}

static void opening(void) {
  adead_text_options options = ADEAD_TEXT_OPTIONS_INIT;
  adead_text_generator *none = NULL;
  const char *device = NULL;
  size_t length = 0, vocabulary = 0, width = 0;
  int32_t template = -1;
  FAILS(adead_text_generator_open(TEXT "/nowhere", NULL, &none), ADEAD_IO, "nowhere");
  FAILS(adead_text_generator_open(TEXT "/make_tiny.py", NULL, &none), ADEAD_INVALID_ARGUMENT, "make_tiny.py");
  FAILS(adead_text_generator_open(NULL, NULL, &none), ADEAD_INVALID_ARGUMENT, "path is NULL");
  FAILS(adead_text_generator_open(model, NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_text_generator_open("\xff", NULL, &none), ADEAD_INVALID_ARGUMENT, "path is not UTF-8");
  options.device = "tpu";
  FAILS(adead_text_generator_open(model, &options, &none), ADEAD_INVALID_ARGUMENT, "tpu");
  options.device = "cpu";
  options.context_length = 1 << 30;
  FAILS(adead_text_generator_open(model, &options, &none), ADEAD_INVALID_ARGUMENT, "a context length of 1073741824");
  options.context_length = 0;
  options.map = 2;
  FAILS(adead_text_generator_open(model, &options, &none), ADEAD_INVALID_ARGUMENT, "map is 2");
  options.map = 0;
  options.struct_size = 1;
  FAILS(adead_text_generator_open(model, &options, &none), ADEAD_INVALID_ARGUMENT, "struct_size");
  CHECK(!none);
  OK(adead_text_generator_context_length(generator, &length));
  OK(adead_text_generator_vocabulary(generator, &vocabulary));
  OK(adead_text_generator_width(generator, &width));
  OK(adead_text_generator_has_chat_template(generator, &template));
  OK(adead_text_generator_device(generator, &device));
  CHECK(length == 256 && vocabulary == 281 && width == WIDTH && template == 1 && !strcmp(device, "cpu"));
  FAILS(adead_text_generator_width(NULL, &width), ADEAD_INVALID_ARGUMENT, "generator is NULL");
  FAILS(adead_text_generator_vocabulary(generator, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  adead_text_generator_destroy(NULL);
  adead_text_stream_destroy(NULL);
  adead_generation_destroy(NULL);
}

/* Pieces of a text behind each other, of which so many are wanted. */
typedef struct {
  char text[ROOM];
  size_t length, pieces, wanted;
} collected;

static int32_t collect(void *user, const char *text, size_t length) {
  collected *all = user;
  CHECK(length && strlen(text) == length && all->length + length < ROOM);
  memcpy(all->text + all->length, text, length + 1);
  all->length += length;
  return ++all->pieces == all->wanted;
}

static void answers(void) {
  adead_generate_options options = warm();
  adead_generation *answer = NULL;
  collected all = {"", 0, 0, 0};
  OK(adead_text_generate(generator, "the ferry", &options, NULL, NULL, &answer));
  check_answer(answer);
  OK(adead_text_generate(generator, "the ferry", &options, collect, &all, &answer));
  check_answer(answer);
  CHECK(all.pieces > 10 && !strcmp(all.text, expected));
  OK(adead_text_generate(generator, "the ferry", &options, NULL, NULL, NULL));
}

static void a_callback_ends_the_text(void) {
  adead_generate_options options = warm();
  adead_generation *answer = NULL;
  const char *text = NULL;
  const uint32_t *tokens = NULL;
  size_t length = 0, count = 0;
  adead_finish finish = -1;
  collected all = {"", 0, 0, 3};
  OK(adead_text_generate(generator, "the ferry", &options, collect, &all, &answer));
  OK(adead_generation_text(answer, &text, NULL));
  OK(adead_generation_tokens(answer, &tokens, &count));
  OK(adead_generation_finish(answer, &finish));
  length = strlen(text);
  CHECK(all.pieces == 3 && !strcmp(text, all.text) && !strncmp(text, expected, length) && length < strlen(expected));
  CHECK(count >= 3 && count < MOST && !memcmp(tokens, expected_tokens, count * sizeof *tokens));
  CHECK(finish == ADEAD_FINISH_NONE);
  adead_generation_destroy(answer);
}

static void streams(void) {
  adead_generate_options options = warm();
  adead_text_stream *stream = NULL;
  adead_generation *answer = NULL;
  const char *text = "";
  size_t length = 1;
  adead_finish finish = -1;
  collected all = {"", 0, 0, 0};
  OK(adead_text_stream_create(generator, "the ferry", &options, &stream));
  OK(adead_text_stream_generation(stream, &answer));
  OK(adead_generation_finish(answer, &finish));
  OK(adead_generation_text(answer, &text, &length));
  CHECK(finish == ADEAD_FINISH_NONE && !length && !*text);
  adead_generation_destroy(answer);
  for (;;) {
    OK(adead_text_stream_next(stream, &text, &length));
    if (!text) break;
    collect(&all, text, length);
  }
  CHECK(!length && !strcmp(all.text, expected));
  OK(adead_text_stream_next(stream, &text, &length));
  CHECK(!text && !length);
  OK(adead_text_stream_generation(stream, &answer));
  check_answer(answer);
  FAILS(adead_text_stream_next(NULL, &text, &length), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_text_stream_next(stream, NULL, &length), ADEAD_INVALID_ARGUMENT, "text is NULL");
  FAILS(adead_text_stream_generation(stream, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  adead_text_stream_destroy(stream);
  /* One that is left in the middle, and whose generator goes before it. */
  {
    adead_text_generator *other = NULL;
    OK(adead_text_generator_open(model, NULL, &other));
    OK(adead_text_stream_create(other, "the ferry", &options, &stream));
    adead_text_generator_destroy(other);
    OK(adead_text_stream_next(stream, &text, &length));
    CHECK(text && !strncmp(text, expected, length));
    adead_text_stream_destroy(stream);
  }
}

static void stop_texts(void) {
  adead_generate_options options = warm();
  adead_generation *answer = NULL;
  const char *text = NULL, *stops[2] = {"no such text", NULL};
  char stop[4] = "";
  size_t length = 0;
  adead_finish finish = ADEAD_FINISH_NONE;
  /* Of ASCII alone, so that it begins and ends between characters. */
  const char *from = expected + 8;
  while ((from[0] | from[1] | from[2]) & 0x80) from++;
  memcpy(stop, from, 3);
  CHECK(strlen(stop) == 3);
  stops[1] = stop;
  options.stop = stops;
  options.stop_count = 2;
  OK(adead_text_generate(generator, "the ferry", &options, NULL, NULL, &answer));
  OK(adead_generation_text(answer, &text, &length));
  OK(adead_generation_finish(answer, &finish));
  CHECK(finish == ADEAD_FINISH_STOP && length == (size_t)(strstr(expected, stop) - expected));
  CHECK(!strncmp(text, expected, length));
  adead_generation_destroy(answer);
}

/* The only JSON that the schema allows. */
static void schemas(void) {
  adead_generate_options options = warm();
  adead_generation *answer = NULL;
  const char *text = NULL;
  size_t length = 0;
  adead_finish finish = ADEAD_FINISH_NONE;
  options.json_schema = "{\"const\": {\"a\": [1, null]}}";
  OK(adead_text_generate(generator, "the ferry", &options, NULL, NULL, &answer));
  OK(adead_generation_text(answer, &text, &length));
  OK(adead_generation_finish(answer, &finish));
  CHECK(finish == ADEAD_FINISH_END && !strcmp(text, "{\"a\": [1, null]}"));
  adead_generation_destroy(answer);
  options.json_schema = "{\"type\": 3}";
  FAILS(adead_text_generate(generator, "the ferry", &options, NULL, NULL, &answer), ADEAD_INVALID_ARGUMENT, "json_schema: ");
}

static void chats(void) {
  adead_generate_options options = warm();
  adead_message messages[2] = {{"system", "be brief"}, {"user", "the ferry came in"}};
  adead_generation *answer = NULL, *again = NULL;
  adead_text_stream *stream = NULL;
  const char *text = NULL, *prompt =
    "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nthe ferry came in<|im_end|>\n<|im_start|>assistant\n";
  const char *other = NULL;
  collected all = {"", 0, 0, 0};
  size_t length = 0;
  OK(adead_text_chat(generator, messages, 2, &options, collect, &all, &answer));
  OK(adead_generation_text(answer, &text, &length));
  CHECK(length == all.length && !strcmp(text, all.text));
  /* The template writes this prompt. */
  OK(adead_text_generate(generator, prompt, &options, NULL, NULL, &again));
  OK(adead_generation_text(again, &other, NULL));
  CHECK(!strcmp(text, other));
  OK(adead_text_stream_create_chat(generator, messages, 2, &options, &stream));
  OK(adead_text_stream_next(stream, &other, &length));
  CHECK(length && !strncmp(text, other, length));
  adead_text_stream_destroy(stream);
  adead_generation_destroy(answer);
  adead_generation_destroy(again);
  answer = NULL;
  messages[1].content = NULL;
  FAILS(adead_text_chat(generator, messages, 2, &options, NULL, NULL, &answer), ADEAD_INVALID_ARGUMENT,
        "content of message 1 is NULL");
  messages[0].role = "\xff";
  FAILS(adead_text_chat(generator, messages, 2, &options, NULL, NULL, &answer), ADEAD_INVALID_ARGUMENT,
        "role of message 0 is not UTF-8");
  FAILS(adead_text_chat(generator, NULL, 2, &options, NULL, NULL, &answer), ADEAD_INVALID_ARGUMENT, "messages is NULL");
  CHECK(!answer);
}

/* Texts together have the bits that each has alone. */
static void batches(void) {
  enum { COUNT = 3 };
  const char *prompts[COUNT] = {"the ferry", "came in", "a rather longer prompt than the others"};
  adead_generate_options options = warm();
  adead_generation *together[COUNT] = {NULL, NULL, NULL}, *alone = NULL;
  const char *text = NULL, *other = NULL;
  const uint32_t *tokens = NULL, *others = NULL;
  size_t count = 0, i;
  OK(adead_text_generate_batch(generator, prompts, COUNT, &options, together));
  for (i = 1; i < COUNT; i++) {
    options.sequence = i;
    OK(adead_text_generate(generator, prompts[i], &options, NULL, NULL, &alone));
    OK(adead_generation_text(alone, &text, NULL));
    OK(adead_generation_text(together[i], &other, NULL));
    OK(adead_generation_tokens(alone, &tokens, &count));
    OK(adead_generation_tokens(together[i], &others, &count));
    CHECK(!strcmp(text, other) && count == MOST && !memcmp(tokens, others, count * sizeof *tokens));
    adead_generation_destroy(alone);
    adead_generation_destroy(together[i]);
  }
  check_answer(together[0]);
  OK(adead_text_generate_batch(generator, NULL, 0, NULL, NULL));
  FAILS(adead_text_generate_batch(generator, prompts, COUNT, NULL, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  together[0] = NULL;
  prompts[1] = NULL;
  FAILS(adead_text_generate_batch(generator, prompts, COUNT, NULL, together), ADEAD_INVALID_ARGUMENT, "prompt 1 is NULL");
  prompts[1] = "";
  FAILS(adead_text_generate_batch(generator, prompts, COUNT, NULL, together), ADEAD_INVALID_ARGUMENT, "no tokens");
  CHECK(!together[0]);
}

static void tokens_and_scores(void) {
  const char *ferry = "the ferry came in";
  uint32_t tokens[32];
  char text[32];
  float logprobs[32], values[WIDTH], few[1] = {7};
  double perplexity = 0, sum = 0;
  size_t count = 0, length = 0, width = 0, i;
  OK(adead_text_tokenize(generator, ferry, NULL, 0, &count));
  CHECK(count > 2 && count <= 32);
  length = count;
  OK(adead_text_tokenize(generator, ferry, tokens, count, &count));
  CHECK(count == length);
  FAILS(adead_text_tokenize(generator, ferry, tokens, 1, &count), ADEAD_INVALID_ARGUMENT, "tokens has room for 1");
  OK(adead_text_detokenize(generator, tokens, count, NULL, 0, &length));
  CHECK(length == strlen(ferry));
  OK(adead_text_detokenize(generator, tokens, count, text, length + 1, &length));
  CHECK(length == strlen(ferry) && !strcmp(text, ferry));
  FAILS(adead_text_detokenize(generator, tokens, count, text, length, &length), ADEAD_INVALID_ARGUMENT, "text has room for");
  OK(adead_text_detokenize(generator, NULL, 0, text, 1, &length));
  CHECK(!length && !*text);

  OK(adead_text_logprobs(generator, tokens, count, logprobs, 32));
  for (i = 0; i + 1 < count; i++) {
    CHECK(logprobs[i] < 0);
    sum -= (double)logprobs[i];
  }
  OK(adead_text_perplexity(generator, ferry, &perplexity));
  CHECK(perplexity > 1 && perplexity < 1e9 && sum > 0);
  FAILS(adead_text_perplexity(generator, "", &perplexity), ADEAD_INVALID_ARGUMENT, "needs at least 2");
  FAILS(adead_text_logprobs(generator, tokens, count, few, 1), ADEAD_INVALID_ARGUMENT, "logprobs has room for 1");
  FAILS(adead_text_logprobs(generator, tokens, 0, few, 1), ADEAD_INVALID_ARGUMENT, "0 tokens");
  tokens[0] = 1u << 30;
  FAILS(adead_text_logprobs(generator, tokens, count, logprobs, 32), ADEAD_INVALID_ARGUMENT, "outside the vocabulary");
  OK(adead_text_generator_width(generator, &width));
  OK(adead_text_embed(generator, ferry, values, WIDTH));
  for (sum = 0, i = 0; i < width; i++) sum += (double)(values[i] * values[i]);
  CHECK(sum > 0);
  FAILS(adead_text_embed(generator, ferry, few, 1), ADEAD_INVALID_ARGUMENT, "values has room for 1");
  FAILS(adead_text_embed(generator, ferry, NULL, WIDTH), ADEAD_INVALID_ARGUMENT, "values is NULL");
  CHECK(few[0] == 7);
}

/* A call that fails says why and gives nothing. */
static void errors(void) {
  adead_generate_options options = warm();
  adead_generation *answer = NULL;
  adead_text_stream *stream = NULL;
  const char *stops[1] = {"\xff"};
#define GENERATE(generator, prompt) adead_text_generate(generator, prompt, &options, NULL, NULL, &answer)
  FAILS(GENERATE(NULL, "a"), ADEAD_INVALID_ARGUMENT, "generator is NULL");
  FAILS(GENERATE(generator, NULL), ADEAD_INVALID_ARGUMENT, "prompt is NULL");
  FAILS(GENERATE(generator, "\xff"), ADEAD_INVALID_ARGUMENT, "prompt is not UTF-8");
  FAILS(GENERATE(generator, ""), ADEAD_INVALID_ARGUMENT, "the prompt has no tokens");
  options.top_p = 2;
  FAILS(GENERATE(generator, "a"), ADEAD_INVALID_ARGUMENT, "top_p is 2");
  FAILS(adead_text_stream_create(generator, "a", &options, &stream), ADEAD_INVALID_ARGUMENT, "top_p is 2");
  options.top_p = 1;
  options.ignore_end = 3;
  FAILS(GENERATE(generator, "a"), ADEAD_INVALID_ARGUMENT, "ignore_end is 3");
  options.ignore_end = 0;
  options.stop_count = 1;
  FAILS(GENERATE(generator, "a"), ADEAD_INVALID_ARGUMENT, "stop is NULL");
  options.stop = stops;
  FAILS(GENERATE(generator, "a"), ADEAD_INVALID_ARGUMENT, "stop text 0 is not UTF-8");
  options.struct_size = 3;
  FAILS(GENERATE(generator, "a"), ADEAD_INVALID_ARGUMENT, "struct_size");
#undef GENERATE
  CHECK(!answer && !stream);
}

typedef struct {
  size_t calls, computed, all;
} told;

static void progress(void *user, size_t computed, size_t all) {
  told *so_far = user;
  CHECK(computed > so_far->computed && computed <= all);
  so_far->calls++;
  so_far->computed = computed;
  so_far->all = all;
}

static void options_of_a_generator(void) {
  adead_text_options options = ADEAD_TEXT_OPTIONS_INIT;
  adead_generate_options few = ADEAD_GENERATE_OPTIONS_INIT;
  adead_text_generator *other = NULL;
  adead_generation *answer = NULL;
  told so_far = {0, 0, 0};
  adead_finish finish = ADEAD_FINISH_NONE;
  size_t length = 0;
  few.ignore_end = 1;
  options.threads = 1;
  options.context_length = 20;
  options.chunk = 4;
  options.map = 1;
  options.progress = progress;
  options.user = &so_far;
  OK(adead_text_generator_open(model, &options, &other));
  OK(adead_text_generator_context_length(other, &length));
  OK(adead_text_generate(other, "abcdefghij", &few, NULL, NULL, &answer));
  OK(adead_generation_finish(answer, &finish));
  CHECK(length == 20 && finish == ADEAD_FINISH_CONTEXT_FULL);
  CHECK(so_far.calls == 3 && so_far.computed == 10 && so_far.all == 10);
  adead_generation_destroy(answer);
  adead_text_generator_destroy(other);
}

static void *share(void *unused) {
  adead_generate_options options = warm();
  adead_generation *answer = NULL;
  (void)unused;
  OK(adead_text_generate(generator, "the ferry", &options, NULL, NULL, &answer));
  check_answer(answer);
  return NULL;
}

static void threads(void) {
  pthread_t all[THREADS];
  int i;
  for (i = 0; i < THREADS; i++) CHECK(!pthread_create(&all[i], NULL, share, NULL));
  for (i = 0; i < THREADS; i++) CHECK(!pthread_join(all[i], NULL));
}

int main(void) {
  adead_text_options options = ADEAD_TEXT_OPTIONS_INIT;
  options.device = "cpu";
  options.threads = 2;
  read_answer();
  OK(adead_text_generator_open(model, &options, &generator));
  opening();
  answers();
  a_callback_ends_the_text();
  streams();
  stop_texts();
  schemas();
  chats();
  batches();
  tokens_and_scores();
  errors();
  options_of_a_generator();
  threads();
  adead_text_generator_destroy(generator);
  return 0;
}
