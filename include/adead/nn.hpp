// Layers of neural networks. With weights.hpp they load their weights from safetensors files. docs/sentences.md is the
// guide.
#ifndef ADEAD_NN_HPP
#define ADEAD_NN_HPP

#include <adead/weights.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A function of one tensor. Layers compute on the context of their weights, or, without weights, on that of their
/// input. They own their parts and are moved; threads may share one. A default-constructed or moved-from layer is
/// empty, and using it is an error.
class Layer {
 public:
  Layer() noexcept = default;
  Layer(Layer &&) noexcept = default;
  Layer &operator=(Layer &&) noexcept = default;
  virtual ~Layer() = default;
  /// Computes the layer's result. Its errors are those of its operations.
  virtual Returned<Tensor> forward(const Tensor &x) const = 0;
};

namespace detail {

/// A layer of the library.
class Module : public Layer {
 public:
  Returned<Tensor> forward(const Tensor &x) const override { return computed(x, {}, nullptr); }
  adead_module *get() const noexcept { return handle_.get(); }
  /// Returns the context that it computes on.
  const Shared &context() const noexcept { return context_; }

 protected:
  void own(adead_module *raw, const Shared &context) noexcept {
    handle_ = Handle<adead_module, adead_module_destroy>(raw);
    context_ = context;
  }

  /// Returns the layer that `make` makes. `make` gets the place of a handle.
  template <class L, class F>
  static Returned<L> made(const Shared &context, F &&make) {
    adead_module *out = nullptr;
    adead_status status = make(&out);
    L layer;
    static_cast<Module &>(layer).own(out, context);
    return done(status, std::move(layer));
  }

  template <class L>
  static Returned<L> loaded(const Context &ctx, const Weights &weights, const std::string &prefix,
                            const adead_module_options &options) {
    return made<L>(ctx.shared(), [&](adead_module **out) {
      return adead_module_load(ctx.get(), weights.get(), prefix.c_str(), &options, out);
    });
  }

  Returned<Tensor> computed(const Tensor &x, Array<std::size_t> lengths, const Tensor *residual,
                            Activation activation = Activation::none) const {
    adead_forward_options options = ADEAD_FORWARD_OPTIONS_INIT;
    options.lengths = lengths.size() ? lengths.data() : nullptr;
    options.count = lengths.size();
    options.residual = raw(residual);
    options.activation = static_cast<adead_activation>(activation);
    return detail::made<Tensor>(context_, adead_module_forward, get(), x.get(), &options);
  }

  /// Returns the sizes that describe the layer.
  std::array<std::size_t, 2> size() const noexcept {
    auto info = sized<adead_module_info>();
    if (adead_module_describe(get(), &info)) return {0, 0};
    return {info.inputs, info.outputs};
  }

 private:
  Handle<adead_module, adead_module_destroy> handle_;
  Shared context_;
};

/// The operations on a tensor's context.
class Computing : public Operations {
 public:
  explicit Computing(const Tensor &tensor) noexcept : Operations(tensor.context()) {}
};

}  // namespace detail

/// Computes `x·Wᵀ + bias` of [..., inputs]. If its context has no GPU, the weight is packed once.
class Linear : public detail::Module {
 public:
  /// Makes the layer from a weight [outputs, inputs] and, unless it is empty, a bias [outputs]. shape_mismatch if they
  /// don't fit.
  static Returned<Linear> make(const Tensor &weight, Tensor bias = Tensor()) {
    return made<Linear>(weight.context(), [&](adead_module **out) {
      return adead_module_linear(weight.context().get(), weight.get(), bias.get(), out);
    });
  }

  /// Loads the layer of `PREFIX.weight` and `PREFIX.bias`.
  static Returned<Linear> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t inputs,
                               std::size_t outputs) {
    adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
    options.inputs = inputs;
    options.outputs = outputs;
    return loaded<Linear>(ctx, weights, prefix, options);
  }

  /// The sizes of an input row and of an output row.
  std::size_t inputs() const noexcept { return size()[0]; }
  std::size_t outputs() const noexcept { return size()[1]; }

  using Module::forward;
  /// Computes `activation(x·Wᵀ + residual + bias)` as one product.
  Returned<Tensor> forward(const Tensor &x, const Tensor *residual, Activation activation = Activation::none) const {
    return computed(x, {}, residual, activation);
  }
};

