// Messages of the runtime: a function receives them, or stderr if the environment or adead.toml says so.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Context, Tensor, setLogger } from '../index.mjs'
import { throws } from './helpers.mjs'

const index = fileURLToPath(new URL('../index.js', import.meta.url))

/** Runs a script in a process of its own, with these of adead's settings in its environment and no others. */
function script(text, settings = {}) {
  const { ADEAD_LOG, ADEAD_CONFIG, ...env } = process.env
  const code = `const adead = require(${JSON.stringify(index)});\n${text}`
  return spawnSync(process.execPath, ['-e', code], { encoding: 'utf8', timeout: 120_000, env: { ...env, ...settings } })
}

const open = "new adead.Context('cpu').relu(adead.Tensor.zeros('f32', [1]))"

test('a function gets the messages', async () => {
  const messages = []
  // The event loop delivers messages in order, so that of a threshold is the last.
  const told = async (context) => {
    context.setThreshold('move', 77)
    while (!messages.some(([, , text]) => text.endsWith(' 77 elements'))) await new Promise((done) => setTimeout(done, 1))
    return messages.splice(0).slice(0, -1)
  }
  setLogger((...message) => messages.push(message), { level: 'debug' })
  try {
    const context = new Context('cpu', { threads: 2 })
    const opened = await told(context)
    assert.ok(opened.some(([level, target]) => level === 'debug' && target === 'adead.config'))
    assert.ok(opened.some(([level, target, text]) => level === 'info' && target === 'adead.devices' && text.startsWith('opened cpu: ')))
    context.setThreshold('matmul', 4096)
    assert.deepEqual(await told(context), [['debug', 'adead.dispatch', 'the threshold of matmul is 4096 elements']])
    // Calls send no messages; work on other threads may.
    const x = Tensor.zeros('f32', [8, 8])
    context.matmul(x, x)
    await context.matmulAsync(x, x)
    assert.deepEqual(await told(context), [])
    await Context.openAsync('cpu')
    assert.ok((await told(context)).some(([, , text]) => text.startsWith('opened cpu: ')))
  } finally {
    setLogger(null)
  }
})

test('levels', () => {
  throws('invalid_argument', /a function or null/, () => setLogger('text'))
  throws('invalid_argument', /level is 'loud'; it must be off, error, warn, info, debug or trace/, () =>
    setLogger(() => {}, { level: 'loud' }),
  )
  const { status, stdout, stderr } = script(`
    adead.setLogger((level, target, text) => console.log(level, target))
    ${open}`)
  assert.deepEqual([status, stderr], [0, ''])
  assert.match(stdout, /^info adead.devices$/m)
  assert.doesNotMatch(stdout, /debug/)
})

test('nothing is printed unasked', () => {
  const { status, stdout, stderr } = script(open)
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
})

test('what the environment or adead.toml ask for is printed', () => {
  let { status, stdout, stderr } = script(open, { ADEAD_LOG: 'info' })
  assert.deepEqual([status, stdout], [0, ''])
  assert.match(stderr, /^(adead info devices: .*\n)+$/)
  const folder = mkdtempSync(join(tmpdir(), 'adead-log-'))
  try {
    const file = join(folder, 'adead.toml')
    writeFileSync(file, 'log = "debug"\n')
    assert.match(script(open, { ADEAD_CONFIG: file }).stderr, /^adead debug config: /m)
    assert.equal(script(open, { ADEAD_CONFIG: file, ADEAD_LOG: 'off' }).stderr, '')
    // A function replaces the printing, and null restores it.
    const taken = `adead.setLogger(() => {}); new adead.Context('cpu'); adead.setLogger(null);`
    assert.equal(script(taken, { ADEAD_LOG: 'info' }).stderr, '')
    assert.match(script(taken + open, { ADEAD_LOG: 'info' }).stderr, /^adead info devices: /)
    writeFileSync(file, '# adead\nlog = "loud"\n')
    ;({ status, stderr } = script(open, { ADEAD_CONFIG: file }))
    assert.equal(status, 1)
    const allowed = 'log must be "off", "error", "warn", "info", "debug" or "trace"'
    assert.ok(stderr.includes(`AdeadError: ${file}, line 2: ${allowed}`), stderr)
    ;({ status, stderr } = script(open, { ADEAD_LOG: 'loud' }))
    assert.equal(status, 1)
    assert.ok(stderr.includes(`AdeadError: ADEAD_LOG is 'loud'; ${allowed}`), stderr)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a logger does not keep the process alive, nor does the end of its thread end others', () => {
  const worker = `
    const { Worker } = require('node:worker_threads')
    const code = 'const adead = require(' + JSON.stringify(${JSON.stringify(index)}) + '); adead.setLogger(() => {}); new adead.Context("cpu")'
    new Worker(code, { eval: true }).on('exit', () => { ${open}; adead.setLogger(console.log); ${open} })`
  const { status, stderr } = script(worker)
  assert.deepEqual([status, stderr], [0, ''])
})
