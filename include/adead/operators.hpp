// Operators on tensors. Each computes on the context of its left tensor.
#ifndef ADEAD_OPERATORS_HPP
#define ADEAD_OPERATORS_HPP

#include <adead/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ostream>

namespace adead {
inline namespace ADEAD_HPP_MODE {
namespace detail {

/// Runs an operation of one or two operands on the first operand's context.
inline Returned<Tensor> apply(Op op, Array<const Tensor *> operands, const Attrs &attrs = {}) {
  std::array<const adead_tensor *, 2> all = {};
  for (std::size_t i = 0; i < operands.size(); i++) all[i] = operands.data()[i]->get();
  const Shared &context = operands.data()[0]->context();
  adead_tensor *out = nullptr;
  adead_status status =
      adead_op_run(context.get(), static_cast<adead_op>(op), all.data(), operands.size(), attrs.get(), &out);
  return done(status, Tensor(out, context));
}

/// Returns whether operations compute on a dtype in f32.
inline bool computes_as_f32(adead_dtype dtype) noexcept { return dtype <= ADEAD_DTYPE_BF16; }

/// Runs an operation of a tensor and a number, which is rounded to the tensor's dtype: to f32 first, unless the dtype is f64. A
/// fraction with integers is a `dtype_mismatch`.
inline Returned<Tensor> apply(Op op, const Tensor &x, double number, bool number_first = false) {
  adead_dtype dtype = 0;
  adead_tensor *out = nullptr;
  adead_status status = adead_tensor_dtype(x.get(), &dtype);
  bool is_double = dtype == ADEAD_DTYPE_F64;
  float rounded = static_cast<float>(number);
  if (!status && is_double) {
    status = adead_tensor_create(ADEAD_DTYPE_F64, nullptr, 0, &number, sizeof number, &out);
  } else if (!status) {
    status = adead_tensor_create(ADEAD_DTYPE_F32, nullptr, 0, &rounded, sizeof rounded, &out);
  }
  Tensor scalar(out, x.context());
  bool is_fraction = rounded != std::trunc(rounded) && !computes_as_f32(dtype);
  if (!status && dtype != ADEAD_DTYPE_F32 && !is_double && !is_fraction) {
    Attrs attrs;
    attrs.give(status, Op::cast, "dtype", std::optional<DType>(static_cast<DType>(dtype)));
    const adead_tensor *operand = scalar.get();
    out = nullptr;
    if (!status) status = adead_op_run(x.context().get(), ADEAD_OP_CAST, &operand, 1, attrs.get(), &out);
    scalar = Tensor(out, x.context());
  }
  const adead_tensor *operands[] = {number_first ? scalar.get() : x.get(), number_first ? x.get() : scalar.get()};
  out = nullptr;
  if (!status) status = adead_op_run(x.context().get(), static_cast<adead_op>(op), operands, 2, nullptr, &out);
  return done(status, Tensor(out, x.context()));
}

}  // namespace detail

/// Calls Context::neg.
inline Returned<Tensor> operator-(const Tensor &x) { return detail::apply(Op::neg, {&x}); }

/// Calls Context::scale, or for integers Context::mul.
inline Returned<Tensor> operator*(const Tensor &x, double alpha) {
  Attrs attrs;
  adead_dtype dtype = 0;
  adead_status status = adead_tensor_dtype(x.get(), &dtype);
  if (!status && !detail::computes_as_f32(dtype)) return detail::apply(Op::mul, x, alpha);
  attrs.give(status, Op::scale, "alpha", std::optional<float>(static_cast<float>(alpha)));
  if (status) return detail::failed<Tensor>(status);
  return detail::apply(Op::scale, {&x}, attrs);
}
inline Returned<Tensor> operator*(double alpha, const Tensor &x) { return x * alpha; }

// A number is rounded to the tensor's dtype. Without exceptions, `a += b` returns a Result<void>, and a failure leaves a as it was.
#ifdef ADEAD_NO_EXCEPTIONS
#define ADEAD_ASSIGN(sign, operand)                                    \
  inline Returned<void> operator sign##=(Tensor &a, operand b) {       \
    return (a sign b).and_then([&a](Tensor result) {                   \
      a = std::move(result);                                           \
      return Result<void>();                                           \
    });                                                                \
  }
#else
#define ADEAD_ASSIGN(sign, operand) \
  inline Tensor &operator sign##=(Tensor &a, operand b) { return a = a sign b; }
#endif
#define ADEAD_OPERATOR(sign, op) \
  inline Returned<Tensor> operator sign(const Tensor &a, const Tensor &b) { return detail::apply(Op::op, {&a, &b}); }
#define ADEAD_NUMBERS(sign, op)                                                                                     \
  inline Returned<Tensor> operator sign(const Tensor &x, double number) { return detail::apply(Op::op, x, number); } \
  inline Returned<Tensor> operator sign(double number, const Tensor &x) { return detail::apply(Op::op, x, number, true); }
ADEAD_OPERATOR(+, add)
ADEAD_OPERATOR(-, sub)
ADEAD_OPERATOR(*, mul)
ADEAD_OPERATOR(/, div)
ADEAD_NUMBERS(+, add)
ADEAD_NUMBERS(-, sub)
ADEAD_NUMBERS(/, div)
ADEAD_ASSIGN(+, const Tensor &)
ADEAD_ASSIGN(-, const Tensor &)
ADEAD_ASSIGN(*, const Tensor &)
ADEAD_ASSIGN(/, const Tensor &)
ADEAD_ASSIGN(+, double)
ADEAD_ASSIGN(-, double)
ADEAD_ASSIGN(*, double)
ADEAD_ASSIGN(/, double)
#undef ADEAD_NUMBERS
#undef ADEAD_OPERATOR
#undef ADEAD_ASSIGN

#ifndef ADEAD_NO_EXCEPTIONS
/// Returns whether dtype, shape and every bit are equal: a NaN equals itself, and -0 differs from 0. Context::equal compares
/// elements. Without exceptions there is no `==`, because reading the values may fail.
inline bool operator==(const Tensor &a, const Tensor &b) {
  auto shape = a.shape(), other_shape = b.shape();
  auto bytes = a.bytes(), other = b.bytes();
  return a.dtype() == b.dtype() && std::equal(shape.begin(), shape.end(), other_shape.begin(), other_shape.end()) &&
         bytes.size() == other.size() && (bytes.empty() || !std::memcmp(bytes.data(), other.data(), bytes.size()));
}
#if __cplusplus < 202002L
inline bool operator!=(const Tensor &a, const Tensor &b) { return !(a == b); }
#endif

namespace detail {

template <class T>
void write(std::ostream &out, T value) {
  out << value;
}
/// Writes the fewest digits that read back as the same number, at most 17, unless the stream has a format of its own.
inline void write(std::ostream &out, double value) {
  const std::streamsize by_default = 6, all = 17;
  std::streamsize precision = out.precision(), digits = precision;
  if (precision == by_default && !(out.flags() & std::ios_base::floatfield)) {
    char text[32];
    do {
      std::snprintf(text, sizeof text, "%.*g", static_cast<int>(digits), value);
    } while (std::strtod(text, nullptr) != value && ++digits < all);
  }
  out.precision(digits);
  out << value;
  out.precision(precision);
}

}  // namespace detail

/// Writes dtype, shape and elements: `f32 [2, 2] {1, 2, 3, 4}`. More than 16 elements end in an ellipsis. f64 is written with as
/// many digits as it needs, unless the stream's precision or format was set.
inline std::ostream &operator<<(std::ostream &out, const Tensor &x) {
  const char *between = "";
  out << name(x.dtype()) << " [";
  for (std::size_t dim : x.shape()) out << std::exchange(between, ", ") << dim;
  out << "] {";
  auto write = [&out](auto values) {
    const char *comma = "";
    for (std::size_t i = 0; i < values.size() && i < 16; i++) {
      out << std::exchange(comma, ", ");
      detail::write(out, values[i]);
    }
    if (values.size() > 16) out << ", …";
  };
  switch (x.dtype()) {
    case DType::f32: write(x.data<float>()); break;
    case DType::f64: write(x.data<double>()); break;
    case DType::i32: write(x.data<std::int32_t>()); break;
    case DType::i64: write(x.data<std::int64_t>()); break;
    case DType::u32: write(x.data<std::uint32_t>()); break;
    case DType::f16:
    case DType::bf16: {
      Attrs attrs;
      attrs.set(Op::cast, "dtype", "f32");
      Tensor wide = detail::apply(Op::cast, {&x}, attrs);
      write(wide.data<float>());
      break;
    }
    default: {
      auto bytes = x.bytes();
      std::vector<int> values;
      for (std::size_t i = 0; i < bytes.size() && i < 17; i++) values.push_back(std::to_integer<int>(bytes[i]));
      write(values);
    }
  }
  return out << '}';
}
#endif

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
