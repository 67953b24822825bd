/*
 * adead_models: models with the same bits on every device. MIT license.
 *
 * Generated from models/c by `ADEAD_BLESS=1 cargo test -p adead-models-c --test header`; don't edit.
 *
 * Sentence encoders run models of sentence-transformers, such as all-MiniLM-L6-v2. Link with -ladead_models: the library has a
 * runtime of its own and needs no libadead beside it. It follows the rules of adead.h and uses its statuses and the options of
 * devices. adead_models_last_error returns this library's texts. docs/sentences.md is the guide.
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


/// The version of this interface that the header describes.
#define ADEAD_MODELS_ABI_VERSION 1

/// Embeds sentences with a model of sentence-transformers (tokenizer, network, pooling) on a device. It never changes, so threads may
/// share one.
typedef struct adead_sentence_encoder adead_sentence_encoder;

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

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADEAD_MODELS_H */
