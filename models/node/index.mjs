import models from './index.js'

export const { AdeadError, Embeddings, SentenceEncoder } = models
export default models
