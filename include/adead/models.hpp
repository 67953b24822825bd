// Models over <adead/models.h> and its library, adead_models: sentence encoders of sentence-transformers. <adead.hpp> does not
// include this header, and programs that use it need not link libadead. docs/sentences.md is the guide.
#ifndef ADEAD_MODELS_HPP
#define ADEAD_MODELS_HPP

#include <adead/context.hpp>
#include <adead/models.h>

#include <exception>
#include <string_view>
#include <utility>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Options for batching sentences. They never change a bit of a result. A field that is not set suits the device.
struct EncodeOptions {
  /// The most sentences of a batch.
  std::optional<std::size_t> batch = {};
  /// Whether sentences of a batch are padded to the longest one.
  std::optional<bool> padded = {};
};

/// A row of f32 for each sentence, in the order of the sentences.
class Embeddings {
 public:
  Embeddings() noexcept = default;
  /// Makes embeddings from rows of `width` values, and the indices of the sentences that were cut.
  Embeddings(std::vector<float> values, std::size_t width, std::vector<std::size_t> truncated)
      : values_(std::move(values)), width_(width), truncated_(std::move(truncated)) {}

  /// Returns the number of sentences.
  std::size_t rows() const noexcept { return width_ ? values_.size() / width_ : 0; }
  /// Returns the size of a row.
  std::size_t width() const noexcept { return width_; }
  /// Returns the row of sentence `sentence`, valid while this object lives. `sentence` must be less than rows().
  Span<const float> row(std::size_t sentence) const & { return Span<const float>(values_.data() + sentence * width_, width_); }
  std::vector<float> row(std::size_t sentence) const && {
    return std::vector<float>(values_.data() + sentence * width_, values_.data() + (sentence + 1) * width_);
  }
  /// Returns all rows, one after another.
  const std::vector<float> &values() const & noexcept { return values_; }
  std::vector<float> values() && { return std::move(values_); }
  /// Returns, in ascending order, the indices of sentences with more tokens than the model takes. Only their first tokens
  /// were used.
  const std::vector<std::size_t> &truncated() const & noexcept { return truncated_; }
  std::vector<std::size_t> truncated() && { return std::move(truncated_); }

 private:
  std::vector<float> values_;
  std::size_t width_ = 0;
  std::vector<std::size_t> truncated_;
};

namespace detail {

inline adead_encode_options raw(const EncodeOptions &options) noexcept {
  adead_encode_options raw = ADEAD_ENCODE_OPTIONS_INIT;
  if (options.batch) raw.batch = *options.batch;
  if (options.padded) raw.padded = *options.padded;
  return raw;
}

/// Returns the numbers of the sentences that were cut, from a flag for each.
inline std::vector<std::size_t> cut(const std::uint8_t *truncated, std::size_t count) {
  std::vector<std::size_t> cut;
  for (std::size_t i = 0; i < count; i++) {
    if (truncated[i]) cut.push_back(i);
  }
  return cut;
}

/// The return value of a libadead_models call that gave this value.
template <class T>
Returned<T> encoded(adead_status status, T value) {
  if (status) return failed<T>(status, adead_models_last_error());
  return value;
}

/// The return value of a libadead_models call without a value.
inline Returned<void> encoded(adead_status status) {
#ifdef ADEAD_NO_EXCEPTIONS
  if (status) return failed<void>(status, adead_models_last_error());
  return {};
#else
  if (status) failed<void>(status, adead_models_last_error());
#endif
}

#ifndef ADEAD_NO_EXCEPTIONS
/// The exception that a progress function threw in this thread's call. No exception may pass through the library.
inline std::exception_ptr &thrown() noexcept {
  thread_local std::exception_ptr exception;
  return exception;
}
#endif

/// The return value of a call that may have called a function of the caller; rethrows that function's exception.
template <class... T>
auto computed(adead_status status, T... value) {
#ifndef ADEAD_NO_EXCEPTIONS
  if (thrown()) std::rethrow_exception(std::exchange(thrown(), nullptr));
#endif
  return encoded(status, std::move(value)...);
}

/// Options as the C interface takes them, valid while the given ones live.
inline adead_context_options raw(const ContextOptions &options) noexcept {
  adead_context_options raw = ADEAD_CONTEXT_OPTIONS_INIT;
  if (options.isa) raw.isa = options.isa->c_str();
  if (options.threads) raw.threads = *options.threads;
  if (options.precision) raw.precision = static_cast<adead_precision>(*options.precision);
  return raw;
}

/// The source of a stream's sentences and the consumer of its rows. An exception or an error of either is kept here;
/// the C interface only learns that there was one.
template <class Next, class Take>
class Streamed {
 public:
  Streamed(Next &next, Take &take, const std::function<void(std::uint64_t)> &progress, std::size_t width)
      : next_(next), take_(take), progress_(progress), width_(width) {}

