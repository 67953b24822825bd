/// <reference lib="esnext.disposable" />

/** Options for opening a model. */
export interface OpenOptions {
  /**
   * "auto", "cpu", "cuda" and "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a part of a GPU's name, or several separated by
   * commas. By default the device of `ADEAD_DEVICE`, else of adead.toml, else "auto".
   */
  device?: string | null
  /** The number of CPU threads. By default that of `ADEAD_NUM_THREADS`, else as many as the process may use. */
  threads?: number | null
  /** The precision of the model's matrix products: "fixed24" is as accurate as "f32", "fixed16" is faster. "f32" by default. */
  precision?: 'f32' | 'fixed24' | 'fixed16' | null
}

/** Options for batching sentences. They never change a bit of a result. An option that is not set suits the device. */
export interface EncodeOptions {
  /** The most sentences that are computed at once. */
  batch?: number | null
  /** Whether sentences of a batch are padded to the longest one. */
  padded?: boolean | null
}

/** Options for embedding a stream. */
export interface StreamOptions extends EncodeOptions {
  /** Called with the number of sentences computed so far, whenever it grows. An exception ends the stream. */
  progress?: (computed: number) => void
}

/** Embeddings: a row for each sentence, in the order of the sentences. */
export class Embeddings {
  private constructor()
  /** The index of the first row's sentence in its stream. 0 in results of `encode`. */
  readonly first: number
  /** All rows, one after another. */
  readonly values: Float32Array
  /** The number of sentences. */
  readonly rows: number
  /** The number of values in a row. */
  readonly width: number
  /** The indices, in ascending order, of rows whose sentences had more tokens than the model takes. Only their first tokens were used. */
  readonly truncated: number[]
  /** Returns a row, without a copy. `invalid_argument` if there is no row of this index. */
  row(number: number): Float32Array
}

/**
 * A model of sentence-transformers: tokenizer, encoder, pooling. Calls may run at the same time. Its memory is freed after garbage
 * collection, in the next turn of the event loop.
 */
export class SentenceEncoder {
  private constructor()
  /**
   * Opens a model's folder: BERT with mean pooling. Errors: `io` for a missing file, `invalid_argument` or `shape_mismatch` for one that is
   * malformed or does not fit the others, `unsupported` for another kind of model, `backend_unavailable` if the device does not exist.
   */
  static open(folder: string, options?: OpenOptions | null): SentenceEncoder
  /** Like `open`, on another thread. */
  static openAsync(folder: string, options?: OpenOptions | null): Promise<SentenceEncoder>
  /** The number of values in an embedding. */
  readonly width: number
  /** The most tokens of a sentence, including the special ones at its ends. Further tokens have no effect. */
  readonly maxTokens: number
  /** The id of its device, such as "cpu" or "cuda:0". If several were named: the CPU, or the first one if all are GPUs. */
  readonly device: string
  /** Returns the embeddings of sentences. `invalid_argument` unless all are strings of valid Unicode, and for batches of 0. */
  encode(sentences: readonly string[], options?: EncodeOptions | null): Embeddings
  /** Like `encode`, on another thread. */
  encodeAsync(sentences: readonly string[], options?: EncodeOptions | null): Promise<Embeddings>
  /**
   * Embeds sentences as they arrive, in parts of at most 1,024 rows. While the caller uses a part, the next ones are computed, at most two
   * ahead. An error of the source or of a sentence is thrown after the parts before it. Leaving the loop early ends the source too.
   */
  batchEmbed(
    sentences: Iterable<string> | AsyncIterable<string>,
    options?: StreamOptions | null,
  ): AsyncGenerator<Embeddings, void, void>
}

/** Options for opening a language model. None of them changes a bit of a text. */
export interface TextOptions {
  /** The device, named as for `SentenceEncoder`. By default that of `ADEAD_DEVICE`, else of adead.toml, else "cpu". */
  device?: string | null
  /** The number of CPU threads. By default that of `ADEAD_NUM_THREADS`, else as many as the process may use. */
  threads?: number | null
  /** The most tokens of a sequence, prompt and answer together. The file's context length is the default and the maximum. */
  contextLength?: number | null
  /** The most tokens that are computed at once. By default 512 on the CPU and 2,048 on a GPU. */
  chunk?: number | null
  /** Whether the file is mapped instead of read. It must not change while the generator lives. */
  map?: boolean | null
  /**
   * Called while the file is read, with the number of bytes read so far and the total; not for a mapped file. An exception ends the call,
   * which rethrows it.
   */
  onProgress?: ((read: number, all: number) => void) | null
}

