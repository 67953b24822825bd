// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
#ifndef ADEAD_OPERATIONS_HPP
#define ADEAD_OPERATIONS_HPP

#include <adead/operators.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Every operation, as a method of Context. docs/operations.md has shapes, attributes and errors.
class Operations {
 public:
  /// `alpha*(a*b) + beta*c + bias`, then an activation.
  Returned<Tensor> matmul(const Tensor &a, const Tensor &b, const MatmulOptions &options = {}) const;
  /// The inner product of two vectors.
  Returned<Tensor> dot(const Tensor &a, const Tensor &b) const;
  /// `a + b`.
  Returned<Tensor> add(const Tensor &a, const Tensor &b) const;
  /// `a - b`.
  Returned<Tensor> sub(const Tensor &a, const Tensor &b) const;
  /// `a*b`, element by element.
  Returned<Tensor> mul(const Tensor &a, const Tensor &b) const;
  /// `a / b`.
  Returned<Tensor> div(const Tensor &a, const Tensor &b) const;
  /// `x*alpha`.
  Returned<Tensor> scale(const Tensor &x, const ScaleOptions &options = {}) const;
  /// `-x`.
  Returned<Tensor> neg(const Tensor &x) const;
  /// `|x|`.
  Returned<Tensor> abs(const Tensor &x) const;
  /// `e^x`.
  Returned<Tensor> exp(const Tensor &x) const;
  /// The natural logarithm; NaN if x < 0.
  Returned<Tensor> log(const Tensor &x) const;
  /// The square root; NaN if x < 0.
  Returned<Tensor> sqrt(const Tensor &x) const;
  /// `1 / sqrt(x)`.
  Returned<Tensor> rsqrt(const Tensor &x) const;
  /// `max(x, 0)`; NaN stays NaN.
  Returned<Tensor> relu(const Tensor &x) const;
  /// `1 / (1 + e^-x)`.
  Returned<Tensor> sigmoid(const Tensor &x) const;
  /// The hyperbolic tangent.
  Returned<Tensor> tanh(const Tensor &x) const;
  /// The Gaussian error linear unit, with erf or tanh.
  Returned<Tensor> gelu(const Tensor &x, const GeluOptions &options = {}) const;
  /// `x*sigmoid(x)`.
  Returned<Tensor> silu(const Tensor &x) const;
  /// `e^x` divided by its sum along an axis.
  Returned<Tensor> softmax(const Tensor &x, const SoftmaxOptions &options = {}) const;
  /// The sum over some or all axes; +0 for no elements.
  Returned<Tensor> sum(const Tensor &x, const SumOptions &options = {}) const;
  /// The mean over some or all axes; NaN for no elements.
  Returned<Tensor> mean(const Tensor &x, const MeanOptions &options = {}) const;
  /// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  Returned<Tensor> max(const Tensor &x, const MaxOptions &options = {}) const;
  /// The index of the first maximum, i64. `invalid_argument` for no elements.
  Returned<Tensor> argmax(const Tensor &x, const ArgmaxOptions &options = {}) const;
  /// Normalises mean and variance over the last axis, of x or x + residual.
  Returned<Tensor> layernorm(const Tensor &x, const LayernormOptions &options = {}) const;
  /// Normalises the root mean square over the last axis, of x or x + residual.
  Returned<Tensor> rmsnorm(const Tensor &x, const RmsnormOptions &options = {}) const;
  /// Scaled dot-product attention: values weighted by softmax.
  Returned<Tensor> attention(const Tensor &q, const Tensor &k, const Tensor &v, const AttentionOptions &options = {}) const;
  /// Two matrix products with an activation between them.
  Returned<Tensor> ffn(const Tensor &x, const Tensor &w1, const Tensor &w2, const FfnOptions &options = {}) const;
  /// Looks up rows of a table by id.
  Returned<Tensor> embedding(const Tensor &table, const Tensor &ids) const;
  /// Permutes the axes.
  Returned<Tensor> transpose(const Tensor &x, const TransposeOptions &options = {}) const;
  /// Joins tensors along an axis.
  Returned<Tensor> concat(Array<std::reference_wrapper<const Tensor>> x, const ConcatOptions &options = {}) const;
  /// Converts to another dtype.
  Returned<Tensor> cast(const Tensor &x, const CastOptions &options = {}) const;
  /// The largest integer <= x.
  Returned<Tensor> floor(const Tensor &x) const;
  /// The nearest integer; ties go to even.
  Returned<Tensor> round(const Tensor &x) const;
  /// The error function.
  Returned<Tensor> erf(const Tensor &x) const;
  /// `minimum(maximum(x, min), max)`; NaN propagates, and -0 < +0.
  Returned<Tensor> clamp(const Tensor &x, const ClampOptions &options = {}) const;
  /// The larger of a and b; NaN propagates, and -0 < +0.
  Returned<Tensor> maximum(const Tensor &a, const Tensor &b) const;
  /// The smaller of a and b; NaN propagates, and -0 < +0.
  Returned<Tensor> minimum(const Tensor &a, const Tensor &b) const;
  /// The sine of x in radians; NaN if x is infinite.
  Returned<Tensor> sin(const Tensor &x) const;
  /// The cosine of x in radians; NaN if x is infinite.
  Returned<Tensor> cos(const Tensor &x) const;
  /// `log(1 + x)`, also accurate near 0; NaN if x < -1.
  Returned<Tensor> log1p(const Tensor &x) const;
  /// `e^x - 1`, also accurate near 0.
  Returned<Tensor> expm1(const Tensor &x) const;
  /// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
  Returned<Tensor> pow(const Tensor &a, const Tensor &b) const;
  /// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  Returned<Tensor> min(const Tensor &x, const MinOptions &options = {}) const;
  /// The index of the first minimum, i64. `invalid_argument` for no elements.
  Returned<Tensor> argmin(const Tensor &x, const ArgminOptions &options = {}) const;
  /// The product over some or all axes; 1 for no elements.
  Returned<Tensor> prod(const Tensor &x, const ProdOptions &options = {}) const;
  /// Slices every axis from a start to a stop, in steps.
  Returned<Tensor> slice(const Tensor &x, const SliceOptions &options = {}) const;
  /// Pads every axis with a value: before, after and between its elements.
  Returned<Tensor> pad(const Tensor &x, const Tensor &value, const PadOptions &options = {}) const;
  /// Gathers elements along an axis by index.
  Returned<Tensor> gather(const Tensor &x, const Tensor &ids, const GatherOptions &options = {}) const;
  /// Rotates pairs of elements of the last axis by angles.
  Returned<Tensor> rope(const Tensor &x, const Tensor &cos, const Tensor &sin, const RopeOptions &options = {}) const;
  /// The cumulative sums along an axis.
  Returned<Tensor> cumsum(const Tensor &x, const CumsumOptions &options = {}) const;
  /// The k greatest elements along an axis, greatest first; ties go to the lower index.
  Returned<Tensor> topk(const Tensor &x, const TopkOptions &options = {}) const;
  /// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
  Returned<Tensor> argtopk(const Tensor &x, const ArgtopkOptions &options = {}) const;
  /// Whether a equals b; NaN equals nothing, and -0 equals +0.
  Returned<Tensor> equal(const Tensor &a, const Tensor &b) const;
  /// Whether a differs from b; true for NaN.
  Returned<Tensor> not_equal(const Tensor &a, const Tensor &b) const;
  /// Whether `a < b`; false for NaN.
  Returned<Tensor> less(const Tensor &a, const Tensor &b) const;
  /// Whether `a <= b`; false for NaN.
  Returned<Tensor> less_equal(const Tensor &a, const Tensor &b) const;
  /// Whether `a > b`; false for NaN.
  Returned<Tensor> greater(const Tensor &a, const Tensor &b) const;
  /// Whether `a >= b`; false for NaN.
  Returned<Tensor> greater_equal(const Tensor &a, const Tensor &b) const;
  /// Selects from a where the condition is true, and from b elsewhere.
  Returned<Tensor> where(const Tensor &condition, const Tensor &a, const Tensor &b) const;
  /// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
  Returned<Tensor> quantized_matmul(const Tensor &x, const Tensor &w, const QuantizedMatmulOptions &options = {}) const;
  /// Converts quantised blocks to f32.
  Returned<Tensor> dequantize(const Tensor &w, const DequantizeOptions &options = {}) const;

