// Weights: the tensors of a safetensors file by name. For systems that have POSIX's mmap.
#ifndef ADEAD_WEIGHTS_HPP
#define ADEAD_WEIGHTS_HPP

#include <adead/context.hpp>
#include <adead/safetensors.hpp>

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace adead {
inline namespace ADEAD_HPP_MODE {

namespace detail {

/// Dimensions for a message: [2, 3].
inline std::string shown(Array<std::size_t> dims) {
  std::string text = "[";
  for (std::size_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

/// A file in memory as the system maps it.
class Mapped {
 public:
  Mapped() noexcept = default;
  Mapped(const Mapped &) = delete;
  Mapped &operator=(const Mapped &) = delete;
  ~Mapped() {
    if (data_) ::munmap(data_, size_);
  }

  /// Maps a file; the error's number, or 0. An empty one has no address.
  int map(const char *path) noexcept {
    int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    struct stat found = {};
    int error = ::fstat(file, &found) ? errno : S_ISDIR(found.st_mode) ? EISDIR : 0;
    if (!error && found.st_size > 0) {
      size_ = static_cast<std::size_t>(found.st_size);
      void *data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      if (data == MAP_FAILED) error = errno;
      else data_ = data;
    }
    // What is mapped stays.
    ::close(file);
    return error;
  }

  const char *data() const noexcept { return static_cast<const char *>(data_); }
  std::size_t size() const noexcept { return size_; }

 private:
  void *data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace detail

/// A safetensors file in memory as the system maps it: what is not used is not read. Copies share it, and so may threads. The
/// file must not be changed while it is there.
class Weights {
 public:
  /// None: every tensor is missing. open() gives one.
  Weights() noexcept = default;

  /// Maps a file. io if it can't be read, invalid_argument if it is no safetensors file.
  static Returned<Weights> open(Text path) {
    auto file = std::make_shared<File>();
    file->path = path.get() ? path.get() : "";
    if (int error = file->map.map(file->path.c_str())) {
      return detail::failed<Weights>(ADEAD_IO, (file->path + ": " + std::strerror(error)).c_str());
    }
    std::string why = file->read();
    if (!why.empty()) {
      return detail::failed<Weights>(ADEAD_INVALID_ARGUMENT, (file->path + ": no safetensors file: " + why).c_str());
    }
    return Weights(std::move(file));
  }

  /// The file.
  std::string path() const { return file_ ? file_->path : ""; }

  /// Every tensor's name, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    if (file_) {
      for (const auto &one : file_->tensors) all.push_back(one.first);
    }
    return all;
  }

  /// Whether there is a tensor of that name.
  bool contains(Text name) const { return find(name) != nullptr; }

  /// A tensor's dimensions. invalid_argument if there is none of that name.
  Returned<std::vector<std::size_t>> dims(Text name) const {
    const detail::Stored *found = find(name);
    if (!found) return missing<std::vector<std::size_t>>(name);
    return found->dims;
  }

  /// A copy of a tensor as f32, f16 and bf16 widened. invalid_argument if there is none of that name, shape_mismatch if its
  /// dimensions are others, dtype_mismatch if it has other elements.
  Returned<Tensor> tensor(const Context &ctx, Text name, Array<std::size_t> dims) const {
    const detail::Stored *found = find(name);
    if (!found) return missing<Tensor>(name);
    if (!std::equal(dims.begin(), dims.end(), found->dims.begin(), found->dims.end())) {
      return refused<Tensor>(ADEAD_SHAPE_MISMATCH, name,
                             "is " + detail::shown(found->dims) + "; it must be " + detail::shown(dims));
    }
    const void *data = file_->map.data() + file_->start + found->begin;
    std::size_t bytes = found->end - found->begin;
    if (found->dtype == "F32") return ctx.tensor(DType::f32, dims, data, bytes);
    if (found->dtype != "F16" && found->dtype != "BF16") {
      return refused<Tensor>(ADEAD_DTYPE_MISMATCH, name, "has elements of " + found->dtype + "; F32, F16 and BF16 are taken");
    }
    DType dtype = found->dtype == "F16" ? DType::f16 : DType::bf16;
#ifdef ADEAD_NO_EXCEPTIONS
    return ctx.tensor(dtype, dims, data, bytes).and_then([&](Tensor half) { return ctx.cast(half, {DType::f32}); });
#else
    return ctx.cast(ctx.tensor(dtype, dims, data, bytes), {DType::f32});
#endif
  }

 private:
  struct File {
    std::string path;
    detail::Mapped map;
    /// Where the tensors' bytes begin.
    std::size_t start = 0;
    std::map<std::string, detail::Stored> tensors;

    /// Reads the header. Why it is none, or "".
    std::string read() {
      // As the format's own library has it.
      constexpr std::uint64_t longest = 100000000;
      if (map.size() < 8) return std::to_string(map.size()) + " bytes";
      std::uint64_t length = 0;
      for (int i = 7; i >= 0; i--) length = length << 8 | static_cast<unsigned char>(map.data()[i]);
      if (length > longest || length > map.size() - 8) {
        return "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(map.size());
      }
      start = 8 + static_cast<std::size_t>(length);
      detail::HeaderReader reader(map.data() + 8, start - 8);
      tensors = reader.read();
      return reader.why().empty() ? detail::misplaced(tensors, map.size() - start) : reader.why();
    }
  };

  explicit Weights(std::shared_ptr<const File> file) noexcept : file_(std::move(file)) {}

  const detail::Stored *find(Text name) const {
    if (!file_ || !name.get()) return nullptr;
    auto found = file_->tensors.find(name.get());
    return found == file_->tensors.end() ? nullptr : &found->second;
  }

  template <class T>
  Returned<T> refused(adead_status status, Text name, const std::string &text) const {
    std::string whole = path() + ": the tensor '" + (name.get() ? name.get() : "") + "' " + text;
    return detail::failed<T>(status, whole.c_str());
  }
  template <class T>
  Returned<T> missing(Text name) const {
    std::size_t count = file_ ? file_->tensors.size() : 0;
    return refused<T>(ADEAD_INVALID_ARGUMENT, name, "is not among the file's " + std::to_string(count) + " tensors");
  }

  std::shared_ptr<const File> file_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
