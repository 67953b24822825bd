// Text generation over <adead/models.h> and its library, adead_models: language models in GGUF files. docs/text-generation.md is the
// guide. Programs that use it need not link libadead.
#ifndef ADEAD_TEXT_HPP
#define ADEAD_TEXT_HPP

#include <adead/models.hpp>

#include <memory>
#include <utility>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Options for opening a model. None of them changes a bit of a text.
struct TextOptions {
  /// The device, named as for Context::open. By default ADEAD_DEVICE, else the device in adead.toml, else the CPU.
  std::optional<std::string> device = {};
  /// CPU threads.
  std::optional<std::size_t> threads = {};
  /// The most tokens of a sequence, prompt and answer together. The file's context length is the default and the maximum.
  std::optional<std::size_t> context_length = {};
  /// The most tokens that are computed at once. By default 512 on the CPU and 2,048 on a GPU.
  std::optional<std::size_t> chunk = {};
  /// Whether the file is mapped instead of read. It must not change while the generator lives.
  bool map = false;
  /// Called after each chunk of a prompt, with the number of tokens computed so far, and the total. An exception
  /// is rethrown when the call that computes has ended.
  std::function<void(std::size_t computed, std::size_t all)> progress = {};
};

/// Options for generating text. By default the most likely token is taken each time, for at most 512 tokens.
struct GenerateOptions {
  /// The most tokens of an answer.
  std::optional<std::size_t> max_tokens = {};
  /// Stop texts: one that appears ends the answer, and is not part of it.
  std::vector<std::string> stop = {};
  /// Whether an answer continues after tokens that would end it.
  bool ignore_end = false;
  /// A JSON schema: the answer is JSON that it allows, and ends when the JSON is complete. `{}` allows any JSON. If not set, any text.
  std::optional<std::string> json_schema = {};
  /// The temperature: 0 takes the most likely token, 1 samples by the model's own probabilities, more flattens the distribution.
  std::optional<float> temperature = {};
  /// The number of most likely tokens to sample from; 0 is all.
  std::optional<std::size_t> top_k = {};
  /// Sample from the most likely tokens whose probabilities together reach this; 1 is all tokens.
  std::optional<float> top_p = {};
  /// The least probability of a token to sample, as a fraction of the most likely token's; 0 is all tokens.
  std::optional<float> min_p = {};
  /// The penalty for recent tokens; 1 is none.
  std::optional<float> repeat_penalty = {};
  /// How many of the last tokens count as recent, including the prompt's.
  std::optional<std::size_t> repeat_last = {};
  /// The seed of the random numbers.
  std::uint64_t seed = 0;
  /// The number of the sequence. Sequences with the same seed and different numbers draw different random numbers.
  std::uint64_t sequence = 0;
};

/// A message of a conversation: its role ("system", "user" or "assistant") and its text.
struct Message {
  std::string role, content;
};

/// Why a text ended.
enum class Finish : std::int32_t {
  /// It has not ended.
  none = ADEAD_FINISH_NONE,
  /// The model ended it.
  end = ADEAD_FINISH_END,
  /// A stop text appeared.
  stop = ADEAD_FINISH_STOP,
  /// It reached max_tokens tokens.
  max_tokens = ADEAD_FINISH_MAX_TOKENS,
  /// It filled the context.
  context_full = ADEAD_FINISH_CONTEXT_FULL,
};

/// A generated text.
struct Generation {
  /// The text, without the prompt.
  std::string text;
  /// Its tokens, including the token that ended it, if one did.
  std::vector<std::uint32_t> tokens;
  Finish finish = Finish::none;
  std::size_t prompt_tokens = 0;
};