  /// Runs any operation. NULL is an absent optional operand.
  Returned<Tensor> run(Op op, Array<const Tensor *> operands, const Attrs &attrs = {}) const {
    std::vector<const adead_tensor *> handles;
    for (const Tensor *tensor : operands) handles.push_back(detail::raw(tensor));
    return run(ADEAD_OK, op, attrs, handles.data(), handles.size());
  }

 protected:
  friend class TensorMethods;
  explicit Operations(detail::Shared context) noexcept : context_(std::move(context)) {}
  Returned<Tensor> run(adead_status status, Op op, const Attrs &attrs, const adead_tensor *const *operands,
                       std::size_t count) const {
    adead_tensor *out = nullptr;
    if (!status) status = adead_op_run(context_.get(), static_cast<adead_op>(op), operands, count, attrs.get(), &out);
    return detail::done(status, Tensor(out, context_));
  }
  detail::Shared context_;
};

inline Returned<Tensor> Operations::matmul(const Tensor &a, const Tensor &b, const MatmulOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b), detail::raw(options.c), detail::raw(options.bias)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::matmul, "trans_a", options.trans_a);
  attrs.give(status, Op::matmul, "trans_b", options.trans_b);
  attrs.give(status, Op::matmul, "alpha", options.alpha);
  attrs.give(status, Op::matmul, "beta", options.beta);
  attrs.give(status, Op::matmul, "activation", options.activation);
  attrs.give(status, Op::matmul, "precision", options.precision);
  return run(status, Op::matmul, attrs, operands, 4);
}

