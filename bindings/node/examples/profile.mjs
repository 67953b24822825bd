import assert from 'node:assert/strict'
import { Context, Tensor } from 'adead'

const context = new Context()
const x = new Tensor(new Float32Array(256 * 256).fill(0.5), [256, 256])
const profile = context.profile({ records: 1000 })
for (let i = 0; i < 10; i++) context.softmax(context.matmul(x, x))
const report = profile.finish()
console.log(String(report))
const { count, flops } = report.totals.find(({ name }) => name === 'matmul')
assert.deepEqual([count, flops], [10, 10 * 2 * 256 ** 3])
const [first] = report.records
console.log(first.name, first.operands, first.device, first.reason, first.host.endNs - first.host.beginNs, 'ns')
assert.equal(JSON.parse(report.toJson()).ns, report.ns) // toTrace() gives a trace for Perfetto
