// Checks that the tests of the C++ API share. They are written once for both modes, with exceptions and without.
// OK(call) is the value of a call that succeeds; FAILS checks a call that fails.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <adead.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

[[noreturn]] inline void stop(const char *file, int line, const char *what, const char *why) {
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
  std::exit(1);
}

#define CHECK(...)                                                          \
  do {                                                                      \
    if (!(__VA_ARGS__)) stop(__FILE__, __LINE__, #__VA_ARGS__, "is false"); \
  } while (0)

#ifdef ADEAD_NO_EXCEPTIONS

template <class T>
T value_of(adead::Result<T> result, const char *file, int line, const char *what) {
  if (!result.ok()) stop(file, line, what, result.message());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
#define OK(...) value_of(__VA_ARGS__, __FILE__, __LINE__, #__VA_ARGS__)

/// Checks that the call fails with the status and a text that contains these words.
#define FAILS(class_, status_, words, ...)                                                                          \
  do {                                                                                                              \
    auto got_ = __VA_ARGS__;                                                                                        \
    if (got_.ok() || got_.status() != adead::Status::status_ || !got_.error() || !std::strstr(got_.message(), words)) \
      stop(__FILE__, __LINE__, #__VA_ARGS__, got_.message());                                                       \
  } while (0)

#else

#define OK(...) (__VA_ARGS__)

/// Checks that the call throws the class of the status, with a text that contains these words.
#define FAILS(class_, status_, words, ...)                                                       \
  do {                                                                                           \
    bool right_ = false;                                                                         \
    try {                                                                                        \
      (void)(__VA_ARGS__);                                                                       \
    } catch (const adead::class_ &error) {                                                       \
      right_ = error.status() == adead::Status::status_ && std::strstr(error.what(), words);     \
      if (!right_) stop(__FILE__, __LINE__, #__VA_ARGS__, error.what());                         \
    } catch (const adead::Error &error) {                                                        \
      stop(__FILE__, __LINE__, #__VA_ARGS__, error.what());                                      \
    }                                                                                            \
    if (!right_) stop(__FILE__, __LINE__, #__VA_ARGS__, "succeeded");                            \
  } while (0)

#endif

/// Returns whether two tensors have the same dtype, shape and bits.
inline bool same(const adead::Tensor &a, const adead::Tensor &b) {
  auto shape = OK(a.shape()), other_shape = OK(b.shape());
  auto bytes = OK(a.bytes()), other_bytes = OK(b.bytes());
  if (OK(a.dtype()) != OK(b.dtype()) || shape.size() != other_shape.size() || bytes.size() != other_bytes.size()) return false;
  for (std::size_t i = 0; i < shape.size(); i++) {
    if (shape[i] != other_shape[i]) return false;
  }
  return bytes.empty() || !std::memcmp(bytes.data(), other_bytes.data(), bytes.size());
}

/// Fills in values that are neither round nor all alike.
inline std::vector<float> some_values(std::size_t count, std::uint32_t seed) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(static_cast<int>(seed >> 8) - (1 << 23)) / (1 << 22));
  }
  return values;
}

#endif