/// Looks up rows of a table [count, width] by ids of any shape, i32, i64 or u32. invalid_argument for an id outside the
/// table.
class Embedding : public detail::Module {
 public:
  /// Makes the layer from a table. shape_mismatch unless the table is a matrix.
  static Returned<Embedding> make(Tensor table) {
    return made<Embedding>(table.context(), [&](adead_module **out) {
      return adead_module_embedding(table.context().get(), table.get(), out);
    });
  }

  /// Loads the table `PREFIX.weight`.
  static Returned<Embedding> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t count,
                                  std::size_t width) {
    adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
    options.kind = ADEAD_MODULE_EMBEDDING;
    options.inputs = count;
    options.width = width;
    return loaded<Embedding>(ctx, weights, prefix, options);
  }
};

/// Normalises mean and variance over the last axis, multiplies by a weight and adds a bias, both [width].
class LayerNorm : public detail::Module {
 public:
  LayerNorm() noexcept = default;
  /// Makes the layer; `eps` is added to the variance. It is empty if a tensor is.
  explicit LayerNorm(Tensor weight, Tensor bias, float eps = 1e-5f) noexcept {
    adead_module *out = nullptr;
    if (adead_module_layer_norm(weight.context().get(), weight.get(), bias.get(), eps, &out)) return;
    own(out, weight.context());
  }

  /// Loads the layer of `PREFIX.weight` and `PREFIX.bias`.
  static Returned<LayerNorm> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t width,
                                  float eps = 1e-5f) {
    adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
    options.kind = ADEAD_MODULE_LAYER_NORM;
    options.width = width;
    options.eps = eps;
    return loaded<LayerNorm>(ctx, weights, prefix, options);
  }
};

/// Computes max(x, 0).
class ReLU : public Layer {
 public:
  Returned<Tensor> forward(const Tensor &x) const override { return detail::Computing(x).relu(x); }
};

/// Computes the Gaussian error linear unit, in its form with erf or with tanh.
class GELU : public Layer {
 public:
  explicit GELU(GeluForm form = GeluForm::erf) noexcept : form_(form) {}
  Returned<Tensor> forward(const Tensor &x) const override { return detail::Computing(x).gelu(x, {form_}); }

 private:
  GeluForm form_;
};

/// Applies layers one after another: each takes the result of the one before.
class Sequential : public Layer {
 public:
  /// Appends another layer.
  template <class L>
  Sequential then(L layer) && {
    layers_.push_back(std::make_unique<L>(std::move(layer)));
    return std::move(*this);
  }
  std::size_t size() const noexcept { return layers_.size(); }

