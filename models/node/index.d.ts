/// <reference lib="esnext.disposable" />

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

/** How to open a model that writes text. No choice changes a bit of a text. */
export interface TextOptions {
  /** As for `SentenceEncoder`. Without it what `ADEAD_DEVICE` names, else what adead.toml does, else "cpu". */
  device?: string | null
  /** CPU threads. Without it what `ADEAD_NUM_THREADS` says, else as many as the process may use. */
  threads?: number | null
  /** The most tokens of a sequence, prompt and answer together. Without it what the file says, the largest number too. */
  contextLength?: number | null
  /** The most tokens that are computed at once. Without it 512. */
  chunk?: number | null
  /** Whether the file is mapped instead of read. It must not change while the generator lives. */
  map?: boolean | null
  /**
   * Called with the number of bytes that are read, and of all, as the file is read; not for a mapped file. What it throws ends
   * the work and is thrown by the call.
   */
  onProgress?: ((read: number, all: number) => void) | null
}

/** How text is generated. Without options the most likely tokens are taken. docs/text-generation.md has the steps of sampling. */
export interface GenerateOptions {
  /** The most tokens of an answer; 512 without it. */
  maxTokens?: number | null
  /** Texts that end an answer, wherever tokens begin and end. The answer does not contain them. */
  stop?: string | readonly string[] | null
  /** Whether an answer goes on after tokens that would end it. */
  ignoreEnd?: boolean | null
  /**
   * A JSON schema, as an object or as its text: the answer is JSON that it allows, and ends when the JSON is complete. `{}` allows any
   * JSON.
   */
  jsonSchema?: object | boolean | string | null
  /** The factor that flattens the distribution. 0, the default, takes the most likely token; 1 draws by the model's own probabilities. */
  temperature?: number | null
  /** The most tokens to draw from; 0, the default, is all. */
  topK?: number | null
  /** The probability that the tokens to draw from reach together, 0 to 1; 1, the default, is all. */
  topP?: number | null
  /** The least probability of a token to draw from, as a part of the most likely token's, 0 to 1; 0, the default, is all. */
  minP?: number | null
  /** The penalty of recent tokens; 1, the default, is none. */
  repeatPenalty?: number | null
  /** How many of the last tokens are recent, the prompt's included; 64 without it. */
  repeatLast?: number | null
  /** The seed of the random numbers, of 64 bits: a number up to 2^53 - 1, or a bigint. 0 without it. */
  seed?: number | bigint | null
  /** The number of the sequence; 0 without it. Sequences of one seed draw different numbers. */
  sequence?: number | bigint | null
}

/** How a text of one prompt is generated. */
export interface TextGenerateOptions extends GenerateOptions {
  /**
   * Called with the number of the prompt's tokens that are computed, and of all, after each chunk. What it throws ends the text
   * and is thrown by the call.
   */
  onProgress?: ((computed: number, all: number) => void) | null
}

/** A message of a conversation. */
export interface Message {
  /** The speaker: "system", "user" or "assistant", or another name that the model's chat template knows. */
  role: string
  content: string
}

/** A generated text. */
export interface Generation {
  /** The text, without the prompt. */
  text: string
  /** Its tokens. If a token ended it, that one is the last. Tokens of a stop text are here, and not in the text. */
  tokens: number[]
  /** Why it ended: the model ended it, a stop text came, it has `maxTokens` tokens, or it filled the context. null before its end. */
  finish: 'end' | 'stop' | 'max_tokens' | 'context_full' | null
  /** The number of the prompt's tokens. */
  promptTokens: number
}

/** A text that is generated piece by piece, for `for await`. Pieces are not empty and may have several tokens. */
export class TextStream implements AsyncIterableIterator<string> {
  private constructor()
  [Symbol.asyncIterator](): this
  /** Computes the next piece on another thread. Only then is the prompt computed. */
  next(): Promise<IteratorResult<string, undefined>>
  /**
   * Ends the stream and frees its memory, at once or when the piece that is being computed is there. No piece comes afterwards. A
   * loop that ends early calls it.
   */
  return(): Promise<IteratorResult<string, undefined>>
  /** `return()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
  /** What is generated so far; all of it behind the last piece. `not_ready` while a piece is computed. */
  readonly generation: Generation
}