  /// Returns the stream for the C interface, valid while this object lives.
  adead_sentence_stream raw() noexcept {
    adead_sentence_stream raw = ADEAD_SENTENCE_STREAM_INIT;
    raw.user = this;
    raw.next = [](void *user, const char **text, std::size_t *length) {
      auto *self = static_cast<Streamed *>(user);
      return self->source_.run(-1, [&] { return self->give(text, length); });
    };
    raw.take = [](void *user, std::uint64_t first, const float *rows, const std::uint8_t *truncated, std::size_t count) {
      auto *self = static_cast<Streamed *>(user);
      return self->sink_.run(1, [&] {
        Embeddings some({rows, rows + count * self->width_}, self->width_, cut(truncated, count));
        return self->pass(first, some);
      });
    };
    if (progress_) {
      raw.progress = [](void *user, std::uint64_t computed) {
        auto *self = static_cast<Streamed *>(user);
        return self->sink_.run(1, [&] { return self->progress_(computed), 0; });
      };
    }
    return raw;
  }

  /// Returns the stream's result after the call. The errors of both sides come first.
  Returned<std::uint64_t> done(adead_status status, std::uint64_t count) {
    for (Fault *fault : {&sink_, &source_}) {
#ifndef ADEAD_NO_EXCEPTIONS
      if (fault->thrown) std::rethrow_exception(fault->thrown);
#endif
      if (fault->error) return failed<std::uint64_t>(static_cast<adead_status>(fault->error->status()), fault->error->what());
    }
    return encoded(status, count);
  }

 private:
  /// The error of one side.
  struct Fault {
    std::optional<Error> error;
#ifndef ADEAD_NO_EXCEPTIONS
    std::exception_ptr thrown;
#endif

    template <class Work>
    std::int32_t run(std::int32_t failed, Work work) noexcept {
#ifndef ADEAD_NO_EXCEPTIONS
      try {
        return error ? failed : work();
      } catch (...) {
        thrown = std::current_exception();
        return failed;
      }
#else
      return error ? failed : work();
#endif
    }
  };

  std::int32_t give(const char **text, std::size_t *length) {
    sentence_ = next_();
    if constexpr (is_result<Sentence>) {
      if (!sentence_) {
        source_.error = sentence_.error();
        return -1;
      }
      return give(*sentence_, text, length);
    } else {
      return give(sentence_, text, length);
    }
  }

  template <class S>
  static std::int32_t give(const std::optional<S> &sentence, const char **text, std::size_t *length) {
    if (!sentence) return 0;
    const std::string_view view = *sentence;
    *text = view.data();
    *length = view.size();
    return 1;
  }

  std::int32_t pass(std::uint64_t first, const Embeddings &rows) {
    using Answer = std::invoke_result_t<Take &, std::uint64_t, const Embeddings &>;
    if constexpr (std::is_void_v<Answer>) {
      take_(first, rows);
      return 0;
    } else if constexpr (is_result<Answer>) {
      sink_.error = take_(first, rows).error();
      return sink_.error ? 1 : 0;
    } else {
      return take_(first, rows) ? 0 : 1;
    }
  }

  using Sentence = std::decay_t<std::invoke_result_t<Next &>>;
  static Sentence none() {
    if constexpr (is_result<Sentence>) {
      return typename Sentence::value_type();
    } else {
      return Sentence();
    }
  }
  Next &next_;
  Take &take_;
  const std::function<void(std::uint64_t)> &progress_;
  std::size_t width_;
  /// The sentence that the library reads until it asks for the next one.
  Sentence sentence_ = none();
  Fault source_, sink_;
};

}  // namespace detail

/// A model of sentence-transformers on a device: tokenizer, network, pooling. Threads may share one.
class SentenceEncoder {
 public:
  SentenceEncoder(SentenceEncoder &&) noexcept = default;
  SentenceEncoder &operator=(SentenceEncoder &&) noexcept = default;
#ifndef ADEAD_NO_EXCEPTIONS
  /// Opens a model as open() does.
  explicit SentenceEncoder(Text folder, Text device = nullptr, const ContextOptions &options = {})
      : SentenceEncoder(open(folder, device, options)) {}
#else
  /// Makes an empty encoder. open() makes a usable one.
  SentenceEncoder() noexcept = default;
#endif

