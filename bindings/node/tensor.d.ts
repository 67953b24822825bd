import type { Abortable, DType, StatusName, TensorOperations } from './operations'
import { Context, type DeviceBuffer, type Trace, type TypedArray } from './native'

/** The array that holds elements of a dtype: f16 and bf16 by their bits, bools as bytes, of which 0 is false. */
export type ArrayOf<D extends DType = DType> = D extends 'f32'
  ? Float32Array
  : D extends 'f16' | 'bf16'
    ? Uint16Array
    : D extends 'i32'
      ? Int32Array
      : D extends 'i64'
        ? BigInt64Array
        : D extends 'bool'
          ? Uint8Array
          : Uint32Array

/** A shaped value, in host memory or on devices. Its contents never change. */
export interface Tensor extends TensorOperations {}
export class Tensor {
  /**
   * A tensor with a copy of an array's elements. A Uint16Array holds f16 or bf16: say which. Of bools an array
   * or, with `'bool'`, a Uint8Array. `shape_mismatch` if dims don't
   * multiply to the array's length.
   */
  constructor(data: Float32Array | Int32Array | BigInt64Array | Uint32Array, dims: readonly number[], dtype?: DType)
  constructor(data: Uint16Array, dims: readonly number[], dtype: 'f16' | 'bf16')
  constructor(data: Uint8Array | readonly boolean[], dims: readonly number[], dtype: 'bool')
  constructor(data: readonly boolean[], dims: readonly number[])
  /** A tensor of zeros. */
  static zeros(dtype: DType, dims: readonly number[]): Tensor
  /** A tensor with a copy of elements that are given as bytes, little endian on a little endian machine. */
  static fromBytes(bytes: TypedArray, dtype: DType, dims: readonly number[]): Tensor
  /** The type of its elements. */
  readonly dtype: DType
  /** Its dimensions; none for a scalar. */
  readonly dims: number[]
  /** The number of its elements. */
  readonly length: number
  /** Bytes of its elements. */
  readonly byteLength: number
  /** A copy of its elements, row-major. */
  toArray<D extends DType = 'f32'>(): ArrayOf<D>
  /** A copy of their bytes. */
  toBytes(): Uint8Array
  /**
   * Its memory itself, without a copy. The array keeps the tensor's memory, and both may be used in any order. Writing to it
   * changes the tensor and every reshape of it: do so only while no promise computes with them. The array can't be
   * transferred to a worker.
   */
  view<D extends DType = 'f32'>(): ArrayOf<D>
  /** Where its values are: `'cpu'` for host memory, and ids of devices. `Context.to` brings them there. */
  readonly places: string[]
  /**
   * Starts to bring its values to host memory, where they are on devices only; reading them waits. What `view` was called of has
   * its only copy there.
   */
  toCpu(): Tensor
  /** The same values in another shape of as many elements, without a copy. */
  reshape(dims: readonly number[]): Tensor
  /** Its dtype, shape and first elements. */
  toString(): string
}

/** The best GPU of the machine, or one by name, as a context: `backend_unavailable` says why there is none. */
export class GPU extends Context {
  constructor(device?: string | null)
  /** The same on another thread; the context is no `GPU`, but does the same. */
  static openAsync(device?: string | null): Promise<Context>
}

/** How serious a message of `setLogger` is. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace'

/** What every call of adead throws and every promise rejects with. */
export class AdeadError extends Error {
  constructor(message: string, code: StatusName, status: number)
  /** What went wrong. */
  readonly code: StatusName
  /** The same as the number that every language shares. */
  readonly status: number
}

/** Part of a buffer as an operand: what its elements are and at which byte they begin. */
export interface BufferOperand {
  buffer: DeviceBuffer
  offset?: number
  dtype: DType
  dims: readonly number[]
}

/** How many zeros a buffer is made of: elements of a dtype, f32 where it is left out, or bytes. */
export type BufferSize = { size: number; dtype?: DType } | { nbytes: number; dtype?: DType }

/** How a pipeline runs once. */
export interface PipelineRuns {
  /**
   * Runs what is recorded so far, which has no inputs: its output, an array of several. What it was compiled to serves the next
   * one with the same operations and shapes.
   */
  execute<T extends Tensor | Tensor[] = Tensor>(): T
  /** `execute` on another thread. */
  executeAsync<T extends Tensor | Tensor[] = Tensor>(options?: Abortable): Promise<T>
}

/** How a compiled pipeline runs. */
export interface CompiledRuns {
  /**
   * Runs it on its input, or on an array of them in the order in which they were asked for: its output, an array of several.
   * `invalid_argument` for another number of inputs, `dtype_mismatch` and `shape_mismatch` for one that is not what was recorded.
   */
  run<T extends Tensor | Tensor[] = Tensor>(inputs?: Tensor | readonly Tensor[]): T
  /** `run` on another thread. */
  runAsync<T extends Tensor | Tensor[] = Tensor>(inputs?: Tensor | readonly Tensor[], options?: Abortable): Promise<T>
}

/** How to run a program. */
export interface ProgramOptions {
  /** The most bytes that registers, temporaries and outputs may take at once. */
  memoryLimit?: number
  /** Whether instructions that don't depend on each other may run at the same time; the results are the same. */
  parallel?: boolean
}

/** What a run of a program gave. */
export interface Outcome {
  /** The outputs, by the name of their slot. */
  outputs: Record<string, Tensor>
  /** Instructions that ran. */
  instructions: number
  /** Floating-point operations; a multiply-add is two. */
  flops: number
  /** Seconds from the first instruction's beginning to the last one's end. */
  seconds: number
  /** The most bytes that registers, temporaries and outputs had at once. */
  memory: number
  /** What each instruction did, in the program's order. */
  trace: Trace[]
}

/** The version of the library. */
export const version: string
