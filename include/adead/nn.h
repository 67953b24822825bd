/*
 * adead_nn: layers of neural networks, and their weights from safetensors files, over the functions of adead.h. MIT license.
 *
 * A library of its own beside libadead: -ladead_nn -ladead. The rules for every function are those of adead.h;
 * adead_nn_last_error has the texts. Names of tensors, configuration and order of operations are those of the other languages'
 * layers, and so are the bits. docs/sentences.md has an example.
 *
 * Every layer is an adead_nn_layer. What it is made of, tensors and layers, it shares: the caller gives up its own handles
 * whenever it likes. Only the context must stay as long as the layers that were made for it. Threads may share a layer.
 */

#ifndef ADEAD_NN_H
#define ADEAD_NN_H

#include <adead.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of this interface that the header describes.
#define ADEAD_NN_ABI_VERSION 1

/// A safetensors file in memory as the system maps it: what is not used is not read. It never changes, so threads may share
/// one. The file must not be changed while it is open.
typedef struct adead_nn_weights adead_nn_weights;

/// What takes a tensor and returns one.
typedef struct adead_nn_layer adead_nn_layer;

/// What an encoder's layers are, all alike. Start from `ADEAD_NN_TRANSFORMER_CONFIG_INIT`.
typedef struct {
  /// `sizeof(adead_nn_transformer_config)`.
  size_t struct_size;
  /// Values of a row.
  size_t width;
  /// Heads of attention.
  size_t heads;
  /// Values between the two products of the feed-forward part.
  size_t hidden;
  /// Between those products, one of `ADEAD_ACTIVATION_...`.
  adead_activation activation;
  /// Added to variances.
  float eps;
} adead_nn_transformer_config;

/// The defaults of adead_nn_transformer_config; width, heads and hidden have none.
#define ADEAD_NN_TRANSFORMER_CONFIG_INIT { sizeof(adead_nn_transformer_config), 0, 0, 0, ADEAD_ACTIVATION_GELU_ERF, 1e-12f }

/// The text of the last call of this library on this thread that failed: what was wrong, with the numbers. "" if none did.
/// Valid until the next call on this thread fails.
ADEAD_API const char *adead_nn_last_error(void);

/// The version of this interface. A program that was built with `ADEAD_NN_ABI_VERSION` n runs with every library that answers
/// n.
ADEAD_API uint32_t adead_nn_abi_version(void);

/// Maps a safetensors file. `io` if it can't be read, `invalid_argument` if it is no safetensors file.
ADEAD_API adead_status adead_nn_weights_open(const char *path, adead_nn_weights **out);

/// Closes a file; NULL is fine. Tensors and layers made from it stay.
ADEAD_API void adead_nn_weights_destroy(adead_nn_weights *weights);

/// How many tensors there are.
ADEAD_API adead_status adead_nn_weights_count(const adead_nn_weights *weights, size_t *out);

/// The name of tensor `index`; they are sorted. The text goes with the weights. `invalid_argument` if there are not so many.
ADEAD_API adead_status adead_nn_weights_name(const adead_nn_weights *weights, size_t index, const char **out);

/// Whether there is a tensor of that name: 1 or 0.
ADEAD_API adead_status adead_nn_weights_contains(const adead_nn_weights *weights, const char *name, int32_t *out);

/// A tensor's dimensions and how many there are. They go with the weights. `invalid_argument` if there is none of that name.
ADEAD_API
adead_status adead_nn_weights_dims(const adead_nn_weights *weights, const char *name, const size_t **dims, size_t *rank);

/// A copy of a tensor as f32, f16 and bf16 widened. `invalid_argument` if there is none of that name, `shape_mismatch` if its
/// dimensions are others than these `rank`, `dtype_mismatch` if it has other elements.
ADEAD_API
adead_status adead_nn_weights_tensor(const adead_nn_weights *weights, const adead_context *context, const char *name,
                                     const size_t *dims, size_t rank, adead_tensor **out);

/// A layer's result for x; the errors are those of its operations.
ADEAD_API adead_status adead_nn_layer_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out);

/// Gives a layer up; NULL is fine. Layers that were made of it keep it.
ADEAD_API void adead_nn_layer_destroy(adead_nn_layer *layer);

/// Linear: `x*W^T + bias` of `[..., inputs]`, for a weight `[outputs, inputs]` and a bias `[outputs]`, which may be NULL. The
/// weight is packed once where its context has no GPU. `shape_mismatch` where they don't fit.
ADEAD_API
adead_status adead_nn_linear_create(const adead_context *context, const adead_tensor *weight, const adead_tensor *bias,
                                    adead_nn_layer **out);

/// Linear, of `PREFIX.weight` and `PREFIX.bias`.
ADEAD_API
adead_status adead_nn_linear_load(const adead_context *context, const adead_nn_weights *weights, const char *prefix,
                                  size_t inputs, size_t outputs, adead_nn_layer **out);

/// Values of a row that a linear layer takes, and that it returns.
ADEAD_API adead_status adead_nn_linear_size(const adead_nn_layer *layer, size_t *inputs, size_t *outputs);

