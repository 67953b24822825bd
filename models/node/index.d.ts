/** How to open a model. */
export interface OpenOptions {
  /**
   * "auto", "cpu", "cuda" and "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a part of a GPU's name, or several with
   * commas between them. Without it what `ADEAD_DEVICE` names, else what adead.toml does, else "auto".
   */
  device?: string | null
  /** CPU threads. Without it what `ADEAD_NUM_THREADS` says, else as many as the process may use. */
  threads?: number | null
  /** How the model's matrix products are computed: "fixed24" is as accurate as "f32", "fixed16" is faster. Without it "f32". */
  precision?: 'f32' | 'fixed24' | 'fixed16' | null
}

/** How sentences are batched. No choice changes a bit of a result; what is left out suits the device. */
export interface EncodeOptions {
  /** Sentences that are computed at once, at most. */
  batch?: number | null
  /** Whether sentences of a batch are padded to the longest one. */
  padded?: boolean | null
}

/** How a stream is embedded. */
export interface StreamOptions extends EncodeOptions {
  /** Called with the number of sentences that are computed so far, as there are more. What it throws ends the stream. */
  progress?: (computed: number) => void
}

/** Embeddings: a row for each sentence, in the order of the sentences. */
export class Embeddings {
  private constructor()
  /** The number of the first row's sentence in its stream; 0 for what `encode` returns. */
  readonly first: number
  /** All rows behind each other. */
  readonly values: Float32Array
  /** Sentences. */
  readonly rows: number
  /** Values of a row. */
  readonly width: number
  /** The rows whose sentences had more tokens than the model takes, of which the first were used, in ascending order. */
  readonly truncated: number[]
  /** A row, without a copy. `invalid_argument` if there is none of that number. */
  row(number: number): Float32Array
}

/**
 * A model of sentence-transformers: tokenizer, encoder, pooling. Calls may run at the same time. Its memory goes when the
 * collector has found that nothing refers to it, in the next turn of the event loop.
 */
export class SentenceEncoder {
  private constructor()
  /**
   * Opens the folder of a model, BERT with mean pooling. `io` for a file that is missing, `invalid_argument` and
   * `shape_mismatch` for one that is malformed or does not fit the others, `unsupported` for a model of another kind,
   * `backend_unavailable` for a device that is not there.
   */
  static open(folder: string, options?: OpenOptions | null): SentenceEncoder
  /** `open` on another thread. */
  static openAsync(folder: string, options?: OpenOptions | null): Promise<SentenceEncoder>
  /** Values of an embedding. */
  readonly width: number
  /** Tokens of a sentence at most, the special ones at its ends counted; what is behind them has no effect. */
  readonly maxTokens: number
  /** The id of its device, such as "cpu" or "cuda:0"; the CPU where several were named, the first of several GPUs. */
  readonly device: string
  /** The embeddings of sentences. `invalid_argument` for what is no string or no Unicode text, and for batches of 0. */
  encode(sentences: readonly string[], options?: EncodeOptions | null): Embeddings
  /** `encode` on another thread. */
  encodeAsync(sentences: readonly string[], options?: EncodeOptions | null): Promise<Embeddings>
  /**
   * Embeds sentences as they come, in parts of at most 1,024 rows. The next sentences are taken and computed while a part is
   * used; no more than two parts are ahead. An error of the source or of a sentence is thrown behind the rows of the parts
   * before it. A loop that ends early ends the source, too.
   */
  batchEmbed(
    sentences: Iterable<string> | AsyncIterable<string>,
    options?: StreamOptions | null,
  ): AsyncGenerator<Embeddings, void, void>
}

/** The name of a status. */
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

/** What every call throws and every promise rejects with. */
export class AdeadError extends Error {
  constructor(message: string, code: StatusName, status: number)
  /** What went wrong. */
  readonly code: StatusName
  /** The same as the number that every language shares. */
  readonly status: number
}
