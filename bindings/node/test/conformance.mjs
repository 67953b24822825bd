// The conformance cases (tests/conformance/FORMAT.md), read and run through the public API.
//
//   node test/conformance.mjs [--device NAME] [--list] [PREFIX…]

import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { endianness } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { data, sizes } from './generators.mjs'

const CASES = fileURLToPath(new URL('../../../tests/conformance/cases', import.meta.url))

/** Every case of every file, in name order. */
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
      if (line !== 'format 1 adead-contract-1') throw fault()
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
    else if (word === 'op') open.op = rest
    else if (word === 'attr') {
      const [name, value] = rest.split(' ')
      open.attributes[name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())] = value
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

const shape = (text) => (text === '-' ? [] : text.split(',').map(Number))

function operand(Tensor, text) {
  if (text === 'none') return null
  const [dtype, dims, spec] = text.split(' ')
  const shaped = shape(dims)
  const count = shaped.reduce((product, dim) => product * dim, 1)
  return Tensor.fromBytes(data(dtype, count, spec), dtype, shaped)
}

/** A tensor's bytes, little endian. */
function littleEndian(tensor) {
  const bytes = Buffer.from(tensor.toBytes())
  if (endianness() === 'LE') return bytes
  return { 2: () => bytes.swap16(), 4: () => bytes.swap32(), 8: () => bytes.swap64() }[sizes[tensor.dtype]]()
}

/** Elements as fixed-width hex numbers. */
function hex(bytes, size) {
  let text = ''
  for (let at = 0; at < bytes.length; at += size) text += Buffer.from(bytes.subarray(at, at + size)).reverse().toString('hex')
  return text
}

/** Runs a case: undefined if the bits are those expected, else what is wrong. */
export function run({ AdeadError, Tensor }, context, { op, attributes, inputs, expected }) {
  const [kind, first, dims, value] = expected.split(' ')
  let result
  try {
    result = context.run(
      op,
      inputs.map((input) => operand(Tensor, input)),
      attributes,
    )
  } catch (error) {
    if (!(error instanceof AdeadError)) return `not an AdeadError: ${error.stack}`
    if (kind !== 'error') return `expected a result, got ${error.code}: ${error.message}`
    return error.code === first ? undefined : `expected ${first}, got ${error.code}: ${error.message}`
  }
  if (kind === 'error') return `expected ${first}, got ${result}`
  if (result.dtype !== first || String(result.dims) !== String(shape(dims))) return `expected ${first}[${dims}], got ${result}`
  const bytes = littleEndian(result)
  if (value.startsWith('sha256:')) {
    const got = createHash('sha256').update(bytes).digest('hex')
    return `sha256:${got}` === value ? undefined : `expected ${value}, got sha256:${got}`
  }
  const got = `bits:${hex(bytes, sizes[first])}`
  return got === value ? undefined : `expected ${value}, got ${got}`
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
