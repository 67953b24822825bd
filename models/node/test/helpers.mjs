// What the tests share: the small model of tests/sentences, its sentences and rows, and checks of errors.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { checksOf } from '../../../bindings/node/test/errors.mjs'
import { AdeadError } from '../index.mjs'

/** A file of tests/sentences. */
export const shared = (name) => fileURLToPath(new URL(`../../../tests/sentences/${name}`, import.meta.url))
export const tiny = shared('tiny')

/** The lines of a file. */
export const lines = (name) => readFileSync(shared(name), 'utf8').slice(0, -1).split('\n')

/** The values of a .npy file whose header takes 128 bytes, as these do. */
export function npy(name) {
  const bytes = readFileSync(shared(name))
  assert.equal(bytes.subarray(0, 10).toString('latin1'), '\x93NUMPY\x01\x00\x76\x00')
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset + 128, bytes.byteOffset + bytes.length))
}

/** The bits of values, which tell zeros and NaNs apart. */
export const bits = (values) => new Uint32Array(values.buffer, values.byteOffset, values.length)

export const { throws, rejects } = checksOf(AdeadError)
