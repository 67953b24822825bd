/* Self-attention and the encoders made of it. */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  adead_nn_layer base;
  adead_nn_layer *qkv, *output;
  size_t heads;
} attention;

static adead_status attention_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  return adead_nn_multi_head_attention_forward(layer, x, NULL, 0, NULL, out);
}

static void attention_clear(adead_nn_layer *layer) {
  adead_nn_layer_destroy(((attention *)layer)->qkv);
  adead_nn_layer_destroy(((attention *)layer)->output);
}

static const nn_kind attention_kind = {"multi_head_attention", attention_forward, attention_clear};

adead_status adead_nn_multi_head_attention_create(const adead_nn_layer *qkv, const adead_nn_layer *output, size_t heads,
                                                  adead_nn_layer **out) {
  size_t width = 0, outputs = 0, unused = 0;
  attention *own;
  NEED(qkv);
  NEED(output);
  NEED(out);
  TRY(adead_nn_linear_size(qkv, &unused, &outputs));
  TRY(adead_nn_linear_size(output, &width, &unused));
  if (outputs % 3 || outputs / 3 != width) {
    return nn_fail(ADEAD_SHAPE_MISMATCH, "attention: %zu values are no queries, keys and values of %zu", outputs, width);
  }
  if (!heads || width % heads) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "attention: %zu heads don't divide a width of %zu", heads, width);
  }
  own = nn_layer(&attention_kind, sizeof *own);
  if (!own) return ADEAD_OUT_OF_MEMORY;
  own->qkv = nn_share(qkv);
  own->output = nn_share(output);
  own->heads = heads;
  *out = &own->base;
  return ADEAD_OK;
}

/* A tensor of each of three prefixes, joined along the first axis. */
static adead_status joined(const adead_context *context, const adead_nn_weights *weights, const char *const *prefixes,
                           const char *suffix, const size_t *dims, size_t rank, adead_tensor **out) {
  adead_tensor *parts[3] = {NULL, NULL, NULL};
  adead_status status = ADEAD_OK;
  size_t i;
  for (i = 0; i < 3 && !status; i++) status = nn_part(weights, context, prefixes[i], suffix, dims, rank, &parts[i]);
  if (!status) status = nn_check(adead_tensor_concat(context, (const adead_tensor *const *)parts, 3, 0, out));
  for (i = 0; i < 3; i++) adead_tensor_destroy(parts[i]);
  return status;
}

adead_status adead_nn_multi_head_attention_load(const adead_context *context, const adead_nn_weights *weights,
                                                const char *const *prefixes, size_t width, size_t heads,
                                                adead_nn_layer **out) {
  const size_t dims[] = {width, width};
  adead_tensor *weight = NULL, *bias = NULL;
  adead_nn_layer *qkv = NULL, *output = NULL;
  adead_status status;
  NEED(prefixes);
  NEED(out);
  status = joined(context, weights, prefixes, ".weight", dims, 2, &weight);
  if (!status) status = joined(context, weights, prefixes, ".bias", dims, 1, &bias);
  if (!status) status = adead_nn_linear_create(context, weight, bias, &qkv);
  if (!status) status = adead_nn_linear_load(context, weights, prefixes[3], width, width, &output);
  if (!status) status = adead_nn_multi_head_attention_create(qkv, output, heads, out);
  adead_nn_layer_destroy(output);
  adead_nn_layer_destroy(qkv);
  adead_tensor_destroy(bias);
  adead_tensor_destroy(weight);
  return status;
}

/* What is added to the scores, [count, 1, 1, length]: 0 for a row of a sequence, -inf for padding. */
static adead_status mask_create(const size_t *lengths, size_t count, size_t length, adead_tensor **out) {
  const size_t dims[] = {count, 1, 1, length};
  adead_status status;
  float *added;
  size_t i, k;
  for (i = 0; i < count; i++) {
    if (lengths[i] >= 1 && lengths[i] <= length) continue;
    return nn_fail(ADEAD_INVALID_ARGUMENT, "attention: a sequence of %zu rows can't be padded to %zu", lengths[i], length);
  }
  added = length > (size_t)-1 / sizeof *added / count ? NULL : malloc(count * length * sizeof *added);
  if (!added) return nn_out_of_memory();
  for (i = 0; i < count; i++) {
    for (k = 0; k < length; k++) added[i * length + k] = k < lengths[i] ? 0.0f : -INFINITY;
  }
  status = nn_check(adead_tensor_create(ADEAD_DTYPE_F32, dims, 4, added, count * length * sizeof *added, out));
  free(added);
  return status;
}

