// Tensors: elements, shapes, copies and views.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { Context, Tensor } from '../index.mjs'
import { f32, throws } from './helpers.mjs'

const elements = {
  f32: Float32Array.of(1.5, -0, NaN, Infinity),
  f16: Uint16Array.of(0x3c00, 0x8000, 0x7e00, 1),
  bf16: Uint16Array.of(0x3f80, 0x8000, 0x7fc0, 1),
  i32: Int32Array.of(-1, 0, 2147483647, -2147483648),
  i64: BigInt64Array.of(-1n, 0n, 2n ** 63n - 1n, -(2n ** 63n)),
  u32: Uint32Array.of(0, 1, 4294967295, 7),
  bool: Uint8Array.of(0, 1, 1, 0),
  f64: Float64Array.of(0.1, -0, NaN, 5e-324),
}

for (const [dtype, data] of Object.entries(elements)) {
  test(`${dtype} comes out as it went in`, () => {
    const tensor = new Tensor(data, [2, 2], dtype)
    assert.equal(tensor.dtype, dtype)
    assert.deepEqual(tensor.dims, [2, 2])
    assert.equal(tensor.length, 4)
    assert.equal(tensor.byteLength, data.byteLength)
    assert.equal(tensor.toArray().constructor, data.constructor)
    assert.deepEqual(tensor.toArray(), data)
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    assert.deepEqual(tensor.toBytes(), bytes)
    assert.deepEqual(Tensor.fromBytes(bytes, dtype, [4]).toArray(), data)
    assert.ok(Tensor.zeros(dtype, [3]).toBytes().every((byte) => byte === 0))
    if (![Uint8Array, Uint16Array].includes(data.constructor)) assert.equal(new Tensor(data, [4]).dtype, dtype)
  })
}

test('bools are made of booleans', () => {
  for (const tensor of [new Tensor([true, false, true], [3]), new Tensor([true, false, true], [3], 'bool')]) {
    assert.equal(tensor.dtype, 'bool')
    assert.deepEqual(tensor.toArray(), Uint8Array.of(1, 0, 1))
  }
  const [a, b] = [f32([1, NaN, -0], [3]), f32([2, NaN, 0], [3])]
  assert.deepEqual(a.less(b).toArray(), Uint8Array.of(1, 0, 0))
  assert.deepEqual(a.equal(b).toArray(), Uint8Array.of(0, 0, 1))
  assert.deepEqual(a.notEqual(b).toArray(), Uint8Array.of(1, 1, 0))
  assert.deepEqual(a.less(b).where(a, f32([7], [])).toArray(), Float32Array.of(1, 7, 7))
  throws('dtype_mismatch', /computes on f32, f16 and bf16, not bool/, () => a.less(b).relu())
  // Integers wrap around, and are divided down.
  const bytes = new Tensor(Uint8Array.of(200, 7), [2], 'u8')
  assert.deepEqual(bytes.add(new Tensor(Uint8Array.of(100, 3), [2], 'u8')).toArray(), Uint8Array.of(44, 10))
  const ids = Tensor.from([-7n, 7n])
  assert.deepEqual(ids.div(Tensor.from([2n, 0n])).toArray(), BigInt64Array.of(-4n, 0n))
  assert.equal(a.less(b).cast({ dtype: 'i32' }).sum().item(), 1)
})

test('f64 is stored, compared and cast', () => {
  const x = Tensor.from([0.1, 2 ** 53, 1 / 3], 'f64')
  assert.deepEqual(x.toArray(), Float64Array.of(0.1, 2 ** 53, 1 / 3))
  assert.equal(new Tensor(Float64Array.of(0.1), [1]).dtype, 'f64')
  assert.equal(x.slice({ start: [2] }).item(), 1 / 3)
  assert.deepEqual(x.greater(Tensor.from([0.1 - 5e-18, 2 ** 53 - 1, 1], 'f64')).toArray(), Uint8Array.of(0, 1, 0))
  assert.deepEqual(x.cast({ dtype: 'f32' }).toArray(), Float32Array.of(0.1, 2 ** 53, 1 / 3))
  assert.deepEqual(x.cast({ dtype: 'i64' }).toArray(), BigInt64Array.of(0n, 2n ** 53n, 0n))
  assert.deepEqual(f32([0.5], [1]).cast({ dtype: 'f64' }).toArray(), Float64Array.of(0.5))
  throws('dtype_mismatch', /computes on f32, f16 and bf16, not f64; cast it first/, () => x.add(x))
})

test('data is copied in and out', () => {
  const data = Float32Array.of(1, 2)
  const tensor = new Tensor(data, [2])
  data[0] = 9
  tensor.toArray()[1] = 9
  tensor.toBytes().fill(9)
  assert.deepEqual([...tensor.toArray()], [1, 2])
})

test('part of an array buffer', () => {
  const whole = Float32Array.of(0, 1, 2, 3, 4)
  assert.deepEqual([...new Tensor(whole.subarray(1, 4), [3]).toArray()], [1, 2, 3])
  assert.deepEqual([...Tensor.fromBytes(new Uint8Array(whole.buffer, 4, 8), 'f32', [2]).toArray()], [1, 2])
  const shared = new Float32Array(new SharedArrayBuffer(8))
  shared[1] = 5
  assert.deepEqual([...new Tensor(shared, [2]).toArray()], [0, 5])
})

