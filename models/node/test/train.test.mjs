// Trainer and train: the hash that every language has, files, ranks, progress, errors.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Trainer, train, trainAsync } from '../index.mjs'
import { bits, rejects, throws } from './helpers.mjs'

const shared = JSON.parse(readFileSync(new URL('../../../tests/train/trainer.json', import.meta.url), 'utf8'))
const { description, epochs } = shared
const folder = mkdtempSync(join(tmpdir(), 'adead-train-'))
after(() => rmSync(folder, { recursive: true }))

/** The samples of tests/train/trainer.json, and their classes. */
function samples(count = shared.samples) {
  const x = Float32Array.from({ length: count * 6 }, (_, k) => ((k * 7919) % 1009) / 504.5 - 1)
  const limit = Math.fround(0.3)
  return [x, Array.from({ length: count }, (_, i) => (x[6 * i] > 0 ? 1 : 0) + (x[6 * i + 1] > limit ? 1 : 0))]
}

const create = (changed, options) => Trainer.create({ ...description, ...changed }, { device: 'cpu', ...options })
const [x, classes] = samples()
const batch = samples(description.batch)

/** Where two ranks meet. */
async function places() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((ready) => server.once('listening', ready))
  const { port } = server.address()
  await new Promise((closed) => server.close(closed))
  return [`0/2@127.0.0.1:${port}`, `1/2@127.0.0.1:${port}`]
}

for (const threads of [1, 3]) {
  test(`the shared training has its hash with ${threads} threads`, () => {
    const net = create({}, { threads })
    const before = net.evaluate(x, classes)
    const told = []
    const loss = net.fit(x, classes, { epochs, onProgress: (...event) => told.push(event) })
    const after = net.evaluate(x, classes)
    assert.equal(net.sha256(), shared.sha256)
    assert.deepEqual([net.steps, net.batch, net.device], [200, 24, 'cpu'])
    assert.deepEqual(net.sample, { dtype: 'f32', dims: [6], target: 'i64', targets: [], outputs: [3] })
    assert.deepEqual(told.map(([epoch, step]) => [epoch, step]), Array.from({ length: 200 }, (_, i) => [1 + Math.floor(i / 10), i + 1]))
    const last = told.slice(-10).map(([, , loss]) => loss)
    assert.equal(loss, last.reduce((sum, loss) => sum + loss, 0) / 10)
    assert.ok(loss < before.loss && before.accuracy < 0.9 && after.accuracy > 0.9)

    const predicted = net.predict(x)
    assert.ok(predicted instanceof Float32Array && predicted.length === 3 * shared.samples)
    const right = classes.filter((wanted, i) => {
      const row = predicted.subarray(3 * i, 3 * i + 3)
      return row.indexOf(Math.max(...row)) === wanted
    })
    assert.equal(right.length / classes.length, after.accuracy)
    const parameters = net.parameters()
    assert.deepEqual([...parameters].map(([name, { dims }]) => [name, dims]).sort(), [
      ['0.bias', [32]],
      ['0.weight', [32, 6]],
      ['3.bias', [3]],
      ['3.weight', [3, 32]],
    ])
    for (const { dims, values } of parameters.values()) {
      assert.equal(values.length, dims.reduce((all, dim) => all * dim))
      assert.ok(values instanceof Float32Array && values.some((value) => value !== 0))
    }
  })
}

