// Profiles of contexts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context, Profile, ProfileReport, Tensor } from '../index.mjs'
import { throws, turn } from './helpers.mjs'

const N = 64
const x = new Tensor(Float32Array.from({ length: N * N }, (_, i) => i / N), [N, N])

function worked(context, times = 3) {
  for (let i = 0; i < times; i++) context.softmax(context.matmul(x, x))
}

test('what is recorded', () => {
  const context = new Context('cpu', { threads: 2 })
  const profile = context.profile()
  assert.ok(profile instanceof Profile)
  worked(context)
  const report = profile.finish()
  assert.ok(report instanceof ProfileReport)
  assert.equal(report.records, report.records)
  assert.deepEqual(report.records.map(({ name }) => name), Array(3).fill(['matmul', 'softmax']).flat())
  const [first] = report.records
  const { activity, device, reason, stream, thread, flops, bytes } = first
  assert.deepEqual([activity, device, reason, stream, thread], ['operation', 'cpu', 'only device', 0, 0])
  assert.equal(first.operands, `f32[${N}, ${N}], f32[${N}, ${N}] -> f32[${N}, ${N}]`)
  assert.deepEqual([flops, bytes], [2 * N ** 3, 3 * 4 * N * N])
  assert.deepEqual(first.work, first.host)
  assert.ok(0 <= first.host.beginNs && first.host.beginNs <= first.host.endNs && first.host.endNs <= report.ns)
  const total = report.totals.find(({ name }) => name === 'matmul')
  const times = report.records.filter(({ name }) => name === 'matmul').map(({ work }) => work.endNs - work.beginNs)
  const sum = times.reduce((a, b) => a + b)
  assert.deepEqual([total.count, total.timed, total.flops], [3, 3, 3 * 2 * N ** 3])
  assert.deepEqual([total.ns, total.minNs, total.maxNs], [sum, Math.min(...times), Math.max(...times)])
  assert.deepEqual([total.meanNs, total.gflops, total.gbytes], [sum / 3, total.flops / sum, total.bytes / sum])
  assert.ok(total.ofPeak > 0)
  assert.equal(report.devices.length, 1)
  const [use] = report.devices
  assert.deepEqual([use.id, use.uploaded, use.downloaded], ['cpu', 0, 0])
  assert.ok(use.peakGflops > 0 && use.workNs > 0 && use.figures.length > 0)
  assert.deepEqual([report.dropped, report.overlap, report.overlappedNs], [0, 0, 0])
  assert.ok(0 < report.busyNs && report.busyNs <= report.ns)
})

test('texts', () => {
  const context = new Context('cpu')
  const profile = context.profile({})
  worked(context)
  const report = profile.finish()
  assert.match(String(report), /^name .*\n(.*\n)+6 records in /)
  const data = JSON.parse(report.toJson())
  assert.equal(data.records.length, 6)
  assert.equal(data.ns, report.ns)
  const names = JSON.parse(report.toTrace()).traceEvents.filter(({ ph }) => ph === 'X').map(({ name }) => name)
  assert.deepEqual(names, report.records.map(({ name }) => name))
})

test('the limit', () => {
  const context = new Context('cpu')
  const profile = context.profile({ records: 2 })
  worked(context)
  const report = profile.finish()
  assert.deepEqual([report.records.length, report.dropped], [2, 4])
  throws('invalid_argument', /-1 is not a whole number/, () => context.profile({ records: -1 }))
  throws('invalid_argument', /expected a number/, () => context.profile({ records: 'many' }))
})

test('one at a time', async () => {
  const context = new Context('cpu')
  let profile = context.profile()
  throws('invalid_argument', /under way/, () => context.profile())
  new Context('cpu').profile().finish()
  worked(context, 1)
  await context.matmulAsync(x, x)
  assert.equal(profile.finish().records.length, 3)
  throws('invalid_argument', /is finished/, () => profile.finish())
  // A dropped profile ends when it is collected.
  profile = context.profile()
  profile = null
  for (let i = 0; i < 10; i++) {
    global.gc?.()
    await turn()
  }
  if (global.gc) {
    const report = context.profile().finish()
    assert.deepEqual([report.records, report.totals, report.devices], [[], [], []])
  }
})
