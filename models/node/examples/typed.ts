// A program that the TypeScript compiler checks, strictly: ci/node-test compiles and runs it with a model's folder.

import { AdeadError, type Embeddings, type Generation, SentenceEncoder, type StatusName } from 'adead-models'
import { quantize, TextGenerator, type TextStream } from 'adead-models'
import { type Description, type Layer, type Measured, Trainer, type TrainEvent, train } from 'adead-models'

const folder: string = process.argv[2] ?? 'all-MiniLM-L6-v2'

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * (y[i] ?? 0), 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}

async function main(): Promise<void> {
  const encoder: SentenceEncoder = await SentenceEncoder.openAsync(folder, { device: 'cpu', threads: 1 })
  const pair: Embeddings = encoder.encode(['the ferry came in', 'the ferry'], { batch: 2, padded: true })
  let computed = 0
  let rows = 0
  const progress = (count: number): void => {
    computed = count
  }
  for await (const part of encoder.batchEmbed(new Set(['a', 'b']), { progress })) rows += part.first + part.rows
  const similar = cosine(pair.row(0), pair.row(1)) > 0
  let code: StatusName | undefined
  try {
    encoder.encode([], { batch: 0 })
  } catch (error) {
    if (error instanceof AdeadError) code = error.code
  }
  console.log(encoder.device, encoder.width === pair.width, encoder.maxTokens > 2, similar, computed, rows, code, pair.truncated)
}

async function text(file: string): Promise<void> {
  const blocks: Uint8Array = quantize(new Float32Array(32), 'q8_0')
  let read = 0
  const model: TextGenerator = await TextGenerator.openAsync(file, { onProgress: (done) => (read = done) })
  const both: Generation[] = model.generateBatch(['the ferry', 'came in'], { maxTokens: 3 })
  const stream: TextStream = model.stream('the ferry', { maxTokens: 3, ignoreEnd: true, onProgress: () => {} })
  for await (const piece of stream) piece.toUpperCase()
  const { tokens, finish } = stream.generation
  await stream[Symbol.asyncDispose]()
  model[Symbol.dispose]()
  console.log(blocks.length, both.length, read > 0, tokens.length, finish)
}

function training(): void {
  const layers: Layer[] = ['flatten', { conv: { channels: 1, size: 1 } }, { linear: 2 }]
  const description: Description = {
    model: { kind: 'layers', layers: layers.filter((layer) => typeof layer === 'string' || 'linear' in layer) },
    input: [1, 3],
    optimizer: { kind: 'sgd', rate: 0.1, momentum: 0.9 },
    batch: 2,
    seed: 7n,
  }
  const net: Trainer = Trainer.create(description, { device: 'cpu', precision: 'f32' })
  let steps = 0
  const loss: number = net.fit(new Float32Array(12), [0, 1, 0, 1], { epochs: 1, onProgress: (_epoch, step) => (steps = step) })
  const { accuracy }: Measured = net.evaluate(new Float32Array(6), BigInt64Array.of(0n, 1n))
  const weights: Float32Array | undefined = net.parameters().get('1.weight')?.values
  const seen: TrainEvent[] = []
  let code: StatusName | undefined
  try {
    train('none.toml', { epochs: 1, onProgress: (event) => seen.push(event) })
  } catch (error) {
    if (error instanceof AdeadError) code = error.code
  }
  console.log(weights?.length, steps, net.device, net.batch, net.sample.dims.length * 3, loss > 0 && accuracy >= 0, code)
  net[Symbol.dispose]()
}

void main()
  .then(() => text(process.argv[3] ?? 'SmolLM2-135M-Instruct.Q4_1.gguf'))
  .then(training)
