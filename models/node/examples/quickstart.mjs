import { SentenceEncoder } from 'adead-models'

const encoder = SentenceEncoder.open('all-MiniLM-L6-v2', { device: 'auto' })
const { values, rows, width } = await encoder.encodeAsync(['The ferry came in.', 'A boat arrived.'])
console.log(rows, width, values) // a Float32Array

async function* sentences() {
  for (let n = 0; n < 1000; n++) yield `ferry ${n}`
}
for await (const part of encoder.batchEmbed(sentences())) {
  console.log(part.first, part.rows, part.row(0)) // index of its first sentence, row count, one row
}
