// Prints the hash of softmax(gelu(x·w1)·w2). It is the same in every language and on every device.

import { Context, Tensor } from 'adead'

const filled = (dims, value) => {
  const data = new Float32Array(dims[0] * dims[1])
  return new Tensor(
    data.map((_, i) => value(i)),
    dims,
  )
}
const x = filled([16, 64], (i) => (((i * 37) % 101) - 50) / 64)
const w1 = filled([64, 128], (i) => (((i * 53) % 127) - 63) / 256)
const w2 = filled([128, 32], (i) => (((i * 29) % 113) - 56) / 256)

const context = new Context('auto')
const hidden = context.gelu(context.matmul(x, w1))
const y = context.softmax(context.matmul(hidden, w2), { axis: -1 })

// FNV-1a over the elements, little endian.
const bytes = new DataView(new ArrayBuffer(4))
let hash = 0xcbf29ce484222325n
for (const value of y.toArray()) {
  bytes.setFloat32(0, value, true)
  for (let i = 0; i < 4; i++) hash = BigInt.asUintN(64, (hash ^ BigInt(bytes.getUint8(i))) * 0x100000001b3n)
}
console.log(hash.toString(16).padStart(16, '0'))
