import nn from './index.js'

export const {
  Embedding,
  FeedForward,
  GELU,
  Layer,
  LayerNorm,
  Linear,
  MultiHeadAttention,
  ReLU,
  Sequential,
  TransformerEncoder,
  TransformerLayer,
  Weights,
} = nn
export default nn
