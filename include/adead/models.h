/*
 * adead_models: models with the same bits on every device. MIT license.
 *
 * Generated from models/c by `ADEAD_BLESS=1 cargo test -p adead-models-c --test header`; don't edit.
 *
 * Sentence encoders run models in sentence-transformers' format, such as all-MiniLM-L6-v2. Text generators run language models
 * in GGUF files. Trainers train networks on arrays; jobs train as a TOML file describes. Link with -ladead_models, which does not
 * need libadead. The rules, statuses and context options are those of adead.h. adead_models_last_error returns this library's
 * error texts.
 * docs/sentences.md, docs/text-generation.md and docs/training.md are the guides. They are at
 * https://adead.github.io/adead/sentences.html, and so on.
 */

#ifndef ADEAD_MODELS_H
#define ADEAD_MODELS_H


#include <adead.h>

/// The batch size that suits the device.
#define ADEAD_BATCH_AUTO ((size_t)-1)

/// The defaults of adead_encode_options.
#define ADEAD_ENCODE_OPTIONS_INIT { sizeof(adead_encode_options), ADEAD_BATCH_AUTO, -1 }

/// An adead_sentence_stream without callbacks.
#define ADEAD_SENTENCE_STREAM_INIT { sizeof(adead_sentence_stream), NULL, NULL, NULL, NULL }

/// The defaults of adead_text_options.
#define ADEAD_TEXT_OPTIONS_INIT { sizeof(adead_text_options), NULL, 0, 0, 0, 0, NULL, NULL }

/// The defaults of adead_generate_options.
#define ADEAD_GENERATE_OPTIONS_INIT { sizeof(adead_generate_options), 512, NULL, 0, 0, 0.0f, 0, 1.0f, 0.0f, 1.0f, 64, 0, 0, NULL }

/// The defaults of adead_convert_options.
#define ADEAD_CONVERT_OPTIONS_INIT { sizeof(adead_convert_options), NULL, NULL, NULL, NULL }

/// The defaults of adead_train_options.
#define ADEAD_TRAIN_OPTIONS_INIT { sizeof(adead_train_options), 0, 0, NULL, 300.0, NULL, NULL }

// adead_finish: why a text ended.
enum {
  /// No reason yet: the stream has more text, or the caller ended it.
  ADEAD_FINISH_NONE = 0,
  /// The model ended it.
  ADEAD_FINISH_END = 1,
  /// A stop text was generated.
  ADEAD_FINISH_STOP = 2,
  /// The text has `max_tokens` tokens.
  ADEAD_FINISH_MAX_TOKENS = 3,
  /// The sequence has as many tokens as the context length.
  ADEAD_FINISH_CONTEXT_FULL = 4
};


/// The version of this interface that the header describes.
#define ADEAD_MODELS_ABI_VERSION 1

/// A generated text and its tokens.
typedef struct adead_generation adead_generation;

/// What the ranks send to this one in one exchange.
typedef struct adead_mailbox adead_mailbox;

/// A model in sentence-transformers' format (tokenizer, network, pooling), opened for a device, that embeds sentences. It never changes, so
/// threads may share one.
typedef struct adead_sentence_encoder adead_sentence_encoder;

/// A language model from a GGUF file, opened for a device, that generates text. It never changes, so threads may share one.
typedef struct adead_text_generator adead_text_generator;

/// A text that is generated piece by piece. One thread at a time may use it.
typedef struct adead_text_stream adead_text_stream;

/// A network in training. Only one thread at a time may use it: a call while another one computes is `not_ready`.
typedef struct adead_trainer adead_trainer;

/// Options of batches of sentences. They don't change any bit of a result. Start from `ADEAD_ENCODE_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_encode_options)`.
  size_t struct_size;
  /// The most sentences in a batch. `ADEAD_BATCH_AUTO` chooses what suits the device.
  size_t batch;
  /// Whether a batch's sentences are padded to the longest one: 0 or 1. -1 chooses what suits the device.
  int32_t padded;
} adead_encode_options;

