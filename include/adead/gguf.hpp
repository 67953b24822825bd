// GGUF files over <adead/models.h> and its library, adead_models: values as quantised blocks, models as files. Programs that use it
// need not link libadead. docs/text-generation.md is the guide.
#ifndef ADEAD_GGUF_HPP
#define ADEAD_GGUF_HPP

#include <adead/models.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Encodes values as blocks of a format. Rows of a matrix may be encoded together: Context::quantized_matmul takes the result as a u8
/// tensor [rows, bytes of a row]. The same values give the same bytes on every machine.
///
/// shape_mismatch if the values are not whole blocks, invalid_argument with the position for a value that is NaN or infinite, and for a
/// block whose scale exceeds 65504.
inline Returned<std::vector<std::uint8_t>> quantize(Array<float> values, BlockFormat format) {
  const auto raw = static_cast<adead_block_format>(format);
  std::size_t size = 0;
  adead_status status = adead_quantize(nullptr, values.size(), raw, nullptr, 0, &size);
  std::vector<std::uint8_t> blocks(size);
  if (!status && size) status = adead_quantize(values.data(), values.size(), raw, blocks.data(), blocks.size(), &size);
  return detail::encoded(status, std::move(blocks));
}

/// How a model is converted.
struct ConvertOptions {
  /// How matrices are stored: "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", or
  /// llama.cpp's mixtures "q4_k_m" and "q5_k_m". If not set, matrices keep the types that the folder has. Required for a
  /// GGUF file.
  std::optional<std::string> kind = {};
  /// Called with the number of values written so far, and the total. Returns false to end the conversion. An exception
  /// ends it too, and is rethrown.
  std::function<bool(std::uint64_t written, std::uint64_t all)> progress = {};
};

namespace detail {

/// The caller's functions during a conversion, and the exception that one of them threw.
struct Converting {
  const ConvertOptions &options;
  std::vector<std::string> notes = {};
#ifndef ADEAD_NO_EXCEPTIONS
  std::exception_ptr thrown = {};
#endif

  template <class Work>
  std::int32_t run(Work work) noexcept {
#ifndef ADEAD_NO_EXCEPTIONS
    try {
      return work() ? 0 : 1;
    } catch (...) {
      thrown = std::current_exception();
      return 1;
    }
#else
    return work() ? 0 : 1;
#endif
  }
};

}  // namespace detail

/// Converts a model to a GGUF file. The model is a Hugging Face folder, such as SmolLM2-135M-Instruct, or another GGUF file. The file
/// appears when it is complete, and then replaces a file of that name. The same model gives the same bytes on every machine. Returns
/// notes for the user: which tensors are stored in another type, and which settings a GGUF file can't hold.
///
/// io for a file that is missing or can't be read or written, invalid_argument and shape_mismatch for a malformed one, unsupported for a
/// model of another kind, not_ready if `progress` ended the conversion.
inline Returned<std::vector<std::string>> convert(Text model, Text file, const ConvertOptions &options = {}) {
  detail::Converting state{options};
  adead_convert_options raw = ADEAD_CONVERT_OPTIONS_INIT;
  if (options.kind) raw.kind = options.kind->c_str();
  raw.user = &state;
  if (options.progress) {
    raw.progress = [](void *user, std::uint64_t written, std::uint64_t all) {
      auto &self = *static_cast<detail::Converting *>(user);
      return self.run([&] { return self.options.progress(written, all); });
    };
  }
  raw.note = [](void *user, const char *text) {
    auto &self = *static_cast<detail::Converting *>(user);
    self.run([&] { return self.notes.emplace_back(text), true; });
  };
  adead_status status = adead_convert(model.get(), file.get(), &raw);
#ifndef ADEAD_NO_EXCEPTIONS
  if (state.thrown) std::rethrow_exception(state.thrown);
#endif
  return detail::encoded(status, std::move(state.notes));
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
