// The excerpts of the guide (bindings/node/README.md), run one after another. `ci/guide` copies what stands between [guide: NAME]
// and [end] there.

import assert from 'node:assert/strict'
import { Context, Tensor } from 'adead'

const context = new Context('cpu')
const make = (...dims) => new Tensor(Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => (i % 5) - 2), dims)

{
  const [a, b, bias] = [make(2, 3), make(4, 3), make(4)]
  const [x, y, z, gamma, beta] = [make(2, 3, 4), make(2, 1, 4), make(2, 2, 4), make(4), make(4)]
  // [guide: operations]
  context.matmul(a, b, { bias, transB: true, activation: 'relu' })
  x.layernorm({ gamma, beta, eps: 1e-6 })
  x.transpose({ perm: [0, 2, 1] })
  x.concat([y, z], { axis: 1 })
  // [end]
  assert.deepEqual(x.concat([y, z], { axis: 1 }).dims, [2, 6, 4])
}

{
  const [x, w1, b1, w2] = [make(1, 512), make(512, 64), make(64), make(64, 512)]
  // [guide: pipelines]
  const y = context.pipeline().matmul(x, w1).bias(b1).relu().matmul(w2).execute()

  const pipeline = context.pipeline().input([1, 512])
  const begin = pipeline.value // the input, used again below
  const mlp = pipeline.matmul(w1).bias(b1).relu().matmul(w2).add(begin).compile()
  console.log(String(mlp), mlp.run(x), await mlp.runAsync(x)) // the plan, and two results
  // [end]
  assert.deepEqual(mlp.run(x).toArray(), context.add(y, x).toArray())
}

{
  // [guide: nested]
  const m = Tensor.from([[1, 2, 3], [4, 5, 6]]) // f32; bigints are i64, booleans bool
  m.at(-1).toNested() // [4, 5, 6]
  m.item(0, 2) // 3
  m.slice({ start: [0, 1], step: [1, 2] }).toNested() // [[2], [5]]
  // [end]
  assert.deepEqual(m.at(-1).toNested(), [4, 5, 6])
  assert.equal(m.item(0, 2), 3)
  assert.deepEqual(m.slice({ start: [0, 1], step: [1, 2] }).toNested(), [[2], [5]])
}

{
  const x = make(2, 3)
  // [guide: errors]
  try {
    x.matmul(x)
  } catch (error) {
    console.log(error.code, error.status, error.message)
    // shape_mismatch 2 matmul: A is [2, 3] and B is [2, 3]; A's columns (3) must equal B's rows (2)
  }
  // [end]
  assert.throws(() => x.matmul(x), {
    code: 'shape_mismatch',
    status: 2,
    message: "matmul: A is [2, 3] and B is [2, 3]; A's columns (3) must equal B's rows (2)",
  })
}
