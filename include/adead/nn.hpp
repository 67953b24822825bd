// Layers of neural networks, and with weights.hpp their weights from safetensors files: docs/sentences.md.
#ifndef ADEAD_NN_HPP
#define ADEAD_NN_HPP

#include <adead/weights.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

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

namespace detail {

/// A layer of the library.
class Module : public Layer {
 public:
  Returned<Tensor> forward(const Tensor &x) const override { return computed(x, {}, nullptr); }
  adead_module *get() const noexcept { return handle_.get(); }
  /// What its results are computed on.
  const Shared &context() const noexcept { return context_; }

 protected:
  void own(adead_module *raw, const Shared &context) noexcept {
    handle_ = Handle<adead_module, adead_module_destroy>(raw);
    context_ = context;
  }

  /// What `make` gives, which is called with the place of a handle.
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

  /// The sizes that it is described by.
  std::array<std::size_t, 2> size() const noexcept {
    auto info = sized<adead_module_info>();
    if (adead_module_describe(get(), &info)) return {0, 0};
    return {info.inputs, info.outputs};
  }

 private:
  Handle<adead_module, adead_module_destroy> handle_;
  Shared context_;
};

/// The operations of a tensor's context.
class Computing : public Operations {
 public:
  explicit Computing(const Tensor &tensor) noexcept : Operations(tensor.context()) {}
};

}  // namespace detail

/// `x·Wᵀ + bias` of [..., inputs]. The weight is packed once where its context has no GPU.
class Linear : public detail::Module {
 public:
  /// The layer of a weight [outputs, inputs] and, unless it is empty, a bias [outputs]. shape_mismatch where they don't fit.
  static Returned<Linear> make(const Tensor &weight, Tensor bias = Tensor()) {
    return made<Linear>(weight.context(), [&](adead_module **out) {
      return adead_module_linear(weight.context().get(), weight.get(), bias.get(), out);
    });
  }

  /// The layer of `PREFIX.weight` and `PREFIX.bias`.
  static Returned<Linear> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t inputs,
                               std::size_t outputs) {
    adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
    options.inputs = inputs;
    options.outputs = outputs;
    return loaded<Linear>(ctx, weights, prefix, options);
  }

  /// Values of a row that it takes, and that it returns.
  std::size_t inputs() const noexcept { return size()[0]; }
  std::size_t outputs() const noexcept { return size()[1]; }

  using Module::forward;
  /// `activation(x·Wᵀ + residual + bias)`, as one product.
  Returned<Tensor> forward(const Tensor &x, const Tensor *residual, Activation activation = Activation::none) const {
    return computed(x, {}, residual, activation);
  }
};

/// Rows of a table [count, width] by ids of any shape, i32, i64 or u32. invalid_argument for an id outside the table.
class Embedding : public detail::Module {
 public:
  /// shape_mismatch unless the table is a matrix.
  static Returned<Embedding> make(Tensor table) {
    return made<Embedding>(table.context(), [&](adead_module **out) {
      return adead_module_embedding(table.context().get(), table.get(), out);
    });
  }

  /// The table `PREFIX.weight`.
  static Returned<Embedding> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t count,
                                  std::size_t width) {
    adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
    options.kind = ADEAD_MODULE_EMBEDDING;
    options.inputs = count;
    options.width = width;
    return loaded<Embedding>(ctx, weights, prefix, options);
  }
};

/// Mean and variance normalised over the last axis, times a weight, plus a bias, both [width].
class LayerNorm : public detail::Module {
 public:
  LayerNorm() noexcept = default;
  /// `eps` is added to the variance. Empty where a tensor is.
  explicit LayerNorm(Tensor weight, Tensor bias, float eps = 1e-5f) noexcept {
    adead_module *out = nullptr;
    if (adead_module_layer_norm(weight.context().get(), weight.get(), bias.get(), eps, &out)) return;
    own(out, weight.context());
  }

