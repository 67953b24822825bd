/* Layers that are an operation or two, and layers one after another. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void *nn_layer(const nn_kind *kind, size_t size) {
  adead_nn_layer *layer = calloc(1, size);
  if (!layer) {
    nn_out_of_memory();
    return NULL;
  }
  layer->kind = kind;
  atomic_init(&layer->owners, 1);
  return layer;
}

adead_nn_layer *nn_share(const adead_nn_layer *layer) {
  /* The count is no part of what a layer is. */
  adead_nn_layer *own = (adead_nn_layer *)layer;
  atomic_fetch_add_explicit(&own->owners, 1, memory_order_relaxed);
  return own;
}

void adead_nn_layer_destroy(adead_nn_layer *layer) {
  if (!layer || atomic_fetch_sub_explicit(&layer->owners, 1, memory_order_acq_rel) != 1) return;
  layer->kind->clear(layer);
  free(layer);
}

adead_status adead_nn_layer_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  NEED(layer);
  NEED(x);
  NEED(out);
  return layer->kind->forward(layer, x, out);
}

/* Linear */

static adead_status linear_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  return adead_nn_linear_forward(layer, x, NULL, ADEAD_ACTIVATION_NONE, out);
}

static void linear_clear(adead_nn_layer *layer) {
  nn_linear *linear = (nn_linear *)layer;
  adead_packed_destroy(linear->packed);
  adead_tensor_destroy(linear->plain);
  adead_tensor_destroy(linear->bias);
}

static const nn_kind linear_kind = {"linear", linear_forward, linear_clear};

const nn_linear *nn_as_linear(const adead_nn_layer *layer) {
  return layer->kind == &linear_kind ? (const nn_linear *)layer : NULL;
}

static adead_status not_linear(const adead_nn_layer *layer) {
  return nn_fail(ADEAD_INVALID_ARGUMENT, "a linear layer is needed, and this is a layer of the kind %s", layer->kind->name);
}

/* A tensor's dimensions. */
static adead_status dims_of(const adead_tensor *tensor, const size_t **dims, size_t *rank) {
  TRY_ADEAD(adead_tensor_rank(tensor, rank));
  return nn_check(adead_tensor_dims(tensor, dims));
}

/* Whether a context has no other device than the CPU, which takes packed matrices. */
static adead_status on_cpu_alone(const adead_context *context, bool *alone) {
  adead_device_info info;
  size_t count = 0;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  TRY_ADEAD(adead_context_device_count(context, &count));
  TRY_ADEAD(adead_context_device_at(context, 0, &info));
  *alone = count == 1 && !strcmp(info.id, "cpu");
  return ADEAD_OK;
}

static adead_status linear_fill(nn_linear *linear, const adead_tensor *weight, const adead_tensor *bias) {
  bool alone = false;
  TRY(on_cpu_alone(linear->context, &alone));
  if (bias) TRY_ADEAD(adead_tensor_clone(bias, &linear->bias));
  if (alone) return nn_check(adead_packed_create(linear->context, weight, 1, &linear->packed));
  return nn_check(adead_tensor_transpose(linear->context, weight, NULL, 0, &linear->plain));
}

adead_status adead_nn_linear_create(const adead_context *context, const adead_tensor *weight, const adead_tensor *bias,
                                    adead_nn_layer **out) {
  const size_t *dims = NULL, *own = NULL;
  size_t rank = 0, own_rank = 0;
  char first[SHOWN], second[SHOWN];
  nn_linear *linear;
  adead_status status;
  NEED(context);
  NEED(weight);
  NEED(out);
  TRY(dims_of(weight, &dims, &rank));
  if (bias) TRY(dims_of(bias, &own, &own_rank));
  if (rank != 2) {
    return nn_fail(ADEAD_SHAPE_MISMATCH, "linear: the weight is %s; it must be [outputs, inputs]", nn_shown(dims, rank, first));
  }
  if (bias && (own_rank != 1 || own[0] != dims[0])) {
    return nn_fail(ADEAD_SHAPE_MISMATCH, "linear: the bias is %s and the weight %s", nn_shown(own, own_rank, first),
                   nn_shown(dims, rank, second));
  }
  linear = nn_layer(&linear_kind, sizeof *linear);
  if (!linear) return ADEAD_OUT_OF_MEMORY;
  linear->context = context;
  linear->outputs = dims[0];
  linear->inputs = dims[1];
  status = linear_fill(linear, weight, bias);
  if (status) adead_nn_layer_destroy(&linear->base);
  else *out = &linear->base;
  return status;
}