namespace detail {

using RawGeneration = Handle<adead_generation, adead_generation_destroy>;

/// Copies the C interface's generation.
inline adead_status read(const adead_generation *raw, Generation &all) {
  const char *text = nullptr;
  const std::uint32_t *tokens = nullptr;
  std::size_t length = 0, count = 0;
  adead_finish finish = ADEAD_FINISH_NONE;
  adead_status status = adead_generation_text(raw, &text, &length);
  if (!status) status = adead_generation_tokens(raw, &tokens, &count);
  if (!status) status = adead_generation_finish(raw, &finish);
  if (!status) status = adead_generation_prompt_tokens(raw, &all.prompt_tokens);
  if (!status) {
    all.text.assign(text, length);
    all.tokens.assign(tokens, tokens + count);
    all.finish = static_cast<Finish>(finish);
  }
  return status;
}

/// Options as the C interface takes them, valid while this object and the given ones live.
class RawGenerate {
 public:
  explicit RawGenerate(const GenerateOptions &given) {
    for (const std::string &text : given.stop) stop_.push_back(text.c_str());
    if (given.max_tokens) raw_.max_tokens = *given.max_tokens;
    raw_.stop = stop_.data();
    raw_.stop_count = stop_.size();
    raw_.ignore_end = given.ignore_end;
    if (given.temperature) raw_.temperature = *given.temperature;
    if (given.top_k) raw_.top_k = *given.top_k;
    if (given.top_p) raw_.top_p = *given.top_p;
    if (given.min_p) raw_.min_p = *given.min_p;
    if (given.repeat_penalty) raw_.repeat_penalty = *given.repeat_penalty;
    if (given.repeat_last) raw_.repeat_last = *given.repeat_last;
    raw_.seed = given.seed;
    raw_.sequence = given.sequence;
    if (given.json_schema) raw_.json_schema = given.json_schema->c_str();
  }
  RawGenerate(const RawGenerate &) = delete;
  RawGenerate &operator=(const RawGenerate &) = delete;
  const adead_generate_options *get() const noexcept { return &raw_; }

 private:
  std::vector<const char *> stop_;
  adead_generate_options raw_ = ADEAD_GENERATE_OPTIONS_INIT;
};

}  // namespace detail

/// A text that is generated piece by piece. It may be destroyed before its end.
class TextStream {
 public:
  TextStream() noexcept = default;

  /// Computes the next piece: non-empty text of whole characters. Returns std::nullopt at the end. The first call computes the
  /// prompt.
  Returned<std::optional<std::string>> next() {
    const char *text = nullptr;
    std::size_t length = 0;
    adead_status status = adead_text_stream_next(handle_.get(), &text, &length);
    std::optional<std::string> piece;
    if (text) piece.emplace(text, length);
    return detail::computed(status, std::move(piece));
  }

  /// Returns the text generated so far. After the last piece it is complete.
  Returned<Generation> generation() const {
    adead_generation *raw = nullptr;
    adead_status status = adead_text_stream_generation(handle_.get(), &raw);
    detail::RawGeneration owner(raw);
    Generation all;
    if (!status) status = detail::read(raw, all);
    return detail::encoded(status, std::move(all));
  }

  adead_text_stream *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  friend class TextGenerator;
  using Progress = std::shared_ptr<std::function<void(std::size_t, std::size_t)>>;
  TextStream(adead_text_stream *raw, Progress progress) noexcept : progress_(std::move(progress)), handle_(raw) {}

  // The library calls it while the stream computes.
  Progress progress_;
  detail::Handle<adead_text_stream, adead_text_stream_destroy> handle_;
};

/// A language model in a GGUF file, on a device. Threads may share one.
class TextGenerator {
 public:
  TextGenerator(TextGenerator &&) noexcept = default;
  TextGenerator &operator=(TextGenerator &&) noexcept = default;
#ifndef ADEAD_NO_EXCEPTIONS
  /// Opens a model as open() does.
  explicit TextGenerator(Text path, const TextOptions &options = {}) : TextGenerator(open(path, options)) {}
#else
  /// Makes an empty generator. open() makes a usable one.
  TextGenerator() noexcept = default;
#endif

