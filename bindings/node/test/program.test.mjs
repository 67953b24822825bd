// Programs.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Context, Program, Tensor } from '../index.mjs'
import { f32, rejects, same, throws } from './helpers.mjs'

const context = new Context('cpu')
const example = (name) => fileURLToPath(new URL(`../../../examples/programs/${name}`, import.meta.url))
const text = `.adead 1
input  a f32[2,2]
const  w f32[2,2] = 3f800000 40000000 0.5 -1.0
temp   t f32[2,2]
output c f32[2,2]
t = matmul a w trans_b=1
c = relu t
halt
`
const a = f32([1, 0, 0, 1], [2, 2])

test('assembled and run', async () => {
  const program = Program.assemble(text)
  const { length, format, isAgpu, symbols, report } = program
  assert.deepEqual([length, format, isAgpu, symbols, report], [3, 'text', false, [], []])
  assert.match(program.line(1), /c = relu t/)
  assert.equal(program.line(99), null)
  const [input, output] = program.slots
  assert.deepEqual(input, { name: 'a', direction: 'in', bytes: 16, dtype: 'f32', dims: [2, 2], typed: true, required: true })
  assert.deepEqual([output.name, output.direction, output.required], ['c', 'out', false])
  assert.ok(program.validate() >= 32)
  const outcome = program.run(context, { a })
  assert.deepEqual([...outcome.outputs.c.toArray()], [1, 0.5, 2, 0])
  assert.deepEqual(outcome.trace.map(({ name }) => name), ['matmul', 'relu', 'halt'].slice(0, outcome.trace.length))
  assert.ok(outcome.instructions >= 2 && outcome.flops > 0 && outcome.memory > 0 && outcome.seconds >= 0)
  same((await program.runAsync(context, { a }, { parallel: true })).outputs.c, outcome.outputs.c)
  const survey = program.survey(context)
  assert.deepEqual([survey.steps[0].op, survey.steps[0].estimate.device], ['matmul', 'cpu'])
  assert.equal(survey.aloneNs.length, 1)
})

test('every format comes back', async () => {
  const program = Program.assemble(text)
  assert.equal(Program.assemble(program.disassemble()).disassemble(), program.disassemble())
  const file = program.encode('adead')
  assert.equal(Buffer.from(file.subarray(0, 5)).toString('latin1').toLowerCase(), 'adead')
  const decoded = Program.decode(file)
  assert.equal(decoded.format, 'adead')
  assert.equal(decoded.disassemble(), program.disassemble())
  assert.deepEqual(program.encode('text'), new Uint8Array(Buffer.from(program.disassemble())))
  throws('unsupported', /./, () => program.encode('agpu'))
  throws('invalid_argument', /format is 'pdf'/, () => program.encode('pdf'))
  const agpu = Program.load(example('matmul_1024.hex'))
  assert.ok(agpu.isAgpu)
  assert.equal(Program.decode(agpu.encode('agpu')).format, 'agpu')
  assert.equal(Program.decode(agpu.encode('hex')).format, 'hex')
  assert.ok(Program.load(example('hybrid.ahyb')).symbols.length > 0)
  const mlp = context.loadAdead(example('mlp.adead'))
  assert.equal((await context.loadAdeadAsync(example('mlp.adead'))).disassemble(), mlp.disassemble())
  assert.equal((await Program.loadAsync(example('mlp.adead'))).disassemble(), mlp.disassemble())
  await rejects('io', /nothing\.adead/, Program.loadAsync('nothing.adead'))
  const folder = mkdtempSync(join(tmpdir(), 'adead-'))
  try {
    writeFileSync(join(folder, 'program.adead'), file)
    assert.equal(Program.load(join(folder, 'program.adead')).disassemble(), program.disassemble())
  } finally {
    rmSync(folder, { recursive: true })
  }
  assert.equal(Program.decode(readFileSync(example('mlp.asm'))).format, 'text')
})

test('what is wrong', async () => {
  const program = Program.assemble(text)
  throws('invalid_program', /^line 1/, () => Program.assemble('hello'))
  throws('invalid_program', /byte|offset/, () => Program.decode(new Uint8Array([1, 2, 3])))
  throws('io', /nothing\.adead/, () => Program.load('nothing.adead'))
  throws('invalid_argument', /'a'/, () => program.run(context, {}))
  throws('invalid_argument', /./, () => program.run(context, { a, b: a }))
  throws('shape_mismatch', /./, () => program.run(context, { a: f32([1], [1]) }))
  throws('out_of_memory', /limit is 8/, () => program.run(context, { a }, { memoryLimit: 8 }))
  throws('out_of_memory', /limit is 8/, () => program.validate(8))
  throws('invalid_argument', /expected a Tensor/, () => program.run(context, { a: 5 }))
  throws('invalid_argument', /expected a Context/, () => program.run(program, { a }))
  await rejects('invalid_argument', /'a'/, program.runAsync(context, {}))
  await rejects('invalid_argument', /expected a Tensor/, program.runAsync(context, { a: Tensor }))
})