  /// Opens a model's folder, such as all-MiniLM-L6-v2, on a device named as for Context::open. Errors: io for a missing
  /// file, invalid_argument or shape_mismatch for a malformed one, unsupported for another kind of model.
  static Returned<SentenceEncoder> open(Text folder, Text device = nullptr, const ContextOptions &options = {}) {
    const adead_context_options raw = detail::raw(options);
    adead_sentence_encoder *out = nullptr;
    adead_status status = adead_sentence_encoder_open(folder.get(), device.get(), &raw, &out);
    return detail::encoded(status, SentenceEncoder(out));
  }

  /// Returns the size of an embedding.
  Returned<std::size_t> width() const {
    std::size_t out = 0;
    adead_status status = adead_sentence_encoder_width(get(), &out);
    return detail::encoded(status, out);
  }

  /// Returns the most tokens of a sentence, including the special ones at its ends. Further tokens have no effect.
  Returned<std::size_t> max_tokens() const {
    std::size_t out = 0;
    adead_status status = adead_sentence_encoder_max_tokens(get(), &out);
    return detail::encoded(status, out);
  }

  /// Returns the device that it computes on: "cpu", "cuda:0", or several separated by commas.
  Returned<std::string> device() const {
    const char *out = nullptr;
    adead_status status = adead_sentence_encoder_device(get(), &out);
    return detail::encoded(status, std::string(out ? out : ""));
  }

  /// Computes the embeddings of sentences, in their order. They are any range of values that convert to
  /// std::string_view. invalid_argument for batches of 0 sentences, and for a sentence that is not UTF-8, with its
  /// number.
  template <class Sentences>
  Returned<Embeddings> encode(const Sentences &sentences, const EncodeOptions &options = {}) const {
    std::vector<const char *> texts;
    std::vector<std::size_t> lengths;
    for (const std::string_view sentence : sentences) {
      texts.push_back(sentence.data());
      lengths.push_back(sentence.size());
    }
    return encode(texts, lengths, options);
  }
  Returned<Embeddings> encode(std::initializer_list<std::string_view> sentences, const EncodeOptions &options = {}) const {
    return encode<std::initializer_list<std::string_view>>(sentences, options);
  }

  /// Embeds any number of sentences as they arrive. Returns the number of rows that `take` got.
  ///
  /// `next()` returns a std::optional of a std::string or of a std::string_view that stays valid until the next call;
  /// an empty one ends the stream. The library's own thread calls it, a few thousand sentences ahead. `take(first,
  /// rows)` gets the next Embeddings in the caller's thread. `first` is the index of the first row's sentence, and the
  /// indices in truncated() count from it. `take` returns nothing, or false to end the stream. `progress(computed)`
  /// gets the number of sentences computed so far.
  ///
  /// An exception of any of them ends the stream and is rethrown. Without exceptions, `next` may return a Result of its
  /// optional and `take` a Result<void>. Their errors end the stream and are returned.
  template <class Next, class Take>
  Returned<std::uint64_t> batch_embed(Next &&next, Take &&take, const EncodeOptions &options = {},
                                      const std::function<void(std::uint64_t)> &progress = {}) const {
    std::size_t width = 0;
    std::uint64_t count = 0;
    adead_status status = adead_sentence_encoder_width(get(), &width);
    detail::Streamed<std::remove_reference_t<Next>, std::remove_reference_t<Take>> streamed(next, take, progress, width);
    const adead_encode_options raw = detail::raw(options);
    const adead_sentence_stream stream = streamed.raw();
    if (!status) status = adead_sentence_encoder_batch_embed(get(), &stream, &raw, &count);
    return streamed.done(status, count);
  }

  adead_sentence_encoder *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  friend class Result<SentenceEncoder>;
  explicit SentenceEncoder(adead_sentence_encoder *raw) noexcept : handle_(raw) {}

  Returned<Embeddings> encode(const std::vector<const char *> &texts, const std::vector<std::size_t> &lengths,
                              const EncodeOptions &options) const {
    std::size_t width = 0;
    adead_status status = adead_sentence_encoder_width(get(), &width);
    std::vector<float> values(texts.size() * width);
    std::vector<std::uint8_t> truncated(texts.size());
    const adead_encode_options raw = detail::raw(options);
    if (!status) {
      status = adead_sentence_encoder_encode(get(), texts.data(), lengths.data(), texts.size(), &raw, values.data(), values.size(),
                                             truncated.data());
    }
    std::vector<std::size_t> cut = detail::cut(truncated.data(), truncated.size());
    return detail::encoded(status, Embeddings(std::move(values), width, std::move(cut)));
  }

  detail::Handle<adead_sentence_encoder, adead_sentence_encoder_destroy> handle_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
