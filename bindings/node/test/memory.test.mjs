// Layouts and allocators.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ArenaAllocator, DeterministicAllocator, Layout } from '../index.mjs'
import { rejects, throws, turn } from './helpers.mjs'

const data = Int32Array.from({ length: 15 }, (_, i) => i + 1)

test('layouts', async () => {
  const tiled = Layout.tiled(3, 5, 2)
  assert.deepEqual([tiled.dims, tiled.elements, tiled.stored], [[4, 6], 15, 24])
  const arranged = tiled.apply(data)
  assert.ok(arranged instanceof Int32Array)
  assert.deepEqual([...arranged], [1, 2, 6, 7, 3, 4, 8, 9, 5, 0, 10, 0, 11, 12, 0, 0, 13, 14, 0, 0, 15, 0, 0, 0])
  assert.deepEqual(tiled.undo(arranged), data)
  assert.deepEqual(await tiled.applyAsync(data), arranged)
  assert.deepEqual(await tiled.undoAsync(arranged), data)
  await rejects('shape_mismatch', /layout/, tiled.applyAsync(new Float32Array(14)))
  assert.deepEqual([...Layout.coalesced(15, 3).apply(data)], [1, 4, 7, 10, 13, 2, 5, 8, 11, 14, 3, 6, 9, 12, 15])
  assert.deepEqual(Layout.aligned(3, 5, 4, 32).dims, [3, 8])
  const square = Layout.morton(4, 4)
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => i)
  assert.deepEqual([...square.apply(bytes)], [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15])
  const wide = BigInt64Array.from(data, BigInt)
  assert.deepEqual(tiled.undo(tiled.apply(wide)), wide)
  throws('shape_mismatch', /layout/, () => tiled.apply(new Float32Array(14)))
  throws('invalid_argument', /tiles of 0/, () => Layout.tiled(3, 5, 0))
  throws('invalid_argument', /whole groups/, () => Layout.coalesced(10, 3))
})

test('the deterministic allocator', async () => {
  const memory = new DeterministicAllocator(64, 16)
  assert.deepEqual([memory.alloc(100), memory.alloc(1), memory.alloc(0)], [0, 128, 192])
  assert.equal(memory.size(0), 128)
  memory.write(128, Uint8Array.of(1, 2, 3))
  assert.deepEqual([...memory.read(128).subarray(0, 4)], [1, 2, 3, 0])
  const view = memory.view(128)
  view[0] = 9
  assert.equal(memory.read(128)[0], 9)
  memory.write(128, view.subarray(1, 3))
  assert.deepEqual([...memory.read(128).subarray(0, 3)], [2, 3, 3])
  const stats = { blockSize: 64, capacity: 1024, used: 256, available: 768, largestFree: 768, highWater: 256, live: 3 }
  assert.deepEqual(memory.stats(), stats)
  memory.free(0)
  assert.equal(memory.alloc(10), 0)
  throws('invalid_argument', /./, () => memory.free(64))
  throws('invalid_argument', /./, () => memory.read(64))
  throws('invalid_argument', /65 bytes don't fit in an allocation of 64/, () => memory.write(128, new Uint8Array(65)))
  throws('out_of_memory', /./, () => memory.alloc(2000))
  memory.reset()
  assert.equal(memory.alloc(1), 0)
  throws('invalid_argument', /power of two/, () => new DeterministicAllocator(100))
  assert.equal(new DeterministicAllocator().stats().capacity, 4096 * 65536)
})

test('views outlive their allocator', async () => {
  const views = []
  for (let i = 0; i < 50; i++) {
    const arena = new ArenaAllocator(4096)
    const bytes = arena.alloc(1000, 64)
    bytes.fill(i)
    views.push(bytes)
  }
  for (let round = 0; round < 10; round++) {
    globalThis.gc?.()
    await turn()
  }
  views.forEach((view, i) => assert.ok(view.every((byte) => byte === i)))
})

test('the arena', () => {
  const arena = new ArenaAllocator(100, 200)
  arena.alloc(10, 1)
  const second = arena.alloc(10, 16)
  assert.equal(second.length, 10)
  assert.equal(arena.used, 26)
  assert.ok(arena.capacity >= 100)
  throws('out_of_memory', /./, () => arena.alloc(500, 1))
  throws('invalid_argument', /./, () => arena.alloc(1, 3))
  arena.reset()
  assert.equal(arena.used, 0)
  assert.equal(new ArenaAllocator().alloc(0, 1).length, 0)
  throws('invalid_argument', /needs an initial size/, () => new ArenaAllocator(undefined, 10))
})