/// The source and the consumer of a stream of sentences. Start from `ADEAD_SENTENCE_STREAM_INIT`. The callbacks receive `user`. They must
/// return: no longjmp and no C++ exception may leave them.
typedef struct {
  /// `sizeof(adead_sentence_stream)`.
  size_t struct_size;
  /// Passed to the callbacks.
  void *user;
  /// Provides the next sentence. Returns 1 after it has set `*text`, which must stay valid until the next call, and `*length`, the number
  /// of bytes; for a text that ends with NUL it leaves `*length` unchanged. Returns 0 at the end of the stream, and any other number on
  /// failure. It runs in the library's own thread, ahead of `take`.
  int32_t (*next)(void *user, const char **text, size_t *length);
  /// Takes the next `count` rows, in the order of the sentences. `first` is the number of the first row's sentence, counted from 0.
  /// `truncated` has `count` bytes: 1 for a truncated sentence, else 0. Both arrays are valid only during the call. Returns 0 to
  /// continue; any other number ends the stream. It runs in the calling thread.
  int32_t (*take)(void *user, uint64_t first, const float *rows, const uint8_t *truncated, size_t count);
  /// Receives the number of sentences computed so far, including the rows that `take` receives next. May be NULL. Returns 0 to continue,
  /// and runs in the calling thread, as `take` does.
  int32_t (*progress)(void *user, uint64_t computed);
} adead_sentence_stream;

/// Options for opening a text generator. They don't change any bit of a result. Start from `ADEAD_TEXT_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_text_options)`.
  size_t struct_size;
  /// The device, named as for `adead_context_open`. NULL takes the name in `ADEAD_DEVICE`, or else in adead.toml, or else the CPU.
  const char *device;
  /// The number of CPU threads. 0 takes the number in `ADEAD_NUM_THREADS`, or else in adead.toml, or else as many as the
  /// process may use.
  size_t threads;
  /// The most tokens of a sequence, prompt and answer together. 0 takes the context length in the model's file, which is also the largest
  /// allowed value.
  size_t context_length;
  /// The most tokens that are computed at once. 0 selects 512 on the CPU and 2,048 on a GPU.
  size_t chunk;
  /// Whether the file is mapped into memory: 0 or 1. If 1, weights are read when they are first used, and the file must not change until
  /// the generator is destroyed. If the file is truncated, the process ends.
  int32_t map;
  /// Receives the number of the prompt's tokens computed so far, and the total, after each chunk. May be NULL. It runs in the thread
  /// whose call computes. It must return: no longjmp and no C++ exception may leave it.
  void (*progress)(void *user, size_t computed, size_t all);
  /// Passed to `progress`.
  void *user;
} adead_text_options;

/// Why a text ended, one of `ADEAD_FINISH_...`.
typedef int32_t adead_finish;

/// Options of generation. Start from `ADEAD_GENERATE_OPTIONS_INIT`, which always takes the most likely token, for at most 512 tokens.
/// docs/text-generation.md describes the steps of sampling.
typedef struct {
  /// `sizeof(adead_generate_options)`.
  size_t struct_size;
  /// The most tokens of an answer.
  size_t max_tokens;
  /// Texts that end an answer, even if they begin or end within a token. The answer does not contain them. NULL if `stop_count` is 0.
  const char *const *stop;
  /// The number of stop texts.
  size_t stop_count;
  /// Whether an answer continues after a token that would end it: 0 or 1.
  int32_t ignore_end;
  /// The temperature, which flattens the distribution. 0 takes the most likely token; 1 draws with the model's own probabilities.
  float temperature;
  /// The most tokens to draw from; 0 means all (top-k).
  size_t top_k;
  /// The sum of probabilities that the tokens to draw from reach together, 0 to 1; 1 means all tokens (top-p).
  float top_p;
  /// The least probability of a token to draw from, as a fraction of the most likely token's, 0 to 1; 0 means all tokens (min-p).
  float min_p;
  /// The penalty of recent tokens; 1 means none.
  float repeat_penalty;
  /// How many of the last tokens are recent, including the prompt's.
  size_t repeat_last;
  /// The seed of the random numbers.
  uint64_t seed;
  /// The sequence's number. Sequences with the same seed and different numbers draw different random numbers.
  uint64_t sequence;
  /// A JSON schema. The answer is JSON that the schema allows, and ends when the JSON is complete. `{}` allows any JSON; NULL allows any
  /// text.
  const char *json_schema;
} adead_generate_options;