adead_status adead_nn_linear_load(const adead_context *context, const adead_nn_weights *weights, const char *prefix,
                                  size_t inputs, size_t outputs, adead_nn_layer **out) {
  const size_t dims[] = {outputs, inputs};
  adead_tensor *weight = NULL, *bias = NULL;
  adead_status status;
  NEED(out);
  status = nn_part(weights, context, prefix, ".weight", dims, 2, &weight);
  if (!status) status = nn_part(weights, context, prefix, ".bias", dims, 1, &bias);
  if (!status) status = adead_nn_linear_create(context, weight, bias, out);
  adead_tensor_destroy(weight);
  adead_tensor_destroy(bias);
  return status;
}

adead_status adead_nn_linear_size(const adead_nn_layer *layer, size_t *inputs, size_t *outputs) {
  const nn_linear *linear;
  NEED(layer);
  NEED(inputs);
  NEED(outputs);
  linear = nn_as_linear(layer);
  if (!linear) return not_linear(layer);
  *inputs = linear->inputs;
  *outputs = linear->outputs;
  return ADEAD_OK;
}

adead_status adead_nn_linear_forward(const adead_nn_layer *layer, const adead_tensor *x, const adead_tensor *residual,
                                     adead_activation activation, adead_tensor **out) {
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  const nn_linear *linear;
  NEED(layer);
  NEED(x);
  NEED(out);
  linear = nn_as_linear(layer);
  if (!linear) return not_linear(layer);
  options.beta = residual ? 1.0f : 0.0f;
  options.c = residual;
  options.bias = linear->bias;
  options.activation = activation;
  if (linear->packed) return nn_check(adead_packed_matmul(linear->context, x, linear->packed, &options, out));
  return nn_check(adead_tensor_matmul(linear->context, x, linear->plain, &options, out));
}

/* Embedding, LayerNorm, ReLU, GELU: a context, and up to two tensors and a number. */

typedef struct {
  adead_nn_layer base;
  const adead_context *context;
  adead_tensor *weight, *bias;
  float eps;
  adead_gelu_form form;
} simple;

static void simple_clear(adead_nn_layer *layer) {
  simple *own = (simple *)layer;
  adead_tensor_destroy(own->weight);
  adead_tensor_destroy(own->bias);
}

static adead_status embedding_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  const simple *own = (const simple *)layer;
  return nn_check(adead_tensor_embedding(own->context, own->weight, x, out));
}
static adead_status layer_norm_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  const simple *own = (const simple *)layer;
  return nn_check(adead_tensor_layernorm(own->context, x, own->weight, own->bias, own->eps, out));
}
static adead_status relu_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  return nn_check(adead_tensor_relu(((const simple *)layer)->context, x, out));
}
static adead_status gelu_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  const simple *own = (const simple *)layer;
  return nn_check(adead_tensor_gelu(own->context, x, own->form, out));
}

static const nn_kind embedding_kind = {"embedding", embedding_forward, simple_clear},
                     layer_norm_kind = {"layer_norm", layer_norm_forward, simple_clear},
                     relu_kind = {"relu", relu_forward, simple_clear}, gelu_kind = {"gelu", gelu_forward, simple_clear};

