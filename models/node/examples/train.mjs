// A network learns which of two spirals a point is on. The hash of its weights is the same on every device.
import { Trainer } from 'adead-models'

const points = []
const classes = []
for (const side of [1, -1]) {
  for (let i = 0; i < 200; i++) {
    const angle = Math.sqrt(i / 200) * 3 * Math.PI
    points.push((side * angle * Math.cos(angle)) / 9, (side * angle * Math.sin(angle)) / 9)
    classes.push(side > 0 ? 1 : 0)
  }
}
const x = new Float32Array(points)

const net = Trainer.create({
  model: [{ linear: 64 }, 'tanh', { linear: 64 }, 'tanh', { linear: 2 }],
  input: [2],
  optimizer: { kind: 'adam', rate: 0.01 },
  batch: 50,
  seed: 7,
})
const onProgress = ({ epoch, loss }) => epoch % 20 === 0 && console.log(`epoch ${epoch}, loss ${loss.toFixed(4)}`)
await net.fitAsync(x, classes, { epochs: 100, onProgress })
const { accuracy } = net.evaluate(x, classes)
console.log(`${(100 * accuracy).toFixed(1)} % right on ${net.device}, sha256 ${net.sha256().slice(0, 16)}`)
net.close()
