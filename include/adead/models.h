/*
 * adead_models: models with the same bits on every device. MIT license.
 *
 * Generated from models/c by `ADEAD_BLESS=1 cargo test -p adead-models-c --test header`; don't edit.
 *
 * Sentence encoders run models of sentence-transformers, such as all-MiniLM-L6-v2. Text generators run language models in GGUF
 * files. Trainers train networks with arrays, or as a job's file says. Link with -ladead_models: the library has a runtime of its own and needs no libadead beside it. It follows the rules of
 * adead.h and uses its statuses and the options of devices. adead_models_last_error returns this library's texts.
 * docs/sentences.md, docs/text-generation.md and docs/training.md are the guides.
 */

#ifndef ADEAD_MODELS_H
#define ADEAD_MODELS_H


#include <adead.h>

/// The device decides how many sentences a batch has.
#define ADEAD_BATCH_AUTO ((size_t)-1)

/// The defaults of adead_encode_options.
#define ADEAD_ENCODE_OPTIONS_INIT { sizeof(adead_encode_options), ADEAD_BATCH_AUTO, -1 }

/// An adead_sentence_stream without its functions.
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
  /// It has not ended: its stream has more, or the caller ended it.
  ADEAD_FINISH_NONE = 0,
  /// The model ended it.
  ADEAD_FINISH_END = 1,
  /// A stop text came.
  ADEAD_FINISH_STOP = 2,
  /// It has `max_tokens` tokens.
  ADEAD_FINISH_MAX_TOKENS = 3,
  /// The sequence has as many tokens as the context length.
  ADEAD_FINISH_CONTEXT_FULL = 4
};


/// The version of this interface that the header describes.
#define ADEAD_MODELS_ABI_VERSION 1

/// A generated text with its tokens.
typedef struct adead_generation adead_generation;

/// Embeds sentences with a model of sentence-transformers (tokenizer, network, pooling) on a device. It never changes, so threads may
/// share one.
typedef struct adead_sentence_encoder adead_sentence_encoder;

/// Generates text with a model in a GGUF file. It never changes, so threads may share one.
typedef struct adead_text_generator adead_text_generator;

/// A text that is generated piece by piece. One thread at a time may use it.
typedef struct adead_text_stream adead_text_stream;

/// A network in training. One thread at a time uses it: a call while another one computes is `not_ready`.
typedef struct adead_trainer adead_trainer;

/// Sets how sentences are batched. No choice changes a bit of a result. Start from `ADEAD_ENCODE_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_encode_options)`.
  size_t struct_size;
  /// The maximum number of sentences in a batch. With `ADEAD_BATCH_AUTO` the device decides.
  size_t batch;
  /// Whether sentences of a batch are padded to the longest one: 0 or 1. With -1 the device decides.
  int32_t padded;
} adead_encode_options;

/// Says where sentences come from and where rows go. Start from `ADEAD_SENTENCE_STREAM_INIT`. The functions must return: no longjmp
/// and no C++ exception may leave them. Each gets `user`.
typedef struct {
  /// `sizeof(adead_sentence_stream)`.
  size_t struct_size;
  /// Passed to the functions.
  void *user;
  /// Gives the next sentence: returns 1 and sets `*text`, which must stay valid until the next call, and `*length` to its bytes.
  /// For a text that ends with NUL, it leaves `*length` unchanged. Returns 0 at the end, and another number if it failed. The
  /// library calls it from its own thread, ahead of `take`.
  int32_t (*next)(void *user, const char **text, size_t *length);
  /// Takes the next `count` rows, in the order of the sentences. `first` is the number of the first row's sentence, from 0.
  /// `truncated` has `count` bytes: 1 for a truncated sentence, else 0. Both arrays are valid during the call. Returns 0 to go
  /// on; another number ends the stream. The thread that called the library calls it.
  int32_t (*take)(void *user, uint64_t first, const float *rows, const uint8_t *truncated, size_t count);
  /// Gets the number of sentences computed so far, including those whose rows come next. May be NULL. Returns 0 to go on, as
  /// `take` does, and runs in the same thread.
  int32_t (*progress)(void *user, uint64_t computed);
} adead_sentence_stream;

