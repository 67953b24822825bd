// Every conformance case, on the calling thread and on others, with each instruction set of the machine.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import adead from '../index.mjs'
import { cases, run } from './conformance.mjs'

const all = cases()

test('ids are unique', () => {
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length)
  assert.ok(all.length >= 2500)
})

for (const isa of ['avx512', 'avx2', 'sse2', 'neon']) {
  test(`every case with ${isa}`, (context) => {
    let device
    try {
      device = new adead.Context('cpu', { isa, threads: 2 })
    } catch (error) {
      context.skip(error.message)
      return
    }
    assert.equal(device.device.arch, isa)
    const faults = all.map((one) => [one.id, run(adead, device, one)]).filter(([, fault]) => fault !== undefined)
    assert.deepEqual(faults, [])
  })
}