/// Receives the next piece of a text: `length` bytes of UTF-8, followed by NUL, valid only during the call. A piece is not empty, ends
/// between characters and may have several tokens. Returns 0 to continue; any other number ends the text. It must return: no longjmp and no
/// C++ exception may leave it.
typedef int32_t (*adead_text_piece)(void *user, const char *text, size_t length);

/// A message of a conversation.
typedef struct {
  /// The speaker: "system", "user", "assistant", or another role that the model's chat template accepts.
  const char *role;
  /// The text.
  const char *content;
} adead_message;

/// Options of a conversion. Start from `ADEAD_CONVERT_OPTIONS_INIT`. The callbacks receive `user` and run in the calling thread. They must
/// return: no longjmp and no C++ exception may leave them.
typedef struct {
  /// `sizeof(adead_convert_options)`.
  size_t struct_size;
  /// How matrices are stored: "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", or llama.cpp's
  /// mixtures "q4_k_m" and "q5_k_m". NULL keeps the types of a folder's tensors; for a GGUF file a name is required.
  const char *kind;
  /// Receives the number of values written so far, and the total. May be NULL. Returns 0 to continue; any other number ends the
  /// conversion.
  int32_t (*progress)(void *user, uint64_t written, uint64_t all);
  /// Receives notes for the user before the first value is written: which tensors are stored in another type, and what a GGUF file can't
  /// express. May be NULL. `text` is valid only during the call.
  void (*note)(void *user, const char *text);
  /// Passed to the callbacks.
  void *user;
} adead_convert_options;

/// A trainer's inputs, outputs and state. Set `struct_size` to `sizeof(adead_trainer_info)` before the call.
typedef struct {
  /// `sizeof(adead_trainer_info)`.
  size_t struct_size;
  /// The type of a sample's values: `ADEAD_DTYPE_F32`, or `ADEAD_DTYPE_I64` for ids.
  adead_dtype sample_type;
  /// The type of a target's values: `ADEAD_DTYPE_I64` for classes, else `ADEAD_DTYPE_F32`.
  adead_dtype target_type;
  /// The number of values of a sample.
  size_t sample_size;
  /// The number of values of a target.
  size_t target_size;
  /// The number of values that the network computes for a sample.
  size_t output_size;
  /// The number of samples in a step's batch.
  size_t batch;
  /// The number of steps so far.
  uint64_t steps;
  /// The device that trains, such as "cpu" or "cuda:0".
  char device[64];
} adead_trainer_info;

/// Receives the epoch, counted from 1, the number of steps so far and the step's loss, after each step. Returns 0 to continue; any other
/// number ends the training. It runs in the calling thread. It must return: no longjmp and no C++ exception may leave it.
typedef int32_t (*adead_fit_progress)(void *user, uint32_t epoch, uint64_t step, float loss);

/// A parameter. Set `struct_size` to `sizeof(adead_trained_parameter)` before the call.
typedef struct {
  /// `sizeof(adead_trained_parameter)`.
  size_t struct_size;
  /// Its name, which lives as long as the trainer.
  const char *name;
  /// The number of dimensions.
  size_t rank;
  /// The dimensions.
  size_t dims[8];
  /// The number of values.
  size_t size;
} adead_trained_parameter;

/// Moves bytes between the ranks of a training.
typedef struct {
  /// `sizeof(adead_transport)`.
  size_t struct_size;
  /// The number of this rank, counted from 0.
  size_t rank;
  /// The number of ranks, at least 1.
  size_t size;
  /// Passed to `exchange`.
  void *user;
  /// Sends each rank r the `lengths[r]` bytes at `parts[r]`, and puts the bytes that each other rank sent to this one into the mailbox,
  /// with `adead_mailbox_put`. There is nothing for this rank itself. The arrays have `size` elements and are valid only during the
  /// call. All ranks call it equally often. It runs in the thread that calls the trainer. Returns 0; any other number if a rank is
  /// lost, which ends the call of the trainer with `io`. It must return: no longjmp and no C++ exception may leave it.
  int32_t (*exchange)(void *user, const void *const *parts, const size_t *lengths, adead_mailbox *mailbox);
} adead_transport;

