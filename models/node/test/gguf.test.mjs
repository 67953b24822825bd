// Quantised blocks have the oracle's bytes, and models are converted.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { convert, convertAsync, quantize, quantizeAsync, TextGenerator } from '../index.mjs'
import { rejects, throws } from './helpers.mjs'

const shared = (name) => fileURLToPath(new URL(`../../../tests/text/${name}`, import.meta.url))

test("blocks are the oracle's", async () => {
  const lines = readFileSync(shared('blocks.txt'), 'utf8').trim().split('\n')
  assert.ok(lines.length > 100)
  for (const line of lines) {
    const [format, values, blocks] = line.split(' ')
    const floats = new Float32Array(Uint8Array.from(Buffer.from(values, 'hex')).buffer)
    assert.equal(Buffer.from(quantize(floats, format)).toString('hex'), blocks)
  }
  const some = Float32Array.from({ length: 64 }, (_, i) => i)
  const later = quantizeAsync(some, 'q4_0')
  const now = quantize(some, 'q4_0')
  some.fill(0)
  assert.deepEqual(await later, now)
  assert.deepEqual(quantize(new Float32Array(0), 'q8_0'), new Uint8Array(0))
  throws('shape_mismatch', /33 values; q8_0 takes a multiple of 32/, () => quantize(new Float32Array(33), 'q8_0'))
  throws('invalid_argument', /format is 'q3_k'; it must be one of q8_0/, () => quantize(some, 'q3_k'))
  throws('invalid_argument', /values must be a Float32Array; they are an array/, () => quantize([1], 'q8_0'))
  throws('invalid_argument', /the format must be a string/, () => quantize(some, undefined))
  some[40] = Infinity
  await rejects('invalid_argument', /value 40 is inf/, quantizeAsync(some, 'q8_0'))
})

test('a folder and a file become a file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'adead-convert-'))
  const [first, second] = ['first.gguf', 'second.gguf'].map((name) => join(folder, name))
  try {
    assert.deepEqual(convert(shared('llama-hf'), first), [])
    assert.equal(TextGenerator.open(first).contextLength, 256)
    // Rows of 64 values are no whole blocks of 256: notes say that they become f16.
    assert.ok((await convertAsync(shared('llama-hf'), second, { kind: 'q4_k' })).length > 0)
    convert(first, second, { kind: 'q8_0' })
    const before = readFileSync(second)
    throws('invalid_argument', /name one, such as q8_0/, () => convert(first, second, { kind: null }))
    throws('invalid_argument', /no kind of values 'q3_k'/, () => convert(first, second, { kind: 'q3_k' }))
    throws('invalid_argument', /kind must be a string/, () => convert(first, second, { kind: 3 }))
    throws('invalid_argument', /the file must be a string/, () => convert(first))
    await rejects('io', /nowhere: no such file or folder/, convertAsync(shared('nowhere'), second))
    assert.deepEqual(readFileSync(second), before)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
