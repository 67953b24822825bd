// The text generator on a small model of tests/text.

import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { TextGenerator, TextStream } from '../index.mjs'
import { bits, rejects, throws } from './helpers.mjs'

const shared = (name) => fileURLToPath(new URL(`../../../tests/text/${name}`, import.meta.url))
const path = shared('llama.gguf')
const text = readFileSync(shared('answer.txt'), 'utf8')
const tokens = readFileSync(shared('answer.tokens'), 'utf8').trim().split(' ').map(Number)
const warm = {
  maxTokens: 60,
  ignoreEnd: true,
  temperature: 1.5,
  topK: 60,
  topP: 0.98,
  minP: 0.001,
  repeatPenalty: 1.1,
  repeatLast: 16,
  seed: 42,
}
const ferry = 'the ferry came in'
const model = TextGenerator.open(path, { device: 'cpu', threads: 2 })
const answer = { text, tokens, finish: 'max_tokens', promptTokens: model.tokenize('the ferry').length }
const messages = [{ role: 'system', content: 'be brief' }, { role: 'user', content: ferry }]

test('every language has this answer', async () => {
  assert.deepEqual(model.generate('the ferry', warm), answer)
  assert.deepEqual(await model.generateAsync('the ferry', { ...warm, seed: 42n, sequence: 0n }), answer)
  assert.notDeepEqual(model.generate('the ferry', { ...warm, seed: 2n ** 64n - 1n }).tokens, tokens)
  assert.deepEqual(
    [model.contextLength, model.vocabulary, model.width, model.hasChatTemplate, model.device],
    [256, 281, 64, true, 'cpu'],
  )
})

test('no choice changes a bit', async () => {
  for (const options of [{ chunk: 1 }, { threads: 1 }, { threads: 3, chunk: 7 }, { map: true }, { device: null, map: false }]) {
    const other = await TextGenerator.openAsync(path, options)
    assert.deepEqual((await other.generateAsync('the ferry', warm)).tokens, tokens)
  }
})

test('an answer is JSON that the schema allows', async () => {
  const schema = { const: { a: [1, null] } }
  for (const jsonSchema of [schema, JSON.stringify(schema)]) {
    const { text, finish } = model.generate('the ferry', { ...warm, jsonSchema })
    assert.deepEqual([JSON.parse(text), finish], [schema.const, 'end'])
    assert.equal((await model.generateAsync('the ferry', { ...warm, jsonSchema })).text, text)
  }
  assert.ok(typeof JSON.parse(model.generate('the ferry', { ...warm, jsonSchema: { type: 'integer' } }).text) === 'number')
  throws('invalid_argument', /json_schema: /, () => model.generate('the ferry', { jsonSchema: { type: 3 } }))
})

test('a stream gives the text in pieces', async () => {
  const stream = model.stream('the ferry', warm)
  assert.ok(stream instanceof TextStream)
  assert.deepEqual(stream.generation, { ...answer, text: '', tokens: [], finish: null })
  const pieces = []
  for await (const piece of stream) {
    pieces.push(piece)
    assert.equal(stream.generation.text, pieces.join(''))
  }
  assert.ok(pieces.length > 10 && pieces.every((piece) => piece !== ''))
  assert.deepEqual(stream.generation, answer)
  assert.deepEqual(await stream.next(), { value: undefined, done: true })
})

test('a loop that ends early ends the stream', async () => {
  const stream = model.stream('the ferry', warm)
  for await (const piece of stream) {
    assert.ok(text.startsWith(piece))
    break
  }
  assert.deepEqual(await stream.next(), { value: undefined, done: true })
  assert.equal(stream.generation.finish, null)
  assert.ok(stream.generation.tokens.length < 60)
})

test('several pieces may be asked for at once', async () => {
  const stream = model.stream('the ferry', warm)
  const pieces = await Promise.all(Array.from({ length: 100 }, () => stream.next()))
  assert.equal(pieces.map(({ value }) => value ?? '').join('').length, text.length)
  assert.deepEqual(stream.generation, answer)
})

test('the memory of a stream is free when it ends', async () => {
  // Asked for while a piece is computed: it ends behind that piece.
  const busy = model.stream('the ferry', warm)
  const pieces = [busy.next(), busy.next()]
  await busy.return()
  const found = await Promise.all(pieces)
  assert.ok(found.every(({ value }) => value === undefined || text.includes(value)))
  assert.equal(busy.generation.finish, null)
  assert.deepEqual(await busy.next(), { value: undefined, done: true })
  assert.deepEqual(await busy.return('again'), { value: 'again', done: true })
  // Streams that are kept: their sequences would take 64 MB.
  const before = process.memoryUsage.rss()
  const kept = []
  for (let n = 0; n < 300; n++) {
    const stream = model.stream('x'.repeat(250), { maxTokens: 5, ignoreEnd: true })
    kept.push(stream)
    await stream.next()
    if (n % 3 === 0) await stream.return()
    else if (n % 3 === 1) await stream[Symbol.asyncDispose]()
    else while (!(await stream.next()).done);
  }
  const more = process.memoryUsage.rss() - before
  assert.ok(more < 16e6, `${more} bytes more for ${kept.length} streams`)
})