/// A progress event: a step is done, or an epoch has ended. Later versions add fields at the end.
typedef struct {
  /// 1 if an epoch has ended, 0 after a step.
  int32_t epoch_is_over;
  /// The epoch; the first one is 1.
  uint32_t epoch;
  /// The number of steps so far.
  uint64_t step;
  /// The total number of steps of the job.
  uint64_t steps;
  /// The loss of the step's batch, or the mean loss of the epoch's batches.
  double loss;
  /// The mean loss of the held-out samples; NaN after a step.
  double held_out_loss;
  /// The fraction of held-out samples whose most likely class is correct; NaN after a step.
  double accuracy;
  /// Seconds that the epoch took, including the measurement; NaN after a step.
  double seconds;
} adead_train_event;

/// Options of a job. Start from `ADEAD_TRAIN_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_train_options)`.
  size_t struct_size;
  /// Whether the job continues from its checkpoint, if there is one: 0 or 1.
  int32_t resume;
  /// The number of epochs; 0 takes the number from the job's file.
  uint32_t epochs;
  /// This process's rank, in the form that `adead_trainer_join` takes. NULL trains without other processes.
  const char *ranks;
  /// The most seconds that a rank may take to connect, and to compute its part of a step.
  double patience;
  /// Receives each event, which is valid only during the call. May be NULL. Returns 0 to continue; any other number ends the job. It runs
  /// in the calling thread. It must return: no longjmp and no C++ exception may leave it.
  int32_t (*progress)(void *user, const adead_train_event *event);
  /// Passed to `progress`.
  void *user;
} adead_train_options;

/// What a job gave. Set `struct_size` to `sizeof(adead_train_outcome)` before the call.
typedef struct {
  /// `sizeof(adead_train_outcome)`.
  size_t struct_size;
  /// The number of steps, including those before a checkpoint.
  uint64_t steps;
  /// The mean loss of the held-out samples after the last epoch of this run. NaN if no epoch ran, and on ranks above 0.
  double held_out_loss;
  /// The fraction of held-out samples whose most likely class is correct. NaN in the same cases.
  double accuracy;
  /// The SHA-256 of the parameters, as `adead_trainer_sha256` writes it.
  char sha256[72];
  /// The device that trained.
  char device[64];
} adead_train_outcome;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// Returns the error text of the last call of this library that failed on this thread: what was wrong, with the numbers. "" if no call
/// failed. It is valid until the next call on this thread fails. (`adead_last_error` has the texts of libadead.)
ADEAD_API
const char *adead_models_last_error(void);

/// Returns the version of this library, such as "0.1.0". The text is never freed.
ADEAD_API const char *adead_models_version(void);

/// Returns the version of this interface. A program built with `ADEAD_MODELS_ABI_VERSION` n runs with every library that returns n.
ADEAD_API
uint32_t adead_models_abi_version(void);

/// Opens a model's folder, such as all-MiniLM-L6-v2, for a device. `device` and `opts` are as for `adead_context_open`; either may be NULL.
ADEAD_API
adead_status adead_sentence_encoder_open(const char *folder,
                                         const char *device,
                                         const adead_context_options *opts,
                                         adead_sentence_encoder **out);

/// Destroys an encoder; NULL is allowed.
ADEAD_API void adead_sentence_encoder_destroy(adead_sentence_encoder *encoder);

/// Returns the number of values in an embedding.
ADEAD_API adead_status adead_sentence_encoder_width(const adead_sentence_encoder *encoder, size_t *out);

/// Returns the most tokens of a sentence, including the special tokens at its ends. Later tokens are ignored.
ADEAD_API adead_status adead_sentence_encoder_max_tokens(const adead_sentence_encoder *encoder, size_t *out);

/// Returns the encoder's device: "cpu", "cuda:0", or several, separated by commas. The text lives as long as the encoder.
ADEAD_API
adead_status adead_sentence_encoder_device(const adead_sentence_encoder *encoder,
                                           const char **out);

