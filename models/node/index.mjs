import models from './index.js'

export const { AdeadError, Embeddings, SentenceEncoder, TextGenerator, TextStream } = models
export const { Trainer, train, trainAsync } = models
export const { convert, convertAsync, quantize, quantizeAsync } = models
export default models
