import type { Abortable, Activation, Context, Tensor } from '../index'

/**
 * The tensors of a safetensors file by name. Opening reads the header; each tensor is read on request. The file must
 * not change while it is open.
 */
export class Weights {
  /** Opens a file. `io` if it can't be read, `invalid_argument` if it is not a safetensors file. */
  constructor(path: string)
  /** The file's path. */
  readonly path: string
  /** Returns every tensor's name, sorted. */
  names(): string[]
  /** Returns whether the file has a tensor of this name. */
  has(name: string): boolean
  /** Returns a tensor's dimensions. `invalid_argument` if there is no tensor of that name. */
  dims(name: string): number[]
  /**
   * Reads a tensor as f32; f16 and bf16 are widened, f64 is rounded. `invalid_argument` if there is no tensor of that name,
   * `shape_mismatch` if its dimensions differ, `dtype_mismatch` for other elements, `io` if it can't be read.
   */
  tensor(name: string, dims: readonly number[]): Tensor
  /** Closes the file; otherwise the garbage collector does. Later reads fail with `io`; tensors and layers stay valid.
   * */
  close(): void
}

/** A function of one tensor. A layer made without a context computes on the default one. */
export abstract class Layer {
  /** Computes the result. Its errors are those of its operations. */
  forward(x: Tensor): Tensor
  /** Like `forward`, on another thread. */
  forwardAsync(x: Tensor, options?: Abortable): Promise<Tensor>
}

/** Options of one call of a linear layer: `activation(x·Wᵀ + residual + bias)`, as one product. */
export interface LinearOptions {
  residual?: Tensor | null
  activation?: Activation
}

/** Computes `x·Wᵀ + bias` of `[…, inputs]`. If the context has no GPU, the weight, `[outputs, inputs]`, is packed once.
 * */
export class Linear extends Layer {
  /** Makes the layer. `shape_mismatch` if weight and bias don't fit. */
  constructor(weight: Tensor, bias?: Tensor | null, context?: Context)
  /** Loads the layer of `PREFIX.weight` and `PREFIX.bias`. */
  static load(weights: Weights, prefix: string, inputs: number, outputs: number, context?: Context): Linear
  readonly context: Context
  /** The size of an input row. */
  readonly inputs: number
  /** The size of an output row. */
  readonly outputs: number
  forward(x: Tensor, options?: LinearOptions): Tensor
  forwardAsync(x: Tensor, options?: LinearOptions & Abortable): Promise<Tensor>
}

/** Looks up rows of a table `[count, width]` by ids of any shape, i32, i64 or u32. `invalid_argument` for an id outside
 * the table. */
export class Embedding extends Layer {
  /** Makes the layer. `shape_mismatch` unless the table is a matrix. */
  constructor(table: Tensor, context?: Context)
  /** Loads the table `PREFIX.weight`. */
  static load(weights: Weights, prefix: string, count: number, width: number, context?: Context): Embedding
  readonly context: Context
  /** The number of rows of the table. */
  readonly count: number
  /** The size of a row. */
  readonly width: number
}

/** Normalises mean and variance over the last axis, multiplies by a weight and adds a bias, both `[width]`. */
export class LayerNorm extends Layer {
  /** Makes the layer. `eps`, by default 1e-5, is added to the variance. */
  constructor(weight: Tensor, bias: Tensor, eps?: number, context?: Context)
  /** Loads the layer of `PREFIX.weight` and `PREFIX.bias`. */
  static load(weights: Weights, prefix: string, width: number, eps?: number, context?: Context): LayerNorm
  readonly context: Context
}

/** Computes max(x, 0). */
export class ReLU extends Layer {
  constructor(context?: Context)
  readonly context: Context
}

/** Computes the Gaussian error linear unit, in its form with erf or with tanh. */
export class GELU extends Layer {
  constructor(form?: 'erf' | 'tanh', context?: Context)
  readonly context: Context
  readonly form: 'erf' | 'tanh'
}

/** Applies layers one after another: each takes the result of the one before. */
export class Sequential extends Layer {
  constructor(...layers: Layer[])
  readonly layers: readonly Layer[]
}

/** Computes `activation(x·W1ᵀ + b1)·W2ᵀ + b2`, plus a residual. */
export class FeedForward extends Layer {
  /** Makes the layer. `shape_mismatch` if the second layer does not fit the result of the first. The activation is
   * `gelu_erf` by default. */
  constructor(inner: Linear, outer: Linear, activation?: Activation)
  forward(x: Tensor, options?: { residual?: Tensor | null }): Tensor
  forwardAsync(x: Tensor, options?: { residual?: Tensor | null } & Abortable): Promise<Tensor>
}

/** The lengths of the sequences, one for each. The rows beyond them are padding, which no row attends to. */
export interface SequenceOptions {
  lengths?: readonly number[] | null
}

/** The configuration of an encoder's layers, which are all alike. */
export interface TransformerConfig {
  /** The size of a row. */
  width: number
  /** The number of attention heads. */
  heads: number
  /** The size between the two products of the feed-forward part. */
  hidden: number
  /** The function between those products; `gelu_erf` by default. */
  activation?: Activation
  /** The number added to variances; 1e-12 by default. */
  eps?: number
}

/** Computes self-attention: queries, keys and values as one product, then the heads, then the output's product, plus a
 * residual. */
export class MultiHeadAttention extends Layer {
  /**
   * Makes the layer from one layer that returns queries, keys and values in this order, and an output layer.
   * `shape_mismatch` if they don't fit each other, `invalid_argument` unless `heads` divides the width.
   */
  constructor(qkv: Linear, output: Linear, heads: number)
  /** Loads the layer from four linear ones by their prefixes: query, key, value, output; each maps `width` to `width`.
   * */
  static load(
    weights: Weights,
    prefixes: readonly [string, string, string, string],
    width: number,
    heads: number,
    context?: Context,
  ): MultiHeadAttention
  readonly context: Context
  readonly heads: number
  /** Computes attention within each sequence of `[count, length, width]`, or of the single one `[length, width]`. */
  forward(x: Tensor, options?: SequenceOptions & { residual?: Tensor | null }): Tensor
  forwardAsync(x: Tensor, options?: SequenceOptions & { residual?: Tensor | null } & Abortable): Promise<Tensor>
}

/** A layer that normalises after each part, as BERT does: `h = norm(x + attention(x))`, then `norm(h +
 * feedForward(h))`. */
export class TransformerLayer extends Layer {
  constructor(attention: MultiHeadAttention, attentionNorm: LayerNorm, feedForward: FeedForward, outputNorm: LayerNorm)
  /** Loads the layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on. */
  static load(weights: Weights, prefix: string, config: TransformerConfig, context?: Context): TransformerLayer
  forward(x: Tensor, options?: SequenceOptions): Tensor
  forwardAsync(x: Tensor, options?: SequenceOptions & Abortable): Promise<Tensor>
}

/** Applies transformer layers one after another. A sequence's rows have the same bits alone, among other sequences, and
 * padded. */
export class TransformerEncoder extends Layer {
  constructor(layers: Iterable<TransformerLayer>)
  /** Loads `layers` layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on. */
  static load(
    weights: Weights,
    prefix: string,
    layers: number,
    config: TransformerConfig,
    context?: Context,
  ): TransformerEncoder
  readonly layers: readonly TransformerLayer[]
  forward(x: Tensor, options?: SequenceOptions): Tensor
  forwardAsync(x: Tensor, options?: SequenceOptions & Abortable): Promise<Tensor>
}
