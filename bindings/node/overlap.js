'use strict'

// Batches through a device, several in flight at once, and items made ahead: docs/overlap.md.

const { refused } = require('./errors.js')

module.exports = (native) => {
  const MAX_DEPTH = 64
  const ARRAYS = {
    f32: Float32Array,
    f16: Uint16Array,
    bf16: Uint16Array,
    i32: Int32Array,
    i64: BigInt64Array,
    u32: Uint32Array,
    bool: Uint8Array,
    u8: Uint8Array,
    f64: Float64Array,
  }
  const DTYPES = new Map([
    [Float32Array, 'f32'],
    [Int32Array, 'i32'],
    [BigInt64Array, 'i64'],
    [Uint32Array, 'u32'],
    [Float64Array, 'f64'],
  ])

  const iterate = (source) => source[Symbol.asyncIterator]?.() ?? source[Symbol.iterator]()

  class DataLoader {
    #iterator
    #ahead
    #ready = []
    #wake
    #filling
    #ended = false

    constructor(source, { ahead = 2 } = {}) {
      if (!Number.isInteger(ahead) || ahead < 1) throw refused(`a loader must be at least 1 item ahead, not ${ahead}`)
      this.#iterator = iterate(source)
      this.#ahead = ahead
      this.#fill()
    }

    /** Takes items one after the other, up to the limit. The last one is the end or an error. */
    #fill() {
      this.#filling ??= this.#take().finally(() => (this.#filling = undefined))
    }

    async #take() {
      while (!this.#ended && this.#ready.length < this.#ahead) {
        let item
        try {
          const { done, value } = await this.#iterator.next()
          item = done ? { done } : { value: await value }
        } catch (error) {
          item = { error }
        }
        if ('done' in item || 'error' in item) this.#ended = true
        this.#ready.push(item)
        this.#wake?.()
      }
    }

    [Symbol.asyncIterator]() {
      return this
    }

    async next() {
      while (this.#ready.length === 0) {
        if (this.#ended) return { done: true, value: undefined }
        await new Promise((wake) => (this.#wake = wake))
      }
      const item = this.#ready.shift()
      // When the item that is being taken has arrived, one more may be taken.
      if (this.#filling) this.#filling.then(() => this.#fill())
      else this.#fill()
      if ('error' in item) throw item.error
      return 'done' in item ? { done: true, value: undefined } : { done: false, value: item.value }
    }

    async return(value) {
      const running = !this.#ended
      this.#ended = true
      this.#ready = []
      this.#wake?.()
      await this.#filling
      this.#ready = []
      if (running) await this.#iterator.return?.()
      return { done: true, value }
    }
  }

  /** A stream and the buffers of the one batch in flight on it. */
  class Lane {
    constructor(context) {
      this.context = context
      this.stream = context.stream()
      this.buffers = []
    }

    /** Returns the lane's buffer with a number. It reuses the old one if the size is the same. */
    fit(place, bytes) {
      if (this.buffers[place]?.nbytes !== bytes) {
        this.buffers[place]?.free()
        this.buffers[place] = undefined
        this.buffers[place] = this.context.buffer({ nbytes: bytes })
      }
      return this.buffers[place]
    }

    /** Waits for the lane's work, and frees its memory. */
    async end() {
      // The results are no longer needed, and neither are errors.
      await this.stream.synchronizeAsync().catch(() => {})
      for (const buffer of this.buffers) buffer?.free()
    }
  }

  class Stage {
    #lane
    #used = 1

    constructor(lane, index, input) {
      this.#lane = lane
      this.index = index
      this.input = input
    }

    get stream() {
      return this.#lane.stream
    }

    buffer(dims, dtype = 'f32') {
      if (!Object.hasOwn(ARRAYS, dtype)) throw refused(`there is no dtype '${dtype}'`)
      const bytes = dims.reduce((product, n) => product * n, ARRAYS[dtype].BYTES_PER_ELEMENT)
      return { buffer: this.#lane.fit(this.#used++, bytes), dtype, dims: [...dims] }
    }
  }

  /** Enqueues a batch: its upload, what `fn` enqueues after the work of the batch before, and the download. */
  async function start(lane, index, batch, before, fn) {
    const tensor = batch instanceof native.Tensor
    const bytes = tensor ? batch.toBytes() : batch
    if (!ArrayBuffer.isView(bytes)) throw refused(`batch ${index} is neither a typed array nor a tensor`)
    const buffer = lane.fit(0, bytes.byteLength)
    const [dtype, dims] = tensor ? [batch.dtype, batch.dims] : [DTYPES.get(batch.constructor), [batch.length]]
    lane.stream._begin(buffer, bytes, before)
    const result = await fn(new Stage(lane, index, { buffer, dtype, dims }))
    if (result === undefined || result === null) return { lane, event: lane.stream._bring(undefined, 0, 0, true)[0] }
    const whole = result instanceof native.DeviceBuffer
    const from = whole ? result : result.buffer
    const kind = whole ? Uint8Array : ARRAYS[result.dtype]
    const size = whole
      ? from.nbytes
      : result.dims.reduce((product, n) => product * n, kind?.BYTES_PER_ELEMENT)
    const offset = whole ? 0 : (result.offset ?? 0)
    const [event, download] = lane.stream._bring(from, offset, size, lane.buffers.includes(from))
    return { lane, event, download, kind }
  }

  /** Waits for a batch; then its lane is free. */
  async function finish({ lane, download, kind }) {
    const bytes = await download?.toBytesAsync()
    // This raises errors that only the device can find.
    await lane.stream.synchronizeAsync()
    return bytes && new kind(bytes.buffer, bytes.byteOffset, bytes.byteLength / kind.BYTES_PER_ELEMENT)
  }

  function overlap(batches, fn, { depth = 3, context = native.defaultContext() } = {}) {
    if (!Number.isInteger(depth) || depth < 1 || depth > MAX_DEPTH) {
      throw refused(`overlap: the depth is ${depth}; it must be from 1 to ${MAX_DEPTH}`)
    }
    return results(batches, fn, depth, context)
  }

  async function* results(batches, fn, depth, context) {
    const free = []
    const lanes = []
    const underWay = []
    const iterator = iterate(batches)
    // `ended`: no other batch starts. `exhausted`: no batch is left.
    let [index, before, ended, exhausted] = [0, undefined, false, false]
    /** Starts batches while there are free lanes. An error is the last one. */
    const fill = async () => {
      while (!ended && underWay.length < depth) {
        try {
          if (free.length === 0) {
            free.push(new Lane(context))
            lanes.push(free[0])
          }
          exhausted = true // unless the iterator has another batch
          const { done, value } = await iterator.next()
          if (done) {
            ended = true
            return
          }
          exhausted = false
          const started = await start(free.pop(), index++, await value, before, fn)
          before = started.event
          underWay.push(started)
        } catch (error) {
          ended = true
          underWay.push({ error })
        }
      }
    }
    try {
      for (await fill(); underWay.length > 0; ) {
        const oldest = underWay.shift()
        if ('error' in oldest) throw oldest.error
        const result = await finish(oldest)
        free.push(oldest.lane)
        await fill()
        yield result
      }
    } finally {
      if (!exhausted) await iterator.return?.()
      await Promise.all(lanes.map((lane) => lane.end()))
    }
  }

  return { overlap, DataLoader }
}
