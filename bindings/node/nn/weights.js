'use strict'

// The tensors of a safetensors file by name.

const fs = require('node:fs')
const { AdeadError, Context, Tensor } = require('../index.js')

/** Bytes of the header at most, as the format's own library has it. */
const LONGEST = 100_000_000
const NAMES = { 1: 'BOOL U8 I8 F8_E4M3 F8_E5M2', 2: 'U16 I16 F16 BF16', 4: 'U32 I32 F32', 8: 'U64 I64 F64' }
const SIZES = new Map(Object.entries(NAMES).flatMap(([size, names]) => names.split(' ').map((name) => [name, Number(size)])))
const DTYPES = new Map([
  ['F32', 'f32'],
  ['F16', 'f16'],
  ['BF16', 'bf16'],
])

const STATUSES = { invalid_argument: 1, shape_mismatch: 2, dtype_mismatch: 3, io: 11 }
const failure = (code, text) => new AdeadError(text, code, STATUSES[code])

/** Widens halves, whatever the default context is. */
let cpu
const widened = (tensor) => (cpu ??= new Context('cpu', { threads: 1 })).cast(tensor, { dtype: 'f32' })

/** Closes the files of weights that nothing refers to any more. */
const files = new FinalizationRegistry((file) => fs.close(file, () => {}))

/** Whole numbers from 0 on. */
const sizes = (values) => Array.isArray(values) && values.every((value) => Number.isSafeInteger(value) && value >= 0)

class Weights {
  #path
  #file
  #found
  #start

  constructor(path) {
    if (typeof path !== 'string') throw failure('invalid_argument', `a path is a string, not of the type ${typeof path}`)
    this.#path = path
    this.#file = this.#reading(() => fs.openSync(path))
    files.register(this, this.#file, this)
    try {
      this.#read()
    } catch (error) {
      this.close()
      throw error
    }
  }

  get path() {
    return this.#path
  }

  names() {
    return [...this.#found.keys()].sort()
  }

  has(name) {
    return this.#found.has(name)
  }

  dims(name) {
    return [...this.#info(name).dims]
  }

  tensor(name, dims) {
    const { dtype, dims: found, begin } = this.#info(name)
    if (!Array.isArray(dims) || dims.length !== found.length || dims.some((dim, i) => dim !== found[i])) {
      throw this.#refused('shape_mismatch', name, `is [${found.join(', ')}]; it must be [${[dims].flat().join(', ')}]`)
    }
    if (!DTYPES.has(dtype)) {
      throw this.#refused('dtype_mismatch', name, `has elements of ${dtype}; F32, F16 and BF16 are taken`)
    }
    // What is read goes to the tensor's own memory.
    const tensor = Tensor.zeros(DTYPES.get(dtype), found)
    this.#fill(tensor.view(), this.#start + begin)
    return dtype === 'F32' ? tensor : widened(tensor)
  }

  close() {
    if (this.#file === undefined) return
    files.unregister(this)
    fs.closeSync(this.#file)
    this.#file = undefined
  }

  #refused(code, name, text) {
    return failure(code, `${this.#path}: the tensor '${name}' ${text}`)
  }

  #malformed(text) {
    return failure('invalid_argument', `${this.#path}: no safetensors file: ${text}`)
  }

  /** What reads, with its errors told as ours. */
  #reading(read) {
    try {
      return read()
    } catch (error) {
      throw failure('io', `${this.#path}: ${error.message}`)
    }
  }

  /** Reads an array's bytes at a place of the file. */
  #fill(array, place) {
    if (this.#file === undefined) throw failure('io', `${this.#path}: it was closed`)
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
    for (let at = 0; at < bytes.length; ) {
      const count = this.#reading(() => fs.readSync(this.#file, bytes, at, bytes.length - at, place + at))
      if (count === 0) throw failure('io', `${this.#path}: it ends at ${place + at}, where it had more when it was opened`)
      at += count
    }
    return bytes
  }

  #info(name) {
    const found = this.#found.get(name)
    if (!found) throw this.#refused('invalid_argument', name, `is not among the file's ${this.#found.size} tensors`)
    return found
  }

  /** The header: every tensor's dtype, dims and place. They are the file, without gaps and surplus. */
  #read() {
    const { size } = this.#reading(() => fs.fstatSync(this.#file))
    if (size < 8) throw this.#malformed(`${size} bytes`)
    const length = Number(new DataView(this.#fill(new Uint8Array(8), 0).buffer).getBigUint64(0, true))
    if (length > Math.min(LONGEST, size - 8)) throw this.#malformed(`a header of ${length} bytes in a file of ${size}`)
    let header
    try {
      header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(this.#fill(new Uint8Array(length), 8)))
    } catch (error) {
      if (error instanceof AdeadError) throw error
      throw this.#malformed(error.message)
    }
    if (header === null || typeof header !== 'object' || Array.isArray(header)) throw this.#malformed('the header is no object')
    const entries = Object.entries(header).filter(([name]) => name !== '__metadata__')
    for (const [name, entry] of entries) {
      const { dtype, shape, data_offsets: offsets } = entry ?? {}
      if (!SIZES.has(dtype) || !sizes(shape) || !sizes(offsets) || offsets.length !== 2) {
        throw this.#malformed(`the tensor '${name}' is described as ${JSON.stringify(entry).slice(0, 80)}`)
      }
    }
    const places = entries.map(([name, { dtype, shape, data_offsets }]) => [name, dtype, shape, ...data_offsets])
    places.sort((a, b) => a[3] - b[3] || a[4] - b[4])
    this.#found = new Map()
    this.#start = 8 + length
    let next = 0
    for (const [name, dtype, dims, begin, end] of places) {
      const bytes = dims.reduce((product, dim) => product * dim, SIZES.get(dtype))
      if (begin !== next || end !== next + bytes) {
        throw this.#malformed(`the tensor '${name}' of ${bytes} bytes has offsets [${begin}, ${end}]; ${next} is the next`)
      }
      next = end
      this.#found.set(name, { dtype, dims, begin })
    }
    if (next !== size - this.#start) {
      throw this.#malformed(`the tensors have ${next} bytes and the file ${size - this.#start} for them`)
    }
  }
}

module.exports = { Weights }
