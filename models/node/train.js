'use strict'

// Training on arrays, and from jobs' files. The native module trains. This file has the public class and functions.

const native = require('./load.js')
const { AdeadError, checkText, named, refused } = require('./errors.js')
const { present, progressOf } = require('./options.js')

/** Converts a description to JSON, which the native module takes. */
function written(description) {
  if (typeof description !== 'object' || description === null || Array.isArray(description)) {
    throw refused(`the description must be an object; it is ${named(description)}`)
  }
  const { seed, model, ...rest } = present(description)
  rest.model = Array.isArray(model) ? { kind: 'layers', layers: model } : model
  if (seed !== undefined && typeof seed !== 'bigint') rest.seed = seed
  let text
  try {
    text = JSON.stringify(rest)
  } catch (cause) {
    // It contains a bigint elsewhere, or a cycle.
    throw refused(`the description can't be converted to JSON: ${cause.message}`)
  }
  // JSON has integers of any size, but JSON.stringify can't write bigints.
  return typeof seed === 'bigint' ? `{"seed":${seed},${text.slice(1)}` : text
}

const ARRAYS = { f32: Float32Array, i64: BigInt64Array }

/** Converts values to the typed array of a dtype. Classes may be an array of numbers. */
function values(given, dtype, name, classes = false) {
  const type = ARRAYS[dtype]
  if (given instanceof type) return given
  if (classes && dtype === 'i64' && Array.isArray(given)) {
    return BigInt64Array.from(given, (one, number) => {
      if (typeof one === 'bigint' || Number.isSafeInteger(one)) return BigInt(one)
      throw refused(`element ${number} of ${name} must be a whole number; it is ${typeof one === 'number' ? one : named(one)}`)
    })
  }
  const wanted = classes && dtype === 'i64' ? `${type.name} or an array of numbers` : type.name
  const what = ArrayBuffer.isView(given) ? `a ${given.constructor.name}` : named(given)
  const text = `${name} must be a ${wanted}; it is ${what}`
  throw ArrayBuffer.isView(given) ? new AdeadError(text, 'dtype_mismatch', 3) : refused(text)
}

/** Does work on this thread and reports its events to `told`. An exception of `told` ends it. */
function follow(work, told) {
  try {
    for (let event; (event = work.next()); ) told(event)
  } catch (error) {
    try {
      work.end()
    } catch {
      // The work reports that it was ended.
    }
    throw error
  }
  return work.end()
}

async function followAsync(work, told) {
  try {
    for (let event; (event = await work.nextAsync()); ) told(event)
  } catch (error) {
    await work.endAsync().catch(() => {})
    throw error
  }
  return work.endAsync()
}

class Trainer {
  #native
  #sample

  constructor(trainer) {
    if (!(trainer instanceof native.Trainer)) throw refused('use Trainer.create(description) to make a trainer')
    this.#native = trainer
    this.#sample = trainer.sample
  }

  static create(description, options) {
    return new Trainer(native.Trainer.create(written(description), present(options)))
  }

  // Errors in arguments reject the promise instead of being thrown.
  static async createAsync(description, options) {
    return new Trainer(await native.Trainer.createAsync(written(description), present(options)))
  }

  close() {
    this.#native.close()
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

  #x(x) {
    return values(x, this.#sample.dtype, 'x')
  }

  #pair(x, targets) {
    return [this.#x(x), values(targets, this.#sample.target, 'targets', true)]
  }

  step(x, targets) {
    return this.#native.step(...this.#pair(x, targets))
  }

  async stepAsync(x, targets) {
    return this.#native.stepAsync(...this.#pair(x, targets))
  }

  fit(x, targets, given) {
    const [told, options] = progressOf(given)
    const all = [...this.#pair(x, targets), options?.epochs ?? 1]
    if (!told) return this.#native.fit(...all)
    return follow(this.#native.fitTold(...all), (event) => told(...event))
  }

  async fitAsync(x, targets, given) {
    const [told, options] = progressOf(given)
    const all = [...this.#pair(x, targets), options?.epochs ?? 1]
    if (!told) return this.#native.fitAsync(...all)
    return followAsync(this.#native.fitTold(...all), (event) => told(...event))
  }

  predict(x) {
    return this.#native.predict(this.#x(x))
  }

  async predictAsync(x) {
    return this.#native.predictAsync(this.#x(x))
  }

  evaluate(x, targets) {
    const [loss, accuracy] = this.#native.evaluate(...this.#pair(x, targets))
    return { loss, accuracy }
  }

  async evaluateAsync(x, targets) {
    const [loss, accuracy] = await this.#native.evaluateAsync(...this.#pair(x, targets))
    return { loss, accuracy }
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

  join(place, options) {
    checkText(place, 'the place')
    this.#native.join(place, options?.patience ?? undefined)
  }

  async joinAsync(place, options) {
    checkText(place, 'the place')
    await this.#native.joinAsync(place, options?.patience ?? undefined)
  }
}

// For `using trainer = …`, if the language has it.
if (Symbol.dispose) {
  const dispose = { value: Trainer.prototype.close, configurable: true, writable: true }
  Object.defineProperty(Trainer.prototype, Symbol.dispose, dispose)
}

/** Makes a job's event from its numbers. */
function told(event) {
  const [isOver, epoch, step, steps, loss, heldOutLoss, accuracy, seconds] = event
  return { epochIsOver: isOver === 1, epoch, step, steps, loss, heldOutLoss, accuracy, seconds }
}

function train(path, given) {
  checkText(path, 'the path')
  const [onProgress, options] = progressOf(given)
  if (!onProgress) return native.train(path, options)
  return follow(native.trainTold(path, options), (event) => onProgress(told(event)))
}

async function trainAsync(path, given) {
  checkText(path, 'the path')
  const [onProgress, options] = progressOf(given)
  if (!onProgress) return native.trainAsync(path, options)
  return followAsync(native.trainTold(path, options), (event) => onProgress(told(event)))
}

module.exports = { Trainer, train, trainAsync }
