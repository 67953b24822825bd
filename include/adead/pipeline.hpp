// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
#ifndef ADEAD_PIPELINE_HPP
#define ADEAD_PIPELINE_HPP

#include <adead/recorder.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Records operations and runs them as a whole: docs/pipelines.md. Each method takes the previous result. The first
/// names all operands, or follows begin() or input(). After an error, methods do nothing, and execute() or
/// compile() returns it. One thread at a time may use it.
class Pipeline : public Recorder {
 public:
  explicit Pipeline(detail::Shared context) : Recorder(std::move(context)) {}

  /// Continues with a tensor or an earlier value.
  Pipeline &begin(const PipelineOperand &operand) { return Recorder::begin(operand), *this; }
  /// Continues with a tensor that is passed at each run.
  Pipeline &input(DType dtype, Array<std::size_t> dims) { return Recorder::input(dtype, dims), *this; }
  /// Reshapes the value.
  Pipeline &reshape(Array<std::size_t> dims) { return Recorder::reshape(dims), *this; }
  /// Makes the value an output. Compiled::run_all returns all outputs.
  Pipeline &output() { return Recorder::output(), *this; }
  /// Calls a function when gradients() records the gradient of the current value. The gradient is then this pipeline's
  /// current value, and the value that the function leaves takes its place. The pipeline must not move meanwhile.
  Pipeline &hook(std::function<void(Pipeline &)> function) {
    Recorder::hook([function = std::move(function)](Recorder &self) { function(static_cast<Pipeline &>(self)); });
    return *this;
  }
  /// Records any operation, with all operands in its order; Value() is an absent one. Needed for an optional
  /// operand that is itself computed.
  Pipeline &op(Op what, Array<PipelineOperand> operands, const Attrs &attrs = {}) {
    return Recorder::op(what, operands, attrs), *this;
  }
  /// Adds a row to a matrix product, as a part of it.
  Pipeline &bias(const PipelineOperand &row) { return add(row); }

