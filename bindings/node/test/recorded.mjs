// Pipelines of conformance cases (tests/conformance/FORMAT.md): recorded, compiled and run with each of their inputs,
// and executed with the inputs as constants.

import { attempt, camel, check, operand, shape } from './expected.mjs'

/** The options that name operands, at the operands' places in an operation's order. */
const OPTIONAL = {
  matmul: { 2: 'c', 3: 'bias' },
  layernorm: { 1: 'gamma', 2: 'beta', 3: 'residual' },
  rmsnorm: { 1: 'gamma', 2: 'residual' },
  attention: { 3: 'mask' },
  ffn: { 2: 'b1', 4: 'b2' },
}

/** Describes an operand without its data: its dtype and shape. */
const described = (text) => text.split(' ').slice(0, 2)

export class Recorded {
  values = []
  outputs = []
  runs = [{ inputs: [], expected: [] }]

  /** Reads a line; returns whether it is valid. */
  line(word, rest) {
    const run = this.runs.at(-1)
    const words = rest.split(' ')
    if (word === 'in') {
      if (this.runs.length === 1) this.values.push({ input: run.inputs.length })
      run.inputs.push(rest)
    } else if (word === 'const') this.values.push({ constant: rest })
    else if (word === 'reshape') this.values.push({ of: Number(words[0]), dims: shape(words[1]) })
    else if (word === 'do') {
      const [op, ...more] = words
      const attributes = more.filter((text) => text.includes('=')).map((text) => text.split('='))
      const operands = more.filter((text) => !text.includes('=')).map((text) => (text === '-' ? undefined : Number(text)))
      this.values.push({ op, operands, options: Object.fromEntries(attributes.map(([name, value]) => [camel(name), value])) })
    } else if (word === 'gradient') this.values.push({ gradient: Number(words[0]), by: Number(words[1]) })
    else if (word === 'give') this.outputs.push(Number(rest))
    else if (word === 'out' || word === 'error') run.expected.push(`${word} ${rest}`)
    else if (word === 'again') this.runs.push({ inputs: [], expected: [] })
    else return false
    return true
  }

  /** Records the pipeline. Its inputs become inputs, or constants if there are tensors for them. */
  record({ Tensor }, context, executed) {
    const pipeline = context.pipeline()
    const values = []
    for (const { input, constant, of, dims, gradient, by, op, operands, options } of this.values) {
      if (input !== undefined && executed) pipeline.constant(executed[input])
      else if (input !== undefined) {
        const [dtype, shaped] = described(this.runs[0].inputs[input])
        pipeline.input(shape(shaped), dtype)
      } else if (constant !== undefined) pipeline.constant(operand(Tensor, constant))
      else if (dims) pipeline.switch(values[of]).reshape(dims)
      else if (by !== undefined) pipeline.switch(pipeline.switch(values[gradient]).gradients([values[by]])[0])
      else {
        const optional = OPTIONAL[op] ?? {}
        const given = { ...options }
        const others = []
        operands.forEach((number, place) => {
          if (optional[place] && number !== undefined) given[optional[place]] = values[number]
          else if (!optional[place] && place > 0) others.push(values[number])
        })
        // The pipeline's value is the first operand; concat's others are an array.
        pipeline.switch(values[operands[0]])[camel(op)](...(op === 'concat' ? [others] : others), given)
      }
      values.push(pipeline.value)
    }
    for (const output of this.outputs) pipeline.switch(values[output]).output()
    return pipeline
  }

  /** Returns whether inputs are as recorded; other ones need another pipeline. */
  fits(inputs) {
    return String(inputs.map(described)) === String(this.runs[0].inputs.map(described))
  }

  /** Runs it. Returns undefined if the bits are the expected ones, else what is wrong. */
  run(adead, context) {
    const { results, error } = attempt(adead, () => this.record(adead, context).compile())
    for (const [number, { inputs, expected }] of this.runs.entries()) {
      const tensors = inputs.map((input) => operand(adead.Tensor, input))
      let wrong = check(expected, error ? { error } : attempt(adead, () => results[0].run(tensors)))
      if (wrong !== undefined) return `run ${number}, compiled: ${wrong}`
      if (!this.fits(inputs)) continue
      wrong = check(expected, attempt(adead, () => this.record(adead, context, tensors).execute()))
      if (wrong !== undefined) return `run ${number}, executed: ${wrong}`
    }
    return undefined
  }
}
