// The places of tensors' values: host memory everywhere, and the GPU that ADEAD_TEST_DEVICE names.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context, Tensor } from '../index.mjs'
import { f32, same, throws, turn } from './helpers.mjs'

const device = process.env.ADEAD_TEST_DEVICE ?? 'cpu'
const cpu = new Context('cpu')
const { id } = new Context(device).device
const onGpu = id !== 'cpu'
const gpuTest = (name, run) =>
  test(name, { skip: onGpu ? false : 'there is no GPU: ADEAD_TEST_DEVICE names none' }, run)

const ramp = (count, dims, step = 37) => f32(Array.from({ length: count }, (_, i) => ((i * step) % 101) / 50 - 1), dims)

test('on the host', () => {
  const x = ramp(1000, [20, 50])
  const y = cpu.relu(x)
  assert.deepEqual([x.places, y.places], [['cpu'], ['cpu']])
  for (const there of [x.toCpu(), cpu.to(x, 'cpu')]) {
    assert.ok(there instanceof Tensor)
    assert.deepEqual(there.places, ['cpu'])
    same(there, x)
  }
  const nothing = { budget: 0, used: 0, tensors: 0, hits: 0, misses: 0, evictions: 0 }
  assert.deepEqual(cpu.tensorCache('cpu'), nothing)
  cpu.setTensorCache(0)
  cpu.setTensorCache(2 ** 40)
  throws('invalid_argument', /no device 'cuda:77' in this context: it has cpu/, () => cpu.to(x, 'cuda:77'))
  throws('invalid_argument', /no device ''/, () => cpu.to(x, ''))
  throws('invalid_argument', /cuda:77/, () => cpu.tensorCache('cuda:77'))
  for (const wrong of [
    () => cpu.to(x),
    () => cpu.to(x, 3),
    () => cpu.to({}, 'cpu'),
    () => cpu.to('cpu', x),
    () => cpu.tensorCache(),
    () => cpu.setTensorCache(-1),
    () => cpu.setTensorCache(0.5),
    () => cpu.setTensorCache('1'),
    () => cpu.setTensorCache(NaN),
    () => Tensor.prototype.toCpu.call({}),
    () => Object.getOwnPropertyDescriptor(Tensor.prototype, 'places').get.call({}),
  ]) {
    assert.throws(wrong)
  }
  x.places.push('cuda:0')
  assert.deepEqual(x.places, ['cpu'])
})

gpuTest('results stay, operands move once', async () => {
  const gpu = new Context(id)
  const x = ramp(1200, [30, 40])
  const y = gpu.relu(x)
  assert.deepEqual([x.places, y.places], [['cpu', id], [id]])
  const z = gpu.add(y, x)
  const { hits, misses, tensors, used, evictions } = gpu.tensorCache(id)
  assert.deepEqual([hits, misses, tensors, used, evictions], [2, 1, 3, 3 * 4800, 0])
  const part = z.reshape([40, 30])
  assert.deepEqual([part.places, `${part}`], [[id], 'Tensor(f32[40, 30])'])
  const expected = cpu.add(cpu.relu(x), x)
  const later = await gpu.expAsync(part)
  assert.deepEqual([later.places, z.places], [[id], [id]])
  same(later, cpu.exp(expected.reshape([40, 30])))
  same(z, expected)
  assert.deepEqual([part.places, y.places], [['cpu', id], [id]])
  assert.deepEqual(part.toArray(), expected.toArray())
  same(y.toCpu(), cpu.relu(x))
})

gpuTest('what is asked for moves', () => {
  const gpu = new Context(id)
  const x = ramp(1000, [50, 20])
  const there = gpu.to(x, id)
  assert.deepEqual([there.places, x.places], [['cpu', id], ['cpu', id]])
  const { hits } = gpu.tensorCache(id)
  const y = gpu.tanh(there)
  assert.equal(gpu.tensorCache(id).hits, hits + 1)
  same(gpu.to(y, 'cpu'), cpu.tanh(x))
  assert.deepEqual(y.places, ['cpu', id])
  throws('invalid_argument', /no device 'cuda:77' in this context: it has cpu, /, () => gpu.to(x, 'cuda:77'))
  assert.equal(gpu.relu(gpu.to(Tensor.zeros('f32', [0, 3]), id)).length, 0)
})

