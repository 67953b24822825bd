// The result of a call: its value or an exception; without exceptions a Result.
#ifndef ADEAD_RESULT_HPP
#define ADEAD_RESULT_HPP

#include <adead/enums.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// The value of a call, or its error. The value of a failed call is empty; using it fails too, without harm.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return ok(); }
  Status status() const noexcept { return error_ ? error_->status() : Status::ok; }
  /// Returns the error text; "" if the call succeeded.
  const char *message() const noexcept { return error_ ? error_->what() : ""; }
  /// Returns the error, if the call failed.
  const std::optional<Error> &error() const & noexcept { return error_; }
  std::optional<Error> error() && { return std::move(error_); }
  T &value() & noexcept { return value_; }
  const T &value() const & noexcept { return value_; }
  T value() && { return std::move(value_); }
  T &operator*() & noexcept { return value_; }
  const T &operator*() const & noexcept { return value_; }
  T operator*() && { return std::move(value_); }
  T *operator->() noexcept { return &value_; }
  const T *operator->() const noexcept { return &value_; }

  /// Returns `next(value)` if the call succeeded, else this error. `next` must return a Result too.
  template <class F>
  auto and_then(F &&next) && -> std::invoke_result_t<F, T> {
    if (error_) return std::move(*error_);
    return std::forward<F>(next)(std::move(value_));
  }

 private:
  T value_{};
  std::optional<Error> error_;
};

/// The result of a call without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() noexcept = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return ok(); }
  Status status() const noexcept { return error_ ? error_->status() : Status::ok; }
  /// Returns the error text; "" if the call succeeded.
  const char *message() const noexcept { return error_ ? error_->what() : ""; }
  /// Returns the error, if the call failed.
  const std::optional<Error> &error() const & noexcept { return error_; }
  std::optional<Error> error() && { return std::move(error_); }

  /// Returns `next()` if the call succeeded, else this error. `next` must return a Result too.
  template <class F>
  auto and_then(F &&next) && -> std::invoke_result_t<F> {
    if (error_) return std::move(*error_);
    return std::forward<F>(next)();
  }

 private:
  std::optional<Error> error_;
};

#ifdef ADEAD_NO_EXCEPTIONS
/// The return type of calls: a Result.
template <class T>
using Returned = Result<T>;
#else
/// The return type of calls: their value. A call that fails throws the class of its status.
template <class T>
using Returned = T;
#endif

namespace detail {

#ifdef ADEAD_NO_EXCEPTIONS
template <class T>
Result<T> failed(adead_status status, const char *text = adead_last_error()) {
  return Error(static_cast<Status>(status), text);
}
inline Result<void> done(adead_status status) { return status ? failed<void>(status) : Result<void>(); }
#else
template <class T>
[[noreturn]] T failed(adead_status status, const char *text = adead_last_error()) {
  raise(status, text);
}
inline void done(adead_status status) {
  if (status) failed<void>(status);
}
#endif

/// Whether a type is a Result.
template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

/// Wraps a value as a call returns it.
template <class T>
Returned<T> done(adead_status status, T value) {
  if (status) return failed<T>(status);
  return value;
}

/// Whether a struct's first field is its size.
template <class S, class = void>
inline constexpr bool says_size = false;
template <class S>
inline constexpr bool says_size<S, std::void_t<decltype(S::struct_size)>> = true;

/// The type that a function of the C interface writes to its last argument.
template <class... P>
auto unwritten(adead_status (*)(P...)) noexcept {
  using Out = std::remove_pointer_t<std::tuple_element_t<sizeof...(P) - 1, std::tuple<P...>>>;
  if constexpr (says_size<Out>) return sized<Out>();
  else return Out{};
}

/// Calls a function of the C interface and returns the value of its last argument as a T.
template <class T, class F, class... A>
Returned<T> asked(F *function, A... arguments) {
  auto out = unwritten(function);
  adead_status status = function(arguments..., &out);
  return done(status, T(out));
}

/// Does the same for objects that compute on a context.
template <class T, class F, class... A>
Returned<T> made(const Shared &context, F *function, A... arguments) {
  auto out = unwritten(function);
  adead_status status = function(arguments..., &out);
  return done(status, T(out, context));
}

}  // namespace detail

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
