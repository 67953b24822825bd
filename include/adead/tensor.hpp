// Tensors, and attributes of operations.
#ifndef ADEAD_TENSOR_HPP
#define ADEAD_TENSOR_HPP

#include <adead/result.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// The dtypes that a C++ type is the elements of. f16 and bf16 are their bits, bools bytes that are true where they are not 0.
template <class T>
struct Element {
  static_assert(sizeof(T) == 0, "elements are float, std::int32_t, std::int64_t, std::uint32_t or, of f16 and bf16, std::uint16_t, of bool std::uint8_t");
};
template <>
struct Element<float> {
  static constexpr DType dtype = DType::f32;
  static constexpr bool is(DType one) noexcept { return one == dtype; }
};
template <>
struct Element<std::int32_t> {
  static constexpr DType dtype = DType::i32;
  static constexpr bool is(DType one) noexcept { return one == dtype; }
};
template <>
struct Element<std::int64_t> {
  static constexpr DType dtype = DType::i64;
  static constexpr bool is(DType one) noexcept { return one == dtype; }
};
template <>
struct Element<std::uint32_t> {
  static constexpr DType dtype = DType::u32;
  static constexpr bool is(DType one) noexcept { return one == dtype; }
};
template <>
struct Element<std::uint8_t> {
  static constexpr DType dtype = DType::bool_;
  static constexpr bool is(DType one) noexcept { return one == dtype; }
};
template <>
struct Element<std::uint16_t> {
  static constexpr bool is(DType one) noexcept { return one == DType::f16 || one == DType::bf16; }
};

/// Bytes of one element; 0 for a number that is no dtype.
inline std::size_t size_of(DType dtype) noexcept { return adead_dtype_size(static_cast<adead_dtype>(dtype)); }

/// A shaped value. Its contents never change. Made by a Context, on which its operators compute.
class Tensor {
 public:
  Tensor() noexcept = default;
  /// Takes a handle of the C interface.
  Tensor(adead_tensor *raw, detail::Shared context) noexcept : handle_(raw), context_(std::move(context)) {}

  Returned<DType> dtype() const { return detail::asked<DType>(adead_tensor_dtype, get()); }

  Returned<std::size_t> rank() const { return detail::asked<std::size_t>(adead_tensor_rank, get()); }

  /// The dimensions. They belong to the tensor and go with it.
  Returned<Span<const std::size_t>> shape() const {
    const std::size_t *dims = nullptr;
    std::size_t rank = 0;
    adead_status status = adead_tensor_rank(get(), &rank);
    if (!status) status = adead_tensor_dims(get(), &dims);
    return detail::done(status, Span<const std::size_t>(dims, rank));
  }

  /// The elements' bytes, native and row-major. They belong to the tensor and its clones and go with the last of them.
  Returned<Span<const std::byte>> bytes() const {
    const void *data = nullptr;
    std::size_t bytes = 0;
    adead_status status = adead_tensor_bytes(get(), &bytes);
    if (!status) status = adead_tensor_data(get(), &data);
    return detail::done(status, Span<const std::byte>(static_cast<const std::byte *>(data), bytes));
  }

  /// The elements, as bytes() has them. dtype_mismatch if they are not T.
  template <class T>
  Returned<Span<const T>> data() const {
    adead_dtype dtype = 0;
    const void *data = nullptr;
    std::size_t bytes = 0;
    adead_status status = adead_tensor_dtype(get(), &dtype);
    if (!status) status = adead_tensor_bytes(get(), &bytes);
    if (!status) status = adead_tensor_data(get(), &data);
    if (!status && !Element<T>::is(static_cast<DType>(dtype))) {
      std::string text = std::string("the elements are ") + adead_dtype_name(dtype) + ", and were asked for as another type";
      return detail::failed<Span<const T>>(ADEAD_DTYPE_MISMATCH, text.c_str());
    }
    return detail::done(status, Span<const T>(static_cast<const T *>(data), bytes / sizeof(T)));
  }

  /// A copy of the elements. dtype_mismatch if they are not T.
  template <class T>
  Returned<std::vector<T>> to_vector() const {
#ifdef ADEAD_NO_EXCEPTIONS
    return data<T>().and_then([](Span<const T> all) { return Result<std::vector<T>>({all.begin(), all.end()}); });
#else
    Span<const T> all = data<T>();
    return {all.begin(), all.end()};
#endif
  }

