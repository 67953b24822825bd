import type { DType } from './operations'
import type { Context, DeviceBuffer, Stream, TypedArray } from './native'
import type { ArrayOf, BufferOperand, Tensor } from './tensor'

/** The context of a batch's work in `overlap`: the stream to enqueue work on, the batch on the device, and buffers. */
export interface Stage {
  /** The index of the batch; the first one is 0. */
  readonly index: number
  /** The stream for the batch's work. */
  readonly stream: Stream
  /** The batch on the device. A typed array has one dimension. If it can hold several dtypes, the work must name one.
   * */
  readonly input: BufferOperand
  /**
   * Returns a buffer for results and intermediate values, f32 by default. The n-th call for a batch reuses the buffer
   * of an earlier batch's n-th call, with its old bytes, if the size is the same. Otherwise it returns a new buffer of
   * zeros.
   */
  buffer<D extends DType = 'f32'>(dims: readonly number[], dtype?: D): BufferOperand & { dtype: D }
}

/** Enqueues the work of a batch. The buffer that it returns is downloaded. */
type Work<R> = (stage: Stage) => R | Promise<R>
type Iterated<T> = Iterable<T | Promise<T>> | AsyncIterable<T>

/** Options of `overlap`. */
export interface OverlapOptions {
  /** The most batches in flight, from 1 to 64: 1 is sequential, 2 double buffering, 3 (the default) triple buffering.
   * */
  depth?: number
  /** The context. By default the default context. */
  context?: Context
}

/**
 * Processes batches on a device, at most `depth` at once, each on its own stream. A batch is uploaded, `work` enqueues
 * work on it, and the buffer that `work` returns is downloaded as an array. At every depth the results equal those of a
 * loop that processes one batch after the other. A batch's work begins when the work of the previous batch is done, so
 * `work` may use buffers that all batches share. Results come in order. An error comes in its batch's place and ends
 * the generator; then no other batch starts.
 *
 * This thread makes the uploads, but does not block in waits. Leaving the loop waits for the batches in flight and
 * frees the buffers.
 */
export function overlap<D extends DType>(
  batches: Iterated<TypedArray | Tensor>,
  work: Work<BufferOperand & { dtype: D }>,
  options?: OverlapOptions,
): AsyncGenerator<ArrayOf<D>, void, undefined>
export function overlap(
  batches: Iterated<TypedArray | Tensor>,
  work: Work<DeviceBuffer>,
  options?: OverlapOptions,
): AsyncGenerator<Uint8Array, void, undefined>
export function overlap(
  batches: Iterated<TypedArray | Tensor>,
  work: Work<void | null | undefined>,
  options?: OverlapOptions,
): AsyncGenerator<undefined, void, undefined>

/**
 * Takes items of an iterable, one after the other, at most `ahead` (by default 2) items before the consumer, including
 * the one that is being made. An error comes after the items before it and ends both. Leaving the loop ends the
 * iterable.
 */
export class DataLoader<T> implements AsyncIterableIterator<T> {
  constructor(source: Iterated<T>, options?: { ahead?: number })
  next(): Promise<IteratorResult<T, undefined>>
  return(value?: undefined): Promise<IteratorResult<T, undefined>>
  [Symbol.asyncIterator](): this
}
