// Self-attention and the encoders made of it: <adead/nn.hpp> is the header to include.
#ifndef ADEAD_TRANSFORMER_HPP
#define ADEAD_TRANSFORMER_HPP

#include <adead/nn.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Self-attention: queries, keys and values as one product, then the heads, then the output's product.
class MultiHeadAttention : public Layer {
 public:
  /// Of a layer that returns queries, keys and values behind each other, and the output's. shape_mismatch where they don't fit
  /// each other, invalid_argument unless `heads` divides the width.
  static Returned<MultiHeadAttention> make(Linear qkv, Linear output, std::size_t heads) {
    std::size_t width = output.inputs();
    if (qkv.outputs() != 3 * width) {
      return detail::mismatch<MultiHeadAttention>("attention: " + std::to_string(qkv.outputs()) +
                                                  " values are no queries, keys and values of " + std::to_string(width));
    }
    if (heads == 0 || width % heads) {
      std::string text =
          "attention: " + std::to_string(heads) + " heads don't divide a width of " + std::to_string(width);
      return detail::failed<MultiHeadAttention>(ADEAD_INVALID_ARGUMENT, text.c_str());
    }
    MultiHeadAttention layer;
    layer.qkv_ = std::move(qkv);
    layer.output_ = std::move(output);
    layer.heads_ = heads;
    return detail::done(ADEAD_OK, std::move(layer));
  }

  /// The layer of four linear ones, named by their prefixes: query, key, value, output; all of `width` to `width`.
  static Returned<MultiHeadAttention> load(const Context &ctx, const Weights &weights,
                                           const std::array<std::string, 4> &prefixes, std::size_t width,
                                           std::size_t heads) {
    detail::Calls calls;
    std::array<Tensor, 3> matrices, biases;
    for (std::size_t i = 0; i < 3 && calls.ok(); i++) {
      matrices[i] = calls(weights.tensor(ctx, prefixes[i] + ".weight", {width, width}));
      if (calls.ok()) biases[i] = calls(weights.tensor(ctx, prefixes[i] + ".bias", {width}));
    }
    if (!calls.ok()) return calls.done(MultiHeadAttention());
    Tensor matrix = calls(ctx.concat({matrices[0], matrices[1], matrices[2]}, {0}));
    Tensor bias = calls(ctx.concat({biases[0], biases[1], biases[2]}, {0}));
    Linear qkv = calls.ok() ? calls(Linear::make(matrix, std::move(bias))) : Linear();
    Linear output = calls.ok() ? calls(Linear::load(ctx, weights, prefixes[3], width, width)) : Linear();
    if (!calls.ok()) return calls.done(MultiHeadAttention());
    return make(std::move(qkv), std::move(output), heads);
  }

  Returned<Tensor> forward(const Tensor &x) const override { return forward(x, {}); }
  /// Attention within each sequence of [count, length, width], or of the one that [length, width] is, plus a residual. With
  /// `lengths`, one for each, the rows behind them are padding, which nothing attends to.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths, const Tensor *residual = nullptr) const {
    detail::Calls calls;
    std::vector<std::size_t> dims = calls(detail::dims_of(x));
    if (!calls.ok()) return calls.done(Tensor());
    std::size_t rank = dims.size(), width = output_.inputs();
    if ((rank != 2 && rank != 3) || dims[rank - 1] != qkv_.inputs()) {
      return detail::mismatch<Tensor>("attention: x is " + detail::shown(dims) + "; it must be [count, length, " +
                                      std::to_string(qkv_.inputs()) + "]");
    }
    if (!heads_) return detail::failed<Tensor>(ADEAD_INVALID_ARGUMENT, "attention: the layer is empty");
    std::size_t count = rank == 3 ? dims[0] : 1, length = dims[rank - 2];
    if (lengths.size() && lengths.size() != count) {
      return detail::mismatch<Tensor>("attention: " + std::to_string(lengths.size()) + " lengths for " +
                                      std::to_string(count) + " sequences");
    }
    detail::Computing context(x);
    Tensor masked = lengths.size() ? calls(mask(context, lengths, length)) : Tensor();
    Tensor qkv = calls.ok() ? calls(qkv_.forward(x)) : Tensor();
    qkv = calls.ok() ? calls(qkv.reshape({count, length, 3, heads_, width / heads_})) : Tensor();
    Tensor apart = calls.ok() ? calls(context.transpose(qkv, {{2, 0, 3, 1, 4}})) : Tensor();
    std::array<Tensor, 3> parts;
    for (std::size_t i = 0; i < 3 && calls.ok(); i++) {
      parts[i] = calls(context.part(apart, i, {count, heads_, length, width / heads_}));
    }
    AttentionOptions options;
    options.mask = masked ? &masked : nullptr;
    Tensor y = calls.ok() ? calls(context.attention(parts[0], parts[1], parts[2], options)) : Tensor();
    if (calls.ok()) y = calls(context.transpose(y, {{0, 2, 1, 3}}));
    dims[rank - 1] = width;
    if (calls.ok()) y = calls(y.reshape(dims));
    if (calls.ok()) y = calls(output_.forward(y, residual));
    return calls.done(std::move(y));
  }

 private:
  /// What is added to the scores, [count, 1, 1, length]: 0 for a row of a sequence, -inf for padding.
  static Returned<Tensor> mask(const detail::Computing &context, Array<std::size_t> lengths, std::size_t length) {
    std::vector<float> added;
    for (std::size_t own : lengths) {
      if (own < 1 || own > length) {
        std::string text =
            "attention: a sequence of " + std::to_string(own) + " rows can't be padded to " + std::to_string(length);
        return detail::failed<Tensor>(ADEAD_INVALID_ARGUMENT, text.c_str());
      }
      added.insert(added.end(), own, 0.f);
      added.insert(added.end(), length - own, -std::numeric_limits<float>::infinity());
    }
    const std::size_t dims[] = {lengths.size(), 1, 1, length};
    adead_tensor *out = nullptr;
    adead_status status =
        adead_tensor_create(ADEAD_DTYPE_F32, dims, 4, added.data(), added.size() * sizeof(float), &out);
    return detail::done(status, Tensor(out, context.context_));
  }

  Linear qkv_, output_;
  std::size_t heads_ = 0;
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