  /// Copies all elements. invalid_argument unless `bytes` is exactly what they take.
  Returned<void> read(void *to, std::size_t bytes) const { return detail::done(adead_tensor_read(get(), to, bytes)); }

  /// Another handle of the same values, without a copy.
  Returned<Tensor> clone() const { return detail::made<Tensor>(context_, adead_tensor_clone, get()); }

  /// The same values in another shape, without a copy.
  Returned<Tensor> reshape(Array<std::size_t> dims) const {
    return detail::made<Tensor>(context_, adead_tensor_reshape, get(), dims.data(), dims.size());
  }

  /// Starts to bring the values to host memory, where they are on devices only; reading them waits. Context::to() is the way there.
  Returned<void> to_cpu() const { return detail::done(adead_tensor_to(context_.get(), get(), "cpu")); }

  /// Whether the values are in host memory ("cpu") or on the device of that id.
  Returned<bool> is_on(const char *device) const { return detail::asked<bool>(adead_tensor_is_on, get(), device); }

  /// What the C interface takes.
  adead_tensor *get() const noexcept { return handle_.get(); }
  /// Gives the handle to the caller, who destroys it.
  adead_tensor *release() noexcept { return handle_.release(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  const detail::Shared &context() const noexcept { return context_; }

 private:
  detail::Handle<adead_tensor, adead_tensor_destroy> handle_;
  detail::Shared context_;
};

/// The order of axes of a transpose; an axis counts from the end if it is negative. Not given, it is the core's default.
class Permutation {
 public:
  Permutation() noexcept = default;
  Permutation(std::initializer_list<std::int32_t> axes) : axes_(axes) {}
  Permutation(std::vector<std::int32_t> axes) noexcept : axes_(std::move(axes)) {}
  const std::optional<std::vector<std::int32_t>> &axes() const noexcept { return axes_; }

 private:
  std::optional<std::vector<std::int32_t>> axes_;
};

/// Attributes of an operation, each with its default until it is set.
class Attrs {
 public:
  Attrs() noexcept = default;

  /// Sets an attribute from text, as docs/operations.md lists them: "-1", "0x3f000000", "relu", "1,0,2".
  Returned<void> set(Op op, Text name, Text value) {
    adead_status status = ADEAD_OK;
    put(status, op, name.get(), value.get());
    return detail::done(status);
  }

  // What is there of an operation's options; once something failed, nothing.
  void give(adead_status &status, Op op, const char *attribute, const std::optional<bool> &value) {
    if (value) put(status, op, attribute, *value ? "1" : "0");
  }
  void give(adead_status &status, Op op, const char *attribute, const std::optional<std::int32_t> &value) {
    if (value) put(status, op, attribute, *value == all_axes ? "all" : std::to_string(*value).c_str());
  }
  void give(adead_status &status, Op op, const char *attribute, const std::optional<float> &value) {
    if (!value) return;
    static_assert(sizeof(float) == sizeof(std::uint32_t), "a float is its 32 bits");
    std::uint32_t bits = 0;
    std::char_traits<char>::copy(reinterpret_cast<char *>(&bits), reinterpret_cast<const char *>(&*value), sizeof bits);
    char text[16];
    std::snprintf(text, sizeof text, "0x%08lx", static_cast<unsigned long>(bits));
    put(status, op, attribute, text);
  }
  template <class E, class = std::enable_if_t<std::is_enum_v<E>>>
  void give(adead_status &status, Op op, const char *attribute, const std::optional<E> &value) {
    if (value) put(status, op, attribute, word(*value));
  }
  void give(adead_status &status, Op op, const char *attribute, const Permutation &value) {
    if (!value.axes()) return;
    std::string text;
    for (std::int32_t axis : *value.axes()) text += (text.empty() ? "" : ",") + std::to_string(axis);
    put(status, op, attribute, text.c_str());
  }

  adead_attrs *get() const noexcept { return handle_.get(); }

 private:
  /// A number that is no value has no name: its operation refuses the empty word.
  template <class E>
  static const char *word(E value) noexcept {
    const char *text = name(value);
    return text ? text : "";
  }
  void put(adead_status &status, Op op, const char *attribute, const char *value) {
    if (!status && !handle_) {
      adead_attrs *out = nullptr;
      status = adead_attrs_create(&out);
      handle_ = detail::Handle<adead_attrs, adead_attrs_destroy>(out);
    }
    if (!status) status = adead_attrs_set(handle_.get(), static_cast<adead_op>(op), attribute, value);
  }

  detail::Handle<adead_attrs, adead_attrs_destroy> handle_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
