// Prints the SHA-256 of the embeddings of a file's lines, of a stream and of one array, which must be the same:
// node hash.mjs MODEL FILE

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { SentenceEncoder } from '../index.mjs'

const [model, file] = process.argv.slice(2)
const sentences = readFileSync(file, 'utf8').slice(0, -1).split('\n')
const encoder = await SentenceEncoder.openAsync(model, { device: 'cpu' })
const streamed = createHash('sha256')
for await (const { values } of encoder.batchEmbed(sentences)) streamed.update(values)
const hash = streamed.digest('hex')
assert.equal(createHash('sha256').update(encoder.encode(sentences, { batch: 5, padded: true }).values).digest('hex'), hash)
console.log(hash)