/// Embeds `count` sentences. Writes a row of `adead_sentence_encoder_width` values for each sentence, in order, to `rows`, which has room
/// for `capacity` values.
///
/// `sentences` points to a UTF-8 text for each sentence, and `lengths` to its number of bytes. If `lengths` is NULL, the texts end with
/// NUL. If `truncated` is not NULL, it receives `count` bytes: 1 for a truncated sentence, which has more tokens than the model
/// accepts; else 0. `opts` may be NULL.
///
/// `invalid_argument` if `rows` is too small, if the batch size is 0, and, with the sentence's number, if a text is not UTF-8.
ADEAD_API
adead_status adead_sentence_encoder_encode(const adead_sentence_encoder *encoder,
                                           const char *const *sentences,
                                           const size_t *lengths,
                                           size_t count,
                                           const adead_encode_options *opts,
                                           float *rows,
                                           size_t capacity,
                                           uint8_t *truncated);

/// Embeds the sentences of a stream as they arrive, and passes the rows to `take` in the same order. `*count` receives the number of rows
/// that `take` received. A few thousand sentences are in memory at once. `opts` may be NULL.
///
/// It is not an error if `take` or `progress` ends the stream. `io` if `next` failed. `invalid_argument`, with the sentence's number, for a
/// text that is not UTF-8. In both cases `take` may not have received all rows before that sentence. The call waits for a running `next`;
/// after it returns, the library calls no callback of the stream.
ADEAD_API
adead_status adead_sentence_encoder_batch_embed(const adead_sentence_encoder *encoder,
                                                const adead_sentence_stream *stream,
                                                const adead_encode_options *opts,
                                                uint64_t *count);

/// Opens a model in a GGUF file. `opts` may be NULL.
///
/// `io` if the file can't be read. `invalid_argument`, `dtype_mismatch` or `shape_mismatch` if it is malformed. `unsupported` for a model
/// of another kind. `invalid_argument` for a context length above the model's.
ADEAD_API
adead_status adead_text_generator_open(const char *path,
                                       const adead_text_options *opts,
                                       adead_text_generator **out);

/// Destroys a generator; NULL is allowed. Its streams and generations stay valid.
ADEAD_API void adead_text_generator_destroy(adead_text_generator *generator);

/// Returns the most tokens of a sequence, prompt and answer together.
ADEAD_API adead_status adead_text_generator_context_length(const adead_text_generator *generator, size_t *out);

/// Returns the number of tokens in the vocabulary.
ADEAD_API adead_status adead_text_generator_vocabulary(const adead_text_generator *generator, size_t *out);

/// Returns the number of values that `adead_text_embed` writes.
ADEAD_API adead_status adead_text_generator_width(const adead_text_generator *generator, size_t *out);

/// Returns whether the model's file has a chat template, which `adead_text_chat` needs: 0 or 1.
ADEAD_API adead_status adead_text_generator_has_chat_template(const adead_text_generator *generator, int32_t *out);

/// Returns the generator's device: "cpu" or "cuda:0". The text lives as long as the generator.
ADEAD_API adead_status adead_text_generator_device(const adead_text_generator *generator, const char **out);

/// Destroys a generation; NULL is allowed.
ADEAD_API void adead_generation_destroy(adead_generation *generation);

/// Returns the text, without the prompt, and its number of bytes. `length` may be NULL. The text is UTF-8, ends with NUL and lives as long
/// as the generation.
ADEAD_API
adead_status adead_generation_text(const adead_generation *generation,
                                   const char **text,
                                   size_t *length);

/// Returns the tokens and their number. A token that ended the text is included, as the last one. The tokens of a stop text are also
/// included. They live as long as the generation.
ADEAD_API
adead_status adead_generation_tokens(const adead_generation *generation,
                                     const uint32_t **tokens,
                                     size_t *count);

/// Returns the number of the prompt's tokens.
ADEAD_API adead_status adead_generation_prompt_tokens(const adead_generation *generation, size_t *out);

/// Returns why the text ended.
ADEAD_API adead_status adead_generation_finish(const adead_generation *generation, adead_finish *out);

/// Generates the text that follows a prompt, and passes pieces to `piece` as they are computed, in the calling thread. `opts`, `piece` and
/// `out` may be NULL. `*out` receives the whole text. It is not an error if `piece` ends the text; `adead_generation_finish` is then
/// `ADEAD_FINISH_NONE`.
///
/// `invalid_argument` for a prompt without tokens or with more than the context length, and for options outside their ranges.
ADEAD_API
adead_status adead_text_generate(const adead_text_generator *generator,
                                 const char *prompt,
                                 const adead_generate_options *opts,
                                 adead_text_piece piece,
                                 void *user,
                                 adead_generation **out);

