// Random tensors.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { Context, Random } from '../index.mjs'

/** A tensor's elements as tests/random/draws.txt has them. */
function hex(tensor) {
  const digits = tensor.dtype === 'i64' ? 16 : 8
  const array = tensor.toArray()
  const bits = digits === 16 ? new BigUint64Array(array.buffer, array.byteOffset, array.length) : new Uint32Array(array.buffer, array.byteOffset, array.length)
  return [...bits].map((word) => word.toString(16).padStart(digits, '0')).join(' ')
}

test('draws are those of every language', () => {
  const context = new Context('cpu')
  const random = new Random(7n)
  const calls = {
    'uniform 0 1, 2×3': () => random.uniform(context, [2, 3]),
    'uniform -2.5 4, 5': () => random.uniform(context, [5], -2.5, 4),
    'standard normal, 2×2': () => random.standardNormal(context, [2, 2]),
    'normal 3 0.5, 4': () => random.normal(context, [4], 3, 0.5),
    'integers -10 to 90, 6': () => random.integers([6], -10, 90),
    'permutation of 8': () => random.permutation(8),
  }
  const text = readFileSync(new URL('../../../tests/random/draws.txt', import.meta.url), 'utf8')
  const lines = text.split('\n').filter((line) => line && !line.startsWith('#'))
  assert.equal(lines.length, 6)
  for (const line of lines) {
    const [call, expected] = line.split(': ')
    assert.equal(hex(calls[call]()), expected, call)
  }
  assert.equal(random.draws, 6n)
  assert.equal(random.seed, 7n)
  assert.equal(hex(new Random(7, 5).permutation(8)), lines[5].split(': ')[1])
})

test('a draw that fails does not count', () => {
  const context = new Context('cpu')
  const random = new Random(1)
  for (const call of [
    () => random.normal(context, [1], 0, -1),
    () => random.integers([1], 5, 5),
    () => random.integers([1], 0, 2 ** 33),
    () => random.integers([1], 0.5, 3),
    () => random.uniform(context, [2 ** 40]),
    () => new Random(-1),
    () => new Random(2n ** 64n),
  ]) {
    assert.throws(call, { code: 'invalid_argument' })
  }
  assert.equal(random.draws, 0n)
})
