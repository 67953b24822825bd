import models from './index.js'

export const { AdeadError, Embeddings, SentenceEncoder, TextGenerator, TextStream } = models
export default models