inline Returned<Tensor> Operations::dot(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::dot, {}, operands, 2);
}

inline Returned<Tensor> Operations::add(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::add, {}, operands, 2);
}

inline Returned<Tensor> Operations::sub(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::sub, {}, operands, 2);
}

inline Returned<Tensor> Operations::mul(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::mul, {}, operands, 2);
}

inline Returned<Tensor> Operations::div(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::div, {}, operands, 2);
}

inline Returned<Tensor> Operations::scale(const Tensor &x, const ScaleOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::scale, "alpha", options.alpha);
  return run(status, Op::scale, attrs, operands, 1);
}

inline Returned<Tensor> Operations::neg(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::neg, {}, operands, 1);
}

inline Returned<Tensor> Operations::abs(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::abs, {}, operands, 1);
}

inline Returned<Tensor> Operations::exp(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::exp, {}, operands, 1);
}

inline Returned<Tensor> Operations::log(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::log, {}, operands, 1);
}

inline Returned<Tensor> Operations::sqrt(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::sqrt, {}, operands, 1);
}

inline Returned<Tensor> Operations::rsqrt(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::rsqrt, {}, operands, 1);
}

inline Returned<Tensor> Operations::relu(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::relu, {}, operands, 1);
}

inline Returned<Tensor> Operations::sigmoid(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::sigmoid, {}, operands, 1);
}

inline Returned<Tensor> Operations::tanh(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::tanh, {}, operands, 1);
}

inline Returned<Tensor> Operations::gelu(const Tensor &x, const GeluOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::gelu, "form", options.form);
  return run(status, Op::gelu, attrs, operands, 1);
}

inline Returned<Tensor> Operations::silu(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::silu, {}, operands, 1);
}

inline Returned<Tensor> Operations::softmax(const Tensor &x, const SoftmaxOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::softmax, "axis", options.axis);
  return run(status, Op::softmax, attrs, operands, 1);
}

