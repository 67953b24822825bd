// adead/nn: the small model of tests/sentences must give the Rust crate's bits. And misuse of layers.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AdeadError, Context, Tensor } from '../index.mjs'
import nn, {
  Embedding,
  FeedForward,
  GELU,
  LayerNorm,
  Linear,
  MultiHeadAttention,
  ReLU,
  Sequential,
  TransformerEncoder,
  Weights,
} from '../nn/index.mjs'
import { f32, rejects, same, throws } from './helpers.mjs'

const shared = (name) => fileURLToPath(new URL(`../../../tests/sentences/${name}`, import.meta.url))
const model = shared('tiny/model.safetensors')
const tokens = JSON.parse(readFileSync(shared('tiny_tokens.json'), 'utf8'))
const expected = readFileSync(shared('tiny_bits.npy')).subarray(128)
const context = new Context(process.env.ADEAD_TEST_DEVICE ?? 'cpu', { threads: 2 })
const cpu = new Context('cpu', { threads: 1 })
const [width, config] = [32, { width: 32, heads: 4, hidden: 48 }]
const folder = mkdtempSync(join(tmpdir(), 'adead-nn-'))
after(() => rmSync(folder, { recursive: true }))

/** BERT with mean pooling and normalisation, as in sentence-transformers: embeddings of sentences from their tokens. */
function embedder(context) {
  const weights = new Weights(model)
  const words = Embedding.load(weights, 'embeddings.word_embeddings', 92, width, context)
  const rows = weights.tensor('embeddings.token_type_embeddings.weight', [2, width])
  const type = new Tensor(rows.view().subarray(0, width), [1, width])
  const positions = weights.tensor('embeddings.position_embeddings.weight', [40, width])
  const places = new Embedding(context.add(positions, type), context)
  const norm = LayerNorm.load(weights, 'embeddings.LayerNorm', width, 1e-12, context)
  const encoder = TransformerEncoder.load(weights, 'encoder.layer', 2, config, context)
  weights.close()
  return async (batch, length, later = false) => {
    const lengths = batch.map((ids) => ids.length)
    const longest = length ?? Math.max(...lengths)
    const dims = [batch.length, longest]
    const at = (of) => batch.flatMap((ids) => Array.from({ length: longest }, (_, i) => of(ids, i)))
    const ids = words.forward(new Tensor(Uint32Array.from(at((ids, i) => ids[i] ?? 0)), dims))
    const x = norm.forward(context.add(ids, places.forward(new Tensor(Uint32Array.from(at((_, i) => i)), dims))))
    const options = { lengths: length && lengths }
    const y = later ? await encoder.forwardAsync(x, options) : encoder.forward(x, options)
    const own = f32(at((ids, i) => Number(i < ids.length)), [...dims, 1])
    const sums = context.sum(context.mul(y, own), { axis: 1 })
    const mean = context.div(sums, f32(lengths, [batch.length, 1]))
    const norms = context.sqrt(context.sum(context.mul(mean, mean), { axis: -1, keepdim: true }))
    const least = f32(batch.map(() => 1e-12), norms.dims)
    return context.div(mean, context.max(context.concat([norms, least], { axis: -1 }), { axis: -1, keepdim: true })).toBytes()
  }
}

test('the encoder has the bits of the Rust crate', async () => {
  const embed = embedder(context)
  for (const [i, ids] of tokens.entries()) {
    assert.deepEqual(Buffer.from(await embed([ids])), expected.subarray(i * width * 4, (i + 1) * width * 4))
  }
  for (const later of [false, true]) {
    assert.deepEqual(Buffer.from(await embed(tokens, 24, later)), expected)
    assert.deepEqual(Buffer.from(await embed(tokens.slice(0, 9), 30, later)), expected.subarray(0, 9 * width * 4))
  }
})

