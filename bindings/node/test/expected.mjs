// The inputs and results of conformance cases (tests/conformance/FORMAT.md): makes tensors from texts, and compares
// results.

import { createHash } from 'node:crypto'
import { endianness } from 'node:os'
import { data, sizes } from './generators.mjs'

/** Converts `trans_a` to `transA`. */
export const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())

/** Reads a shape of the format: `2,3`, or `-` for a scalar. */
export const shape = (text) => (text === '-' ? [] : text.split(',').map(Number))

/** Makes the tensor that a text describes; null for an absent one. */
export function operand(Tensor, text) {
  if (text === 'none') return null
  const [dtype, dims, spec] = text.split(' ')
  const shaped = shape(dims)
  const count = shaped.reduce((product, dim) => product * dim, 1)
  return Tensor.fromBytes(data(dtype, count, spec), dtype, shaped)
}

/** Returns a tensor's bytes, little endian. */
function littleEndian(tensor) {
  const bytes = Buffer.from(tensor.toBytes())
  if (endianness() === 'LE') return bytes
  return { 2: () => bytes.swap16(), 4: () => bytes.swap32(), 8: () => bytes.swap64() }[sizes[tensor.dtype]]()
}

/** Writes elements as fixed-width hex numbers. */
function hex(bytes, size) {
  let text = ''
  for (let at = 0; at < bytes.length; at += size) text += Buffer.from(bytes.subarray(at, at + size)).reverse().toString('hex')
  return text
}

/** Returns the result of a call, or the error that it throws. */
export function attempt({ AdeadError }, call) {
  try {
    return { results: [call()].flat() }
  } catch (error) {
    if (!(error instanceof AdeadError)) throw error
    return { error }
  }
}

/** Compares tensors, or an error, with the expected lines. Returns undefined if they are equal, else what is wrong. */
export function check(expected, { results, error }) {
  const [kind, status] = expected[0].split(' ')
  if (error && kind !== 'error') return `expected a result, got ${error.code}: ${error.message}`
  if (error) return error.code === status ? undefined : `expected ${status}, got ${error.code}: ${error.message}`
  if (kind === 'error') return `expected ${status}, got ${results}`
  if (results.length !== expected.length) return `expected ${expected.length} tensors, got ${results}`
  return results.map((result, i) => checkTensor(expected[i], result)).find((wrong) => wrong !== undefined)
}

function checkTensor(line, result) {
  const [, dtype, dims, value] = line.split(' ')
  if (result.dtype !== dtype || String(result.dims) !== String(shape(dims))) return `expected ${dtype}[${dims}], got ${result}`
  const bytes = littleEndian(result)
  if (value.startsWith('sha256:')) {
    const got = createHash('sha256').update(bytes).digest('hex')
    return `sha256:${got}` === value ? undefined : `expected ${value}, got sha256:${got}`
  }
  const got = `bits:${hex(bytes, sizes[dtype])}`
  return got === value ? undefined : `expected ${value}, got ${got}`
}
