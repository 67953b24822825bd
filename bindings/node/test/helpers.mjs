// What the tests share.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { AdeadError, Tensor } from '../index.mjs'
import { checksOf } from './errors.mjs'

/** The operations by their names, as the generated types list them. */
export const operations = Array.from(
  readFileSync(new URL('../operations.d.ts', import.meta.url), 'utf8')
    .match(/OpName =((?:\s*\| '\w+')+)/)[1]
    .matchAll(/'(\w+)'/g),
  ([, name]) => name,
)

/** A tensor of f32. */
export const f32 = (values, dims) => new Tensor(Float32Array.from(values), dims)

export const { throws, rejects } = checksOf(AdeadError)

/** Two tensors with the same dtype, shape and bytes. */
export function same(a, b) {
  assert.equal(a.dtype, b.dtype)
  assert.deepEqual(a.dims, b.dims)
  assert.deepEqual(a.toBytes(), b.toBytes())
}

/** Lets node run what it keeps for the next turn of its event loop, finalizers among it. */
export const turn = () => new Promise((resolve) => setImmediate(resolve))
