// Weights: the tensors of a safetensors file by name.
#ifndef ADEAD_WEIGHTS_HPP
#define ADEAD_WEIGHTS_HPP

#include <adead/context.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A safetensors file: its header is read when it is opened, a tensor when it is asked for. Copies share it, and so may threads.
class Weights {
 public:
  /// None: its use is an error. open() gives one.
  Weights() noexcept = default;

  /// Opens a file. io if it can't be read, invalid_argument if it is no safetensors file.
  static Returned<Weights> open(Text path) {
    adead_safetensors *out = nullptr;
    adead_status status = adead_safetensors_open(path.get(), &out);
    Weights weights;
    if (!status) {
      weights.file_ = std::shared_ptr<adead_safetensors>(out, adead_safetensors_close);
      weights.path_ = path.get();
    }
    return detail::done(status, std::move(weights));
  }

  /// The file.
  const std::string &path() const noexcept { return path_; }

  /// Every tensor's name, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    std::size_t count = 0;
    const char *name = nullptr;
    if (adead_safetensors_count(get(), &count)) count = 0;
    for (std::size_t i = 0; i < count && !adead_safetensors_name(get(), i, &name); i++) all.emplace_back(name);
    return all;
  }

  /// Whether there is a tensor of that name.
  bool contains(Text name) const {
    std::int32_t found = 0;
    return !adead_safetensors_contains(get(), name.get(), &found) && found;
  }

  /// A tensor's dimensions. invalid_argument if there is none of that name.
  Returned<std::vector<std::size_t>> dims(Text name) const {
    const std::size_t *dims = nullptr;
    std::size_t rank = 0;
    adead_status status = adead_safetensors_dims(get(), name.get(), &dims, &rank);
    return detail::done(status, status ? std::vector<std::size_t>() : std::vector<std::size_t>(dims, dims + rank));
  }

  /// Reads a tensor as f32, f16 and bf16 widened. invalid_argument if there is none of that name, shape_mismatch if its
  /// dimensions are others, dtype_mismatch if it has other elements, io if it can't be read.
  Returned<Tensor> tensor(const Context &ctx, Text name, Array<std::size_t> dims) const {
    return detail::made<Tensor>(ctx.shared(), adead_safetensors_tensor, get(), name.get(), dims.data(), dims.size());
  }

  adead_safetensors *get() const noexcept { return file_.get(); }

 private:
  std::shared_ptr<adead_safetensors> file_;
  std::string path_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