/* Queries, keys and values of x, each [count, heads, length, values]. */
static adead_status apart(const attention *own, const adead_tensor *x, const size_t dims[4], adead_tensor *parts[3]) {
  static const int32_t order[] = {2, 0, 3, 1, 4};
  const adead_context *context = nn_as_linear(own->qkv)->context;
  const size_t split[] = {dims[0], dims[2], 3, dims[1], dims[3]};
  adead_tensor *product = NULL, *five = NULL, *ordered = NULL;
  const void *data = NULL;
  size_t bytes = 0, i;
  adead_status status = adead_nn_layer_forward(own->qkv, x, &product);
  if (!status) status = nn_check(adead_tensor_reshape(product, split, 5, &five));
  if (!status) status = nn_check(adead_tensor_transpose(context, five, order, 5, &ordered));
  if (!status) status = nn_check(adead_tensor_bytes(ordered, &bytes));
  if (!status) status = nn_check(adead_tensor_data(ordered, &data));
  for (i = 0; i < 3 && !status; i++) {
    const char *part = (const char *)data + i * (bytes / 3);
    status = nn_check(adead_tensor_create(ADEAD_DTYPE_F32, dims, 4, part, bytes / 3, &parts[i]));
  }
  adead_tensor_destroy(ordered);
  adead_tensor_destroy(five);
  adead_tensor_destroy(product);
  return status;
}

adead_status adead_nn_multi_head_attention_forward(const adead_nn_layer *layer, const adead_tensor *x,
                                                   const size_t *lengths, size_t count, const adead_tensor *residual,
                                                   adead_tensor **out) {
  static const int32_t order[] = {0, 2, 1, 3};
  const attention *own = (const attention *)layer;
  adead_attention_options options = ADEAD_ATTENTION_OPTIONS_INIT;
  adead_tensor *mask = NULL, *parts[3] = {NULL, NULL, NULL}, *attended = NULL, *together = NULL, *rows = NULL;
  const nn_linear *qkv;
  const size_t *dims = NULL;
  size_t rank = 0, inner[4], shape[3], i;
  adead_status status = ADEAD_OK;
  NEED(layer);
  NEED(x);
  if (count) NEED(lengths);
  NEED(out);
  if (layer->kind != &attention_kind) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "attention is needed, and this is a layer of the kind %s", layer->kind->name);
  }
  qkv = nn_as_linear(own->qkv);
  TRY_ADEAD(adead_tensor_rank(x, &rank));
  TRY_ADEAD(adead_tensor_dims(x, &dims));
  if ((rank != 2 && rank != 3) || dims[rank - 1] != qkv->inputs) {
    char is[SHOWN];
    return nn_fail(ADEAD_SHAPE_MISMATCH, "attention: x is %s; it must be [count, length, %zu]", nn_shown(dims, rank, is),
                   qkv->inputs);
  }
  shape[0] = rank == 3 ? dims[0] : 1;
  shape[1] = dims[rank - 2];
  shape[2] = qkv->outputs / 3;
  if (count && count != shape[0]) {
    return nn_fail(ADEAD_SHAPE_MISMATCH, "attention: %zu lengths for %zu sequences", count, shape[0]);
  }
  inner[0] = shape[0];
  inner[1] = own->heads;
  inner[2] = shape[1];
  inner[3] = shape[2] / own->heads;
  if (count) status = mask_create(lengths, count, shape[1], &mask);
  options.mask = mask;
  if (!status) status = apart(own, x, inner, parts);
  if (!status) status = nn_check(adead_tensor_attention(qkv->context, parts[0], parts[1], parts[2], &options, &attended));
  if (!status) status = nn_check(adead_tensor_transpose(qkv->context, attended, order, 4, &together));
  if (!status) status = nn_check(adead_tensor_reshape(together, shape + 3 - rank, rank, &rows));
  if (!status) status = adead_nn_linear_forward(own->output, rows, residual, ADEAD_ACTIVATION_NONE, out);
  adead_tensor_destroy(rows);
  adead_tensor_destroy(together);
  adead_tensor_destroy(attended);
  for (i = 0; i < 3; i++) adead_tensor_destroy(parts[i]);
  adead_tensor_destroy(mask);
  return status;
}