test('functions that end in Async do the same', async () => {
  const net = await Trainer.createAsync(description, { device: 'cpu', threads: null })
  const told = []
  const part = await net.fitAsync(x, BigInt64Array.from(classes, BigInt), { epochs: epochs - 1, onProgress: (...event) => told.push(event) })
  assert.equal(told.length, 190)
  assert.equal(told.slice(-10).reduce((sum, [, , loss]) => sum + loss, 0) / 10, part)
  await net.fitAsync(x, classes)
  assert.equal(net.sha256(), shared.sha256)
  assert.deepEqual(await net.evaluateAsync(x, classes), net.evaluate(x, classes))
  assert.deepEqual(bits(await net.predictAsync(x)), bits(net.predict(x)))
  // Layers need not say that they are layers, and a seed may have 64 bits.
  const { layers } = description.model
  const same = create({ model: layers, seed: BigInt(description.seed), steps: null })
  const first = same.step(...batch)
  assert.equal(await create().stepAsync(...batch), first)
  const [other, another] = [2n ** 64n - 1n, 2n ** 64n - 2n].map((seed) => create({ seed }).sha256())
  assert.notEqual(other, another)
})

test('steps of a batch are what fit makes', () => {
  const [one, other] = [create(), create()]
  const losses = [0, 1, 2].map(() => one.step(...batch))
  assert.ok(losses[0] > losses[1] && losses[1] > losses[2], `${losses}`)
  for (let step = 0; step < 3; step++) other.step(batch[0], BigInt64Array.from(batch[1], BigInt))
  assert.equal(one.sha256(), other.sha256())
})

test('a training goes on from its file', () => {
  const [whole, first, second] = [create(), create(), create({}, { threads: 1 })]
  const file = join(folder, 'state.safetensors')
  whole.fit(x, classes, { epochs })
  first.fit(x, classes, { epochs: 8 })
  first.save(file)
  second.load(file)
  assert.equal(second.steps, 80)
  second.fit(x, classes, { epochs: epochs - 8 })
  assert.deepEqual([second.sha256(), whole.sha256()], [shared.sha256, shared.sha256])
  throws('io', /missing\.safetensors/, () => second.load(join(folder, 'missing.safetensors')))
  throws('io', /nowhere/, () => second.save('/nowhere/state.safetensors'))
  throws('invalid_argument', /the path must be a string; it is null/, () => second.save(null))
  const wider = create({ model: [{ linear: 3 }] })
  assert.throws(() => wider.load(file), ({ code }) => code === 'invalid_argument' || code === 'shape_mismatch')
})

test('two ranks have the hash of one', async () => {
  const hashes = await Promise.all(
    (await places()).map(async (place) => {
      const net = create({}, { threads: 1 })
      await net.joinAsync(place, { patience: 60 })
      await net.fitAsync(x, classes, { epochs })
      return net.sha256()
    }),
  )
  assert.deepEqual(hashes, [shared.sha256, shared.sha256])
})

test('ranks that fail are told of', async () => {
  const net = create()
  throws('invalid_argument', /'7' is no place of a rank/, () => net.join('7'))
  throws('invalid_argument', /patience is 0; it is a number of seconds above 0/, () => net.join('0/2@127.0.0.1:1', { patience: 0 }))
  throws('invalid_argument', /the place must be a string; it is null/, () => net.join(null))
  await rejects('invalid_argument', /rank 5 of 2/, net.joinAsync('5/2@127.0.0.1:1'))
  const [place] = await places()
  await rejects('io', /./, net.joinAsync(place, { patience: 0.2 }))
  // Trainings that differ.
  const joined = await Promise.allSettled((await places()).map((place, i) => create({ seed: 7, batch: 24 * (i + 1) }).joinAsync(place, { patience: 60 })))
  assert.ok(joined.some(({ status }) => status === 'rejected'))
  for (const { reason } of joined.filter(({ status }) => status === 'rejected')) {
    assert.match(reason.code, /^(invalid_argument|io)$/)
  }
})

