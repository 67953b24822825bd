// Tensors, and attributes of operations.
#ifndef ADEAD_TENSOR_HPP
#define ADEAD_TENSOR_HPP

#include <adead/options.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Maps a C++ type to the dtypes whose elements it holds. f16 and bf16 are held as their bits. Bools are bytes; every
/// byte except 0 is true.
template <class T>
struct Element {
  static_assert(sizeof(T) == 0, "elements are float, double, std::int32_t, std::int64_t, std::uint32_t or, of f16 and bf16, std::uint16_t, of bool std::uint8_t");
};
template <>
struct Element<float> {
  static constexpr DType dtype = DType::f32;
  static constexpr bool is(DType one) noexcept { return one == dtype; }
};
template <>
struct Element<double> {
  static constexpr DType dtype = DType::f64;
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

/// Returns the bytes of one element; 0 for an unknown number.
inline std::size_t size_of(DType dtype) noexcept { return adead_dtype_size(static_cast<adead_dtype>(dtype)); }

/// A shaped value. Its contents never change. A Context makes it; its methods and operators compute on that context.
class Tensor : public TensorMethods {
 public:
  Tensor() noexcept = default;
  /// Takes over a handle of the C interface.
  Tensor(adead_tensor *raw, detail::Shared context) noexcept : handle_(raw), context_(std::move(context)) {}

  Tensor(Tensor &&) noexcept = default;
  Tensor &operator=(Tensor &&) noexcept = default;
  /// Makes another handle to the same values, like clone(). Without exceptions, a copy that fails is empty.
  Tensor(const Tensor &other) : Tensor(copied(other)) {}
  Tensor &operator=(const Tensor &other) { return *this = Tensor(other); }

  Returned<DType> dtype() const { return detail::asked<DType>(adead_tensor_dtype, get()); }

  Returned<std::size_t> rank() const { return detail::asked<std::size_t>(adead_tensor_rank, get()); }

  /// Returns the dimensions. They live as long as the tensor.
  Returned<Span<const std::size_t>> shape() const & {
    Span<const std::size_t> all;
    adead_status status = dims(all);
    return detail::done(status, all);
  }

  /// Returns the dimensions of a temporary by value: `for (std::size_t n : ctx.matmul(a, b).shape())` is valid.
  Returned<std::vector<std::size_t>> shape() const && {
    Span<const std::size_t> all;
    adead_status status = dims(all);
    return detail::done(status, std::vector<std::size_t>(all.begin(), all.end()));
  }

  /// Returns the elements' bytes, native and row-major. They live as long as the last of the tensor and its clones.
  Returned<Span<const std::byte>> bytes() const {
    const void *data = nullptr;
    std::size_t bytes = 0;
    adead_status status = adead_tensor_bytes(get(), &bytes);
    if (!status) status = adead_tensor_data(get(), &data);
    return detail::done(status, Span<const std::byte>(static_cast<const std::byte *>(data), bytes));
  }

  /// Returns the elements, in the memory of bytes(). dtype_mismatch if they are not T.
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

  /// Returns a copy of the elements. dtype_mismatch if they are not T.
  template <class T>
  Returned<std::vector<T>> to_vector() const {
#ifdef ADEAD_NO_EXCEPTIONS
    return data<T>().and_then([](Span<const T> all) { return Result<std::vector<T>>({all.begin(), all.end()}); });
#else
    Span<const T> all = data<T>();
    return {all.begin(), all.end()};
#endif
  }

  /// Copies all elements. invalid_argument unless `bytes` is exactly their size.
  Returned<void> read(void *to, std::size_t bytes) const { return detail::done(adead_tensor_read(get(), to, bytes)); }

  /// Makes another handle to the same values, without a copy.
  Returned<Tensor> clone() const { return detail::made<Tensor>(context_, adead_tensor_clone, get()); }

  /// Returns the same values in another shape, without a copy.
  Returned<Tensor> reshape(Array<std::size_t> dims) const {
    return detail::made<Tensor>(context_, adead_tensor_reshape, get(), dims.data(), dims.size());
  }

  /// Starts to copy the values to host memory if they are only on devices; reading them waits. Context::to() copies
  /// them to a device.
  Returned<void> to_cpu() const { return detail::done(adead_tensor_to(context_.get(), get(), "cpu")); }

  /// Returns whether the values are in host memory ("cpu") or on the device of an id.
  Returned<bool> is_on(const char *device) const { return detail::asked<bool>(adead_tensor_is_on, get(), device); }

  /// Returns the handle for the C interface.
  adead_tensor *get() const noexcept { return handle_.get(); }
  /// Releases the handle to the caller, who must destroy it.
  adead_tensor *release() noexcept { return handle_.release(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  const detail::Shared &context() const noexcept { return context_; }

 private:
  static Tensor copied(const Tensor &other) {
    if (!other) return {};
#ifdef ADEAD_NO_EXCEPTIONS
    return other.clone().value();
#else
    return other.clone();
#endif
  }
  adead_status dims(Span<const std::size_t> &to) const noexcept {
    const std::size_t *first = nullptr;
    std::size_t rank = 0;
    adead_status status = adead_tensor_rank(get(), &rank);
    if (!status) status = adead_tensor_dims(get(), &first);
    if (!status) to = Span<const std::size_t>(first, rank);
    return status;
  }

  detail::Handle<adead_tensor, adead_tensor_destroy> handle_;
  detail::Shared context_;
};

/// Attributes of an operation. Each has its default until it is set.
class Attrs {
 public:
  Attrs() noexcept = default;

  /// Sets an attribute from text, as in docs/operations.md: "-1", "0x3f000000", "relu", "1,0,2".
  Returned<void> set(Op op, Text name, Text value) {
    adead_status status = ADEAD_OK;
    put(status, op, name.get(), value.get());
    return detail::done(status);
  }

  // Sets an option's attribute if the option is present. After a failure it does nothing.
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
  /// Returns "" for an unknown number; the operation then refuses "".
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