/// Sets how a model that writes text is opened. No choice changes a bit of a result. Start from `ADEAD_TEXT_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_text_options)`.
  size_t struct_size;
  /// The device, by the names that `adead_context_open` takes. NULL takes the one in `ADEAD_DEVICE`, or else in adead.toml, or
  /// else the CPU.
  const char *device;
  /// The number of CPU threads. 0 takes the number in `ADEAD_NUM_THREADS`, or else in adead.toml, or else as many as the
  /// process may use.
  size_t threads;
  /// The most tokens of a sequence, prompt and answer together. 0 takes what the model's file says, which is the largest number
  /// too.
  size_t context_length;
  /// The most tokens that are computed at once. 0 is 512 on the CPU and 2,048 on a GPU.
  size_t chunk;
  /// Whether the file is mapped: 0 or 1. If 1, weights are read when they are used, and the file must not change until the
  /// generator is destroyed. A file that becomes shorter ends the process.
  int32_t map;
  /// Gets the number of a prompt's tokens computed so far, and of all of them, after each chunk. May be NULL. The thread whose
  /// call computes calls it. It must return: no longjmp and no C++ exception may leave it.
  void (*progress)(void *user, size_t computed, size_t all);
  /// Passed to `progress`.
  void *user;
} adead_text_options;

/// Why a text ended, one of `ADEAD_FINISH_...`.
typedef int32_t adead_finish;

/// Sets how text is generated. Start from `ADEAD_GENERATE_OPTIONS_INIT`, which takes the most likely tokens, 512 at most.
/// docs/text-generation.md has the steps of sampling.
typedef struct {
  /// `sizeof(adead_generate_options)`.
  size_t struct_size;
  /// The most tokens of an answer.
  size_t max_tokens;
  /// Texts that end an answer, wherever tokens begin and end. The answer does not contain them. NULL if `stop_count` is 0.
  const char *const *stop;
  /// The number of these texts.
  size_t stop_count;
  /// Whether an answer goes on after tokens that would end it: 0 or 1.
  int32_t ignore_end;
  /// The factor that flattens the distribution. 0 takes the most likely token; 1 draws by the model's own probabilities.
  float temperature;
  /// The most tokens to draw from; 0 is all.
  size_t top_k;
  /// The probability that the tokens to draw from reach together, 0 to 1; 1 is all.
  float top_p;
  /// The least probability of a token to draw from, as a part of the most likely token's, 0 to 1; 0 is all.
  float min_p;
  /// The penalty of recent tokens; 1 is none.
  float repeat_penalty;
  /// How many of the last tokens are recent, the prompt's included.
  size_t repeat_last;
  /// The seed of the random numbers.
  uint64_t seed;
  /// The number of the sequence. Sequences of one seed draw different numbers.
  uint64_t sequence;
  /// A JSON schema: the answer is JSON that it allows, and ends when the JSON is complete. `{}` allows any JSON; NULL any text.
  const char *json_schema;
} adead_generate_options;

/// Takes the next piece of a text: UTF-8 of `length` bytes, followed by NUL, valid during the call. A piece is not empty, ends between
/// characters and may have several tokens. Returns 0 to go on; another number ends the text. It must return: no longjmp and no C++
/// exception may leave it.
typedef int32_t (*adead_text_piece)(void *user, const char *text, size_t length);

/// A message of a conversation.
typedef struct {
  /// The speaker: "system", "user" or "assistant", or another name that the model's chat template knows.
  const char *role;
  /// The text.
  const char *content;
} adead_message;

/// Sets how a model is converted. Start from `ADEAD_CONVERT_OPTIONS_INIT`. The functions must return: no longjmp and no C++ exception
/// may leave them. Each gets `user`. The thread that calls the library calls them.
typedef struct {
  /// `sizeof(adead_convert_options)`.
  size_t struct_size;
  /// How matrices are stored: "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", or llama.cpp's
  /// mixtures "q4_k_m" and "q5_k_m". NULL stores them as a folder has them; a GGUF file needs a name.
  const char *kind;
  /// Gets the number of values written so far, and of all of them. May be NULL. Returns 0 to go on; another number ends the
  /// conversion.
  int32_t (*progress)(void *user, uint64_t written, uint64_t all);
  /// Gets what the user should know, before the first value is written: tensors that are stored in another way, what a GGUF file
  /// can't say. May be NULL. `text` is valid during the call.
  void (*note)(void *user, const char *text);
  /// Passed to the functions.
  void *user;
} adead_convert_options;

