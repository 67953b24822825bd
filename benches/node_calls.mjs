// Measures the cost of a call from Node.js: the median of rounds, in nanoseconds, with the garbage collector's share.
//
//   node benches/node_calls.mjs      with the module that ci/node-test built

import { createRequire } from 'node:module'

const { Context, Tensor } = createRequire(import.meta.url)('../bindings/node')

const context = new Context('cpu')
const x = new Tensor(
  Float32Array.from({ length: 16 }, (_, i) => i - 8),
  [16],
)
const square = x.reshape([4, 4])
const data = x.toArray()
const axis = { axis: -1 }

const calls = {
  'context.relu(x), x f32[16]': () => context.relu(x),
  'x.relu(), on the default context': () => x.relu(),
  'context.matmul(a, b), 4×4': () => context.matmul(square, square),
  'context.softmax(x, { axis: -1 }), 4×4': () => context.softmax(square, axis),
  'new Tensor(data, [16])': () => new Tensor(data, [16]),
  'x.toArray()': () => x.toArray(),
  'new Tensor(data, [16]).relu().toArray()': () => new Tensor(data, [16]).relu().toArray(),
}
const [rounds, each] = [301, 1000]

console.log(`node ${process.version}, ${context.device.name}, ${context.device.arch}`)
for (const [name, call] of Object.entries(calls)) {
  const times = []
  for (let round = 0; round < rounds; round++) {
    const start = process.hrtime.bigint()
    for (let i = 0; i < each; i++) call()
    times.push(Number(process.hrtime.bigint() - start) / each)
    await new Promise((resolve) => setImmediate(resolve))
  }
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.floor(share * (rounds - 1))].toFixed(0).padStart(6)
  console.log(`${at(0.5)} ns (${at(0.1).trim()}–${at(0.9).trim()})  ${name}`)
}
const start = process.hrtime.bigint()
for (let i = 0; i < 5000; i++) await context.reluAsync(x)
console.log(`${(Number(process.hrtime.bigint() - start) / 5000).toFixed(0).padStart(6)} ns  await context.reluAsync(x)`)