inline Returned<Tensor> Operations::sum(const Tensor &x, const SumOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::sum, "axis", options.axis);
  attrs.give(status, Op::sum, "keepdim", options.keepdim);
  attrs.give(status, Op::sum, "axes", options.axes);
  return run(status, Op::sum, attrs, operands, 1);
}

inline Returned<Tensor> Operations::mean(const Tensor &x, const MeanOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::mean, "axis", options.axis);
  attrs.give(status, Op::mean, "keepdim", options.keepdim);
  attrs.give(status, Op::mean, "axes", options.axes);
  return run(status, Op::mean, attrs, operands, 1);
}

inline Returned<Tensor> Operations::max(const Tensor &x, const MaxOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::max, "axis", options.axis);
  attrs.give(status, Op::max, "keepdim", options.keepdim);
  attrs.give(status, Op::max, "axes", options.axes);
  return run(status, Op::max, attrs, operands, 1);
}

inline Returned<Tensor> Operations::argmax(const Tensor &x, const ArgmaxOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::argmax, "axis", options.axis);
  attrs.give(status, Op::argmax, "keepdim", options.keepdim);
  attrs.give(status, Op::argmax, "dtype", options.dtype);
  return run(status, Op::argmax, attrs, operands, 1);
}

inline Returned<Tensor> Operations::layernorm(const Tensor &x, const LayernormOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x), detail::raw(options.gamma), detail::raw(options.beta), detail::raw(options.residual)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::layernorm, "eps", options.eps);
  return run(status, Op::layernorm, attrs, operands, 4);
}

inline Returned<Tensor> Operations::rmsnorm(const Tensor &x, const RmsnormOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x), detail::raw(options.gamma), detail::raw(options.residual)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::rmsnorm, "eps", options.eps);
  return run(status, Op::rmsnorm, attrs, operands, 3);
}

inline Returned<Tensor> Operations::attention(const Tensor &q, const Tensor &k, const Tensor &v, const AttentionOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&q), detail::raw(&k), detail::raw(&v), detail::raw(options.mask)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::attention, "causal", options.causal);
  attrs.give(status, Op::attention, "scale", options.scale);
  attrs.give(status, Op::attention, "precision", options.precision);
  return run(status, Op::attention, attrs, operands, 4);
}

inline Returned<Tensor> Operations::ffn(const Tensor &x, const Tensor &w1, const Tensor &w2, const FfnOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x), detail::raw(&w1), detail::raw(options.b1), detail::raw(&w2), detail::raw(options.b2)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::ffn, "activation", options.activation);
  attrs.give(status, Op::ffn, "precision", options.precision);
  return run(status, Op::ffn, attrs, operands, 5);
}

inline Returned<Tensor> Operations::embedding(const Tensor &table, const Tensor &ids) const {
  const adead_tensor *operands[] = {detail::raw(&table), detail::raw(&ids)};
  return run(ADEAD_OK, Op::embedding, {}, operands, 2);
}

inline Returned<Tensor> Operations::transpose(const Tensor &x, const TransposeOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::transpose, "perm", options.perm);
  return run(status, Op::transpose, attrs, operands, 1);
}

inline Returned<Tensor> Operations::concat(Array<std::reference_wrapper<const Tensor>> x, const ConcatOptions &options) const {
  std::vector<const adead_tensor *> operands;
  for (const Tensor &one : x) operands.push_back(detail::raw(&one));
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::concat, "axis", options.axis);
  return run(status, Op::concat, attrs, operands.data(), operands.size());
}

inline Returned<Tensor> Operations::cast(const Tensor &x, const CastOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::cast, "dtype", options.dtype);
  return run(status, Op::cast, attrs, operands, 1);
}

inline Returned<Tensor> Operations::floor(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::floor, {}, operands, 1);
}

inline Returned<Tensor> Operations::round(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::round, {}, operands, 1);
}

inline Returned<Tensor> Operations::erf(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::erf, {}, operands, 1);
}

inline Returned<Tensor> Operations::clamp(const Tensor &x, const ClampOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::clamp, "min", options.min);
  attrs.give(status, Op::clamp, "max", options.max);
  return run(status, Op::clamp, attrs, operands, 1);
}

