// The input generators of tests/conformance/FORMAT.md. They return bytes in native order. A 64-bit number is two halves
// here, because BigInt would take most of a run's time.

import { endianness } from 'node:os'

/** Bytes of an element. */
export const sizes = { f32: 4, f16: 2, bf16: 2, i32: 4, i64: 8, u32: 4, bool: 1, u8: 1, f64: 8 }

const little = endianness() === 'LE'

// The current number.
let [high, low] = [0, 0]

/** Returns the high half of the product of two 32-bit numbers. */
function above(a, b) {
  const [a1, a0, b1, b0] = [a >>> 16, a & 0xffff, b >>> 16, b & 0xffff]
  const middle = a1 * b0 + ((a0 * b0) >>> 16)
  const lower = a0 * b1 + (middle % 0x10000)
  return a1 * b1 + Math.floor(middle / 0x10000) + Math.floor(lower / 0x10000)
}

function multiply(h, l) {
  high = (above(low, l) + Math.imul(high, l) + Math.imul(low, h)) >>> 0
  low = Math.imul(low, l) >>> 0
}

/** Computes z ^= z >> by, for by below 32. */
function mix(by) {
  low = (low ^ ((low >>> by) | (high << (32 - by)))) >>> 0
  high = (high ^ (high >>> by)) >>> 0
}

/** Computes output i of splitmix64 with a seed below 2⁵³, into `high` and `low` (Steele, Lea and Flood, 2014). */
function splitmix64(seed, i) {
  high = Math.floor((i + 1) / 0x100000000)
  low = (i + 1) >>> 0
  multiply(0x9e3779b9, 0x7f4a7c15)
  const sum = low + (seed % 0x100000000)
  high = (high + Math.floor(seed / 0x100000000) + (sum >= 0x100000000 ? 1 : 0)) >>> 0
  low = sum >>> 0
  mix(30)
  multiply(0xbf58476d, 0x1ce4e5b9)
  mix(27)
  multiply(0x94d049bb, 0x133111eb)
  mix(31)
}

const table = (text) => text.split(' ').map((word) => Number.parseInt(word, 16))
const WILD = {
  f32: table(
    '00000000 80000000 3f800000 bf800000 7f800000 ff800000 7fc00000 ffc12345 ' +
      '7f800001 00000001 80000001 007fffff 00800000 80800000 7f7fffff ff7fffff',
  ),
  f16: table('0000 8000 3c00 bc00 7c00 fc00 7e00 fe01 7c01 0001 8001 03ff 0400 8400 7bff fbff'),
  bf16: table('0000 8000 3f80 bf80 7f80 ff80 7fc0 ffc1 7f81 0001 8001 007f 0080 8080 7f7f ff7f'),
}

const scratch = new DataView(new ArrayBuffer(4))

/** Returns the bits of a number in a format; the number must be exact in it. */
function bitsOf(value, dtype) {
  scratch.setFloat32(0, value)
  const wide = scratch.getUint32(0)
  if (dtype === 'f32') return wide
  if (dtype === 'bf16') return wide >>> 16
  const sign = (wide >>> 16) & 0x8000
  const [exponent, mantissa] = [(wide >>> 23) & 0xff, wide & 0x7fffff]
  if (value === 0) return sign
  const narrow = exponent - 127 + 15
  if (narrow > 0) return sign | (narrow << 10) | (mantissa >>> 13)
  // Subnormal: the leading 1 becomes explicit.
  return sign | ((mantissa | 0x800000) >>> (14 - narrow))
}

/** For `rand`: the shift of the high half of z, and half of the remaining range. */
const RAND = { f32: [8, 2 ** 23], f16: [21, 2 ** 10], bf16: [24, 2 ** 7] }

/** Returns element i of `kind:seed:other`. */
function generator(dtype, kind, [first, other]) {
  const seed = Number(first)
  if (!Number.isSafeInteger(seed)) throw new Error(`the seed ${first} is above 2^53`)
  if (kind === 'rand') {
    const [shift, half] = RAND[dtype]
    const scale = 2 ** Number(other ?? 0) / half
    return (i) => {
      splitmix64(seed, i)
      return bitsOf(((high >>> shift) - half) * scale, dtype)
    }
  }
  if (kind === 'wild') {
    const shift = sizes[dtype] === 4 ? 0 : 16
    return (i) => {
      splitmix64(seed, i)
      return (low & 3) === 0 ? WILD[dtype][(low >>> 2) & 15] : high >>> shift
    }
  }
  if (kind === 'ids') {
    const below = Number(other)
    // Below 2⁶³, as below is up to 2³¹; exactly, in halves.
    return (i) => {
      splitmix64(seed, i)
      return above(high, below)
    }
  }
  throw new Error(`no generator '${kind}'`)
}

/** Returns the bytes of `count` elements that a case describes. */
export function data(dtype, count, spec) {
  const colon = spec.indexOf(':')
  const [kind, rest] = [spec.slice(0, colon), spec.slice(colon + 1)]
  const size = sizes[dtype]
  const bytes = new Uint8Array(count * size)
  const view = new DataView(bytes.buffer)
  const put = {
    1: (at, bits) => view.setUint8(at, Number(bits)),
    2: (at, bits) => view.setUint16(at, Number(bits), little),
    4: (at, bits) => view.setUint32(at, Number(bits), little),
    8: (at, bits) => view.setBigUint64(at, BigInt(bits), little),
  }[size]
  const hex = (digits) => (size === 8 ? BigInt(`0x${digits}`) : Number.parseInt(digits, 16))
  let element
  if (kind === 'bits') {
    if (rest.length !== count * size * 2) throw new Error(`${rest.length} digits for ${count} elements of ${dtype}`)
    element = (i) => hex(rest.slice(i * size * 2, (i + 1) * size * 2))
  } else if (kind === 'fill') {
    const bits = hex(rest)
    element = () => bits
  } else element = generator(dtype, kind, rest.split(':'))
  for (let i = 0; i < count; i++) put(i * size, element(i))
  return bytes
}
