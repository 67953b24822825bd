import type { Abortable, DType, StatusName, TensorOperations } from './operations'
import { Context, type DeviceBuffer, type Trace, type TypedArray } from './native'

/** The type of array that holds elements of a dtype: f16 and bf16 as their bits, bools as bytes, where 0 is false. */
export type ArrayOf<D extends DType = DType> = D extends 'f32'
  ? Float32Array
  : D extends 'f16' | 'bf16'
    ? Uint16Array
    : D extends 'i32'
      ? Int32Array
      : D extends 'i64'
        ? BigInt64Array
        : D extends 'bool' | 'u8'
          ? Uint8Array
          : D extends 'f64'
            ? Float64Array
            : Uint32Array

/** Values in nested arrays, such as `[[1, 2], [3, 4]]`. A single value is a scalar. */
export type Nested<T> = T | readonly Nested<T>[]

/** A shaped value, in host memory or on devices. Its contents never change. */
export interface Tensor extends TensorOperations {}
export class Tensor {
  /**
   * Makes a tensor with a copy of an array's elements. A Uint16Array holds f16 or bf16, so name the dtype. A Uint8Array
   * holds bool or u8, a Float64Array f64, which is only stored: cast it to compute. Bools can be an array of booleans too. `shape_mismatch` if the product of dims is not the array's length.
   */
  constructor(data: Float32Array | Int32Array | BigInt64Array | Uint32Array | Float64Array, dims: readonly number[], dtype?: DType)
  constructor(data: Uint16Array, dims: readonly number[], dtype: 'f16' | 'bf16')
  constructor(data: Uint8Array | readonly boolean[], dims: readonly number[], dtype: 'bool')
  constructor(data: Uint8Array, dims: readonly number[], dtype: 'u8')
  constructor(data: readonly boolean[], dims: readonly number[])
  /**
   * Makes a tensor from nested arrays: `Tensor.from([[1, 2], [3, 4]])`. Without a dtype, numbers are f32, bigints i64
   * and booleans bool. `shape_mismatch` if arrays of one level differ in length, `invalid_argument` for an integer
   * outside its dtype.
   */
  static from(nested: Nested<number | bigint | boolean>, dtype?: DType): Tensor
  /** Makes a tensor of zeros. */
  static zeros(dtype: DType, dims: readonly number[]): Tensor
  /** Makes a tensor with a copy of its elements' bytes, in the machine's byte order. */
  static fromBytes(bytes: TypedArray, dtype: DType, dims: readonly number[]): Tensor
  /** The type of its elements. */
  readonly dtype: DType
  /** Its dimensions; none for a scalar. */
  readonly dims: number[]
  /** The number of its elements. */
  readonly length: number
  /** The size of its elements in bytes. */
  readonly byteLength: number
  /** Returns a copy of its elements, row-major. */
  toArray<D extends DType = 'f32'>(): ArrayOf<D>
  /** Returns a copy of its elements' bytes. */
  toBytes(): Uint8Array
  /**
   * Returns its memory, without a copy. The array keeps the tensor's memory alive, and both may be used in any order.
   * Writing to it changes the tensor and every reshape of it. Write only while no pending promise computes with the
   * tensor or a reshape of it. The array can't be transferred to a worker.
   */
  view<D extends DType = 'f32'>(): ArrayOf<D>
  /** The places of its values: `'cpu'` for host memory, and ids of devices. `Context.to` copies them to a device. */
  readonly places: string[]
  /**
   * Starts to copy its values to host memory if they are only on devices; reading them waits. If `view` was called,
   * host memory has its only copy.
   */
  toCpu(): Tensor
  /** Returns the same values in another shape with as many elements, without a copy. */
  reshape(dims: readonly number[]): Tensor
  /**
   * Returns the part at these indices of the first axes, a tensor of the remaining axes. A negative index counts from the
   * end. `slice` takes ranges. Computed on the default context.
   */
  at(...index: number[]): Tensor
  /**
   * Returns its only element, or the one at an index for every axis: a boolean for bool, a bigint for i64, or else a
   * number. `shape_mismatch` if there is not exactly one.
   */
  item<T extends number | bigint | boolean = number>(...index: number[]): T
  /** Returns its elements in nested arrays, one level for each dimension. */
  toNested<T extends number | bigint | boolean = number>(): Nested<T>
  /** Releases its memory now, instead of when it is collected. Later uses of this object throw. */
  dispose(): void
  /** Like `dispose`, for `using`. */
  [Symbol.dispose](): void
  /** Returns its dtype, shape and first elements as text. */
  toString(): string
}

/** Opens the best GPU of the machine, or one by name, as a context. `backend_unavailable` says why there is none. */
export class GPU extends Context {
  constructor(device?: string | null)
  /** Opens it on another thread. The context is not an instance of `GPU`, but behaves the same. */
  static openAsync(device?: string | null): Promise<Context>
}

/** The severity of a message of `setLogger`. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace'

/** The error that every call of adead throws and every promise rejects with. */
export class AdeadError extends Error {
  constructor(message: string, code: StatusName, status: number)
  /** The kind of error. */
  readonly code: StatusName
  /** The kind as the number that every language shares. */
  readonly status: number
}

/** A part of a buffer as an operand: the type of its elements and the byte at which they begin. */
export interface BufferOperand {
  buffer: DeviceBuffer
  offset?: number
  dtype: DType
  dims: readonly number[]
}

/** The size of a buffer of zeros: elements of a dtype, by default f32, or bytes. */
export type BufferSize = { size: number; dtype?: DType } | { nbytes: number; dtype?: DType }

/** The methods that run a pipeline once. */
export interface PipelineRuns {
  /**
   * Runs the recorded operations, which must have no inputs. Returns the output, or an array of several. The compiled
   * form is cached: the next pipeline with the same operations and shapes reuses it.
   */
  execute<T extends Tensor | Tensor[] = Tensor>(): T
  /** Like `execute`, on another thread. */
  executeAsync<T extends Tensor | Tensor[] = Tensor>(options?: Abortable): Promise<T>
}

/** The methods that run a compiled pipeline. */
export interface CompiledRuns {
  /**
   * Runs it on its input, or on an array of inputs in the order in which they were recorded. Returns the output, or an
   * array of several. `invalid_argument` for a wrong number of inputs, `dtype_mismatch` or `shape_mismatch` for an
   * input that differs from the recorded one.
   */
  run<T extends Tensor | Tensor[] = Tensor>(inputs?: Tensor | readonly Tensor[]): T
  /** Like `run`, on another thread. */
  runAsync<T extends Tensor | Tensor[] = Tensor>(inputs?: Tensor | readonly Tensor[], options?: Abortable): Promise<T>
}

/** Options of a program's run. */
export interface ProgramOptions {
  /** The most bytes that registers, temporaries and outputs may take at the same time. */
  memoryLimit?: number
  /** Whether independent instructions may run at the same time. The results are the same. */
  parallel?: boolean
}

/** The outcome of a program's run. */
export interface Outcome {
  /** The outputs, by the names of their slots. */
  outputs: Record<string, Tensor>
  /** The number of instructions that ran. */
  instructions: number
  /** Floating-point operations; a multiply-add counts as two. */
  flops: number
  /** Seconds from the start of the first instruction to the end of the last. */
  seconds: number
  /** The most bytes that registers, temporaries and outputs took at the same time. */
  memory: number
  /** Statistics of each instruction, in the program's order. */
  trace: Trace[]
}

/** The version of the library. */
export const version: string
