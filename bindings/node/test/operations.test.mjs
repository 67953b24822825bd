// Operations: the methods against `run`, their options, errors, promises.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context, Tensor, defaultContext } from '../index.mjs'
import { camel } from './expected.mjs'
import { f32, operations, rejects, same, throws } from './helpers.mjs'

const context = new Context('cpu')
const ramp = (dims) => {
  const count = dims.reduce((a, b) => a * b, 1)
  return f32(
    Array.from({ length: count }, (_, i) => ((i * 37) % 101) / 50 - 1),
    dims,
  )
}
const [a, b, c] = [ramp([4, 6]), ramp([6, 5]), ramp([4, 6])]
const ids = new Tensor(Int32Array.of(3, 0), [2])
const comparisons = ['equal', 'notEqual', 'less', 'lessEqual', 'greater', 'greaterEqual']
const options = {
  matmul: { c: ramp([4, 5]), bias: ramp([5]), alpha: 0.3, beta: -1.25, activation: 'gelu_tanh' },
  scale: { alpha: 0.1 },
  clamp: { min: -0.5, max: 0.75 },
  gelu: { form: 'tanh' },
  softmax: { axis: 0 },
  sum: { axis: -1, keepdim: true },
  mean: { axis: 'all' },
  max: { axis: 1 },
  argmax: { axis: 0, dtype: 'u32' },
  min: { axes: [1, 0] },
  argmin: { axis: 1, keepdim: true },
  prod: { axes: [0, -1], keepdim: true },
  layernorm: { gamma: ramp([6]), beta: ramp([6]), eps: 1e-3 },
  rmsnorm: { gamma: ramp([6]), residual: c },
  rope: { interleaved: true },
  cumsum: { axis: 0 },
  topk: { k: 3 },
  argtopk: { k: 2, axis: 0, dtype: 'i32' },
  attention: { causal: true, scale: 0.7, mask: ramp([4, 4]) },
  ffn: { b1: ramp([5]), b2: ramp([6]), activation: 'silu' },
  transpose: { perm: [1, 0] },
  slice: { start: [1], stop: [-1, 5], step: [1, 2] },
  pad: { before: [1], after: [0, 2] },
  concat: { axis: 1 },
  cast: { dtype: 'bf16' },
  quantizedMatmul: { format: 'q8_0' },
  dequantize: { format: 'q4_k' },
}
/** The bytes of rows of quantised blocks. */
const blocks = (dims) => Tensor.fromBytes(Uint8Array.from({ length: dims[0] * dims[1] }, (_, i) => (i * 37) % 101), 'u8', dims)
const operandsOf = {
  matmul: [a, b],
  dot: [ramp([6]), ramp([6])],
  add: [a, c],
  sub: [a, c],
  mul: [a, c],
  div: [a, c],
  maximum: [a, c],
  minimum: [a, c],
  pow: [a, c],
  attention: [a, c, ramp([4, 3])],
  ffn: [a, b, ramp([5, 6])],
  embedding: [a, ids],
  concat: [a, c, a],
  pad: [a, ramp([1])],
  gather: [a, new Tensor(Int32Array.of(3, 0, 1, 2), [4, 1])],
  ...Object.fromEntries(comparisons.map((name) => [name, [a, c]])),
  where: [a.less(ramp([6])), a, c],
  rope: [a, ramp([4, 3]), ramp([4, 3])],
  quantizedMatmul: [ramp([3, 32]), blocks([5, 34])],
  dequantize: [blocks([2, 144])],
}
/** By operation, all of its operands in their order. */
const ordered = {
  matmul: ([x, y], { c, bias }) => [x, y, c, bias],
  layernorm: ([x], { gamma, beta, residual }) => [x, gamma, beta, residual],
  rmsnorm: ([x], { gamma, residual }) => [x, gamma, residual],
  attention: ([q, k, v], { mask }) => [q, k, v, mask],
  ffn: ([x, w1, w2], { b1, b2 }) => [x, w1, b1, w2, b2],
}
/** What has an attribute that can't be left out. */
const needed = ['quantizedMatmul', 'dequantize']
/** The options that are attributes. */
const attributes = (name, all) =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => !(value instanceof Tensor)).filter(([key]) => key !== name))
const names = Object.getOwnPropertyNames(Context.prototype).filter((name) => `${name}Async` in Tensor.prototype)

