// Arguments of every kind to every method give an error of adead or a result, and never end the process.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import adead, * as named from '../index.mjs'

const { AdeadError, Context, Tensor } = adead
const context = new Context('cpu', { threads: 2 })
const x = Tensor.zeros('f32', [2])
const buffer = context.buffer({ nbytes: 16 })
const stream = context.stream()

const objects = {
  context,
  tensor: x,
  buffer,
  stream,
  event: context.event(),
  download: stream.download(buffer, 0, 16),
  timestamp: stream.timestamp(),
  pipeline: context.pipeline(),
  value: context.pipeline().input([2]).value,
  compiled: context.pipeline().relu(x).compile(),
  packed: context.pack(Tensor.zeros('f32', [2, 2])),
  program: adead.Program.assemble('.adead 1\ninput a f32[2]\noutput b f32[2]\nb = relu a\nhalt'),
  layout: adead.Layout.tiled(2, 2, 2),
  allocator: new adead.DeterministicAllocator(64, 16),
  arena: new adead.ArenaAllocator(100),
}
const detached = new Float32Array(4)
structuredClone(detached.buffer, { transfer: [detached.buffer] })
const odd = [
  ...[undefined, null, 5, -1, 1.5, NaN, 2 ** 53, 'x', true, Symbol('s'), 10n, {}, [], [1], () => 1],
  ...[new Float32Array(4), detached, new ArrayBuffer(8), new Proxy({}, {}), new Proxy([], {}), new Date()],
  ...[x, context, buffer, stream, Object.create(Tensor.prototype), Object.create(Context.prototype), globalThis],
]

/** Calls, and accepts the errors that a caller may get. */
async function call(name, work, pending) {
  // Reading an option of a context's bare prototype is reading a getter of it, and its error is napi's.
  const known = (error) => error instanceof AdeadError || /^Failed to unwrap/.test(error?.message)
  const check = (error) => assert.ok(known(error), `${name}: ${error?.stack ?? String(error)}`)
  try {
    const result = work()
    if (result instanceof Promise) pending.push(result.catch(check))
  } catch (error) {
    check(error)
  }
}

for (const [name, object] of Object.entries(objects)) {
  test(`methods of ${name}`, async () => {
    const prototype = Object.getPrototypeOf(object)
    const pending = []
    for (const method of Object.getOwnPropertyNames(prototype)) {
      const { value } = Object.getOwnPropertyDescriptor(prototype, method)
      // Disposing of a tensor would leave the next calls without it: nested.test.mjs has that.
      if (method === 'constructor' || method === 'dispose' || typeof value !== 'function') continue
      for (const first of odd) {
        for (const second of odd.slice(0, 16)) {
          for (const third of [undefined, {}, [1, 1, 1]]) {
            await call(`${name}.${method}`, () => object[method](first, second, third), pending)
          }
        }
      }
      await Promise.all(pending.splice(0))
    }
  })
}

test('constructors and functions', async () => {
  const pending = []
  for (const first of odd) {
    for (const second of odd) {
      for (const name of ['Context', 'Tensor', 'ArenaAllocator']) {
        await call(name, () => new adead[name](first, second), pending)
      }
      for (const third of odd) {
        for (const name of ['zeros', 'fromBytes']) {
          await call(`Tensor.${name}`, () => Tensor[name](first, second, third), pending)
        }
        for (const name of ['tiled', 'aligned', 'coalesced', 'morton']) {
          await call(`Layout.${name}`, () => adead.Layout[name](first, second, third), pending)
        }
      }
    }
    for (const name of ['decode', 'load', 'assemble']) {
      await call(`Program.${name}`, () => adead.Program[name](first), pending)
    }
    await call('GPU', () => new adead.GPU(first), pending)
    await call('openAsync', () => Context.openAsync(first), pending)
  }
  await Promise.all(pending)
  assert.equal(context.relu(x).length, 2)
})

test('import gives what require gives', () => {
  const common = createRequire(import.meta.url)('../index.js')
  assert.equal(adead, common)
  assert.deepEqual(Object.keys(named).filter((name) => name !== 'default').sort(), Object.keys(common).sort())
  for (const name of Object.keys(common)) assert.equal(named[name], common[name])
})