/// What a trainer takes and gives. Set `struct_size` to `sizeof(adead_trainer_info)` before the call.
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
  /// The number of samples of a step.
  size_t batch;
  /// The number of steps so far.
  uint64_t steps;
  /// The device that trains, such as "cpu" or "cuda:0".
  char device[64];
} adead_trainer_info;

/// Gets the epoch, from 1 on, the number of steps so far and the step's loss, after each step. Returns 0 to go on; another number ends
/// the training. The thread that called the library calls it. It must return: no longjmp and no C++ exception may leave it.
typedef int32_t (*adead_fit_progress)(void *user, uint32_t epoch, uint64_t step, float loss);

/// A parameter. Set `struct_size` to `sizeof(adead_trained_parameter)` before the call.
typedef struct {
  /// `sizeof(adead_trained_parameter)`.
  size_t struct_size;
  /// Its name, valid as long as the trainer.
  const char *name;
  /// The number of dimensions.
  size_t rank;
  /// The dimensions.
  size_t dims[8];
  /// The number of values.
  size_t size;
} adead_trained_parameter;

/// What a job tells as it goes on: a step was made, or an epoch is over. Later versions add fields at the end.
typedef struct {
  /// 1 if an epoch is over, 0 after a step.
  int32_t epoch_is_over;
  /// The epoch, from 1 on.
  uint32_t epoch;
  /// The number of steps so far.
  uint64_t step;
  /// All steps of the job.
  uint64_t steps;
  /// The loss of the step's batch, or the mean loss of the epoch's batches.
  double loss;
  /// The mean loss of the samples that are held out; NaN after a step.
  double held_out_loss;
  /// The part of them whose most likely class is the right one; NaN after a step.
  double accuracy;
  /// The duration of the epoch with its measurement; NaN after a step.
  double seconds;
} adead_train_event;

/// Sets how a job runs. Start from `ADEAD_TRAIN_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_train_options)`.
  size_t struct_size;
  /// Whether the job continues from its checkpoint, if there is one: 0 or 1.
  int32_t resume;
  /// The number of epochs; 0 takes the job's.
  uint32_t epochs;
  /// The rank of this process, as `adead_trainer_join` takes it. NULL trains alone.
  const char *ranks;
  /// How many seconds a rank may take to come, and to compute its part of a step.
  double patience;
  /// Gets each event, which is valid during the call. May be NULL. Returns 0 to go on; another number ends the job. The thread that
  /// called the library calls it. It must return: no longjmp and no C++ exception may leave it.
  int32_t (*progress)(void *user, const adead_train_event *event);
  /// Passed to `progress`.
  void *user;
} adead_train_options;

/// What a job gave. Set `struct_size` to `sizeof(adead_train_outcome)` before the call.
typedef struct {
  /// `sizeof(adead_train_outcome)`.
  size_t struct_size;
  /// The number of steps, those before a checkpoint included.
  uint64_t steps;
  /// The mean loss of the samples that are held out, after the last epoch of this run. NaN if it had none, or on a rank above 0.
  double held_out_loss;
  /// The part of them whose most likely class is the right one. NaN as above.
  double accuracy;
  /// The SHA-256 of the parameters, as `adead_trainer_sha256` writes it.
  char sha256[72];
  /// The device that trained.
  char device[64];
} adead_train_outcome;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// Returns the text of this thread's last failed call of this library: what was wrong, with the numbers. "" if none failed. Valid
/// until the next call on this thread fails. (`adead_last_error` has the texts of libadead.)
ADEAD_API
const char *adead_models_last_error(void);

/// Returns the version of this library, such as "0.1.0". It is never freed.
ADEAD_API const char *adead_models_version(void);

/// Returns the version of this interface. A program built with `ADEAD_MODELS_ABI_VERSION` n runs with every library that returns n.
ADEAD_API
uint32_t adead_models_abi_version(void);

