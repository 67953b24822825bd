// Reads the conformance cases (tests/conformance/FORMAT.md) and runs them through the public API.
//
//   node test/conformance.mjs [--device NAME] [--list] [PREFIX…]

import { readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { attempt, camel, check, operand } from './expected.mjs'
import { Recorded } from './recorded.mjs'

const CASES = fileURLToPath(new URL('../../../tests/conformance/cases', import.meta.url))

/** Returns every case of every file, in the order of names. */
export function cases() {
  const all = []
  for (const file of readdirSync(CASES).filter((name) => name.endsWith('.txt')).sort()) parse(file, all)
  return all
}

function parse(file, all) {
  const lines = readFileSync(join(CASES, file), 'latin1').split('\n')
  let open
  let begun = false
  lines.forEach((line, i) => {
    if (line === '' || line.startsWith('#')) return
    const fault = () => new Error(`${file}:${i + 1}: '${line}' makes no sense here`)
    if (!begun) {
      if (line !== 'format 1 adead-contract-2') throw fault()
      begun = true
      return
    }
    const space = line.indexOf(' ')
    const word = space < 0 ? line : line.slice(0, space)
    const rest = space < 0 ? '' : line.slice(space + 1)
    if (word === 'case' && !open) {
      if (!rest.startsWith(`${basename(file, '.txt')}/`)) throw fault()
      open = { id: rest, op: '', attributes: {}, inputs: [], expected: '', requires: [] }
    } else if (!open) throw fault()
    else if (word === 'op') {
      open.op = rest
      if (rest === 'pipeline') open.pipeline = new Recorded()
    } else if (open.pipeline && word !== 'requires' && word !== 'end') {
      if (!open.pipeline.line(word, rest)) throw fault()
    } else if (word === 'attr') {
      const [name, value] = rest.split(' ')
      open.attributes[camel(name)] = value
    } else if (word === 'in') open.inputs.push(rest)
    else if (word === 'out' || word === 'error') open.expected = line
    else if (word === 'requires') open.requires.push(rest)
    else if (word === 'end') {
      all.push(open)
      open = undefined
    } else throw fault()
  })
  if (open) throw new Error(`${file} ends inside a case`)
}

/** Runs a case. Returns undefined if the bits are the expected ones, else what is wrong. */
export function run(adead, context, { op, attributes, inputs, expected, pipeline }) {
  try {
    if (pipeline) return pipeline.run(adead, context)
    const operands = inputs.map((input) => operand(adead.Tensor, input))
    return check([expected], attempt(adead, () => context.run(op, operands, attributes)))
  } catch (error) {
    return `not an AdeadError: ${error.stack}`
  }
}

async function main(words) {
  const prefixes = []
  let [device, list] = ['cpu', false]
  while (words.length) {
    const word = words.shift()
    if (word === '--list') list = true
    else if (word === '--device') device = words.shift()
    else prefixes.push(word)
  }
  const all = cases().filter(({ id }) => !prefixes.length || prefixes.some((prefix) => id.startsWith(prefix)))
  if (!all.length) throw new Error(`no case begins with ${prefixes.join(' or ')}`)
  if (list) {
    console.log(all.map(({ id }) => id).join('\n'))
    return
  }
  const { default: adead } = await import('../index.mjs')
  const context = new adead.Context(device)
  let failed = 0
  for (const one of all) {
    const fault = run(adead, context, one)
    if (fault === undefined) continue
    failed += 1
    console.log(`FAIL ${one.id}: ${fault}`)
  }
  console.log(`${all.length} ran, ${failed} failed, 0 skipped`)
  process.exitCode = failed ? 1 : 0
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(process.argv.slice(2))
