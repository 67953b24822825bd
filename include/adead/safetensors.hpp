// The header of a safetensors file: JSON, of just the form that such a header has.
#ifndef ADEAD_SAFETENSORS_HPP
#define ADEAD_SAFETENSORS_HPP

#include <adead/base.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

namespace adead {
inline namespace ADEAD_HPP_MODE {
namespace detail {

/// A tensor in the file: dtype by the format's name, dimensions, and its bytes, counted from the header's end.
struct Stored {
  std::string dtype;
  std::vector<std::size_t> dims;
  std::size_t begin, end;
};

/// Bytes of an element; 0 for a dtype that the format has not.
inline std::size_t stored_size(const std::string &dtype) noexcept {
  static constexpr struct {
    const char *name;
    std::size_t size;
  } sizes[] = {{"BOOL", 1}, {"U8", 1}, {"I8", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
               {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4}, {"U64", 8}, {"I64", 8}, {"F64", 8}};
  for (const auto &one : sizes) {
    if (dtype == one.name) return one.size;
  }
  return 0;
}

/// Reads the JSON. At the first thing that is wrong it says what, and takes nothing more.
class HeaderReader {
 public:
  HeaderReader(const char *text, std::size_t size) noexcept : begin_(text), at_(text), end_(text + size) {}

  /// Every tensor by its name.
  std::map<std::string, Stored> read() {
    std::map<std::string, Stored> found;
    object([&](const std::string &name) {
      if (name == "__metadata__") return object([&](const std::string &) { string(); });
      Stored tensor = entry();
      if (why_.empty() && !found.emplace(name, std::move(tensor)).second) fail("the name is there twice");
    });
    space();
    if (at_ != end_) fail("the header goes on behind its object");
    return found;
  }

  /// What was wrong; "" if nothing was.
  const std::string &why() const noexcept { return why_; }

 private:
  void fail(const char *what) {
    if (why_.empty()) why_ = "byte " + std::to_string(at_ - begin_) + " of the header: " + what;
    at_ = end_;
  }
  void space() noexcept {
    while (at_ != end_ && std::strchr(" \t\n\r", *at_) && *at_) ++at_;
  }
  bool take(char wanted) noexcept {
    space();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    const char what[] = {'\'', wanted, '\'', ' ', 'i', 's', ' ', 'm', 'i', 's', 's', 'i', 'n', 'g', '\0'};
    if (!take(wanted)) fail(what);
  }

  /// Calls `field` with each key; it reads the value.
  template <class F>
  void object(F &&field) {
    expect('{');
    if (take('}')) return;
    do {
      std::string key = string();
      expect(':');
      if (why_.empty()) field(key);
    } while (take(','));
    expect('}');
  }

  Stored entry() {
    Stored tensor = {};
    std::vector<std::size_t> offsets;
    unsigned seen = 0;
    object([&](const std::string &key) {
      unsigned one = key == "dtype" ? 1 : key == "shape" ? 2 : key == "data_offsets" ? 4 : 0;
      if (!one || (seen & one)) return fail("a tensor has dtype, shape and data_offsets, each once");
      seen |= one;
      if (one == 1) tensor.dtype = string();
      if (one == 2) tensor.dims = numbers();
      if (one == 4) offsets = numbers();
    });
    if (seen != 7 || offsets.size() != 2) {
      fail("a tensor has dtype, shape and two data_offsets");
    } else if (!stored_size(tensor.dtype)) {
      fail("there is no such dtype");
    } else {
      tensor.begin = offsets[0];
      tensor.end = offsets[1];
    }
    return tensor;
  }

  std::vector<std::size_t> numbers() {
    std::vector<std::size_t> all;
    expect('[');
    if (take(']')) return all;
    do {
      all.push_back(number());
    } while (take(','));
    expect(']');
    return all;
  }

  std::size_t number() {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    space();
    const char *first = at_;
    std::size_t value = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      std::size_t digit = static_cast<std::size_t>(*at_ - '0');
      if (value > (most - digit) / 10) return fail("the number is too large"), 0;
      value = value * 10 + digit;
    }
    if (at_ == first || (*first == '0' && at_ - first > 1)) fail("a whole number is missing");
    return value;
  }

  std::string string() {
    std::string text;
    expect('"');
    while (at_ != end_ && *at_ != '"') {
      unsigned char letter = static_cast<unsigned char>(*at_++);
      if (letter < 0x20) fail("a control character in a string");
      else if (letter != '\\') text += static_cast<char>(letter);
      else escaped(text);
    }
    expect('"');
    return text;
  }

  void escaped(std::string &text) {
    static constexpr char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char letter = at_ == end_ ? '\0' : *at_++;
    const char *known = letter ? std::strchr(names, letter) : nullptr;
    if (known) {
      text += meant[known - names];
    } else if (letter == 'u') {
      std::uint32_t code = unit();
      if (code >= 0xd800 && code < 0xdc00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
        at_ += 2;
        std::uint32_t low = unit();
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
      }
      if (code >= 0xd800 && code < 0xe000) return fail("half of a surrogate pair");
      utf8(text, code);
    } else {
      fail("there is no such escape");
    }
  }

  /// Four hexadecimal digits.
  std::uint32_t unit() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
      static constexpr char digits[] = "0123456789abcdefABCDEF";
      const char *digit = at_ == end_ || !*at_ ? nullptr : std::strchr(digits, *at_);
      if (!digit) return fail("an escape has four hexadecimal digits"), 0;
      std::uint32_t value = static_cast<std::uint32_t>(digit - digits);
      code = code * 16 + (value > 15 ? value - 6 : value);
      ++at_;
    }
    return code;
  }

  static void utf8(std::string &text, std::uint32_t code) {
    auto put = [&](std::uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xe0 | code >> 12);
      } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 63));
      }
      put(0x80 | (code >> 6 & 63));
    }
    put(0x80 | (code & 63));
  }

  const char *begin_, *at_, *end_;
  std::string why_;
};

/// Why these tensors are not the bytes behind the header, without gaps and surplus; "" if they are.
inline std::string misplaced(const std::map<std::string, Stored> &tensors, std::size_t bytes) {
  std::vector<const std::pair<const std::string, Stored> *> order;
  for (const auto &one : tensors) order.push_back(&one);
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    return std::make_pair(a->second.begin, a->second.end) < std::make_pair(b->second.begin, b->second.end);
  });
  std::size_t next = 0;
  for (const auto *one : order) {
    const Stored &tensor = one->second;
    // Saturated: no file has as much.
    std::size_t size = stored_size(tensor.dtype);
    for (std::size_t dim : tensor.dims) {
      size = dim && size > std::numeric_limits<std::size_t>::max() / dim ? std::numeric_limits<std::size_t>::max() : size * dim;
    }
    if (tensor.begin != next || tensor.end < tensor.begin || tensor.end - tensor.begin != size) {
      return "the tensor '" + one->first + "' of " + std::to_string(size) + " bytes has offsets [" +
             std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]; " + std::to_string(next) + " is the next";
    }
    next = tensor.end;
  }
  if (next == bytes) return "";
  return "the tensors have " + std::to_string(next) + " bytes and the file " + std::to_string(bytes) + " for them";
}

}  // namespace detail
}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