/**
 * A model that writes text, in a GGUF file. Calls may run at the same time. Functions that end in `Async` compute on another thread.
 * `close` frees its memory, or else the collector.
 */
export class TextGenerator {
  private constructor()
  /**
   * Opens a file. `io` for one that can't be read, `invalid_argument`, `dtype_mismatch` and `shape_mismatch` for one that is
   * malformed, `unsupported` for a model of another kind, `backend_unavailable` for a device that is not there.
   */
  static open(path: string, options?: TextOptions | null): TextGenerator
  static openAsync(path: string, options?: TextOptions | null): Promise<TextGenerator>
  /**
   * Frees the model's memory, when calls and streams that are under way have ended. Later calls are `invalid_argument`. Closing
   * again does nothing.
   */
  close(): void
  /** `close()`, for `using`. */
  [Symbol.dispose](): void
  /** The most tokens of a sequence, prompt and answer together. */
  readonly contextLength: number
  /** The number of different tokens. */
  readonly vocabulary: number
  /** The number of values of an embedding. */
  readonly width: number
  /** Whether the file has a chat template, which `chat` needs. */
  readonly hasChatTemplate: boolean
  /** The id of its device, such as "cpu" or "cuda:0". */
  readonly device: string
  /**
   * Generates the text that follows a prompt. `invalid_argument` for a prompt without tokens or with more than the context length,
   * and for options outside their ranges.
   */
  generate(prompt: string, options?: TextGenerateOptions | null): Generation
  generateAsync(prompt: string, options?: TextGenerateOptions | null): Promise<Generation>
  /**
   * Generates texts for several prompts at once, which is faster than one by one. Every text has the bits that it has alone, with
   * the number of its sequence: that of the options plus the number of its prompt.
   */
  generateBatch(prompts: readonly string[], options?: GenerateOptions | null): Generation[]
  generateBatchAsync(prompts: readonly string[], options?: GenerateOptions | null): Promise<Generation[]>
  /** Generates the text that follows a prompt piece by piece. */
  stream(prompt: string, options?: TextGenerateOptions | null): TextStream
  /**
   * Generates an answer to messages, which the model's chat template writes as a prompt. `unsupported` if the file has no chat
   * template, `invalid_argument` if the template refuses the messages.
   */
  chat(messages: readonly Message[], options?: TextGenerateOptions | null): Generation
  chatAsync(messages: readonly Message[], options?: TextGenerateOptions | null): Promise<Generation>
  /** Generates an answer to messages piece by piece. */
  chatStream(messages: readonly Message[], options?: TextGenerateOptions | null): TextStream
  /** The tokens of a text. The text of a special token, such as `<|im_start|>`, becomes that token. */
  tokenize(text: string): number[]
  /** The text of tokens. Special tokens have none; bytes that are not UTF-8 become U+FFFD. */
  detokenize(tokens: readonly number[] | Uint32Array): string
  /** e to the mean of the negative `logprobs` of a text. `invalid_argument` for fewer than two tokens. */
  perplexity(text: string): number
  perplexityAsync(text: string): Promise<number>
  /** The logarithm of the probability of each token but the first, given those before it. */
  logprobs(tokens: readonly number[] | Uint32Array): Float32Array
  logprobsAsync(tokens: readonly number[] | Uint32Array): Promise<Float32Array>
  /** The mean of the last hidden states of a text's tokens. `SentenceEncoder` says more about meaning. */
  embed(text: string): Float32Array
  embedAsync(text: string): Promise<Float32Array>
}

/** A format of quantised blocks. */
export type BlockFormat = 'q8_0' | 'q4_0' | 'q4_1' | 'q5_0' | 'q5_1' | 'q4_k' | 'q5_k' | 'q6_k'

