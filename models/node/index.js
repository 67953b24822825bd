'use strict'

// Models for Node.js. The native module opens models and computes. This file has the public classes of sentence embeddings, and
// streams of sentences; text.js has text generation, train.js training, gguf.js GGUF files.

const native = require('./load.js')
const { AdeadError, checkText, named, refused } = require('./errors.js')
const gguf = require('./gguf.js')
const { TextGenerator, TextStream } = require('./text.js')
const training = require('./train.js')

/** The most sentences in a part, fewer in the first one, because the caller waits for it; and the characters that fill a part. */
const MOST = 1024
const FIRST = 64
const CHARACTERS = 2 ** 20

/** Checks the sentence of an index. */
const check = (sentence, number) => checkText(sentence, `sentence ${number}`)

function checkAll(sentences) {
  if (!Array.isArray(sentences)) throw refused(`sentences must be an array of strings; they are ${named(sentences)}`)
  sentences.forEach(check)
}

class Embeddings {
  constructor({ values, width, truncated }, first = 0) {
    this.first = first
    this.values = values
    this.rows = values.length / width
    this.width = width
    this.truncated = truncated
  }

  row(number) {
    if (!Number.isInteger(number) || number < 0 || number >= this.rows) {
      throw refused(`there is no row ${number}: there are ${this.rows}`)
    }
    return this.values.subarray(number * this.width, (number + 1) * this.width)
  }
}

class SentenceEncoder {
  #native

  constructor(encoder) {
    if (!(encoder instanceof native.Encoder)) throw refused('use SentenceEncoder.open(folder) to make an encoder')
    this.#native = encoder
  }

  static open(folder, options) {
    return new SentenceEncoder(native.Encoder.open(folder, options))
  }

  // Errors in arguments reject the promise instead of being thrown.
  static async openAsync(folder, options) {
    return new SentenceEncoder(await native.Encoder.openAsync(folder, options))
  }

  get width() {
    return this.#native.width
  }

  get maxTokens() {
    return this.#native.maxTokens
  }

  get device() {
    return this.#native.device
  }

  encode(sentences, options) {
    checkAll(sentences)
    return new Embeddings(this.#native.encode(sentences, options))
  }

  async encodeAsync(sentences, options) {
    checkAll(sentences)
    return new Embeddings(await this.#native.encodeAsync(sentences, options))
  }

  batchEmbed(sentences, options) {
    // A string is also an iterable, of its characters.
    const iterable = typeof sentences === 'string' ? undefined : sentences
    const iterator = iterable?.[Symbol.asyncIterator]?.() ?? iterable?.[Symbol.iterator]?.()
    if (!iterator) throw refused(`sentences must be an iterable of strings; they are ${named(sentences)}`)
    const progress = options?.progress
    if (progress !== undefined && typeof progress !== 'function') throw refused('progress must be a function')
    // Encodes no sentence: this checks the options only.
    this.#native.encode([], options)
    return this.#parts(iterator, options, progress)
  }

  async *#parts(iterator, options, progress) {
    let [taken, given, computed, most] = [0, 0, 0, FIRST]
    // Whether no more sentences are taken, the source is exhausted, and no caller waits for rows.
    let [ended, exhausted, stopped] = [false, false, false]
    /** Takes the next sentences and starts computing them. The promise of the rows is wrapped, so that `take` does not wait for it. */
    const take = async () => {
      const sentences = []
      let characters = 0
      while (!stopped && sentences.length < most && characters < CHARACTERS) {
        exhausted = true // unless the iterator has another sentence
        const { done, value } = await iterator.next()
        ended = done
        if (done) break
        exhausted = false
        check(value, taken++)
        sentences.push(value)
        characters += value.length
      }
      most = Math.min(2 * most, MOST)
      if (stopped || sentences.length === 0) return undefined
      const rows = this.encodeAsync(sentences, options).then((rows) => {
        computed += rows.rows
        if (!stopped) progress?.(computed)
        return rows
      })
      return { rows }
    }
    /** Handles rejections here too, because the caller may never wait for the result. */
    const begin = () => {
      const next = take()
      next.then((part) => part?.rows.catch(() => {})).catch(() => {})
      return next
    }
    let next = begin()
    try {
      for (let part; (part = await next); ) {
        // The next sentences are taken and computed at the same time as these.
        next = ended ? undefined : begin()
        const rows = await part.rows
        rows.first = given
        given += rows.rows
        yield rows
      }
    } finally {
      stopped = true
      await next?.catch(() => {})
      if (!exhausted) await iterator.return?.()
    }
  }
}

module.exports = { AdeadError, Embeddings, SentenceEncoder, TextGenerator, TextStream, ...gguf, ...training }
