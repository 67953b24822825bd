// Batches through a device, several in flight at once, and items made ahead: on the GPU that ADEAD_TEST_DEVICE names,
// else on the CPU.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context, DataLoader, Tensor, overlap } from '../index.mjs'
import { f32, rejects, throws } from './helpers.mjs'

const context = new Context(process.env.ADEAD_TEST_DEVICE ?? 'cpu')
const batch = (n, length = 50) => Float32Array.from({ length }, (_, i) => n * 100 + i)
const twice = (n, length = 50) => batch(n, length).map((x) => 2 * x)
const all = async (results) => {
  const list = []
  for await (const result of results) list.push(result)
  return list
}

/** The work of most tests: it doubles the batch. */
function double(stage) {
  const y = stage.buffer(stage.input.dims)
  stage.stream.run('add', [stage.input, stage.input], y)
  return y
}

function* batches(count, sizes = []) {
  for (let n = 0; n < count; n++) yield batch(n, sizes[n])
}

test('results come in order at every depth, and nothing is left', async () => {
  const before = context.memory().allocations
  for (let depth = 1; depth <= 5; depth++) {
    for (const count of [0, 1, 7]) {
      const results = await all(overlap(batches(count), double, { depth, context }))
      assert.deepEqual(results, Array.from({ length: count }, (_, n) => twice(n)))
    }
  }
  const sizes = [10, 1000, 10, 0, 3, 3]
  const results = await all(overlap(batches(6, sizes), double, { context }))
  assert.deepEqual(results, sizes.map((size, n) => twice(n, size)))
  assert.equal(context.memory().allocations, before)
})

test('tensors, whole buffers, and nothing', async () => {
  const x = f32([1, 2, 3, 4], [2, 2])
  const transposed = (stage) => {
    const y = stage.buffer([2, 2])
    stage.stream.run('transpose', [stage.input], y)
    return y
  }
  assert.deepEqual(await all(overlap([x], transposed, { context })), [Float32Array.of(1, 3, 2, 4)])
  const half = new Tensor(Uint16Array.of(0x3c00), [1], 'bf16')
  assert.deepEqual(await all(overlap([half], (stage) => stage.input, { context })), [Uint16Array.of(0x3c00)])
  const bytes = await all(overlap([Uint8Array.of(1, 2, 3)], (stage) => stage.input.buffer, { context }))
  assert.deepEqual(bytes, [Uint8Array.of(1, 2, 3)])
  const nothing = await all(overlap(batches(3), (stage) => void double(stage), { context }))
  assert.deepEqual(nothing, [undefined, undefined, undefined])
})

test('batches may share state', async () => {
  const state = { buffer: context.buffer({ nbytes: 200 }), dtype: 'f32', dims: [50] }
  const add = (stage) => {
    const y = stage.buffer([50])
    stage.stream.run('add', [stage.input, state], y)
    stage.stream.copy(y.buffer, 0, state.buffer, 0, 200)
    return state
  }
  const ones = Array.from({ length: 12 }, () => new Float32Array(50).fill(1))
  const totals = await all(overlap(ones, add, { depth: 4, context }))
  assert.deepEqual(totals.map((total) => total[49]), Array.from({ length: 12 }, (_, n) => n + 1))
  // Freed here instead of by the garbage collector, because later tests count allocations.
  state.buffer.free()
})

test('errors come in their place and end everything', async () => {
  const before = context.memory().allocations
  for (let depth = 1; depth <= 5; depth++) {
    const started = []
    let returned = false
    async function* source() {
      try {
        for (let n = 0; ; n++) yield batch(n)
      } finally {
        returned = true
      }
    }
    const results = overlap(source(), (stage) => {
      started.push(stage.index)
      if (stage.index === 3) throw new RangeError('batch 3 is bad')
      return double(stage)
    }, { depth, context })
    for (let n = 0; n < 3; n++) assert.deepEqual((await results.next()).value, twice(n))
    await assert.rejects(results.next(), /batch 3 is bad/)
    assert.deepEqual(started, [0, 1, 2, 3])
    assert.equal((await results.next()).done, true)
    assert.equal(returned, true)
  }
  const table = { buffer: context.buffer(Float32Array.of(10, 11, 12)), dtype: 'f32', dims: [3] }
  const lookUp = (stage) => {
    const y = stage.buffer([2])
    stage.stream.run('embedding', [table, stage.input], y)
    return y
  }
  const results = overlap([Int32Array.of(1, 0), Int32Array.of(7, 0), Int32Array.of(0, 0)], lookUp, { depth: 2, context })
  assert.deepEqual((await results.next()).value, Float32Array.of(11, 10))
  await rejects('invalid_argument', /id 7 at position 0/, results.next())
  table.buffer.free()
  assert.equal(context.memory().allocations, before)
})

test('leaving the loop ends everything', async () => {
  const before = context.memory().allocations
  let [asked, returned] = [0, 0]
  function* source() {
    try {
      for (;;) yield batch(asked++)
    } finally {
      returned++
    }
  }
  for await (const result of overlap(source(), double, { depth: 3, context })) {
    assert.deepEqual(result, twice(0))
    break
  }
  assert.deepEqual([asked, returned], [4, 1])
  assert.equal(context.memory().allocations, before)
})

test('what does not fit is refused', async () => {
  for (const depth of [0, 65, 1.5, '3']) {
    throws('invalid_argument', /the depth is .*; it must be from 1 to 64/, () => overlap([], double, { depth }))
  }
  throws('invalid_argument', /at least 1 item ahead, not 0/, () => new DataLoader([], { ahead: 0 }))
  await rejects('invalid_argument', /batch 0 is neither a typed array nor a tensor/, overlap([7], double, { context }).next())
  const wrong = overlap(batches(1), (stage) => stage.buffer([1], 'f31'), { context })
  await rejects('invalid_argument', /no dtype 'f31'/, wrong.next())
})

test('a loader is ahead, and no further than it may', async () => {
  for (const ahead of [1, 2, 5]) {
    let made = 0
    function* numbers() {
      while (made < 30) yield made++
    }
    const loader = new DataLoader(numbers(), { ahead })
    const settled = () => new Promise((resolve) => setImmediate(resolve))
    for (let n = 0; n < 30; n++) {
      await settled()
      assert.equal(made, Math.min(30, n + ahead))
      assert.deepEqual(await loader.next(), { done: false, value: n })
    }
    assert.equal((await loader.next()).done, true)
    assert.equal((await loader.next()).done, true)
  }
})

test('a loader ends with the first error, and early', async () => {
  async function* broken() {
    yield batch(0)
    yield batch(1)
    throw new TypeError('no more tape')
  }
  const results = overlap(new DataLoader(broken(), { ahead: 8 }), double, { context })
  assert.deepEqual([(await results.next()).value, (await results.next()).value], [twice(0), twice(1)])
  await assert.rejects(results.next(), /no more tape/)

  let returned = false
  async function* endless() {
    try {
      for (;;) yield 1
    } finally {
      returned = true
    }
  }
  for await (const one of new DataLoader(endless())) {
    assert.equal(one, 1)
    break
  }
  assert.equal(returned, true)
  assert.deepEqual(await all(new DataLoader([Promise.resolve(1), 2])), [1, 2])
})