/// Opens the folder of a model, such as all-MiniLM-L6-v2, for a device. `device` and `opts` are those of `adead_context_open`; either
/// may be NULL.
ADEAD_API
adead_status adead_sentence_encoder_open(const char *folder,
                                         const char *device,
                                         const adead_context_options *opts,
                                         adead_sentence_encoder **out);

/// Releases an encoder. NULL is allowed.
ADEAD_API void adead_sentence_encoder_destroy(adead_sentence_encoder *encoder);

/// Returns the number of values in an embedding.
ADEAD_API adead_status adead_sentence_encoder_width(const adead_sentence_encoder *encoder, size_t *out);

/// Returns the maximum number of tokens of a sentence, with the special ones at its ends. Later tokens have no effect.
ADEAD_API adead_status adead_sentence_encoder_max_tokens(const adead_sentence_encoder *encoder, size_t *out);

/// Returns the encoder's device: "cpu", "cuda:0", or several, separated by commas. The text is valid as long as the encoder.
ADEAD_API
adead_status adead_sentence_encoder_device(const adead_sentence_encoder *encoder,
                                           const char **out);

/// Embeds `count` sentences. Writes a row of `adead_sentence_encoder_width` values for each sentence, in their order, to `rows`, which
/// has room for `capacity` values.
///
/// `sentences` has a UTF-8 text for each sentence, and `lengths` the number of its bytes. If `lengths` is NULL, texts end with NUL. If
/// `truncated` is not NULL, it receives `count` bytes: 1 for a sentence with more tokens than the model accepts, whose first tokens
/// were used, else 0. `opts` may be NULL.
///
/// `invalid_argument` if `rows` is too small, if a batch has 0 sentences, and, with the number of the sentence, if a text is not
/// UTF-8.
ADEAD_API
adead_status adead_sentence_encoder_encode(const adead_sentence_encoder *encoder,
                                           const char *const *sentences,
                                           const size_t *lengths,
                                           size_t count,
                                           const adead_encode_options *opts,
                                           float *rows,
                                           size_t capacity,
                                           uint8_t *truncated);

/// Embeds the sentences of a stream as they come, and passes rows to `take` in the same order. `*count` receives the number of rows
/// that `take` got. A few thousand sentences are in memory at once. `opts` may be NULL.
///
/// A stream that `take` or `progress` ends is no error. `io` if `next` failed; `invalid_argument`, with the number of the sentence, for
/// a text that is not UTF-8. Then `take` may not have got every row before that sentence. The call waits for a running `next`; after
/// it returns, the library calls no function of the stream.
ADEAD_API
adead_status adead_sentence_encoder_batch_embed(const adead_sentence_encoder *encoder,
                                                const adead_sentence_stream *stream,
                                                const adead_encode_options *opts,
                                                uint64_t *count);

/// Opens a model in a GGUF file. `opts` may be NULL.
///
/// `io` if the file can't be read; `invalid_argument`, `dtype_mismatch` and `shape_mismatch` if it is malformed; `unsupported` for a
/// model of another kind; `invalid_argument` for a context length above the model's.
ADEAD_API
adead_status adead_text_generator_open(const char *path,
                                       const adead_text_options *opts,
                                       adead_text_generator **out);

/// Releases a generator. NULL is allowed. Its streams and generations stay valid.
ADEAD_API void adead_text_generator_destroy(adead_text_generator *generator);

/// Returns the most tokens of a sequence, prompt and answer together.
ADEAD_API adead_status adead_text_generator_context_length(const adead_text_generator *generator, size_t *out);

/// Returns the number of different tokens.
ADEAD_API adead_status adead_text_generator_vocabulary(const adead_text_generator *generator, size_t *out);

/// Returns the number of values that `adead_text_embed` writes.
ADEAD_API adead_status adead_text_generator_width(const adead_text_generator *generator, size_t *out);

/// Returns whether the model's file has a chat template, which `adead_text_chat` needs: 0 or 1.
ADEAD_API adead_status adead_text_generator_has_chat_template(const adead_text_generator *generator, int32_t *out);

