// Layers of neural networks, and with weights.hpp their weights from safetensors files: docs/sentences.md.
#ifndef ADEAD_NN_HPP
#define ADEAD_NN_HPP

#include <adead/weights.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

namespace detail {

/// Calls one after another. Each gives its value, which is empty once one failed; the first error is the error of all of them.
class Calls {
 public:
#ifdef ADEAD_NO_EXCEPTIONS
  template <class T>
  T operator()(Result<T> result) {
    if (!error_) error_ = result.error();
    return std::move(result).value();
  }
  bool ok() const noexcept { return !error_; }
  template <class T>
  Result<T> done(T value) {
    if (error_) return *error_;
    return value;
  }

 private:
  std::optional<Error> error_;
#else
  template <class T>
  T operator()(T value) {
    return value;
  }
  bool ok() const noexcept { return true; }
  template <class T>
  T done(T value) {
    return value;
  }
#endif
};

/// The operations of a tensor's context.
class Computing : public Operations {
 public:
  explicit Computing(const Tensor &tensor) noexcept : Operations(tensor.context()) {}
  using Operations::context_;

  /// Whether it has no other device than the CPU, which takes packed matrices.
  adead_status on_cpu_alone(bool &alone) const {
    std::size_t count = 0;
    auto info = sized<adead_device_info>();
    adead_status status = adead_context_device_count(context_.get(), &count);
    if (!status) status = adead_context_device_at(context_.get(), 0, &info);
    alone = !status && count == 1 && std::strcmp(info.id, "cpu") == 0;
    return status;
  }

  /// A copy of an equal part of a tensor's f32: the i-th of as many as are needed for these dimensions.
  Returned<Tensor> part(const Tensor &x, std::size_t i, Array<std::size_t> dims) const {
    std::size_t size = sizeof(float);
    for (std::size_t dim : dims) size *= dim;
    const void *data = nullptr;
    adead_status status = adead_tensor_data(x.get(), &data);
    adead_tensor *out = nullptr;
    const char *from = static_cast<const char *>(data) + (status ? 0 : i * size);
    if (!status) status = adead_tensor_create(ADEAD_DTYPE_F32, dims.data(), dims.size(), from, size, &out);
    return done(status, Tensor(out, context_));
  }
};

/// The dimensions of a tensor.
inline Returned<std::vector<std::size_t>> dims_of(const Tensor &x) {
  const std::size_t *dims = nullptr;
  std::size_t rank = 0;
  adead_status status = adead_tensor_rank(x.get(), &rank);
  if (!status) status = adead_tensor_dims(x.get(), &dims);
  return done(status, status ? std::vector<std::size_t>() : std::vector<std::size_t>(dims, dims + rank));
}

template <class T>
Returned<T> mismatch(const std::string &text) {
  return failed<T>(ADEAD_SHAPE_MISMATCH, text.c_str());
}

}  // namespace detail

/// What takes a tensor and returns one. Layers compute on the context of their weights, or without weights on that of what they
/// are given. They own what they have and are moved; threads may share one. One that was made by default, or moved from, is
/// empty, and its use an error.
class Layer {
 public:
  Layer() noexcept = default;
  Layer(Layer &&) noexcept = default;
  Layer &operator=(Layer &&) noexcept = default;
  virtual ~Layer() = default;
  /// Its result; the errors are those of its operations.
  virtual Returned<Tensor> forward(const Tensor &x) const = 0;
};

/// `x·Wᵀ + bias` of [..., inputs]. The weight is packed once where its context has no GPU.
class Linear : public Layer {
 public:
  /// The layer of a weight [outputs, inputs] and, unless it is empty, a bias [outputs]. shape_mismatch where they don't fit.
  static Returned<Linear> make(const Tensor &weight, Tensor bias = Tensor()) {
    detail::Calls calls;
    std::vector<std::size_t> dims = calls(detail::dims_of(weight)), own = {0};
    if (bias) own = calls(detail::dims_of(bias));
    if (!calls.ok()) return calls.done(Linear());
    if (dims.size() != 2) {
      return detail::mismatch<Linear>("linear: the weight is " + detail::shown(dims) + "; it must be [outputs, inputs]");
    }
    if (bias && (own.size() != 1 || own[0] != dims[0])) {
      return detail::mismatch<Linear>("linear: the bias is " + detail::shown(own) + " and the weight " + detail::shown(dims));
    }
    detail::Computing context(weight);
    Linear layer;
    bool alone = false;
    adead_packed *packed = nullptr;
    adead_status status = context.on_cpu_alone(alone);
    if (!status && alone) status = adead_packed_create(context.context_.get(), weight.get(), true, &packed);
    layer.packed_ = Packed(packed, context.context_);
    if (status) return detail::failed<Linear>(status);
    if (!alone) layer.plain_ = calls(context.transpose(weight));
    layer.bias_ = std::move(bias);
    layer.outputs_ = dims[0];
    layer.inputs_ = dims[1];
    return calls.done(std::move(layer));
  }