/// Generates an answer to `count` messages, as `adead_text_generate` does. The model's chat template turns the messages into a prompt.
///
/// `unsupported` if the model's file has no chat template; `invalid_argument` if the template refuses the messages.
ADEAD_API
adead_status adead_text_chat(const adead_text_generator *generator,
                             const adead_message *messages,
                             size_t count,
                             const adead_generate_options *opts,
                             adead_text_piece piece,
                             void *user,
                             adead_generation **out);

/// Generates texts for `count` prompts together, which is faster than one after the other. Writes a generation for each to `out`, which has
/// room for `count` of them. Every text has the same bits as alone; prompt i, counted from 0, has the sequence number of the options plus
/// i. `opts` may be NULL.
///
/// The errors are those of `adead_text_generate`, for any of the prompts. On an error `out` is unchanged.
ADEAD_API
adead_status adead_text_generate_batch(const adead_text_generator *generator,
                                       const char *const *prompts,
                                       size_t count,
                                       const adead_generate_options *opts,
                                       adead_generation **out);

/// Begins the text that follows a prompt. The first `adead_text_stream_next` computes the prompt. `opts` may be NULL. The errors are those
/// of `adead_text_generate`.
ADEAD_API
adead_status adead_text_stream_create(const adead_text_generator *generator,
                                      const char *prompt,
                                      const adead_generate_options *opts,
                                      adead_text_stream **out);

/// Begins an answer to `count` messages, as `adead_text_stream_create` does. The errors are those of `adead_text_chat`.
ADEAD_API
adead_status adead_text_stream_create_chat(const adead_text_generator *generator,
                                           const adead_message *messages,
                                           size_t count,
                                           const adead_generate_options *opts,
                                           adead_text_stream **out);

/// Destroys a stream, even before its text ends. NULL is allowed.
ADEAD_API void adead_text_stream_destroy(adead_text_stream *stream);

/// Computes the next piece. `*text` receives `*length` bytes of UTF-8, followed by NUL, valid until the next call with this stream. A piece
/// is not empty, ends between characters and may have several tokens. At the end of the text, and after an error, `*text` receives NULL and
/// `*length` 0.
ADEAD_API
adead_status adead_text_stream_next(adead_text_stream *stream,
                                    const char **text,
                                    size_t *length);

/// Returns what a stream has generated so far: the text of its pieces, and their tokens. Before the end of the text
/// `adead_generation_finish` is `ADEAD_FINISH_NONE`.
ADEAD_API adead_status adead_text_stream_generation(const adead_text_stream *stream, adead_generation **out);

/// Converts a text to tokens, and writes their number to `*count`. `tokens` has room for `capacity` of them; if it is NULL, only the number
/// is written. The text of a special token, such as `<|im_start|>`, becomes that token. A first token (bos) and a last one (eos) are added
/// if the model's file requires them.
///
/// `invalid_argument` if the capacity is too small.
ADEAD_API
adead_status adead_text_tokenize(const adead_text_generator *generator,
                                 const char *text,
                                 uint32_t *tokens,
                                 size_t capacity,
                                 size_t *count);

/// Converts `count` tokens to text, and writes its number of bytes, without the NUL at its end, to `*length`. `text` has room for
/// `capacity` bytes, including the NUL; if it is NULL, only the number is written. Special tokens have no text. Bytes that are not UTF-8
/// become U+FFFD.
///
/// `invalid_argument` if the capacity is too small.
ADEAD_API
adead_status adead_text_detokenize(const adead_text_generator *generator,
                                   const uint32_t *tokens,
                                   size_t count,
                                   char *text,
                                   size_t capacity,
                                   size_t *length);

/// Writes the perplexity of a text to `*out`: e to the power of the mean negative log probability of its tokens, except the first. A text
/// above the context length is cut into parts of that length, which don't see each other.
///
/// `invalid_argument` for a text with fewer than two tokens.
ADEAD_API
adead_status adead_text_perplexity(const adead_text_generator *generator,
                                   const char *text,
                                   double *out);