test('a closed generator is refused', async () => {
  const other = TextGenerator.open(path, { device: 'cpu' })
  const stream = other.stream('the ferry', warm)
  const whole = other.generateAsync('the ferry', warm)
  other.close()
  other[Symbol.dispose]()
  // What is under way goes on.
  assert.deepEqual(await whole, answer)
  const pieces = []
  for await (const piece of stream) pieces.push(piece)
  assert.equal(pieces.join(''), text)
  const calls = [
    () => other.width,
    () => other.device,
    () => other.generate('a'),
    () => other.generateBatch(['a']),
    () => other.stream('a'),
    () => other.chat(messages),
    () => other.tokenize('a'),
    () => other.embed('a'),
  ]
  for (const call of calls) throws('invalid_argument', /the generator is closed/, call)
  await rejects('invalid_argument', /the generator is closed/, other.generateAsync('a'))
  await rejects('invalid_argument', /the generator is closed/, other.perplexityAsync('a b'))
})

test('progress is told', async () => {
  const size = statSync(path).size
  const told = []
  const onProgress = (...progress) => told.push(progress)
  const taken = () => told.splice(0)
  const options = { device: 'cpu', chunk: 10, onProgress }
  const other = TextGenerator.open(path, options)
  assert.deepEqual(taken(), [[size, size]])
  const again = await TextGenerator.openAsync(path, options)
  assert.deepEqual(taken(), [[size, size]])
  TextGenerator.open(path, { ...options, map: true })
  assert.deepEqual(taken(), [])

  const prompt = 'x'.repeat(30)
  const steps = [[10, 30], [20, 30], [30, 30]]
  const one = { maxTokens: 1, ignoreEnd: true }
  const expected = other.generate(prompt, one)
  assert.deepEqual(taken(), [])
  assert.deepEqual(other.generate(prompt, { ...one, onProgress }), expected)
  assert.deepEqual(taken(), steps)
  assert.deepEqual(await again.generateAsync(prompt, { ...one, onProgress }), expected)
  assert.deepEqual(taken(), steps)
  const stream = other.stream(prompt, { ...one, onProgress })
  await Promise.all([stream.next(), stream.next(), stream.next()])
  assert.deepEqual(stream.generation, expected)
  assert.deepEqual(taken(), steps)
  await other.chatAsync(messages, { ...one, onProgress })
  const [last] = taken().slice(-1)
  assert.equal(last[0], last[1])
  // A text without tokens needs no prompt.
  other.generate('x', { maxTokens: 0, onProgress })
  assert.deepEqual(await other.stream('x', { maxTokens: 0, onProgress }).next(), { value: undefined, done: true })
  other.generate('x', { maxTokens: 1, onProgress: null })
  assert.deepEqual(taken(), [])

  // What the function throws ends the work.
  const thrown = new Error('enough')
  const throwing = () => {
    throw thrown
  }
  assert.throws(() => TextGenerator.open(path, { onProgress: throwing }), thrown)
  await assert.rejects(TextGenerator.openAsync(path, { onProgress: throwing }), thrown)
  assert.throws(() => other.generate(prompt, { onProgress: throwing }), thrown)
  await assert.rejects(other.generateAsync(prompt, { onProgress: throwing }), thrown)
  const failing = other.stream(prompt, { onProgress: throwing })
  await assert.rejects(failing.next(), thrown)
  assert.deepEqual(await failing.next(), { value: undefined, done: true })
  throws('invalid_argument', /onProgress must be a function; it is of the type number/, () => other.generate('a', { onProgress: 3 }))
  throws('io', /nowhere/, () => TextGenerator.open(shared('nowhere'), { onProgress }))
  await rejects('invalid_argument', /make_tiny\.py/, TextGenerator.openAsync(shared('make_tiny.py'), { onProgress }))
})

test('a batch gives the texts that each prompt gives alone', async () => {
  const prompts = ['the ferry', 'came in', 'a rather longer prompt than the others']
  const alone = prompts.map((prompt, sequence) => model.generate(prompt, { ...warm, sequence }))
  assert.deepEqual(model.generateBatch(prompts, warm), alone)
  assert.deepEqual(await model.generateBatchAsync(prompts, warm), alone)
  assert.deepEqual(alone[0], answer)
  assert.deepEqual(model.generateBatch([]), [])
  throws('invalid_argument', /no tokens/, () => model.generateBatch(['a', '']))
  throws('invalid_argument', /prompt 1 must be a string; it is null/, () => model.generateBatch(['a', null]))
  await rejects('invalid_argument', /prompts must be an array; they are of the type string/, model.generateBatchAsync('a'))
})