test('layers are their operations', async () => {
  const x = f32([1, -2, 3, 0.5, 0.25, -1], [2, 3])
  const [w, b, ones] = [f32([0.5, -1, 0.25, 2, -0.5, 1.5], [2, 3]), f32([0.1, -0.2], [2]), f32([1, 2], [2])]
  const linear = new Linear(w, b, context)
  assert.deepEqual([linear.inputs, linear.outputs], [3, 2])
  const product = context.matmul(x, w, { bias: b, transB: true })
  same(linear.forward(x), product)
  same(await linear.forwardAsync(x), product)
  same(new Linear(w, null, context).forward(x), context.matmul(x, w, { transB: true }))
  const more = context.matmul(x, w, { c: product, bias: b, beta: 1, transB: true, activation: 'relu' })
  same(linear.forward(x, { residual: product, activation: 'relu' }), more)
  const net = new Sequential(linear, new GELU('tanh', context), new ReLU(context), new LayerNorm(ones, b, 1e-5, context))
  const byHand = context.layernorm(context.relu(context.gelu(product, { form: 'tanh' })), { gamma: ones, beta: b, eps: 1e-5 })
  same(net.forward(x), byHand)
  same(await net.forwardAsync(x), byHand)
  assert.equal(new Sequential().forward(x), x)
  const encoder = TransformerEncoder.load(new Weights(model), 'encoder.layer', 1, config, cpu)
  const rows = f32(Array.from({ length: 5 * width }, (_, i) => Math.sin(i)), [5, width])
  same(encoder.forward(rows), encoder.forward(rows.reshape([1, 5, width])).reshape([5, width]))
})

test('weights are the files', () => {
  const weights = new Weights(model)
  assert.equal(weights.path, model)
  assert.equal(weights.names().length, 37)
  assert.deepEqual(weights.names(), weights.names().sort())
  assert.ok(weights.has('embeddings.LayerNorm.bias') && !weights.has('nothing') && !weights.has('__proto__'))
  assert.deepEqual(weights.dims('encoder.layer.0.intermediate.dense.weight'), [48, 32])
  const bytes = readFileSync(model)
  const start = 8 + Number(bytes.readBigUInt64LE())
  const header = JSON.parse(bytes.subarray(8, start))
  const kinds = new Set()
  for (const name of weights.names()) {
    const { dtype, shape, data_offsets: offsets } = header[name]
    const raw = bytes.subarray(start + offsets[0], start + offsets[1])
    const words = Array.from({ length: raw.length / 2 }, (_, i) => raw.readUInt16LE(2 * i))
    const tensor = weights.tensor(name, shape)
    kinds.add(dtype)
    assert.equal(tensor.dtype, 'f32')
    assert.deepEqual(tensor.dims, shape)
    // Every f16 of the model is normal or zero.
    const half = (h) => (h & 0x7fff ? (1 - 2 * (h >> 15)) * 2 ** (((h >> 10) & 31) - 25) * (1024 + (h & 1023)) : 0)
    const widen = {
      F32: () => Float32Array.from({ length: raw.length / 4 }, (_, i) => raw.readFloatLE(4 * i)),
      F16: () => Float32Array.from(words, half),
      BF16: () => new Float32Array(Uint32Array.from(words, (word) => word << 16).buffer),
    }
    assert.deepEqual(tensor.toArray(), widen[dtype]())
  }
  assert.deepEqual([...kinds].sort(), ['BF16', 'F16', 'F32'])
  const kept = weights.tensor('embeddings.LayerNorm.bias', [width])
  weights.close()
  weights.close()
  assert.equal(kept.toArray().length, width)
  throws('io', /model\.safetensors: the file was closed/, () => weights.tensor('embeddings.LayerNorm.bias', [width]))
})

/** Writes a file of a header, which is an object or bytes, and a number of bytes after it. */
function file(header, bytes = 0) {
  const text = Buffer.isBuffer(header) ? header : Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  const path = join(folder, 'odd.safetensors')
  writeFileSync(path, Buffer.concat([length, text, Buffer.alloc(bytes)]))
  return path
}

const entry = (dtype = 'F32', shape = [2], data_offsets = [0, 8]) => ({ dtype, shape, data_offsets })