inline Returned<Tensor> Operations::maximum(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::maximum, {}, operands, 2);
}

inline Returned<Tensor> Operations::minimum(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::minimum, {}, operands, 2);
}

inline Returned<Tensor> Operations::sin(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::sin, {}, operands, 1);
}

inline Returned<Tensor> Operations::cos(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::cos, {}, operands, 1);
}

inline Returned<Tensor> Operations::log1p(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::log1p, {}, operands, 1);
}

inline Returned<Tensor> Operations::expm1(const Tensor &x) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  return run(ADEAD_OK, Op::expm1, {}, operands, 1);
}

inline Returned<Tensor> Operations::pow(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::pow, {}, operands, 2);
}

inline Returned<Tensor> Operations::min(const Tensor &x, const MinOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::min, "axis", options.axis);
  attrs.give(status, Op::min, "keepdim", options.keepdim);
  attrs.give(status, Op::min, "axes", options.axes);
  return run(status, Op::min, attrs, operands, 1);
}

inline Returned<Tensor> Operations::argmin(const Tensor &x, const ArgminOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::argmin, "axis", options.axis);
  attrs.give(status, Op::argmin, "keepdim", options.keepdim);
  attrs.give(status, Op::argmin, "dtype", options.dtype);
  return run(status, Op::argmin, attrs, operands, 1);
}

inline Returned<Tensor> Operations::prod(const Tensor &x, const ProdOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::prod, "axis", options.axis);
  attrs.give(status, Op::prod, "keepdim", options.keepdim);
  attrs.give(status, Op::prod, "axes", options.axes);
  return run(status, Op::prod, attrs, operands, 1);
}

inline Returned<Tensor> Operations::slice(const Tensor &x, const SliceOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::slice, "start", options.start);
  attrs.give(status, Op::slice, "stop", options.stop);
  attrs.give(status, Op::slice, "step", options.step);
  return run(status, Op::slice, attrs, operands, 1);
}

inline Returned<Tensor> Operations::pad(const Tensor &x, const Tensor &value, const PadOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x), detail::raw(&value)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::pad, "before", options.before);
  attrs.give(status, Op::pad, "after", options.after);
  attrs.give(status, Op::pad, "step", options.step);
  return run(status, Op::pad, attrs, operands, 2);
}

inline Returned<Tensor> Operations::gather(const Tensor &x, const Tensor &ids, const GatherOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x), detail::raw(&ids)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::gather, "axis", options.axis);
  return run(status, Op::gather, attrs, operands, 2);
}

inline Returned<Tensor> Operations::rope(const Tensor &x, const Tensor &cos, const Tensor &sin, const RopeOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x), detail::raw(&cos), detail::raw(&sin)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::rope, "interleaved", options.interleaved);
  return run(status, Op::rope, attrs, operands, 3);
}

inline Returned<Tensor> Operations::cumsum(const Tensor &x, const CumsumOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::cumsum, "axis", options.axis);
  return run(status, Op::cumsum, attrs, operands, 1);
}

inline Returned<Tensor> Operations::topk(const Tensor &x, const TopkOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::topk, "k", options.k);
  attrs.give(status, Op::topk, "axis", options.axis);
  return run(status, Op::topk, attrs, operands, 1);
}

inline Returned<Tensor> Operations::argtopk(const Tensor &x, const ArgtopkOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::argtopk, "k", options.k);
  attrs.give(status, Op::argtopk, "axis", options.axis);
  attrs.give(status, Op::argtopk, "dtype", options.dtype);
  return run(status, Op::argtopk, attrs, operands, 1);
}

inline Returned<Tensor> Operations::equal(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::equal, {}, operands, 2);
}

inline Returned<Tensor> Operations::not_equal(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::not_equal, {}, operands, 2);
}

inline Returned<Tensor> Operations::less(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::less, {}, operands, 2);
}

