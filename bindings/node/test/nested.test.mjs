// Tensors as nested arrays and single values, and their disposal.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tensor } from '../index.mjs'
import { f32, same, throws } from './helpers.mjs'

test('nested arrays in and out', () => {
  const matrix = Tensor.from([
    [1, 2, 3],
    [4, 5, 6],
  ])
  same(matrix, f32([1, 2, 3, 4, 5, 6], [2, 3]))
  assert.deepEqual(matrix.toNested(), [
    [1, 2, 3],
    [4, 5, 6],
  ])
  for (const [dtype, nested] of [
    ['f16', [[1.5], [-2]]],
    ['bf16', [1.5, -2]],
    ['i32', [-(2 ** 31), 2 ** 31 - 1]],
    ['i64', [-(2n ** 63n), 2n ** 63n - 1n]],
    ['u32', [0, 2 ** 32 - 1]],
    ['u8', [0, 255]],
    ['bool', [[true, false]]],
    ['f32', 7],
    ['f32', []],
    ['f32', [[], []]],
  ]) {
    const tensor = Tensor.from(nested, dtype)
    assert.equal(tensor.dtype, dtype)
    assert.deepEqual(tensor.toNested(), nested)
  }
  assert.equal(Tensor.from([true]).dtype, 'bool')
  assert.equal(Tensor.from([1n]).dtype, 'i64')
  assert.deepEqual(Tensor.from([1, 2], 'i64').toNested(), [1n, 2n])
  throws('shape_mismatch', /an array of 1 at depth 1, where the first part has an array of 2/, () => Tensor.from([[1, 2], [3]]))
  throws('shape_mismatch', /a value at depth 1/, () => Tensor.from([[1], 2]))
  throws('shape_mismatch', /an array of 1 at depth 1, where the first part has a value/, () => Tensor.from([1, [2]]))
  throws('invalid_argument', /256 is not an integer from 0 to 255/, () => Tensor.from([256], 'u8'))
  throws('invalid_argument', /0.5 is not an integer/, () => Tensor.from([0.5], 'i64'))
  throws('invalid_argument', /f32 takes a number, not a string/, () => Tensor.from(['1']))
  throws('invalid_argument', /not a undefined/, () => Tensor.from([1, undefined]))
  throws('invalid_argument', /f32 takes a number, not a bigint/, () => Tensor.from([1, 1n]))
  const round = []
  round.push(round)
  throws('invalid_argument', /more than 8 levels/, () => Tensor.from(round))
})

test('parts and elements', () => {
  const x = f32([1, 2, 3, 4, 5, 6], [2, 3])
  assert.deepEqual(x.at(1).toNested(), [4, 5, 6])
  assert.deepEqual(x.at(-2).dims, [3])
  assert.deepEqual(x.at(-1, 0).dims, [])
  assert.equal(x.item(-1, 1), 5)
  assert.equal(x.sum({ axis: 'all' }).item(), 21)
  assert.equal(x.less(f32([2], [])).item(0, 0), true)
  assert.deepEqual(x.slice({ start: [0, 1], stop: [2, 3] }).toNested(), [
    [2, 3],
    [5, 6],
  ])
  throws('shape_mismatch', /there are 3 elements/, () => x.item(0))
  throws('invalid_argument', /index 2 of axis 0 is not an integer from -2 to 1/, () => x.at(2))
  throws('invalid_argument', /index 0.5/, () => x.at(0.5))
  throws('invalid_argument', /3 indices for 2 dimensions/, () => x.at(0, 0, 0))
})

test('a disposed tensor is not usable, and what shares its values is', () => {
  const x = f32([1, 2], [2])
  const shared = x.reshape([2, 1])
  x.dispose()
  x[Symbol.dispose]()
  throws('invalid_argument', /this one was disposed/, () => x.dims)
  throws('invalid_argument', /disposed|Tensor/, () => x.relu())
  assert.deepEqual(shared.toNested(), [[1], [2]])
  throws('invalid_argument', /expected a Tensor/, () => Tensor.prototype.dispose.call({}))
})
