// What the tests share.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { AdeadError, Tensor } from '../index.mjs'

/** The operations by their names, as the generated types list them. */
export const operations = Array.from(
  readFileSync(new URL('../operations.d.ts', import.meta.url), 'utf8')
    .match(/OpName =((?:\s*\| '\w+')+)/)[1]
    .matchAll(/'(\w+)'/g),
  ([, name]) => name,
)

/** A tensor of f32. */
export const f32 = (values, dims) => new Tensor(Float32Array.from(values), dims)

/** Checks that a call throws an AdeadError of a status, with this in its text. */
export function throws(code, text, call) {
  assert.throws(call, (error) => matches(error, code, text))
}

/** Checks that a promise rejects with one. */
export async function rejects(code, text, promise) {
  await assert.rejects(promise, (error) => matches(error, code, text))
}

function matches(error, code, text) {
  assert.ok(error instanceof AdeadError, `${error?.stack ?? error} is no AdeadError`)
  assert.equal(error.code, code)
  assert.ok(Number.isInteger(error.status) && error.status > 0)
  assert.match(error.message, text)
  return true
}

/** Two tensors with the same dtype, shape and bytes. */
export function same(a, b) {
  assert.equal(a.dtype, b.dtype)
  assert.deepEqual(a.dims, b.dims)
  assert.deepEqual(a.toBytes(), b.toBytes())
}

/** Lets node run what it keeps for the next turn of its event loop, finalizers among it. */
export const turn = () => new Promise((resolve) => setImmediate(resolve))
