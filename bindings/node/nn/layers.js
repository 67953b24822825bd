'use strict'

// Layers of one or two operations. What a layer does it yields as calls of a context, [context, method, ...arguments], and is
// given their results: so one description serves `forward` and `forwardAsync`.

const { AdeadError, defaultContext } = require('../index.js')

const mismatch = (text) => new AdeadError(text, 'shape_mismatch', 2)
const refused = (text) => new AdeadError(text, 'invalid_argument', 1)
const shown = (dims) => `[${dims.join(', ')}]`

class Layer {
  forward(...args) {
    const steps = this.steps(...args)
    let step = steps.next()
    while (!step.done) {
      const [context, method, ...operands] = step.value
      step = steps.next(context[method](...operands))
    }
    return step.value
  }

  async forwardAsync(...args) {
    const steps = this.steps(...args)
    let step = steps.next()
    while (!step.done) {
      const [context, method, ...operands] = step.value
      step = steps.next(await context[`${method}Async`](...operands))
    }
    return step.value
  }
}

class Linear extends Layer {
  #matrix
  #bias

  constructor(weight, bias, context = defaultContext()) {
    super()
    if (weight.dims.length !== 2) {
      throw mismatch(`linear: the weight is ${shown(weight.dims)}; it must be [outputs, inputs]`)
    }
    ;[this.outputs, this.inputs] = weight.dims
    if (bias && (bias.dims.length !== 1 || bias.length !== this.outputs)) {
      throw mismatch(`linear: the bias is ${shown(bias.dims)} and the weight ${shown(weight.dims)}`)
    }
    this.context = context
    this.#bias = bias ?? null
    // A GPU takes no packed matrix.
    const alone = context.devices.every(({ id }) => id === 'cpu')
    this.#matrix = alone ? context.pack(weight, true) : context.transpose(weight)
    this.method = alone ? 'matmulPacked' : 'matmul'
  }

  static load(weights, prefix, inputs, outputs, context) {
    const weight = weights.tensor(`${prefix}.weight`, [outputs, inputs])
    return new Linear(weight, weights.tensor(`${prefix}.bias`, [outputs]), context)
  }

  *steps(x, { residual = null, activation = 'none' } = {}) {
    const options = { c: residual, bias: this.#bias, beta: residual ? 1 : 0, activation }
    return yield [this.context, this.method, x, this.#matrix, options]
  }
}

class Embedding extends Layer {
  #table

  constructor(table, context = defaultContext()) {
    super()
    if (table.dims.length !== 2) {
      throw mismatch(`embedding: the table is ${shown(table.dims)}; it must be [count, width]`)
    }
    ;[this.count, this.width] = table.dims
    this.context = context
    this.#table = table
  }

  static load(weights, prefix, count, width, context) {
    return new Embedding(weights.tensor(`${prefix}.weight`, [count, width]), context)
  }

  *steps(ids) {
    return yield [this.context, 'embedding', this.#table, ids]
  }
}

class LayerNorm extends Layer {
  #options

  constructor(weight, bias, eps = 1e-5, context = defaultContext()) {
    super()
    this.context = context
    this.#options = { gamma: weight, beta: bias, eps }
  }

  static load(weights, prefix, width, eps, context) {
    const [weight, bias] = ['weight', 'bias'].map((part) => weights.tensor(`${prefix}.${part}`, [width]))
    return new LayerNorm(weight, bias, eps, context)
  }

  *steps(x) {
    return yield [this.context, 'layernorm', x, this.#options]
  }
}

class ReLU extends Layer {
  constructor(context = defaultContext()) {
    super()
    this.context = context
  }

  *steps(x) {
    return yield [this.context, 'relu', x]
  }
}

class GELU extends Layer {
  constructor(form = 'erf', context = defaultContext()) {
    super()
    this.form = form
    this.context = context
  }

  *steps(x) {
    return yield [this.context, 'gelu', x, { form: this.form }]
  }
}

class Sequential extends Layer {
  constructor(...layers) {
    super()
    for (const [i, layer] of layers.entries()) if (!(layer instanceof Layer)) throw refused(`sequential: ${i} is no layer`)
    this.layers = layers
  }

  *steps(x) {
    for (const layer of this.layers) x = yield* layer.steps(x)
    return x
  }
}

class FeedForward extends Layer {
  #inner
  #outer
  #activation

  constructor(inner, outer, activation = 'gelu_erf') {
    super()
    if (inner.outputs !== outer.inputs) {
      const text = `the first layer returns ${inner.outputs} values and the second takes ${outer.inputs}`
      throw mismatch(`feed-forward: ${text}`)
    }
    this.#inner = inner
    this.#outer = outer
    this.#activation = activation
  }

  *steps(x, { residual = null } = {}) {
    const hidden = yield* this.#inner.steps(x, { activation: this.#activation })
    return yield* this.#outer.steps(hidden, { residual })
  }
}

module.exports = { Layer, Linear, Embedding, LayerNorm, ReLU, GELU, Sequential, FeedForward }