/// Returns the generator's device: "cpu" or "cuda:0". The text is valid as long as the generator.
ADEAD_API adead_status adead_text_generator_device(const adead_text_generator *generator, const char **out);

/// Releases a generated text. NULL is allowed.
ADEAD_API void adead_generation_destroy(adead_generation *generation);

/// Returns the text, without the prompt, and the number of its bytes, which may be NULL. It is UTF-8, ends with NUL and is valid as
/// long as the generation.
ADEAD_API
adead_status adead_generation_text(const adead_generation *generation,
                                   const char **text,
                                   size_t *length);

/// Returns the tokens, and their number. If a token ended the text, it is the last one. Tokens of a stop text are among them. They are
/// valid as long as the generation.
ADEAD_API
adead_status adead_generation_tokens(const adead_generation *generation,
                                     const uint32_t **tokens,
                                     size_t *count);

/// Returns the number of the prompt's tokens.
ADEAD_API adead_status adead_generation_prompt_tokens(const adead_generation *generation, size_t *out);

/// Returns why the text ended.
ADEAD_API adead_status adead_generation_finish(const adead_generation *generation, adead_finish *out);

/// Generates the text that follows a prompt, and passes pieces to `piece` as they come, in this thread. `opts`, `piece` and `out` may
/// be NULL. `*out` receives the whole text. If `piece` ended it, this is no error, and `adead_generation_finish` is
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

/// Generates an answer to `count` messages, which the model's chat template writes as a prompt, as `adead_text_generate` does.
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

/// Generates texts for `count` prompts at once, which is faster than one by one, and writes a generation for each to `out`, which has
/// room for `count` of them. Every text has the bits that it has alone, with the number of its sequence: that of the options plus the
/// number of its prompt. `opts` may be NULL.
///
/// The errors are those of `adead_text_generate`, for any of the prompts. After an error `out` is unchanged.
ADEAD_API
adead_status adead_text_generate_batch(const adead_text_generator *generator,
                                       const char *const *prompts,
                                       size_t count,
                                       const adead_generate_options *opts,
                                       adead_generation **out);

/// Begins the text that follows a prompt. The first `adead_text_stream_next` computes the prompt. `opts` may be NULL. Errors are those
/// of `adead_text_generate`.
ADEAD_API
adead_status adead_text_stream_create(const adead_text_generator *generator,
                                      const char *prompt,
                                      const adead_generate_options *opts,
                                      adead_text_stream **out);

/// Begins an answer to `count` messages, as `adead_text_stream_create` does. Errors are those of `adead_text_chat`.
ADEAD_API
adead_status adead_text_stream_create_chat(const adead_text_generator *generator,
                                           const adead_message *messages,
                                           size_t count,
                                           const adead_generate_options *opts,
                                           adead_text_stream **out);

/// Releases a stream, which may end before its text does. NULL is allowed.
ADEAD_API void adead_text_stream_destroy(adead_text_stream *stream);

/// Computes the next piece: `*text` receives UTF-8 of `*length` bytes, followed by NUL, valid until the next call with this stream. A
/// piece is not empty, ends between characters and may have several tokens. At the end of the text, and after an error, `*text`
/// receives NULL and `*length` 0.
ADEAD_API
adead_status adead_text_stream_next(adead_text_stream *stream,
                                    const char **text,
                                    size_t *length);

/// Returns what a stream has generated so far: the text of its pieces, and their tokens. Before the end of the text
/// `adead_generation_finish` is `ADEAD_FINISH_NONE`.
ADEAD_API adead_status adead_text_stream_generation(const adead_text_stream *stream, adead_generation **out);

/// Turns a text into tokens, and writes their number to `*count`. `tokens` has room for `capacity` of them; if it is NULL, only the
/// number is written. The text of a special token, such as `<|im_start|>`, becomes that token. A first token (bos) and a last one
/// (eos) are added if the model's file says so.
///
/// `invalid_argument` if there is too little room.
ADEAD_API
adead_status adead_text_tokenize(const adead_text_generator *generator,
                                 const char *text,
                                 uint32_t *tokens,
                                 size_t capacity,
                                 size_t *count);

