// What the other headers stand on: the mode, views, handles.
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

// What a function returns and takes depends on the standard and on exceptions, so each mode has a namespace of its own: parts of
// a program that were compiled in different modes may be linked together.
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
/// Values that belong to somebody else: std::span.
template <class T>
using Span = std::span<T>;
#else
/// Values that belong to somebody else: what std::span is from C++20 on.
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

/// An argument that is many values, for the call only: `{1, 2, 3}`, or whatever has data() and size().
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

/// An argument that is a text, or NULL.
class Text {
 public:
  constexpr Text(const char *text) noexcept : text_(text) {}
  Text(const std::string &text) noexcept : text_(text.c_str()) {}
  constexpr const char *get() const noexcept { return text_; }

 private:
  const char *text_;
};

/// All axes: the operation works on the row-major flattening of everything.
inline constexpr std::int32_t all_axes = ADEAD_AXIS_ALL;

/// A threshold that is none: the costs decide.
inline constexpr std::size_t no_threshold = ADEAD_NO_THRESHOLD;

/// The version of the library.
inline const char *version() noexcept { return adead_version(); }

/// The version of the arithmetic contract: libraries that answer the same compute the same bits.
inline const char *contract_version() noexcept { return adead_contract_version(); }

namespace detail {

/// A handle of the C interface, with its owner. Moved from, it is empty, and what is done with it is an error that says so.
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

  /// What the C interface takes.
  T *get() const noexcept { return raw_; }
  /// Gives it to the caller, who destroys it.
  T *release() noexcept { return std::exchange(raw_, nullptr); }
  explicit operator bool() const noexcept { return raw_ != nullptr; }

 private:
  T *raw_ = nullptr;
};

/// A context, kept by what computes on it.
using Shared = std::shared_ptr<adead_context>;

/// The handle of something that may be absent.
template <class T>
auto *raw(const T *handle) noexcept {
  return handle ? handle->get() : nullptr;
}

/// The handles of many.
template <class T, class R = decltype(std::declval<const T &>().get())>
std::vector<R> raws(Array<std::reference_wrapper<const T>> all) {
  std::vector<R> handles;
  for (const T &one : all) handles.push_back(one.get());
  return handles;
}

/// An empty report of the C interface, which says its size first.
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
