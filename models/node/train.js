'use strict'

// Training. The native module computes. This file has the public class, and checks what the module can't say well.

const native = require('./load.js')
const { checkText, named, refused } = require('./errors.js')

/** Values as the native module takes them: a number[] of classes becomes a BigInt64Array. */
function checkValues(values, name) {
  if (values instanceof Float32Array || values instanceof BigInt64Array) return values
  if (!Array.isArray(values)) {
    throw refused(`${name} must be a Float32Array, a BigInt64Array or an array of classes; it is ${named(values)}`)
  }
  return BigInt64Array.from(values, (value, number) => {
    if (!Number.isInteger(value)) throw refused(`element ${number} of ${name} is no class, which is a whole number`)
    return BigInt(value)
  })
}

function checkEpochs(options) {
  const epochs = options?.epochs ?? 1
  if (!Number.isInteger(epochs) || epochs < 1) throw refused(`epochs is ${epochs}; it is at least 1`)
  const told = options?.onProgress ?? undefined
  if (told !== undefined && typeof told !== 'function') throw refused('onProgress must be a function')
  return [epochs, told]
}

const present = (options) =>
  options && Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null && value !== undefined))

/** A description for the native module. */
function described(description) {
  if (typeof description !== 'object' || description === null) {
    throw refused(`a description must be an object; it is ${named(description)}`)
  }
  const { model } = description
  return JSON.stringify(Array.isArray(model) ? { ...description, model: { kind: 'layers', layers: model } } : description)
}

class Trainer {
  #native

  constructor(trainer) {
    if (!(trainer instanceof native.Trainer)) throw refused('a trainer is made by Trainer.create(description)')
    this.#native = trainer
  }

  static create(description, options) {
    return new Trainer(native.Trainer.create(described(description), present(options)))
  }

  // A promise rejects with what is wrong with its arguments, instead of throwing it.
  static async createAsync(description, options) {
    return new Trainer(await native.Trainer.createAsync(described(description), present(options)))
  }

  close() {
    this.#native.close()
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.close()
  }

  get steps() {
    return this.#native.steps
  }

  get batch() {
    return this.#native.batch
  }

  get device() {
    return this.#native.device
  }

  get sample() {
    return this.#native.sample
  }

  step(x, targets) {
    return this.#native.step(checkValues(x, 'x'), checkValues(targets, 'targets'))
  }

  fit(x, targets, options) {
    const [epochs, told] = checkEpochs(options)
    const data = [checkValues(x, 'x'), checkValues(targets, 'targets')]
    if (!told) return this.#native.fit(...data, epochs)
    let loss
    // An epoch at a time is the same as all at once: the order of samples depends on the number of steps.
    for (let epoch = 1; epoch <= epochs; epoch++) {
      loss = this.#native.fit(...data, 1)
      told({ epoch, steps: this.steps, loss })
    }
    return loss
  }

  async fitAsync(x, targets, options) {
    const [epochs, told] = checkEpochs(options)
    // Copies, so that all epochs see the same values.
    const data = [checkValues(x, 'x').slice(), checkValues(targets, 'targets').slice()]
    if (!told) return this.#native.fitAsync(...data, epochs)
    let loss
    for (let epoch = 1; epoch <= epochs; epoch++) {
      loss = await this.#native.fitAsync(...data, 1)
      told({ epoch, steps: this.steps, loss })
    }
    return loss
  }

  predict(x) {
    return this.#native.predict(checkValues(x, 'x'))
  }

  async predictAsync(x) {
    return this.#native.predictAsync(checkValues(x, 'x'))
  }

  evaluate(x, targets) {
    return this.#native.evaluate(checkValues(x, 'x'), checkValues(targets, 'targets'))
  }

  save(path) {
    checkText(path, 'the path')
    this.#native.save(path)
  }

  load(path) {
    checkText(path, 'the path')
    this.#native.load(path)
  }

  sha256() {
    return this.#native.sha256()
  }

  parameters() {
    return new Map(this.#native.parameters().map(({ name, dims, values }) => [name, { dims, values }]))
  }

  async join(place = 'env', options) {
    checkText(place, 'the place')
    return this.#native.join(place, options?.patience ?? 300)
  }
}

async function train(job, options) {
  checkText(job, 'the job')
  return native.trainAsync(job, present(options))
}

module.exports = { Trainer, train }
