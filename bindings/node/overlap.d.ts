import type { DType } from './operations'
import type { Context, DeviceBuffer, Stream, TypedArray } from './native'
import type { ArrayOf, BufferOperand, Tensor } from './tensor'

/** What `overlap`'s function is given for a batch: the stream to enqueue work on, the batch on the device, buffers. */
export interface Stage {
  /** Of which batch: the first one is 0. */
  readonly index: number
  /** Where to enqueue work. */
  readonly stream: Stream
  /** The batch on the device. A typed array is of one dimension; one that may hold several dtypes needs a dtype said. */
  readonly input: BufferOperand
  /**
   * A buffer for results and intermediate values, f32 unless said. The n-th call for a batch gives what the n-th call gave
   * for an earlier one, with what it had, if that has the same size; else a new one, zeroed.
   */
  buffer<D extends DType = 'f32'>(dims: readonly number[], dtype?: D): BufferOperand & { dtype: D }
}

/** What is enqueued for a batch; what it returns is brought to the host. */
type Work<R> = (stage: Stage) => R | Promise<R>
type Iterated<T> = Iterable<T | Promise<T>> | AsyncIterable<T>

/** How much is under way, and where. */
export interface OverlapOptions {
  /** Batches under way at once, from 1 to 64: 1 is sequential, 2 double buffering, 3 (the default) triple buffering. */
  depth?: number
  /** Where: the default context unless said. */
  context?: Context
}

/**
 * Takes batches through a device, at most `depth` at once, each on a stream of its own: it is uploaded, `work` enqueues work
 * on it, and what `work` returns is brought to the host as an array. The results are those of a loop that does one batch
 * after the other, whatever the depth: work of a batch begins when the work of the batch before is done, so `work` may use
 * buffers that all batches share. Results come in order. An error comes in its batch's place and ends the generator; then
 * nothing more is started.
 *
 * Uploads are calls of this thread; waiting is not. Leaving the loop waits for what is under way and frees the buffers.
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
 * Takes items of an iterable, one after the other, at most `ahead` (2 unless said) before who takes them, counting the one
 * that is being made. An error comes behind the items before it and ends both; leaving the loop ends the iterable.
 */
export class DataLoader<T> implements AsyncIterableIterator<T> {
  constructor(source: Iterated<T>, options?: { ahead?: number })
  next(): Promise<IteratorResult<T, undefined>>
  return(value?: undefined): Promise<IteratorResult<T, undefined>>
  [Symbol.asyncIterator](): this
}
