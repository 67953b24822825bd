// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
#ifndef ADEAD_OPTIONS_HPP
#define ADEAD_OPTIONS_HPP

#include <adead/result.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

class Tensor;

/// Options of matmul. An option that is left out has the core's default.
struct MatmulOptions {
  std::optional<bool> trans_a = {};
  std::optional<bool> trans_b = {};
  std::optional<float> alpha = {};
  std::optional<float> beta = {};
  std::optional<Activation> activation = {};
  std::optional<Precision> precision = {};
  const Tensor *c = nullptr;
  const Tensor *bias = nullptr;
};

/// Options of scale. An option that is left out has the core's default.
struct ScaleOptions {
  std::optional<float> alpha = {};
};

/// Options of gelu. An option that is left out has the core's default.
struct GeluOptions {
  std::optional<GeluForm> form = {};
};

/// Options of softmax. An option that is left out has the core's default.
struct SoftmaxOptions {
  std::optional<std::int32_t> axis = {};
};

/// Options of sum. An option that is left out has the core's default.
struct SumOptions {
  std::optional<std::int32_t> axis = {};
  std::optional<bool> keepdim = {};
  Permutation axes = {};
};

/// Options of mean. An option that is left out has the core's default.
struct MeanOptions {
  std::optional<std::int32_t> axis = {};
  std::optional<bool> keepdim = {};
  Permutation axes = {};
};

/// Options of max. An option that is left out has the core's default.
struct MaxOptions {
  std::optional<std::int32_t> axis = {};
  std::optional<bool> keepdim = {};
  Permutation axes = {};
};

/// Options of argmax. An option that is left out has the core's default.
struct ArgmaxOptions {
  std::optional<std::int32_t> axis = {};
  std::optional<bool> keepdim = {};
  std::optional<DType> dtype = {};
};

/// Options of layernorm. An option that is left out has the core's default.
struct LayernormOptions {
  std::optional<float> eps = {};
  const Tensor *gamma = nullptr;
  const Tensor *beta = nullptr;
  const Tensor *residual = nullptr;
};

/// Options of rmsnorm. An option that is left out has the core's default.
struct RmsnormOptions {
  std::optional<float> eps = {};
  const Tensor *gamma = nullptr;
  const Tensor *residual = nullptr;
};

/// Options of attention. An option that is left out has the core's default.
struct AttentionOptions {
  std::optional<bool> causal = {};
  std::optional<float> scale = {};
  std::optional<Precision> precision = {};
  const Tensor *mask = nullptr;
};

/// Options of ffn. An option that is left out has the core's default.
struct FfnOptions {
  std::optional<Activation> activation = {};
  std::optional<Precision> precision = {};
  const Tensor *b1 = nullptr;
  const Tensor *b2 = nullptr;
};

/// Options of transpose. An option that is left out has the core's default.
struct TransposeOptions {
  Permutation perm = {};
};

/// Options of concat. An option that is left out has the core's default.
struct ConcatOptions {
  std::optional<std::int32_t> axis = {};
};

/// Options of cast. An option that is left out has the core's default.
struct CastOptions {
  std::optional<DType> dtype = {};
};

/// Options of clamp. An option that is left out has the core's default.
struct ClampOptions {
  std::optional<float> min = {};
  std::optional<float> max = {};
};

/// Options of min. An option that is left out has the core's default.
struct MinOptions {
  std::optional<std::int32_t> axis = {};
  std::optional<bool> keepdim = {};
  Permutation axes = {};
};

/// Options of argmin. An option that is left out has the core's default.
struct ArgminOptions {
  std::optional<std::int32_t> axis = {};
  std::optional<bool> keepdim = {};
  std::optional<DType> dtype = {};
};

/// Options of prod. An option that is left out has the core's default.
struct ProdOptions {
  std::optional<std::int32_t> axis = {};
  std::optional<bool> keepdim = {};
  Permutation axes = {};
};

/// Options of slice. An option that is left out has the core's default.
struct SliceOptions {
  Permutation start = {};
  Permutation stop = {};
  Permutation step = {};
};

/// Options of pad. An option that is left out has the core's default.
struct PadOptions {
  Permutation before = {};
  Permutation after = {};
  Permutation step = {};
};

/// Options of gather. An option that is left out has the core's default.
struct GatherOptions {
  std::optional<std::int32_t> axis = {};
};