  /// `alpha*(a*b) + beta*c + bias`, then an activation.
  Pipeline &matmul(const PipelineOperand &b, const MatmulOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::matmul, "trans_a", options.trans_a);
    attrs.give(status, Op::matmul, "trans_b", options.trans_b);
    attrs.give(status, Op::matmul, "alpha", options.alpha);
    attrs.give(status, Op::matmul, "beta", options.beta);
    attrs.give(status, Op::matmul, "activation", options.activation);
    attrs.give(status, Op::matmul, "precision", options.precision);
    return then(status, Op::matmul, attrs, {of(b), of(options.c), of(options.bias)}), *this;
  }
  Pipeline &matmul(const PipelineOperand &a, const PipelineOperand &b, const MatmulOptions &options = {}) {
    return begin(a).matmul(b, options);
  }

  /// The inner product of two vectors.
  Pipeline &dot(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::dot, {}, {of(b)}), *this;
  }
  Pipeline &dot(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).dot(b);
  }

  /// `a + b`.
  Pipeline &add(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::add, {}, {of(b)}), *this;
  }
  Pipeline &add(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).add(b);
  }

  /// `a - b`.
  Pipeline &sub(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::sub, {}, {of(b)}), *this;
  }
  Pipeline &sub(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).sub(b);
  }

  /// `a*b`, element by element.
  Pipeline &mul(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::mul, {}, {of(b)}), *this;
  }
  Pipeline &mul(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).mul(b);
  }

  /// `a / b`.
  Pipeline &div(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::div, {}, {of(b)}), *this;
  }
  Pipeline &div(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).div(b);
  }

  /// `x*alpha`.
  Pipeline &scale(const ScaleOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::scale, "alpha", options.alpha);
    return then(status, Op::scale, attrs, {}), *this;
  }
  Pipeline &scale(const PipelineOperand &x, const ScaleOptions &options = {}) {
    return begin(x).scale(options);
  }

  /// `-x`.
  Pipeline &neg() {
    return then(ADEAD_OK, Op::neg, {}, {}), *this;
  }
  Pipeline &neg(const PipelineOperand &x) {
    return begin(x).neg();
  }

  /// `|x|`.
  Pipeline &abs() {
    return then(ADEAD_OK, Op::abs, {}, {}), *this;
  }
  Pipeline &abs(const PipelineOperand &x) {
    return begin(x).abs();
  }

  /// `e^x`.
  Pipeline &exp() {
    return then(ADEAD_OK, Op::exp, {}, {}), *this;
  }
  Pipeline &exp(const PipelineOperand &x) {
    return begin(x).exp();
  }

  /// The natural logarithm; NaN if x < 0.
  Pipeline &log() {
    return then(ADEAD_OK, Op::log, {}, {}), *this;
  }
  Pipeline &log(const PipelineOperand &x) {
    return begin(x).log();
  }

  /// The square root; NaN if x < 0.
  Pipeline &sqrt() {
    return then(ADEAD_OK, Op::sqrt, {}, {}), *this;
  }
  Pipeline &sqrt(const PipelineOperand &x) {
    return begin(x).sqrt();
  }

  /// `1 / sqrt(x)`.
  Pipeline &rsqrt() {
    return then(ADEAD_OK, Op::rsqrt, {}, {}), *this;
  }
  Pipeline &rsqrt(const PipelineOperand &x) {
    return begin(x).rsqrt();
  }

  /// `max(x, 0)`; NaN stays NaN.
  Pipeline &relu() {
    return then(ADEAD_OK, Op::relu, {}, {}), *this;
  }
  Pipeline &relu(const PipelineOperand &x) {
    return begin(x).relu();
  }

  /// `1 / (1 + e^-x)`.
  Pipeline &sigmoid() {
    return then(ADEAD_OK, Op::sigmoid, {}, {}), *this;
  }
  Pipeline &sigmoid(const PipelineOperand &x) {
    return begin(x).sigmoid();
  }

  /// The hyperbolic tangent.
  Pipeline &tanh() {
    return then(ADEAD_OK, Op::tanh, {}, {}), *this;
  }
  Pipeline &tanh(const PipelineOperand &x) {
    return begin(x).tanh();
  }

  /// The Gaussian error linear unit, with erf or tanh.
  Pipeline &gelu(const GeluOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::gelu, "form", options.form);
    return then(status, Op::gelu, attrs, {}), *this;
  }
  Pipeline &gelu(const PipelineOperand &x, const GeluOptions &options = {}) {
    return begin(x).gelu(options);
  }

  /// `x*sigmoid(x)`.
  Pipeline &silu() {
    return then(ADEAD_OK, Op::silu, {}, {}), *this;
  }
  Pipeline &silu(const PipelineOperand &x) {
    return begin(x).silu();
  }

  /// `e^x` divided by its sum along an axis.
  Pipeline &softmax(const SoftmaxOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::softmax, "axis", options.axis);
    return then(status, Op::softmax, attrs, {}), *this;
  }
  Pipeline &softmax(const PipelineOperand &x, const SoftmaxOptions &options = {}) {
    return begin(x).softmax(options);
  }

  /// The sum over some or all axes; +0 for no elements.
  Pipeline &sum(const SumOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::sum, "axis", options.axis);
    attrs.give(status, Op::sum, "keepdim", options.keepdim);
    attrs.give(status, Op::sum, "axes", options.axes);
    return then(status, Op::sum, attrs, {}), *this;
  }
  Pipeline &sum(const PipelineOperand &x, const SumOptions &options = {}) {
    return begin(x).sum(options);
  }

  /// The mean over some or all axes; NaN for no elements.
  Pipeline &mean(const MeanOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::mean, "axis", options.axis);
    attrs.give(status, Op::mean, "keepdim", options.keepdim);
    attrs.give(status, Op::mean, "axes", options.axes);
    return then(status, Op::mean, attrs, {}), *this;
  }
  Pipeline &mean(const PipelineOperand &x, const MeanOptions &options = {}) {
    return begin(x).mean(options);
  }

  /// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  Pipeline &max(const MaxOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::max, "axis", options.axis);
    attrs.give(status, Op::max, "keepdim", options.keepdim);
    attrs.give(status, Op::max, "axes", options.axes);
    return then(status, Op::max, attrs, {}), *this;
  }
  Pipeline &max(const PipelineOperand &x, const MaxOptions &options = {}) {
    return begin(x).max(options);
  }

  /// The index of the first maximum, i64. `invalid_argument` for no elements.
  Pipeline &argmax(const ArgmaxOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::argmax, "axis", options.axis);
    attrs.give(status, Op::argmax, "keepdim", options.keepdim);
    attrs.give(status, Op::argmax, "dtype", options.dtype);
    return then(status, Op::argmax, attrs, {}), *this;
  }
  Pipeline &argmax(const PipelineOperand &x, const ArgmaxOptions &options = {}) {
    return begin(x).argmax(options);
  }

  /// Normalises mean and variance over the last axis, of x or x + residual.
  Pipeline &layernorm(const LayernormOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::layernorm, "eps", options.eps);
    return then(status, Op::layernorm, attrs, {of(options.gamma), of(options.beta), of(options.residual)}), *this;
  }
  Pipeline &layernorm(const PipelineOperand &x, const LayernormOptions &options = {}) {
    return begin(x).layernorm(options);
  }

  /// Normalises the root mean square over the last axis, of x or x + residual.
  Pipeline &rmsnorm(const RmsnormOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::rmsnorm, "eps", options.eps);
    return then(status, Op::rmsnorm, attrs, {of(options.gamma), of(options.residual)}), *this;
  }
  Pipeline &rmsnorm(const PipelineOperand &x, const RmsnormOptions &options = {}) {
    return begin(x).rmsnorm(options);
  }

  /// Scaled dot-product attention: values weighted by softmax.
  Pipeline &attention(const PipelineOperand &k, const PipelineOperand &v, const AttentionOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::attention, "causal", options.causal);
    attrs.give(status, Op::attention, "scale", options.scale);
    attrs.give(status, Op::attention, "precision", options.precision);
    return then(status, Op::attention, attrs, {of(k), of(v), of(options.mask)}), *this;
  }
  Pipeline &attention(const PipelineOperand &q, const PipelineOperand &k, const PipelineOperand &v, const AttentionOptions &options = {}) {
    return begin(q).attention(k, v, options);
  }

  /// Two matrix products with an activation between them.
  Pipeline &ffn(const PipelineOperand &w1, const PipelineOperand &w2, const FfnOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::ffn, "activation", options.activation);
    attrs.give(status, Op::ffn, "precision", options.precision);
    return then(status, Op::ffn, attrs, {of(w1), of(options.b1), of(w2), of(options.b2)}), *this;
  }
  Pipeline &ffn(const PipelineOperand &x, const PipelineOperand &w1, const PipelineOperand &w2, const FfnOptions &options = {}) {
    return begin(x).ffn(w1, w2, options);
  }

  /// Looks up rows of a table by id.
  Pipeline &embedding(const PipelineOperand &ids) {
    return then(ADEAD_OK, Op::embedding, {}, {of(ids)}), *this;
  }
  Pipeline &embedding(const PipelineOperand &table, const PipelineOperand &ids) {
    return begin(table).embedding(ids);
  }

  /// Permutes the axes.
  Pipeline &transpose(const TransposeOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::transpose, "perm", options.perm);
    return then(status, Op::transpose, attrs, {}), *this;
  }
  Pipeline &transpose(const PipelineOperand &x, const TransposeOptions &options = {}) {
    return begin(x).transpose(options);
  }

  /// Joins tensors along an axis.
  Pipeline &concat(Array<PipelineOperand> x, const ConcatOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::concat, "axis", options.axis);
    std::vector<Value> all;
    for (const PipelineOperand &one : x) all.push_back(of(one));
    return then(status, Op::concat, attrs, all), *this;
  }

  /// Converts to another dtype.
  Pipeline &cast(const CastOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::cast, "dtype", options.dtype);
    return then(status, Op::cast, attrs, {}), *this;
  }
  Pipeline &cast(const PipelineOperand &x, const CastOptions &options = {}) {
    return begin(x).cast(options);
  }

  /// The largest integer <= x.
  Pipeline &floor() {
    return then(ADEAD_OK, Op::floor, {}, {}), *this;
  }
  Pipeline &floor(const PipelineOperand &x) {
    return begin(x).floor();
  }

  /// The nearest integer; ties go to even.
  Pipeline &round() {
    return then(ADEAD_OK, Op::round, {}, {}), *this;
  }
  Pipeline &round(const PipelineOperand &x) {
    return begin(x).round();
  }

  /// The error function.
  Pipeline &erf() {
    return then(ADEAD_OK, Op::erf, {}, {}), *this;
  }
  Pipeline &erf(const PipelineOperand &x) {
    return begin(x).erf();
  }

  /// `minimum(maximum(x, min), max)`; NaN propagates, and -0 < +0.
  Pipeline &clamp(const ClampOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::clamp, "min", options.min);
    attrs.give(status, Op::clamp, "max", options.max);
    return then(status, Op::clamp, attrs, {}), *this;
  }
  Pipeline &clamp(const PipelineOperand &x, const ClampOptions &options = {}) {
    return begin(x).clamp(options);
  }

  /// The larger of a and b; NaN propagates, and -0 < +0.
  Pipeline &maximum(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::maximum, {}, {of(b)}), *this;
  }
  Pipeline &maximum(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).maximum(b);
  }

  /// The smaller of a and b; NaN propagates, and -0 < +0.
  Pipeline &minimum(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::minimum, {}, {of(b)}), *this;
  }
  Pipeline &minimum(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).minimum(b);
  }

  /// The sine of x in radians; NaN if x is infinite.
  Pipeline &sin() {
    return then(ADEAD_OK, Op::sin, {}, {}), *this;
  }
  Pipeline &sin(const PipelineOperand &x) {
    return begin(x).sin();
  }

  /// The cosine of x in radians; NaN if x is infinite.
  Pipeline &cos() {
    return then(ADEAD_OK, Op::cos, {}, {}), *this;
  }
  Pipeline &cos(const PipelineOperand &x) {
    return begin(x).cos();
  }

  /// `log(1 + x)`, also accurate near 0; NaN if x < -1.
  Pipeline &log1p() {
    return then(ADEAD_OK, Op::log1p, {}, {}), *this;
  }
  Pipeline &log1p(const PipelineOperand &x) {
    return begin(x).log1p();
  }

  /// `e^x - 1`, also accurate near 0.
  Pipeline &expm1() {
    return then(ADEAD_OK, Op::expm1, {}, {}), *this;
  }
  Pipeline &expm1(const PipelineOperand &x) {
    return begin(x).expm1();
  }

  /// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
  Pipeline &pow(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::pow, {}, {of(b)}), *this;
  }
  Pipeline &pow(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).pow(b);
  }

  /// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  Pipeline &min(const MinOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::min, "axis", options.axis);
    attrs.give(status, Op::min, "keepdim", options.keepdim);
    attrs.give(status, Op::min, "axes", options.axes);
    return then(status, Op::min, attrs, {}), *this;
  }
  Pipeline &min(const PipelineOperand &x, const MinOptions &options = {}) {
    return begin(x).min(options);
  }

  /// The index of the first minimum, i64. `invalid_argument` for no elements.
  Pipeline &argmin(const ArgminOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::argmin, "axis", options.axis);
    attrs.give(status, Op::argmin, "keepdim", options.keepdim);
    attrs.give(status, Op::argmin, "dtype", options.dtype);
    return then(status, Op::argmin, attrs, {}), *this;
  }
  Pipeline &argmin(const PipelineOperand &x, const ArgminOptions &options = {}) {
    return begin(x).argmin(options);
  }

  /// The product over some or all axes; 1 for no elements.
  Pipeline &prod(const ProdOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::prod, "axis", options.axis);
    attrs.give(status, Op::prod, "keepdim", options.keepdim);
    attrs.give(status, Op::prod, "axes", options.axes);
    return then(status, Op::prod, attrs, {}), *this;
  }
  Pipeline &prod(const PipelineOperand &x, const ProdOptions &options = {}) {
    return begin(x).prod(options);
  }

  /// Slices every axis from a start to a stop, in steps.
  Pipeline &slice(const SliceOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::slice, "start", options.start);
    attrs.give(status, Op::slice, "stop", options.stop);
    attrs.give(status, Op::slice, "step", options.step);
    return then(status, Op::slice, attrs, {}), *this;
  }
  Pipeline &slice(const PipelineOperand &x, const SliceOptions &options = {}) {
    return begin(x).slice(options);
  }

  /// Pads every axis with a value: before, after and between its elements.
  Pipeline &pad(const PipelineOperand &value, const PadOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::pad, "before", options.before);
    attrs.give(status, Op::pad, "after", options.after);
    attrs.give(status, Op::pad, "step", options.step);
    return then(status, Op::pad, attrs, {of(value)}), *this;
  }
  Pipeline &pad(const PipelineOperand &x, const PipelineOperand &value, const PadOptions &options = {}) {
    return begin(x).pad(value, options);
  }

  /// Gathers elements along an axis by index.
  Pipeline &gather(const PipelineOperand &ids, const GatherOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::gather, "axis", options.axis);
    return then(status, Op::gather, attrs, {of(ids)}), *this;
  }
  Pipeline &gather(const PipelineOperand &x, const PipelineOperand &ids, const GatherOptions &options = {}) {
    return begin(x).gather(ids, options);
  }

  /// Rotates pairs of elements of the last axis by angles.
  Pipeline &rope(const PipelineOperand &cos, const PipelineOperand &sin, const RopeOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::rope, "interleaved", options.interleaved);
    return then(status, Op::rope, attrs, {of(cos), of(sin)}), *this;
  }
  Pipeline &rope(const PipelineOperand &x, const PipelineOperand &cos, const PipelineOperand &sin, const RopeOptions &options = {}) {
    return begin(x).rope(cos, sin, options);
  }

  /// The cumulative sums along an axis.
  Pipeline &cumsum(const CumsumOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::cumsum, "axis", options.axis);
    return then(status, Op::cumsum, attrs, {}), *this;
  }
  Pipeline &cumsum(const PipelineOperand &x, const CumsumOptions &options = {}) {
    return begin(x).cumsum(options);
  }

  /// The k greatest elements along an axis, greatest first; ties go to the lower index.
  Pipeline &topk(const TopkOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::topk, "k", options.k);
    attrs.give(status, Op::topk, "axis", options.axis);
    return then(status, Op::topk, attrs, {}), *this;
  }
  Pipeline &topk(const PipelineOperand &x, const TopkOptions &options = {}) {
    return begin(x).topk(options);
  }

  /// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
  Pipeline &argtopk(const ArgtopkOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::argtopk, "k", options.k);
    attrs.give(status, Op::argtopk, "axis", options.axis);
    attrs.give(status, Op::argtopk, "dtype", options.dtype);
    return then(status, Op::argtopk, attrs, {}), *this;
  }
  Pipeline &argtopk(const PipelineOperand &x, const ArgtopkOptions &options = {}) {
    return begin(x).argtopk(options);
  }

  /// Whether a equals b; NaN equals nothing, and -0 equals +0.
  Pipeline &equal(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::equal, {}, {of(b)}), *this;
  }
  Pipeline &equal(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).equal(b);
  }

  /// Whether a differs from b; true for NaN.
  Pipeline &not_equal(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::not_equal, {}, {of(b)}), *this;
  }
  Pipeline &not_equal(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).not_equal(b);
  }

  /// Whether `a < b`; false for NaN.
  Pipeline &less(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::less, {}, {of(b)}), *this;
  }
  Pipeline &less(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).less(b);
  }

  /// Whether `a <= b`; false for NaN.
  Pipeline &less_equal(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::less_equal, {}, {of(b)}), *this;
  }
  Pipeline &less_equal(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).less_equal(b);
  }

  /// Whether `a > b`; false for NaN.
  Pipeline &greater(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::greater, {}, {of(b)}), *this;
  }
  Pipeline &greater(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).greater(b);
  }

  /// Whether `a >= b`; false for NaN.
  Pipeline &greater_equal(const PipelineOperand &b) {
    return then(ADEAD_OK, Op::greater_equal, {}, {of(b)}), *this;
  }
  Pipeline &greater_equal(const PipelineOperand &a, const PipelineOperand &b) {
    return begin(a).greater_equal(b);
  }

  /// Selects from a where the condition is true, and from b elsewhere.
  Pipeline &where(const PipelineOperand &a, const PipelineOperand &b) {
    return then(ADEAD_OK, Op::where, {}, {of(a), of(b)}), *this;
  }
  Pipeline &where(const PipelineOperand &condition, const PipelineOperand &a, const PipelineOperand &b) {
    return begin(condition).where(a, b);
  }

  /// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
  Pipeline &quantized_matmul(const PipelineOperand &w, const QuantizedMatmulOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::quantized_matmul, "format", options.format);
    return then(status, Op::quantized_matmul, attrs, {of(w)}), *this;
  }
  Pipeline &quantized_matmul(const PipelineOperand &x, const PipelineOperand &w, const QuantizedMatmulOptions &options = {}) {
    return begin(x).quantized_matmul(w, options);
  }

  /// Converts quantised blocks to f32.
  Pipeline &dequantize(const DequantizeOptions &options = {}) {
    Attrs attrs;
    adead_status status = ADEAD_OK;
    attrs.give(status, Op::dequantize, "format", options.format);
    return then(status, Op::dequantize, attrs, {}), *this;
  }
  Pipeline &dequantize(const PipelineOperand &w, const DequantizeOptions &options = {}) {
    return begin(w).dequantize(options);
  }
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
