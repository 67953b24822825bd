// Trainers and jobs: the hash that every language has, files, ranks, errors.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Trainer, train } from '../index.mjs'
import { rejects, throws } from './helpers.mjs'

const shared = JSON.parse(readFileSync(new URL('../../../tests/train/trainer.json', import.meta.url), 'utf8'))
const cpu = { device: 'cpu' }
const create = (changed, options = cpu) => Trainer.create({ ...shared.description, ...changed }, options)

function samples(count = shared.samples) {
  const x = Float32Array.from({ length: count * 6 }, (_, k) => ((k * 7919) % 1009) / 504.5 - 1)
  const classes = Array.from({ length: count }, (_, i) => Number(x[6 * i] > 0) + Number(x[6 * i + 1] > Math.fround(0.3)))
  return [x, classes]
}

const temporary = () => mkdtempSync(join(tmpdir(), 'adead-train-'))

test('the shared training has its hash', async () => {
  const [x, classes] = samples()
  for (const threads of [1, 3]) {
    const net = create({}, { device: 'cpu', threads })
    const before = net.evaluate(x, classes)
    const loss = net.fit(x, classes, { epochs: shared.epochs })
    const after = net.evaluate(x, classes)
    assert.deepEqual([net.steps, net.batch, net.device, net.sha256()], [200, 24, 'cpu', shared.sha256])
    assert.ok(loss < before.loss && after.accuracy > 0.9 && before.accuracy < 0.9)
    const outputs = net.predict(x)
    assert.deepEqual(await net.predictAsync(x), outputs)
    const right = classes.filter((own, i) => {
      const row = outputs.subarray(3 * i, 3 * i + 3)
      return row.indexOf(Math.max(...row)) === own
    })
    assert.equal(right.length / classes.length, after.accuracy)
    net.close()
  }
  const net = await Trainer.createAsync(shared.description, cpu)
  const told = []
  const ids = BigInt64Array.from(classes, BigInt)
  const loss = await net.fitAsync(x, ids, { epochs: shared.epochs, onProgress: (event) => told.push(event) })
  assert.equal(net.sha256(), shared.sha256)
  assert.deepEqual(told.map(({ epoch, steps }) => [epoch, steps]), Array.from({ length: 20 }, (_, i) => [i + 1, 10 * i + 10]))
  assert.equal(told.at(-1).loss, loss)
  assert.deepEqual(net.sample, { dtype: 'f32', dims: [6], target: 'i64', targets: [], outputs: [3] })
  const sizes = [...net.parameters().values()].map(({ dims, values }) => [dims, values.length])
  assert.deepEqual(sizes.sort(), [[[3], 3], [[3, 32], 96], [[32], 32], [[32, 6], 192]].sort())
})

test('layers alone are a model, and values are targets', () => {
  const net = Trainer.create(
    { model: [{ linear: 1 }], input: [1], loss: 'mse', batch: 4, optimizer: { kind: 'sgd', rate: 0.1 } },
    cpu,
  )
  const x = new Float32Array([-1, 0, 1, 2])
  net.fit(x, x.map((value) => 3 * value + 1), { epochs: 300 })
  assert.ok(Math.abs(net.predict(new Float32Array([10]))[0] - 31) < 1e-2)
  throws('unsupported', /the loss has none/, () => net.evaluate(x, x))
})