/// Writes the log probability of each of `count` tokens except the first, given the tokens before it: `count` - 1 values. `logprobs` has
/// room for `capacity` values.
///
/// `invalid_argument` if the capacity is too small, for no tokens, for more tokens than the context length, and for a token outside the
/// vocabulary.
ADEAD_API
adead_status adead_text_logprobs(const adead_text_generator *generator,
                                 const uint32_t *tokens,
                                 size_t count,
                                 float *logprobs,
                                 size_t capacity);

/// Writes the embedding of a text: the mean of its tokens' last hidden states, `adead_text_generator_width` values. `values` has room for
/// `capacity` values. A sentence encoder's embeddings represent the meaning of a text better.
///
/// `invalid_argument` if the capacity is too small, and for a text without tokens or with more than the context length.
ADEAD_API
adead_status adead_text_embed(const adead_text_generator *generator,
                              const char *text,
                              float *values,
                              size_t capacity);

/// Writes `count` values as blocks of a format, such as `ADEAD_BLOCK_FORMAT_Q4_0`, and the number of the blocks' bytes to `*size`. `blocks`
/// has room for `capacity` bytes; if it is NULL, only the number is written. A call may write several rows of a matrix. The result, as a u8
/// tensor `[rows, bytes of a row]`, is an operand of `adead_tensor_quantized_matmul`. The same values give the same bytes on every machine.
///
/// `shape_mismatch` if the values are not whole blocks. `invalid_argument` if the capacity is too small, and, with the position, for a
/// value that is NaN or infinite and for a block whose scale is above 65504.
ADEAD_API
adead_status adead_quantize(const float *values,
                            size_t count,
                            adead_block_format format,
                            void *blocks,
                            size_t capacity,
                            size_t *size);

/// Writes a model as the GGUF file `file`. `model` is a folder in Hugging Face's layout, such as SmolLM2-135M-Instruct, or a GGUF file,
/// which is read into memory. `opts` may be NULL. The file appears only when it is complete, and replaces a file of that name. The same
/// model gives the same bytes on every machine.
///
/// `io` if a file is missing, can't be read or can't be written. `invalid_argument` or `shape_mismatch` for a malformed file. `unsupported`
/// for a model of another kind. `invalid_argument` for an unknown `kind`, for a GGUF file without a `kind`, and, with the tensor's name,
/// for values that the kind can't represent. `not_ready` if `progress` ended the conversion.
ADEAD_API
adead_status adead_convert(const char *model,
                           const char *file,
                           const adead_convert_options *opts);

/// Compiles a training. `description` is JSON with the network, its loss and its optimiser; docs/training.md describes it. `device` and
/// `opts` are as for `adead_context_open`; either may be NULL.
///
/// `invalid_argument` or `shape_mismatch` if the description is malformed or does not describe a valid network.
ADEAD_API
adead_status adead_trainer_create(const char *description,
                                  const char *device,
                                  const adead_context_options *opts,
                                  adead_trainer **out);

/// Destroys a trainer; NULL is allowed.
ADEAD_API void adead_trainer_destroy(adead_trainer *trainer);

/// Describes a trainer's inputs, outputs and state.
ADEAD_API adead_status adead_trainer_inspect(const adead_trainer *trainer, adead_trainer_info *out);

/// Trains together with other processes from now on. `place` is this process's rank: "0/4@host:29500" is rank 0 of 4, with the address at
/// which rank 0 waits; "env" takes the rank that torchrun, Open MPI, MPICH or Slurm set in the environment. A rank may take at most
/// `patience` seconds to connect, and to compute its part of a step. All ranks take the parameters and the step of rank 0. Afterwards every
/// rank must make the same calls with the same samples, and computes its own part of each batch.
///
/// `invalid_argument` if there are more ranks than shards, or if the ranks' trainings differ. `io` if a rank does not connect or is lost.
ADEAD_API
adead_status adead_trainer_join(adead_trainer *trainer,
                                const char *place,
                                double patience);

/// Trains on one batch. `x` has `count` samples, one after the other, and `targets` as many targets; `adead_trainer_inspect` returns their
/// types and sizes. `count` must be the trainer's batch size. `*loss` receives the loss before the step.
///
/// `invalid_argument` for a class that does not exist. `invalid_argument` if the loss is not finite; the text then names the step and the
/// parameter. In both cases nothing changes.
ADEAD_API
adead_status adead_trainer_step(adead_trainer *trainer,
                                const void *x,
                                const void *targets,
                                size_t count,
                                float *loss);