/**
 * Writes values as blocks of a format. Rows of a matrix may be written together: the result has the bytes of what adead's
 * `quantizedMatmul` takes as a u8 tensor `[rows, bytes of a row]`. The same values give the same bytes everywhere.
 *
 * `shape_mismatch` if the values are not whole blocks, `invalid_argument` with the position for a value that is NaN or infinite, and
 * for a block whose scale is beyond 65504.
 */
export function quantize(values: Float32Array, format: BlockFormat): Uint8Array
/** `quantize` on another thread, of a copy. */
export function quantizeAsync(values: Float32Array, format: BlockFormat): Promise<Uint8Array>

/** How a model is converted. */
export interface ConvertOptions {
  /** How matrices are stored: all in one way, or in llama.cpp's mixtures. Without it as a folder has them; a GGUF file needs it. */
  kind?: BlockFormat | 'f32' | 'f16' | 'bf16' | 'q4_k_m' | 'q5_k_m' | null
}

/**
 * Writes a model as a GGUF file: a folder of Hugging Face, such as SmolLM2-135M-Instruct, or another GGUF file. The file appears when
 * it is complete, and then replaces a file of that name. The same model gives the same bytes everywhere. Returns notes for the user:
 * tensors that are stored in another way, what a GGUF file can't say.
 *
 * `io` for a file that is missing or can't be read or written, `invalid_argument` and `shape_mismatch` for a malformed one,
 * `unsupported` for a model of another kind.
 */
export function convert(model: string, file: string, options?: ConvertOptions | null): string[]
/** `convert` on another thread. */
export function convertAsync(model: string, file: string, options?: ConvertOptions | null): Promise<string[]>

/** A layer of a network. docs/training.md says what each one does. */
export type Layer =
  | 'relu'
  | 'gelu'
  | 'silu'
  | 'tanh'
  | 'flatten'
  | 'layer_norm'
  /** The number of outputs. */
  | { linear: number }
  /** `size` is that of the window; `stride` is 1 and `padding` 0 without them. Samples are [channels, rows, columns]. */
  | { conv: { channels: number; size: number; stride?: number; padding?: number } }
  | { max_pool: number }
  | { avg_pool: number }
  /** The probability with which a value is set to 0 in training. */
  | { dropout: number }

/** A network: layers one after another, or a decoder of transformer blocks, whose samples are bytes of texts. */
export type Network =
  | { kind: 'layers'; layers: readonly Layer[] }
  | { kind: 'gpt'; layers: number; heads: number; width: number; context: number; dropout?: number }

/** How a network learns. docs/training.md has the defaults. */
export interface Optimizer {
  kind: 'sgd' | 'adam' | 'adamw'
  /** The learning rate, above 0. */
  rate: number
  momentum?: number
  nesterov?: boolean
  betas?: readonly [number, number]
  eps?: number
  weight_decay?: number
  /** The greatest norm of all gradients. */
  clip_norm?: number
  /** The number of steps in which the rate rises from 0. */
  warmup?: number
  /** "cosine" needs the `steps` of the description. */
  schedule?: 'constant' | 'cosine'
  /** What is left of the rate at the last step of "cosine". */
  end?: number
  /** The part of an average of the parameters that remains at each step. The average is what predicts, is measured and is hashed. */
  average?: number
}

/** A training: a network and how it learns. The names are those of a job's file, and the same in every language. */
export interface Description {
  /** The network; an array of layers is short for `{ kind: 'layers', layers }`. */
  model: Network | readonly Layer[]
  /** The shape of a sample, such as [1, 28, 28]. A `gpt` need not be given it. */
  input?: readonly number[]
  /**
   * What becomes small. The targets of "cross_entropy", the default, are classes; those of the others are floats with the shape of the
   * outputs.
   */
  loss?: 'cross_entropy' | 'mse' | 'binary_cross_entropy' | null
  optimizer: Optimizer
  /** The number of samples of a step. */
  batch: number
  /** The parts of a batch whose gradients are added up in a tree: a power of two that divides the batch. 1 without it. */
  shards?: number | null
  /** The seed of parameters, dropout and the order of samples, of 64 bits: a number up to 2^53 - 1, or a bigint. 0 without it. */
  seed?: number | bigint | null
  /** The number of steps of the whole training, which a schedule needs. */
  steps?: number | null
  /** The type that values between layers are rounded to, and the gradients by them. */
  storage?: 'f16' | 'bf16' | null
  /** Whether the backward pass computes values of layers again instead of keeping them: less memory, the same bits. */
  recompute?: boolean
  /** The factor of the loss from which gradients are computed, a power of two. "dynamic" adapts it. */
  loss_scale?: number | 'dynamic' | null
}