test('there is a method for each operation', () => {
  assert.deepEqual(names, operations.map(camel))
  for (const name of names) assert.ok(name in Tensor.prototype, name)
  for (const name of Object.keys({ ...options, ...operandsOf })) assert.ok(names.includes(name), name)
})

for (const name of names) {
  test(`${name}, in every form`, async () => {
    const op = operations[names.indexOf(name)]
    const given = operandsOf[name] ?? [a]
    for (const option of needed.includes(name) ? [options[name]] : [{}, options[name] ?? {}]) {
      const all = ordered[name]?.(given, option) ?? given
      const expected = context.run(op, all, attributes(name, option))
      const list = name === 'concat' ? [given] : given
      const [first, ...others] = given
      const rest = name === 'concat' ? [others] : others
      same(context[name](...list, option), expected)
      same(await context[`${name}Async`](...list, option), expected)
      same(first[name](...rest, option), expected)
      same(await first[`${name}Async`](...rest, option), expected)
      same(await context.runAsync(op, all, attributes(name, option)), expected)
    }
  })
}

test('undefined is left out, and so is an operand that is null', () => {
  same(a.softmax({ axis: undefined }), a.softmax())
  same(a.layernorm({ gamma: null, beta: undefined }), a.layernorm())
  same(a.softmax(null), a.softmax())
})

test('a norm adds its residual first', () => {
  const [gamma, beta] = [ramp([6]), ramp([6])]
  same(a.layernorm({ gamma, beta, residual: c }), a.add(c).layernorm({ gamma, beta }))
  same(a.rmsnorm({ gamma, residual: c }), a.add(c).rmsnorm({ gamma }))
  throws('shape_mismatch', /residual is \[6\] and x \[4, 6\]/, () => a.rmsnorm({ residual: gamma }))
})

test('the greatest come first, ties with the lower index', () => {
  const x = f32([1, NaN, 3, 3, -0, 0], [6])
  assert.deepEqual(x.topk({ k: 4 }).toArray(), Float32Array.of(NaN, 3, 3, 1))
  assert.deepEqual(x.argtopk({ k: 6 }).toArray(), BigInt64Array.of(1n, 2n, 3n, 0n, 5n, 4n))
  throws('invalid_argument', /k is 7; axis 0 of \[6\] has 6 elements/, () => x.topk({ k: 7 }))
  throws('invalid_argument', /k is '-1'; it must be a non-negative integer/, () => x.topk({ k: -1 }))
})

test('numbers arrive as the nearest f32', () => {
  for (const alpha of [0.1, 1 / 3, 1e-45, -0, 1e39, Infinity, NaN, 16777217, 5]) {
    const expected = Math.fround(Math.fround(3) * Math.fround(alpha))
    assert.equal(f32([3], [1]).scale({ alpha }).toArray()[0], expected, alpha)
  }
})

test('errors are the core’s', async () => {
  const text = /matmul: A is \[4, 6\] and B is \[4, 6\]; A's columns \(6\) must equal B's rows \(4\)/
  throws('shape_mismatch', text, () => a.matmul(c))
  await rejects('shape_mismatch', text, a.matmulAsync(c))
  throws('dtype_mismatch', /./, () => ids.relu())
  throws('invalid_argument', /softmax has no attribute 'keepdim'/, () => a.softmax({ keepdim: true }))
  throws('invalid_argument', /axis is '1.5'; it must be one integer/, () => a.softmax({ axis: 1.5 }))
  throws('invalid_argument', /activation is 'x'; it must be none, relu/, () => a.matmul(b, { activation: 'x' }))
  throws('invalid_argument', /no dtype 'f128'/, () => a.cast({ dtype: 'f128' }))
  throws('invalid_argument', /no operation 'convolve'/, () => context.run('convolve', [a]))
  throws('invalid_argument', /operand 0 \(x\) is missing/, () => context.run('relu', []))
  throws('invalid_argument', /id/, () => a.embedding(new Tensor(Int32Array.of(4), [1])))
})