  /// Opens a file. Errors: io if it can't be read; invalid_argument, dtype_mismatch or shape_mismatch if it is malformed; unsupported
  /// for another kind of model.
  static Returned<TextGenerator> open(Text path, const TextOptions &options = {}) {
    adead_text_options raw = ADEAD_TEXT_OPTIONS_INIT;
    TextStream::Progress progress;
    if (options.device) raw.device = options.device->c_str();
    if (options.threads) raw.threads = *options.threads;
    if (options.context_length) raw.context_length = *options.context_length;
    if (options.chunk) raw.chunk = *options.chunk;
    raw.map = options.map;
    if (options.progress) {
      progress = std::make_shared<std::function<void(std::size_t, std::size_t)>>(options.progress);
      raw.user = progress.get();
      raw.progress = [](void *user, std::size_t computed, std::size_t all) noexcept {
        auto &told = *static_cast<std::function<void(std::size_t, std::size_t)> *>(user);
#ifndef ADEAD_NO_EXCEPTIONS
        if (detail::thrown()) return;
        try {
          told(computed, all);
        } catch (...) {
          detail::thrown() = std::current_exception();
        }
#else
        told(computed, all);
#endif
      };
    }
    adead_text_generator *out = nullptr;
    adead_status status = adead_text_generator_open(path.get(), &raw, &out);
    return detail::encoded(status, TextGenerator(out, std::move(progress)));
  }

  /// Returns the most tokens of a sequence, prompt and answer together.
  Returned<std::size_t> context_length() const { return size(adead_text_generator_context_length); }
  /// Returns the number of tokens in the vocabulary.
  Returned<std::size_t> vocabulary() const { return size(adead_text_generator_vocabulary); }
  /// Returns the number of values in an embedding.
  Returned<std::size_t> width() const { return size(adead_text_generator_width); }
  /// Returns whether the file has a chat template, which chat() needs.
  Returned<bool> has_chat_template() const {
    std::int32_t out = 0;
    adead_status status = adead_text_generator_has_chat_template(get(), &out);
    return detail::encoded(status, out != 0);
  }
  /// Returns the device that it computes on: "cpu", "cuda:0".
  Returned<std::string> device() const {
    const char *out = nullptr;
    adead_status status = adead_text_generator_device(get(), &out);
    return detail::encoded(status, std::string(out ? out : ""));
  }

  /// Starts to generate the text that follows a prompt. invalid_argument if the prompt has no tokens or more than the context length,
  /// or an option is outside its range.
  Returned<TextStream> stream(Text prompt, const GenerateOptions &options = {}) const {
    const detail::RawGenerate raw(options);
    adead_text_stream *out = nullptr;
    adead_status status = adead_text_stream_create(get(), prompt.get(), raw.get(), &out);
    return detail::encoded(status, TextStream(out, progress_));
  }

  /// Starts to generate an answer to messages. The model's chat template makes the prompt; unsupported if it has none.
  Returned<TextStream> chat_stream(const std::vector<Message> &messages, const GenerateOptions &options = {}) const {
    const detail::RawGenerate raw(options);
    std::vector<adead_message> all;
    for (const Message &one : messages) all.push_back({one.role.c_str(), one.content.c_str()});
    adead_text_stream *out = nullptr;
    adead_status status = adead_text_stream_create_chat(get(), all.data(), all.size(), raw.get(), &out);
    return detail::encoded(status, TextStream(out, progress_));
  }

  /// Generates the text that follows a prompt. `piece` receives each piece, and returns false to end
  /// the text. An exception ends the text and is rethrown.
  Returned<Generation> generate(Text prompt, const GenerateOptions &options = {},
                                const std::function<bool(std::string_view)> &piece = {}) const {
    return whole(stream(prompt, options), piece);
  }

  /// Generates texts for several prompts at once, which is faster than one by one. Each text has the same bits as alone. Prompt i
  /// uses the sequence number `sequence` + i. Errors are those of stream(), for any of the prompts.
  Returned<std::vector<Generation>> generate_batch(const std::vector<std::string> &prompts, const GenerateOptions &options = {}) const {
    const detail::RawGenerate raw(options);
    std::vector<const char *> texts;
    for (const std::string &prompt : prompts) texts.push_back(prompt.c_str());
    std::vector<adead_generation *> out(prompts.size());
    adead_status status = adead_text_generate_batch(get(), texts.data(), texts.size(), raw.get(), out.data());
    std::vector<detail::RawGeneration> owners;
    owners.reserve(out.size());
    for (adead_generation *one : out) owners.emplace_back(one);
    std::vector<Generation> all(out.size());
    for (std::size_t i = 0; !status && i < all.size(); i++) status = detail::read(out[i], all[i]);
    return detail::computed(status, std::move(all));
  }