  /// The layer of `PREFIX.weight` and `PREFIX.bias`.
  static Returned<LayerNorm> load(const Context &ctx, const Weights &weights, const std::string &prefix, std::size_t width,
                                  float eps = 1e-5f) {
    adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
    options.kind = ADEAD_MODULE_LAYER_NORM;
    options.width = width;
    options.eps = eps;
    return loaded<LayerNorm>(ctx, weights, prefix, options);
  }
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

/// `activation(x·W1ᵀ + b1)·W2ᵀ + b2`.
class FeedForward : public detail::Module {
 public:
  /// shape_mismatch where the second does not take what the first returns.
  static Returned<FeedForward> make(Linear inner, Linear outer, Activation activation = Activation::gelu_erf) {
    return made<FeedForward>(inner.context(), [&](adead_module **out) {
      return adead_module_feed_forward(inner.get(), outer.get(), static_cast<adead_activation>(activation), out);
    });
  }

  using Module::forward;
  /// Its result plus a residual.
  Returned<Tensor> forward(const Tensor &x, const Tensor *residual) const { return computed(x, {}, residual); }
};

/// Self-attention: queries, keys and values as one product, then the heads, then the output's product.
class MultiHeadAttention : public detail::Module {
 public:
  /// Of a layer that returns queries, keys and values behind each other, and the output's. shape_mismatch where they don't fit
  /// each other, invalid_argument unless `heads` divides the width.
  static Returned<MultiHeadAttention> make(Linear qkv, Linear output, std::size_t heads) {
    return made<MultiHeadAttention>(qkv.context(), [&](adead_module **out) {
      return adead_module_attention(qkv.get(), output.get(), heads, out);
    });
  }

  /// The layer of four linear ones, named by their prefixes: query, key, value, output; all of `width` to `width`.
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
  /// Attention within each sequence of [count, length, width], or of the one that [length, width] is, plus a residual. With
  /// `lengths`, one for each, the rows behind them are padding, which nothing attends to.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths, const Tensor *residual = nullptr) const {
    return computed(x, lengths, residual);
  }
};

/// What an encoder's layers are, all alike.
struct TransformerConfig {
  /// Values of a row.
  std::size_t width = 0;
  /// Heads of attention.
  std::size_t heads = 0;
  /// Values between the two products of the feed-forward part.
  std::size_t hidden = 0;
  /// Between those products.
  Activation activation = Activation::gelu_erf;
  /// Added to variances.
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

/// A layer that is normalised behind each part, as BERT's are: `h = norm(x + attention(x))`, then `norm(h + feed_forward(h))`.
class TransformerLayer : public detail::Module {
 public:
  /// The layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on.
  static Returned<TransformerLayer> load(const Context &ctx, const Weights &weights, const std::string &prefix,
                                         const TransformerConfig &config) {
    return loaded<TransformerLayer>(ctx, weights, prefix, detail::options_of(ADEAD_MODULE_TRANSFORMER_LAYER, config));
  }

  using Module::forward;
  /// The same with `lengths`, as of MultiHeadAttention.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths) const { return computed(x, lengths, nullptr); }
};

/// Transformer layers one after another.
class TransformerEncoder : public detail::Module {
 public:
  /// So many layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on.
  static Returned<TransformerEncoder> load(const Context &ctx, const Weights &weights, const std::string &prefix,
                                           std::size_t layers, const TransformerConfig &config) {
    adead_module_options options = detail::options_of(ADEAD_MODULE_TRANSFORMER_ENCODER, config);
    options.layers = layers;
    return loaded<TransformerEncoder>(ctx, weights, prefix, options);
  }

  /// How many layers there are.
  std::size_t layers() const noexcept { return size()[0]; }

  using Module::forward;
  /// Its result for sequences [count, length, width], or the one of [length, width]. A sequence's rows have the same bits
  /// alone, among others, and padded with `lengths`.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths) const { return computed(x, lengths, nullptr); }
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