test('scalars and empty tensors', () => {
  const scalar = f32([7], [])
  assert.deepEqual([scalar.dims, scalar.length], [[], 1])
  for (const empty of [f32([], [0]), Tensor.zeros('f32', [2, 0, 3])]) {
    assert.equal(empty.length, 0)
    assert.deepEqual(empty.toArray(), new Float32Array(0))
    assert.deepEqual(empty.view(), new Float32Array(0))
    assert.equal(empty.relu().length, 0)
  }
})

test('a view is the tensor itself and keeps it', async () => {
  const filled = Tensor.zeros('f32', [4])
  filled.view().set([1, -2, 3, -4])
  assert.deepEqual([...filled.relu().toArray()], [1, 0, 3, 0])
  const reshaped = filled.reshape([2, 2])
  reshaped.view()[0] = 8
  assert.equal(filled.toArray()[0], 8)
  const views = Array.from({ length: 100 }, (_, i) => f32(Array(1000).fill(i), [1000]).view())
  for (let round = 0; round < 20; round++) {
    Array.from({ length: 100 }, () => f32(Array(1000).fill(-1), [1000]))
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  views.forEach((view, i) => assert.ok(view.every((value) => value === i)))
})

test('a view can be taken twice, and not transferred', () => {
  const tensor = f32([1, 2], [2])
  const [one, other] = [tensor.view(), tensor.view()]
  one[0] = 5
  assert.equal(other[0], 5)
  // Node either copies it or refuses.
  try {
    new Float32Array(structuredClone(one.buffer, { transfer: [one.buffer] }))[1] = 7
  } catch (error) {
    assert.equal(error.name, 'DataCloneError')
  }
  assert.equal(one.length, 2)
  assert.deepEqual([...tensor.toArray()], [5, 2])
})

test('a detached array is empty', () => {
  const data = new Float32Array(4)
  structuredClone(data.buffer, { transfer: [data.buffer] })
  throws('shape_mismatch', /takes 16 bytes and the data is 0/, () => new Tensor(data, [4]))
})

test('an array that is detached while the call begins is empty', () => {
  const data = new Float32Array(1 << 20)
  const dims = [0]
  Object.defineProperty(dims, 0, {
    get() {
      structuredClone(data.buffer, { transfer: [data.buffer] })
      return 1 << 20
    },
  })
  throws('shape_mismatch', /the data is 0/, () => new Tensor(data, dims))
})

test('reshape', () => {
  const tensor = f32([1, 2, 3, 4, 5, 6], [2, 3])
  assert.deepEqual(tensor.reshape([3, 2]).dims, [3, 2])
  assert.deepEqual(tensor.reshape([6]).toArray(), tensor.toArray())
  throws('shape_mismatch', /6 elements and \[2, 2\] has 4/, () => tensor.reshape([2, 2]))
})

test('in words', () => {
  assert.equal(String(f32([1, 2], [2])), 'Tensor(f32[2], [1.0, 2.0])')
  assert.equal(inspect(f32([1], [])), 'Tensor(f32[], [1.0])')
})

test('strings of every length arrive whole', () => {
  // Longer ones than 59 bytes are read in another way. A lone surrogate becomes U+FFFD.
  for (const unit of ['a', 'é', '€', '🙂', '\0', '\ud83d']) {
    for (let length = 0; length < 80; length++) {
      for (const start of ['', 'x', 'xx', 'xxx']) {
        const text = start + unit.repeat(length)
        assert.throws(() => Tensor.zeros(text, [1]), { message: new RegExp(`^no dtype '${text.toWellFormed()}': `, 'u') })
      }
    }
  }
})

test('what is wrong with arguments', () => {
  throws('invalid_argument', /write new Tensor/, () => Tensor(new Float32Array(1), [1]))
  throws('invalid_argument', /expected a typed array/, () => new Tensor([1, 2], [2]))
  throws('invalid_argument', /expected an array, not a number/, () => new Tensor(new Float32Array(2), 2))
  throws('invalid_argument', /f16 or bf16: pass the dtype/, () => new Tensor(new Uint16Array(2), [2]))
  throws('invalid_argument', /may hold bool or u8: pass the dtype/, () => new Tensor(new Uint8Array(2), [2]))
  throws('invalid_argument', /an array of booleans/, () => new Tensor([true, 1], [2]))
  throws('dtype_mismatch', /an array of this kind can't hold i32/, () => new Tensor(new Float32Array(2), [2], 'i32'))
  throws('dtype_mismatch', /no dtype has this array's elements/, () => new Tensor(new BigUint64Array(2), [2]))
  throws('invalid_argument', /no dtype 'f128'/, () => Tensor.zeros('f128', [2]))
  throws('shape_mismatch', /takes 12 bytes and the data is 8/, () => new Tensor(new Float32Array(2), [3]))
  throws('invalid_argument', /-1 is not a whole number/, () => Tensor.zeros('f32', [-1]))
  throws('invalid_argument', /1\.5 is not a whole number/, () => Tensor.zeros('f32', [1.5]))
  throws('invalid_argument', /NaN is not a whole number/, () => Tensor.zeros('f32', [NaN]))
  throws('invalid_argument', /at most 8 dimensions/, () => Tensor.zeros('f32', Array(9).fill(1)))
  throws('invalid_argument', /more than .* elements/, () => Tensor.zeros('f32', [2 ** 40, 2 ** 40]))
  throws('out_of_memory', /./, () => Tensor.zeros('f32', [2 ** 50]))
  for (const other of [{}, new Context('cpu'), Object.create(Tensor.prototype), new Float32Array(2), null, undefined, 5, 'x']) {
    throws('invalid_argument', /expected a Tensor/, () => Tensor.prototype.toArray.call(other))
  }
})