/// Turns `count` tokens into text, and writes the number of its bytes, without the NUL behind them, to `*length`. `text` has room for
/// `capacity` bytes, the NUL included; if it is NULL, only the number is written. Special tokens have no text. Bytes that are not
/// UTF-8 become U+FFFD.
///
/// `invalid_argument` if there is too little room.
ADEAD_API
adead_status adead_text_detokenize(const adead_text_generator *generator,
                                   const uint32_t *tokens,
                                   size_t count,
                                   char *text,
                                   size_t capacity,
                                   size_t *length);

/// Writes the perplexity of a text to `*out`: e to the mean of the negative logarithms of the probabilities of its tokens, without the
/// first. A text that exceeds the context length is cut into parts of that length, which don't see each other.
///
/// `invalid_argument` for a text with fewer than two tokens.
ADEAD_API
adead_status adead_text_perplexity(const adead_text_generator *generator,
                                   const char *text,
                                   double *out);

/// Writes the logarithm of the probability of each of `count` tokens but the first, given those before it: `count` - 1 values.
/// `logprobs` has room for `capacity` values.
///
/// `invalid_argument` if there is too little room, without a token, for more tokens than the context length, and for a token outside
/// the vocabulary.
ADEAD_API
adead_status adead_text_logprobs(const adead_text_generator *generator,
                                 const uint32_t *tokens,
                                 size_t count,
                                 float *logprobs,
                                 size_t capacity);

/// Writes the embedding of a text, `adead_text_generator_width` values: the mean of its tokens' last hidden states. `values` has room
/// for `capacity` values. The embeddings of a sentence encoder say more about the meaning of a text.
///
/// `invalid_argument` if there is too little room, and for a text without tokens or with more than the context length.
ADEAD_API
adead_status adead_text_embed(const adead_text_generator *generator,
                              const char *text,
                              float *values,
                              size_t capacity);

/// Writes `count` values as blocks of a format, such as `ADEAD_BLOCK_FORMAT_Q4_0`, and the number of the blocks' bytes to `*size`.
/// `blocks` has room for `capacity` bytes; if it is NULL, only the number is written. Rows of a matrix may be written together: the
/// result is what `adead_tensor_quantized_matmul` takes as a u8 tensor `[rows, bytes of a row]`. The same values give the same bytes
/// everywhere.
///
/// `shape_mismatch` if the values are not whole blocks, `invalid_argument` if there is too little room, and with the position for a
/// value that is NaN or infinite and a block whose scale is beyond 65504.
ADEAD_API
adead_status adead_quantize(const float *values,
                            size_t count,
                            adead_block_format format,
                            void *blocks,
                            size_t capacity,
                            size_t *size);

/// Writes a model as the GGUF file `file`. `model` is a folder of Hugging Face, such as SmolLM2-135M-Instruct, or a GGUF file, which is
/// read into memory. `opts` may be NULL. The file appears when it is complete, and then replaces a file of that name. The same model
/// gives the same bytes everywhere.
///
/// `io` if a file is missing, can't be read or can't be written; `invalid_argument` and `shape_mismatch` for a malformed one;
/// `unsupported` for a model of another kind; `invalid_argument` for an unknown kind of values, a GGUF file without a kind, and with
/// the tensor for values that the kind can't hold; `not_ready` if `progress` ended it.
ADEAD_API
adead_status adead_convert(const char *model,
                           const char *file,
                           const adead_convert_options *opts);

/// Compiles a training. `description` is JSON: the network, its loss and its optimiser, which docs/training.md describes. `device` and
/// `opts` are those of `adead_context_open`; either may be NULL.
///
/// `invalid_argument` and `shape_mismatch` for a description that is malformed or makes no network.
ADEAD_API
adead_status adead_trainer_create(const char *description,
                                  const char *device,
                                  const adead_context_options *opts,
                                  adead_trainer **out);

/// Releases a trainer. NULL is allowed.
ADEAD_API void adead_trainer_destroy(adead_trainer *trainer);

/// Says what a trainer takes and gives.
ADEAD_API adead_status adead_trainer_inspect(const adead_trainer *trainer, adead_trainer_info *out);

