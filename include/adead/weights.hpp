// Weights: the tensors of a safetensors file by name.
#ifndef ADEAD_WEIGHTS_HPP
#define ADEAD_WEIGHTS_HPP

#include <adead/context.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// An open safetensors file. Opening reads its header; each tensor is read on request. Copies share the file. Threads may
/// share an object.
class Weights {
 public:
  /// Makes an empty object, which can't be used. open() makes a usable one.
  Weights() noexcept = default;

  /// Opens a file. io if it can't be read, invalid_argument if it is not a safetensors file.
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

  /// Returns the file's path.
  const std::string &path() const & noexcept { return path_; }
  std::string path() && { return std::move(path_); }

  /// Returns every tensor's name, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    std::size_t count = 0;
    const char *name = nullptr;
    if (adead_safetensors_count(get(), &count)) count = 0;
    for (std::size_t i = 0; i < count && !adead_safetensors_name(get(), i, &name); i++) all.emplace_back(name);
    return all;
  }

  /// Returns whether the file has a tensor of this name.
  bool contains(Text name) const {
    std::int32_t found = 0;
    return !adead_safetensors_contains(get(), name.get(), &found) && found;
  }

  /// Returns a tensor's dimensions. invalid_argument if there is no tensor of that name.
  Returned<std::vector<std::size_t>> dims(Text name) const {
    const std::size_t *dims = nullptr;
    std::size_t rank = 0;
    adead_status status = adead_safetensors_dims(get(), name.get(), &dims, &rank);
    return detail::done(status, status ? std::vector<std::size_t>() : std::vector<std::size_t>(dims, dims + rank));
  }

  /// Reads a tensor as f32; f16 and bf16 are widened, f64 is rounded. invalid_argument if there is no tensor of that name,
  /// shape_mismatch if its dimensions differ, dtype_mismatch for other elements, io if it can't be read.
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
