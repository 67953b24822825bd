// Gradients of single operations against the oracle's bits (tests/conformance/gradients.txt).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as adead from '../index.mjs'
import { Recorded } from './recorded.mjs'

const text = readFileSync(new URL('../../../tests/conformance/gradients.txt', import.meta.url), 'latin1')
const [header, ...cases] = text.split('\ncase ')
assert.equal(header.trim(), 'format 1 adead-gradients')

/** A case as a pipeline of which only inputs and expectations are the file's: the loss is SUM(y·g). */
function recorded(lines) {
  const of = (word) => lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  const pipeline = new Recorded()
  const say = (word, rest) => assert.ok(pipeline.line(word, rest), `${word} ${rest}`)
  const places = of('in').map((line) => (line === 'none' ? '-' : line))
  const given = places.filter((line) => line !== '-')
  given.forEach((line) => say('in', line))
  const numbers = places.map((line, i) => (line === '-' ? '-' : places.slice(0, i).filter((other) => other !== '-').length))
  say('const', of('g')[0])
  const attributes = of('attr').map((line) => line.replace(' ', '='))
  const n = given.length
  say('do', [of('op')[0], ...numbers, ...attributes].join(' '))
  say('do', `mul ${n + 1} ${n}`)
  say('do', `sum ${n + 2} axis=all`)
  of('by').forEach((line, i) => {
    const [place, ...expected] = line.split(' ')
    say('gradient', `${n + 3} ${numbers[place]}`)
    // A copy, as g itself may be the gradient, and a pipeline gives no constant.
    say('do', `scale ${n + 4 + 2 * i} alpha=1`)
    say('give', `${n + 5 + 2 * i}`)
    say('out', expected.join(' '))
  })
  return pipeline
}

test('gradients have the bits of the oracle', () => {
  const context = new adead.Context('cpu', { threads: 2 })
  assert.ok(cases.length > 150)
  for (const block of cases) {
    const [name, ...lines] = block.split('\n')
    const wrong = recorded(lines).run(adead, context)
    assert.equal(wrong, undefined, `${name}: ${wrong}`)
  }
})