  /// Generates an answer to messages, as generate() does.
  Returned<Generation> chat(const std::vector<Message> &messages, const GenerateOptions &options = {},
                            const std::function<bool(std::string_view)> &piece = {}) const {
    return whole(chat_stream(messages, options), piece);
  }

  /// Returns a text's tokens. The text of a special token, such as `<|im_start|>`, becomes that token.
  Returned<std::vector<std::uint32_t>> tokenize(Text text) const {
    std::size_t count = 0;
    adead_status status = adead_text_tokenize(get(), text.get(), nullptr, 0, &count);
    std::vector<std::uint32_t> tokens(count);
    if (!status) status = adead_text_tokenize(get(), text.get(), tokens.data(), tokens.size(), &count);
    return detail::encoded(status, std::move(tokens));
  }

  /// Returns the text of tokens. Special tokens have no text.
  Returned<std::string> detokenize(const std::vector<std::uint32_t> &tokens) const {
    std::size_t length = 0;
    adead_status status = adead_text_detokenize(get(), tokens.data(), tokens.size(), nullptr, 0, &length);
    std::string text(length + 1, '\0');
    if (!status) status = adead_text_detokenize(get(), tokens.data(), tokens.size(), text.data(), text.size(), &length);
    text.resize(length);
    return detail::encoded(status, std::move(text));
  }

  /// Returns the perplexity of a text: e to the mean of its tokens' negative log-probabilities. invalid_argument for fewer than two
  /// tokens.
  Returned<double> perplexity(Text text) const {
    double out = 0;
    adead_status status = adead_text_perplexity(get(), text.get(), &out);
    return detail::computed(status, out);
  }

  /// Returns the log-probability of each token except the first, given the tokens before it.
  Returned<std::vector<float>> logprobs(const std::vector<std::uint32_t> &tokens) const {
    std::vector<float> values(tokens.empty() ? 0 : tokens.size() - 1);
    adead_status status = adead_text_logprobs(get(), tokens.data(), tokens.size(), values.data(), values.size());
    return detail::computed(status, std::move(values));
  }

  /// Returns the mean of the last hidden states of a text's tokens. To compare meanings, use SentenceEncoder.
  Returned<std::vector<float>> embed(Text text) const {
    std::size_t width = 0;
    adead_status status = adead_text_generator_width(get(), &width);
    std::vector<float> values(width);
    if (!status) status = adead_text_embed(get(), text.get(), values.data(), values.size());
    return detail::computed(status, std::move(values));
  }

  adead_text_generator *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  friend class Result<TextGenerator>;
  TextGenerator(adead_text_generator *raw, TextStream::Progress progress) noexcept : progress_(std::move(progress)), handle_(raw) {}

  template <class F>
  Returned<std::size_t> size(F ask) const {
    std::size_t out = 0;
    adead_status status = ask(get(), &out);
    return detail::encoded(status, out);
  }

  static Returned<Generation> whole(Returned<TextStream> begun, const std::function<bool(std::string_view)> &piece) {
#ifdef ADEAD_NO_EXCEPTIONS
    if (!begun) return *std::move(begun).error();
    TextStream &stream = *begun;
    for (;;) {
      auto next = stream.next();
      if (!next) return *std::move(next).error();
      if (!*next || (piece && !piece(**next))) return stream.generation();
    }
#else
    for (;;) {
      auto next = begun.next();
      if (!next || (piece && !piece(*next))) return begun.generation();
    }
#endif
  }

  TextStream::Progress progress_;
  detail::Handle<adead_text_generator, adead_text_generator_destroy> handle_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
