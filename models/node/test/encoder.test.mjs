// The encoder on the small model of tests/sentences, on the device that ADEAD_TEST_DEVICE names, else on the CPU.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import sentencesModule, { AdeadError, Embeddings, SentenceEncoder } from '../index.mjs'
import { bits, lines, npy, rejects, shared, throws, tiny } from './helpers.mjs'

const device = process.env.ADEAD_TEST_DEVICE ?? 'cpu'
const encoder = SentenceEncoder.open(tiny, { device, threads: 2 })
const sentences = lines('tiny.txt')
const expected = SentenceEncoder.open(tiny, { device: 'cpu', threads: 1 }).encode(sentences)

test('embeddings are those of the oracle', () => {
  const oracle = npy('tiny.npy')
  assert.deepEqual(bits(expected.values), bits(npy('tiny_bits.npy')))
  assert.deepEqual([encoder.width, encoder.maxTokens, encoder.device.startsWith(device.split(':')[0])], [32, 24, true])
  assert.deepEqual([expected.rows, expected.width, expected.first], [sentences.length, 32, 0])
  assert.equal(expected.values.length, oracle.length)
  assert.ok(expected.values.every((value, i) => Math.abs(value - oracle[i]) < 1e-6))
  assert.deepEqual(expected.truncated.map((i) => sentences[i].slice(0, 9)), ['xxxxxxxxx', 'the ferry', 'a b c d e'])
  assert.deepEqual(expected.row(3), expected.values.slice(96, 128))
})

test('every device, batch and thread count gives the same bits', async () => {
  for (const options of [undefined, {}, null, { batch: 1 }, { batch: 5, padded: true }, { batch: 100, padded: false }]) {
    const rows = encoder.encode(sentences, options)
    assert.deepEqual(bits(rows.values), bits(expected.values))
    assert.deepEqual(rows.truncated, expected.truncated)
    assert.deepEqual(bits((await encoder.encodeAsync(sentences, options)).values), bits(expected.values))
  }
  sentences.forEach((sentence, i) => assert.deepEqual(bits(encoder.encode([sentence]).values), bits(expected.row(i).slice())))
})

test('a precision gives values of its own', () => {
  for (const [precision, most] of [['f32', 0], ['fixed24', 2e-6], ['fixed16', 1e-3]]) {
    const { values } = SentenceEncoder.open(tiny, { device, precision }).encode(sentences)
    assert.ok(values.every((value, i) => Math.abs(value - expected.values[i]) <= most), precision)
    assert.equal(values.every((value, i) => value === expected.values[i]), precision === 'f32')
  }
  throws('invalid_argument', /precision is 'f16'; it must be one of f32, fixed24, fixed16/, () =>
    SentenceEncoder.open(tiny, { device, precision: 'f16' }),
  )
})

test('promises compute at the same time', async () => {
  const other = await SentenceEncoder.openAsync(tiny, { device: 'cpu', threads: 1 })
  const promises = [encoder, other].flatMap((one) => [1, 2, 3, 7].map((batch) => one.encodeAsync(sentences, { batch })))
  for (const { values } of await Promise.all(promises)) assert.deepEqual(bits(values), bits(expected.values))
})

test('a worker opens its own, and may end with work under way', async () => {
  const module = JSON.stringify(createRequire(import.meta.url).resolve('../index.js'))
  const code = `const { SentenceEncoder } = require(${module})
    const encoder = SentenceEncoder.open(${JSON.stringify(tiny)}, { device: 'cpu', threads: 1 })
    require('node:worker_threads').parentPort.postMessage(encoder.encode(${JSON.stringify(sentences)}).values)
    for (let n = 0; n < 8; n++) encoder.encodeAsync(${JSON.stringify(sentences)}).catch(() => {})
    process.exit()`
  const worker = new Worker(code, { eval: true })
  const [values] = await Promise.all([
    new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject)),
    new Promise((resolve) => worker.once('exit', resolve)),
  ])
  assert.deepEqual(bits(values), bits(expected.values))
})

test('nothing to embed is no error', async () => {
  for (const none of [encoder.encode([]), await encoder.encodeAsync([])]) {
    assert.deepEqual([none.rows, none.values.length, none.width, none.truncated], [0, 0, 32, []])
    throws('invalid_argument', /there is no row 0: there are 0/, () => none.row(0))
  }
})

test('arguments that are none are refused', async () => {
  const cases = [
    [/must be an array of strings; they are of the type string/, 'a sentence'],
    [/must be an array of strings; they are null/, null],
    [/sentence 1 must be a string; it is of the type number/, ['a', 3]],
    [/sentence 0 must be a string; it is null/, [null]],
    [/expected a string, not undefined/, Array(2)],
    [/sentence 1 has an unpaired surrogate/, ['🌊', '🌊'.slice(0, 1)]],
    [/a batch has at least 1 sentence, not 0/, ['a'], { batch: 0 }],
    [/1\.5 is not a whole number/, ['a'], { batch: 1.5 }],
    [/-1 is not a whole number/, ['a'], { batch: -1 }],
    [/expected a number, not a string/, ['a'], { batch: '2' }],
    [/expected true or false, not a number/, ['a'], { padded: 1 }],
  ]
  for (const [text, ...given] of cases) {
    throws('invalid_argument', text, () => encoder.encode(...given))
    await rejects('invalid_argument', text, encoder.encodeAsync(...given))
  }
  for (const row of [-1, sentences.length, 0.5, '0', undefined]) {
    throws('invalid_argument', /there is no row .*: there are 32/, () => expected.row(row))
  }
  throws('invalid_argument', /SentenceEncoder.open/, () => new SentenceEncoder({}))
})

test('what can not be opened is refused with the reason', async () => {
  const cases = [
    ['io', /nowhere: .*No such file/, shared('nowhere')],
    ['io', /config\.json: .*No such file/, shared('')],
    ['invalid_argument', /a model is a folder, and this is a file/, shared('tiny/config.json')],
    ['invalid_argument', /expected a string, not undefined/, undefined],
    ['invalid_argument', /expected a string, not a number/, 3],
    ['invalid_argument', /expected a number, not a string/, tiny, { threads: 'two' }],
    ['invalid_argument', /expected a string, not a number/, tiny, { device: 0 }],
    ['invalid_argument', /no device 'nobody'/, tiny, { device: 'nobody' }],
    ['backend_unavailable', /cuda:99/, tiny, { device: 'cuda:99' }],
  ]
  for (const [code, text, ...given] of cases) {
    throws(code, text, () => SentenceEncoder.open(...given))
    await rejects(code, text, SentenceEncoder.openAsync(...given))
  }
})

test('CommonJS and ESM have the same', () => {
  const required = createRequire(import.meta.url)('../index.js')
  assert.equal(required, sentencesModule)
  const classes = ['AdeadError', 'Embeddings', 'SentenceEncoder', 'TextGenerator', 'TextStream', 'Trainer']
  const functions = ['convert', 'convertAsync', 'quantize', 'quantizeAsync', 'train', 'trainAsync']
  assert.deepEqual(Object.keys(required).sort(), [...classes, ...functions])
  assert.ok(expected instanceof required.Embeddings && Embeddings === required.Embeddings)
  assert.equal(new AdeadError('text', 'io', 11).name, 'AdeadError')
})
