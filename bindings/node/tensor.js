'use strict'

// The class Tensor. Its methods are native; this file gives them their names.

const { AdeadError } = require('./errors.js')

const refused = (text, code, status) => new AdeadError(text, code, status)

/** The arrays in which nested values are collected. f16 and bf16 are converted from f32. */
const collected = { i32: Int32Array, i64: BigInt64Array, u32: Uint32Array, bool: Uint8Array, u8: Uint8Array, f64: Float64Array }

/** Returns the dims of nested arrays, all of whose parts must have the same, and appends the values to `to`. */
function flatten(nested, to) {
  const dims = []
  for (let inner = nested; Array.isArray(inner); inner = inner[0]) {
    // Also ends arrays that contain themselves.
    if (dims.push(inner.length) > 8) throw refused('nested arrays have more than 8 levels', 'invalid_argument', 1)
  }
  const walk = (part, axis) => {
    const n = Array.isArray(part) ? part.length : undefined
    if (n !== dims[axis]) {
      const what = n === undefined ? 'a value' : `an array of ${n}`
      const due = dims[axis] === undefined ? 'a value' : `an array of ${dims[axis]}`
      throw refused(`nested arrays: found ${what} at depth ${axis}, where the first part has ${due}`, 'shape_mismatch', 2)
    }
    if (n === undefined) to.push(part)
    else for (const inner of part) walk(inner, axis + 1)
  }
  walk(nested, 0)
  return dims
}

module.exports = (native) => {
  const { Tensor } = native
  /** Returns the elements of a tensor as JavaScript's values: f16 and bf16 as numbers, bools as booleans. */
  const elements = (tensor) => {
    const { dtype } = tensor
    if (dtype === 'f16' || dtype === 'bf16') return tensor.cast({ dtype: 'f32' }).toArray()
    return dtype === 'bool' ? Array.from(tensor.toArray(), Boolean) : tensor.toArray()
  }
  const methods = {
    get dtype() {
      return native.tensorDtype(this)
    },
    get dims() {
      return native.tensorDims(this)
    },
    get length() {
      return native.tensorLength(this)
    },
    get byteLength() {
      return native.tensorByteLength(this)
    },
    toArray() {
      return native.tensorToArray(this)
    },
    toBytes() {
      return native.tensorToBytes(this)
    },
    view() {
      return native.tensorView(this)
    },
    get places() {
      return native.tensorPlaces(this)
    },
    toCpu() {
      return native.tensorToCpu(this)
    },
    reshape(dims) {
      return native.tensorReshape(this, dims)
    },
    at(...index) {
      const { dims } = this
      if (index.length > dims.length) {
        throw refused(`at: ${index.length} indices for ${dims.length} dimensions`, 'invalid_argument', 1)
      }
      const start = index.map((i, axis) => {
        const n = dims[axis]
        if (!Number.isInteger(i) || i < -n || i >= n) {
          throw refused(`at: index ${String(i)} of axis ${axis} is not an integer from ${-n} to ${n - 1}`, 'invalid_argument', 1)
        }
        return i < 0 ? i + n : i
      })
      const stop = start.map((i) => i + 1)
      return this.slice({ start, stop }).reshape(dims.slice(index.length))
    },
    item(...index) {
      const one = index.length ? this.at(...index) : this
      if (one.length !== 1) throw refused(`item: there are ${one.length} elements, not 1`, 'shape_mismatch', 2)
      return elements(one)[0]
    },
    toNested() {
      const all = elements(this)
      const { dims } = this
      let next = 0
      const part = (axis) =>
        axis === dims.length ? all[next++] : Array.from({ length: dims[axis] }, () => part(axis + 1))
      return part(0)
    },
    dispose() {
      native.tensorDispose(this)
    },
    [Symbol.dispose ?? Symbol.for('dispose')]() {
      native.tensorDispose(this)
    },
    toString() {
      return native.tensorToString(this)
    },
    [Symbol.for('nodejs.util.inspect.custom')]() {
      return native.tensorToString(this)
    },
  }
  const statics = {
    from(nested, dtype) {
      const values = []
      const dims = flatten(nested, values)
      const kind = typeof values[0]
      const type = dtype ?? { boolean: 'bool', bigint: 'i64' }[kind] ?? 'f32'
      const allowed = { bool: ['boolean'], i64: ['bigint', 'number'] }[type] ?? ['number']
      const wrong = values.find((value) => !allowed.includes(typeof value))
      if (wrong !== undefined || values.includes(undefined)) {
        throw refused(`nested arrays: ${type} takes a ${allowed.join(' or ')}, not a ${typeof wrong}`, 'invalid_argument', 1)
      }
      if (['i32', 'i64', 'u32', 'u8'].includes(type)) {
        const [least, most] = { i32: [-(2 ** 31), 2 ** 31 - 1], u32: [0, 2 ** 32 - 1], u8: [0, 255] }[type] ?? [-(2n ** 63n), 2n ** 63n - 1n]
        const odd = values.find((value) => (typeof value === 'number' && !Number.isInteger(value)) || value < least || value > most)
        if (odd !== undefined) {
          throw refused(`nested arrays: ${odd} is not an integer from ${least} to ${most} (${type})`, 'invalid_argument', 1)
        }
      }
      const array = (collected[type] ?? Float32Array).from(values, type === 'i64' ? BigInt : Number)
      if (type === 'f16' || type === 'bf16') return new Tensor(array, dims).cast({ dtype: type })
      return new Tensor(array, dims, type)
    },
    zeros(dtype, dims) {
      return native.tensorZeros(dtype, dims)
    },
    fromBytes(bytes, dtype, dims) {
      return native.tensorFromBytes(bytes, dtype, dims)
    },
  }
  return { Tensor, methods, statics }
}
