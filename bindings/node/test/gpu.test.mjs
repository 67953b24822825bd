// Buffers, streams and kernels: on the GPU that ADEAD_TEST_DEVICE names, else in host memory, which refuses kernels.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Context, DeviceBuffer, GPU, Stream, Tensor } from '../index.mjs'
import { f32, rejects, same, throws } from './helpers.mjs'

const device = process.env.ADEAD_TEST_DEVICE ?? 'cpu'
const gpu = new Context(device)
const onGpu = gpu.device.kind !== 'cpu'
const onVulkan = gpu.device.id.startsWith('vulkan')
const kernel = (name) => fileURLToPath(new URL(`../../../examples/kernels/${name}`, import.meta.url))

test('buffers', async () => {
  const buffer = gpu.buffer(Float32Array.of(1, 2, 3))
  assert.ok(buffer instanceof DeviceBuffer)
  assert.deepEqual([buffer.size, buffer.nbytes], [3, 12])
  assert.equal(buffer.device.id, gpu.device.id)
  buffer.write(4, Float32Array.of(5))
  await buffer.writeAsync(8, Float32Array.of(6))
  assert.deepEqual([...buffer.toArray('f32')], [1, 5, 6])
  assert.deepEqual([...(await buffer.toArrayAsync('f32'))], [1, 5, 6])
  assert.deepEqual(buffer.read(4, 4), new Uint8Array(Float32Array.of(5).buffer))
  assert.deepEqual(await buffer.readAsync(4, 4), buffer.read(4, 4))
  const into = new Float32Array(2)
  buffer.readInto(4, into)
  assert.deepEqual([...into], [5, 6])
  assert.deepEqual((await gpu.bufferAsync(into)).toArray('f32'), into)
  assert.equal((await gpu.bufferAsync({ size: 100 })).nbytes, 400)
  assert.ok(gpu.buffer({ nbytes: 100 }).read(0, 100).every((byte) => byte === 0))
  throws('invalid_argument', /don't fit/, () => buffer.write(4, new Float32Array(3)))
  throws('invalid_argument', /don't fit/, () => buffer.read(8, 5))
  throws('invalid_argument', /don't fit/, () => buffer.read(0, 2 ** 50))
  throws('invalid_argument', /not an array of i64s/, () => buffer.toArray('i64'))
  await rejects('invalid_argument', /not an array of i64s/, buffer.toArrayAsync('i64'))
  buffer.free()
  throws('invalid_argument', /was freed/, () => buffer.toArray('f32'))
  throws('invalid_argument', /was freed before/, () => buffer.free())
})

test('pipelines', async () => {
  const ramp = (...dims) => {
    const count = dims.reduce((a, b) => a * b)
    return f32(
      Array.from({ length: count }, (_, i) => ((i * 37) % 101) / 50 - 1),
      dims,
    )
  }
  const [x, w, b] = [ramp(9, 40), ramp(40, 60), ramp(60)]
  const cpu = new Context('cpu')
  const expected = cpu.relu(cpu.add(cpu.matmul(x, w), b))
  const compiled = gpu.pipeline().input([9, 40]).matmul(w).bias(b).relu().compile()
  assert.deepEqual([compiled.device.id, compiled.steps], [gpu.device.id, 1])
  same(compiled.run(x), expected)
  same(await compiled.runAsync(x), expected)
  same(gpu.pipeline().matmul(x, w).bias(b).relu().execute(), expected)
})

test('streams', async () => {
  const stream = gpu.stream(true)
  assert.ok(stream instanceof Stream)
  const [a, b] = [gpu.buffer({ size: 4 }), gpu.buffer({ nbytes: 16 })]
  stream.upload(a, 0, Float32Array.of(1, -2, 3, -4))
  stream.copy(a, 4, b, 0, 12)
  stream.clear(b, 0, 4)
  const event = stream.event()
  event.wait()
  assert.equal(event.isDone, true)
  await event.waitAsync(1000)
  const download = stream.download(b, 0, 16)
  assert.equal(download.size, 16)
  assert.deepEqual(new Float32Array((await download.toBytesAsync()).buffer), Float32Array.of(0, 3, -4, 0))
  throws('invalid_argument', /taken before/, () => download.toBytes())
  assert.equal(download.isDone, true)
  const dims = [4]
  stream.run('relu', [{ buffer: a, dtype: 'f32', dims }], { buffer: b, dtype: 'f32', dims })
  stream.flush()
  await stream.synchronizeAsync()
  assert.equal(stream.query(), true)
  assert.deepEqual([...b.toArray('f32')], [1, 0, 3, 0])
  const soft = { buffer: a, dtype: 'f32', dims: [2, 2] }
  stream.run('softmax', [soft], { ...soft, buffer: b }, { axis: 0 })
  stream.synchronize()
  same(new Tensor(b.toArray('f32'), [2, 2]), f32([1, -2, 3, -4], [2, 2]).softmax({ axis: 0 }))
  const other = gpu.stream()
  other.waitFor(stream.event())
  other.synchronize()
  const [before, after] = [stream.timestamp(), stream.timestamp()]
  stream.synchronize()
  assert.ok(after.since(before) >= 0)
  throws('shape_mismatch', /relu: the output is/, () => stream.run('relu', [soft], { buffer: b, dtype: 'f32', dims }))
  throws('invalid_argument', /dims is missing/, () => stream.run('relu', [{ buffer: a, dtype: 'f32' }], soft))
  throws('invalid_argument', /expected a DeviceBuffer/, () => stream.run('relu', [{ buffer: 5, dtype: 'f32', dims }], soft))
  throws('invalid_argument', /not a time/, () => event.wait(-1))
  throws('invalid_argument', /expected an Event|expected a Event/, () => stream.waitFor(stream))
})

test('what the context enqueues', async () => {
  const fence = gpu.fence()
  gpu.wait()
  await gpu.waitAsync()
  fence.wait()
  assert.equal(gpu.event().isDone, true)
})

test('what is not for this device', async () => {
  throws('io', /No such file/, () => gpu.loadSpirv('nothing.spv'))
  await rejects('io', /No such file/, gpu.loadSpirvAsync('nothing.spv'))
  throws('invalid_argument', /expected a typed array/, () => gpu.loadSpirv(5))
  throws('invalid_argument', /expected a Kernel, not another object/, () => gpu.createPipeline(gpu))
  throws('invalid_argument', /./, () => gpu.compileKernel(5))
  if (!onGpu) {
    throws('unsupported', /open a GPU/, () => gpu.compileKernel('void main() {}'))
    await rejects('unsupported', /open a GPU/, gpu.compileKernelAsync('void main() {}', undefined, 'x.comp'))
    throws('unsupported', /./, () => gpu.loadSpirv(kernel('vecadd.spv')))
    throws('unsupported', /./, () => gpu.stream().startRecording())
  } else {
    throws(onVulkan ? 'invalid_kernel' : 'unsupported', /./, () => gpu.loadSpirv(new Uint8Array(40)))
    throws(onVulkan ? 'unsupported' : 'invalid_kernel', /./, () => gpu.loadPtx(Buffer.from('.version 8.0')))
    throws(onVulkan ? 'unsupported' : 'invalid_kernel', /./, () => gpu.loadCubin(Buffer.from('no cubin')))
  }
})

test('kernels', { skip: !onGpu && 'the device takes no kernels' }, async () => {
  const vecadd = onVulkan ? await gpu.loadSpirvAsync(kernel('vecadd.spv')) : await gpu.loadPtxAsync(kernel('vecadd.ptx'))
  const { name, parameters, pushBytes, workgroup } = vecadd
  assert.deepEqual([name, parameters.length, pushBytes, workgroup], [onVulkan ? 'main' : 'vecadd', 3, 4, [256, 1, 1]])
  if (onVulkan) assert.equal(parameters[0].stride, 4)
  const n = 1000
  const data = Float32Array.from({ length: n }, (_, i) => i)
  const [a, b, c] = [gpu.buffer(data), gpu.buffer(data), gpu.buffer({ size: n })]
  gpu.dispatch(vecadd, [a, b, c], [4, 1, 1], Uint32Array.of(n))
  assert.deepEqual(await c.toArrayAsync('f32'), data.map((x) => 2 * x))
  throws('invalid_argument', /./, () => gpu.dispatch(vecadd, [a, b], [4, 1, 1], Uint32Array.of(n)))
  throws('invalid_argument', /./, () => gpu.dispatch(vecadd, [a, b, c], [4, 1, 1]))
  throws('invalid_argument', /x, y and z/, () => gpu.dispatch(vecadd, [a, b, c], [4], Uint32Array.of(n)))
  throws('invalid_argument', /not the id/, () => gpu.createPipeline(vecadd, { constants: { x: 1 } }))
  if (onVulkan) {
    const reduce = gpu.loadSpirv(readFileSync(kernel('reduce.spv')))
    const small = await gpu.createPipelineAsync(reduce, { constants: { 0: 64 } })
    assert.deepEqual(small.workgroup, [64, 1, 1])
    assert.deepEqual(gpu.createPipeline(reduce, { constants: { 0: 32 } }).workgroup, [32, 1, 1])
  } else assert.equal(gpu.createPipeline(vecadd, { entry: 'vecadd' }).name, 'vecadd')
  const stream = gpu.stream()
  stream.startRecording()
  stream.dispatch(vecadd, [c, a, c], [4, 1, 1], Uint32Array.of(n))
  const recording = stream.finishRecording()
  for (let i = 0; i < 3; i++) stream.replay(recording)
  await stream.synchronizeAsync()
  assert.deepEqual(c.toArray('f32'), data.map((x) => 5 * x))
})

test('the class of GPUs', { skip: !onGpu && 'there is no GPU' }, async () => {
  const own = new GPU(device)
  assert.ok(own instanceof Context && own.device.id === gpu.device.id)
  same(own.relu(f32([-1, 2], [2])), f32([0, 2], [2]))
  assert.equal((await GPU.openAsync(device)).device.id, own.device.id)
  throws('invalid_argument', /belongs to a context on/, () => own.stream().upload(gpu.buffer({ size: 1 }), 0, new Float32Array(1)))
})

test('the example', { skip: !onVulkan && 'it takes SPIR-V' }, () => {
  const example = fileURLToPath(new URL('../examples/vecadd.mjs', import.meta.url))
  const child = spawnSync(process.execPath, [example, kernel('vecadd.spv')], { encoding: 'utf8' })
  assert.equal(child.status, 0, child.stderr)
  assert.match(child.stdout, /^1000 sums on .*: exact$/m)
})

test('a process ends with objects alive and work under way', () => {
  const index = fileURLToPath(new URL('../index.js', import.meta.url))
  for (const end of ['process.exit(3)', 'setTimeout(() => process.exit(3), 20)', 'process.exitCode = 3']) {
    const code = `const adead = require(${JSON.stringify(index)})
      const gpu = new adead.Context(${JSON.stringify(device)})
      const [a, b, stream] = [gpu.buffer({ nbytes: 1 << 22 }), gpu.buffer({ nbytes: 1 << 22 }), gpu.stream()]
      const part = (buffer) => ({ buffer, dtype: 'f32', dims: [1024, 1024] })
      for (let i = 0; i < 5; i++) stream.run('softmax', [part(a)], part(b))
      globalThis.kept = [stream.event(), stream.download(b, 0, 1 << 20), gpu.fence()]
      stream.synchronizeAsync()
      b.toArrayAsync('f32')
      ${end}`
    const child = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' })
    assert.deepEqual([child.signal, child.status], [null, 3], child.stderr)
  }
})

test('operations return the same bits', () => {
  const data = Float32Array.from({ length: 96 }, (_, i) => ((i * 37) % 101) / 50 - 1)
  const [x, w] = [new Tensor(data, [8, 12]), new Tensor(data, [12, 8])]
  const cpu = new Context('cpu')
  same(gpu.softmax(gpu.matmul(x, w)), cpu.softmax(cpu.matmul(x, w)))
})