/* A transformer's layer, and an encoder of some. */

typedef struct {
  adead_nn_layer base;
  adead_nn_layer *attention, *attention_norm, *feed_forward, *output_norm;
} block;

typedef struct {
  adead_nn_layer base;
  size_t count;
  adead_nn_layer *layers[];
} encoder;

static adead_status block_run(const block *own, const adead_tensor *x, const size_t *lengths, size_t count,
                              adead_tensor **out) {
  adead_tensor *attended = NULL, *h = NULL, *y = NULL;
  adead_status status = adead_nn_multi_head_attention_forward(own->attention, x, lengths, count, x, &attended);
  if (!status) status = adead_nn_layer_forward(own->attention_norm, attended, &h);
  if (!status) status = adead_nn_feed_forward_forward(own->feed_forward, h, h, &y);
  if (!status) status = adead_nn_layer_forward(own->output_norm, y, out);
  adead_tensor_destroy(y);
  adead_tensor_destroy(h);
  adead_tensor_destroy(attended);
  return status;
}

static adead_status encoder_run(const encoder *own, const adead_tensor *x, const size_t *lengths, size_t count,
                                adead_tensor **out) {
  adead_tensor *y = NULL;
  adead_status status = nn_check(adead_tensor_clone(x, &y));
  size_t i;
  for (i = 0; i < own->count && !status; i++) {
    adead_tensor *next = NULL;
    status = block_run((const block *)own->layers[i], y, lengths, count, &next);
    adead_tensor_destroy(y);
    y = next;
  }
  if (!status) *out = y;
  return status;
}

static adead_status block_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  return block_run((const block *)layer, x, NULL, 0, out);
}
static adead_status encoder_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  return encoder_run((const encoder *)layer, x, NULL, 0, out);
}

static void block_clear(adead_nn_layer *layer) {
  block *own = (block *)layer;
  adead_nn_layer_destroy(own->attention);
  adead_nn_layer_destroy(own->attention_norm);
  adead_nn_layer_destroy(own->feed_forward);
  adead_nn_layer_destroy(own->output_norm);
}
static void encoder_clear(adead_nn_layer *layer) {
  encoder *own = (encoder *)layer;
  size_t i;
  for (i = 0; i < own->count; i++) adead_nn_layer_destroy(own->layers[i]);
}

static const nn_kind block_kind = {"transformer_layer", block_forward, block_clear},
                     encoder_kind = {"transformer_encoder", encoder_forward, encoder_clear};

adead_status adead_nn_transformer_forward(const adead_nn_layer *layer, const adead_tensor *x, const size_t *lengths,
                                          size_t count, adead_tensor **out) {
  NEED(layer);
  NEED(x);
  if (count) NEED(lengths);
  NEED(out);
  if (layer->kind == &block_kind) return block_run((const block *)layer, x, lengths, count, out);
  if (layer->kind == &encoder_kind) return encoder_run((const encoder *)layer, x, lengths, count, out);
  return nn_fail(ADEAD_INVALID_ARGUMENT, "a transformer is needed, and this is a layer of the kind %s", layer->kind->name);
}

static adead_status config_check(const adead_nn_transformer_config *config) {
  size_t i;
  NEED(config);
  if (config->struct_size < sizeof *config || config->struct_size > 4096) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "struct_size of adead_nn_transformer_config is %zu; set it to sizeof, %zu",
                   config->struct_size, sizeof *config);
  }
  for (i = sizeof *config; i < config->struct_size; i++) {
    if (!((const unsigned char *)config)[i]) continue;
    return nn_fail(ADEAD_UNSUPPORTED, "adead_nn_transformer_config has what this version does not know, at byte %zu", i);
  }
  return ADEAD_OK;
}

/* A linear layer, a norm or attention, of a name under the prefix; `*status` says whether it went well so far. */