test('arguments of other types are refused', async () => {
  throws('invalid_argument', /relu: operand 0, x, must be a Tensor, not undefined/, () => context.relu())
  throws('invalid_argument', /matmul: operand 1, b, must be a Tensor, not another object/, () => a.matmul(context))
  throws('invalid_argument', /layernorm: operand 1, gamma, must be a Tensor, not a number/, () => a.layernorm({ gamma: 1 }))
  throws('invalid_argument', /options must be an object, not a number/, () => a.softmax(5))
  throws('invalid_argument', /axis can't be a bigint/, () => a.softmax({ axis: 1n }))
  throws('invalid_argument', /expected an array/, () => context.run('relu', a))
  throws('invalid_argument', /this is not a Context/, () => context.relu.call(undefined, a))
  throws('invalid_argument', /this is not a Context/, () => context.relu.call(a, a))
  throws('invalid_argument', /expected a string, not a number/, () => new Context(5))
  await rejects('invalid_argument', /must be a Tensor, not undefined/, context.reluAsync())
  await rejects('invalid_argument', /expected an array/, context.runAsync('relu', a))
})

test('a getter that throws in options is passed on', () => {
  const options = {
    get axis() {
      throw new RangeError('mine')
    },
  }
  assert.throws(() => a.softmax(options), RangeError)
})

test('promises take their operands when they are called', async () => {
  const view = Tensor.zeros('f32', [1000, 1000])
  const results = await Promise.all(Array.from({ length: 20 }, () => view.matmulAsync(view)))
  results.forEach((result) => same(result, results[0]))
})

test('a signal stops what no thread has begun', async () => {
  const large = Tensor.zeros('f32', [1500, 1500])
  // As many as there may be threads, and one behind them.
  const before = Array.from({ length: 64 }, () => large.matmulAsync(large))
  const controller = new AbortController()
  const stopped = a.reluAsync({ signal: controller.signal })
  controller.abort()
  await assert.rejects(stopped, { name: 'AbortError' })
  await assert.rejects(a.reluAsync({ signal: AbortSignal.abort() }), { name: 'AbortError' })
  await Promise.all(before)
  same(await a.reluAsync({ signal: new AbortController().signal }), a.relu())
  await rejects('invalid_argument', /expected an object/, a.reluAsync({ signal: 5 }))
})

test('packed matrices', async () => {
  const packed = context.pack(b)
  assert.deepEqual([packed.dims, packed.dtype], [[6, 5], 'f32'])
  assert.ok(packed.bytes >= 6 * 5 * 4)
  const options = { bias: ramp([5]), activation: 'relu' }
  same(context.matmulPacked(a, packed), a.matmul(b))
  same(context.matmulPacked(a, packed, options), a.matmul(b, options))
  same(await context.matmulPackedAsync(a, await context.packAsync(b.transpose(), true), options), a.matmul(b, options))
  throws('shape_mismatch', /pack: b is/, () => context.pack(ramp([5])))
  throws('invalid_argument', /expected a Packed, not another object/, () => context.matmulPacked(a, b))
  throws('invalid_argument', /trans_b/, () => context.matmulPacked(a, packed, { transB: true }))
  throws('invalid_argument', /precision can't be fixed16/, () => context.matmulPacked(a, packed, { precision: 'fixed16' }))
})

test('the precision of a context', () => {
  const own = new Context('cpu')
  assert.equal(own.precision, 'f32')
  for (const precision of ['fixed24', 'fixed16', 'f32']) {
    own.setPrecision(precision)
    assert.equal(own.precision, precision)
    same(own.matmul(a, b), context.matmul(a, b, { precision }))
    same(own.ffn(a, b, b.transpose()), context.ffn(a, b, b.transpose(), { precision }))
    same(own.attention(a, a, a), context.attention(a, a, a, { precision }))
    same(own.matmul(a, b, { precision: 'f32' }), context.matmul(a, b))
    const apart = context.withPrecision(precision)
    assert.deepEqual([apart.precision, context.precision], [precision, 'f32'])
    same(apart.matmul(a, b), own.matmul(a, b))
  }
  throws('invalid_argument', /precision is 'tf32'/, () => own.withPrecision('tf32'))
  throws('invalid_argument', /precision is 'tf32'; it must be one of f32, fixed24, fixed16/, () => own.setPrecision('tf32'))
})

test('the default context is one', () => {
  assert.equal(defaultContext().device.id, new Context().device.id)
})