  Returned<Tensor> forward(const Tensor &x) const override {
#ifdef ADEAD_NO_EXCEPTIONS
    Result<Tensor> y = x.clone();
    for (const auto &layer : layers_) {
      if (!y.error()) y = layer->forward(y.value());
    }
#else
    Tensor y = x.clone();
    for (const auto &layer : layers_) y = layer->forward(y);
#endif
    return y;
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// Computes `activation(x·W1ᵀ + b1)·W2ᵀ + b2`.
class FeedForward : public detail::Module {
 public:
  /// Makes the layer from two. shape_mismatch if the second does not fit the result of the first.
  static Returned<FeedForward> make(Linear inner, Linear outer, Activation activation = Activation::gelu_erf) {
    return made<FeedForward>(inner.context(), [&](adead_module **out) {
      return adead_module_feed_forward(inner.get(), outer.get(), static_cast<adead_activation>(activation), out);
    });
  }

  using Module::forward;
  /// Computes the result plus a residual.
  Returned<Tensor> forward(const Tensor &x, const Tensor *residual) const { return computed(x, {}, residual); }
};

/// Computes self-attention: queries, keys and values as one product, then the heads, then the output's product.
class MultiHeadAttention : public detail::Module {
 public:
  /// Makes the layer from one layer that returns queries, keys and values in this order, and an output layer.
  /// shape_mismatch if they don't fit each other, invalid_argument unless `heads` divides the width.
  static Returned<MultiHeadAttention> make(Linear qkv, Linear output, std::size_t heads) {
    return made<MultiHeadAttention>(qkv.context(), [&](adead_module **out) {
      return adead_module_attention(qkv.get(), output.get(), heads, out);
    });
  }

  /// Loads the layer from four linear ones by their prefixes: query, key, value, output; each maps `width` to `width`.
  static Returned<MultiHeadAttention> load(const Context &ctx, const Weights &weights,
                                           const std::array<std::string, 4> &prefixes, std::size_t width,
                                           std::size_t heads) {
    std::array<const char *, 4> parts;
    for (std::size_t i = 0; i < 4; i++) parts[i] = prefixes[i].c_str();
    adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
    options.kind = ADEAD_MODULE_ATTENTION;
    options.width = width;
    options.heads = heads;
    options.parts = parts.data();
    return loaded<MultiHeadAttention>(ctx, weights, "", options);
  }

  using Module::forward;
  /// Computes attention within each sequence of [count, length, width], or of the single one [length, width], plus a
  /// residual. With `lengths`, one for each sequence, the rows beyond them are padding, which no row attends to.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths, const Tensor *residual = nullptr) const {
    return computed(x, lengths, residual);
  }
};

/// The configuration of an encoder's layers, which are all alike.
struct TransformerConfig {
  /// The size of a row.
  std::size_t width = 0;
  /// The number of attention heads.
  std::size_t heads = 0;
  /// The size between the two products of the feed-forward part.
  std::size_t hidden = 0;
  /// The function between those products.
  Activation activation = Activation::gelu_erf;
  /// The number added to variances.
  float eps = 1e-12f;
};

namespace detail {

inline adead_module_options options_of(adead_module_kind kind, const TransformerConfig &config) noexcept {
  adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
  options.kind = kind;
  options.width = config.width;
  options.heads = config.heads;
  options.hidden = config.hidden;
  options.activation = static_cast<adead_activation>(config.activation);
  options.eps = config.eps;
  return options;
}

}  // namespace detail

/// A layer that normalises after each part, as BERT does: `h = norm(x + attention(x))`, then `norm(h +
/// feed_forward(h))`.
class TransformerLayer : public detail::Module {
 public:
  /// Loads the layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on.
  static Returned<TransformerLayer> load(const Context &ctx, const Weights &weights, const std::string &prefix,
                                         const TransformerConfig &config) {
    return loaded<TransformerLayer>(ctx, weights, prefix, detail::options_of(ADEAD_MODULE_TRANSFORMER_LAYER, config));
  }

  using Module::forward;
  /// Computes the result with `lengths`, as for MultiHeadAttention.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths) const { return computed(x, lengths, nullptr); }
};

/// Applies transformer layers one after another.
class TransformerEncoder : public detail::Module {
 public:
  /// Loads `layers` layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on.
  static Returned<TransformerEncoder> load(const Context &ctx, const Weights &weights, const std::string &prefix,
                                           std::size_t layers, const TransformerConfig &config) {
    adead_module_options options = detail::options_of(ADEAD_MODULE_TRANSFORMER_ENCODER, config);
    options.layers = layers;
    return loaded<TransformerEncoder>(ctx, weights, prefix, options);
  }

  /// Returns the number of layers.
  std::size_t layers() const noexcept { return size()[0]; }

  using Module::forward;
  /// Computes the result for sequences [count, length, width], or for a single one [length, width]. A sequence's rows
  /// have the same bits alone, among other sequences, and padded with `lengths`.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths) const { return computed(x, lengths, nullptr); }
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
