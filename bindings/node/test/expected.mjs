// What conformance cases give and expect (tests/conformance/FORMAT.md): tensors from texts, and results compared with them.

import { createHash } from 'node:crypto'
import { endianness } from 'node:os'
import { data, sizes } from './generators.mjs'

/** `trans_a` as `transA`. */
export const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())

/** A shape of the format: `2,3`, or `-` for a scalar. */
export const shape = (text) => (text === '-' ? [] : text.split(',').map(Number))

/** The tensor that a text stands for; null where it is none. */
export function operand(Tensor, text) {
  if (text === 'none') return null
  const [dtype, dims, spec] = text.split(' ')
  const shaped = shape(dims)
  const count = shaped.reduce((product, dim) => product * dim, 1)
  return Tensor.fromBytes(data(dtype, count, spec), dtype, shaped)
}

/** A tensor's bytes, little endian. */
function littleEndian(tensor) {
  const bytes = Buffer.from(tensor.toBytes())
  if (endianness() === 'LE') return bytes
  return { 2: () => bytes.swap16(), 4: () => bytes.swap32(), 8: () => bytes.swap64() }[sizes[tensor.dtype]]()
}

/** Elements as fixed-width hex numbers. */
function hex(bytes, size) {
  let text = ''
  for (let at = 0; at < bytes.length; at += size) text += Buffer.from(bytes.subarray(at, at + size)).reverse().toString('hex')
  return text
}

/** What a call gives, or the error that it throws. */
export function attempt({ AdeadError }, call) {
  try {
    return { results: [call()].flat() }
  } catch (error) {
    if (!(error instanceof AdeadError)) throw error
    return { error }
  }
}

/** Compares tensors, or an error, with what is expected, a line for each: undefined if they are that, else what is wrong. */
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
