// Adds two vectors on the best GPU with the caller's own kernel: node vecadd.mjs KERNEL.spv

import { GPU } from 'adead'

const gpu = new GPU()
const kernel = await gpu.loadSpirvAsync(process.argv[2])
const n = 1000
const a = gpu.buffer(new Float32Array(n).map((_, i) => i))
const b = gpu.buffer(new Float32Array(n).map((_, i) => 2 * i))
const c = gpu.buffer({ size: n })
gpu.dispatch(kernel, [a, b, c], [Math.ceil(n / kernel.workgroup[0]), 1, 1], Uint32Array.of(n))
const sums = await c.toArrayAsync('f32')
if (!sums.every((sum, i) => sum === 3 * i)) throw new Error('a sum is wrong')
console.log(`${n} sums on ${gpu.device.name}: exact`)