/// Trains on `count` samples for `epochs` epochs, each in an order that the seed determines. Samples that don't fill a batch are
/// skipped in that epoch. `progress` may be NULL. `*loss` receives the mean loss of the last epoch.
///
/// The errors are those of `adead_trainer_step`, and `not_ready` if `progress` ended the training. Steps before the error remain in effect.
ADEAD_API
adead_status adead_trainer_fit(adead_trainer *trainer,
                               const void *x,
                               const void *targets,
                               size_t count,
                               uint32_t epochs,
                               adead_fit_progress progress,
                               void *user,
                               double *loss);

/// Computes the network's outputs for `count` samples. Writes `output_size` values for each sample, in order, to `out`, which has room for
/// `capacity` values.
ADEAD_API
adead_status adead_trainer_predict(const adead_trainer *trainer,
                                   const void *x,
                                   size_t count,
                                   float *out,
                                   size_t capacity);

/// Measures `count` samples: `*loss` receives their mean loss, and `*accuracy` the fraction whose most likely class is correct.
///
/// `unsupported` for a loss without classes.
ADEAD_API
adead_status adead_trainer_evaluate(const adead_trainer *trainer,
                                    const void *x,
                                    const void *targets,
                                    size_t count,
                                    double *loss,
                                    double *accuracy);

/// Writes the parameters, the optimiser's tensors and the step to a safetensors file. An existing file is replaced atomically.
///
/// `io` if it can't be written.
ADEAD_API
adead_status adead_trainer_save(const adead_trainer *trainer,
                                const char *path);

/// Continues from a file of `adead_trainer_save`: the next steps have the bits that they would have had there.
///
/// `io`, `invalid_argument` or `shape_mismatch` for a file that can't be read or belongs to another training.
ADEAD_API adead_status adead_trainer_load(adead_trainer *trainer, const char *path);

/// Writes the SHA-256 of the parameters, 64 hexadecimal digits and a NUL, to `text`, which has room for `capacity` bytes, at least 65. The
/// hash covers the parameters in the order of their names, as little-endian f32.
ADEAD_API
adead_status adead_trainer_sha256(const adead_trainer *trainer,
                                  char *text,
                                  size_t capacity);

/// Returns the number of parameters, which are named tensors.
ADEAD_API adead_status adead_trainer_parameter_count(const adead_trainer *trainer, size_t *out);

/// Describes parameter `index`, and writes its values to `values`, which has room for `capacity` values. If `values` is NULL, no values are
/// written.
///
/// `invalid_argument` if the trainer has no parameter `index`, and if the capacity is too small.
ADEAD_API
adead_status adead_trainer_parameter(const adead_trainer *trainer,
                                     size_t index,
                                     adead_trained_parameter *out,
                                     float *values,
                                     size_t capacity);

/// Puts the bytes that a rank has sent into the mailbox of an exchange. They are copied.
///
/// `invalid_argument` for this rank itself or one that does not exist, and if the rank's bytes are there.
ADEAD_API adead_status adead_mailbox_put(adead_mailbox *mailbox, size_t rank, const void *bytes, size_t length);

/// Trains together with other processes from now on, as `adead_trainer_join` does, through the caller's transport. Every rank makes the
/// call. The transport is copied; `user` must stay valid until the trainer is destroyed or joins other ranks.
///
/// `invalid_argument` if there are more ranks than shards, or if the ranks' trainings differ. `io` if a rank is lost.
ADEAD_API
adead_status adead_trainer_join_through(adead_trainer *trainer,
                                        const adead_transport *transport);

/// Runs a training job from a TOML file, whose format docs/training.md describes. `device` and `context` are as for `adead_context_open`.
/// `device`, `context` and `opts` may be NULL.
///
/// `io` or `invalid_argument` if the job, its data or a checkpoint can't be read or is malformed. `not_ready` if `progress` ended the job.
ADEAD_API
adead_status adead_train_job(const char *path,
                             const char *device,
                             const adead_context_options *context,
                             const adead_train_options *opts,
                             adead_train_outcome *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADEAD_MODELS_H */