/** What a trainer takes and gives for one sample. [] is one value. */
export interface Sample {
  /** The type of a sample's values: "i64" for ids, which a `BigInt64Array` has. */
  dtype: 'f32' | 'i64'
  /** The sample's shape. */
  dims: number[]
  /** The type of a target's values: "i64" for classes. */
  target: 'f32' | 'i64'
  /** The target's shape. */
  targets: number[]
  /** The shape of what the network computes for a sample. */
  outputs: number[]
}

/** Samples behind each other: floats, or ids for a `gpt`. Their number follows from the length. */
export type Samples = Float32Array | BigInt64Array
/** As many targets behind each other: floats, or classes from 0 on, which may be plain numbers. */
export type Targets = Float32Array | BigInt64Array | readonly number[]

/** How a trainer fits samples. */
export interface FitOptions {
  /** How often all samples are seen; 1 without it. */
  epochs?: number | null
  /**
   * Called with the epoch, from 1 on, the number of steps so far and the step's loss, after each step. The training waits for it. What it
   * throws ends the training at this step and is thrown by the call.
   */
  onProgress?: ((epoch: number, step: number, loss: number) => void) | null
}

/** What was measured with samples. */
export interface Measured {
  /** The mean loss. */
  loss: number
  /** The part of the samples whose most likely class is the right one, 0 to 1. */
  accuracy: number
}

/** A parameter of a network. */
export interface Parameter {
  dims: number[]
  values: Float32Array
}

/** How ranks meet. */
export interface JoinOptions {
  /** How many seconds a rank may take to come, and to compute its part of a step; 300 without it. */
  patience?: number | null
}

/**
 * A network in training. Its weights are a function of the description and the samples: they have the same bits on every device, with any
 * number of threads, and in every language.
 *
 * One call at a time uses a trainer: while one computes, others are `not_ready`. Functions that end in `Async` compute on another thread,
 * with a copy of their arrays. Arrays that don't fit are `shape_mismatch` and `dtype_mismatch`, and a class that does not exist is
 * `invalid_argument`.
 */
