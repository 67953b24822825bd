import { Context, setLogger } from 'adead'

setLogger((level, target, message) => console.log(level, target, message), { level: 'debug' })
const context = new Context('cpu') // info adead.devices opened cpu: …
console.log(context.device.id)