inline Returned<Tensor> Operations::less_equal(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::less_equal, {}, operands, 2);
}

inline Returned<Tensor> Operations::greater(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::greater, {}, operands, 2);
}

inline Returned<Tensor> Operations::greater_equal(const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::greater_equal, {}, operands, 2);
}

inline Returned<Tensor> Operations::where(const Tensor &condition, const Tensor &a, const Tensor &b) const {
  const adead_tensor *operands[] = {detail::raw(&condition), detail::raw(&a), detail::raw(&b)};
  return run(ADEAD_OK, Op::where, {}, operands, 3);
}

inline Returned<Tensor> Operations::quantized_matmul(const Tensor &x, const Tensor &w, const QuantizedMatmulOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&x), detail::raw(&w)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::quantized_matmul, "format", options.format);
  return run(status, Op::quantized_matmul, attrs, operands, 2);
}

inline Returned<Tensor> Operations::dequantize(const Tensor &w, const DequantizeOptions &options) const {
  const adead_tensor *operands[] = {detail::raw(&w)};
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::dequantize, "format", options.format);
  return run(status, Op::dequantize, attrs, operands, 1);
}

inline Returned<Tensor> TensorMethods::matmul(const Tensor &b, const MatmulOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).matmul(self, b, options);
}

inline Returned<Tensor> TensorMethods::dot(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).dot(self, b);
}

inline Returned<Tensor> TensorMethods::add(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).add(self, b);
}
inline Returned<Tensor> TensorMethods::add(double number) const {
  return detail::apply(Op::add, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::sub(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).sub(self, b);
}
inline Returned<Tensor> TensorMethods::sub(double number) const {
  return detail::apply(Op::sub, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::mul(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).mul(self, b);
}
inline Returned<Tensor> TensorMethods::mul(double number) const {
  return detail::apply(Op::mul, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::div(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).div(self, b);
}
inline Returned<Tensor> TensorMethods::div(double number) const {
  return detail::apply(Op::div, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::scale(const ScaleOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).scale(self, options);
}

inline Returned<Tensor> TensorMethods::neg() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).neg(self);
}

inline Returned<Tensor> TensorMethods::abs() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).abs(self);
}

inline Returned<Tensor> TensorMethods::exp() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).exp(self);
}

inline Returned<Tensor> TensorMethods::log() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).log(self);
}

inline Returned<Tensor> TensorMethods::sqrt() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).sqrt(self);
}

inline Returned<Tensor> TensorMethods::rsqrt() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).rsqrt(self);
}

inline Returned<Tensor> TensorMethods::relu() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).relu(self);
}

inline Returned<Tensor> TensorMethods::sigmoid() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).sigmoid(self);
}

inline Returned<Tensor> TensorMethods::tanh() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).tanh(self);
}

inline Returned<Tensor> TensorMethods::gelu(const GeluOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).gelu(self, options);
}

inline Returned<Tensor> TensorMethods::silu() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).silu(self);
}

inline Returned<Tensor> TensorMethods::softmax(const SoftmaxOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).softmax(self, options);
}

inline Returned<Tensor> TensorMethods::sum(const SumOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).sum(self, options);
}

inline Returned<Tensor> TensorMethods::mean(const MeanOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).mean(self, options);
}

inline Returned<Tensor> TensorMethods::max(const MaxOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).max(self, options);
}

inline Returned<Tensor> TensorMethods::argmax(const ArgmaxOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).argmax(self, options);
}

inline Returned<Tensor> TensorMethods::layernorm(const LayernormOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).layernorm(self, options);
}

inline Returned<Tensor> TensorMethods::rmsnorm(const RmsnormOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).rmsnorm(self, options);
}

inline Returned<Tensor> TensorMethods::attention(const Tensor &k, const Tensor &v, const AttentionOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).attention(self, k, v, options);
}

inline Returned<Tensor> TensorMethods::ffn(const Tensor &w1, const Tensor &w2, const FfnOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).ffn(self, w1, w2, options);
}

inline Returned<Tensor> TensorMethods::embedding(const Tensor &ids) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).embedding(self, ids);
}

