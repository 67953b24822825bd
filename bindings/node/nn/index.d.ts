import type { Abortable, Activation, Context, Tensor } from '../index'

/**
 * The tensors of a safetensors file by name. The header is read at once, a tensor when it is asked for. The file must not be
 * changed while this is open.
 */
export class Weights {
  /** Opens a file. `io` if it can't be read, `invalid_argument` if it is no safetensors file. */
  constructor(path: string)
  /** The file. */
  readonly path: string
  /** Every tensor's name, sorted. */
  names(): string[]
  /** Whether there is a tensor of that name. */
  has(name: string): boolean
  /** A tensor's dimensions. `invalid_argument` if there is none of that name. */
  dims(name: string): number[]
  /**
   * A tensor as f32, f16 and bf16 widened. `invalid_argument` if there is none of that name, `shape_mismatch` if its dimensions
   * are others, `dtype_mismatch` if it has other elements, `io` if it can't be read.
   */
  tensor(name: string, dims: readonly number[]): Tensor
  /** Closes the file, which the collector does else. What is asked of it then is `io`; tensors and layers stay. */
  close(): void
}

/** What takes a tensor and returns one. Made without a context, it computes on the default one. */
export abstract class Layer {
  /** Its result; the errors are those of its operations. */
  forward(x: Tensor): Tensor
  /** `forward` on another thread. */
  forwardAsync(x: Tensor, options?: Abortable): Promise<Tensor>
}

/** How a linear layer computes once: `activation(x·Wᵀ + residual + bias)`, as one product. */
export interface LinearOptions {
  residual?: Tensor | null
  activation?: Activation
}

/** `x·Wᵀ + bias` of `[…, inputs]`. The weight, `[outputs, inputs]`, is packed once where the context has no GPU. */
export class Linear extends Layer {
  /** `shape_mismatch` where weight and bias don't fit. */
  constructor(weight: Tensor, bias?: Tensor | null, context?: Context)
  /** The layer of `PREFIX.weight` and `PREFIX.bias`. */
  static load(weights: Weights, prefix: string, inputs: number, outputs: number, context?: Context): Linear
  readonly context: Context
  /** Values of a row that it takes. */
  readonly inputs: number
  /** Values of a row that it returns. */
  readonly outputs: number
  forward(x: Tensor, options?: LinearOptions): Tensor
  forwardAsync(x: Tensor, options?: LinearOptions & Abortable): Promise<Tensor>
}

/** Rows of a table `[count, width]` by ids of any shape, i32, i64 or u32; `invalid_argument` for an id outside the table. */
export class Embedding extends Layer {
  /** `shape_mismatch` unless the table is a matrix. */
  constructor(table: Tensor, context?: Context)
  /** The table `PREFIX.weight`. */
  static load(weights: Weights, prefix: string, count: number, width: number, context?: Context): Embedding
  readonly context: Context
  /** Rows of the table. */
  readonly count: number
  /** Values of a row. */
  readonly width: number
}

/** Mean and variance normalised over the last axis, times a weight, plus a bias, both `[width]`. */
export class LayerNorm extends Layer {
  /** `eps`, 1e-5 where it is left out, is added to the variance. */
  constructor(weight: Tensor, bias: Tensor, eps?: number, context?: Context)
  /** The layer of `PREFIX.weight` and `PREFIX.bias`. */
  static load(weights: Weights, prefix: string, width: number, eps?: number, context?: Context): LayerNorm
  readonly context: Context
}

/** max(x, 0). */
export class ReLU extends Layer {
  constructor(context?: Context)
  readonly context: Context
}

/** The Gaussian error linear unit, in its form with erf or with tanh. */
export class GELU extends Layer {
  constructor(form?: 'erf' | 'tanh', context?: Context)
  readonly context: Context
  readonly form: 'erf' | 'tanh'
}

/** Layers of which each takes the result of the one before. */
export class Sequential extends Layer {
  constructor(...layers: Layer[])
  readonly layers: readonly Layer[]
}

/** `activation(x·W1ᵀ + b1)·W2ᵀ + b2`, plus a residual. */
export class FeedForward extends Layer {
  /** `shape_mismatch` where the second does not take what the first returns. Without an activation it is `gelu_erf`. */
  constructor(inner: Linear, outer: Linear, activation?: Activation)
  forward(x: Tensor, options?: { residual?: Tensor | null }): Tensor
  forwardAsync(x: Tensor, options?: { residual?: Tensor | null } & Abortable): Promise<Tensor>
}

/** Which rows are sequences' own: with `lengths`, one for each, those behind them are padding, which nothing attends to. */
export interface SequenceOptions {
  lengths?: readonly number[] | null
}

/** What an encoder's layers are, all alike. */
export interface TransformerConfig {
  /** Values of a row. */
  width: number
  /** Heads of attention. */
  heads: number
  /** Values between the two products of the feed-forward part. */
  hidden: number
  /** Between those products; `gelu_erf` if it is left out. */
  activation?: Activation
  /** Added to variances; 1e-12 if it is left out. */
  eps?: number
}

/** Self-attention: queries, keys and values as one product, then the heads, then the output's product, plus a residual. */
export class MultiHeadAttention extends Layer {
  /**
   * Of a layer that returns queries, keys and values behind each other, and the output's. `shape_mismatch` where they don't fit
   * each other, `invalid_argument` unless `heads` divides the width.
   */
  constructor(qkv: Linear, output: Linear, heads: number)
  /** The layer of four linear ones, named by their prefixes: query, key, value, output; all of `width` to `width`. */
  static load(
    weights: Weights,
    prefixes: readonly [string, string, string, string],
    width: number,
    heads: number,
    context?: Context,
  ): MultiHeadAttention
  readonly context: Context
  readonly heads: number
  /** Attention within each sequence of `[count, length, width]`, or of the one that `[length, width]` is. */
  forward(x: Tensor, options?: SequenceOptions & { residual?: Tensor | null }): Tensor
  forwardAsync(x: Tensor, options?: SequenceOptions & { residual?: Tensor | null } & Abortable): Promise<Tensor>
}

/** A layer normalised behind each part, as BERT's are: `h = norm(x + attention(x))`, then `norm(h + feedForward(h))`. */
export class TransformerLayer extends Layer {
  constructor(attention: MultiHeadAttention, attentionNorm: LayerNorm, feedForward: FeedForward, outputNorm: LayerNorm)
  /** The layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on. */
  static load(weights: Weights, prefix: string, config: TransformerConfig, context?: Context): TransformerLayer
  forward(x: Tensor, options?: SequenceOptions): Tensor
  forwardAsync(x: Tensor, options?: SequenceOptions & Abortable): Promise<Tensor>
}

/** Transformer layers one after another. A sequence's rows have the same bits alone, among others, and padded. */
export class TransformerEncoder extends Layer {
  constructor(layers: Iterable<TransformerLayer>)
  /** So many layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on. */
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