/**
 * Options for generating text. By default the most likely token is taken each time. The steps of sampling:
 * https://adead.github.io/adead/text-generation.html
 */
export interface GenerateOptions {
  /** The most tokens of an answer; 512 by default. */
  maxTokens?: number | null
  /** Stop texts: one that appears ends the answer, even across tokens, and is not part of it. */
  stop?: string | readonly string[] | null
  /** Whether an answer continues after tokens that would end it. */
  ignoreEnd?: boolean | null
  /**
   * A JSON schema, as an object or as its text: the answer is JSON that it allows, and ends when the JSON is complete. `{}` allows any
   * JSON.
   */
  jsonSchema?: object | boolean | string | null
  /**
   * The temperature. 0, the default, takes the most likely token; 1 samples by the model's own probabilities; more flattens the
   * distribution.
   */
  temperature?: number | null
  /** The number of most likely tokens to sample from; 0, the default, is all. */
  topK?: number | null
  /** Sample from the most likely tokens whose probabilities together reach this, 0 to 1; 1, the default, is all tokens. */
  topP?: number | null
  /** The least probability of a token to sample, as a fraction of the most likely token's, 0 to 1; 0, the default, is all tokens. */
  minP?: number | null
  /** The penalty for recent tokens; 1, the default, is none. */
  repeatPenalty?: number | null
  /** How many of the last tokens count as recent, including the prompt's; 64 by default. */
  repeatLast?: number | null
  /** The seed of the random numbers, of 64 bits: a number up to 2^53 - 1, or a bigint. 0 by default. */
  seed?: number | bigint | null
  /** The number of the sequence; 0 by default. Sequences with the same seed and different numbers draw different random numbers. */
  sequence?: number | bigint | null
}

/** Options for generating the text of one prompt. */
export interface TextGenerateOptions extends GenerateOptions {
  /**
   * Called after each chunk of the prompt, with the number of tokens computed so far and the total. An exception ends the text, and the
   * call rethrows it.
   */
  onProgress?: ((computed: number, all: number) => void) | null
}

/** A message of a conversation. */
export interface Message {
  /** The role: "system", "user", "assistant", or another role that the model's chat template knows. */
  role: string
  content: string
}

/** A generated text. */
export interface Generation {
  /** The text, without the prompt. */
  text: string
  /** Its tokens, including the token that ended it, if one did. Tokens of a stop text are included here, but not in the text. */
  tokens: number[]
  /**
   * Why it ended: the model ended it, a stop text appeared, it reached `maxTokens` tokens, or it filled the context. null before its end.
   */
  finish: 'end' | 'stop' | 'max_tokens' | 'context_full' | null
  /** The number of the prompt's tokens. */
  promptTokens: number
}

/** A text that is generated piece by piece, for `for await`. Pieces are not empty and may have several tokens. */
export class TextStream implements AsyncIterableIterator<string> {
  private constructor()
  [Symbol.asyncIterator](): this
  /** Computes the next piece on another thread. The first call computes the prompt. */
  next(): Promise<IteratorResult<string, undefined>>
  /** Ends the stream and frees its memory, after a piece that is being computed. Leaving a loop early calls it. */
  return(): Promise<IteratorResult<string, undefined>>
  /** `return()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
  /** Returns the text generated so far. After the last piece it is complete. `not_ready` while a piece is computed. */
  readonly generation: Generation
}

/**
 * A language model in a GGUF file, which generates text. Calls may run at the same time. Functions that end in `Async` compute on another
 * thread. `close` or garbage collection frees its memory.
 */
