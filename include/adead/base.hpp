// The base of the other headers: the mode, views, handles.
#ifndef ADEAD_BASE_HPP
#define ADEAD_BASE_HPP

#include <adead.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

// Signatures depend on the standard and on exceptions, so each mode has its own namespace. A program may link parts
// that were compiled in different modes.
#if __cplusplus >= 202002L && defined(ADEAD_NO_EXCEPTIONS)
#define ADEAD_HPP_MODE cxx20_result
#elif __cplusplus >= 202002L
#define ADEAD_HPP_MODE cxx20
#elif defined(ADEAD_NO_EXCEPTIONS)
#define ADEAD_HPP_MODE cxx17_result
#else
#define ADEAD_HPP_MODE cxx17
#endif

namespace adead {
inline namespace ADEAD_HPP_MODE {

#if __cplusplus >= 202002L
/// A view of values that the caller owns: std::span.
template <class T>
using Span = std::span<T>;
#else
/// A view of values that the caller owns, as std::span is from C++20 on.
template <class T>
class Span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  constexpr Span() noexcept = default;
  constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  constexpr T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T *begin() const noexcept { return data_; }
  constexpr T *end() const noexcept { return data_ + size_; }
  constexpr T &operator[](std::size_t i) const { return data_[i]; }
  constexpr T &front() const { return data_[0]; }
  constexpr T &back() const { return data_[size_ - 1]; }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};
#endif

/// An argument of several values, valid during the call: `{1, 2, 3}`, or anything with data() and size().
template <class T>
class Array {
 public:
  constexpr Array() noexcept = default;
  constexpr Array(const T *data, std::size_t size) noexcept : data_(data), size_(size) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // A call's list lives as long as the call.
#endif
  constexpr Array(std::initializer_list<T> values) noexcept : data_(values.begin()), size_(values.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::data(std::declval<const C &>())), const T *>>>
  constexpr Array(const C &values) noexcept : data_(std::data(values)), size_(std::size(values)) {}
  constexpr const T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr const T *begin() const noexcept { return data_; }
  constexpr const T *end() const noexcept { return data_ + size_; }

 private:
  const T *data_ = nullptr;
  std::size_t size_ = 0;
};

/// An argument that is a text or NULL.
class Text {
 public:
  constexpr Text(const char *text) noexcept : text_(text) {}
  Text(const std::string &text) noexcept : text_(text.c_str()) {}
  constexpr const char *get() const noexcept { return text_; }

 private:
  const char *text_;
};

/// All axes: the operation treats the tensor as one row-major vector.
inline constexpr std::int32_t all_axes = ADEAD_AXIS_ALL;

/// The order of axes of a transpose; a negative axis counts from the end. Without one, the core's default applies.
class Permutation {
 public:
  Permutation() noexcept = default;
  Permutation(std::initializer_list<std::int32_t> axes) : axes_(axes) {}
  Permutation(std::vector<std::int32_t> axes) noexcept : axes_(std::move(axes)) {}
  const std::optional<std::vector<std::int32_t>> &axes() const noexcept { return axes_; }

 private:
  std::optional<std::vector<std::int32_t>> axes_;
};

/// No threshold: the cost model decides.
inline constexpr std::size_t no_threshold = ADEAD_NO_THRESHOLD;

/// Returns the version of the library.
inline const char *version() noexcept { return adead_version(); }

/// Returns the version of the arithmetic contract. Libraries with the same version compute the same bits.
inline const char *contract_version() noexcept { return adead_contract_version(); }

namespace detail {

/// A handle of the C interface that owns its object. After a move it is empty, and using it is an error that says so.
template <class T, void (*destroy)(T *)>
class Handle {
 public:
  Handle() noexcept = default;
  explicit Handle(T *raw) noexcept : raw_(raw) {}
  Handle(Handle &&other) noexcept : raw_(other.release()) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      T *old = raw_;
      raw_ = other.release();
      destroy(old);
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { destroy(raw_); }

  /// Returns the handle for the C interface.
  T *get() const noexcept { return raw_; }
  /// Releases the handle to the caller, who must destroy it.
  T *release() noexcept { return std::exchange(raw_, nullptr); }
  explicit operator bool() const noexcept { return raw_ != nullptr; }

 private:
  T *raw_ = nullptr;
};

/// A context, kept alive by the objects that compute on it.
using Shared = std::shared_ptr<adead_context>;

/// Returns the handle of an object that may be absent.
template <class T>
auto *raw(const T *handle) noexcept {
  return handle ? handle->get() : nullptr;
}

/// Returns the handles of several objects.
template <class T, class R = decltype(std::declval<const T &>().get())>
std::vector<R> raws(Array<std::reference_wrapper<const T>> all) {
  std::vector<R> handles;
  for (const T &one : all) handles.push_back(one.get());
  return handles;
}

/// Returns an empty report of the C interface, with its size set.
template <class S>
S sized() noexcept {
  S report = {};
  report.struct_size = sizeof(S);
  return report;
}

}  // namespace detail

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
