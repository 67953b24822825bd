import assert from 'node:assert/strict'
import { Context, Tensor } from 'adead'
import { Embedding, LayerNorm, TransformerEncoder, Weights } from 'adead/nn'

const context = new Context('cpu')
const weights = new Weights(process.argv[2]) // tests/sentences/tiny/model.safetensors, the small model from adead's own tests
const words = Embedding.load(weights, 'embeddings.word_embeddings', 92, 32, context)
const norm = LayerNorm.load(weights, 'embeddings.LayerNorm', 32, 1e-12, context)
const config = { width: 32, heads: 4, hidden: 48, activation: 'gelu_erf', eps: 1e-12 }
const encoder = TransformerEncoder.load(weights, 'encoder.layer', 2, config, context)

const ids = Uint32Array.of(2, 73, 74, 3, 2, 74, 3, 0) // two sequences; the second one is padded
const y = encoder.forward(norm.forward(words.forward(new Tensor(ids, [2, 4]))), { lengths: [4, 3] })
const alone = await encoder.forwardAsync(norm.forward(words.forward(new Tensor(ids.slice(4, 7), [3]))))
assert.deepEqual(y.toArray().slice(4 * 32, 7 * 32), alone.toArray()) // a sequence alone has the same bits
