// Fused pipelines: the bits of the same operations called one after another.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compiled, Context, Pipeline, Tensor, Value } from '../index.mjs'
import { camel } from './expected.mjs'
import { f32, operations, rejects, same, throws } from './helpers.mjs'

const context = new Context('cpu', { threads: 2 })

/** Numbers that look random and are the same each time. */
function random(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
const next = random(1)
const floats = (...dims) => {
  const count = dims.reduce((a, b) => a * b, 1)
  return f32(
    Array.from({ length: count }, () => 4 * next() - 2),
    dims,
  )
}

test('a chain in both forms', async () => {
  const [x, w1, b1, w2] = [floats(3, 40), floats(40, 50), floats(50), floats(50, 7)]
  const expected = x.matmul(w1).add(b1).relu().matmul(w2)
  const chain = () => context.pipeline().matmul(x, w1).bias(b1).relu().matmul(w2)
  same(chain().execute(), expected)
  same(await chain().executeAsync(), expected)
  const begun = context.pipeline().input([3, 40]).matmul(w1).bias(b1).relu().matmul(w2)
  for (const mlp of [begun.compile(), await begun.compileAsync()]) {
    assert.ok(begun instanceof Pipeline && mlp instanceof Compiled)
    same(mlp.run(x), expected)
    same(mlp.run([x]), expected)
    same(await mlp.runAsync(x), expected)
    assert.deepEqual(mlp.inputs, [{ dtype: 'f32', dims: [3, 40] }])
    assert.deepEqual(mlp.outputs, [{ dtype: 'f32', dims: [3, 7] }])
    assert.deepEqual([mlp.operations, mlp.steps, mlp.device.id], [4, 2, 'cpu'])
    assert.ok(mlp.memory >= 3 * 50 * 4)
    assert.match(String(mlp), /^4 operations in 2 steps on cpu: .*\n +0 +matmul\+add\+relu\(input 0: f32\[3, 40\]/)
    assert.match(mlp.toDot(), /^digraph pipeline \{[^]*"step 0" -> "step 1";/)
  }
})

test('every operation is a method', () => {
  const [a, b, row] = [floats(4, 4), floats(4, 4), floats(4)]
  const blocks = Tensor.fromBytes(Uint8Array.from({ length: 3 * 34 }, (_, i) => (i * 37) % 101), 'u8', [3, 34])
  const cases = {
    matmul: [[b], { transB: true, alpha: 0.5, bias: row, activation: 'relu' }],
    dot: [[row], {}],
    ...Object.fromEntries(['add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'pow'].map((name) => [name, [[b], {}]])),
    ...Object.fromEntries(
      ['equal', 'notEqual', 'less', 'lessEqual', 'greater', 'greaterEqual'].map((name) => [name, [[b], {}]]),
    ),
    where: [[a, b], {}],
    scale: [[], { alpha: 3 }],
    clamp: [[], { min: -0.5, max: 0.75 }],
    gelu: [[], { form: 'tanh' }],
    softmax: [[], { axis: 0 }],
    ...Object.fromEntries(['sum', 'mean', 'max', 'argmax', 'argmin'].map((name) => [name, [[], { axis: 1, keepdim: true }]])),
    ...Object.fromEntries(['min', 'prod'].map((name) => [name, [[], { axes: [0, 1] }]])),
    layernorm: [[], { gamma: row, beta: row, eps: 0.5 }],
    rmsnorm: [[], { gamma: row, residual: b }],
    rope: [[floats(4, 2), floats(4, 2)], { interleaved: true }],
    cumsum: [[], { axis: 0 }],
    topk: [[], { k: 3 }],
    argtopk: [[], { k: 2, axis: 0 }],
    attention: [[a, b], { causal: true, mask: b }],
    ffn: [[a, b], { b2: row, activation: 'silu' }],
    embedding: [[new Tensor(Int32Array.of(1, 0, 3), [3])], {}],
    transpose: [[], { perm: [1, 0] }],
    slice: [[], { start: [1], step: [1, 2] }],
    pad: [[floats(1)], { before: [1], after: [0, 2] }],
    gather: [[new Tensor(Int32Array.of(1, 0, 3, 2), [1, 4])], { axis: 0 }],
    concat: [[[a, b]], { axis: 1 }],
    cast: [[], { dtype: 'bf16' }],
    quantizedMatmul: [[blocks], { format: 'q8_0' }],
    dequantize: [[], { format: 'q8_0' }],
  }
  const names = Object.getOwnPropertyNames(Context.prototype).filter((name) => `${name}Async` in Tensor.prototype)
  assert.deepEqual(names, operations.map(camel))
  for (const name of names) {
    const [operands, options] = cases[name] ?? [[], {}]
    const x = { dot: row, where: a.less(b), quantizedMatmul: floats(2, 32), dequantize: blocks }[name] ?? a
    const expected = x[name](...operands, options)
    same(context.pipeline().constant(x)[name](...operands, options).execute(), expected)
    const all = name === 'concat' ? [[x, ...operands[0]]] : [x, ...operands]
    same(context.pipeline()[name](...all, options).execute(), expected)
    // Operands and options may be values, too.
    const pipeline = context.pipeline()
    const value = (tensor) => (tensor instanceof Tensor ? pipeline.constant(tensor).value : tensor)
    const operandValues = operands.map((it) => (Array.isArray(it) ? it.map(value) : value(it)))
    const optionValues = Object.fromEntries(Object.entries(options).map(([key, it]) => [key, value(it)]))
    same(pipeline.constant(x)[name](...operandValues, optionValues).execute(), expected)
  }
  same(context.pipeline().bias(a, row).execute(), a.add(row))
})

test('random chains give the bits of single calls', () => {
  const below = (n) => Math.floor(next() * n)
  const unary = ['neg', 'abs', 'exp', 'sqrt', 'relu', 'sigmoid', 'tanh', 'gelu', 'silu', 'softmax']
  let fused = 0
  for (let round = 0; round < 60; round++) {
    const x = floats(1 + below(60), 1 + below(60))
    const pipeline = context.pipeline().input(x.dims)
    let y = x
    for (let i = 0; i < 1 + below(12); i++) {
      const name = ['matmul', 'bias', 'add', 'sub', 'mul', 'div', 'scale', ...unary][below(17)]
      let operands = []
      if (name === 'matmul') operands = [floats(y.dims[1], 1 + below(80))]
      else if (name === 'scale') operands = [{ alpha: 0.5 }]
      else if (!unary.includes(name)) operands = [floats(...[y.dims, y.dims.slice(1), [1]][below(3)])]
      y = y[name === 'bias' ? 'add' : name](...operands)
      assert.equal(pipeline[name](...operands), pipeline)
    }
    const compiled = pipeline.compile()
    fused += compiled.operations - compiled.steps
    for (let i = 0; i < 2; i++) same(compiled.run(x), y)
  }
  assert.ok(fused > 100, `only ${fused} operations were fused`)
})

test('a transformer block', async () => {
  const [s, heads, d] = [10, 3, 8]
  const n = heads * d
  const [x, gamma, beta, bias] = [floats(s, n), floats(n), floats(n), floats(n)]
  const [wq, wk, wv, wo] = [floats(n, n), floats(n, n), floats(n, n), floats(n, n)]
  const [up, wide, down] = [floats(n, 4 * n), floats(4 * n), floats(4 * n, n)]
  const [perm, norm] = [[1, 0, 2], { gamma, beta }]

  const h = x.layernorm(norm)
  const parts = [wq, wk, wv].map((w) => h.matmul(w).add(bias).reshape([s, heads, d]).transpose({ perm }))
  const attended = parts[0].attention(parts[1], parts[2], { causal: true }).transpose({ perm }).reshape([s, n])
  const a = attended.matmul(wo).add(x).add(bias)
  const y = a.layernorm(norm).matmul(up).add(wide).gelu().matmul(down).add(bias).add(a)

  const block = context.pipeline().input([s, n])
  const begin = block.value
  const normed = block.layernorm(norm).value
  const [q, k, v] = [wq, wk, wv].map(
    (w) => block.switch(normed).matmul(w).bias(bias).reshape([s, heads, d]).transpose({ perm }).value,
  )
  block.switch(q).attention(k, v, { causal: true }).transpose({ perm }).reshape([s, n]).matmul(wo).add(begin).bias(bias)
  const residual = block.value
  assert.ok(residual instanceof Value)
  assert.deepEqual([residual.dims, residual.dtype, String(residual)], [[s, n], 'f32', `Value(f32[${s}, ${n}])`])
  assert.equal(String(block), `Pipeline(f32[${s}, ${n}])`)
  block.output().layernorm(norm).matmul(up).bias(wide).gelu().matmul(down).bias(bias).add(residual).output()
  const compiled = await block.compileAsync()
  assert.equal(compiled.operations, 22)
  assert.ok(compiled.steps < 16)
  for (const results of [compiled.run(x), await compiled.runAsync([x])]) {
    assert.equal(results.length, 2)
    same(results[0], a)
    same(results[1], y)
  }
})

test('what is executed is compiled once', () => {
  const own = new Context('cpu')
  assert.deepEqual(own.pipelineCache(), { entries: 0, most: 32, hits: 0, misses: 0 })
  for (let i = 0; i < 3; i++) own.pipeline().add(f32([i], [1]), f32([2], [1])).relu().execute()
  assert.deepEqual(own.pipelineCache(), { entries: 1, most: 32, hits: 2, misses: 1 })
  own.trim()
  assert.equal(own.pipelineCache().entries, 0)
})

test('a pipeline may go on', () => {
  const pipeline = context.pipeline().relu(f32([-1, 2], [2]))
  const first = pipeline.compile()
  assert.deepEqual([...pipeline.execute().toArray()], [0, 2])
  assert.deepEqual([...pipeline.scale({ alpha: 3 }).execute().toArray()], [0, 6])
  assert.deepEqual([...first.run().toArray()], [0, 2])
  // What is named comes out, whatever the value is.
  pipeline.output().add(pipeline.value)
  assert.deepEqual([...pipeline.execute().toArray()], [0, 6])
  assert.deepEqual(
    pipeline.output().execute().map((y) => [...y.toArray()]),
    [
      [0, 6],
      [0, 12],
    ],
  )
})

test('what is refused changes nothing', async () => {
  const strange = context.pipeline().input([3]).value
  const cases = [
    ['shape_mismatch', /matmul/, (p) => p.matmul(Tensor.zeros('f32', [4, 4]))],
    ['dtype_mismatch', /add/, (p) => p.add(Tensor.zeros('i32', [3]))],
    ['invalid_argument', /axis/, (p) => p.softmax({ axis: 7 })],
    ['invalid_argument', /add: operand 1 \(b\) is missing/, (p) => p.add()],
    ['invalid_argument', /no attribute 'axis'/, (p) => p.relu({ axis: 1 })],
    ['shape_mismatch', /6 elements against 5/, (p) => p.reshape([5])],
    ['invalid_argument', /-1/, (p) => p.input([2, -1])],
    ['invalid_argument', /f128/, (p) => p.input([2], 'f128')],
    ['invalid_argument', /input, a constant or a state/, (p) => p.output()],
    ['invalid_argument', /an output must be computed/, (p) => p.execute()],
    ['invalid_argument', /another pipeline/, (p) => p.add(strange)],
    ['invalid_argument', /another pipeline/, (p) => p.switch(strange)],
    ['invalid_argument', /expected a Value/, (p) => p.switch(Tensor.zeros('f32', [2]))],
    ['invalid_argument', /expected a Tensor/, (p) => p.constant(strange)],
    ['invalid_argument', /operand 1, b, must be a Tensor or a Value, not a number/, (p) => p.add(2)],
    ['invalid_argument', /gamma, must be a Tensor or a Value, not a string/, (p) => p.layernorm({ gamma: 'x' })],
    // It has a value: the operand would be one too many.
    ['invalid_argument', /relu: expected 0 operands and options here, got 1 arguments/, (p) => p.relu(f32([1], [1]))],
    ['invalid_argument', /matmul: expected 1 operands and options here/, (p) => p.matmul(p.value, p.value)],
    ['invalid_argument', /options must be an object/, (p) => p.relu(5)],
    ['invalid_argument', /expected a Pipeline/, (p) => Pipeline.prototype.relu.call(context)],
  ]
  for (const [code, text, wrong] of cases) {
    const pipeline = context.pipeline().input([2, 3])
    const before = pipeline.value
    throws(code, text, () => wrong(pipeline))
    assert.equal(String(pipeline), 'Pipeline(f32[2, 3])')
    const compiled = pipeline.add(before).compile()
    assert.match(String(compiled), /^1 operations in 1 steps on cpu: 1 inputs, 0 constants, 1 outputs/)
    same(compiled.run(Tensor.zeros('f32', [2, 3])), Tensor.zeros('f32', [2, 3]))
  }
  const empty = context.pipeline()
  assert.equal(String(empty), 'Pipeline()')
  throws('invalid_argument', /no value yet/, () => empty.value)
  throws('invalid_argument', /no value yet/, () => empty.output())
  throws('invalid_argument', /empty/, () => empty.execute())
  await rejects('invalid_argument', /empty/, empty.compileAsync())
  await rejects('invalid_argument', /1 inputs/, context.pipeline().input([1]).relu().executeAsync())
})

test('what a run is given must fit', async () => {
  const compiled = context.pipeline().input([2, 3]).relu().compile()
  for (const [code, inputs] of [
    ['invalid_argument', undefined],
    ['invalid_argument', []],
    ['invalid_argument', 5],
    ['invalid_argument', [null]],
    ['shape_mismatch', Tensor.zeros('f32', [3, 2])],
    ['dtype_mismatch', [Tensor.zeros('f16', [2, 3])]],
  ]) {
    throws(code, /./, () => compiled.run(inputs))
    await rejects(code, /./, compiled.runAsync(inputs))
  }
  same(compiled.run(Tensor.zeros('f32', [2, 3])), Tensor.zeros('f32', [2, 3]))
  await assert.rejects(compiled.runAsync([], { signal: AbortSignal.abort() }), { name: 'AbortError' })
  await assert.rejects(context.pipeline().relu(floats(2)).executeAsync({ signal: AbortSignal.abort() }), {
    name: 'AbortError',
  })
})

test('gradients are values of the pipeline', () => {
  const p = context.pipeline().input([3])
  const x = p.value
  const still = p.detach().value
  const loss = p.switch(x).mul(still).add(x).sum({ axis: 'all' }).value
  const [slope] = p.gradients([x])
  assert.deepEqual([slope.dims, p.value.dims], [[3], loss.dims])
  const found = p.switch(slope).compile().run(new Tensor(Float32Array.of(1, -2, 0.5), [3]))
  same(found, new Tensor(Float32Array.of(2, -1, 1.5), [3]))
  throws('shape_mismatch', /it must have one element/, () => p.switch(x).gradients([x]))
  throws('invalid_argument', /another pipeline/, () => context.pipeline().input([]).gradients([x]))
  throws('invalid_argument', /./, () => p.gradients([5]))
})

test('no gradient passes through what is recorded without', () => {
  const p = context.pipeline().input([2])
  const x = p.value
  const weights = p.noGrad(() => p.noGrad(() => p.scale({ alpha: 2 }).value))
  assert.equal(p.setGradEnabled(true), true)
  const [slope] = p.switch(weights).mul(x).sum({ axis: 'all' }).gradients([x])
  const found = p.switch(slope).scale({ alpha: 1 }).compile().run(new Tensor(Float32Array.of(1, 3), [2]))
  same(found, new Tensor(Float32Array.of(2, 6), [2]))
  assert.throws(() => p.noGrad(() => { throw new RangeError('mine') }), RangeError)
  assert.equal(p.setGradEnabled(true), true)
})

test('hooks replace gradients', () => {
  const p = context.pipeline().input([2])
  const x = p.value
  const seen = []
  p.scale({ alpha: 4 }).hook((gradient) => {
    seen.push(gradient.dims)
    return p.scale({ alpha: 0.5 }).value
  })
  const loss = p.hook(() => {}).sum({ axis: 'all' }).value
  const [slope] = p.gradients([x])
  assert.deepEqual([seen, p.value.dims], [[[2]], loss.dims])
  const given = new Tensor(Float32Array.of(1, 3), [2])
  same(p.switch(slope).scale({ alpha: 1 }).compile().run(given), new Tensor(Float32Array.of(2, 2), [2]))
  let q = p
  for (const [hook, text] of [
    [() => { throw new RangeError('mine') }, /mine/],
    [() => 7, /Value/],
    [() => q.sum({ axis: 'all' }).value, /hook 0 returned/],
    [() => q.gradients([q.value])[0], /a hook can't record gradients/],
  ]) {
    q = context.pipeline().input([2])
    const x = q.value
    q.scale({ alpha: 4 }).hook(hook).sum({ axis: 'all' })
    assert.throws(() => q.gradients([x]), text)
    // The failed call left the pipeline as it was.
    same(q.compile().run(given), new Tensor(Float32Array.of(16), []))
  }
})

test('promises share a compiled pipeline', async () => {
  const w = floats(70, 70)
  const compiled = context.pipeline().input([3, 70]).matmul(w).relu().matmul(w).compile()
  const inputs = Array.from({ length: 40 }, () => floats(3, 70))
  const results = await Promise.all(inputs.map((x) => compiled.runAsync(x)))
  results.forEach((y, i) => same(y, inputs[i].matmul(w).relu().matmul(w)))
})

test('JavaScript may run while an operation is recorded', () => {
  const pipeline = context.pipeline().input([1, 2])
  const options = {
    get axis() {
      pipeline.relu()
      return -1
    },
  }
  assert.equal(pipeline.softmax(options).compile().operations, 1)
})