test('odd files that are right', () => {
  const header = { __metadata__: { a: 'b' }, a: entry('U8', [1], [0, 1]), b: entry('F32', [2], [1, 9]) }
  const weights = new Weights(file({ ...header, c: entry('F32', [], [9, 13]), d: entry('F32', [0, 3], [13, 13]) }, 13))
  assert.deepEqual(weights.tensor('b', [2]).toArray(), new Float32Array(2))
  assert.deepEqual(weights.tensor('c', []).dims, [])
  assert.deepEqual(weights.tensor('d', [0, 3]).dims, [0, 3])
  const text = /odd\.safetensors: the tensor 'a' has elements of U8; F32, F16, BF16 and F64 are taken/
  throws('dtype_mismatch', text, () => weights.tensor('a', [1]))
  assert.deepEqual(new Weights(file({})).names(), [])
})

test('malformed files are refused', () => {
  // The tests of C cover malformed files, because it is the same reader.
  const cases = [
    [Buffer.from('{'), 0, /byte 1 of the header: '"' is missing/],
    [Buffer.from('[]'), 0, /'\{' is missing/],
    [Buffer.from([0x22, 0xff, 0x22]), 0, /this is not UTF-8/],
    [{ a: entry('F7') }, 8, /no such dtype/],
    [{ a: entry('F32', [2], [0, 8, 9]) }, 8, /a tensor has dtype, shape and two data_offsets/],
    [{ a: entry('F32', [2], [0, 12]) }, 12, /the tensor 'a' of 8 bytes has offsets \[0, 12\]; 0 is the next/],
    [{ a: entry('F32', [2 ** 52, 2 ** 52]) }, 8, /offsets/],
    [{ a: entry() }, 9, /8 bytes and the file 9/],
  ]
  for (const [header, bytes, text] of cases) {
    const path = file(header, bytes)
    const refused = (error) => error instanceof AdeadError && error.message.startsWith(`${path}: not a safetensors file: `)
    assert.throws(() => new Weights(path), refused)
    throws('invalid_argument', text, () => new Weights(path))
  }
  const bytes = readFileSync(model)
  const path = join(folder, 'cut')
  for (const length of [0, 7, 8, 100, 1000, bytes.length - 1]) {
    writeFileSync(path, bytes.subarray(0, length))
    throws('invalid_argument', /cut: not a safetensors file/, () => new Weights(path))
  }
  writeFileSync(path, bytes)
  const weights = new Weights(path)
  writeFileSync(path, bytes.subarray(0, bytes.length - 4))
  const text = /cut: the tensor '.*' ends at byte .* has become shorter/
  throws('io', text, () => weights.tensor('encoder.layer.1.output.LayerNorm.bias', [width]))
  throws('io', /missing: No such file/, () => new Weights(join(folder, 'missing')))
  throws('io', /[Ii]s a directory/, () => new Weights(folder))
  throws('invalid_argument', /expected a string, not a number/, () => new Weights(3))
})

test('layers leave their results where operations do', async () => {
  const x = f32(Array.from({ length: 4096 * 8 }, (_, i) => Math.sin(i)), [4096, 8])
  const [weight, bias] = [f32(Array.from({ length: 8 }, (_, i) => i / 8), [8]), Tensor.zeros('f32', [8])]
  const net = new Sequential(new GELU('erf', context), new LayerNorm(weight, bias, 1e-5, context))
  const expected = context.layernorm(context.gelu(x, { form: 'erf' }), { gamma: weight, beta: bias, eps: 1e-5 })
  const results = [net.forward(x), await net.forwardAsync(x)]
  // Reading a value copies it to the host.
  assert.deepEqual(results.map((y) => y.places), [expected.places, expected.places])
  for (const y of results) same(y, expected)
})

test('a signal ends what a layer computes', async () => {
  const encoder = TransformerEncoder.load(new Weights(model), 'encoder.layer', 2, config, cpu)
  const x = Tensor.zeros('f32', [4096, width])
  const before = new AbortController()
  before.abort()
  await assert.rejects(encoder.forwardAsync(x, { signal: before.signal }), { name: 'AbortError' })
  const later = new AbortController()
  const promise = encoder.forwardAsync(x, { signal: later.signal })
  later.abort()
  await assert.rejects(promise, { name: 'AbortError' })
})

