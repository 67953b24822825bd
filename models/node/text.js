'use strict'

// Text generation. The native module opens models and computes. This file has the public classes.

const native = require('./load.js')
const { checkText, named, refused } = require('./errors.js')

/** Options for the native module, without those that are null. */
function present(options) {
  if (typeof options !== 'object' || options === null) return options ?? undefined
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null))
}

/** The options of a text: the native module takes an array of stop texts. */
function checked(given) {
  const options = present(given)
  const stop = options?.stop
  if (stop === undefined) return options
  const stops = typeof stop === 'string' ? [stop] : stop
  if (!Array.isArray(stops)) throw refused(`stop must be a string or an array of strings; it is ${named(stop)}`)
  stops.forEach((text, number) => checkText(text, `stop text ${number}`))
  return { ...options, stop: stops }
}

function checkMessages(messages) {
  if (!Array.isArray(messages)) throw refused(`messages must be an array; they are ${named(messages)}`)
  messages.forEach((message, number) => {
    checkText(message?.role, `the role of message ${number}`)
    checkText(message?.content, `the content of message ${number}`)
  })
}

const array = (tokens) => (ArrayBuffer.isView(tokens) ? Array.from(tokens) : tokens)

class TextStream {
  #native
  #closed = false

  constructor(stream) {
    if (!(stream instanceof native.TextStream)) throw refused('a stream is made by a generator: generator.stream(prompt)')
    this.#native = stream
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async next() {
    const value = this.#closed ? null : await this.#native.nextAsync()
    return value === null ? { value: undefined, done: true } : { value, done: false }
  }

  async return(value) {
    this.#closed = true
    return { value, done: true }
  }

  get generation() {
    return this.#native.generation()
  }
}

class TextGenerator {
  #native

  constructor(generator) {
    if (!(generator instanceof native.Generator)) throw refused('a generator is opened: TextGenerator.open(path)')
    this.#native = generator
  }

  static open(path, options) {
    return new TextGenerator(native.Generator.open(path, present(options)))
  }

  // A promise rejects with what is wrong with its arguments, instead of throwing it.
  static async openAsync(path, options) {
    return new TextGenerator(await native.Generator.openAsync(path, present(options)))
  }

  get contextLength() {
    return this.#native.contextLength
  }

  get vocabulary() {
    return this.#native.vocabulary
  }

  get width() {
    return this.#native.width
  }

  get hasChatTemplate() {
    return this.#native.hasChatTemplate
  }

  get device() {
    return this.#native.device
  }

  generate(prompt, options) {
    checkText(prompt, 'the prompt')
    return this.#native.generate(prompt, checked(options))
  }

  async generateAsync(prompt, options) {
    checkText(prompt, 'the prompt')
    return this.#native.generateAsync(prompt, checked(options))
  }

  stream(prompt, options) {
    checkText(prompt, 'the prompt')
    return new TextStream(this.#native.stream(prompt, checked(options)))
  }

  chat(messages, options) {
    checkMessages(messages)
    return this.#native.answer(messages, checked(options))
  }

  async chatAsync(messages, options) {
    checkMessages(messages)
    return this.#native.answerAsync(messages, checked(options))
  }

  chatStream(messages, options) {
    checkMessages(messages)
    return new TextStream(this.#native.chat(messages, checked(options)))
  }

  tokenize(text) {
    checkText(text, 'the text')
    return this.#native.tokenize(text)
  }

  detokenize(tokens) {
    return this.#native.detokenize(array(tokens))
  }

  perplexity(text) {
    checkText(text, 'the text')
    return this.#native.perplexity(text)
  }

  async perplexityAsync(text) {
    checkText(text, 'the text')
    return this.#native.perplexityAsync(text)
  }

  logprobs(tokens) {
    return this.#native.logprobs(array(tokens))
  }

  async logprobsAsync(tokens) {
    return this.#native.logprobsAsync(array(tokens))
  }

  embed(text) {
    checkText(text, 'the text')
    return this.#native.embed(text)
  }

  async embedAsync(text) {
    checkText(text, 'the text')
    return this.#native.embedAsync(text)
  }
}

module.exports = { TextGenerator, TextStream }