export class TextGenerator {
  private constructor()
  /**
   * Opens a file. Errors: `io` if it can't be read, `invalid_argument`, `dtype_mismatch` or `shape_mismatch` if it is malformed,
   * `unsupported` for another kind of model, `backend_unavailable` if the device does not exist.
   */
  static open(path: string, options?: TextOptions | null): TextGenerator
  static openAsync(path: string, options?: TextOptions | null): Promise<TextGenerator>
  /**
   * Frees the model's memory after running calls and streams have ended. Later calls are `invalid_argument`. Closing again does nothing.
   */
  close(): void
  /** `close()`, for `using`. */
  [Symbol.dispose](): void
  /** The most tokens of a sequence, prompt and answer together. */
  readonly contextLength: number
  /** The number of tokens in the vocabulary. */
  readonly vocabulary: number
  /** The number of values in an embedding. */
  readonly width: number
  /** Whether the file has a chat template, which `chat` needs. */
  readonly hasChatTemplate: boolean
  /** The id of its device, such as "cpu" or "cuda:0". */
  readonly device: string
  /**
   * Generates the text that follows a prompt. `invalid_argument` if the prompt has no tokens or more than the context length, or an option
   * is outside its range.
   */
  generate(prompt: string, options?: TextGenerateOptions | null): Generation
  generateAsync(prompt: string, options?: TextGenerateOptions | null): Promise<Generation>
  /**
   * Generates texts for several prompts at once, which is faster than one by one. Each text has the same bits as alone. Prompt i uses the
   * sequence number of the options plus i.
   */
  generateBatch(prompts: readonly string[], options?: GenerateOptions | null): Generation[]
  generateBatchAsync(prompts: readonly string[], options?: GenerateOptions | null): Promise<Generation[]>
  /** Generates the text that follows a prompt piece by piece. */
  stream(prompt: string, options?: TextGenerateOptions | null): TextStream
  /**
   * Generates an answer to messages. The model's chat template makes the prompt. `unsupported` if the file has no chat template,
   * `invalid_argument` if the template refuses the messages.
   */
  chat(messages: readonly Message[], options?: TextGenerateOptions | null): Generation
  chatAsync(messages: readonly Message[], options?: TextGenerateOptions | null): Promise<Generation>
  /** Generates an answer to messages piece by piece. */
  chatStream(messages: readonly Message[], options?: TextGenerateOptions | null): TextStream
  /** Returns the tokens of a text. The text of a special token, such as `<|im_start|>`, becomes that token. */
  tokenize(text: string): number[]
  /** Returns the text of tokens. Special tokens have no text. Bytes that are not UTF-8 become U+FFFD. */
  detokenize(tokens: readonly number[] | Uint32Array): string
  /** Returns the perplexity of a text: e to the mean of its negative `logprobs`. `invalid_argument` for fewer than two tokens. */
  perplexity(text: string): number
  perplexityAsync(text: string): Promise<number>
  /** Returns the log-probability of each token except the first, given the tokens before it. */
  logprobs(tokens: readonly number[] | Uint32Array): Float32Array
  logprobsAsync(tokens: readonly number[] | Uint32Array): Promise<Float32Array>
  /** Returns the mean of the last hidden states of a text's tokens. To compare meanings, use `SentenceEncoder`. */
  embed(text: string): Float32Array
  embedAsync(text: string): Promise<Float32Array>
}

/** A format of quantised blocks. */
export type BlockFormat = 'q8_0' | 'q4_0' | 'q4_1' | 'q5_0' | 'q5_1' | 'q4_k' | 'q5_k' | 'q6_k'

/**
 * Encodes values as blocks of a format. Rows of a matrix may be encoded together: adead's `quantizedMatmul` takes the result as a u8 tensor
 * `[rows, bytes of a row]`. The same values give the same bytes on every machine.
 *
 * `shape_mismatch` if the values are not whole blocks, `invalid_argument` with the position for a value that is NaN or infinite, and for a
 * block whose scale exceeds 65504.
 */
export function quantize(values: Float32Array, format: BlockFormat): Uint8Array
/** Like `quantize`, on another thread, with a copy of the values. */
export function quantizeAsync(values: Float32Array, format: BlockFormat): Promise<Uint8Array>