export class Trainer {
  private constructor()
  /**
   * Compiles a training. `invalid_argument` and `shape_mismatch` for a description that is malformed or makes no network,
   * `backend_unavailable` for a device that is not there.
   */
  static create(description: Description, options?: OpenOptions | null): Trainer
  static createAsync(description: Description, options?: OpenOptions | null): Promise<Trainer>
  /**
   * Frees the network's memory, when a call that is under way has ended. Later calls are `invalid_argument`. Closing again does nothing.
   */
  close(): void
  /** `close()`, for `using`. */
  [Symbol.dispose](): void
  /** The number of steps so far. */
  readonly steps: number
  /** The number of samples of a step. */
  readonly batch: number
  /** The id of its device, such as "cpu" or "cuda:0". */
  readonly device: string
  /** What it takes and gives for one sample. */
  readonly sample: Sample
  /**
   * Trains with one batch, and returns its loss from before the step. `shape_mismatch` for another number of samples than the batch,
   * `invalid_argument` for a loss that is not finite. Then nothing has changed.
   */
  step(x: Samples, targets: Targets): number
  stepAsync(x: Samples, targets: Targets): Promise<number>
  /**
   * Trains with all samples `epochs` times, in an order that the seed draws for each epoch. Samples that don't fill a batch wait for the
   * next epoch. Returns the mean loss of the last epoch. Errors are those of `step`; steps before an error are made.
   */
  fit(x: Samples, targets: Targets, options?: FitOptions | null): number
  fitAsync(x: Samples, targets: Targets, options?: FitOptions | null): Promise<number>
  /** Computes the outputs for any number of samples, behind each other, with the averages of the parameters where the optimiser has them. */
  predict(x: Samples): Float32Array
  predictAsync(x: Samples): Promise<Float32Array>
  /** Measures samples with their classes. `unsupported` for a loss without classes. */
  evaluate(x: Samples, targets: Targets): Measured
  evaluateAsync(x: Samples, targets: Targets): Promise<Measured>
  /** Writes parameters, optimiser and step to a safetensors file, which replaces an older one at once. `io` if it can't be written. */
  save(path: string): void
  /**
   * Continues from a file of `save`: the next steps have the bits that they would have had there. `io`, `invalid_argument` and
   * `shape_mismatch` for a file that can't be read or belongs to another training.
   */
  load(path: string): void
  /** The SHA-256 of the parameters in the order of their names, as f32, little endian. `adead train` prints it too. */
  sha256(): string
  /** Copies of the parameters by name: the averages, where the optimiser has them. */
  parameters(): Map<string, Parameter>
  /**
   * Trains together with other processes from here on. `place` is the rank of this one: "0/4@host:29500" for rank 0 of 4, with the
   * address on which rank 0 waits, or "env" for what torchrun, Open MPI, MPICH or Slurm says. All ranks take the parameters of rank 0.
   * Then each makes the same calls with the same samples, and computes its own part of every batch.
   *
   * `invalid_argument` if there are more ranks than shards, or the trainings differ; `io` if a rank does not come or is lost.
   */
  join(place: string, options?: JoinOptions | null): void
  joinAsync(place: string, options?: JoinOptions | null): Promise<void>
}

/** What a job tells as it goes on: a step was made, or an epoch is over. */
export interface TrainEvent {
  /** Whether an epoch is over. */
  epochIsOver: boolean
  /** The epoch, from 1 on. */
  epoch: number
  /** The number of steps so far. */
  step: number
  /** All steps of the job. */
  steps: number
  /** The loss of the step's batch, or the mean loss of the epoch's batches. */
  loss: number
  /** The mean loss of the samples that are held out; NaN after a step. */
  heldOutLoss: number
  /** The part of them whose most likely class is the right one, 0 to 1; NaN after a step. */
  accuracy: number
  /** The duration of the epoch with its measurement, in seconds; NaN after a step. */
  seconds: number
}

/** How a job runs. */
export interface TrainOptions extends JoinOptions {
  /** As for `SentenceEncoder`. */
  device?: string | null
  /** CPU threads, as for `SentenceEncoder`. */
  threads?: number | null
  /** Whether the job continues from its checkpoint, if there is one. */
  resume?: boolean | null
  /** The number of epochs, at least 1; without it the job's. */
  epochs?: number | null
  /** The rank of this process, as `join` takes it. Without it the process trains alone. */
  ranks?: string | null
  /** Called after each step and each epoch. The job waits for it. What it throws ends the job and is thrown by the call. */
  onProgress?: ((event: TrainEvent) => void) | null
}

/** What a job gave. */
export interface TrainOutcome {
  /** The number of steps, those before a checkpoint included. */
  steps: number
  /** The mean loss of the samples that are held out, after the last epoch. NaN if this run had none, or on a rank above 0. */
  heldOutLoss: number
  /** The part of them whose most likely class is the right one, 0 to 1. NaN as above. */
  accuracy: number
  /** The SHA-256 of the parameters, as `Trainer.sha256` returns it. */
  sha256: string
  /** The device that trained. */
  device: string
}

/**
 * Trains what a job's file says: a TOML file, which docs/training.md describes. `io` and `invalid_argument` for a job, data or a
 * checkpoint that can't be read or is malformed.
 */
export function train(path: string, options?: TrainOptions | null): TrainOutcome
/** `train` on another thread. */
export function trainAsync(path: string, options?: TrainOptions | null): Promise<TrainOutcome>

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