gpuTest('what is written through a view is what is computed with', async () => {
  const gpu = new Context(id)
  // Three tensors: one with a copy there, one that is only there, and one that is a reshape of the
  // second.
  const x = ramp(1000, [1000])
  gpu.relu(x)
  const y = gpu.abs(x)
  const reshaped = y.reshape([10, 100])
  assert.deepEqual([x.places, reshaped.places], [['cpu', id], [id]])
  const [a, b] = [x.view(), reshaped.view()]
  assert.deepEqual([x.places, y.places, reshaped.places], [['cpu'], ['cpu'], ['cpu']])
  assert.deepEqual(b, cpu.abs(x).toArray())
  for (const round of [1, 2, 3]) {
    a[7] = -round
    b[8] = 100 * round
    const [sum, negated] = [gpu.add(x, y), await gpu.negAsync(reshaped)]
    assert.equal(sum.toArray()[7], Math.fround(-round + b[7]))
    assert.equal(negated.toArray()[8], -100 * round)
    assert.equal(gpu.scale(y, { alpha: 2 }).toArray()[8], 200 * round)
    // The view's memory is the only copy, even after another request for a device copy.
    assert.deepEqual(gpu.to(x, id).places, ['cpu'])
    same(sum, cpu.add(x, y))
  }
  // For a result that nothing else has read before.
  const z = gpu.neg(ramp(1000, [1000], 11))
  z.view().fill(3)
  assert.ok(gpu.relu(z).toArray().every((value) => value === 3))
})

gpuTest('a budget loses nothing', async () => {
  const gpu = new Context(id)
  const one = 64 * 64 * 4
  gpu.setTensorCache(4 * one)
  const pairs = []
  for (let i = 0; i < 12; i++) {
    const x = ramp(4096, [64, 64], 2 * i + 1)
    pairs.push([x, i % 2 ? gpu.sigmoid(x) : await gpu.sigmoidAsync(x)])
    assert.ok(gpu.tensorCache(id).used <= 4 * one)
  }
  const { budget, tensors, evictions } = gpu.tensorCache(id)
  assert.deepEqual([budget, tensors, evictions], [4 * one, 4, 20])
  assert.deepEqual([pairs[0][1].places, pairs[11][1].places], [['cpu'], [id]])
  gpu.setTensorCache(0)
  assert.equal(gpu.tensorCache(id).tensors, 0)
  const product = gpu.matmul(pairs[3][1], pairs[4][1])
  for (const [x, y] of pairs) same(y, cpu.sigmoid(x))
  same(product, cpu.matmul(pairs[3][1], pairs[4][1]))
})

gpuTest('what nobody has takes nothing', async () => {
  const gpu = new Context(id)
  for (let i = 0; i < 20; i++) gpu.relu(ramp(1000, [1000]))
  for (let i = 0; i < 20 && gpu.tensorCache(id).tensors > 0; i++) {
    globalThis.gc()
    await turn()
  }
  assert.deepEqual([gpu.tensorCache(id).tensors, gpu.tensorCache(id).used], [0, 0])
})

gpuTest('contexts share tensors', async () => {
  const x = ramp(1600, [40, 40])
  const y = new Context(id).exp(x)
  globalThis.gc()
  await turn()
  assert.deepEqual(y.places, [id])
  const [other, expected] = [new Context(id), cpu.exp(x)]
  same(other.matmul(y, y), cpu.matmul(expected, expected))
  same(cpu.neg(other.neg(y)), expected)
})

gpuTest('a profile shows who reads', () => {
  const gpu = new Context(id)
  const first = gpu.profile()
  const y = gpu.relu(ramp(900, [30, 30]))
  assert.equal(y.places.length + `${y}`.length, 1 + 'Tensor(f32[30, 30])'.length)
  assert.deepEqual(first.finish().records.map(({ activity }) => activity), ['upload', 'operation'])
  const second = gpu.profile()
  y.toArray()
  y.toBytes()
  const records = second.finish().records.map(({ activity, device, bytes }) => [activity, device, bytes])
  assert.deepEqual(records, [['download', id, 3600]])
})