static adead_nn_layer *linear_of(adead_status *status, const adead_context *context, const adead_nn_weights *weights,
                                 const char *prefix, const char *name, size_t inputs, size_t outputs) {
  adead_nn_layer *layer = NULL;
  char *whole;
  if (*status) return NULL;
  whole = nn_joined(prefix, name);
  *status = whole ? adead_nn_linear_load(context, weights, whole, inputs, outputs, &layer) : nn_out_of_memory();
  free(whole);
  return layer;
}

static adead_nn_layer *norm_of(adead_status *status, const adead_context *context, const adead_nn_weights *weights,
                               const char *prefix, const char *name, const adead_nn_transformer_config *config) {
  adead_nn_layer *layer = NULL;
  char *whole;
  if (*status) return NULL;
  whole = nn_joined(prefix, name);
  *status = whole ? adead_nn_layer_norm_load(context, weights, whole, config->width, config->eps, &layer) : nn_out_of_memory();
  free(whole);
  return layer;
}

static adead_nn_layer *attention_of(adead_status *status, const adead_context *context, const adead_nn_weights *weights,
                                    const char *prefix, const adead_nn_transformer_config *config) {
  static const char *const names[] = {".attention.self.query", ".attention.self.key", ".attention.self.value",
                                      ".attention.output.dense"};
  char *whole[4] = {NULL, NULL, NULL, NULL};
  adead_nn_layer *layer = NULL;
  size_t i;
  for (i = 0; i < 4 && !*status; i++) {
    whole[i] = nn_joined(prefix, names[i]);
    if (!whole[i]) *status = nn_out_of_memory();
  }
  if (!*status) {
    *status = adead_nn_multi_head_attention_load(context, weights, (const char *const *)whole, config->width, config->heads,
                                                 &layer);
  }
  for (i = 0; i < 4; i++) free(whole[i]);
  return layer;
}

adead_status adead_nn_transformer_layer_load(const adead_context *context, const adead_nn_weights *weights,
                                             const char *prefix, const adead_nn_transformer_config *config,
                                             adead_nn_layer **out) {
  adead_nn_layer *inner, *outer;
  adead_status status = ADEAD_OK;
  block *own;
  NEED(context);
  NEED(weights);
  NEED(prefix);
  TRY(config_check(config));
  NEED(out);
  own = nn_layer(&block_kind, sizeof *own);
  if (!own) return ADEAD_OUT_OF_MEMORY;
  inner = linear_of(&status, context, weights, prefix, ".intermediate.dense", config->width, config->hidden);
  outer = linear_of(&status, context, weights, prefix, ".output.dense", config->hidden, config->width);
  own->attention = attention_of(&status, context, weights, prefix, config);
  own->attention_norm = norm_of(&status, context, weights, prefix, ".attention.output.LayerNorm", config);
  if (!status) status = adead_nn_feed_forward_create(inner, outer, config->activation, &own->feed_forward);
  own->output_norm = norm_of(&status, context, weights, prefix, ".output.LayerNorm", config);
  adead_nn_layer_destroy(inner);
  adead_nn_layer_destroy(outer);
  if (status) adead_nn_layer_destroy(&own->base);
  else *out = &own->base;
  return status;
}

adead_status adead_nn_transformer_encoder_load(const adead_context *context, const adead_nn_weights *weights,
                                               const char *prefix, size_t layers,
                                               const adead_nn_transformer_config *config, adead_nn_layer **out) {
  adead_status status = ADEAD_OK;
  encoder *own;
  NEED(context);
  NEED(weights);
  NEED(prefix);
  TRY(config_check(config));
  NEED(out);
  if (layers > ((size_t)-1 - sizeof *own) / sizeof *own->layers) return nn_out_of_memory();
  own = nn_layer(&encoder_kind, sizeof *own + layers * sizeof *own->layers);
  if (!own) return ADEAD_OUT_OF_MEMORY;
  for (; own->count < layers && !status; own->count += !status) {
    char number[24], *name;
    snprintf(number, sizeof number, ".%zu", own->count);
    name = nn_joined(prefix, number);
    status = name ? adead_nn_transformer_layer_load(context, weights, name, config, &own->layers[own->count])
                  : nn_out_of_memory();
    free(name);
  }
  if (status) adead_nn_layer_destroy(&own->base);
  else *out = &own->base;
  return status;
}
