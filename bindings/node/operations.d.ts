// Generated from the op table (ADEAD_BLESS=1 cargo test -p adead-node); not to be edited.
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

/** The type of a tensor's elements. */
export type DType =
  | 'f32'
  | 'f16'
  | 'bf16'
  | 'i32'
  | 'i64'
  | 'u32'
  | 'bool'

/** Operations that cost alike. */
export type Family =
  | 'matmul'
  | 'attention'
  | 'elementwise'
  | 'function'
  | 'reduction'
  | 'move'

/** What follows a matrix product. */
export type Activation =
  | 'none'
  | 'relu'
  | 'sigmoid'
  | 'tanh'
  | 'gelu_tanh'
  | 'gelu_erf'
  | 'silu'

/** What went wrong. */
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

/** What ends a promise, and its work where that has begun. */
export interface Abortable {
  signal?: AbortSignal
}

/** What a pipeline's operations take: a tensor, which is the same in each run, or a value of the pipeline. */
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
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  add(a: Tensor, b: Tensor): Tensor
  /** `add` on another thread. */
  addAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a − b`.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  sub(a: Tensor, b: Tensor): Tensor
  /** `sub` on another thread. */
  subAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a·b`, element by element.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  mul(a: Tensor, b: Tensor): Tensor
  /** `mul` on another thread. */
  mulAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a / b`.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
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
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  neg(x: Tensor): Tensor
  /** `neg` on another thread. */
  negAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `|x|`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
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
   * The natural logarithm; NaN below 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log(x: Tensor): Tensor
  /** `log` on another thread. */
  logAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The square root; NaN below 0.
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
   * The Gaussian error linear unit, by the error function or by tanh.
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
   * `e^x` over its sum, along an axis.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  softmax(x: Tensor, options?: SoftmaxOptions): Tensor
  /** `softmax` on another thread. */
  softmaxAsync(x: Tensor, options?: SoftmaxOptions & Abortable): Promise<Tensor>
  /**
   * The sum along axes or of all; of nothing +0.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  sum(x: Tensor, options?: SumOptions): Tensor
  /** `sum` on another thread. */
  sumAsync(x: Tensor, options?: SumOptions & Abortable): Promise<Tensor>
  /**
   * The mean along axes or of all; of nothing NaN.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  mean(x: Tensor, options?: MeanOptions): Tensor
  /** `mean` on another thread. */
  meanAsync(x: Tensor, options?: MeanOptions & Abortable): Promise<Tensor>
  /**
   * The maximum along axes or of all; NaN wins. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  max(x: Tensor, options?: MaxOptions): Tensor
  /** `max` on another thread. */
  maxAsync(x: Tensor, options?: MaxOptions & Abortable): Promise<Tensor>
  /**
   * The lowest index of the maximum, i64. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmax(x: Tensor, options?: ArgmaxOptions): Tensor
  /** `argmax` on another thread. */
  argmaxAsync(x: Tensor, options?: ArgmaxOptions & Abortable): Promise<Tensor>
  /**
   * Mean and variance normalised over the last axis, of x or of x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], beta? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  layernorm(x: Tensor, options?: LayernormOptions): Tensor
  /** `layernorm` on another thread. */
  layernormAsync(x: Tensor, options?: LayernormOptions & Abortable): Promise<Tensor>
  /**
   * Root mean square normalised over the last axis, of x or of x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  rmsnorm(x: Tensor, options?: RmsnormOptions): Tensor
  /** `rmsnorm` on another thread. */
  rmsnormAsync(x: Tensor, options?: RmsnormOptions & Abortable): Promise<Tensor>
  /**
   * Softmax-weighted values: scaled dot-product attention.
   *
   * Operands: q f[…,Hq,Sq,D], k f[…,Hkv,Sk,D], v f[…,Hkv,Sk,Dv], mask? f broadcast to […,Hq,Sq,Sk].
   * Attributes: causal (0), scale (0 = 1/sqrt(D)).
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
   * Rows of a table by id.
   *
   * Operands: table any[V,…], ids i[…].
   * Attributes: none.
   * Result: any[ids…, table's row…].
   */
  embedding(table: Tensor, ids: Tensor): Tensor
  /** `embedding` on another thread. */
  embeddingAsync(table: Tensor, ids: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The axes permuted.
   *
   * Operands: x any.
   * Attributes: perm (axes reversed).
   * Result: any.
   */
  transpose(x: Tensor, options?: TransposeOptions): Tensor
  /** `transpose` on another thread. */
  transposeAsync(x: Tensor, options?: TransposeOptions & Abortable): Promise<Tensor>
  /**
   * Tensors joined along an axis.
   *
   * Operands: one or more any, same rank ≥ 1.
   * Attributes: axis (0).
   * Result: any.
   */
  concat(x: Tensor[], options?: ConcatOptions): Tensor
  /** `concat` on another thread. */
  concatAsync(x: Tensor[], options?: ConcatOptions & Abortable): Promise<Tensor>
  /**
   * Another element type.
   *
   * Operands: x any.
   * Attributes: dtype (f32).
   * Result: dtype.
   */
  cast(x: Tensor, options?: CastOptions): Tensor
  /** `cast` on another thread. */
  castAsync(x: Tensor, options?: CastOptions & Abortable): Promise<Tensor>
  /**
   * The largest integer that is not above x.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  floor(x: Tensor): Tensor
  /** `floor` on another thread. */
  floorAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The nearest integer; ties go to the even one.
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
   * `minimum(maximum(x, min), max)`; NaN wins, and −0 is below +0.
   *
   * Operands: x f.
   * Attributes: min (-inf), max (inf).
   * Result: f, same shape.
   */
  clamp(x: Tensor, options?: ClampOptions): Tensor
  /** `clamp` on another thread. */
  clampAsync(x: Tensor, options?: ClampOptions & Abortable): Promise<Tensor>
  /**
   * The larger of a and b; NaN wins, and −0 is below +0.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  maximum(a: Tensor, b: Tensor): Tensor
  /** `maximum` on another thread. */
  maximumAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The smaller of a and b; NaN wins, and −0 is below +0.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  minimum(a: Tensor, b: Tensor): Tensor
  /** `minimum` on another thread. */
  minimumAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The sine of an angle in radians; NaN of an infinity.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sin(x: Tensor): Tensor
  /** `sin` on another thread. */
  sinAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The cosine of an angle in radians; NaN of an infinity.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  cos(x: Tensor): Tensor
  /** `cos` on another thread. */
  cosAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `log(1 + x)`, accurate near 0 too; NaN below −1.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log1p(x: Tensor): Tensor
  /** `log1p` on another thread. */
  log1pAsync(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `e^x − 1`, accurate near 0 too.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  expm1(x: Tensor): Tensor
  /** `expm1` on another thread. */
  expm1Async(x: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a^b`; NaN of a negative a unless b is an integer.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  pow(a: Tensor, b: Tensor): Tensor
  /** `pow` on another thread. */
  powAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The minimum along axes or of all; NaN wins. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  min(x: Tensor, options?: MinOptions): Tensor
  /** `min` on another thread. */
  minAsync(x: Tensor, options?: MinOptions & Abortable): Promise<Tensor>
  /**
   * The lowest index of the minimum, i64. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmin(x: Tensor, options?: ArgminOptions): Tensor
  /** `argmin` on another thread. */
  argminAsync(x: Tensor, options?: ArgminOptions & Abortable): Promise<Tensor>
  /**
   * The product along axes or of all; of nothing 1.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  prod(x: Tensor, options?: ProdOptions): Tensor
  /** `prod` on another thread. */
  prodAsync(x: Tensor, options?: ProdOptions & Abortable): Promise<Tensor>
  /**
   * Every axis from a start to a stop, by steps.
   *
   * Operands: x any.
   * Attributes: start (0 for each axis), stop (its end), step (1).
   * Result: any.
   */
  slice(x: Tensor, options?: SliceOptions): Tensor
  /** `slice` on another thread. */
  sliceAsync(x: Tensor, options?: SliceOptions & Abortable): Promise<Tensor>
  /**
   * A value put before and behind every axis.
   *
   * Operands: x any, value any, one element.
   * Attributes: before (0 for each axis), after (0).
   * Result: any.
   */
  pad(x: Tensor, value: Tensor, options?: PadOptions): Tensor
  /** `pad` on another thread. */
  padAsync(x: Tensor, value: Tensor, options?: PadOptions & Abortable): Promise<Tensor>
  /**
   * Elements along an axis by index.
   *
   * Operands: x any, ids i, the shape of x but for the axis.
   * Attributes: axis (-1).
   * Result: any, the shape of ids.
   */
  gather(x: Tensor, ids: Tensor, options?: GatherOptions): Tensor
  /** `gather` on another thread. */
  gatherAsync(x: Tensor, ids: Tensor, options?: GatherOptions & Abortable): Promise<Tensor>
  /**
   * Pairs of elements of the last axis turned by angles.
   *
   * Operands: x f[…,D], cos f, sin f, both broadcast to […,D/2].
   * Attributes: interleaved (0).
   * Result: f, same shape.
   */
  rope(x: Tensor, cos: Tensor, sin: Tensor, options?: RopeOptions): Tensor
  /** `rope` on another thread. */
  ropeAsync(x: Tensor, cos: Tensor, sin: Tensor, options?: RopeOptions & Abortable): Promise<Tensor>
  /**
   * The sums of an axis's elements up to each.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  cumsum(x: Tensor, options?: CumsumOptions): Tensor
  /** `cumsum` on another thread. */
  cumsumAsync(x: Tensor, options?: CumsumOptions & Abortable): Promise<Tensor>
  /**
   * The k greatest elements along an axis, the greatest first; of equals the one with the lower index.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: k (1), axis (-1).
   * Result: f, k elements on the axis.
   */
  topk(x: Tensor, options?: TopkOptions): Tensor
  /** `topk` on another thread. */
  topkAsync(x: Tensor, options?: TopkOptions & Abortable): Promise<Tensor>
  /**
   * The indices of the k greatest elements along an axis, i64; of equals the lower one first.
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
   * Whether a does not equal b; true of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  notEqual(a: Tensor, b: Tensor): Tensor
  /** `notEqual` on another thread. */
  notEqualAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is below b; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  less(a: Tensor, b: Tensor): Tensor
  /** `less` on another thread. */
  lessAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is below b or equals it; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  lessEqual(a: Tensor, b: Tensor): Tensor
  /** `lessEqual` on another thread. */
  lessEqualAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is above b; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greater(a: Tensor, b: Tensor): Tensor
  /** `greater` on another thread. */
  greaterAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is above b or equals it; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greaterEqual(a: Tensor, b: Tensor): Tensor
  /** `greaterEqual` on another thread. */
  greaterEqualAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Elements of a where the condition is true, and of b elsewhere.
   *
   * Operands: condition bool, a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  where(condition: Tensor, a: Tensor, b: Tensor): Tensor
  /** `where` on another thread. */
  whereAsync(condition: Tensor, a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
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
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  add(b: Tensor): Tensor
  /** `add` on another thread. */
  addAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a − b`.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  sub(b: Tensor): Tensor
  /** `sub` on another thread. */
  subAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a·b`, element by element.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  mul(b: Tensor): Tensor
  /** `mul` on another thread. */
  mulAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * `a / b`.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
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
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  neg(): Tensor
  /** `neg` on another thread. */
  negAsync(options?: Abortable): Promise<Tensor>
  /**
   * `|x|`.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
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
   * The natural logarithm; NaN below 0.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log(): Tensor
  /** `log` on another thread. */
  logAsync(options?: Abortable): Promise<Tensor>
  /**
   * The square root; NaN below 0.
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
   * The Gaussian error linear unit, by the error function or by tanh.
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
   * `e^x` over its sum, along an axis.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  softmax(options?: SoftmaxOptions): Tensor
  /** `softmax` on another thread. */
  softmaxAsync(options?: SoftmaxOptions & Abortable): Promise<Tensor>
  /**
   * The sum along axes or of all; of nothing +0.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  sum(options?: SumOptions): Tensor
  /** `sum` on another thread. */
  sumAsync(options?: SumOptions & Abortable): Promise<Tensor>
  /**
   * The mean along axes or of all; of nothing NaN.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  mean(options?: MeanOptions): Tensor
  /** `mean` on another thread. */
  meanAsync(options?: MeanOptions & Abortable): Promise<Tensor>
  /**
   * The maximum along axes or of all; NaN wins. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  max(options?: MaxOptions): Tensor
  /** `max` on another thread. */
  maxAsync(options?: MaxOptions & Abortable): Promise<Tensor>
  /**
   * The lowest index of the maximum, i64. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmax(options?: ArgmaxOptions): Tensor
  /** `argmax` on another thread. */
  argmaxAsync(options?: ArgmaxOptions & Abortable): Promise<Tensor>
  /**
   * Mean and variance normalised over the last axis, of x or of x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], beta? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  layernorm(options?: LayernormOptions): Tensor
  /** `layernorm` on another thread. */
  layernormAsync(options?: LayernormOptions & Abortable): Promise<Tensor>
  /**
   * Root mean square normalised over the last axis, of x or of x + residual.
   *
   * Operands: x f[…,N], gamma? f[N], residual? f, x's shape.
   * Attributes: eps (1e-5).
   * Result: f, same shape.
   */
  rmsnorm(options?: RmsnormOptions): Tensor
  /** `rmsnorm` on another thread. */
  rmsnormAsync(options?: RmsnormOptions & Abortable): Promise<Tensor>
  /**
   * Softmax-weighted values: scaled dot-product attention.
   *
   * Operands: q f[…,Hq,Sq,D], k f[…,Hkv,Sk,D], v f[…,Hkv,Sk,Dv], mask? f broadcast to […,Hq,Sq,Sk].
   * Attributes: causal (0), scale (0 = 1/sqrt(D)).
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
   * Rows of a table by id.
   *
   * Operands: table any[V,…], ids i[…].
   * Attributes: none.
   * Result: any[ids…, table's row…].
   */
  embedding(ids: Tensor): Tensor
  /** `embedding` on another thread. */
  embeddingAsync(ids: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The axes permuted.
   *
   * Operands: x any.
   * Attributes: perm (axes reversed).
   * Result: any.
   */
  transpose(options?: TransposeOptions): Tensor
  /** `transpose` on another thread. */
  transposeAsync(options?: TransposeOptions & Abortable): Promise<Tensor>
  /**
   * Tensors joined along an axis.
   *
   * Operands: one or more any, same rank ≥ 1.
   * Attributes: axis (0).
   * Result: any.
   */
  concat(x: Tensor[], options?: ConcatOptions): Tensor
  /** `concat` on another thread. */
  concatAsync(x: Tensor[], options?: ConcatOptions & Abortable): Promise<Tensor>
  /**
   * Another element type.
   *
   * Operands: x any.
   * Attributes: dtype (f32).
   * Result: dtype.
   */
  cast(options?: CastOptions): Tensor
  /** `cast` on another thread. */
  castAsync(options?: CastOptions & Abortable): Promise<Tensor>
  /**
   * The largest integer that is not above x.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  floor(): Tensor
  /** `floor` on another thread. */
  floorAsync(options?: Abortable): Promise<Tensor>
  /**
   * The nearest integer; ties go to the even one.
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
   * `minimum(maximum(x, min), max)`; NaN wins, and −0 is below +0.
   *
   * Operands: x f.
   * Attributes: min (-inf), max (inf).
   * Result: f, same shape.
   */
  clamp(options?: ClampOptions): Tensor
  /** `clamp` on another thread. */
  clampAsync(options?: ClampOptions & Abortable): Promise<Tensor>
  /**
   * The larger of a and b; NaN wins, and −0 is below +0.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  maximum(b: Tensor): Tensor
  /** `maximum` on another thread. */
  maximumAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The smaller of a and b; NaN wins, and −0 is below +0.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  minimum(b: Tensor): Tensor
  /** `minimum` on another thread. */
  minimumAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The sine of an angle in radians; NaN of an infinity.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  sin(): Tensor
  /** `sin` on another thread. */
  sinAsync(options?: Abortable): Promise<Tensor>
  /**
   * The cosine of an angle in radians; NaN of an infinity.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  cos(): Tensor
  /** `cos` on another thread. */
  cosAsync(options?: Abortable): Promise<Tensor>
  /**
   * `log(1 + x)`, accurate near 0 too; NaN below −1.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  log1p(): Tensor
  /** `log1p` on another thread. */
  log1pAsync(options?: Abortable): Promise<Tensor>
  /**
   * `e^x − 1`, accurate near 0 too.
   *
   * Operands: x f.
   * Attributes: none.
   * Result: f, same shape.
   */
  expm1(): Tensor
  /** `expm1` on another thread. */
  expm1Async(options?: Abortable): Promise<Tensor>
  /**
   * `a^b`; NaN of a negative a unless b is an integer.
   *
   * Operands: a f, b f.
   * Attributes: none.
   * Result: f, NumPy broadcasting.
   */
  pow(b: Tensor): Tensor
  /** `pow` on another thread. */
  powAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * The minimum along axes or of all; NaN wins. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  min(options?: MinOptions): Tensor
  /** `min` on another thread. */
  minAsync(options?: MinOptions & Abortable): Promise<Tensor>
  /**
   * The lowest index of the minimum, i64. `invalid_argument` of nothing.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), dtype (i64; or i32, u32).
   * Result: i.
   */
  argmin(options?: ArgminOptions): Tensor
  /** `argmin` on another thread. */
  argminAsync(options?: ArgminOptions & Abortable): Promise<Tensor>
  /**
   * The product along axes or of all; of nothing 1.
   *
   * Operands: x f.
   * Attributes: axis (all), keepdim (0), axes (instead of axis).
   * Result: f.
   */
  prod(options?: ProdOptions): Tensor
  /** `prod` on another thread. */
  prodAsync(options?: ProdOptions & Abortable): Promise<Tensor>
  /**
   * Every axis from a start to a stop, by steps.
   *
   * Operands: x any.
   * Attributes: start (0 for each axis), stop (its end), step (1).
   * Result: any.
   */
  slice(options?: SliceOptions): Tensor
  /** `slice` on another thread. */
  sliceAsync(options?: SliceOptions & Abortable): Promise<Tensor>
  /**
   * A value put before and behind every axis.
   *
   * Operands: x any, value any, one element.
   * Attributes: before (0 for each axis), after (0).
   * Result: any.
   */
  pad(value: Tensor, options?: PadOptions): Tensor
  /** `pad` on another thread. */
  padAsync(value: Tensor, options?: PadOptions & Abortable): Promise<Tensor>
  /**
   * Elements along an axis by index.
   *
   * Operands: x any, ids i, the shape of x but for the axis.
   * Attributes: axis (-1).
   * Result: any, the shape of ids.
   */
  gather(ids: Tensor, options?: GatherOptions): Tensor
  /** `gather` on another thread. */
  gatherAsync(ids: Tensor, options?: GatherOptions & Abortable): Promise<Tensor>
  /**
   * Pairs of elements of the last axis turned by angles.
   *
   * Operands: x f[…,D], cos f, sin f, both broadcast to […,D/2].
   * Attributes: interleaved (0).
   * Result: f, same shape.
   */
  rope(cos: Tensor, sin: Tensor, options?: RopeOptions): Tensor
  /** `rope` on another thread. */
  ropeAsync(cos: Tensor, sin: Tensor, options?: RopeOptions & Abortable): Promise<Tensor>
  /**
   * The sums of an axis's elements up to each.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: axis (-1).
   * Result: f, same shape.
   */
  cumsum(options?: CumsumOptions): Tensor
  /** `cumsum` on another thread. */
  cumsumAsync(options?: CumsumOptions & Abortable): Promise<Tensor>
  /**
   * The k greatest elements along an axis, the greatest first; of equals the one with the lower index.
   *
   * Operands: x f, rank ≥ 1.
   * Attributes: k (1), axis (-1).
   * Result: f, k elements on the axis.
   */
  topk(options?: TopkOptions): Tensor
  /** `topk` on another thread. */
  topkAsync(options?: TopkOptions & Abortable): Promise<Tensor>
  /**
   * The indices of the k greatest elements along an axis, i64; of equals the lower one first.
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
   * Whether a does not equal b; true of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  notEqual(b: Tensor): Tensor
  /** `notEqual` on another thread. */
  notEqualAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is below b; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  less(b: Tensor): Tensor
  /** `less` on another thread. */
  lessAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is below b or equals it; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  lessEqual(b: Tensor): Tensor
  /** `lessEqual` on another thread. */
  lessEqualAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is above b; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greater(b: Tensor): Tensor
  /** `greater` on another thread. */
  greaterAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Whether a is above b or equals it; false of NaN.
   *
   * Operands: a any, b any, of one dtype.
   * Attributes: none.
   * Result: bool, NumPy broadcasting.
   */
  greaterEqual(b: Tensor): Tensor
  /** `greaterEqual` on another thread. */
  greaterEqualAsync(b: Tensor, options?: Abortable): Promise<Tensor>
  /**
   * Elements of a where the condition is true, and of b elsewhere.
   *
   * Operands: condition bool, a any, b any, of one dtype.
   * Attributes: none.
   * Result: any, NumPy broadcasting.
   */
  where(a: Tensor, b: Tensor): Tensor
  /** `where` on another thread. */
  whereAsync(a: Tensor, b: Tensor, options?: Abortable): Promise<Tensor>
}

/** The operations of a `Pipeline`: each takes the pipeline's value first, and its result is the value then. */
export interface PipelineOperations {
  /** `matmul` of the value. */
  matmul(b: Operand, options?: MatmulOptions<Operand>): this
  /** The same of `a`, where there is no value yet. */
  matmul(a: Operand, b: Operand, options?: MatmulOptions<Operand>): this
  /** `dot` of the value. */
  dot(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  dot(a: Operand, b: Operand): this
  /** `add` of the value. */
  add(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  add(a: Operand, b: Operand): this
  /** `add` of the value. */
  bias(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  bias(a: Operand, b: Operand): this
  /** `sub` of the value. */
  sub(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  sub(a: Operand, b: Operand): this
  /** `mul` of the value. */
  mul(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  mul(a: Operand, b: Operand): this
  /** `div` of the value. */
  div(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  div(a: Operand, b: Operand): this
  /** `scale` of the value. */
  scale(options?: ScaleOptions): this
  /** The same of `x`, where there is no value yet. */
  scale(x: Operand, options?: ScaleOptions): this
  /** `neg` of the value. */
  neg(): this
  /** The same of `x`, where there is no value yet. */
  neg(x: Operand): this
  /** `abs` of the value. */
  abs(): this
  /** The same of `x`, where there is no value yet. */
  abs(x: Operand): this
  /** `exp` of the value. */
  exp(): this
  /** The same of `x`, where there is no value yet. */
  exp(x: Operand): this
  /** `log` of the value. */
  log(): this
  /** The same of `x`, where there is no value yet. */
  log(x: Operand): this
  /** `sqrt` of the value. */
  sqrt(): this
  /** The same of `x`, where there is no value yet. */
  sqrt(x: Operand): this
  /** `rsqrt` of the value. */
  rsqrt(): this
  /** The same of `x`, where there is no value yet. */
  rsqrt(x: Operand): this
  /** `relu` of the value. */
  relu(): this
  /** The same of `x`, where there is no value yet. */
  relu(x: Operand): this
  /** `sigmoid` of the value. */
  sigmoid(): this
  /** The same of `x`, where there is no value yet. */
  sigmoid(x: Operand): this
  /** `tanh` of the value. */
  tanh(): this
  /** The same of `x`, where there is no value yet. */
  tanh(x: Operand): this
  /** `gelu` of the value. */
  gelu(options?: GeluOptions): this
  /** The same of `x`, where there is no value yet. */
  gelu(x: Operand, options?: GeluOptions): this
  /** `silu` of the value. */
  silu(): this
  /** The same of `x`, where there is no value yet. */
  silu(x: Operand): this
  /** `softmax` of the value. */
  softmax(options?: SoftmaxOptions): this
  /** The same of `x`, where there is no value yet. */
  softmax(x: Operand, options?: SoftmaxOptions): this
  /** `sum` of the value. */
  sum(options?: SumOptions): this
  /** The same of `x`, where there is no value yet. */
  sum(x: Operand, options?: SumOptions): this
  /** `mean` of the value. */
  mean(options?: MeanOptions): this
  /** The same of `x`, where there is no value yet. */
  mean(x: Operand, options?: MeanOptions): this
  /** `max` of the value. */
  max(options?: MaxOptions): this
  /** The same of `x`, where there is no value yet. */
  max(x: Operand, options?: MaxOptions): this
  /** `argmax` of the value. */
  argmax(options?: ArgmaxOptions): this
  /** The same of `x`, where there is no value yet. */
  argmax(x: Operand, options?: ArgmaxOptions): this
  /** `layernorm` of the value. */
  layernorm(options?: LayernormOptions<Operand>): this
  /** The same of `x`, where there is no value yet. */
  layernorm(x: Operand, options?: LayernormOptions<Operand>): this
  /** `rmsnorm` of the value. */
  rmsnorm(options?: RmsnormOptions<Operand>): this
  /** The same of `x`, where there is no value yet. */
  rmsnorm(x: Operand, options?: RmsnormOptions<Operand>): this
  /** `attention` of the value. */
  attention(k: Operand, v: Operand, options?: AttentionOptions<Operand>): this
  /** The same of `q`, where there is no value yet. */
  attention(q: Operand, k: Operand, v: Operand, options?: AttentionOptions<Operand>): this
  /** `ffn` of the value. */
  ffn(w1: Operand, w2: Operand, options?: FfnOptions<Operand>): this
  /** The same of `x`, where there is no value yet. */
  ffn(x: Operand, w1: Operand, w2: Operand, options?: FfnOptions<Operand>): this
  /** `embedding` of the value. */
  embedding(ids: Operand): this
  /** The same of `table`, where there is no value yet. */
  embedding(table: Operand, ids: Operand): this
  /** `transpose` of the value. */
  transpose(options?: TransposeOptions): this
  /** The same of `x`, where there is no value yet. */
  transpose(x: Operand, options?: TransposeOptions): this
  /** `concat` of the value, if there is one, and of these. */
  concat(x: Operand[], options?: ConcatOptions): this
  /** `cast` of the value. */
  cast(options?: CastOptions): this
  /** The same of `x`, where there is no value yet. */
  cast(x: Operand, options?: CastOptions): this
  /** `floor` of the value. */
  floor(): this
  /** The same of `x`, where there is no value yet. */
  floor(x: Operand): this
  /** `round` of the value. */
  round(): this
  /** The same of `x`, where there is no value yet. */
  round(x: Operand): this
  /** `erf` of the value. */
  erf(): this
  /** The same of `x`, where there is no value yet. */
  erf(x: Operand): this
  /** `clamp` of the value. */
  clamp(options?: ClampOptions): this
  /** The same of `x`, where there is no value yet. */
  clamp(x: Operand, options?: ClampOptions): this
  /** `maximum` of the value. */
  maximum(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  maximum(a: Operand, b: Operand): this
  /** `minimum` of the value. */
  minimum(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  minimum(a: Operand, b: Operand): this
  /** `sin` of the value. */
  sin(): this
  /** The same of `x`, where there is no value yet. */
  sin(x: Operand): this
  /** `cos` of the value. */
  cos(): this
  /** The same of `x`, where there is no value yet. */
  cos(x: Operand): this
  /** `log1p` of the value. */
  log1p(): this
  /** The same of `x`, where there is no value yet. */
  log1p(x: Operand): this
  /** `expm1` of the value. */
  expm1(): this
  /** The same of `x`, where there is no value yet. */
  expm1(x: Operand): this
  /** `pow` of the value. */
  pow(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  pow(a: Operand, b: Operand): this
  /** `min` of the value. */
  min(options?: MinOptions): this
  /** The same of `x`, where there is no value yet. */
  min(x: Operand, options?: MinOptions): this
  /** `argmin` of the value. */
  argmin(options?: ArgminOptions): this
  /** The same of `x`, where there is no value yet. */
  argmin(x: Operand, options?: ArgminOptions): this
  /** `prod` of the value. */
  prod(options?: ProdOptions): this
  /** The same of `x`, where there is no value yet. */
  prod(x: Operand, options?: ProdOptions): this
  /** `slice` of the value. */
  slice(options?: SliceOptions): this
  /** The same of `x`, where there is no value yet. */
  slice(x: Operand, options?: SliceOptions): this
  /** `pad` of the value. */
  pad(value: Operand, options?: PadOptions): this
  /** The same of `x`, where there is no value yet. */
  pad(x: Operand, value: Operand, options?: PadOptions): this
  /** `gather` of the value. */
  gather(ids: Operand, options?: GatherOptions): this
  /** The same of `x`, where there is no value yet. */
  gather(x: Operand, ids: Operand, options?: GatherOptions): this
  /** `rope` of the value. */
  rope(cos: Operand, sin: Operand, options?: RopeOptions): this
  /** The same of `x`, where there is no value yet. */
  rope(x: Operand, cos: Operand, sin: Operand, options?: RopeOptions): this
  /** `cumsum` of the value. */
  cumsum(options?: CumsumOptions): this
  /** The same of `x`, where there is no value yet. */
  cumsum(x: Operand, options?: CumsumOptions): this
  /** `topk` of the value. */
  topk(options?: TopkOptions): this
  /** The same of `x`, where there is no value yet. */
  topk(x: Operand, options?: TopkOptions): this
  /** `argtopk` of the value. */
  argtopk(options?: ArgtopkOptions): this
  /** The same of `x`, where there is no value yet. */
  argtopk(x: Operand, options?: ArgtopkOptions): this
  /** `equal` of the value. */
  equal(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  equal(a: Operand, b: Operand): this
  /** `notEqual` of the value. */
  notEqual(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  notEqual(a: Operand, b: Operand): this
  /** `less` of the value. */
  less(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  less(a: Operand, b: Operand): this
  /** `lessEqual` of the value. */
  lessEqual(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  lessEqual(a: Operand, b: Operand): this
  /** `greater` of the value. */
  greater(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  greater(a: Operand, b: Operand): this
  /** `greaterEqual` of the value. */
  greaterEqual(b: Operand): this
  /** The same of `a`, where there is no value yet. */
  greaterEqual(a: Operand, b: Operand): this
  /** `where` of the value. */
  where(a: Operand, b: Operand): this
  /** The same of `condition`, where there is no value yet. */
  where(condition: Operand, a: Operand, b: Operand): this
}
