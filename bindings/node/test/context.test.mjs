// Contexts, the hardware report, the dispatcher.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context, DeviceBuffer, GPU, Tensor, hardware, hardwareAsync, version } from '../index.mjs'
import { f32, rejects, throws } from './helpers.mjs'

const context = new Context('cpu', { threads: 2 })

test('the machine', async () => {
  const report = hardware()
  assert.ok(report.cpu.model.length > 0)
  assert.ok(report.cpu.threads >= 1 && report.cpu.cores >= 1 && report.cpu.cores <= report.cpu.threads)
  assert.ok(report.cpu.features.length > 0)
  assert.ok(report.memory.total >= report.memory.available && report.memory.available > 0)
  assert.ok(['cpu', 'hybrid', 'gpu'].includes(report.recommended))
  for (const { id, uuid } of report.gpus.flatMap(({ backends }) => backends)) {
    assert.ok(id.length > 0 && (uuid === undefined || uuid.length === 36))
  }
  assert.deepEqual((await hardwareAsync()).cpu, report.cpu)
  assert.match(version, /^\d+\.\d+\.\d+$/)
})

test('what a context is', async () => {
  const { device } = context
  assert.equal(device.id, 'cpu')
  assert.equal(device.units, 2)
  assert.equal(device.kind, 'cpu')
  assert.equal(context.devices[0].id, 'cpu')
  assert.match(String(context), /^Context\(cpu: /)
  assert.ok(context.memory().total > 0)
  context.trim()
  assert.deepEqual([...context.relu(f32([-1, 1], [2])).toArray()], [0, 1])
  assert.equal((await Context.openAsync('cpu', { threads: 1 })).device.units, 1)
})

test('what can’t be opened', async () => {
  throws('invalid_argument', /no device 'nothing'/, () => new Context('nothing'))
  throws('backend_unavailable', /cuda:9/, () => new Context('cuda:9'))
  throws('backend_unavailable', /'cpu' is not a GPU/, () => new GPU('cpu'))
  await rejects('backend_unavailable', /'cpu' is not a GPU/, GPU.openAsync('cpu'))
  throws('invalid_argument', /instruction set 'mmx'/, () => new Context('cpu', { isa: 'mmx' }))
  throws('invalid_argument', /-1 is not a whole number/, () => new Context('cpu', { threads: -1 }))
  throws('invalid_argument', /expected a number, not a string/, () => new Context('cpu', { threads: 'two' }))
  await rejects('invalid_argument', /no device 'nothing'/, Context.openAsync('nothing'))
})

test('the configuration counts', () => {
  process.env.ADEAD_DEVICE = 'nothing'
  throws('invalid_argument', /no device 'nothing'/, () => new Context())
  delete process.env.ADEAD_DEVICE
  assert.ok(new Context(null).device.id.length > 0)
})

test('decisions', () => {
  assert.equal(context.select(10), 'cpu')
  assert.equal(context.select(10, 'matmul'), 'cpu')
  throws('invalid_argument', /no family 'conv'/, () => context.select(10, 'conv'))
  throws('invalid_argument', /-1 is not a whole number/, () => context.select(-1))
  const a = Tensor.zeros('f32', [8, 8])
  const why = context.explain('matmul', [a, a], { transB: true })
  assert.deepEqual([why.device, why.family, why.elements, why.flops], ['cpu', 'matmul', 64, 1024])
  assert.equal(why.estimates.length, context.devices.length)
  assert.ok(why.estimates[0].totalNs > 0 && why.estimates[0].fits)
  assert.ok(why.text.startsWith('cpu: '))
  assert.deepEqual([why.rows, why.splitNs], [undefined, undefined])
  throws('shape_mismatch', /matmul/, () => context.explain('matmul', [a, f32([1], [1])]))
})

test('thresholds and forcing', () => {
  assert.equal(context.threshold('matmul'), null)
  context.setThreshold('matmul', 4096)
  assert.equal(context.threshold('matmul'), 4096)
  context.setThreshold('matmul', null)
  assert.equal(context.threshold('matmul'), null)
  const chosen = new Context('auto')
  assert.equal(chosen.forced, null)
  chosen.force('cpu')
  assert.equal(chosen.forced, 'cpu')
  throws('invalid_argument', /no device 'cuda:7'/, () => chosen.force('cuda:7'))
  assert.equal(chosen.forced, 'cpu')
  chosen.force(null)
  assert.equal(chosen.forced, null)
})

test('classes without a constructor', () => {
  assert.throws(() => new DeviceBuffer())
})