test('a trainer that computes refuses other calls', async () => {
  const net = create()
  const busy = /the trainer is computing in another call/
  const calls = [
    () => net.steps,
    () => net.step(...batch),
    () => net.fit(x, classes, { onProgress: () => {} }),
    () => net.predict(x),
    () => net.sha256(),
    () => net.parameters(),
    () => net.save(join(folder, 'busy')),
    () => net.load(join(folder, 'busy')),
    () => net.join('0/2@127.0.0.1:1'),
  ]
  for (const onProgress of [undefined, () => {}]) {
    // Fast work too: the trainer is free when the promise settles.
    const whole = net.fitAsync(...batch, { onProgress })
    const until = performance.now() + 50
    while (performance.now() < until);
    for (const call of calls) throws('not_ready', busy, call)
    const more = [net.fitAsync(x, classes), net.predictAsync(x), net.stepAsync(...batch)]
    assert.deepEqual([net.batch, net.device], [24, 'cpu'])
    await Promise.all([whole, ...more.map((call) => rejects('not_ready', busy, call))])
  }
  assert.equal(net.steps, 2)
  // After an error, too.
  await rejects('invalid_argument', /the loss is NaN/, net.stepAsync(batch[0].map(() => NaN), batch[1]))
  assert.equal(net.steps, 2)
  // Also from what is told of progress.
  const other = create()
  const inside = () => throws('not_ready', busy, () => other.steps)
  other.fit(...batch, { onProgress: inside })
  await other.fitAsync(...batch, { onProgress: inside })
  assert.equal(other.steps, 2)
})

test('what onProgress throws ends the training', async () => {
  const net = create()
  const enough = new Error('enough')
  const onProgress = (_, step) => {
    if (step % 5 === 0) throw enough
  }
  assert.throws(() => net.fit(x, classes, { epochs, onProgress }), enough)
  assert.equal(net.steps, 5)
  await assert.rejects(net.fitAsync(x, classes, { epochs, onProgress }), enough)
  assert.equal(net.steps, 10)
  throws('invalid_argument', /onProgress must be a function; it is of the type number/, () => net.fit(x, classes, { onProgress: 3 }))
  // A process may end from it.
  const script = `
    const { Trainer } = require(${JSON.stringify(fileURLToPath(new URL('../index.js', import.meta.url)))})
    const net = Trainer.create(${JSON.stringify(description)}, { device: 'cpu' })
    const x = new Float32Array(${6 * description.batch})
    net.fitAsync(x, new BigInt64Array(${description.batch}), { epochs: 1e6, onProgress: (_, step) => step === 3 && process.exit(42) })`
  assert.throws(() => execFileSync(process.execPath, ['-e', script], { timeout: 60_000 }), { status: 42 })
})

test('a closed trainer is refused', async () => {
  const net = create()
  const whole = net.fitAsync(x, classes, { epochs: 1 })
  net.close()
  net[Symbol.dispose]()
  // What is under way goes on.
  assert.ok((await whole) > 0)
  for (const call of [() => net.steps, () => net.batch, () => net.device, () => net.sample, () => net.predict(x), () => net.sha256()]) {
    throws('invalid_argument', /the trainer is closed/, call)
  }
  await rejects('invalid_argument', /the trainer is closed/, net.fitAsync(x, classes))
})

