'use strict'

// The class Tensor. Its methods are native; this file gives them their names.

module.exports = (native) => {
  const { Tensor } = native
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
    toString() {
      return native.tensorToString(this)
    },
    [Symbol.for('nodejs.util.inspect.custom')]() {
      return native.tensorToString(this)
    },
  }
  const statics = {
    zeros(dtype, dims) {
      return native.tensorZeros(dtype, dims)
    },
    fromBytes(bytes, dtype, dims) {
      return native.tensorFromBytes(bytes, dtype, dims)
    },
  }
  return { Tensor, methods, statics }
}