/// Options of rope. An option that is left out has the core's default.
struct RopeOptions {
  std::optional<bool> interleaved = {};
};

/// Options of cumsum. An option that is left out has the core's default.
struct CumsumOptions {
  std::optional<std::int32_t> axis = {};
};

/// Options of topk. An option that is left out has the core's default.
struct TopkOptions {
  std::optional<std::int32_t> k = {};
  std::optional<std::int32_t> axis = {};
};

/// Options of argtopk. An option that is left out has the core's default.
struct ArgtopkOptions {
  std::optional<std::int32_t> k = {};
  std::optional<std::int32_t> axis = {};
  std::optional<DType> dtype = {};
};

/// Options of quantized_matmul. An option that is left out has the core's default.
struct QuantizedMatmulOptions {
  std::optional<BlockFormat> format = {};
};

/// Options of dequantize. An option that is left out has the core's default.
struct DequantizeOptions {
  std::optional<BlockFormat> format = {};
};

/// Operations as methods of Tensor, which is the first operand: `x.matmul(w).relu()`. They compute on the tensor's
/// context. A number is rounded to the tensor's dtype. docs/operations.md has shapes, attributes and errors.
class TensorMethods {
 public:
  /// `alpha*(a*b) + beta*c + bias`, then an activation.
  Returned<Tensor> matmul(const Tensor &b, const MatmulOptions &options = {}) const;
  /// The inner product of two vectors.
  Returned<Tensor> dot(const Tensor &b) const;
  /// `a + b`.
  Returned<Tensor> add(const Tensor &b) const;
  Returned<Tensor> add(double number) const;
  /// `a - b`.
  Returned<Tensor> sub(const Tensor &b) const;
  Returned<Tensor> sub(double number) const;
  /// `a*b`, element by element.
  Returned<Tensor> mul(const Tensor &b) const;
  Returned<Tensor> mul(double number) const;
  /// `a / b`.
  Returned<Tensor> div(const Tensor &b) const;
  Returned<Tensor> div(double number) const;
  /// `x*alpha`.
  Returned<Tensor> scale(const ScaleOptions &options = {}) const;
  /// `-x`.
  Returned<Tensor> neg() const;
  /// `|x|`.
  Returned<Tensor> abs() const;
  /// `e^x`.
  Returned<Tensor> exp() const;
  /// The natural logarithm; NaN if x < 0.
  Returned<Tensor> log() const;
  /// The square root; NaN if x < 0.
  Returned<Tensor> sqrt() const;
  /// `1 / sqrt(x)`.
  Returned<Tensor> rsqrt() const;
  /// `max(x, 0)`; NaN stays NaN.
  Returned<Tensor> relu() const;
  /// `1 / (1 + e^-x)`.
  Returned<Tensor> sigmoid() const;
  /// The hyperbolic tangent.
  Returned<Tensor> tanh() const;
  /// The Gaussian error linear unit, with erf or tanh.
  Returned<Tensor> gelu(const GeluOptions &options = {}) const;
  /// `x*sigmoid(x)`.
  Returned<Tensor> silu() const;
  /// `e^x` divided by its sum along an axis.
  Returned<Tensor> softmax(const SoftmaxOptions &options = {}) const;
  /// The sum over some or all axes; +0 for no elements.
  Returned<Tensor> sum(const SumOptions &options = {}) const;
  /// The mean over some or all axes; NaN for no elements.
  Returned<Tensor> mean(const MeanOptions &options = {}) const;
  /// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  Returned<Tensor> max(const MaxOptions &options = {}) const;
  /// The index of the first maximum, i64. `invalid_argument` for no elements.
  Returned<Tensor> argmax(const ArgmaxOptions &options = {}) const;
  /// Normalises mean and variance over the last axis, of x or x + residual.
  Returned<Tensor> layernorm(const LayernormOptions &options = {}) const;
  /// Normalises the root mean square over the last axis, of x or x + residual.
  Returned<Tensor> rmsnorm(const RmsnormOptions &options = {}) const;
  /// Scaled dot-product attention: values weighted by softmax.
  Returned<Tensor> attention(const Tensor &k, const Tensor &v, const AttentionOptions &options = {}) const;
  /// Two matrix products with an activation between them.
  Returned<Tensor> ffn(const Tensor &w1, const Tensor &w2, const FfnOptions &options = {}) const;
  /// Looks up rows of a table by id.
  Returned<Tensor> embedding(const Tensor &ids) const;
  /// Permutes the axes.
  Returned<Tensor> transpose(const TransposeOptions &options = {}) const;
  /// Converts to another dtype.
  Returned<Tensor> cast(const CastOptions &options = {}) const;
  /// The largest integer <= x.
  Returned<Tensor> floor() const;
  /// The nearest integer; ties go to even.
  Returned<Tensor> round() const;
  /// The error function.
  Returned<Tensor> erf() const;
  /// `minimum(maximum(x, min), max)`; NaN propagates, and -0 < +0.
  Returned<Tensor> clamp(const ClampOptions &options = {}) const;
  /// The larger of a and b; NaN propagates, and -0 < +0.
  Returned<Tensor> maximum(const Tensor &b) const;
  Returned<Tensor> maximum(double number) const;
  /// The smaller of a and b; NaN propagates, and -0 < +0.
  Returned<Tensor> minimum(const Tensor &b) const;
  Returned<Tensor> minimum(double number) const;
  /// The sine of x in radians; NaN if x is infinite.
  Returned<Tensor> sin() const;
  /// The cosine of x in radians; NaN if x is infinite.
  Returned<Tensor> cos() const;
  /// `log(1 + x)`, also accurate near 0; NaN if x < -1.
  Returned<Tensor> log1p() const;
  /// `e^x - 1`, also accurate near 0.
  Returned<Tensor> expm1() const;
  /// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
  Returned<Tensor> pow(const Tensor &b) const;
  Returned<Tensor> pow(double number) const;
  /// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  Returned<Tensor> min(const MinOptions &options = {}) const;
  /// The index of the first minimum, i64. `invalid_argument` for no elements.
  Returned<Tensor> argmin(const ArgminOptions &options = {}) const;
  /// The product over some or all axes; 1 for no elements.
  Returned<Tensor> prod(const ProdOptions &options = {}) const;
  /// Slices every axis from a start to a stop, in steps.
  Returned<Tensor> slice(const SliceOptions &options = {}) const;
  /// Pads every axis with a value: before, after and between its elements.
  Returned<Tensor> pad(const Tensor &value, const PadOptions &options = {}) const;
  /// Gathers elements along an axis by index.
  Returned<Tensor> gather(const Tensor &ids, const GatherOptions &options = {}) const;
  /// Rotates pairs of elements of the last axis by angles.
  Returned<Tensor> rope(const Tensor &cos, const Tensor &sin, const RopeOptions &options = {}) const;
  /// The cumulative sums along an axis.
  Returned<Tensor> cumsum(const CumsumOptions &options = {}) const;
  /// The k greatest elements along an axis, greatest first; ties go to the lower index.
  Returned<Tensor> topk(const TopkOptions &options = {}) const;
  /// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
  Returned<Tensor> argtopk(const ArgtopkOptions &options = {}) const;
  /// Whether a equals b; NaN equals nothing, and -0 equals +0.
  Returned<Tensor> equal(const Tensor &b) const;
  Returned<Tensor> equal(double number) const;
  /// Whether a differs from b; true for NaN.
  Returned<Tensor> not_equal(const Tensor &b) const;
  Returned<Tensor> not_equal(double number) const;
  /// Whether `a < b`; false for NaN.
  Returned<Tensor> less(const Tensor &b) const;
  Returned<Tensor> less(double number) const;
  /// Whether `a <= b`; false for NaN.
  Returned<Tensor> less_equal(const Tensor &b) const;
  Returned<Tensor> less_equal(double number) const;
  /// Whether `a > b`; false for NaN.
  Returned<Tensor> greater(const Tensor &b) const;
  Returned<Tensor> greater(double number) const;
  /// Whether `a >= b`; false for NaN.
  Returned<Tensor> greater_equal(const Tensor &b) const;
  Returned<Tensor> greater_equal(double number) const;
  /// Selects from a where the condition is true, and from b elsewhere.
  Returned<Tensor> where(const Tensor &a, const Tensor &b) const;
  /// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
  Returned<Tensor> quantized_matmul(const Tensor &w, const QuantizedMatmulOptions &options = {}) const;
  /// Converts quantised blocks to f32.
  Returned<Tensor> dequantize(const DequantizeOptions &options = {}) const;

 private:
  friend class Tensor;
  TensorMethods() noexcept = default;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
