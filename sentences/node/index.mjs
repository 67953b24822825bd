import sentences from './index.js'

export const { AdeadError, Embeddings, SentenceEncoder } = sentences
export default sentences
