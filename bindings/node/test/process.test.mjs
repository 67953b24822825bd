// Processes and threads: unhandled rejections, exits during work, workers, and copies of the package in one process.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { Context, Tensor } from '../index.mjs'
import { f32, throws } from './helpers.mjs'

const index = fileURLToPath(new URL('../index.js', import.meta.url))

/** Runs a script in a process of its own. */
function script(text, ...options) {
  const code = `const adead = require(${JSON.stringify(index)});\n${text}`
  const child = spawnSync(process.execPath, [...options, '-e', code], { encoding: 'utf8', timeout: 120_000 })
  assert.equal(child.signal, null, `${child.stderr}\nended by ${child.signal}`)
  return child
}

const large = 'const large = adead.Tensor.zeros("f32", [1200, 1200])\n'

test('a rejection that nobody handles ends the process as any does', () => {
  const { status, stderr } = script('adead.Tensor.zeros("f32", [2]).matmulAsync(adead.Tensor.zeros("f32", [3]))')
  assert.equal(status, 1)
  assert.match(stderr, /AdeadError: dot: |AdeadError: matmul: /)
  assert.match(stderr, /code: 'shape_mismatch'/)
})

test('an exception in a handler is the process’s', () => {
  const { status, stderr } = script(
    `process.on('uncaughtException', (error) => { console.error('caught', error.message); process.exitCode = 7 })
     const x = adead.Tensor.zeros("f32", [2])
     x.reluAsync().then(() => { throw new Error('in a then') })
     x.matmulAsync(adead.Tensor.zeros("f32", [3])).catch((error) => { throw new Error('in a catch: ' + error.code) })
     setTimeout(() => x.reluAsync().then((y) => console.error('still computes', y.length)), 50)`,
  )
  assert.equal(status, 7)
  assert.match(stderr, /caught in a then/)
  assert.match(stderr, /caught in a catch: shape_mismatch/)
  assert.match(stderr, /still computes 2/)
})

test('a process ends with objects alive and work under way', () => {
  const objects = `${large}
    const context = new adead.Context()
    const kept = [context, context.buffer({ nbytes: 1000 }), context.stream(), context.event(), large.view(), context.pack(large),
      adead.Program.assemble('.adead 1\\ninput a f32[2]\\noutput b f32[2]\\nb = relu a\\nhalt'),
      new adead.DeterministicAllocator(), new adead.ArenaAllocator().alloc(10, 1)]
    globalThis.kept = kept
    for (let i = 0; i < 40; i++) { large.matmulAsync(large); context.matmulAsync(large, large).then(() => 0) }\n`
  for (const end of ['process.exit(3)', 'setTimeout(() => process.exit(3), 30)', 'process.reallyExit(3)']) {
    const { status, stderr } = script(objects + end)
    assert.equal(status, 3, `${end}: ${stderr}`)
  }
  const { status, stderr } = script(`${objects}setTimeout(() => { throw new Error('mine') }, 10)`)
  assert.equal(status, 1)
  assert.match(stderr, /mine/)
})

test('a process waits for its promises', () => {
  const { status, stdout } = script(`${large}large.matmulAsync(large).then((y) => console.log(y.length))`)
  assert.equal(status, 0)
  assert.equal(stdout, '1440000\n')
})

/** Runs a script in a worker and returns what it posts first. */
function worker(text, data) {
  const code = `const { parentPort, workerData } = require('node:worker_threads')
    const adead = require(${JSON.stringify(index)});\n${text}`
  return new Promise((resolve, reject) => {
    const it = new Worker(code, { eval: true, workerData: data })
    it.once('message', (message) => it.terminate().then(() => resolve(message)))
    it.once('error', reject)
  })
}

const compute = `(async () => {
  const x = new adead.Tensor(workerData, [8, 8])
  const y = await new adead.Context('cpu', { threads: 2 }).matmulAsync(x, x)
  let code
  try { x.matmul(new adead.Tensor(workerData, [64])) } catch (error) { code = error instanceof adead.AdeadError && error.code }
  parentPort.postMessage([y.softmax().toArray(), code])
})()`