/* Of a kind, with clones of tensors, which may be NULL. */
static adead_status simple_create(const nn_kind *kind, const adead_context *context, const adead_tensor *weight,
                                  const adead_tensor *bias, simple **out) {
  simple *own = nn_layer(kind, sizeof *own);
  adead_status status = ADEAD_OK;
  if (!own) return ADEAD_OUT_OF_MEMORY;
  own->context = context;
  if (weight) status = nn_check(adead_tensor_clone(weight, &own->weight));
  if (!status && bias) status = nn_check(adead_tensor_clone(bias, &own->bias));
  if (status) adead_nn_layer_destroy(&own->base);
  else *out = own;
  return status;
}

adead_status adead_nn_embedding_create(const adead_context *context, const adead_tensor *table, adead_nn_layer **out) {
  const size_t *dims = NULL;
  size_t rank = 0;
  char is[SHOWN];
  simple *own = NULL;
  NEED(context);
  NEED(table);
  NEED(out);
  TRY(dims_of(table, &dims, &rank));
  if (rank != 2) {
    return nn_fail(ADEAD_SHAPE_MISMATCH, "embedding: the table is %s; it must be [count, width]", nn_shown(dims, rank, is));
  }
  TRY(simple_create(&embedding_kind, context, table, NULL, &own));
  *out = &own->base;
  return ADEAD_OK;
}

adead_status adead_nn_embedding_load(const adead_context *context, const adead_nn_weights *weights, const char *prefix,
                                     size_t count, size_t width, adead_nn_layer **out) {
  const size_t dims[] = {count, width};
  adead_tensor *table = NULL;
  adead_status status;
  NEED(out);
  TRY(nn_part(weights, context, prefix, ".weight", dims, 2, &table));
  status = adead_nn_embedding_create(context, table, out);
  adead_tensor_destroy(table);
  return status;
}

adead_status adead_nn_layer_norm_create(const adead_context *context, const adead_tensor *weight, const adead_tensor *bias,
                                        float eps, adead_nn_layer **out) {
  simple *own = NULL;
  NEED(context);
  NEED(weight);
  NEED(bias);
  NEED(out);
  TRY(simple_create(&layer_norm_kind, context, weight, bias, &own));
  own->eps = eps;
  *out = &own->base;
  return ADEAD_OK;
}

adead_status adead_nn_layer_norm_load(const adead_context *context, const adead_nn_weights *weights, const char *prefix,
                                      size_t width, float eps, adead_nn_layer **out) {
  adead_tensor *weight = NULL, *bias = NULL;
  adead_status status;
  NEED(out);
  status = nn_part(weights, context, prefix, ".weight", &width, 1, &weight);
  if (!status) status = nn_part(weights, context, prefix, ".bias", &width, 1, &bias);
  if (!status) status = adead_nn_layer_norm_create(context, weight, bias, eps, out);
  adead_tensor_destroy(weight);
  adead_tensor_destroy(bias);
  return status;
}

adead_status adead_nn_relu_create(const adead_context *context, adead_nn_layer **out) {
  simple *own = NULL;
  NEED(context);
  NEED(out);
  TRY(simple_create(&relu_kind, context, NULL, NULL, &own));
  *out = &own->base;
  return ADEAD_OK;
}

adead_status adead_nn_gelu_create(const adead_context *context, adead_gelu_form form, adead_nn_layer **out) {
  simple *own = NULL;
  NEED(context);
  NEED(out);
  if (form != ADEAD_GELU_ERF && form != ADEAD_GELU_TANH) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "form is %d; it must be one of ADEAD_GELU_...", (int)form);
  }
  TRY(simple_create(&gelu_kind, context, NULL, NULL, &own));
  own->form = form;
  *out = &own->base;
  return ADEAD_OK;
}

/* Layers made of layers: FeedForward, Sequential. */

typedef struct {
  adead_nn_layer base;
  adead_nn_layer *inner, *outer;
  adead_activation activation;
} feed_forward;

static adead_status feed_forward_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  return adead_nn_feed_forward_forward(layer, x, NULL, out);
}

