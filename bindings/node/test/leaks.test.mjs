// Memory: 100,000 tensors that are made and dropped leave the process as large as before. One loop lets the event loop
// turn, and one never does. Each runs in a process of its own, so that nothing else is measured.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const index = fileURLToPath(new URL('../index.js', import.meta.url))
const load = fileURLToPath(new URL('../load.js', import.meta.url))

/** Returns the resident memory in MB that `cycles` runs of `cycle` add, after some to warm up. */
function growth(setup, cycle, { turns, cycles = 100_000 }) {
  const code = `
    const adead = require(${JSON.stringify(index)})
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    ${setup}
    async function run(cycles) {
      for (let i = 0; i < cycles; i++) {
        ${cycle}
        if (${turns} && i % 100 === 99) await turn()
      }
      gc()
      await turn()
      await turn()
    }
    (async () => {
      // The allocator and the garbage collector need memory of their own; let that settle first.
      for (let i = 0; i < 3; i++) await run(${cycles})
      const before = process.memoryUsage.rss()
      await run(${cycles})
      console.log((process.memoryUsage.rss() - before) / 1e6)
      if (process.env.ADEAD_TEST_PRINT) console.error((before / 1e6).toFixed(), 'MB before')
    })()`
  const child = spawnSync(process.execPath, ['--expose-gc', '-e', code], { encoding: 'utf8', timeout: 600_000 })
  assert.equal(child.status, 0, child.stderr)
  if (process.env.ADEAD_TEST_PRINT) console.error(child.stderr, child.stdout)
  return Number(child.stdout)
}

/** The allowed noise in MB. The smallest object that could leak is a handle, its records and 1 KB of elements: 150 MB
 * in all. */
const FLAT = 40

const cases = {
  'tensors of 4 KB': ['', 'adead.Tensor.zeros("f32", [1024])'],
  'results of operations': ['const x = adead.Tensor.zeros("f32", [1024])', 'x.relu().add(x)'],
  'views and copies': ['const x = adead.Tensor.zeros("f32", [256])', 'x.view(); x.reshape([16, 16]).toArray()'],
  errors: ['const x = adead.Tensor.zeros("f32", [256])', 'try { x.reshape([5]) } catch {}'],
}
for (const [name, [setup, cycle]] of Object.entries(cases)) {
  for (const turns of [true, false]) {
    test(`${name}, ${turns ? 'with' : 'without'} turns of the event loop`, () => {
      const grown = growth(setup, cycle, { turns })
      assert.ok(grown < FLAT, `${grown} MB more`)
    })
  }
}

test('promises', () => {
  const grown = growth('const x = adead.Tensor.zeros("f32", [256])', 'await x.reluAsync()', { turns: true, cycles: 50_000 })
  assert.ok(grown < FLAT, `${grown} MB more`)
})

test('other objects', () => {
  const cycle = `
    const buffer = context.buffer({ nbytes: 100 })
    new adead.DeterministicAllocator(64, 16)
    adead.Layout.tiled(3, 5, 2)
    context.pack(x)
    const pipeline = context.pipeline().input([4, 4]).matmul(x)
    pipeline.add(pipeline.value).compile().run(x)
    context.event()`
  const setup = 'const context = new adead.Context("cpu"); const x = adead.Tensor.zeros("f32", [4, 4])'
  const grown = growth(setup, cycle, { turns: true, cycles: 20_000 })
  assert.ok(grown < FLAT, `${grown} MB more`)
})

test('buffers and packed matrices, whose memory is large', () => {
  // Each takes 2 MB, which the allocator would keep between rounds if many waited for the collector; so only ten wait.
  const cycle = 'context.buffer({ nbytes: 1 << 20 }); context.pack(x); if (i % 10 === 9) { gc(); await turn() }'
  const setup = 'const context = new adead.Context("cpu"); const x = adead.Tensor.zeros("f32", [512, 512])'
  const grown = growth(setup, cycle, { turns: false, cycles: 1_000 })
  assert.ok(grown < FLAT, `${grown} MB more`)
})

test('V8 is told of what is held', async () => {
  const code = `
    const adead = require(${JSON.stringify(index)})
    // process.memoryUsage().external would not do: it counts only array buffers.
    const told = () => Math.round(require(${JSON.stringify(load)}).statistics()[2] / 1e6)
    const context = new adead.Context('cpu')
    const before = told()
    let kept = Array.from({ length: 50 }, () => adead.Tensor.zeros('f32', [250_000]))
    const tensors = told() - before
    const buffer = context.buffer({ nbytes: 50_000_000 })
    const buffers = told() - before - tensors
    buffer.free()
    const freed = told() - before - tensors
    kept = undefined
    gc()
    setImmediate(() => setImmediate(() => console.log(JSON.stringify([tensors, buffers, freed, told() - before]))))`
  const child = spawnSync(process.execPath, ['--expose-gc', '-e', code], { encoding: 'utf8' })
  assert.equal(child.status, 0, child.stderr)
  const [tensors, buffers, freed, after] = JSON.parse(child.stdout)
  assert.ok(Math.abs(tensors - 50) <= 2 && Math.abs(buffers - 50) <= 2, child.stdout)
  assert.ok(Math.abs(freed) <= 2 && Math.abs(after) <= 2, child.stdout)
})

test('a loop that never turns holds no more than the collector lets it', () => {
  // 100,000 tensors of 64 KB are 6.5 GB.
  const code = `
    const adead = require(${JSON.stringify(index)})
    let most = 0
    for (let i = 0; i < 100000; i++) {
      adead.Tensor.zeros('f32', [16384])
      if (i % 1000 === 0) most = Math.max(most, process.memoryUsage.rss())
    }
    console.log(most / 1e6)`
  const child = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8', timeout: 600_000 })
  assert.equal(child.status, 0, child.stderr)
  assert.ok(Number(child.stdout) < 1000, `${child.stdout} MB`)
})
