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

/// A batch of as many sentences as suit the device.
#define ADEAD_BATCH_AUTO ((size_t)-1)

/// The defaults of adead_encode_options.
#define ADEAD_ENCODE_OPTIONS_INIT { sizeof(adead_encode_options), ADEAD_BATCH_AUTO, -1 }

/// An adead_sentence_stream without its functions.
#define ADEAD_SENTENCE_STREAM_INIT { sizeof(adead_sentence_stream), NULL, NULL, NULL, NULL }


/// The version of this interface that the header describes.
#define ADEAD_MODELS_ABI_VERSION 1

/// A model of sentence-transformers on a device: tokenizer, network, pooling. It never changes, so threads may share one.
typedef struct adead_sentence_encoder adead_sentence_encoder;

/// How sentences are batched. No choice changes a bit of a result. Start from `ADEAD_ENCODE_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_encode_options)`.
  size_t struct_size;
  /// Sentences of a batch at most; `ADEAD_BATCH_AUTO` is what suits the device.
  size_t batch;
  /// Whether sentences of a batch are padded to the longest one: 0 or 1; -1 is what suits the device.
  int32_t padded;
} adead_encode_options;

/// Where sentences come from and where rows go. Start from `ADEAD_SENTENCE_STREAM_INIT`. The functions return to who called
/// them: no longjmp and no C++ exception leaves them. All get `user`.
typedef struct {
  /// `sizeof(adead_sentence_stream)`.
  size_t struct_size;
  /// For the functions.
  void *user;
  /// Gives the next sentence: returns 1 and sets `*text`, which stays until the next call, and `*length` to its bytes, or
  /// leaves `*length` for a text that ends with NUL. Returns 0 when there are no more, and another number if it failed. A
  /// thread of the library's own calls it, ahead of `take`.
  int32_t (*next)(void *user, const char **text, size_t *length);
  /// Takes the next `count` rows, in the order of the sentences; `first` is the number of the first row's sentence, from 0.
  /// `truncated` has `count` bytes: 1 for a sentence that was cut, else 0. Both arrays are there for the call only. Returns 0
  /// to go on; another number ends the stream. The thread that called the library calls it.
  int32_t (*take)(void *user, uint64_t first, const float *rows, const uint8_t *truncated, size_t count);
  /// Is told how many sentences are computed so far, those whose rows come next among them; may be NULL. Returns 0 to go on,
  /// as `take`, from the same thread.
  int32_t (*progress)(void *user, uint64_t computed);
} adead_sentence_stream;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The text of the last call of this library on this thread that failed: what was wrong, with the numbers. "" if none did.
/// Valid until the next call on this thread fails. (`adead_last_error` is about the calls of libadead.)
ADEAD_API
const char *adead_models_last_error(void);

/// The version of this library, such as "0.1.0". Never freed.
ADEAD_API const char *adead_models_version(void);

/// The version of this interface. A program that was built with `ADEAD_MODELS_ABI_VERSION` n runs with every library
/// that answers n.
ADEAD_API uint32_t adead_models_abi_version(void);

/// Opens the folder of a model, such as all-MiniLM-L6-v2, for a device: `device` and `opts` are as of `adead_context_open`, and
/// either may be NULL.
ADEAD_API
adead_status adead_sentence_encoder_open(const char *folder,
                                         const char *device,
                                         const adead_context_options *opts,
                                         adead_sentence_encoder **out);

/// Gives an encoder up; NULL is fine.
ADEAD_API void adead_sentence_encoder_destroy(adead_sentence_encoder *encoder);

/// How many values an embedding has.
ADEAD_API adead_status adead_sentence_encoder_width(const adead_sentence_encoder *encoder, size_t *out);

/// How many tokens a sentence has at most, the special ones at its ends counted; what is behind them has no effect.
ADEAD_API adead_status adead_sentence_encoder_max_tokens(const adead_sentence_encoder *encoder, size_t *out);

/// What it computes on: "cpu", "cuda:0", or several with commas between them. The text goes with the encoder.
ADEAD_API adead_status adead_sentence_encoder_device(const adead_sentence_encoder *encoder, const char **out);

/// The embeddings of `count` sentences: a row of as many values as `adead_sentence_encoder_width` says for each, in their
/// order, into `rows`, which has room for `capacity` values.
///
/// `sentences` has a UTF-8 text for each and `lengths` its bytes; where `lengths` is NULL texts end with NUL. Where
/// `truncated` is not NULL it gets `count` bytes: 1 for a sentence that had more tokens than the model takes, of which the
/// first were used, else 0. `opts` may be NULL.
///
/// `invalid_argument` for too little room, for batches of 0 sentences, and, with the number of the sentence, for a text that
/// is not UTF-8.
ADEAD_API
adead_status adead_sentence_encoder_encode(const adead_sentence_encoder *encoder,
                                           const char *const *sentences,
                                           const size_t *lengths,
                                           size_t count,
                                           const adead_encode_options *opts,
                                           float *rows,
                                           size_t capacity,
                                           uint8_t *truncated);

/// Embeds the sentences of a stream as they come, and gives rows in their order; `*count` is how many sentences' rows `take` got.
/// Some thousand sentences are in memory at once, however many there are. `opts` may be NULL.
///
/// What `take` or `progress` ends is no error. `io` if `next` failed; `invalid_argument`, with the number of the sentence, for a
/// text that is not UTF-8; rows of sentences before it may not have come. When this returns, no function of the stream is called
/// any more: a call of `next` that is under way is waited for.
ADEAD_API
adead_status adead_sentence_encoder_batch_embed(const adead_sentence_encoder *encoder,
                                                const adead_sentence_stream *stream,
                                                const adead_encode_options *opts,
                                                uint64_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADEAD_MODELS_H */