/** Options for a conversion. */
export interface ConvertOptions {
  /**
   * The type of stored matrices, or one of llama.cpp's mixtures. By default matrices keep the types that a folder has. Required for a GGUF
   * file.
   */
  kind?: BlockFormat | 'f32' | 'f16' | 'bf16' | 'q4_k_m' | 'q5_k_m' | null
}

/**
 * Converts a model to a GGUF file. The model is a Hugging Face folder, such as SmolLM2-135M-Instruct, or another GGUF file. The file
 * appears when it is complete, and then replaces a file of that name. The same model gives the same bytes on every machine. Returns notes
 * for the user: which tensors are stored in another type, and which settings a GGUF file can't hold.
 *
 * Errors: `io` if a file is missing or can't be read or written, `invalid_argument` or `shape_mismatch` if it is malformed, `unsupported`
 * for another kind of model.
 */
export function convert(model: string, file: string, options?: ConvertOptions | null): string[]
/** Like `convert`, on another thread. */
export function convertAsync(model: string, file: string, options?: ConvertOptions | null): Promise<string[]>

/** A layer of a network. https://adead.github.io/adead/training.html describes each one. */
export type Layer =
  | 'relu'
  | 'gelu'
  | 'silu'
  | 'tanh'
  | 'flatten'
  | 'layer_norm'
  /** The number of outputs. */
  | { linear: number }
  /** `size` is the window's size. `stride` is 1 and `padding` 0 by default. Samples are [channels, rows, columns]. */
  | { conv: { channels: number; size: number; stride?: number; padding?: number } }
  | { max_pool: number }
  | { avg_pool: number }
  /** The probability that a value is set to 0 in training. */
  | { dropout: number }

/** A network: layers one after another, or a decoder of transformer blocks, whose samples are bytes of texts. */
export type Network =
  | { kind: 'layers'; layers: readonly Layer[] }
  | { kind: 'gpt'; layers: number; heads: number; width: number; context: number; dropout?: number }

/** An optimiser. https://adead.github.io/adead/training.html lists the defaults. */
export interface Optimizer {
  kind: 'sgd' | 'adam' | 'adamw'
  /** The learning rate, above 0. */
  rate: number
  momentum?: number
  nesterov?: boolean
  betas?: readonly [number, number]
  eps?: number
  weight_decay?: number
  /** The greatest norm of all gradients together. Gradients with a greater norm are scaled down to it. */
  clip_norm?: number
  /** The number of steps in which the rate rises from 0. */
  warmup?: number
  /** "cosine" needs the `steps` of the description. */
  schedule?: 'constant' | 'cosine'
  /** The final rate of "cosine", as a fraction of the full rate. */
  end?: number
  /**
   * The decay of a moving average of the parameters: the fraction of the average that each step keeps. `predict`, `evaluate` and `sha256`
   * use the average.
   */
  average?: number
}

/** A training: a network, its loss and its optimiser. The names are those of a job's file, and the same in every language. */
export interface Description {
  /** The network; an array of layers is short for `{ kind: 'layers', layers }`. */
  model: Network | readonly Layer[]
  /** The shape of a sample, such as [1, 28, 28]. Omit it for a `gpt`. */
  input?: readonly number[]
  /** The loss. The targets of "cross_entropy", the default, are classes; those of the others are floats with the shape of the outputs. */
  loss?: 'cross_entropy' | 'mse' | 'binary_cross_entropy' | null
  optimizer: Optimizer
  /** The number of samples in a step. */
  batch: number
  /** The number of shards of a batch, whose gradients are added. It divides the batch; in a tree it is a power of two. 1 by default. */
  shards?: number | null
  /** How the shards' gradients are added: as f32 in a binary tree, the default, or as integers in units of 2⁻³⁶, which have no order. */
  gradient_sum?: 'tree' | 'fixed'
  /** The seed of parameters, dropout and the order of samples, of 64 bits: a number up to 2^53 - 1, or a bigint. 0 by default. */
  seed?: number | bigint | null
  /** The number of steps of the whole training, which a schedule needs. */
  steps?: number | null
  /** The type to which values between layers, and their gradients, are rounded. */
  storage?: 'f16' | 'bf16' | null
  /** Whether the backward pass computes values of layers again instead of keeping them: less memory, the same bits. */
  recompute?: boolean
  /** The factor of the loss before gradients are computed: a power of two. "dynamic" adapts it. */
  loss_scale?: number | 'dynamic' | null
}

