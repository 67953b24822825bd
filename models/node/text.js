'use strict'

// Text generation. The native module opens models and computes. This file has the public classes.

const native = require('./load.js')
const { checkText, named, refused } = require('./errors.js')
const { present, progressOf } = require('./options.js')

/** The options of a text: the native module takes an array of stop texts, and a schema as text. */
function checked(given) {
  const options = present(given)
  const { stop, jsonSchema: schema } = options ?? {}
  if (typeof schema === 'object' || typeof schema === 'boolean') options.jsonSchema = JSON.stringify(schema)
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

function checkPrompts(prompts) {
  if (!Array.isArray(prompts)) throw refused(`prompts must be an array; they are ${named(prompts)}`)
  prompts.forEach((prompt, number) => checkText(prompt, `prompt ${number}`))
}

const array = (tokens) => (ArrayBuffer.isView(tokens) ? Array.from(tokens) : tokens)

/** Computes a stream's prompt and reports the progress to `told`. An exception of `told` ends the work. */
function computePrompt(stream, told) {
  for (let part; (part = stream.advancePrompt()); ) told(...part)
}

async function computePromptAsync(stream, told) {
  for (let part; (part = await stream.advancePromptAsync()); ) told(...part)
}

class TextStream {
  #native
  /** Called with the progress of the prompt, until all of it is computed. */
  #told
  #promptTokens
  /** The computation of the prompt's chunks except the last. */
  #prompt
  #closed = false

  constructor(stream, told) {
    if (!(stream instanceof native.TextStream)) throw refused('use generator.stream(prompt) to make a stream')
    this.#native = stream
    if (!told) return
    const { promptTokens, finish } = stream.generation()
    this.#promptTokens = promptTokens
    // A text without tokens does not compute the prompt.
    if (finish === null) this.#told = told
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async next() {
    // Several pieces may be requested at once: the first request computes the prompt, and all wait for it.
    if (this.#told && !this.#closed) await (this.#prompt ??= this.#begin())
    const value = this.#closed ? null : await this.#native.nextAsync()
    this.#tellAll()
    return value === null ? { value: undefined, done: true } : { value, done: false }
  }

  async #begin() {
    try {
      await computePromptAsync(this.#native, this.#told)
    } catch (error) {
      await this.return()
      throw error
    }
  }

  /** Reports the prompt's last chunk, which was computed with the first piece. */
  #tellAll() {
    const told = this.#told
    this.#told = undefined
    if (!this.#closed) told?.(this.#promptTokens, this.#promptTokens)
  }

  async return(value) {
    this.#closed = true
    if (!this.#native.close()) await this.#native.closeAsync()
    return { value, done: true }
  }

  get generation() {
    return this.#native.generation()
  }
}

/** Reports that the prompt is computed. A text without tokens does not compute it. */
function tellAll({ promptTokens, tokens }, told) {
  if (tokens.length > 0) told?.(promptTokens, promptTokens)
}

/** Returns a stream's whole text. The prompt's last chunk is computed with the first token. */
function whole(stream, told) {
  try {
    if (told) computePrompt(stream, told)
    const answer = stream.whole()
    tellAll(answer, told)
    return answer
  } finally {
    stream.close()
  }
}

async function wholeAsync(stream, told) {
  try {
    if (told) await computePromptAsync(stream, told)
    const answer = await stream.wholeAsync()
    tellAll(answer, told)
    return answer
  } finally {
    stream.close()
  }
}

class TextGenerator {
  #native

  constructor(generator) {
    if (!(generator instanceof native.Generator)) throw refused('use TextGenerator.open(path) to make a generator')
    this.#native = generator
  }

  static open(path, given) {
    const [told, options] = progressOf(given)
    if (!told || options.map) return new TextGenerator(native.Generator.open(path, options))
    const loading = native.Loading.begin(path)
    for (let part; (part = loading.step()); ) told(...part)
    return new TextGenerator(loading.finish(options))
  }

  // Errors in arguments reject the promise instead of being thrown.
  static async openAsync(path, given) {
    const [told, options] = progressOf(given)
    if (!told || options.map) return new TextGenerator(await native.Generator.openAsync(path, options))
    const loading = native.Loading.begin(path)
    for (let part; (part = await loading.stepAsync()); ) told(...part)
    return new TextGenerator(await loading.finishAsync(options))
  }

  close() {
    this.#native.close()
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

  generate(prompt, given) {
    checkText(prompt, 'the prompt')
    const [told, options] = progressOf(given)
    return whole(this.#native.stream(prompt, checked(options)), told)
  }

  async generateAsync(prompt, given) {
    checkText(prompt, 'the prompt')
    const [told, options] = progressOf(given)
    return wholeAsync(await this.#native.streamAsync(prompt, checked(options)), told)
  }

  generateBatch(prompts, options) {
    checkPrompts(prompts)
    return this.#native.batch(prompts, checked(options))
  }

  async generateBatchAsync(prompts, options) {
    checkPrompts(prompts)
    return this.#native.batchAsync(prompts, checked(options))
  }

  stream(prompt, given) {
    checkText(prompt, 'the prompt')
    const [told, options] = progressOf(given)
    return new TextStream(this.#native.stream(prompt, checked(options)), told)
  }

  chat(messages, given) {
    checkMessages(messages)
    const [told, options] = progressOf(given)
    return whole(this.#native.chat(messages, checked(options)), told)
  }

  async chatAsync(messages, given) {
    checkMessages(messages)
    const [told, options] = progressOf(given)
    return wholeAsync(await this.#native.chatAsync(messages, checked(options)), told)
  }

  chatStream(messages, given) {
    checkMessages(messages)
    const [told, options] = progressOf(given)
    return new TextStream(this.#native.chat(messages, checked(options)), told)
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

// For `using model = …` and `await using stream = …`, if the language has them.
const method = (value) => ({ value, configurable: true, writable: true })
if (Symbol.dispose) Object.defineProperty(TextGenerator.prototype, Symbol.dispose, method(TextGenerator.prototype.close))
if (Symbol.asyncDispose) {
  const end = async function () {
    await this.return()
  }
  Object.defineProperty(TextStream.prototype, Symbol.asyncDispose, method(end))
}

module.exports = { TextGenerator, TextStream }