test('stop texts end the text', () => {
  const stop = text.slice(12, 15)
  for (const given of [stop, [stop], ['no such text', stop]]) {
    const { text: cut, finish } = model.generate('the ferry', { ...warm, stop: given })
    assert.deepEqual([cut, finish], [text.slice(0, text.indexOf(stop)), 'stop'])
  }
  const none = model.generate('the ferry', { maxTokens: 0 })
  assert.deepEqual([none.text, none.tokens, none.finish], ['', [], 'max_tokens'])
  const short = TextGenerator.open(path, { device: 'cpu', contextLength: 20 })
  assert.equal(short.generate(ferry, warm).finish, 'context_full')
})

test('chats', async () => {
  const prompt = `<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n${ferry}<|im_end|>\n<|im_start|>assistant\n`
  const found = model.chat(messages, warm)
  assert.deepEqual(found, model.generate(prompt, warm))
  assert.deepEqual(await model.chatAsync(messages, warm), found)
  let whole = ''
  for await (const piece of model.chatStream(messages, warm)) whole += piece
  assert.equal(whole, found.text)
  const other = TextGenerator.open(shared('qwen3.gguf'), { device: 'cpu' })
  throws('unsupported', /no chat template/, () => other.chat(messages))
  await rejects('unsupported', /no chat template/, other.chatAsync(messages))
})

test('tokens and scores', async () => {
  const given = model.tokenize(ferry)
  assert.equal(model.detokenize(given), ferry)
  assert.equal(model.detokenize(Uint32Array.from(given)), ferry)
  assert.equal(model.detokenize(model.tokenize('a\0b')), 'a\0b')
  const logprobs = model.logprobs(given)
  assert.equal(logprobs.length, given.length - 1)
  assert.deepEqual(bits(await model.logprobsAsync(Uint32Array.from(given))), bits(logprobs))
  const expected = Math.exp(-logprobs.reduce((sum, value) => sum + value, 0) / logprobs.length)
  assert.ok(Math.abs(model.perplexity(ferry) - expected) < 1e-9 * expected)
  assert.equal(await model.perplexityAsync(ferry), model.perplexity(ferry))
  const embedding = model.embed(ferry)
  assert.ok(embedding.length === 64 && embedding.some((value) => value !== 0))
  assert.deepEqual(bits(await model.embedAsync(ferry)), bits(embedding))
})

test('what is wrong is refused', async () => {
  const cases = [
    [/the prompt must be a string; it is of the type number/, 3],
    [/the prompt has an unpaired surrogate/, '🌊'.slice(0, 1)],
    [/the prompt has no tokens/, ''],
    [/the prompt has 300 tokens and the context length is 256/, 'x'.repeat(300)],
    [/temperature is -1/, 'a', { temperature: -1 }],
    [/top_p is 1.5/, 'a', { topP: 1.5 }],
    [/1\.5 is not a whole number/, 'a', { maxTokens: 1.5 }],
    [/a bigint must be from 0 to/, 'a', { seed: -1n }],
    [/a bigint must be from 0 to/, 'a', { seed: 2n ** 64n }],
    [/expected a number, not a string/, 'a', { seed: '1' }],
    [/stop must be a string or an array of strings; it is of the type number/, 'a', { stop: 3 }],
    [/stop text 1 must be a string; it is null/, 'a', { stop: ['b', null] }],
  ]
  for (const [words, ...given] of cases) {
    throws('invalid_argument', words, () => model.generate(...given))
    throws('invalid_argument', words, () => model.stream(...given))
    await rejects('invalid_argument', words, model.generateAsync(...given))
  }
  throws('invalid_argument', /messages must be an array; they are null/, () => model.chat(null))
  throws('invalid_argument', /the content of message 1 must be a string/, () => model.chat([messages[0], { role: 'user' }]))
  throws('invalid_argument', /the role of message 0 must be a string/, () => model.chat([null]))
  throws('invalid_argument', /-1 is not a whole number/, () => model.detokenize([-1]))
  throws('invalid_argument', /expected an array, not a string/, () => model.logprobs('a'))
  throws('invalid_argument', /token 999 is outside the vocabulary of 281/, () => model.logprobs([1, 999]))
  await rejects('invalid_argument', /needs at least 2/, model.perplexityAsync(''))
  throws('io', /nowhere/, () => TextGenerator.open(shared('nowhere')))
  await rejects('invalid_argument', /make_tiny\.py/, TextGenerator.openAsync(shared('make_tiny.py')))
  throws('invalid_argument', /a context length of 300/, () => TextGenerator.open(path, { contextLength: 300 }))
  throws('invalid_argument', /TextGenerator\.open/, () => new TextGenerator({}))
  throws('invalid_argument', /generator\.stream/, () => new TextStream({}))
})