/** The types and shapes of a sample, its target and its output. [] is one value. */
export interface Sample {
  /** The type of a sample's values: "i64" for ids, which a `BigInt64Array` has. */
  dtype: 'f32' | 'i64'
  /** The sample's shape. */
  dims: number[]
  /** The type of a target's values: "i64" for classes. */
  target: 'f32' | 'i64'
  /** The target's shape. */
  targets: number[]
  /** The shape of the network's output for a sample. */
  outputs: number[]
}

/** Samples, one after another: floats, or ids for a `gpt`. Their number follows from the length. */
export type Samples = Float32Array | BigInt64Array
/** As many targets, one after another: floats, or classes counted from 0, which may be plain numbers. */
export type Targets = Float32Array | BigInt64Array | readonly number[]

/** Options of `fit`. */
export interface FitOptions {
  /** The number of passes over all samples; 1 by default. */
  epochs?: number | null
  /**
   * Called after each step, with the epoch, counted from 1, the number of steps so far and the step's loss. The training waits for it. An
   * exception ends the training at this step, and the call rethrows it.
   */
  onProgress?: ((epoch: number, step: number, loss: number) => void) | null
}

/** The result of `evaluate`. */
export interface Measured {
  /** The mean loss. */
  loss: number
  /** The fraction of the samples whose most likely class is the right one, 0 to 1. */
  accuracy: number
}

/** A parameter of a network. */
export interface Parameter {
  dims: number[]
  values: Float32Array
}

/** Options of `join`. */
export interface JoinOptions {
  /** How many seconds a rank may take to connect, and to compute its part of a step; 300 by default. */
  patience?: number | null
}

/**
 * A network in training. Its weights depend only on the description and the samples: they have the same bits on every device, with any
 * number of threads, and in every language.
 *
 * Only one call at a time may use a trainer; a call during another one is `not_ready`. Functions that end in `Async` compute on another
 * thread, with a copy of their arrays. Arrays that don't fit are `shape_mismatch` or `dtype_mismatch`. A class that does not exist is
 * `invalid_argument`.
 */
export class Trainer {
  private constructor()
  /**
   * Compiles a network for training. `invalid_argument` or `shape_mismatch` if the description is malformed or does not define a network,
   * `backend_unavailable` if the device does not exist.
   */
  static create(description: Description, options?: OpenOptions | null): Trainer
  static createAsync(description: Description, options?: OpenOptions | null): Promise<Trainer>
  /** Frees the network's memory after a running call has ended. Later calls are `invalid_argument`. Closing again does nothing. */
  close(): void
  /** `close()`, for `using`. */
  [Symbol.dispose](): void
  /** The number of steps so far. */
  readonly steps: number
  /** The number of samples in a step. */
  readonly batch: number
  /** The id of its device, such as "cpu" or "cuda:0". */
  readonly device: string
  /** The types and shapes of a sample, its target and its output. */
  readonly sample: Sample
  /**
   * Trains with one batch, and returns the loss before the step. `shape_mismatch` unless the number of samples is `batch`,
   * `invalid_argument` for a loss that is not finite. After an error nothing has changed.
   */
  step(x: Samples, targets: Targets): number
  stepAsync(x: Samples, targets: Targets): Promise<number>
  /**
   * Trains with all samples `epochs` times, in an order that the seed determines for each epoch. Samples that don't fill a batch are
   * skipped in that epoch. Returns the mean loss of the last epoch. Errors are those of `step`; steps before an error keep their effect.
   */
  fit(x: Samples, targets: Targets, options?: FitOptions | null): number
  fitAsync(x: Samples, targets: Targets, options?: FitOptions | null): Promise<number>
  /**
   * Computes the outputs for any number of samples, one after another, with the averages of the parameters if the optimiser keeps averages.
   */
  predict(x: Samples): Float32Array
  predictAsync(x: Samples): Promise<Float32Array>
  /** Computes the mean loss and the accuracy on samples with known classes. `unsupported` for a loss without classes. */
  evaluate(x: Samples, targets: Targets): Measured
  evaluateAsync(x: Samples, targets: Targets): Promise<Measured>
  /** Writes parameters, optimiser and step to a safetensors file, atomically. `io` if it can't be written. */
  save(path: string): void
  /**
   * Continues from a file of `save`. The next steps have the same bits as without the interruption. `io`, `invalid_argument` or
   * `shape_mismatch` if the file can't be read or belongs to another network or optimiser.
   */
  load(path: string): void
  /** Returns the SHA-256 of the parameters in the order of their names, as f32, little endian. `adead train` prints it too. */
  sha256(): string
  /** Returns copies of the parameters by name; their averages, if the optimiser keeps averages. */
  parameters(): Map<string, Parameter>
  /**
   * Joins other processes, which then train together. `place` names this process's rank: "0/4@host:29500" is rank 0 of 4, and rank 0
   * listens on that address. "env" reads the variables of torchrun, Open MPI, MPICH or Slurm. All ranks receive the parameters of rank 0.
   * After joining, each rank makes the same calls with the same samples, and computes its own part of every batch.
   *
   * `invalid_argument` if there are more ranks than shards, or the ranks' trainers differ; `io` if a rank does not connect or is lost.
   */
  join(place: string, options?: JoinOptions | null): void
  joinAsync(place: string, options?: JoinOptions | null): Promise<void>
}