test('workers compute the same, one after the other and together', async () => {
  const data = Float32Array.from({ length: 64 }, (_, i) => ((i * 37) % 101) / 50)
  const x = new Tensor(data, [8, 8])
  const expected = x.matmul(x).softmax().toArray()
  for (let round = 0; round < 3; round++) {
    const results = await Promise.all(Array.from({ length: 4 }, () => worker(compute, data)))
    for (const [result, code] of results) {
      assert.deepEqual(result, expected)
      assert.equal(code, 'shape_mismatch')
    }
    assert.deepEqual(x.matmul(x).softmax().toArray(), expected)
  }
})

test('workers end with work under way', async () => {
  const begin = `${large}const context = new adead.Context('cpu', { threads: 2 })
    globalThis.kept = [context.stream(), large.view()]
    for (let i = 0; i < 20; i++) context.matmulAsync(large, large)
    parentPort.postMessage('begun')`
  for (let i = 0; i < 4; i++) assert.equal(await worker(begin), 'begun')
  const crash = worker(`${begin.replace(/parentPort.*/, '')}throw new Error('mine')`)
  await assert.rejects(crash, /mine/)
  assert.equal(f32([-1, 2], [2]).relu().toArray()[1], 2)
})

test('two copies of the package work side by side', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'adead-'))
  try {
    const source = fileURLToPath(new URL('..', import.meta.url))
    const files = readdirSync(source).filter((name) => /\.(js|mjs|node)$/.test(name) || name === 'package.json')
    const copies = ['one', 'other'].map((name) => {
      for (const file of files) cpSync(join(source, file), join(folder, name, file))
      return createRequire(import.meta.url)(join(folder, name, 'index.js'))
    })
    const [one, other] = copies
    assert.notEqual(one.Tensor, other.Tensor)
    const data = Float32Array.from({ length: 4096 }, (_, i) => ((i * 37) % 101) / 50)
    const expected = new Tensor(data, [64, 64]).matmul(new Tensor(data, [64, 64])).toArray()
    const work = copies.flatMap(({ Context: Own, Tensor: Made }) => {
      const x = new Made(data, [64, 64])
      const context = new Own('cpu')
      return Array.from({ length: 20 }, () => context.matmulAsync(x, x))
    })
    for (const result of await Promise.all(work)) assert.deepEqual(result.toArray(), expected)
    // An object of the other copy is an error, not a crash.
    const foreign = new other.Tensor(data, [64, 64])
    throwsIn(one, 'invalid_argument', () => new one.Tensor(data, [64, 64]).matmul(foreign))
    throwsIn(one, 'invalid_argument', () => one.Tensor.prototype.toArray.call(foreign))
    throwsIn(one, 'invalid_argument', () => new one.Context('cpu').run('relu', [foreign]))
    const { relu } = one.Context.prototype
    throwsIn(one, 'invalid_argument', () => relu.call(new other.Context('cpu'), new one.Tensor(data, [4096])))
    const program = one.Program.assemble('.adead 1\ninput a f32[2]\noutput b f32[2]\nb = relu a\nhalt')
    throwsIn(one, 'invalid_argument', () => program.survey(new other.Context('cpu')))
    throwsIn(other, 'shape_mismatch', () => foreign.reshape([5]))
  } finally {
    rmSync(folder, { recursive: true })
  }
})

function throwsIn({ AdeadError }, code, call) {
  assert.throws(call, (error) => {
    assert.ok(error instanceof AdeadError, `${error.stack} is no AdeadError of that copy`)
    assert.equal(error.code, code)
    return true
  })
}

test('a context of another thread count, and objects of none', () => {
  const context = new Context('cpu', { threads: 3 })
  throws('invalid_argument', /not a Context/, () => Context.prototype.relu.call(Object.create(Context.prototype), f32([1], [1])))
  assert.equal(context.relu(f32([1], [1])).length, 1)
})