test('misuse is refused', async () => {
  const weights = new Weights(model)
  const name = 'encoder.layer.0.intermediate.dense'
  const text = /tiny\/model\.safetensors: the tensor '.*dense\.weight' is \[48, 32\]; it must be \[64, 32\]/
  throws('shape_mismatch', text, () => Linear.load(weights, name, 32, 64, cpu))
  throws('invalid_argument', /expected an array, not a number/, () => weights.tensor(`${name}.weight`, 32))
  const missing = /the tensor 'encoder\.layer\.2\.intermediate\.dense\.weight' is not among the file's 37 tensors/
  throws('invalid_argument', missing, () => TransformerEncoder.load(weights, 'encoder.layer', 3, config, cpu))
  const zeros = (...dims) => Tensor.zeros('f32', dims)
  throws('shape_mismatch', /the weight is \[4\]/, () => new Linear(zeros(4), null, cpu))
  throws('shape_mismatch', /the bias is \[3\] and the weight \[4, 4\]/, () => new Linear(zeros(4, 4), zeros(3), cpu))
  throws('shape_mismatch', /the table is \[4\]/, () => new Embedding(zeros(4), cpu))
  throws('invalid_argument', /4/, () => new Embedding(zeros(4, 4), cpu).forward(new Tensor(Uint32Array.of(4), [1])))
  const [linear, triple] = [new Linear(zeros(4, 4), null, cpu), new Linear(zeros(12, 4), null, cpu)]
  throws('shape_mismatch', /returns 12 values and the second takes 4/, () => new FeedForward(triple, linear))
  throws('shape_mismatch', /4 values are no queries/, () => new MultiHeadAttention(linear, linear, 2))
  throws('invalid_argument', /expected a Layer, not Function/, () => new Sequential(linear, () => {}))
  throws('invalid_argument', /expected a Linear, not undefined/, () => new FeedForward(linear))
  throws('invalid_argument', /expected a Linear, not ReLU/, () => new FeedForward(linear, new ReLU(cpu)))
  throws('invalid_argument', /activation is 'swish'; it must be none, relu/, () => new FeedForward(linear, linear, 'swish'))
  throws('invalid_argument', /form is 'sin'; it must be erf or tanh/, () => new GELU('sin', cpu))
  throws('invalid_argument', /3 prefixes/, () => MultiHeadAttention.load(weights, ['a', 'b', 'c'], 32, 4, cpu))
  for (const heads of [0, 3]) {
    throws('invalid_argument', /heads don't divide a width of 4/, () => new MultiHeadAttention(triple, linear, heads))
  }
  throws('invalid_argument', /0\.5 is not a whole number/, () => new MultiHeadAttention(triple, linear, 0.5))
  const attention = new MultiHeadAttention(triple, linear, 2)
  for (const dims of [[4], [2, 3], [1, 2, 2, 4]]) {
    throws('shape_mismatch', /attention: x is/, () => attention.forward(zeros(...dims)))
    await rejects('shape_mismatch', /attention: x is/, attention.forwardAsync(zeros(...dims)))
  }
  throws('shape_mismatch', /2 lengths for 3 sequences/, () => attention.forward(zeros(3, 2, 4), { lengths: [1, 2] }))
  throws('invalid_argument', /1\.5 is not a whole number/, () => attention.forward(zeros(1, 2, 4), { lengths: [1.5] }))
  throws('invalid_argument', /takes no residual/, () => new ReLU(cpu).forward(zeros(2), { residual: zeros(2) }))
  for (const wrong of [0, 3]) {
    throws('invalid_argument', /can't be padded to 2/, () => attention.forward(zeros(1, 2, 4), { lengths: [wrong] }))
  }
  throws('shape_mismatch', /./, () => linear.forward(zeros(2, 3)))
})

test('CommonJS and ESM have the same', () => {
  const required = createRequire(import.meta.url)('adead/nn')
  assert.equal(required, nn)
  assert.ok(Object.values(required).every((one) => typeof one === 'function'))
})