inline Returned<Tensor> TensorMethods::transpose(const TransposeOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).transpose(self, options);
}

inline Returned<Tensor> TensorMethods::cast(const CastOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).cast(self, options);
}

inline Returned<Tensor> TensorMethods::floor() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).floor(self);
}

inline Returned<Tensor> TensorMethods::round() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).round(self);
}

inline Returned<Tensor> TensorMethods::erf() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).erf(self);
}

inline Returned<Tensor> TensorMethods::clamp(const ClampOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).clamp(self, options);
}

inline Returned<Tensor> TensorMethods::maximum(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).maximum(self, b);
}
inline Returned<Tensor> TensorMethods::maximum(double number) const {
  return detail::apply(Op::maximum, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::minimum(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).minimum(self, b);
}
inline Returned<Tensor> TensorMethods::minimum(double number) const {
  return detail::apply(Op::minimum, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::sin() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).sin(self);
}

inline Returned<Tensor> TensorMethods::cos() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).cos(self);
}

inline Returned<Tensor> TensorMethods::log1p() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).log1p(self);
}

inline Returned<Tensor> TensorMethods::expm1() const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).expm1(self);
}

inline Returned<Tensor> TensorMethods::pow(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).pow(self, b);
}
inline Returned<Tensor> TensorMethods::pow(double number) const {
  return detail::apply(Op::pow, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::min(const MinOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).min(self, options);
}

inline Returned<Tensor> TensorMethods::argmin(const ArgminOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).argmin(self, options);
}

inline Returned<Tensor> TensorMethods::prod(const ProdOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).prod(self, options);
}

inline Returned<Tensor> TensorMethods::slice(const SliceOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).slice(self, options);
}

inline Returned<Tensor> TensorMethods::pad(const Tensor &value, const PadOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).pad(self, value, options);
}

inline Returned<Tensor> TensorMethods::gather(const Tensor &ids, const GatherOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).gather(self, ids, options);
}

inline Returned<Tensor> TensorMethods::rope(const Tensor &cos, const Tensor &sin, const RopeOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).rope(self, cos, sin, options);
}

inline Returned<Tensor> TensorMethods::cumsum(const CumsumOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).cumsum(self, options);
}

inline Returned<Tensor> TensorMethods::topk(const TopkOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).topk(self, options);
}

inline Returned<Tensor> TensorMethods::argtopk(const ArgtopkOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).argtopk(self, options);
}

inline Returned<Tensor> TensorMethods::equal(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).equal(self, b);
}
inline Returned<Tensor> TensorMethods::equal(double number) const {
  return detail::apply(Op::equal, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::not_equal(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).not_equal(self, b);
}
inline Returned<Tensor> TensorMethods::not_equal(double number) const {
  return detail::apply(Op::not_equal, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::less(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).less(self, b);
}
inline Returned<Tensor> TensorMethods::less(double number) const {
  return detail::apply(Op::less, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::less_equal(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).less_equal(self, b);
}
inline Returned<Tensor> TensorMethods::less_equal(double number) const {
  return detail::apply(Op::less_equal, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::greater(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).greater(self, b);
}
inline Returned<Tensor> TensorMethods::greater(double number) const {
  return detail::apply(Op::greater, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::greater_equal(const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).greater_equal(self, b);
}
inline Returned<Tensor> TensorMethods::greater_equal(double number) const {
  return detail::apply(Op::greater_equal, static_cast<const Tensor &>(*this), number);
}

inline Returned<Tensor> TensorMethods::where(const Tensor &a, const Tensor &b) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).where(self, a, b);
}

inline Returned<Tensor> TensorMethods::quantized_matmul(const Tensor &w, const QuantizedMatmulOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).quantized_matmul(self, w, options);
}

inline Returned<Tensor> TensorMethods::dequantize(const DequantizeOptions &options) const {
  const Tensor &self = static_cast<const Tensor &>(*this);
  return Operations(self.context()).dequantize(self, options);
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
