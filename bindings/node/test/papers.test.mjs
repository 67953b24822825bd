// The first papers: each call that they name does what its name says, and their program runs as written. On the GPU
// that ADEAD_TEST_DEVICE names, else on the best one through Vulkan.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AdeadError, Context, GPU, Layout, Program, Tensor, hardware } from '../index.mjs'
import { throws } from './helpers.mjs'

const example = (name) => fileURLToPath(new URL(`../../../examples/${name}`, import.meta.url))

/** Opens the GPU; without one the test is skipped with the reason. */
function open(t) {
  try {
    return new GPU(process.env.ADEAD_TEST_DEVICE ?? 'vulkan')
  } catch (error) {
    if (!(error instanceof AdeadError) || error.code !== 'backend_unavailable') throw error
    t.skip(error.message)
    return null
  }
}

test('their program', (t) => {
  const gpu = open(t)
  if (!gpu) return
  const N = 512
  const values = (step) => Float32Array.from({ length: N * N }, (_, i) => ((i * step) % 101) / 50 - 1)
  const [dataA, dataB] = [values(37), values(59)]
  const onCuda = gpu.device.id.startsWith('cuda')
  const kernel = gpu.createPipeline(onCuda ? gpu.loadPtx(example('kernels/matmul.ptx')) : gpu.loadSpirv(example('kernels/matmul.spv')))

  const A = gpu.buffer(dataA)
  const B = gpu.buffer(dataB)
  const C = gpu.buffer({ size: N * N })
  gpu.dispatch(kernel, [A, B, C], [32, 32, 1])
  gpu.wait()
  const result = C.toArray()

  assert.ok(result instanceof Float32Array && result.length === N * N)
  assert.deepEqual([C.size, C.nbytes], [N * N, 4 * N * N])
  for (let i = 0; i < N; i++) {
    for (let j = 0; j < N; j++) {
      let exact = 0
      for (let k = 0; k < N; k++) exact += dataA[i * N + k] * dataB[k * N + j]
      assert.ok(Math.abs(result[i * N + j] - exact) < 1e-3, `${i}, ${j}`)
    }
  }
})

test('what a buffer is made of', async () => {
  const ctx = new Context('cpu')
  assert.deepEqual([...ctx.buffer([1, 2, 3]).toArray()], [1, 2, 3])
  assert.ok(ctx.buffer([1, 2, 3]).toArray() instanceof Float32Array)
  const wide = ctx.buffer({ size: 3, dtype: 'i64' })
  assert.deepEqual([wide.size, wide.nbytes, [...wide.toArray()]], [3, 24, [0n, 0n, 0n]])
  assert.deepEqual([...ctx.buffer(Int32Array.of(1, 2)).toArray()], [1, 2])
  assert.equal((await ctx.bufferAsync({ nbytes: 8 })).toArray().length, 2)
  const bytes = ctx.buffer(Uint8Array.of(1, 2, 3, 4))
  assert.deepEqual([bytes.size, bytes.nbytes], [4, 4])
  throws('invalid_argument', /pass one/, () => bytes.toArray())
  throws('invalid_argument', /buffer\({ size: n }\)/, () => ctx.buffer(1024))
  for (const wrong of [{}, { size: 1, nbytes: 4 }, { dtype: 'f32' }, ['x'], null, 'x']) {
    throws('invalid_argument', /./, () => ctx.buffer(wrong))
  }
  throws('invalid_argument', /./, () => ctx.buffer({ size: 2 ** 62, dtype: 'i64' }))
})

test('the other calls', async () => {
  const report = hardware()
  assert.ok(['cpu', 'gpu', 'hybrid'].includes(report.recommendedMode) && report.recommendedMode === report.recommended)
  const ctx = new Context('cpu')
  assert.equal(ctx.select(1024), 'cpu')
  const [x, w1, w2] = [
    new Tensor(Float32Array.of(1, -2), [1, 2]),
    new Tensor(Float32Array.of(1, 0, 0, 1), [2, 2]),
    new Tensor(Float32Array.of(2, 3), [2, 1]),
  ]
  assert.deepEqual([...ctx.pipeline().matmul(x, w1).relu().matmul(w2).execute().toArray()], [2])
  assert.ok(ctx.loadAdead(example('programs/mlp.adead')) instanceof Program)
  const buffer = ctx.buffer(Float32Array.of(1, 2))
  buffer.write(0, Float32Array.of(3))
  ctx.event().wait()
  ctx.fence().wait()
  ctx.stream().synchronize()
  ctx.wait()
  assert.deepEqual([...buffer.toArray()], [3, 2])
  buffer.free()
  assert.deepEqual([...Layout.coalesced(4, 2).apply(Float32Array.of(0, 1, 2, 3))], [0, 2, 1, 3])
})

test('a signal ends work that has begun', async () => {
  const ctx = new Context('cpu')
  // Attention with about 10^13 operations, which would take many minutes.
  const x = new Tensor(new Float32Array(64 * 16384 * 64).fill(0.5), [1, 64, 16384, 64])
  const controller = new AbortController()
  const promise = ctx.attentionAsync(x, x, x, { signal: controller.signal })
  setTimeout(() => controller.abort(), 200)
  await assert.rejects(promise, { name: 'AbortError' })
  assert.equal((await ctx.reluAsync(new Tensor(Float32Array.of(-1), [1]))).toArray()[0], 0)
})
