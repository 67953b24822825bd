import { TextGenerator } from 'adead-models'

const model = TextGenerator.open('SmolLM2-135M-Instruct.Q4_1.gguf')
// Sampled. A seed gives the same text on every device.
const stream = model.stream('Water boils at', { maxTokens: 20, temperature: 0.8, seed: 7 })
for await (const piece of stream) process.stdout.write(piece)
const { tokens, finish } = stream.generation
console.log(`\n${tokens.length} tokens, ${finish}`)

console.log(model.chat([{ role: 'user', content: 'Why is the sky blue?' }], { maxTokens: 20 }).text)
model.close()
