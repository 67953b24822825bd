'use strict'

// Layers of neural networks, and their weights from safetensors files: docs/sentences.md. The runtime implements the
// layers for every language; this file has their classes.

const { AdeadError, defaultContext } = require('../index.js')
const native = require('../load.js')

/** The runtime's object for a layer or a file. */
const held = new WeakMap()

/** Returns the runtime's object for an object of a class. */
function inside(object, kind) {
  if (object instanceof kind) return held.get(object)
  const found = object === null ? 'null' : typeof object
  throw new AdeadError(`expected a ${kind.name}, not ${object?.constructor?.name ?? found}`, 'invalid_argument', 1)
}

class Weights {
  constructor(path) {
    held.set(this, native.weightsOpen(path))
    Object.defineProperty(this, 'path', { value: path, enumerable: true })
  }

  names() {
    return native.weightsNames(inside(this, Weights))
  }

  has(name) {
    return native.weightsHas(inside(this, Weights), name)
  }

  dims(name) {
    return native.weightsDims(inside(this, Weights), name)
  }

  tensor(name, dims) {
    return native.weightsTensor(inside(this, Weights), name, dims)
  }

  close() {
    native.weightsClose(inside(this, Weights))
  }
}

class Layer {
  constructor(layer, context) {
    held.set(this, layer)
    if (context) this.context = context
  }

  forward(x, options) {
    return native.layerForward(inside(this, Layer), x, options)
  }

  async forwardAsync(x, options) {
    return native.layerForwardAsync(inside(this, Layer), x, options)
  }
}

/** Makes a layer for `load`, without calling the constructor of its class. */
function loaded(kind, layer, properties) {
  const made = Object.assign(Object.create(kind.prototype), properties)
  held.set(made, layer)
  return made
}

class Linear extends Layer {
  constructor(weight, bias, context = defaultContext()) {
    super(native.layerLinear(context, weight, bias ?? null), context)
    ;[this.outputs, this.inputs] = weight.dims
  }

  static load(weights, prefix, inputs, outputs, context) {
    const weight = weights.tensor(`${prefix}.weight`, [outputs, inputs])
    return new Linear(weight, weights.tensor(`${prefix}.bias`, [outputs]), context)
  }
}

class Embedding extends Layer {
  constructor(table, context = defaultContext()) {
    super(native.layerEmbedding(context, table), context)
    ;[this.count, this.width] = table.dims
  }

  static load(weights, prefix, count, width, context) {
    return new Embedding(weights.tensor(`${prefix}.weight`, [count, width]), context)
  }
}

class LayerNorm extends Layer {
  constructor(weight, bias, eps = 1e-5, context = defaultContext()) {
    super(native.layerNorm(context, weight, bias, eps), context)
  }

  static load(weights, prefix, width, eps, context) {
    const [weight, bias] = ['weight', 'bias'].map((part) => weights.tensor(`${prefix}.${part}`, [width]))
    return new LayerNorm(weight, bias, eps, context)
  }
}

class ReLU extends Layer {
  constructor(context = defaultContext()) {
    super(native.layerRelu(context), context)
  }
}

class GELU extends Layer {
  constructor(form = 'erf', context = defaultContext()) {
    super(native.layerGelu(context, form), context)
    this.form = form
  }
}

class Sequential extends Layer {
  constructor(...layers) {
    super()
    for (const layer of layers) inside(layer, Layer)
    this.layers = layers
  }

  forward(x) {
    return this.layers.reduce((value, layer) => layer.forward(value), x)
  }

  async forwardAsync(x) {
    for (const layer of this.layers) x = await layer.forwardAsync(x)
    return x
  }
}

class FeedForward extends Layer {
  constructor(inner, outer, activation = 'gelu_erf') {
    super(native.layerFeedForward(inside(inner, Linear), inside(outer, Linear), activation))
  }
}

class MultiHeadAttention extends Layer {
  constructor(qkv, output, heads) {
    super(native.layerAttention(inside(qkv, Linear), inside(output, Linear), heads), qkv.context)
    this.heads = heads
  }

  static load(weights, prefixes, width, heads, context = defaultContext()) {
    const layer = native.layerLoadAttention(context, inside(weights, Weights), prefixes, width, heads)
    return loaded(MultiHeadAttention, layer, { context, heads })
  }
}

class TransformerLayer extends Layer {
  constructor(attention, attentionNorm, feedForward, outputNorm) {
    const norms = [attentionNorm, outputNorm].map((norm) => inside(norm, LayerNorm))
    const [within, between] = [inside(attention, MultiHeadAttention), inside(feedForward, FeedForward)]
    super(native.layerTransformer(within, norms[0], between, norms[1]))
  }

  static load(weights, prefix, config, context = defaultContext()) {
    const { width, heads, hidden, activation = 'gelu_erf', eps = 1e-12 } = config
    const sizes = [width, heads, hidden]
    const layer = native.layerLoadTransformer(context, inside(weights, Weights), prefix, sizes, activation, eps)
    return loaded(TransformerLayer, layer, {})
  }
}

class TransformerEncoder extends Layer {
  constructor(layers) {
    const all = [...layers]
    super(native.layerEncoder(all.map((layer) => inside(layer, TransformerLayer))))
    this.layers = all
  }

  static load(weights, prefix, layers, config, context) {
    const layer = (_, i) => TransformerLayer.load(weights, `${prefix}.${i}`, config, context)
    return new TransformerEncoder(Array.from({ length: layers }, layer))
  }
}

module.exports = {
  Weights,
  Layer,
  Linear,
  Embedding,
  LayerNorm,
  ReLU,
  GELU,
  Sequential,
  FeedForward,
  MultiHeadAttention,
  TransformerLayer,
  TransformerEncoder,
}