test('what does not fit is refused', async () => {
  const net = create()
  const floats = new Float32Array(24)
  const cases = [
    ['shape_mismatch', /there are 24 samples and 23 targets/, batch[0], batch[1].slice(1)],
    ['shape_mismatch', /23 samples; a step takes a batch of 24/, ...samples(23)],
    ['shape_mismatch', /x has 143 values; pass samples of 6 values each/, batch[0].subarray(1), batch[1]],
    ['shape_mismatch', /x has 0 values/, new Float32Array(0), []],
    ['dtype_mismatch', /targets must be a BigInt64Array or an array of numbers; it is a Float32Array/, batch[0], floats],
    ['dtype_mismatch', /x must be a Float32Array; it is a Float64Array/, new Float64Array(144), batch[1]],
    ['invalid_argument', /x must be a Float32Array; it is an array/, [1, 2, 3], batch[1]],
    ['invalid_argument', /targets must be .*; it is null/, batch[0], null],
    ['invalid_argument', /element 3 of targets is 9; there are 3 classes/, batch[0], [0, 0, 0, 9, ...batch[1].slice(4)]],
    ['invalid_argument', /element 0 of targets is -1; there are 3 classes/, batch[0], [-1, ...batch[1].slice(1)]],
    ['invalid_argument', /element 1 of targets must be a whole number; it is 0\.5/, batch[0], [0, 0.5]],
    ['invalid_argument', /element 0 of targets must be a whole number; it is of the type string/, batch[0], ['1']],
    ['invalid_argument', /the loss is NaN/, batch[0].map(() => NaN), batch[1]],
  ]
  for (const [code, words, ...given] of cases) {
    throws(code, words, () => net.step(...given))
    await rejects(code, words, net.stepAsync(...given))
  }
  throws('invalid_argument', /0 epochs/, () => net.fit(x, classes, { epochs: 0 }))
  throws('invalid_argument', /0 epochs/, () => net.fit(x, classes, { epochs: 0, onProgress: () => {} }))
  await rejects('invalid_argument', /1\.5 is not a whole number/, net.fitAsync(x, classes, { epochs: 1.5 }))
  throws('invalid_argument', /23 samples and 1 epochs; a batch has 24/, () => net.fit(...samples(23)))
  assert.deepEqual([net.steps, net.sha256()], [0, create().sha256()])

  const other = create({ model: [{ linear: 2 }], loss: 'mse' })
  assert.deepEqual(other.sample, { dtype: 'f32', dims: [6], target: 'f32', targets: [2], outputs: [2] })
  throws('unsupported', /has none/, () => other.evaluate(batch[0], new Float32Array(48)))
  throws('invalid_argument', /targets must be a Float32Array; it is an array/, () => other.step(batch[0], batch[1]))
  assert.ok(other.step(batch[0], new Float32Array(48)) > 0)

  throws('invalid_argument', /the description must be an object; it is of the type string/, () => Trainer.create('{}'))
  throws('invalid_argument', /the description must be an object; it is an array/, () => Trainer.create([]))
  throws('invalid_argument', /unknown variant `lstm`/, () => create({ model: ['lstm'] }))
  throws('invalid_argument', /unknown field `layer`/, () => create({ layer: 3 }))
  throws('invalid_argument', /missing field `batch`/, () => create({ batch: null }))
  throws('invalid_argument', /be converted to JSON/, () => create({ batch: 24n }))
  throws('invalid_argument', /the training's description/, () => create({ seed: -1n }))
  throws('invalid_argument', /shards is 5; it must divide the batch of 24/, () => create({ shards: 5 }))
  throws('invalid_argument', /optimizer\.kind is 'lion'/, () => create({ optimizer: { kind: 'lion', rate: 1 } }))
  throws('invalid_argument', /threads=0: pass 1 to 1024/, () => create({}, { threads: 0 }))
  await rejects('invalid_argument', /tpu/, Trainer.createAsync(description, { device: 'tpu' }))
  await rejects('invalid_argument', /missing field `model`/, Trainer.createAsync({ ...description, model: undefined }))
  throws('invalid_argument', /Trainer\.create/, () => new Trainer({}))
})

test('a decoder learns ids', () => {
  const text = Array.from('a ferry came in, and another ferry came in. '.repeat(2), (one) => BigInt(one.charCodeAt(0)))
  const net = create({ model: { kind: 'gpt', layers: 1, heads: 1, width: 8, context: 8 }, input: undefined, batch: 4, shards: 2 })
  assert.deepEqual(net.sample, { dtype: 'i64', dims: [8], target: 'i64', targets: [8], outputs: [8, 256] })
  const [ids, targets] = [0, 1].map((behind) => BigInt64Array.from(text.slice(behind, behind + 64)))
  const before = net.evaluate(ids, targets)
  net.fit(ids, targets, { epochs: 20 })
  assert.ok(net.evaluate(ids, targets).loss < before.loss)
  assert.equal(net.predict(ids).length, 8 * 8 * 256)
  throws('invalid_argument', /x must be a BigInt64Array; it is an array/, () => net.predict([1, 2, 3, 4, 5, 6, 7, 8]))
  throws('invalid_argument', /element 0 of x is 256/, () => net.predict(new BigInt64Array(8).fill(256n)))
})

test('a job runs and goes on', async () => {
  const file = (name) => join(folder, name)
  writeFileSync(file('text'), 'a ferry came in, and nobody noticed. '.repeat(40))
  writeFileSync(
    file('job.toml'),
    `batch = 8
epochs = 2
shards = 2
data = { kind = "text", files = ["text"] }
model = { kind = "gpt", layers = 1, heads = 1, width = 8, context = 16 }
optimizer = { kind = "adam", rate = 0.01 }
checkpoint = { file = "state.safetensors" }
`,
  )
  const job = file('job.toml')
  const told = []
  const whole = train(job, { device: 'cpu', onProgress: (event) => told.push(event) })
  const [steps, over] = [false, true].map((is) => told.filter(({ epochIsOver }) => epochIsOver === is))
  assert.deepEqual(over.map(({ epoch }) => epoch), [1, 2])
  assert.deepEqual(steps.map(({ step }) => step), Array.from({ length: whole.steps }, (_, i) => i + 1))
  assert.ok(steps.every((event) => event.steps === whole.steps && event.loss > 0 && Number.isNaN(event.accuracy)))
  const { heldOutLoss, accuracy, seconds } = over[1]
  assert.deepEqual([whole.heldOutLoss, whole.accuracy, whole.device], [heldOutLoss, accuracy, 'cpu'])
  assert.ok(seconds > 0 && heldOutLoss > 0 && accuracy >= 0 && /^[0-9a-f]{64}$/.test(whole.sha256))

  rmSync(file('state.safetensors'))
  const half = await trainAsync(job, { device: 'cpu', threads: 1, epochs: 1 })
  assert.equal(2 * half.steps, whole.steps)
  const rest = []
  const resumed = await trainAsync(job, { device: 'cpu', resume: true, ranks: null, onProgress: ({ step }) => rest.push(step) })
  assert.deepEqual(resumed, whole)
  assert.equal(rest[0], half.steps + 1)

  rmSync(file('state.safetensors'))
  const ranks = await Promise.all((await places()).map((place) => trainAsync(job, { device: 'cpu', ranks: place, patience: 60 })))
  assert.deepEqual(ranks.map(({ sha256 }) => sha256), [whole.sha256, whole.sha256])
  assert.ok(ranks[0].heldOutLoss === whole.heldOutLoss && Number.isNaN(ranks[1].heldOutLoss))

  const enough = new Error('enough')
  const seen = []
  const onProgress = ({ step }) => {
    seen.push(step)
    if (step === 2) throw enough
  }
  assert.throws(() => train(job, { device: 'cpu', onProgress }), enough)
  await assert.rejects(trainAsync(job, { device: 'cpu', onProgress }), enough)
  assert.deepEqual(seen, [1, 2, 1, 2])

  throws('io', /none\.toml/, () => train(file('none.toml')))
  throws('io', /none\.toml/, () => train(file('none.toml'), { onProgress }))
  await rejects('invalid_argument', /text/, trainAsync(file('text')))
  throws('invalid_argument', /epochs is 0/, () => train(job, { epochs: 0 }))
  throws('invalid_argument', /patience is -1/, () => train(job, { patience: -1 }))
  throws('invalid_argument', /expected true or false, not a number/, () => train(job, { resume: 1 }))
  throws('invalid_argument', /'7' is no place of a rank/, () => train(job, { ranks: '7' }))
  await rejects('invalid_argument', /the path must be a string/, trainAsync(undefined))
})