test('a training goes on from its file', () => {
  const folder = temporary()
  try {
    const [x, classes] = samples(96)
    const [whole, first, second] = [create(), create(), create({}, { device: 'cpu', threads: 1 })]
    whole.fit(x, classes, { epochs: 3 })
    first.fit(x, classes)
    first.save(join(folder, 'state.safetensors'))
    second.load(join(folder, 'state.safetensors'))
    assert.equal(second.steps, 4)
    second.fit(x, classes, { epochs: 2 })
    assert.equal(second.sha256(), whole.sha256())
    throws('io', /missing/, () => second.load(join(folder, 'missing')))
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('ranks have the hash of one', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  const [x, classes] = samples()
  const rank = async (number) => {
    const net = create({}, { device: 'cpu', threads: 1 })
    await net.join(`${number}/2@127.0.0.1:${port}`, { patience: 60 })
    await net.fitAsync(x, classes, { epochs: shared.epochs })
    return net.sha256()
  }
  assert.deepEqual(await Promise.all([rank(0), rank(1)]), [shared.sha256, shared.sha256])
})

test('what does not fit is refused', async () => {
  const [x, classes] = samples(24)
  const net = create()
  throws('shape_mismatch', /targets is \[23\]; for 24 samples it must be \[24\]/, () => net.step(x, classes.slice(1)))
  throws('shape_mismatch', /23 samples; a step takes a batch of 24/, () => net.step(x.subarray(6), classes.slice(1)))
  throws('shape_mismatch', /x has 7 values; a sample has 6/, () => net.predict(new Float32Array(7)))
  throws('dtype_mismatch', /targets holds f32; it must be a BigInt64Array/, () => net.step(x, new Float32Array(24)))
  throws('invalid_argument', /element 1 of targets is 9/, () => net.step(x, classes.with(1, 9)))
  throws('invalid_argument', /element 1 of targets is no class/, () => net.step(x, classes.with(1, 0.5)))
  throws('invalid_argument', /x must be a Float32Array, .* it is of the type string/, () => net.step('x', classes))
  throws('invalid_argument', /the loss is NaN/, () => net.step(x.map(() => NaN), classes))
  throws('invalid_argument', /epochs is 0/, () => net.fit(x, classes, { epochs: 0 }))
  assert.equal(net.steps, 0)
  const stop = { epochs: 2, onProgress: () => { throw new RangeError('enough') } }
  assert.throws(() => net.fit(x, classes, stop), /enough/)
  assert.equal(net.steps, 1)
  await rejects('invalid_argument', /'7' is no place of a rank/, net.join('7'))
  await rejects('invalid_argument', /patience is -1/, net.join('0/1@a:1', { patience: -1 }))
  // While a call computes on another thread, others are told so.
  const busy = net.fitAsync(...samples(2400), { epochs: 20 })
  throws('not_ready', /computes in another call/, () => {
    for (;;) net.steps
  })
  await busy
  net.close()
  throws('invalid_argument', /the trainer is closed/, () => net.steps)
  throws('invalid_argument', /unknown variant `lstm`/, () => create({ model: ['lstm'] }))
  throws('invalid_argument', /a description must be an object/, () => Trainer.create('x'))
  throws('invalid_argument', /Trainer.create/, () => new Trainer())
})

test('a job runs and goes on', async () => {
  const folder = temporary()
  try {
    const job = join(folder, 'job.toml')
    writeFileSync(join(folder, 'text'), 'a ferry came in, and nobody noticed. '.repeat(40))
    writeFileSync(
      job,
      `batch = 8
      epochs = 2
      data = { kind = "text", files = ["text"] }
      model = { kind = "gpt", layers = 1, heads = 1, width = 8, context = 16 }
      optimizer = { kind = "adam", rate = 0.01 }
      checkpoint = { file = "state.safetensors" }`,
    )
    const whole = await train(job, cpu)
    assert.equal(whole.epochs.length, 2)
    assert.deepEqual([whole.device, whole.sha256.length], ['cpu', 64])
    rmSync(join(folder, 'state.safetensors'))
    assert.equal((await train(job, { device: 'cpu', epochs: 1 })).steps, whole.steps / 2)
    const rest = await train(job, { device: 'cpu', threads: 1, resume: true })
    assert.deepEqual([rest.sha256, rest.epochs.map(({ epoch }) => epoch)], [whole.sha256, [2]])
    await rejects('io', /none\.toml/, train(join(folder, 'none.toml')))
  } finally {
    rmSync(folder, { recursive: true })
  }
})