/** An event of a job: the end of a step or of an epoch. */
export interface TrainEvent {
  /** Whether an epoch has ended. */
  epochIsOver: boolean
  /** The epoch, counted from 1. */
  epoch: number
  /** The number of steps so far. */
  step: number
  /** The number of all steps of the job. */
  steps: number
  /** The loss of the step's batch, or the mean loss of the epoch's batches. */
  loss: number
  /** The mean loss of the held-out samples; NaN after a step. */
  heldOutLoss: number
  /** The fraction of the held-out samples whose most likely class is the right one, 0 to 1; NaN after a step. */
  accuracy: number
  /** The duration of the epoch, including its evaluation, in seconds; NaN after a step. */
  seconds: number
}

/** Options for running a job. */
export interface TrainOptions extends JoinOptions {
  /** The device, named as for `SentenceEncoder`. */
  device?: string | null
  /** The number of CPU threads, as for `SentenceEncoder`. */
  threads?: number | null
  /** Whether to continue from the job's checkpoint, if it exists. */
  resume?: boolean | null
  /** The number of epochs, at least 1. By default the job's. */
  epochs?: number | null
  /** The rank of this process, as for `join`. By default the process trains alone. */
  ranks?: string | null
  /** Called after each step and each epoch. The job waits for it. An exception ends the job, and the call rethrows it. */
  onProgress?: ((event: TrainEvent) => void) | null
}

/** The result of a job. */
export interface TrainOutcome {
  /** The number of steps, including those before a checkpoint. */
  steps: number
  /** The mean loss of the held-out samples after the last epoch. NaN if this run made no epoch, and on ranks above 0. */
  heldOutLoss: number
  /** The fraction of the held-out samples whose most likely class is the right one, 0 to 1. NaN as above. */
  accuracy: number
  /** The SHA-256 of the parameters, as `Trainer.sha256` returns it. */
  sha256: string
  /** The device that trained the network. */
  device: string
}

/**
 * Runs a training job from a TOML file (https://adead.github.io/adead/training.html). `io` or `invalid_argument` if the job, its
 * data or a checkpoint can't be read or is malformed.
 */
export function train(path: string, options?: TrainOptions | null): TrainOutcome
/** Like `train`, on another thread. */
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

/** The error that every call throws and every promise rejects with. */
export class AdeadError extends Error {
  constructor(message: string, code: StatusName, status: number)
  /** The kind of error. */
  readonly code: StatusName
  /** The kind as the number that every language shares. */
  readonly status: number
}