/// `activation(x*W^T + residual + bias)` of a linear layer, as one product. `residual` may be NULL.
ADEAD_API
adead_status adead_nn_linear_forward(const adead_nn_layer *layer, const adead_tensor *x, const adead_tensor *residual,
                                     adead_activation activation, adead_tensor **out);

/// Embedding: rows of a table `[count, width]` by ids of any shape, i32, i64 or u32. `shape_mismatch` unless the table is a
/// matrix.
ADEAD_API
adead_status adead_nn_embedding_create(const adead_context *context, const adead_tensor *table, adead_nn_layer **out);

/// Embedding, of the table `PREFIX.weight`.
ADEAD_API
adead_status adead_nn_embedding_load(const adead_context *context, const adead_nn_weights *weights, const char *prefix,
                                     size_t count, size_t width, adead_nn_layer **out);

/// LayerNorm: mean and variance normalised over the last axis, times a weight, plus a bias, both `[width]`. `eps` is added to
/// the variance; the usual one is 1e-5.
ADEAD_API
adead_status adead_nn_layer_norm_create(const adead_context *context, const adead_tensor *weight, const adead_tensor *bias,
                                        float eps, adead_nn_layer **out);

/// LayerNorm, of `PREFIX.weight` and `PREFIX.bias`.
ADEAD_API
adead_status adead_nn_layer_norm_load(const adead_context *context, const adead_nn_weights *weights, const char *prefix,
                                      size_t width, float eps, adead_nn_layer **out);

/// ReLU: max(x, 0).
ADEAD_API adead_status adead_nn_relu_create(const adead_context *context, adead_nn_layer **out);

/// GELU: the Gaussian error linear unit, in its form with erf or with tanh, one of `ADEAD_GELU_...`.
ADEAD_API adead_status adead_nn_gelu_create(const adead_context *context, adead_gelu_form form, adead_nn_layer **out);

/// Sequential: `count` layers of which each takes the result of the one before. With none it returns what it is given.
ADEAD_API
adead_status adead_nn_sequential_create(const adead_nn_layer *const *layers, size_t count, adead_nn_layer **out);

/// FeedForward: `activation(x*W1^T + b1)*W2^T + b2`, of two linear layers. `shape_mismatch` where the second does not take
/// what the first returns.
ADEAD_API
adead_status adead_nn_feed_forward_create(const adead_nn_layer *inner, const adead_nn_layer *outer,
                                          adead_activation activation, adead_nn_layer **out);

/// The result of a FeedForward plus a residual, which may be NULL.
ADEAD_API
adead_status adead_nn_feed_forward_forward(const adead_nn_layer *layer, const adead_tensor *x, const adead_tensor *residual,
                                           adead_tensor **out);

/// MultiHeadAttention: self-attention, of a linear layer that returns queries, keys and values behind each other, and the
/// output's. `shape_mismatch` where they don't fit each other, `invalid_argument` unless `heads` divides the width.
ADEAD_API
adead_status adead_nn_multi_head_attention_create(const adead_nn_layer *qkv, const adead_nn_layer *output, size_t heads,
                                                  adead_nn_layer **out);

/// MultiHeadAttention, of four linear layers named by their prefixes: query, key, value, output; all of `width` to `width`.
ADEAD_API
adead_status adead_nn_multi_head_attention_load(const adead_context *context, const adead_nn_weights *weights,
                                                const char *const *prefixes, size_t width, size_t heads,
                                                adead_nn_layer **out);

/// Attention within each sequence of `[count, length, width]`, or of the one that `[length, width]` is, plus a residual, which
/// may be NULL. With `lengths`, `count` of them, the rows behind them are padding, which nothing attends to, and come out with
/// values of no meaning; without, `count` is 0.
ADEAD_API
adead_status adead_nn_multi_head_attention_forward(const adead_nn_layer *layer, const adead_tensor *x,
                                                   const size_t *lengths, size_t count, const adead_tensor *residual,
                                                   adead_tensor **out);

/// A layer that is normalised behind each part, as BERT's are: `h = norm(x + attention(x))`, then `norm(h + feed_forward(h))`;
/// under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on.
ADEAD_API
adead_status adead_nn_transformer_layer_load(const adead_context *context, const adead_nn_weights *weights,
                                             const char *prefix, const adead_nn_transformer_config *config,
                                             adead_nn_layer **out);

/// TransformerEncoder: so many of these layers under a prefix, one after another: `PREFIX.0`, `PREFIX.1` and so on.
ADEAD_API
adead_status adead_nn_transformer_encoder_load(const adead_context *context, const adead_nn_weights *weights,
                                               const char *prefix, size_t layers,
                                               const adead_nn_transformer_config *config, adead_nn_layer **out);

/// The result of a transformer's layer or encoder for sequences `[count, length, width]`, or the one of `[length, width]`,
/// with `lengths` as of `adead_nn_multi_head_attention_forward`. A sequence's rows have the same bits alone, among others, and
/// padded.
ADEAD_API
adead_status adead_nn_transformer_forward(const adead_nn_layer *layer, const adead_tensor *x, const size_t *lengths,
                                          size_t count, adead_tensor **out);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif
