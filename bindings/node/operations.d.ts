// Generated from the op table by `ADEAD_BLESS=1 cargo test -p adead-node`; don't edit.
import type { Value } from './native'
import type { Tensor } from './tensor'

/** An operation. */
export type OpName =
  | 'matmul'
  | 'dot'
  | 'add'
  | 'sub'
  | 'mul'
  | 'div'
  | 'scale'
  | 'neg'
  | 'abs'
  | 'exp'
  | 'log'
  | 'sqrt'
  | 'rsqrt'
  | 'relu'
  | 'sigmoid'
  | 'tanh'
  | 'gelu'
  | 'silu'
  | 'softmax'
  | 'sum'
  | 'mean'
  | 'max'
  | 'argmax'
  | 'layernorm'
  | 'rmsnorm'
  | 'attention'
  | 'ffn'
  | 'embedding'
  | 'transpose'
  | 'concat'
  | 'cast'
  | 'floor'
  | 'round'
  | 'erf'
  | 'clamp'
  | 'maximum'
  | 'minimum'
  | 'sin'
  | 'cos'
  | 'log1p'
  | 'expm1'
  | 'pow'
  | 'min'
  | 'argmin'
  | 'prod'
  | 'slice'
  | 'pad'
  | 'gather'
  | 'rope'
  | 'cumsum'
  | 'topk'
  | 'argtopk'
  | 'equal'
  | 'not_equal'
  | 'less'
  | 'less_equal'
  | 'greater'
  | 'greater_equal'
  | 'where'
  | 'quantized_matmul'
  | 'dequantize'

/** The type of a tensor's elements. */
export type DType =
  | 'f32'
  | 'f16'
  | 'bf16'
  | 'i32'
  | 'i64'
  | 'u32'
  | 'bool'
  | 'u8'
  | 'f64'

/** Operations with similar costs. */
export type Family =
  | 'matmul'
  | 'attention'
  | 'elementwise'
  | 'function'
  | 'reduction'
  | 'move'

/** The function after a matrix product. */
export type Activation =
  | 'none'
  | 'relu'
  | 'sigmoid'
  | 'tanh'
  | 'gelu_tanh'
  | 'gelu_erf'
  | 'silu'

/** How the elements of a quantised matrix are stored. */
export type BlockFormat =
  | 'q8_0'
  | 'q4_0'
  | 'q4_1'
  | 'q5_0'
  | 'q5_1'
  | 'q4_k'
  | 'q5_k'
  | 'q6_k'

/** Why a call failed. */
export type StatusName =
  | 'invalid_argument'
  | 'shape_mismatch'
  | 'dtype_mismatch'
  | 'out_of_memory'
  | 'backend_unavailable'
  | 'device_lost'
  | 'invalid_kernel'
  | 'invalid_program'
  | 'unsupported'
  | 'not_ready'
  | 'io'
  | 'internal'

/** The attributes of every operation. */
export interface Attributes {
  activation?: Activation
  after?: number[]
  alpha?: number
  axes?: number[]
  axis?: number | 'all'
  before?: number[]
  beta?: number
  causal?: boolean
  dtype?: DType
  eps?: number
  form?: 'erf' | 'tanh'
  format?: BlockFormat
  interleaved?: boolean
  k?: number
  keepdim?: boolean
  max?: number
  min?: number
  perm?: number[]
  precision?: 'f32' | 'fixed24' | 'fixed16'
  scale?: number
  start?: number[]
  step?: number[]
  stop?: number[]
  transA?: boolean
  transB?: boolean
}

/** A signal that ends a promise, and its work if that has begun. */
export interface Abortable {
  signal?: AbortSignal
}

/** An operand in a pipeline: a tensor, which is the same in each run, or a value of the pipeline. */
export type Operand = Tensor | Value

/** Options of `matmul`. */
export interface MatmulOptions<T = Tensor> {
  c?: T | null
  bias?: T | null
  transA?: boolean
  transB?: boolean
  alpha?: number
  beta?: number
  activation?: Activation
  precision?: 'f32' | 'fixed24' | 'fixed16'
}

/** Options of `scale`. */
export interface ScaleOptions {
  alpha?: number
}

/** Options of `gelu`. */
export interface GeluOptions {
  form?: 'erf' | 'tanh'
}

/** Options of `softmax`. */
export interface SoftmaxOptions {
  axis?: number | 'all'
}

/** Options of `sum`. */
export interface SumOptions {
  axis?: number | 'all'
  keepdim?: boolean
  axes?: number[]
}

/** Options of `mean`. */
export interface MeanOptions {
  axis?: number | 'all'
  keepdim?: boolean
  axes?: number[]
}

/** Options of `max`. */
export interface MaxOptions {
  axis?: number | 'all'
  keepdim?: boolean
  axes?: number[]
}

/** Options of `argmax`. */
export interface ArgmaxOptions {
  axis?: number | 'all'
  keepdim?: boolean
  dtype?: DType
}

/** Options of `layernorm`. */
export interface LayernormOptions<T = Tensor> {
  gamma?: T | null
  beta?: T | null
  residual?: T | null
  eps?: number
}

/** Options of `rmsnorm`. */
export interface RmsnormOptions<T = Tensor> {
  gamma?: T | null
  residual?: T | null
  eps?: number
}

/** Options of `attention`. */
export interface AttentionOptions<T = Tensor> {
  mask?: T | null
  causal?: boolean
  scale?: number
  precision?: 'f32' | 'fixed24' | 'fixed16'
}

/** Options of `ffn`. */
export interface FfnOptions<T = Tensor> {
  b1?: T | null
  b2?: T | null
  activation?: Activation
  precision?: 'f32' | 'fixed24' | 'fixed16'
}

/** Options of `transpose`. */
export interface TransposeOptions {
  perm?: number[]
}

/** Options of `concat`. */
export interface ConcatOptions {
  axis?: number | 'all'
}

/** Options of `cast`. */
export interface CastOptions {
  dtype?: DType
}

/** Options of `clamp`. */
export interface ClampOptions {
  min?: number
  max?: number
}

/** Options of `min`. */
export interface MinOptions {
  axis?: number | 'all'
  keepdim?: boolean
  axes?: number[]
}

/** Options of `argmin`. */
export interface ArgminOptions {
  axis?: number | 'all'
  keepdim?: boolean
  dtype?: DType
}

/** Options of `prod`. */
export interface ProdOptions {
  axis?: number | 'all'
  keepdim?: boolean
  axes?: number[]
}

/** Options of `slice`. */
export interface SliceOptions {
  start?: number[]
  stop?: number[]
  step?: number[]
}

/** Options of `pad`. */
export interface PadOptions {
  before?: number[]
  after?: number[]
  step?: number[]
}

/** Options of `gather`. */
export interface GatherOptions {
  axis?: number | 'all'
}

/** Options of `rope`. */
export interface RopeOptions {
  interleaved?: boolean
}

/** Options of `cumsum`. */
export interface CumsumOptions {
  axis?: number | 'all'
}

/** Options of `topk`. */
export interface TopkOptions {
  k?: number
  axis?: number | 'all'
}

/** Options of `argtopk`. */
export interface ArgtopkOptions {
  k?: number
  axis?: number | 'all'
  dtype?: DType
}

/** Options of `quantizedMatmul`. */
export interface QuantizedMatmulOptions {
  format?: BlockFormat
}

/** Options of `dequantize`. */
export interface DequantizeOptions {
  format?: BlockFormat
}

/** The operations of a `Context`. */
export interface ContextOperations {
  /**
   * `alpha·(a·b) + beta·c + bias`, then an activation.
   *
   * Operands: a f[…,M,K], b f[…,K,N], c? f broadcast to the result, bias? f[N].
   * Attributes: transA (0), transB (0), alpha (1), beta (0), activation (none), precision (f32).
   * Result: f[…,M,N].
   */
  matmul(a: Tensor, b: Tensor, options?: MatmulOptions): Tensor
  /** `matmul` on another thread. */
  matmulAsync(a: Tensor, b: Tensor, options?: MatmulOptions & Abortable): Promise<Tensor>
  /**
   * The inner product of two vectors.
   *
   * Operands: a f[K], b f[K].
   * Attributes: none.
   * Result: f[].
   */
  dot(a: Tensor, b: Tensor): Tensor
  /** `dot` on another thread. */
  dotAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a + b`.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  add(a: Tensor, b: Tensor): Tensor
  /** `add` on another thread. */
  addAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a − b`.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  sub(a: Tensor, b: Tensor): Tensor
  /** `sub` on another thread. */
  subAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a·b`, element by element.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  mul(a: Tensor, b: Tensor): Tensor
  /** `mul` on another thread. */
  mulAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a / b`.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  div(a: Tensor, b: Tensor): Tensor
  /** `div` on another thread. */
  divAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `x·alpha`.
   *
   * Operands: x f.
   * Attributes: alpha (1).
   * Result: f, same shape.
   */
  scale(x: Tensor, options?: ScaleOptions): Tensor
  /** `scale` on another thread. */
  scaleAsync(x: Tensor, options?: ScaleOptions & Abortable): Promise<Tensor>
  /**
   * `−x`.
   *
   * Operands: x any.
   * Attributes: none.
   * Result: any, same shape.
   */
  neg(x: Tensor): Tensor
  /** `neg` on another thread. */
  negAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `|x|`.
   *
   * Operands: x any.
   * Attributes: none.
   * Result: any, same shape.
   */
  abs(x: Tensor): Tensor
  /** `abs` on another thread. */
  absAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `e^x`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  exp(x: Tensor): Tensor
  /** `exp` on another thread. */
  expAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The natural logarithm; NaN if x < 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log(x: Tensor): Tensor
  /** `log` on another thread. */
  logAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The square root; NaN if x < 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sqrt(x: Tensor): Tensor
  /** `sqrt` on another thread. */
  sqrtAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `1 / sqrt(x)`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  rsqrt(x: Tensor): Tensor
  /** `rsqrt` on another thread. */
  rsqrtAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `max(x, 0)`; NaN stays NaN.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  relu(x: Tensor): Tensor
  /** `relu` on another thread. */
  reluAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `1 / (1 + e^−x)`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sigmoid(x: Tensor): Tensor
  /** `sigmoid` on another thread. */
  sigmoidAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The hyperbolic tangent.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  tanh(x: Tensor): Tensor
  /** `tanh` on another thread. */
  tanhAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The Gaussian error linear unit, with erf or tanh.
   *
   * Operands: x f.
   * Attributes: form (`erf`; or `tanh`).
   * Result: f, same shape.
   */
  gelu(x: Tensor, options?: GeluOptions): Tensor
  /** `gelu` on another thread. */
  geluAsync(x: Tensor, options?: GeluOptions & Abortable): Promise<Tensor>
  /**
   * `x·sigmoid(x)`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  silu(x: Tensor): Tensor
  /** `silu` on another thread. */
  siluAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `e^x` divided by its sum along an axis.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  softmax(x: Tensor, options?: SoftmaxOptions): Tensor
  /** `softmax` on another thread. */
  softmaxAsync(x: Tensor, options?: SoftmaxOptions & Abortable): Promise<Tensor>
  /**
   * The sum over some or all axes; +0 for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  sum(x: Tensor, options?: SumOptions): Tensor
  /** `sum` on another thread. */
  sumAsync(x: Tensor, options?: SumOptions & Abortable): Promise<Tensor>
  /**
   * The mean over some or all axes; NaN for no elements.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  mean(x: Tensor, options?: MeanOptions): Tensor
  /** `mean` on another thread. */
  meanAsync(x: Tensor, options?: MeanOptions & Abortable): Promise<Tensor>
  /**
   * The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  max(x: Tensor, options?: MaxOptions): Tensor
  /** `max` on another thread. */
  maxAsync(x: Tensor, options?: MaxOptions & Abortable): Promise<Tensor>
  /**
   * The index of the first maximum, i64. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmax(x: Tensor, options?: ArgmaxOptions): Tensor
  /** `argmax` on another thread. */
  argmaxAsync(x: Tensor, options?: ArgmaxOptions & Abortable): Promise<Tensor>
  /**
   * Normalises mean and variance over the last axis, of x or x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], beta? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  layernorm(x: Tensor, options?: LayernormOptions): Tensor
  /** `layernorm` on another thread. */
  layernormAsync(x: Tensor, options?: LayernormOptions & Abortable): Promise<Tensor>
  /**
   * Normalises the root mean square over the last axis, of x or x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  rmsnorm(x: Tensor, options?: RmsnormOptions): Tensor
  /** `rmsnorm` on another thread. */
  rmsnormAsync(x: Tensor, options?: RmsnormOptions & Abortable): Promise<Tensor>
  /**
   * Scaled dot-product attention: values weighted by softmax.
   *
   * Operands: q f[…,Hq,Sq,D], k f[…,Hkv,Sk,D], v f[…,Hkv,Sk,Dv], mask? f broadcast to […,Hq,Sq,Sk].
   * Attributes: causal (0), scale (0 = 1/sqrt(D)), precision (f32).
   * Result: f[…,Hq,Sq,Dv].
   */
  attention(q: Tensor, k: Tensor, v: Tensor, options?: AttentionOptions): Tensor
  /** `attention` on another thread. */
  attentionAsync(q: Tensor, k: Tensor, v: Tensor, options?: AttentionOptions & Abortable): Promise<Tensor>
  /**
   * Two matrix products with an activation between them.
   *
   * Operands: x f[…,D], w1 f[D,H], b1? f[H], w2 f[H,E], b2? f[E].
   * Attributes: activation (relu), precision (f32).
   * Result: f[…,E].
   */
  ffn(x: Tensor, w1: Tensor, w2: Tensor, options?: FfnOptions): Tensor
  /** `ffn` on another thread. */
  ffnAsync(x: Tensor, w1: Tensor, w2: Tensor, options?: FfnOptions & Abortable): Promise<Tensor>
  /**
   * Looks up rows of a table by id.
   *
   * Operands: table any[V,…], ids i[…].
   * Attributes: none.
   * Result: any[ids…, table's row…].
   */
  embedding(table: Tensor, ids: Tensor): Tensor
  /** `embedding` on another thread. */
  embeddingAsync(table: Tensor, ids: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Permutes the axes.
   *
   * Operands: x any.
   * Attributes: perm (axes reversed).
   * Result: any.
   */
  transpose(x: Tensor, options?: TransposeOptions): Tensor
  /** `transpose` on another thread. */
  transposeAsync(x: Tensor, options?: TransposeOptions & Abortable): Promise<Tensor>
  /**
   * Joins tensors along an axis.
   *
   * Operands: one or more any, same rank ≥ 1.
   * Attributes: axis (0).
   * Result: any.
   */
  concat(x: Tensor[], options?: ConcatOptions): Tensor
  /** `concat` on another thread. */
  concatAsync(x: Tensor[], options?: ConcatOptions & Abortable): Promise<Tensor>
  /**
   * Converts to another dtype.
   *
   * Operands: x any.
   * Attributes: dtype (f32).
   * Result: dtype.
   */
  cast(x: Tensor, options?: CastOptions): Tensor
  /** `cast` on another thread. */
  castAsync(x: Tensor, options?: CastOptions & Abortable): Promise<Tensor>
  /**
   * The largest integer ≤ x.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  floor(x: Tensor): Tensor
  /** `floor` on another thread. */
  floorAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The nearest integer; ties go to even.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  round(x: Tensor): Tensor
  /** `round` on another thread. */
  roundAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The error function.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  erf(x: Tensor): Tensor
  /** `erf` on another thread. */
  erfAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `minimum(maximum(x, min), max)`; NaN propagates, and −0 < +0.
   *
   * Operands: x f.
   * Attributes: min (-inf), max (inf).
   * Result: f, same shape.
   */
  clamp(x: Tensor, options?: ClampOptions): Tensor
  /** `clamp` on another thread. */
  clampAsync(x: Tensor, options?: ClampOptions & Abortable): Promise<Tensor>
  /**
   * The larger of a and b; NaN propagates, and −0 < +0.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  maximum(a: Tensor, b: Tensor): Tensor
  /** `maximum` on another thread. */
  maximumAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The smaller of a and b; NaN propagates, and −0 < +0.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  minimum(a: Tensor, b: Tensor): Tensor
  /** `minimum` on another thread. */
  minimumAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The sine of x in radians; NaN if x is infinite.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sin(x: Tensor): Tensor
  /** `sin` on another thread. */
  sinAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The cosine of x in radians; NaN if x is infinite.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  cos(x: Tensor): Tensor
  /** `cos` on another thread. */
  cosAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `log(1 + x)`, also accurate near 0; NaN if x < −1.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log1p(x: Tensor): Tensor
  /** `log1p` on another thread. */
  log1pAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `e^x − 1`, also accurate near 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  expm1(x: Tensor): Tensor
  /** `expm1` on another thread. */
  expm1Async(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  pow(a: Tensor, b: Tensor): Tensor
  /** `pow` on another thread. */
  powAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  min(x: Tensor, options?: MinOptions): Tensor
  /** `min` on another thread. */
  minAsync(x: Tensor, options?: MinOptions & Abortable): Promise<Tensor>
  /**
   * The index of the first minimum, i64. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmin(x: Tensor, options?: ArgminOptions): Tensor
  /** `argmin` on another thread. */
  argminAsync(x: Tensor, options?: ArgminOptions & Abortable): Promise<Tensor>
  /**
   * The product over some or all axes; 1 for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  prod(x: Tensor, options?: ProdOptions): Tensor
  /** `prod` on another thread. */
  prodAsync(x: Tensor, options?: ProdOptions & Abortable): Promise<Tensor>
  /**
   * Slices every axis from a start to a stop, in steps.
   *
   * Operands: x any.
   * Attributes: start (0 for each axis), stop (its end), step (1).
   * Result: any.
   */
  slice(x: Tensor, options?: SliceOptions): Tensor
  /** `slice` on another thread. */
  sliceAsync(x: Tensor, options?: SliceOptions & Abortable): Promise<Tensor>
  /**
   * Pads every axis with a value: before, after and between its elements.
   *
   * Operands: x any, value any, one element.
   * Attributes: before (0 for each axis), after (0), step (1).
   * Result: any.
   */
  pad(x: Tensor, value: Tensor, options?: PadOptions): Tensor
  /** `pad` on another thread. */
  padAsync(x: Tensor, value: Tensor, options?: PadOptions & Abortable): Promise<Tensor>
  /**
   * Gathers elements along an axis by index.
   *
   * Operands: x any, ids i, the shape of x but for the axis.
   * Attributes: axis (-1).
   * Result: any, the shape of ids.
   */
  gather(x: Tensor, ids: Tensor, options?: GatherOptions): Tensor
  /** `gather` on another thread. */
  gatherAsync(x: Tensor, ids: Tensor, options?: GatherOptions & Abortable): Promise<Tensor>
  /**
   * Rotates pairs of elements of the last axis by angles.
   *
   * Operands: x f[…,D], cos f, sin f, both broadcast to […,D/2].
   * Attributes: interleaved (0).
   * Result: f, same shape.
   */
  rope(x: Tensor, cos: Tensor, sin: Tensor, options?: RopeOptions): Tensor
  /** `rope` on another thread. */
  ropeAsync(x: Tensor, cos: Tensor, sin: Tensor, options?: RopeOptions & Abortable): Promise<Tensor>
  /**
   * The cumulative sums along an axis.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  cumsum(x: Tensor, options?: CumsumOptions): Tensor
  /** `cumsum` on another thread. */
  cumsumAsync(x: Tensor, options?: CumsumOptions & Abortable): Promise<Tensor>
  /**
   * The k greatest elements along an axis, greatest first; ties go to the lower index.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: k (1), axis (-1).
   * Result: f, k elements on the axis.
   */
  topk(x: Tensor, options?: TopkOptions): Tensor
  /** `topk` on another thread. */
  topkAsync(x: Tensor, options?: TopkOptions & Abortable): Promise<Tensor>
  /**
   * The indices of the k greatest elements along an axis, i64; ties go to the lower index.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: k (1), axis (-1), dtype (i64; or i32, u32).
   * Result: i, k elements on the axis.
   */
  argtopk(x: Tensor, options?: ArgtopkOptions): Tensor
  /** `argtopk` on another thread. */
  argtopkAsync(x: Tensor, options?: ArgtopkOptions & Abortable): Promise<Tensor>
  /**
   * Whether a equals b; NaN equals nothing, and −0 equals +0.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  equal(a: Tensor, b: Tensor): Tensor
  /** `equal` on another thread. */
  equalAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a differs from b; true for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  notEqual(a: Tensor, b: Tensor): Tensor
  /** `notEqual` on another thread. */
  notEqualAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a < b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  less(a: Tensor, b: Tensor): Tensor
  /** `less` on another thread. */
  lessAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a ≤ b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  lessEqual(a: Tensor, b: Tensor): Tensor
  /** `lessEqual` on another thread. */
  lessEqualAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a > b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greater(a: Tensor, b: Tensor): Tensor
  /** `greater` on another thread. */
  greaterAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a ≥ b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greaterEqual(a: Tensor, b: Tensor): Tensor
  /** `greaterEqual` on another thread. */
  greaterEqualAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Selects from a where the condition is true, and from b elsewhere.
   *
   * Operands: condition bool, a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  where(condition: Tensor, a: Tensor, b: Tensor): Tensor
  /** `where` on another thread. */
  whereAsync(condition: Tensor, a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
   *
   * Operands: x f32[…,K], w u8[N, bytes of a row].
   * Attributes: format (must be given).
   * Result: f32[…,N].
   */
  quantizedMatmul(x: Tensor, w: Tensor, options?: QuantizedMatmulOptions): Tensor
  /** `quantizedMatmul` on another thread. */
  quantizedMatmulAsync(x: Tensor, w: Tensor, options?: QuantizedMatmulOptions & Abortable): Promise<Tensor>
  /**
   * Converts quantised blocks to f32.
   *
   * Operands: w u8[…, bytes of a row].
   * Attributes: format (must be given).
   * Result: f32[…,K].
   */
  dequantize(w: Tensor, options?: DequantizeOptions): Tensor
  /** `dequantize` on another thread. */
  dequantizeAsync(w: Tensor, options?: DequantizeOptions & Abortable): Promise<Tensor>
}

/** The operations of a `Tensor`, on the default context. */
export interface TensorOperations {
  /**
   * `alpha·(a·b) + beta·c + bias`, then an activation.
   *
   * Operands: a f[…,M,K], b f[…,K,N], c? f broadcast to the result, bias? f[N].
   * Attributes: transA (0), transB (0), alpha (1), beta (0), activation (none), precision (f32).
   * Result: f[…,M,N].
   */
  matmul(b: Tensor, options?: MatmulOptions): Tensor
  /** `matmul` on another thread. */
  matmulAsync(b: Tensor, options?: MatmulOptions & Abortable): Promise<Tensor>
  /**
   * The inner product of two vectors.
   *
   * Operands: a f[K], b f[K].
   * Attributes: none.
   * Result: f[].
   */
  dot(b: Tensor): Tensor
  /** `dot` on another thread. */
  dotAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a + b`.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  add(b: Tensor): Tensor
  /** `add` on another thread. */
  addAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a − b`.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  sub(b: Tensor): Tensor
  /** `sub` on another thread. */
  subAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a·b`, element by element.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  mul(b: Tensor): Tensor
  /** `mul` on another thread. */
  mulAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a / b`.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  div(b: Tensor): Tensor
  /** `div` on another thread. */
  divAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `x·alpha`.
   *
   * Operands: x f.
   * Attributes: alpha (1).
   * Result: f, same shape.
   */
  scale(options?: ScaleOptions): Tensor
  /** `scale` on another thread. */
  scaleAsync(options?: ScaleOptions & Abortable): Promise<Tensor>
  /**
   * `−x`.
   *
   * Operands: x any.
   * Attributes: none.
   * Result: any, same shape.
   */
  neg(): Tensor
  /** `neg` on another thread. */
  negAsync(options?: Abortable): Promise<Tensor>
  /**
   * `|x|`.
   *
   * Operands: x any.
   * Attributes: none.
   * Result: any, same shape.
   */
  abs(): Tensor
  /** `abs` on another thread. */
  absAsync(options?: Abortable): Promise<Tensor>
  /**
   * `e^x`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  exp(): Tensor
  /** `exp` on another thread. */
  expAsync(options?: Abortable): Promise<Tensor>
  /**
   * The natural logarithm; NaN if x < 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log(): Tensor
  /** `log` on another thread. */
  logAsync(options?: Abortable): Promise<Tensor>
  /**
   * The square root; NaN if x < 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sqrt(): Tensor
  /** `sqrt` on another thread. */
  sqrtAsync(options?: Abortable): Promise<Tensor>
  /**
   * `1 / sqrt(x)`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  rsqrt(): Tensor
  /** `rsqrt` on another thread. */
  rsqrtAsync(options?: Abortable): Promise<Tensor>
  /**
   * `max(x, 0)`; NaN stays NaN.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  relu(): Tensor
  /** `relu` on another thread. */
  reluAsync(options?: Abortable): Promise<Tensor>
  /**
   * `1 / (1 + e^−x)`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sigmoid(): Tensor
  /** `sigmoid` on another thread. */
  sigmoidAsync(options?: Abortable): Promise<Tensor>
  /**
   * The hyperbolic tangent.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  tanh(): Tensor
  /** `tanh` on another thread. */
  tanhAsync(options?: Abortable): Promise<Tensor>
  /**
   * The Gaussian error linear unit, with erf or tanh.
   *
   * Operands: x f.
   * Attributes: form (`erf`; or `tanh`).
   * Result: f, same shape.
   */
  gelu(options?: GeluOptions): Tensor
  /** `gelu` on another thread. */
  geluAsync(options?: GeluOptions & Abortable): Promise<Tensor>
  /**
   * `x·sigmoid(x)`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  silu(): Tensor
  /** `silu` on another thread. */
  siluAsync(options?: Abortable): Promise<Tensor>
  /**
   * `e^x` divided by its sum along an axis.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  softmax(options?: SoftmaxOptions): Tensor
  /** `softmax` on another thread. */
  softmaxAsync(options?: SoftmaxOptions & Abortable): Promise<Tensor>
  /**
   * The sum over some or all axes; +0 for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  sum(options?: SumOptions): Tensor
  /** `sum` on another thread. */
  sumAsync(options?: SumOptions & Abortable): Promise<Tensor>
  /**
   * The mean over some or all axes; NaN for no elements.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  mean(options?: MeanOptions): Tensor
  /** `mean` on another thread. */
  meanAsync(options?: MeanOptions & Abortable): Promise<Tensor>
  /**
   * The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  max(options?: MaxOptions): Tensor
  /** `max` on another thread. */
  maxAsync(options?: MaxOptions & Abortable): Promise<Tensor>
  /**
   * The index of the first maximum, i64. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmax(options?: ArgmaxOptions): Tensor
  /** `argmax` on another thread. */
  argmaxAsync(options?: ArgmaxOptions & Abortable): Promise<Tensor>
  /**
   * Normalises mean and variance over the last axis, of x or x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], beta? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  layernorm(options?: LayernormOptions): Tensor
  /** `layernorm` on another thread. */
  layernormAsync(options?: LayernormOptions & Abortable): Promise<Tensor>
  /**
   * Normalises the root mean square over the last axis, of x or x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  rmsnorm(options?: RmsnormOptions): Tensor
  /** `rmsnorm` on another thread. */
  rmsnormAsync(options?: RmsnormOptions & Abortable): Promise<Tensor>
  /**
   * Scaled dot-product attention: values weighted by softmax.
   *
   * Operands: q f[…,Hq,Sq,D], k f[…,Hkv,Sk,D], v f[…,Hkv,Sk,Dv], mask? f broadcast to […,Hq,Sq,Sk].
   * Attributes: causal (0), scale (0 = 1/sqrt(D)), precision (f32).
   * Result: f[…,Hq,Sq,Dv].
   */
  attention(k: Tensor, v: Tensor, options?: AttentionOptions): Tensor
  /** `attention` on another thread. */
  attentionAsync(k: Tensor, v: Tensor, options?: AttentionOptions & Abortable): Promise<Tensor>
  /**
   * Two matrix products with an activation between them.
   *
   * Operands: x f[…,D], w1 f[D,H], b1? f[H], w2 f[H,E], b2? f[E].
   * Attributes: activation (relu), precision (f32).
   * Result: f[…,E].
   */
  ffn(w1: Tensor, w2: Tensor, options?: FfnOptions): Tensor
  /** `ffn` on another thread. */
  ffnAsync(w1: Tensor, w2: Tensor, options?: FfnOptions & Abortable): Promise<Tensor>
  /**
   * Looks up rows of a table by id.
   *
   * Operands: table any[V,…], ids i[…].
   * Attributes: none.
   * Result: any[ids…, table's row…].
   */
  embedding(ids: Tensor): Tensor
  /** `embedding` on another thread. */
  embeddingAsync(ids: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Permutes the axes.
   *
   * Operands: x any.
   * Attributes: perm (axes reversed).
   * Result: any.
   */
  transpose(options?: TransposeOptions): Tensor
  /** `transpose` on another thread. */
  transposeAsync(options?: TransposeOptions & Abortable): Promise<Tensor>
  /**
   * Joins tensors along an axis.
   *
   * Operands: one or more any, same rank ≥ 1.
   * Attributes: axis (0).
   * Result: any.
   */
  concat(x: Tensor[], options?: ConcatOptions): Tensor
  /** `concat` on another thread. */
  concatAsync(x: Tensor[], options?: ConcatOptions & Abortable): Promise<Tensor>
  /**
   * Converts to another dtype.
   *
   * Operands: x any.
   * Attributes: dtype (f32).
   * Result: dtype.
   */
  cast(options?: CastOptions): Tensor
  /** `cast` on another thread. */
  castAsync(options?: CastOptions & Abortable): Promise<Tensor>
  /**
   * The largest integer ≤ x.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  floor(): Tensor
  /** `floor` on another thread. */
  floorAsync(options?: Abortable): Promise<Tensor>
  /**
   * The nearest integer; ties go to even.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  round(): Tensor
  /** `round` on another thread. */
  roundAsync(options?: Abortable): Promise<Tensor>
  /**
   * The error function.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  erf(): Tensor
  /** `erf` on another thread. */
  erfAsync(options?: Abortable): Promise<Tensor>
  /**
   * `minimum(maximum(x, min), max)`; NaN propagates, and −0 < +0.
   *
   * Operands: x f.
   * Attributes: min (-inf), max (inf).
   * Result: f, same shape.
   */
  clamp(options?: ClampOptions): Tensor
  /** `clamp` on another thread. */
  clampAsync(options?: ClampOptions & Abortable): Promise<Tensor>
  /**
   * The larger of a and b; NaN propagates, and −0 < +0.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  maximum(b: Tensor): Tensor
  /** `maximum` on another thread. */
  maximumAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The smaller of a and b; NaN propagates, and −0 < +0.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  minimum(b: Tensor): Tensor
  /** `minimum` on another thread. */
  minimumAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The sine of x in radians; NaN if x is infinite.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sin(): Tensor
  /** `sin` on another thread. */
  sinAsync(options?: Abortable): Promise<Tensor>
  /**
   * The cosine of x in radians; NaN if x is infinite.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  cos(): Tensor
  /** `cos` on another thread. */
  cosAsync(options?: Abortable): Promise<Tensor>
  /**
   * `log(1 + x)`, also accurate near 0; NaN if x < −1.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log1p(): Tensor
  /** `log1p` on another thread. */
  log1pAsync(options?: Abortable): Promise<Tensor>
  /**
   * `e^x − 1`, also accurate near 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  expm1(): Tensor
  /** `expm1` on another thread. */
  expm1Async(options?: Abortable): Promise<Tensor>
  /**
   * `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  pow(b: Tensor): Tensor
  /** `pow` on another thread. */
  powAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  min(options?: MinOptions): Tensor
  /** `min` on another thread. */
  minAsync(options?: MinOptions & Abortable): Promise<Tensor>
  /**
   * The index of the first minimum, i64. `invalid_argument` for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmin(options?: ArgminOptions): Tensor
  /** `argmin` on another thread. */
  argminAsync(options?: ArgminOptions & Abortable): Promise<Tensor>
  /**
   * The product over some or all axes; 1 for no elements.
   *
   * Operands: x any.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: any.
   */
  prod(options?: ProdOptions): Tensor
  /** `prod` on another thread. */
  prodAsync(options?: ProdOptions & Abortable): Promise<Tensor>
  /**
   * Slices every axis from a start to a stop, in steps.
   *
   * Operands: x any.
   * Attributes: start (0 for each axis), stop (its end), step (1).
   * Result: any.
   */
  slice(options?: SliceOptions): Tensor
  /** `slice` on another thread. */
  sliceAsync(options?: SliceOptions & Abortable): Promise<Tensor>
  /**
   * Pads every axis with a value: before, after and between its elements.
   *
   * Operands: x any, value any, one element.
   * Attributes: before (0 for each axis), after (0), step (1).
   * Result: any.
   */
  pad(value: Tensor, options?: PadOptions): Tensor
  /** `pad` on another thread. */
  padAsync(value: Tensor, options?: PadOptions & Abortable): Promise<Tensor>
  /**
   * Gathers elements along an axis by index.
   *
   * Operands: x any, ids i, the shape of x but for the axis.
   * Attributes: axis (-1).
   * Result: any, the shape of ids.
   */
  gather(ids: Tensor, options?: GatherOptions): Tensor
  /** `gather` on another thread. */
  gatherAsync(ids: Tensor, options?: GatherOptions & Abortable): Promise<Tensor>
  /**
   * Rotates pairs of elements of the last axis by angles.
   *
   * Operands: x f[…,D], cos f, sin f, both broadcast to […,D/2].
   * Attributes: interleaved (0).
   * Result: f, same shape.
   */
  rope(cos: Tensor, sin: Tensor, options?: RopeOptions): Tensor
  /** `rope` on another thread. */
  ropeAsync(cos: Tensor, sin: Tensor, options?: RopeOptions & Abortable): Promise<Tensor>
  /**
   * The cumulative sums along an axis.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  cumsum(options?: CumsumOptions): Tensor
  /** `cumsum` on another thread. */
  cumsumAsync(options?: CumsumOptions & Abortable): Promise<Tensor>
  /**
   * The k greatest elements along an axis, greatest first; ties go to the lower index.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: k (1), axis (-1).
   * Result: f, k elements on the axis.
   */
  topk(options?: TopkOptions): Tensor
  /** `topk` on another thread. */
  topkAsync(options?: TopkOptions & Abortable): Promise<Tensor>
  /**
   * The indices of the k greatest elements along an axis, i64; ties go to the lower index.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: k (1), axis (-1), dtype (i64; or i32, u32).
   * Result: i, k elements on the axis.
   */
  argtopk(options?: ArgtopkOptions): Tensor
  /** `argtopk` on another thread. */
  argtopkAsync(options?: ArgtopkOptions & Abortable): Promise<Tensor>
  /**
   * Whether a equals b; NaN equals nothing, and −0 equals +0.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  equal(b: Tensor): Tensor
  /** `equal` on another thread. */
  equalAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a differs from b; true for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  notEqual(b: Tensor): Tensor
  /** `notEqual` on another thread. */
  notEqualAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a < b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  less(b: Tensor): Tensor
  /** `less` on another thread. */
  lessAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a ≤ b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  lessEqual(b: Tensor): Tensor
  /** `lessEqual` on another thread. */
  lessEqualAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a > b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greater(b: Tensor): Tensor
  /** `greater` on another thread. */
  greaterAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether `a ≥ b`; false for NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greaterEqual(b: Tensor): Tensor
  /** `greaterEqual` on another thread. */
  greaterEqualAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Selects from a where the condition is true, and from b elsewhere.
   *
   * Operands: condition bool, a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  where(a: Tensor, b: Tensor): Tensor
  /** `where` on another thread. */
  whereAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
   *
   * Operands: x f32[…,K], w u8[N, bytes of a row].
   * Attributes: format (must be given).
   * Result: f32[…,N].
   */
  quantizedMatmul(w: Tensor, options?: QuantizedMatmulOptions): Tensor
  /** `quantizedMatmul` on another thread. */
  quantizedMatmulAsync(w: Tensor, options?: QuantizedMatmulOptions & Abortable): Promise<Tensor>
  /**
   * Converts quantised blocks to f32.
   *
   * Operands: w u8[…, bytes of a row].
   * Attributes: format (must be given).
   * Result: f32[…,K].
   */
  dequantize(options?: DequantizeOptions): Tensor
  /** `dequantize` on another thread. */
  dequantizeAsync(options?: DequantizeOptions & Abortable): Promise<Tensor>
}

/** The operations of a `Pipeline`: each call takes the previous result. Only the first call names all operands. */
export interface PipelineOperations {
  /** `matmul` of the previous result. */
  matmul(b: Operand, options?: MatmulOptions<Operand>): this
  /** `matmul` of `a`, for the first call. */
  matmul(a: Operand, b: Operand, options?: MatmulOptions<Operand>): this
  /** `dot` of the previous result. */
  dot(b: Operand): this
  /** `dot` of `a`, for the first call. */
  dot(a: Operand, b: Operand): this
  /** `add` of the previous result. */
  add(b: Operand): this
  /** `add` of `a`, for the first call. */
  add(a: Operand, b: Operand): this
  /** `add` of the previous result. */
  bias(b: Operand): this
  /** `add` of `a`, for the first call. */
  bias(a: Operand, b: Operand): this
  /** `sub` of the previous result. */
  sub(b: Operand): this
  /** `sub` of `a`, for the first call. */
  sub(a: Operand, b: Operand): this
  /** `mul` of the previous result. */
  mul(b: Operand): this
  /** `mul` of `a`, for the first call. */
  mul(a: Operand, b: Operand): this
  /** `div` of the previous result. */
  div(b: Operand): this
  /** `div` of `a`, for the first call. */
  div(a: Operand, b: Operand): this
  /** `scale` of the previous result. */
  scale(options?: ScaleOptions): this
  /** `scale` of `x`, for the first call. */
  scale(x: Operand, options?: ScaleOptions): this
  /** `neg` of the previous result. */
  neg(): this
  /** `neg` of `x`, for the first call. */
  neg(x: Operand): this
  /** `abs` of the previous result. */
  abs(): this
  /** `abs` of `x`, for the first call. */
  abs(x: Operand): this
  /** `exp` of the previous result. */
  exp(): this
  /** `exp` of `x`, for the first call. */
  exp(x: Operand): this
  /** `log` of the previous result. */
  log(): this
  /** `log` of `x`, for the first call. */
  log(x: Operand): this
  /** `sqrt` of the previous result. */
  sqrt(): this
  /** `sqrt` of `x`, for the first call. */
  sqrt(x: Operand): this
  /** `rsqrt` of the previous result. */
  rsqrt(): this
  /** `rsqrt` of `x`, for the first call. */
  rsqrt(x: Operand): this
  /** `relu` of the previous result. */
  relu(): this
  /** `relu` of `x`, for the first call. */
  relu(x: Operand): this
  /** `sigmoid` of the previous result. */
  sigmoid(): this
  /** `sigmoid` of `x`, for the first call. */
  sigmoid(x: Operand): this
  /** `tanh` of the previous result. */
  tanh(): this
  /** `tanh` of `x`, for the first call. */
  tanh(x: Operand): this
  /** `gelu` of the previous result. */
  gelu(options?: GeluOptions): this
  /** `gelu` of `x`, for the first call. */
  gelu(x: Operand, options?: GeluOptions): this
  /** `silu` of the previous result. */
  silu(): this
  /** `silu` of `x`, for the first call. */
  silu(x: Operand): this
  /** `softmax` of the previous result. */
  softmax(options?: SoftmaxOptions): this
  /** `softmax` of `x`, for the first call. */
  softmax(x: Operand, options?: SoftmaxOptions): this
  /** `sum` of the previous result. */
  sum(options?: SumOptions): this
  /** `sum` of `x`, for the first call. */
  sum(x: Operand, options?: SumOptions): this
  /** `mean` of the previous result. */
  mean(options?: MeanOptions): this
  /** `mean` of `x`, for the first call. */
  mean(x: Operand, options?: MeanOptions): this
  /** `max` of the previous result. */
  max(options?: MaxOptions): this
  /** `max` of `x`, for the first call. */
  max(x: Operand, options?: MaxOptions): this
  /** `argmax` of the previous result. */
  argmax(options?: ArgmaxOptions): this
  /** `argmax` of `x`, for the first call. */
  argmax(x: Operand, options?: ArgmaxOptions): this
  /** `layernorm` of the previous result. */
  layernorm(options?: LayernormOptions<Operand>): this
  /** `layernorm` of `x`, for the first call. */
  layernorm(x: Operand, options?: LayernormOptions<Operand>): this
  /** `rmsnorm` of the previous result. */
  rmsnorm(options?: RmsnormOptions<Operand>): this
  /** `rmsnorm` of `x`, for the first call. */
  rmsnorm(x: Operand, options?: RmsnormOptions<Operand>): this
  /** `attention` of the previous result. */
  attention(k: Operand, v: Operand, options?: AttentionOptions<Operand>): this
  /** `attention` of `q`, for the first call. */
  attention(q: Operand, k: Operand, v: Operand, options?: AttentionOptions<Operand>): this
  /** `ffn` of the previous result. */
  ffn(w1: Operand, w2: Operand, options?: FfnOptions<Operand>): this
  /** `ffn` of `x`, for the first call. */
  ffn(x: Operand, w1: Operand, w2: Operand, options?: FfnOptions<Operand>): this
  /** `embedding` of the previous result. */
  embedding(ids: Operand): this
  /** `embedding` of `table`, for the first call. */
  embedding(table: Operand, ids: Operand): this
  /** `transpose` of the previous result. */
  transpose(options?: TransposeOptions): this
  /** `transpose` of `x`, for the first call. */
  transpose(x: Operand, options?: TransposeOptions): this
  /** `concat` of the previous result, if there is one, and of these. */
  concat(x: Operand[], options?: ConcatOptions): this
  /** `cast` of the previous result. */
  cast(options?: CastOptions): this
  /** `cast` of `x`, for the first call. */
  cast(x: Operand, options?: CastOptions): this
  /** `floor` of the previous result. */
  floor(): this
  /** `floor` of `x`, for the first call. */
  floor(x: Operand): this
  /** `round` of the previous result. */
  round(): this
  /** `round` of `x`, for the first call. */
  round(x: Operand): this
  /** `erf` of the previous result. */
  erf(): this
  /** `erf` of `x`, for the first call. */
  erf(x: Operand): this
  /** `clamp` of the previous result. */
  clamp(options?: ClampOptions): this
  /** `clamp` of `x`, for the first call. */
  clamp(x: Operand, options?: ClampOptions): this
  /** `maximum` of the previous result. */
  maximum(b: Operand): this
  /** `maximum` of `a`, for the first call. */
  maximum(a: Operand, b: Operand): this
  /** `minimum` of the previous result. */
  minimum(b: Operand): this
  /** `minimum` of `a`, for the first call. */
  minimum(a: Operand, b: Operand): this
  /** `sin` of the previous result. */
  sin(): this
  /** `sin` of `x`, for the first call. */
  sin(x: Operand): this
  /** `cos` of the previous result. */
  cos(): this
  /** `cos` of `x`, for the first call. */
  cos(x: Operand): this
  /** `log1p` of the previous result. */
  log1p(): this
  /** `log1p` of `x`, for the first call. */
  log1p(x: Operand): this
  /** `expm1` of the previous result. */
  expm1(): this
  /** `expm1` of `x`, for the first call. */
  expm1(x: Operand): this
  /** `pow` of the previous result. */
  pow(b: Operand): this
  /** `pow` of `a`, for the first call. */
  pow(a: Operand, b: Operand): this
  /** `min` of the previous result. */
  min(options?: MinOptions): this
  /** `min` of `x`, for the first call. */
  min(x: Operand, options?: MinOptions): this
  /** `argmin` of the previous result. */
  argmin(options?: ArgminOptions): this
  /** `argmin` of `x`, for the first call. */
  argmin(x: Operand, options?: ArgminOptions): this
  /** `prod` of the previous result. */
  prod(options?: ProdOptions): this
  /** `prod` of `x`, for the first call. */
  prod(x: Operand, options?: ProdOptions): this
  /** `slice` of the previous result. */
  slice(options?: SliceOptions): this
  /** `slice` of `x`, for the first call. */
  slice(x: Operand, options?: SliceOptions): this
  /** `pad` of the previous result. */
  pad(value: Operand, options?: PadOptions): this
  /** `pad` of `x`, for the first call. */
  pad(x: Operand, value: Operand, options?: PadOptions): this
  /** `gather` of the previous result. */
  gather(ids: Operand, options?: GatherOptions): this
  /** `gather` of `x`, for the first call. */
  gather(x: Operand, ids: Operand, options?: GatherOptions): this
  /** `rope` of the previous result. */
  rope(cos: Operand, sin: Operand, options?: RopeOptions): this
  /** `rope` of `x`, for the first call. */
  rope(x: Operand, cos: Operand, sin: Operand, options?: RopeOptions): this
  /** `cumsum` of the previous result. */
  cumsum(options?: CumsumOptions): this
  /** `cumsum` of `x`, for the first call. */
  cumsum(x: Operand, options?: CumsumOptions): this
  /** `topk` of the previous result. */
  topk(options?: TopkOptions): this
  /** `topk` of `x`, for the first call. */
  topk(x: Operand, options?: TopkOptions): this
  /** `argtopk` of the previous result. */
  argtopk(options?: ArgtopkOptions): this
  /** `argtopk` of `x`, for the first call. */
  argtopk(x: Operand, options?: ArgtopkOptions): this
  /** `equal` of the previous result. */
  equal(b: Operand): this
  /** `equal` of `a`, for the first call. */
  equal(a: Operand, b: Operand): this
  /** `notEqual` of the previous result. */
  notEqual(b: Operand): this
  /** `notEqual` of `a`, for the first call. */
  notEqual(a: Operand, b: Operand): this
  /** `less` of the previous result. */
  less(b: Operand): this
  /** `less` of `a`, for the first call. */
  less(a: Operand, b: Operand): this
  /** `lessEqual` of the previous result. */
  lessEqual(b: Operand): this
  /** `lessEqual` of `a`, for the first call. */
  lessEqual(a: Operand, b: Operand): this
  /** `greater` of the previous result. */
  greater(b: Operand): this
  /** `greater` of `a`, for the first call. */
  greater(a: Operand, b: Operand): this
  /** `greaterEqual` of the previous result. */
  greaterEqual(b: Operand): this
  /** `greaterEqual` of `a`, for the first call. */
  greaterEqual(a: Operand, b: Operand): this
  /** `where` of the previous result. */
  where(a: Operand, b: Operand): this
  /** `where` of `condition`, for the first call. */
  where(condition: Operand, a: Operand, b: Operand): this
  /** `quantizedMatmul` of the previous result. */
  quantizedMatmul(w: Operand, options?: QuantizedMatmulOptions): this
  /** `quantizedMatmul` of `x`, for the first call. */
  quantizedMatmul(x: Operand, w: Operand, options?: QuantizedMatmulOptions): this
  /** `dequantize` of the previous result. */
  dequantize(options?: DequantizeOptions): this
  /** `dequantize` of `w`, for the first call. */
  dequantize(w: Operand, options?: DequantizeOptions): this
}