static void feed_forward_clear(adead_nn_layer *layer) {
  adead_nn_layer_destroy(((feed_forward *)layer)->inner);
  adead_nn_layer_destroy(((feed_forward *)layer)->outer);
}

static const nn_kind feed_forward_kind = {"feed_forward", feed_forward_forward, feed_forward_clear};

adead_status adead_nn_feed_forward_create(const adead_nn_layer *inner, const adead_nn_layer *outer,
                                          adead_activation activation, adead_nn_layer **out) {
  const nn_linear *first, *second;
  feed_forward *own;
  NEED(inner);
  NEED(outer);
  NEED(out);
  first = nn_as_linear(inner);
  second = nn_as_linear(outer);
  if (!first || !second) return not_linear(first ? outer : inner);
  if (first->outputs != second->inputs) {
    return nn_fail(ADEAD_SHAPE_MISMATCH, "feed-forward: the first layer returns %zu values and the second takes %zu",
                   first->outputs, second->inputs);
  }
  own = nn_layer(&feed_forward_kind, sizeof *own);
  if (!own) return ADEAD_OUT_OF_MEMORY;
  own->inner = nn_share(inner);
  own->outer = nn_share(outer);
  own->activation = activation;
  *out = &own->base;
  return ADEAD_OK;
}

adead_status adead_nn_feed_forward_forward(const adead_nn_layer *layer, const adead_tensor *x, const adead_tensor *residual,
                                           adead_tensor **out) {
  const feed_forward *own = (const feed_forward *)layer;
  adead_tensor *hidden = NULL;
  adead_status status;
  NEED(layer);
  NEED(x);
  NEED(out);
  if (layer->kind != &feed_forward_kind) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "a feed-forward layer is needed, and this is a layer of the kind %s",
                   layer->kind->name);
  }
  TRY(adead_nn_linear_forward(own->inner, x, NULL, own->activation, &hidden));
  status = adead_nn_linear_forward(own->outer, hidden, residual, ADEAD_ACTIVATION_NONE, out);
  adead_tensor_destroy(hidden);
  return status;
}

typedef struct {
  adead_nn_layer base;
  size_t count;
  adead_nn_layer *layers[];
} sequential;

static adead_status sequential_forward(const adead_nn_layer *layer, const adead_tensor *x, adead_tensor **out) {
  const sequential *own = (const sequential *)layer;
  adead_tensor *y = NULL;
  adead_status status = nn_check(adead_tensor_clone(x, &y));
  size_t i;
  for (i = 0; i < own->count && !status; i++) {
    adead_tensor *next = NULL;
    status = adead_nn_layer_forward(own->layers[i], y, &next);
    adead_tensor_destroy(y);
    y = next;
  }
  if (!status) *out = y;
  return status;
}

static void sequential_clear(adead_nn_layer *layer) {
  sequential *own = (sequential *)layer;
  size_t i;
  for (i = 0; i < own->count; i++) adead_nn_layer_destroy(own->layers[i]);
}

static const nn_kind sequential_kind = {"sequential", sequential_forward, sequential_clear};

adead_status adead_nn_sequential_create(const adead_nn_layer *const *layers, size_t count, adead_nn_layer **out) {
  sequential *own;
  size_t i;
  if (count) NEED(layers);
  NEED(out);
  if (count > ((size_t)-1 - sizeof *own) / sizeof *layers) return nn_out_of_memory();
  for (i = 0; i < count; i++) {
    if (!layers[i]) return nn_fail(ADEAD_INVALID_ARGUMENT, "sequential: layer %zu is NULL", i);
  }
  own = nn_layer(&sequential_kind, sizeof *own + count * sizeof *layers);
  if (!own) return ADEAD_OUT_OF_MEMORY;
  own->count = count;
  for (i = 0; i < count; i++) own->layers[i] = nn_share(layers[i]);
  *out = &own->base;
  return ADEAD_OK;
}