  /// The layer of `PREFIX.weight` and `PREFIX.bias`.
  static Returned<Linear> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t inputs,
                               std::size_t outputs) {
    detail::Calls calls;
    Tensor weight = calls(weights.tensor(ctx, prefix + ".weight", {outputs, inputs}));
    Tensor bias = calls.ok() ? calls(weights.tensor(ctx, prefix + ".bias", {outputs})) : Tensor();
    Linear layer = calls.ok() ? calls(make(weight, std::move(bias))) : Linear();
    return calls.done(std::move(layer));
  }

  /// Values of a row that it takes, and that it returns.
  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t outputs() const noexcept { return outputs_; }

  Returned<Tensor> forward(const Tensor &x) const override { return forward(x, nullptr); }
  /// `activation(x·Wᵀ + residual + bias)`, as one product.
  Returned<Tensor> forward(const Tensor &x, const Tensor *residual, Activation activation = Activation::none) const {
    MatmulOptions options;
    options.beta = residual ? 1.f : 0.f;
    options.activation = activation;
    options.c = residual;
    options.bias = bias_ ? &bias_ : nullptr;
    return packed_ ? packed_.matmul(x, options) : detail::Computing(plain_).matmul(x, plain_, options);
  }

 private:
  Packed packed_;
  Tensor plain_, bias_;
  std::size_t inputs_ = 0, outputs_ = 0;
};

/// Rows of a table [count, width] by ids of any shape, i32, i64 or u32. invalid_argument for an id outside the table.
class Embedding : public Layer {
 public:
  /// shape_mismatch unless the table is a matrix.
  static Returned<Embedding> make(Tensor table) {
    detail::Calls calls;
    std::vector<std::size_t> dims = calls(detail::dims_of(table));
    if (calls.ok() && dims.size() != 2) {
      return detail::mismatch<Embedding>("embedding: the table is " + detail::shown(dims) + "; it must be [count, width]");
    }
    Embedding layer;
    layer.table_ = std::move(table);
    return calls.done(std::move(layer));
  }

  /// The table `PREFIX.weight`.
  static Returned<Embedding> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t count,
                                  std::size_t width) {
    detail::Calls calls;
    Tensor table = calls(weights.tensor(ctx, prefix + ".weight", {count, width}));
    Embedding layer = calls.ok() ? calls(make(std::move(table))) : Embedding();
    return calls.done(std::move(layer));
  }

  Returned<Tensor> forward(const Tensor &ids) const override { return detail::Computing(table_).embedding(table_, ids); }

 private:
  Tensor table_;
};

/// Mean and variance normalised over the last axis, times a weight, plus a bias, both [width].
class LayerNorm : public Layer {
 public:
  LayerNorm() noexcept = default;
  /// `eps` is added to the variance.
  explicit LayerNorm(Tensor weight, Tensor bias, float eps = 1e-5f) noexcept
      : weight_(std::move(weight)), bias_(std::move(bias)), eps_(eps) {}

  /// The layer of `PREFIX.weight` and `PREFIX.bias`.
  static Returned<LayerNorm> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t width,
                                  float eps = 1e-5f) {
    detail::Calls calls;
    Tensor weight = calls(weights.tensor(ctx, prefix + ".weight", {width}));
    Tensor bias = calls.ok() ? calls(weights.tensor(ctx, prefix + ".bias", {width})) : Tensor();
    return calls.done(LayerNorm(std::move(weight), std::move(bias), eps));
  }

  Returned<Tensor> forward(const Tensor &x) const override {
    return detail::Computing(weight_).layernorm(x, {eps_, &weight_, &bias_});
  }

 private:
  Tensor weight_, bias_;
  float eps_ = 1e-5f;
};

/// max(x, 0).
class ReLU : public Layer {
 public:
  Returned<Tensor> forward(const Tensor &x) const override { return detail::Computing(x).relu(x); }
};

/// The Gaussian error linear unit, in its form with erf or with tanh.
class GELU : public Layer {
 public:
  explicit GELU(GeluForm form = GeluForm::erf) noexcept : form_(form) {}
  Returned<Tensor> forward(const Tensor &x) const override { return detail::Computing(x).gelu(x, {form_}); }

 private:
  GeluForm form_;
};

/// Layers of which each takes the result of the one before.
class Sequential : public Layer {
 public:
  /// With another layer behind the last.
  template <class L>
  Sequential then(L layer) && {
    layers_.push_back(std::make_unique<L>(std::move(layer)));
    return std::move(*this);
  }
  std::size_t size() const noexcept { return layers_.size(); }

  Returned<Tensor> forward(const Tensor &x) const override {
    detail::Calls calls;
    Tensor y = calls(x.clone());
    for (const auto &layer : layers_) {
      if (calls.ok()) y = calls(layer->forward(y));
    }
    return calls.done(std::move(y));
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// `activation(x·W1ᵀ + b1)·W2ᵀ + b2`.
class FeedForward : public Layer {
 public:
  /// shape_mismatch where the second does not take what the first returns.
  static Returned<FeedForward> make(Linear inner, Linear outer, Activation activation = Activation::gelu_erf) {
    if (inner.outputs() != outer.inputs()) {
      return detail::mismatch<FeedForward>("feed-forward: the first layer returns " + std::to_string(inner.outputs()) +
                                           " values and the second takes " + std::to_string(outer.inputs()));
    }
    FeedForward layer;
    layer.inner_ = std::move(inner);
    layer.outer_ = std::move(outer);
    layer.activation_ = activation;
    return detail::done(ADEAD_OK, std::move(layer));
  }

  Returned<Tensor> forward(const Tensor &x) const override { return forward(x, nullptr); }
  /// Its result plus a residual.
  Returned<Tensor> forward(const Tensor &x, const Tensor *residual) const {
    detail::Calls calls;
    Tensor hidden = calls(inner_.forward(x, nullptr, activation_));
    Tensor y = calls.ok() ? calls(outer_.forward(hidden, residual)) : Tensor();
    return calls.done(std::move(y));
  }

 private:
  Linear inner_, outer_;
  Activation activation_ = Activation::gelu_erf;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#include <adead/transformer.hpp>

#endif
