// batchEmbed: order, progress, bounded memory, errors of either side, loops that end early.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SentenceEncoder } from '../index.mjs'
import { bits, lines, throws, tiny } from './helpers.mjs'

const encoder = SentenceEncoder.open(tiny, { device: 'cpu', threads: 2 })
const some = lines('tiny.txt')
/** The sentence of a number: those of the file again and again, each time with other ends. */
const sentence = (i) => `${some[i % some.length]} ${Math.floor(i / some.length)}`
const list = (count) => Array.from({ length: count }, (_, i) => sentence(i))

/** So many sentences as they come from a socket, and what became of their source. */
async function* source(count, seen = {}) {
  seen.taken = 0
  try {
    for (; seen.taken < count; seen.taken++) {
      if (seen.taken % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
      yield sentence(seen.taken)
    }
  } finally {
    seen.ended = true
  }
}

test('a stream gives the rows of its sentences in their order', async () => {
  for (const count of [0, 1, 63, 64, 65, 500]) {
    const expected = encoder.encode(list(count))
    for (const sentences of [list(count), new Set(list(count)).values(), source(count)]) {
      const [values, truncated, computed] = [[], [], []]
      for await (const part of encoder.batchEmbed(sentences, { batch: 7, progress: (count) => computed.push(count) })) {
        assert.equal(part.first * part.width, values.length)
        values.push(...part.values)
        truncated.push(...part.truncated.map((row) => part.first + row))
      }
      assert.deepEqual(bits(Float32Array.from(values)), bits(expected.values))
      assert.deepEqual(truncated, expected.truncated)
      assert.ok(computed.every((count, i) => i === 0 || count > computed[i - 1]))
      assert.equal(computed.at(-1) ?? 0, count)
    }
  }
})

test('of an endless stream only some are taken ahead, and it ends with the loop', async () => {
  const seen = {}
  let given = 0
  for await (const part of encoder.batchEmbed(source(Infinity, seen))) {
    given += part.rows
    assert.ok(part.rows <= 1024)
    assert.ok(seen.taken - given <= 2 * 1024, `${seen.taken - given} are ahead`)
    if (given > 5000) break
  }
  assert.ok(seen.ended)
  // One that is left before it began takes nothing.
  const unused = {}
  await encoder.batchEmbed(source(10, unused)).return()
  assert.deepEqual(unused, {})
})

test('an error of the source comes behind the rows before it', async () => {
  async function* failing() {
    yield* source(64)
    throw new RangeError('the line is cut')
  }
  let given = 0
  const loop = async () => {
    for await (const part of encoder.batchEmbed(failing())) given += part.rows
  }
  await assert.rejects(loop(), new RangeError('the line is cut'))
  assert.equal(given, 64)
})

test('a sentence that is none, and an error of whoever takes rows, end the source', async () => {
  const failing = async (wrong) => {
    const seen = {}
    async function* sentences() {
      seen.begun = true
      try {
        yield* list(70)
        yield wrong
        yield* list(5)
      } finally {
        seen.ended = true
      }
    }
    const parts = encoder.batchEmbed(sentences())
    let error
    try {
      for await (const { first } of parts) if (first === 64) throw new Error('rows of the second part')
    } catch (caught) {
      error = caught
    }
    assert.deepEqual(seen, { begun: true, ended: true })
    return error.message
  }
  assert.match(await failing(3), /sentence 70 must be a string; it is of the type number/)
  assert.match(await failing('\ud800'), /sentence 70 has an unpaired surrogate/)
  assert.match(await failing('a'), /rows of the second part/)
})

test('an error of progress ends it', async () => {
  const seen = {}
  const fail = () => {
    throw new Error('no screen')
  }
  const parts = encoder.batchEmbed(source(500, seen), { progress: fail })
  await assert.rejects(parts.next(), /no screen/)
  assert.ok(seen.ended)
  assert.deepEqual(await parts.next(), { done: true, value: undefined })
})

test('arguments that are none are refused at once', () => {
  throws('invalid_argument', /an iterable of strings; they are of the type string/, () => encoder.batchEmbed('text'))
  throws('invalid_argument', /an iterable of strings; they are of the type number/, () => encoder.batchEmbed(3))
  throws('invalid_argument', /an iterable of strings; they are null/, () => encoder.batchEmbed(null))
  throws('invalid_argument', /at least 1 sentence, not 0/, () => encoder.batchEmbed([], { batch: 0 }))
  throws('invalid_argument', /expected true or false/, () => encoder.batchEmbed([], { padded: 'yes' }))
  throws('invalid_argument', /progress must be a function/, () => encoder.batchEmbed([], { progress: 3 }))
})

test('several streams at the same time', async () => {
  const expected = bits(encoder.encode(list(300)).values)
  const one = async () => {
    const values = []
    for await (const part of encoder.batchEmbed(source(300))) values.push(...part.values)
    return bits(Float32Array.from(values))
  }
  for (const found of await Promise.all([one(), one(), one()])) assert.deepEqual(found, expected)
})