/// A layer that is normalised behind each part, as BERT's are: `h = norm(x + attention(x))`, then `norm(h + feed_forward(h))`.
class TransformerLayer : public Layer {
 public:
  /// The layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on.
  static Returned<TransformerLayer> load(const Context &ctx, const Weights &weights, const std::string &prefix,
                                         const TransformerConfig &config) {
    std::string attention = prefix + ".attention.";
    std::array<std::string, 4> parts = {attention + "self.query", attention + "self.key", attention + "self.value",
                                        attention + "output.dense"};
    const auto [width, heads, hidden, activation, eps] = config;
    TransformerLayer layer;
    detail::Calls calls;
    Linear inner = calls(Linear::load(ctx, weights, prefix + ".intermediate.dense", width, hidden));
    Linear outer = calls.ok() ? calls(Linear::load(ctx, weights, prefix + ".output.dense", hidden, width)) : Linear();
    if (calls.ok()) layer.attention_ = calls(MultiHeadAttention::load(ctx, weights, parts, width, heads));
    if (calls.ok()) {
      layer.attention_norm_ = calls(LayerNorm::load(ctx, weights, attention + "output.LayerNorm", width, eps));
    }
    if (calls.ok()) layer.feed_forward_ = calls(FeedForward::make(std::move(inner), std::move(outer), activation));
    if (calls.ok()) layer.output_norm_ = calls(LayerNorm::load(ctx, weights, prefix + ".output.LayerNorm", width, eps));
    return calls.done(std::move(layer));
  }

  Returned<Tensor> forward(const Tensor &x) const override { return forward(x, {}); }
  /// The same with `lengths`, as of MultiHeadAttention.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths) const {
    detail::Calls calls;
    Tensor h = calls(attention_.forward(x, lengths, &x));
    if (calls.ok()) h = calls(attention_norm_.forward(h));
    Tensor y = calls.ok() ? calls(feed_forward_.forward(h, &h)) : Tensor();
    if (calls.ok()) y = calls(output_norm_.forward(y));
    return calls.done(std::move(y));
  }

 private:
  MultiHeadAttention attention_;
  LayerNorm attention_norm_, output_norm_;
  FeedForward feed_forward_;
};

/// Transformer layers one after another.
class TransformerEncoder : public Layer {
 public:
  /// So many layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on.
  static Returned<TransformerEncoder> load(const Context &ctx, const Weights &weights, const std::string &prefix,
                                           std::size_t layers, const TransformerConfig &config) {
    detail::Calls calls;
    TransformerEncoder encoder;
    for (std::size_t i = 0; i < layers && calls.ok(); i++) {
      TransformerLayer layer = calls(TransformerLayer::load(ctx, weights, prefix + "." + std::to_string(i), config));
      encoder.layers_.push_back(std::move(layer));
    }
    return calls.done(std::move(encoder));
  }

  /// How many layers there are.
  std::size_t layers() const noexcept { return layers_.size(); }

  Returned<Tensor> forward(const Tensor &x) const override { return forward(x, {}); }
  /// Its result for sequences [count, length, width], or the one of [length, width]. A sequence's rows have the same bits
  /// alone, among others, and padded with `lengths`.
  Returned<Tensor> forward(const Tensor &x, Array<std::size_t> lengths) const {
    detail::Calls calls;
    Tensor y = calls(x.clone());
    for (const TransformerLayer &layer : layers_) {
      if (calls.ok()) y = calls(layer.forward(y, lengths));
    }
    return calls.done(std::move(y));
  }

 private:
  std::vector<TransformerLayer> layers_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