/// Trains together with other processes from here on. `place` is the rank of this one: "0/4@host:29500" for rank 0 of 4, with the address
/// on which rank 0 waits, or "env" for what torchrun, Open MPI, MPICH or Slurm says. A rank may take `patience` seconds to come, and to
/// compute its part of a step. All ranks take the parameters and the step of rank 0. Then each makes the same calls with the same
/// samples, and computes its own part of every batch.
///
/// `invalid_argument` if there are more ranks than shards, or the ranks' trainings differ; `io` if a rank does not come or is lost.
ADEAD_API
adead_status adead_trainer_join(adead_trainer *trainer,
                                const char *place,
                                double patience);

/// Trains with one batch. `x` has `count` samples behind each other, and `targets` as many targets; `adead_trainer_inspect` says their
/// types and sizes. `count` must be the batch. `*loss` receives the loss from before the step.
///
/// `invalid_argument` for a class that does not exist, and if the loss is not finite: the text has the step and the parameter. Then
/// nothing has changed.
ADEAD_API
adead_status adead_trainer_step(adead_trainer *trainer,
                                const void *x,
                                const void *targets,
                                size_t count,
                                float *loss);

/// Trains with `count` samples `epochs` times, in an order that the seed draws for each epoch. Samples that don't fill a batch wait for
/// the next epoch. `progress` may be NULL. `*loss` receives the mean loss of the last epoch.
///
/// Errors are those of `adead_trainer_step`, and `not_ready` if `progress` ended the training. Steps before an error are made.
ADEAD_API
adead_status adead_trainer_fit(adead_trainer *trainer,
                               const void *x,
                               const void *targets,
                               size_t count,
                               uint32_t epochs,
                               adead_fit_progress progress,
                               void *user,
                               double *loss);

/// Computes the network's outputs for `count` samples. Writes `output_size` values for each, in their order, to `out`, which has room
/// for `capacity` values.
ADEAD_API
adead_status adead_trainer_predict(const adead_trainer *trainer,
                                   const void *x,
                                   size_t count,
                                   float *out,
                                   size_t capacity);

/// Measures `count` samples: `*loss` receives their mean loss, and `*accuracy` the part whose most likely class is the right one.
///
/// `unsupported` for a loss without classes.
ADEAD_API
adead_status adead_trainer_evaluate(const adead_trainer *trainer,
                                    const void *x,
                                    const void *targets,
                                    size_t count,
                                    double *loss,
                                    double *accuracy);

/// Writes the parameters, the optimiser's tensors and the step to a safetensors file, which replaces an older one at once.
///
/// `io` if it can't be written.
ADEAD_API
adead_status adead_trainer_save(const adead_trainer *trainer,
                                const char *path);

/// Continues from a file of `adead_trainer_save`: the next steps have the bits that they would have had there.
///
/// `io`, `invalid_argument` and `shape_mismatch` for a file that can't be read or belongs to another training.
ADEAD_API adead_status adead_trainer_load(adead_trainer *trainer, const char *path);

/// Writes the SHA-256 of the parameters as 64 hexadecimal digits and NUL to `text`, which has room for `capacity` bytes, 65 or more. The
/// parameters are taken in the order of their names, as f32, little endian.
ADEAD_API
adead_status adead_trainer_sha256(const adead_trainer *trainer,
                                  char *text,
                                  size_t capacity);

/// Returns the number of parameters: tensors with a name.
ADEAD_API adead_status adead_trainer_parameter_count(const adead_trainer *trainer, size_t *out);

/// Says the name and the shape of parameter `index`, and writes its values to `values`, which has room for `capacity` values. With
/// NULL for `values` none are written.
///
/// `invalid_argument` for an index that is no parameter's, and if the values have no room.
ADEAD_API
adead_status adead_trainer_parameter(const adead_trainer *trainer,
                                     size_t index,
                                     adead_trained_parameter *out,
                                     float *values,
                                     size_t capacity);

/// Trains what a job's file says: a TOML file, which docs/training.md describes. `device` and `context` are those of
/// `adead_context_open`; each of `device`, `context` and `opts` may be NULL.
///
/// `io` and `invalid_argument` for a job, data or a checkpoint that can't be read or is malformed; `not_ready` if `progress` ended it.
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
