// A program that the TypeScript compiler checks in strict mode. ci/node-test compiles and runs it.

import {
  AdeadError,
  type ArrayOf,
  type Compiled,
  Context,
  DeterministicAllocator,
  DataLoader,
  type DType,
  type Explanation,
  GPU,
  Layout,
  type Profile,
  type ProfileRecord,
  Program,
  Tensor,
  type Stage,
  type Value,
  hardware,
  overlap,
  setLogger,
  version,
} from 'adead'
import { GELU, type Layer, Linear, Sequential, type TransformerConfig, Weights } from 'adead/nn'

/** The most likely class of each row. */
async function classify(context: Context, x: Tensor, weights: Tensor, bias: Tensor): Promise<BigInt64Array> {
  const hidden: Tensor = await context.matmulAsync(x, weights, { bias, activation: 'gelu_erf' })
  const probabilities = context.softmax(hidden, { axis: -1 })
  return context.argmax(probabilities, { axis: -1 }).toArray<'i64'>()
}

function elements<D extends DType>(tensor: Tensor): ArrayOf<D> {
  return tensor.toArray<D>()
}

const context = new Context('cpu', { threads: 2 })
const x = new Tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3])
const weights = new Tensor(Float32Array.of(1, 0, 0, 1, 1, 1), [3, 2])
const bias = new Tensor(Float32Array.of(0.5, -0.5), [2])
const halves = new Tensor(Uint16Array.of(0x3c00, 0x4000), [2], 'f16')

classify(context, x, weights, bias).then((classes) => {
  const first: bigint | undefined = classes[0]
  console.log(`adead ${version} on ${hardware().cpu.model}: class ${first}`)
})
const sums: Float32Array = elements<'f32'>(halves.cast({ dtype: 'f32' }).sum({ axis: 0, keepdim: true }))
const why: Explanation = context.explain('matmul', [x, weights, null, bias], { activation: 'relu' })
const program = Program.assemble('.adead 1\ninput a f32[2]\noutput b f32[2]\nb = relu a\nhalt')
const outcome = program.run(context, { a: new Tensor(Float32Array.of(-1, 1), [2]) }, { parallel: true })
const tiled: Float32Array = Layout.tiled(2, 3, 2).apply(x.toArray())
const offset: number = new DeterministicAllocator(64, 16).alloc(100)
console.log(sums[0], why.device, outcome.outputs.b?.toArray(), tiled.length, offset)

const profile: Profile = context.profile({ records: 10 })
context.relu(x)
const first: ProfileRecord | undefined = profile.finish().records[0]
console.log(first?.activity === 'operation', first?.work?.endNs, first?.operands)
setLogger((level, target, message) => console.log(level.length, target.length, message.length), { level: 'error' })
setLogger(null)

const pipeline = context.pipeline().input([2, 3])
const begin: Value = pipeline.value
const mlp: Compiled = pipeline.matmul(weights, { bias, activation: 'relu' }).matmul(weights, { transB: true }).add(begin).compile()
const once: Tensor = context.pipeline().matmul(x, weights, { bias }).softmax({ axis: -1 }).concat([bias.reshape([1, 2])]).execute()
const [several] = context.pipeline().relu(x).output().scale({ alpha: 2 }).output().execute<Tensor[]>()
console.log(once.dims, several?.dims)
mlp.runAsync(x).then((y: Tensor) => console.log(`${mlp.steps} of ${mlp.operations}: ${y.dims} ${mlp.inputs[0]?.dtype}`))

try {
  new GPU('no such GPU').buffer({ nbytes: 64 }).write(0, Float32Array.of(1))
} catch (error) {
  if (!(error instanceof AdeadError)) throw error
  const code: 'invalid_argument' | 'backend_unavailable' = error.code as 'invalid_argument' | 'backend_unavailable'
  console.log(code, error.status)
}

/** Calls that the compiler refuses. */
export function refused(): void {
  // @ts-expect-error: an unknown operation
  context.run('convolve', [x])
  // @ts-expect-error: a pipeline's value is not a tensor
  context.relu(begin)
  // @ts-expect-error: softmax does not have this attribute
  context.softmax(x, { keepdim: true })
  // @ts-expect-error: a Uint16Array may be f16 or bf16
  new Tensor(new Uint16Array(2), [2])
}

/** Doubles each batch, and overlaps copies with the work. */
async function doubled(batches: Iterable<Float32Array>): Promise<number> {
  const work = (stage: Stage) => {
    const y = stage.buffer(stage.input.dims)
    stage.stream.run('add', [stage.input, stage.input], y)
    return y
  }
  let sum = 0
  for await (const result of overlap(new DataLoader(batches, { ahead: 2 }), work, { depth: 2, context })) {
    const values: Float32Array = result
    sum += values[0] ?? 0
  }
  return sum
}
doubled([Float32Array.of(1), Float32Array.of(2)]).then((sum) => console.log(`twice the batches: ${sum}`))

const layers: Layer[] = [new Linear(weights.transpose(), bias, context), new GELU('tanh', context)]
const config: TransformerConfig = { width: 4, heads: 2, hidden: 8, activation: 'relu' }
const net: Layer = new Sequential(...layers)
net.forwardAsync(x).then((y: Tensor) => console.log(`layers: ${y.dims} ${net.forward(x).dtype} ${Object.keys(config).length}`))
try {
  new Weights('no such file')
} catch (error) {
  if (error instanceof AdeadError) console.log(error.code)
}
