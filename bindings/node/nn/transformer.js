'use strict'

// Self-attention and the encoders made of it.

const { AdeadError, Tensor, defaultContext } = require('../index.js')
const { FeedForward, Layer, LayerNorm, Linear } = require('./layers.js')

const mismatch = (text) => new AdeadError(`attention: ${text}`, 'shape_mismatch', 2)
const refused = (text) => new AdeadError(`attention: ${text}`, 'invalid_argument', 1)

/** What is added to the scores, [count, 1, 1, length]: 0 for a row of a sequence, −inf for padding. */
function masked(lengths, length) {
  const mask = Tensor.zeros('f32', [lengths.length, 1, 1, length])
  const added = mask.view()
  for (const [i, own] of lengths.entries()) {
    if (!Number.isInteger(own) || own < 1 || own > length) {
      throw refused(`a sequence of ${own} rows can't be padded to ${length}`)
    }
    added.fill(-Infinity, i * length + own, (i + 1) * length)
  }
  return mask
}

class MultiHeadAttention extends Layer {
  #qkv
  #output

  constructor(qkv, output, heads) {
    super()
    const width = output.inputs
    if (qkv.outputs !== 3 * width) throw mismatch(`${qkv.outputs} values are no queries, keys and values of ${width}`)
    if (!Number.isInteger(heads) || heads < 1 || width % heads !== 0) {
      throw refused(`${heads} heads don't divide a width of ${width}`)
    }
    this.context = qkv.context
    this.heads = heads
    this.#qkv = qkv
    this.#output = output
  }

  static load(weights, [query, key, value, output], width, heads, context = defaultContext()) {
    const joined = (name, dims) =>
      context.concat([query, key, value].map((part) => weights.tensor(`${part}.${name}`, dims)), { axis: 0 })
    const qkv = new Linear(joined('weight', [width, width]), joined('bias', [width]), context)
    return new MultiHeadAttention(qkv, Linear.load(weights, output, width, width, context), heads)
  }

  *steps(x, { lengths = null, residual = null } = {}) {
    const { context, heads } = this
    const [dims, width] = [x.dims, this.#output.inputs]
    if (![2, 3].includes(dims.length) || dims.at(-1) !== this.#qkv.inputs) {
      throw mismatch(`x is [${dims.join(', ')}]; it must be [count, length, ${this.#qkv.inputs}]`)
    }
    const [count, length] = dims.length === 3 ? dims : [1, dims[0]]
    if (lengths && lengths.length !== count) throw mismatch(`${lengths.length} lengths for ${count} sequences`)
    const mask = lengths && masked(lengths, length)
    const qkv = yield* this.#qkv.steps(x)
    const own = [count, heads, length, width / heads]
    const apart = yield [context, 'transpose', qkv.reshape([count, length, 3, heads, width / heads]), { perm: [2, 0, 3, 1, 4] }]
    const values = apart.view()
    const size = count * length * width
    const [q, k, v] = [0, 1, 2].map((i) => new Tensor(values.subarray(i * size, (i + 1) * size), own))
    const attended = yield [context, 'attention', q, k, v, { mask }]
    const joined = yield [context, 'transpose', attended, { perm: [0, 2, 1, 3] }]
    return yield* this.#output.steps(joined.reshape([...dims.slice(0, -1), width]), { residual })
  }
}

class TransformerLayer extends Layer {
  #attention
  #attentionNorm
  #feedForward
  #outputNorm

  constructor(attention, attentionNorm, feedForward, outputNorm) {
    super()
    this.#attention = attention
    this.#attentionNorm = attentionNorm
    this.#feedForward = feedForward
    this.#outputNorm = outputNorm
  }

  static load(weights, prefix, { width, heads, hidden, activation = 'gelu_erf', eps = 1e-12 }, context) {
    const parts = ['self.query', 'self.key', 'self.value', 'output.dense'].map((part) => `${prefix}.attention.${part}`)
    const inner = Linear.load(weights, `${prefix}.intermediate.dense`, width, hidden, context)
    const outer = Linear.load(weights, `${prefix}.output.dense`, hidden, width, context)
    return new TransformerLayer(
      MultiHeadAttention.load(weights, parts, width, heads, context),
      LayerNorm.load(weights, `${prefix}.attention.output.LayerNorm`, width, eps, context),
      new FeedForward(inner, outer, activation),
      LayerNorm.load(weights, `${prefix}.output.LayerNorm`, width, eps, context),
    )
  }

  *steps(x, { lengths = null } = {}) {
    const h = yield* this.#attentionNorm.steps(yield* this.#attention.steps(x, { lengths, residual: x }))
    return yield* this.#outputNorm.steps(yield* this.#feedForward.steps(h, { residual: h }))
  }
}

class TransformerEncoder extends Layer {
  constructor(layers) {
    super()
    this.layers = [...layers]
  }

  static load(weights, prefix, layers, config, context) {
    const layer = (_, i) => TransformerLayer.load(weights, `${prefix}.${i}`, config, context)
    return new TransformerEncoder(Array.from({ length: layers }, layer))
  }

  *steps(x, options) {
    for (const layer of this.layers) x = yield* layer.steps(x, options)
    return x
  }
}

module.exports = { MultiHeadAttention, TransformerLayer, TransformerEncoder }
