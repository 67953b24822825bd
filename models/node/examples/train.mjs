import { Trainer } from 'adead-models'

// Points in a square, from a simple generator. The class says whether both coordinates have the same sign.
let state = 1
const draw = () => (state = (state * 16807) % 2147483647) / 1073741824 - 1
const points = new Float32Array(800)
const classes = Array.from({ length: 400 }, (_, number) => {
  const [x, y] = [draw(), draw()]
  points.set([x, y], 2 * number)
  return x * y > 0 ? 1 : 0
})

const net = await Trainer.createAsync({
  model: [{ linear: 32 }, 'tanh', { linear: 2 }],
  input: [2],
  optimizer: { kind: 'adam', rate: 0.02 },
  batch: 40,
  seed: 7,
})
await net.fitAsync(points, classes, {
  epochs: 40,
  onProgress(epoch, step, loss) {
    if (step % 100 === 0) console.log(`epoch ${epoch}, step ${step}: loss ${loss.toFixed(4)}`)
  },
})

const { accuracy } = net.evaluate(points, classes)
console.log(`${(100 * accuracy).toFixed(1)} % right, sha256 ${net.sha256()}`)
net.close()
