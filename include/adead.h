/*
 * adead: tensor operations with the same bits on every device. MIT license.
 *
 * Generated from bindings/c by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.
 *
 * Two layers. The simple API works on the caller's own float arrays: adead_init, adead_alloc, adead_matmul,
 * adead_softmax, adead_relu, adead_free, adead_shutdown. The object API has handles: a context (opened devices),
 * tensors, attributes, GPU buffers, kernels, streams and others, and one function for every operation. docs/c-api.md is the
 * guide, docs/operations.md lists the operations, docs/gpu.md is about GPUs. They are at https://adead.github.io/adead/c-api.html,
 * and so on.
 *
 * Rules, for every function:
 *
 * - A function is named adead_<noun>_<verb> and returns an adead_status: ADEAD_OK (0), or why it failed. After a
 *   failure, adead_last_error() has the text for the calling thread. Functions that can't fail return their value, and
 *   adead_<noun>_destroy returns nothing.
 * - Outputs are written through the last pointers, named `out`, and only on success: a failed call changes nothing.
 *   Only an interrupted call (adead_interrupt_watch) may have written parts of an array or a buffer.
 * - Parameters that a function only reads are const. Arrays and texts are borrowed for the call and never kept.
 * - A pointer must not be NULL, unless its description allows it or its array has no elements. Otherwise NULL gives
 *   ADEAD_INVALID_ARGUMENT, and the text names the parameter. Texts are UTF-8 and end with NUL.
 * - The caller owns every handle from _create, _open or an `adead_x **out`, and must _destroy it once.
 *   _destroy(NULL) does nothing. A handle may outlive the handles that it was made from.
 * - Threads may share a handle while they only read it (const), and buffers in any case. No handle is bound to the
 *   thread that made it. No call depends on the floating-point mode of the calling thread, nor changes it.
 * - Structs begin with struct_size, which the caller sets to sizeof the struct. For options use ..._INIT, which also
 *   has the defaults. A struct of an older header is accepted; one of a newer header, if the fields that this version
 *   does not know are zero. NULL options are the defaults.
 * - Nothing aborts the process, and nothing is printed unless the environment variable ADEAD_LOG asks for it. A fault
 *   of adead itself is ADEAD_INTERNAL.
 */

#ifndef ADEAD_H
#define ADEAD_H

#include <stddef.h>
#include <stdint.h>

#ifndef ADEAD_API
/// A build may define a prefix for all declarations.
#define ADEAD_API
#endif

// adead_status: the result of a call. The numbers never change.
enum {
  /// No error.
  ADEAD_OK = 0,
  /// An argument is out of range, missing or contradictory.
  ADEAD_INVALID_ARGUMENT = 1,
  /// Ranks or dimensions don't fit each other.
  ADEAD_SHAPE_MISMATCH = 2,
  /// An element type is not accepted here, or two differ.
  ADEAD_DTYPE_MISMATCH = 3,
  /// Host or device memory ran out, or a limit that the caller set was exceeded.
  ADEAD_OUT_OF_MEMORY = 4,
  /// The device asked for is not on this machine, or its driver is missing.
  ADEAD_BACKEND_UNAVAILABLE = 5,
  /// The device stopped responding. It stays lost.
  ADEAD_DEVICE_LOST = 6,
  /// A user kernel is malformed or was refused by the driver.
  ADEAD_INVALID_KERNEL = 7,
  /// A program is malformed. The message has the offset.
  ADEAD_INVALID_PROGRAM = 8,
  /// Well-formed, but this device or version does not support it.
  ADEAD_UNSUPPORTED = 9,
  /// The result is not ready yet.
  ADEAD_NOT_READY = 10,
  /// The operating system refused a file or a stream.
  ADEAD_IO = 11,
  /// A fault in adead itself (a caught panic). Please report it.
  ADEAD_INTERNAL = 12
};

// The backend of the simple API.
enum {
  /// The best device, or the one in the environment variable ADEAD_DEVICE.
  ADEAD_BACKEND_AUTO = -1,
  /// The CPU.
  ADEAD_BACKEND_CPU = 0,
  /// A CUDA GPU.
  ADEAD_BACKEND_CUDA = 1,
  /// A Vulkan GPU.
  ADEAD_BACKEND_VULKAN = 2
};

// adead_dtype: the type of elements.
enum {
  /// IEEE-754 binary32.
  ADEAD_DTYPE_F32 = 0,
  /// IEEE-754 binary16, storage only.
  ADEAD_DTYPE_F16 = 1,
  /// bfloat16, storage only.
  ADEAD_DTYPE_BF16 = 2,
  /// 32-bit signed integer.
  ADEAD_DTYPE_I32 = 3,
  /// 64-bit signed integer.
  ADEAD_DTYPE_I64 = 4,
  /// 32-bit unsigned integer.
  ADEAD_DTYPE_U32 = 5,
  /// True or false, one byte each. Results are 0 or 1. Any byte other than 0 is read as true.
  ADEAD_DTYPE_BOOL = 6,
  /// 8-bit unsigned integer; the bytes of quantised matrices too.
  ADEAD_DTYPE_U8 = 7,
  /// IEEE-754 binary64, storage only, without arithmetic.
  ADEAD_DTYPE_F64 = 8
};

// adead_op: the operations. The numbers never change; new ones come last.
enum {
  /// `alpha*(a*b) + beta*c + bias`, then an activation.
  ADEAD_OP_MATMUL = 0,
  /// The inner product of two vectors.
  ADEAD_OP_DOT = 1,
  /// `a + b`.
  ADEAD_OP_ADD = 2,
  /// `a - b`.
  ADEAD_OP_SUB = 3,
  /// `a*b`, element by element.
  ADEAD_OP_MUL = 4,
  /// `a / b`.
  ADEAD_OP_DIV = 5,
  /// `x*alpha`.
  ADEAD_OP_SCALE = 6,
  /// `-x`.
  ADEAD_OP_NEG = 7,
  /// `|x|`.
  ADEAD_OP_ABS = 8,
  /// `e^x`.
  ADEAD_OP_EXP = 9,
  /// The natural logarithm; NaN if x < 0.
  ADEAD_OP_LOG = 10,
  /// The square root; NaN if x < 0.
  ADEAD_OP_SQRT = 11,
  /// `1 / sqrt(x)`.
  ADEAD_OP_RSQRT = 12,
  /// `max(x, 0)`; NaN stays NaN.
  ADEAD_OP_RELU = 13,
  /// `1 / (1 + e^-x)`.
  ADEAD_OP_SIGMOID = 14,
  /// The hyperbolic tangent.
  ADEAD_OP_TANH = 15,
  /// The Gaussian error linear unit, with erf or tanh.
  ADEAD_OP_GELU = 16,
  /// `x*sigmoid(x)`.
  ADEAD_OP_SILU = 17,
  /// `e^x` divided by its sum along an axis.
  ADEAD_OP_SOFTMAX = 18,
  /// The sum over some or all axes; +0 for no elements.
  ADEAD_OP_SUM = 19,
  /// The mean over some or all axes; NaN for no elements.
  ADEAD_OP_MEAN = 20,
  /// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  ADEAD_OP_MAX = 21,
  /// The index of the first maximum, i64. `invalid_argument` for no elements.
  ADEAD_OP_ARGMAX = 22,
  /// Normalises mean and variance over the last axis, of x or x + residual.
  ADEAD_OP_LAYERNORM = 23,
  /// Normalises the root mean square over the last axis, of x or x + residual.
  ADEAD_OP_RMSNORM = 24,
  /// Scaled dot-product attention: values weighted by softmax.
  ADEAD_OP_ATTENTION = 25,
  /// Two matrix products with an activation between them.
  ADEAD_OP_FFN = 26,
  /// Looks up rows of a table by id.
  ADEAD_OP_EMBEDDING = 27,
  /// Permutes the axes.
  ADEAD_OP_TRANSPOSE = 28,
  /// Joins tensors along an axis.
  ADEAD_OP_CONCAT = 29,
  /// Converts to another dtype.
  ADEAD_OP_CAST = 30,
  /// The largest integer <= x.
  ADEAD_OP_FLOOR = 31,
  /// The nearest integer; ties go to even.
  ADEAD_OP_ROUND = 32,
  /// The error function.
  ADEAD_OP_ERF = 33,
  /// `minimum(maximum(x, min), max)`; NaN propagates, and -0 < +0.
  ADEAD_OP_CLAMP = 34,
  /// The larger of a and b; NaN propagates, and -0 < +0.
  ADEAD_OP_MAXIMUM = 35,
  /// The smaller of a and b; NaN propagates, and -0 < +0.
  ADEAD_OP_MINIMUM = 36,
  /// The sine of x in radians; NaN if x is infinite.
  ADEAD_OP_SIN = 37,
  /// The cosine of x in radians; NaN if x is infinite.
  ADEAD_OP_COS = 38,
  /// `log(1 + x)`, also accurate near 0; NaN if x < -1.
  ADEAD_OP_LOG1P = 39,
  /// `e^x - 1`, also accurate near 0.
  ADEAD_OP_EXPM1 = 40,
  /// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
  ADEAD_OP_POW = 41,
  /// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  ADEAD_OP_MIN = 53,
  /// The index of the first minimum, i64. `invalid_argument` for no elements.
  ADEAD_OP_ARGMIN = 54,
  /// The product over some or all axes; 1 for no elements.
  ADEAD_OP_PROD = 55,
  /// Slices every axis from a start to a stop, in steps.
  ADEAD_OP_SLICE = 56,
  /// Pads every axis with a value: before, after and between its elements.
  ADEAD_OP_PAD = 57,
  /// Gathers elements along an axis by index.
  ADEAD_OP_GATHER = 58,
  /// Rotates pairs of elements of the last axis by angles.
  ADEAD_OP_ROPE = 59,
  /// The cumulative sums along an axis.
  ADEAD_OP_CUMSUM = 60,
  /// The k greatest elements along an axis, greatest first; ties go to the lower index.
  ADEAD_OP_TOPK = 61,
  /// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
  ADEAD_OP_ARGTOPK = 62,
  /// Whether a equals b; NaN equals nothing, and -0 equals +0.
  ADEAD_OP_EQUAL = 70,
  /// Whether a differs from b; true for NaN.
  ADEAD_OP_NOT_EQUAL = 71,
  /// Whether `a < b`; false for NaN.
  ADEAD_OP_LESS = 72,
  /// Whether `a <= b`; false for NaN.
  ADEAD_OP_LESS_EQUAL = 73,
  /// Whether `a > b`; false for NaN.
  ADEAD_OP_GREATER = 74,
  /// Whether `a >= b`; false for NaN.
  ADEAD_OP_GREATER_EQUAL = 75,
  /// Selects from a where the condition is true, and from b elsewhere.
  ADEAD_OP_WHERE = 76,
  /// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
  ADEAD_OP_QUANTIZED_MATMUL = 77,
  /// Converts quantised blocks to f32.
  ADEAD_OP_DEQUANTIZE = 78
};

// adead_activation: the function after a matrix product.
enum {
  /// Nothing.
  ADEAD_ACTIVATION_NONE = 0,
  /// `relu`.
  ADEAD_ACTIVATION_RELU = 1,
  /// `sigmoid`.
  ADEAD_ACTIVATION_SIGMOID = 2,
  /// `tanh`.
  ADEAD_ACTIVATION_TANH = 3,
  /// `gelu_tanh`.
  ADEAD_ACTIVATION_GELU_TANH = 4,
  /// `gelu_erf`.
  ADEAD_ACTIVATION_GELU_ERF = 5,
  /// `silu`.
  ADEAD_ACTIVATION_SILU = 6
};

// Instead of a precision: the context's default, see adead_context_set_precision.
#define ADEAD_PRECISION_DEFAULT (-1)

// adead_precision: the precision of a matrix product.
enum {
  /// In chains of fused multiply-adds of f32.
  ADEAD_PRECISION_F32 = 0,
  /// In exact integers, of operands cut to 24 bits.
  ADEAD_PRECISION_FIXED24 = 1,
  /// In exact integers, of operands cut to 16 bits.
  ADEAD_PRECISION_FIXED16 = 2
};

// adead_block_format: how the elements of a quantised matrix are stored.
enum {
  /// 32 elements of 8 bits, one scale: 34 bytes.
  ADEAD_BLOCK_FORMAT_Q8_0 = 0,
  /// 32 elements of 4 bits, one scale: 18 bytes.
  ADEAD_BLOCK_FORMAT_Q4_0 = 1,
  /// 32 elements of 4 bits, a scale and a minimum: 20 bytes.
  ADEAD_BLOCK_FORMAT_Q4_1 = 2,
  /// 32 elements of 5 bits, one scale: 22 bytes.
  ADEAD_BLOCK_FORMAT_Q5_0 = 3,
  /// 32 elements of 5 bits, a scale and a minimum: 24 bytes.
  ADEAD_BLOCK_FORMAT_Q5_1 = 4,
  /// 256 elements of 4 bits, a scale and a minimum for each 32: 144 bytes.
  ADEAD_BLOCK_FORMAT_Q4_K = 5,
  /// 256 elements of 5 bits, a scale and a minimum for each 32: 176 bytes.
  ADEAD_BLOCK_FORMAT_Q5_K = 6,
  /// 256 elements of 6 bits, a scale for each 16: 210 bytes.
  ADEAD_BLOCK_FORMAT_Q6_K = 7
};

// adead_gelu_form: the form of gelu.
enum {
  /// By the error function.
  ADEAD_GELU_ERF = 0,
  /// By tanh.
  ADEAD_GELU_TANH = 1
};

// adead_priority: the priority of a stream.
enum {
  /// The default.
  ADEAD_PRIORITY_NORMAL = 0,
  /// Starts before other streams' work: for short, urgent work beside long work.
  ADEAD_PRIORITY_HIGH = 1
};

// adead_contract_level: how a device keeps the arithmetic contract.
enum {
  /// The device's own instructions give the contract's bits.
  ADEAD_CONTRACT_NATIVE = 0,
  /// Some primitive is composed of others: exact, but slower.
  ADEAD_CONTRACT_EMULATED = 1
};

// adead_device_kind: the kind of a device.
enum {
  /// The processor, with the host's memory.
  ADEAD_KIND_CPU = 0,
  /// A GPU with its own memory, behind a bus.
  ADEAD_KIND_DISCRETE = 1,
  /// A GPU in the processor, which shares the host's memory.
  ADEAD_KIND_INTEGRATED = 2,
  /// A GPU, or a part of one, that a hypervisor provides.
  ADEAD_KIND_VIRTUAL = 3,
  /// A GPU that a program on the processor emulates.
  ADEAD_KIND_SOFTWARE = 4
};

// adead_mode: where work should run.
enum {
  /// On the processor: no GPU, or one with less than 2 GB.
  ADEAD_MODE_CPU = 0,
  /// On both: a GPU with 2 to 4 GB.
  ADEAD_MODE_HYBRID = 1,
  /// On the GPU: one with 4 GB or more.
  ADEAD_MODE_GPU = 2
};

// adead_family: operations with similar costs.
enum {
  /// Matrix products: matmul, ffn.
  ADEAD_FAMILY_MATMUL = 0,
  /// attention.
  ADEAD_FAMILY_ATTENTION = 1,
  /// A few instructions for each element: add, mul, relu, cast.
  ADEAD_FAMILY_ELEMENTWISE = 2,
  /// A polynomial for each element: exp, log, tanh, sigmoid, gelu.
  ADEAD_FAMILY_FUNCTION = 3,
  /// Along an axis: sum, max, dot, softmax, the norms.
  ADEAD_FAMILY_REDUCTION = 4,
  /// No arithmetic: transpose, concat, embedding.
  ADEAD_FAMILY_MOVE = 5
};

/// Waits without a time limit.
#define ADEAD_FOREVER ((uint64_t)-1)

/// Instead of a value of a chain: an optional operand is absent.
#define ADEAD_NO_VALUE ((adead_value)-1)

/// No threshold: the cost model decides.
#define ADEAD_NO_THRESHOLD ((size_t)-1)

// adead_format: the format of a program.
enum {
  /// adead's own container.
  ADEAD_FORMAT_ADEAD = 0,
  /// An AGPU binary.
  ADEAD_FORMAT_AGPU = 1,
  /// AGPU instructions as hexadecimal text.
  ADEAD_FORMAT_HEX = 2,
  /// The hybrid container. Only its AGPU program is used.
  ADEAD_FORMAT_AHYB = 3,
  /// Assembler text.
  ADEAD_FORMAT_TEXT = 4
};

// adead_direction: the direction of a slot's contents.
enum {
  /// The caller supplies it.
  ADEAD_DIRECTION_IN = 0,
  /// The program produces it.
  ADEAD_DIRECTION_OUT = 1,
  /// Both.
  ADEAD_DIRECTION_BOTH = 2
};

// adead_activity: the kind of work in a profile.
enum {
  /// An operation of the op table.
  ADEAD_ACTIVITY_OPERATION = 0,
  /// A user's kernel.
  ADEAD_ACTIVITY_KERNEL = 1,
  /// A replay of a recording.
  ADEAD_ACTIVITY_REPLAY = 2,
  /// A transfer from the host to a device.
  ADEAD_ACTIVITY_UPLOAD = 3,
  /// A transfer from a device to the host.
  ADEAD_ACTIVITY_DOWNLOAD = 4,
  /// A copy from one buffer of a device to another.
  ADEAD_ACTIVITY_COPY = 5,
  /// Setting bytes of a buffer to zero.
  ADEAD_ACTIVITY_CLEAR = 6
};

// adead_log_level: the severity of a message.
enum {
  /// Nothing.
  ADEAD_LOG_OFF = 0,
  /// Something was lost, such as a device.
  ADEAD_LOG_ERROR = 1,
  /// Something can't be used or is ignored, and why.
  ADEAD_LOG_WARN = 2,
  /// Devices that were found and opened.
  ADEAD_LOG_INFO = 3,
  /// Everything read, compiled or set.
  ADEAD_LOG_DEBUG = 4,
  /// The steps of single calls.
  ADEAD_LOG_TRACE = 5
};

/// The defaults of adead_context_options.
#define ADEAD_CONTEXT_OPTIONS_INIT { sizeof(adead_context_options), NULL, 0, ADEAD_PRECISION_F32 }

/// The defaults of adead_matmul_options.
#define ADEAD_MATMUL_OPTIONS_INIT { sizeof(adead_matmul_options), 0, 0, 1.0f, 0.0f, NULL, NULL, ADEAD_ACTIVATION_NONE, ADEAD_PRECISION_DEFAULT }

/// The defaults of adead_attention_options.
#define ADEAD_ATTENTION_OPTIONS_INIT { sizeof(adead_attention_options), NULL, 0, 0.0f, ADEAD_PRECISION_DEFAULT }

/// The defaults of adead_module_options.
#define ADEAD_MODULE_OPTIONS_INIT { sizeof(adead_module_options), ADEAD_MODULE_LINEAR, ADEAD_ACTIVATION_GELU_ERF, 0, 0, 0, 0, 0, 0, NULL, 1e-12f, 0 }

/// The defaults of adead_forward_options.
#define ADEAD_FORWARD_OPTIONS_INIT { sizeof(adead_forward_options), NULL, NULL, 0, ADEAD_ACTIVATION_NONE, 0 }

/// The defaults of adead_run_options.
#define ADEAD_RUN_OPTIONS_INIT { sizeof(adead_run_options), (size_t)1073741824, 0, 0 }



/// The version of the interface that this header describes.
#define ADEAD_ABI_VERSION 1

/// The most caches that a report lists.
#define ADEAD_MAX_CACHES 8

/// The most dimensions that a tensor may have.
#define ADEAD_MAX_RANK 8

/// The most devices that an explanation lists.
#define ADEAD_MAX_ESTIMATES 16

/// Stands for all axes: the operation works on the row-major flattening of x.
#define ADEAD_AXIS_ALL INT32_MIN

/// The most batches in flight at once.
#define ADEAD_OVERLAP_MAX_DEPTH 64

/// An allocator of blocks in one region of host memory. The same calls give the same offsets on every machine. One
/// thread at a time may use it.
typedef struct adead_allocator adead_allocator;

/// An arena of scratch memory: an allocation advances a pointer, and a reset releases everything together. One thread
/// at a time may use it.
typedef struct adead_arena adead_arena;

/// Attributes of an operation; each has its default until it is set. One thread at a time may change them.
typedef struct adead_attrs adead_attrs;

/// A batch that an `adead_next` fills in. It is valid only during the call.
typedef struct adead_batch adead_batch;

/// A run of batches, whose results `adead_batches_next` returns. One thread at a time may use it.
typedef struct adead_batches adead_batches;

/// A range of memory on a device, with a size in bytes and no type. Threads may share one, but must order their own
/// uses of it. Enqueued work keeps the memory of its buffers until it finishes.
typedef struct adead_buffer adead_buffer;

/// A pipeline under construction. One thread at a time may use it.
typedef struct adead_chain adead_chain;

/// A chain that was compiled for a device. It can run any number of times. Threads may share one.
typedef struct adead_compiled adead_compiled;

/// The devices that a program has opened. Threads may share one context.
typedef struct adead_context adead_context;

/// A copy of bytes from a device to the host, perhaps still in flight. One thread at a time may use it.
typedef struct adead_download adead_download;

/// A point in a stream. The host can query it and wait for it, and other streams can wait for it. Threads may share
/// one.
typedef struct adead_event adead_event;

/// A flag that ends long calls early. Threads and signal handlers may share one.
typedef struct adead_interrupt adead_interrupt;

/// A kernel that was compiled for a context's GPU. It never changes, so threads may share one.
typedef struct adead_kernel adead_kernel;

/// An arrangement of a row-major matrix's elements in memory. Elements have 1, 2, 4 or 8 bytes, and padding is zero. A
/// layout never changes, so threads may share one.
typedef struct adead_layout adead_layout;

/// A loader: its thread prepares batches in advance. One thread at a time may take batches from it.
typedef struct adead_loader adead_loader;

/// A layer: it computes a tensor from a tensor. It keeps its tensors, its modules and its context's devices alive, so the caller
/// may destroy its own handles to them at any time. A module never changes, so threads may share one.
typedef struct adead_module adead_module;

/// The outcome of a program's run: its outputs and its statistics.
typedef struct adead_outcome adead_outcome;

/// A right operand of matrix products, packed for them in advance. It never changes, so threads may share one.
typedef struct adead_packed adead_packed;

/// A profile of a context. It records until `adead_profile_finish`, and then can be read.
typedef struct adead_profile adead_profile;

/// A decoded program. It never changes, so threads may share one.
typedef struct adead_program adead_program;

/// Work that a stream recorded, to be replayed. Threads may share one.
typedef struct adead_recording adead_recording;

/// An open safetensors file. Opening reads only its header; `adead_safetensors_tensor` reads a tensor. Threads may
/// share one.
typedef struct adead_safetensors adead_safetensors;

/// The context of a batch's work: a stream, the batch on the device, and buffers. It is valid only during the call, and
/// owns everything that it returns.
typedef struct adead_stage adead_stage;

/// A queue of work on a context's device. Its work runs in order; streams run concurrently. One thread at a time may
/// use it.
typedef struct adead_stream adead_stream;

/// A shaped value. Its contents never change, so threads may share one.
typedef struct adead_tensor adead_tensor;

/// A time on a device's clock. Threads may share one.
typedef struct adead_timestamp adead_timestamp;

/// The result of a call: `ADEAD_OK` (0), or why it failed.
typedef int32_t adead_status;

/// Where work should run, one of `ADEAD_MODE_...`.
typedef int32_t adead_mode;

/// A data or unified cache.
typedef struct {
  /// The level; 1 is nearest to the core.
  uint32_t level;
  /// Bytes of a cache line.
  uint32_t line;
  /// Bytes.
  uint64_t size;
} adead_cache;

/// A report on the machine. The caller sets `struct_size`. Texts end with NUL and are cut if they are too long.
typedef struct {
  /// `sizeof(adead_hardware)`.
  size_t struct_size;
  /// Bytes of host memory that this process could use if it were alone.
  uint64_t memory_total;
  /// Bytes of host memory that this process could use now.
  uint64_t memory_available;
  /// Physical cores that this process may use.
  uint32_t cpu_cores;
  /// Hardware threads that this process may use.
  uint32_t cpu_threads;
  /// The nominal frequency in MHz; 0 if unknown.
  uint32_t cpu_frequency_mhz;
  /// The mode that suits the machine.
  adead_mode recommended;
  /// The number of `cpu_caches`, from the nearest level.
  size_t cpu_cache_count;
  /// The caches.
  adead_cache cpu_caches[ADEAD_MAX_CACHES];
  /// "GenuineIntel", "AuthenticAMD", ...
  char cpu_vendor[32];
  /// The vendor's name for the processor.
  char cpu_model[128];
  /// Instruction-set extensions that kernels may use, separated by spaces.
  char cpu_features[512];
  /// The number of GPUs that `adead_gpu_info` can describe.
  size_t gpu_count;
} adead_hardware;

/// The precision of a matrix product, one of `ADEAD_PRECISION_...`.
typedef int32_t adead_precision;

/// Options for opening a context. Start from `ADEAD_CONTEXT_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_context_options)`.
  size_t struct_size;
  /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon" or "portable". NULL takes the one in `ADEAD_ISA`, or else in
  /// adead.toml, or else the best.
  const char *isa;
  /// The number of CPU threads. 0 takes the number in `ADEAD_NUM_THREADS`, or else in adead.toml, or else as many as the
  /// process may use.
  size_t threads;
  /// The precision of products that specify none, one of `ADEAD_PRECISION_...`.
  adead_precision precision;
} adead_context_options;

/// The memory of tensors' copies on a device. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_tensor_cache_use)`.
  size_t struct_size;
  /// The most bytes that tensors may keep on the device.
  uint64_t budget;
  /// Bytes that they keep now. More than the budget only while a single operation needs them.
  uint64_t used;
  /// The number of tensors that have a copy on the device.
  uint64_t tensors;
  /// How often an operation found an operand on the device.
  uint64_t hits;
  /// How often an operand had to be moved to the device.
  uint64_t misses;
  /// How often a tensor's copy was evicted for others.
  uint64_t evictions;
} adead_tensor_cache_use;

/// How a device keeps the arithmetic contract, one of `ADEAD_CONTRACT_...`.
typedef int32_t adead_contract_level;

/// A kind of device, one of `ADEAD_KIND_...`.
typedef int32_t adead_device_kind;

/// A description of a device. The caller sets `struct_size`. Texts end with NUL and are cut if they are too long.
typedef struct {
  /// `sizeof(adead_device_info)`.
  size_t struct_size;
  /// Bytes of memory; 0 if unknown.
  uint64_t memory;
  /// The number of execution units that work at the same time: threads or multiprocessors.
  uint32_t units;
  /// How the device keeps the arithmetic contract: `ADEAD_CONTRACT_...`.
  adead_contract_level contract;
  /// The name that opens it: "cpu", "cuda:0", "vulkan:1".
  char id[32];
  /// The target of its kernels: an instruction set or a compute capability.
  char arch[32];
  /// The vendor's name for it.
  char name[128];
  /// Its kind: `ADEAD_KIND_...`.
  adead_device_kind kind;
  /// Whether `uuid` is valid: 0 or 1. It is 0 for a CPU.
  int32_t has_uuid;
  /// The device's unique identifier, as the driver reports it.
  uint8_t uuid[16];
  /// Its vendor.
  char vendor[32];
  /// Its driver, with the version; "" for a CPU.
  char driver[128];
  /// Its address on the PCI bus: domain, bus, device and function, as in "0000:65:00.0". "" for a CPU, and if the
  /// driver doesn't report it.
  char bus[32];
} adead_device_info;

/// A device's memory, in bytes. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_memory_use)`.
  size_t struct_size;
  /// All memory of the device.
  uint64_t total;
  /// Bytes that the driver reports as available to this process. If the driver reports nothing: the bytes that adead
  /// has not allocated.
  uint64_t free;
  /// Bytes that this process has allocated from the driver through adead.
  uint64_t held;
  /// Bytes of `held` in use.
  uint64_t used;
  /// The number of allocations in use.
  uint64_t allocations;
} adead_memory_use;

/// A specialization constant of a kernel.
typedef struct {
  /// The constant's id.
  uint32_t id;
  /// Its value: an integer, 0 or 1 for a boolean, or the bits of a float.
  uint32_t value;
} adead_constant;

/// What a dispatch of a kernel must pass. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_kernel_details)`.
  size_t struct_size;
  /// The entry point. The text belongs to the kernel.
  const char *name;
  /// The number of buffers.
  size_t parameter_count;
  /// Bytes of push constants; 0 if it has none.
  size_t push_bytes;
  /// Threads of a workgroup in x, y, z.
  uint32_t workgroup[3];
  /// Always 0.
  uint32_t reserved;
} adead_kernel_details;

/// A buffer parameter of a kernel. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_parameter)`.
  size_t struct_size;
  /// The smallest allowed size of a buffer for it, in bytes.
  uint64_t least;
  /// Bytes of an element of its runtime-sized array, or 0 without one. A buffer's bytes beyond `least` must be a
  /// multiple of it.
  uint64_t stride;
  /// Its descriptor set.
  uint32_t set;
  /// Its binding.
  uint32_t binding;
  /// Not 0: the kernel declares that it never writes the buffer.
  int32_t readonly;
  /// Always 0.
  int32_t reserved;
} adead_parameter;

/// The priority of a stream's work, one of `ADEAD_PRIORITY_...`.
typedef int32_t adead_priority;

/// An operation, one of `ADEAD_OP_...`.
typedef int32_t adead_op;

/// The type of elements, one of `ADEAD_DTYPE_...`.
typedef int32_t adead_dtype;

/// A buffer as an operand of an operation.
typedef struct {
  /// The buffer with the elements. NULL: an optional operand is absent.
  adead_buffer *buffer;
  /// The offset of the first element, in bytes.
  size_t offset;
  /// The dimensions.
  const size_t *dims;
  /// The number of dimensions.
  size_t rank;
  /// The type of the elements.
  adead_dtype dtype;
  /// Always 0.
  int32_t reserved;
} adead_operand;

/// A generator of random tensors: a seed, and the number of draws so far, initially 0. The same two numbers give the same tensors in every
/// language and on every device (docs/contract.md, "Random tensors"). A draw adds 1 to `draws`, unless it fails. One thread at a time may
/// use it.
typedef struct {
  /// The seed.
  uint64_t seed;
  /// The number of draws so far.
  uint64_t draws;
} adead_random;

/// A group of operations with similar costs, one of `ADEAD_FAMILY_...`.
typedef int32_t adead_family;

/// A device's estimated time for an operation, in nanoseconds.
typedef struct {
  /// The time of the computation.
  double compute_ns;
  /// The time to start the computation.
  double launch_ns;
  /// The time to move operands to the device and the result back.
  double transfer_ns;
  /// The sum of these.
  double total_ns;
  /// Whether operands and result fit in the device's memory: 0 or 1.
  int32_t fits;
  /// Always 0.
  int32_t reserved;
} adead_estimate;

/// A choice of device, its reason, and every device's estimate. The caller sets `struct_size`. Texts end with NUL and
/// are cut if they are too long.
typedef struct {
  /// `sizeof(adead_explanation)`.
  size_t struct_size;
  /// The chosen device, by its index for `adead_context_device_at`.
  size_t device;
  /// Elements of the largest operand or result. The threshold is compared with this number.
  size_t elements;
  /// Floating-point operations; a multiply-add counts as two.
  double flops;
  /// Bytes read and written.
  double bytes;
  /// The family whose costs were used.
  adead_family family;
  /// The number of `estimates`, in the order of the devices.
  uint32_t estimate_count;
  /// Each device's estimate.
  adead_estimate estimates[ADEAD_MAX_ESTIMATES];
  /// The name that opens the chosen device: "cpu", "cuda:0".
  char id[32];
  /// Why it was chosen.
  char reason[256];
  /// If the operation is divided: the rows of its result for each device, in the order of the devices. Else 0.
  uint64_t rows[ADEAD_MAX_ESTIMATES];
  /// Nanoseconds until all devices have finished their part; 0 if the operation is not divided.
  double split_ns;
} adead_explanation;

/// A value of a chain: an input, a constant, or the result of an operation. Functions refuse another chain's values.
typedef uint64_t adead_value;

/// The result of compiling a chain. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_compiled_info)`.
  size_t struct_size;
  /// The number of inputs that a run needs.
  size_t inputs;
  /// The number of outputs.
  size_t outputs;
  /// The number of recorded operations that the outputs depend on.
  size_t operations;
  /// The number of steps that these operations became.
  size_t steps;
  /// Bytes of the memory that intermediate values share. On a GPU it includes inputs and outputs.
  size_t memory;
  /// The device that it runs on: "cpu", "cuda:0".
  char device[32];
} adead_compiled_info;

/// The use of the cache of executed chains. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_cache_use)`.
  size_t struct_size;
  /// The number of chains in the cache.
  uint64_t entries;
  /// The most chains that the cache holds. It evicts the least recently used one.
  uint64_t most;
  /// The number of executions that found their chain in the cache.
  uint64_t hits;
  /// The number of executions that compiled their chain.
  uint64_t misses;
} adead_cache_use;

/// Takes the gradient of a hooked value, and writes to `out` what takes its place; the gradient stands there. `number` says which of the
/// hooked values it is. Operations are recorded with the `chain` that it receives, which it must not destroy. Any status other than
/// `ADEAD_OK` ends the recording, which returns it.
typedef adead_status (*adead_hook)(adead_chain *chain, size_t number, adead_value gradient, adead_value *out, void *user);

/// The form of gelu, one of `ADEAD_GELU_...`.
typedef int32_t adead_gelu_form;

/// The function that follows a matrix product, one of `ADEAD_ACTIVATION_...`.
typedef int32_t adead_activation;

/// Options of a matrix product. Start from `ADEAD_MATMUL_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_matmul_options)`.
  size_t struct_size;
  /// Not 0: a is stored transposed.
  int32_t trans_a;
  /// Not 0: b is stored transposed.
  int32_t trans_b;
  /// The factor of the product.
  float alpha;
  /// The factor of c.
  float beta;
  /// The tensor that beta multiplies, broadcast to the result. Required if beta is not 0; else it may be NULL.
  const adead_tensor *c;
  /// `[N]`, added to every row. NULL: no bias.
  const adead_tensor *bias;
  /// The function applied last, one of `ADEAD_ACTIVATION_...`.
  adead_activation activation;
  /// The precision, one of `ADEAD_PRECISION_...`. `ADEAD_PRECISION_DEFAULT` is the context's default precision.
  adead_precision precision;
} adead_matmul_options;

/// Options of attention. Start from `ADEAD_ATTENTION_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_attention_options)`.
  size_t struct_size;
  /// Added to the scaled scores; broadcast to `[..., Hq, Sq, Sk]`. NULL: no mask.
  const adead_tensor *mask;
  /// Not 0: query i sees key j when j <= i + (Sk - Sq), so that the last query sees every key.
  int32_t causal;
  /// The factor of the scores; 0 means 1/sqrt(D).
  float scale;
  /// The precision, one of `ADEAD_PRECISION_...`. `ADEAD_PRECISION_DEFAULT` is the context's default precision.
  adead_precision precision;
} adead_attention_options;

/// How the elements of a quantised matrix are stored, one of `ADEAD_BLOCK_FORMAT_...`.
typedef int32_t adead_block_format;

/// A kind of layer, one of `ADEAD_MODULE_...`.
typedef int32_t adead_module_kind;

/// Options of `adead_module_load`. Start from `ADEAD_MODULE_OPTIONS_INIT`, and set `kind` and the fields that name this kind.
typedef struct {
  /// `sizeof(adead_module_options)`.
  size_t struct_size;
  /// A kind with weights, one of `ADEAD_MODULE_...`.
  adead_module_kind kind;
  /// Transformers: the activation between the two products of the feed-forward part.
  adead_activation activation;
  /// Linear: the number of values of an input row. Embedding: the number of rows of the table.
  size_t inputs;
  /// Linear: the number of values of an output row.
  size_t outputs;
  /// All kinds but linear: the number of values of a row.
  size_t width;
  /// Attention and transformers: the number of heads.
  size_t heads;
  /// Transformers: the number of values between the two products of the feed-forward part.
  size_t hidden;
  /// Transformer encoder: the number of layers, `PREFIX.0`, `PREFIX.1` and so on.
  size_t layers;
  /// Attention: the names of four linear layers: query, key, value, output. The prefix is put before each name.
  const char *const *parts;
  /// Layer norm and transformers: the number that is added to a variance.
  float eps;
  /// Always 0.
  int32_t reserved;
} adead_module_options;

/// A description of a module. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_module_info)`.
  size_t struct_size;
  /// The kind of layer, one of `ADEAD_MODULE_...`.
  adead_module_kind kind;
  /// Always 0.
  int32_t reserved;
  /// Linear: the values of an input row. Embedding: the rows of the table. Sequential and encoder: the layers. Else 0.
  size_t inputs;
  /// Linear: the values of an output row. Embedding: the values of a row. Else 0.
  size_t outputs;
} adead_module_info;

/// Optional arguments of `adead_module_forward`. Start from `ADEAD_FORWARD_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_forward_options)`.
  size_t struct_size;
  /// Linear, feed-forward, attention: a tensor that is added to the result; linear adds it before its activation. NULL: none.
  const adead_tensor *residual;
  /// Attention and transformers: the number of rows of each sequence. The rows after them are padding: nothing attends to them,
  /// and their results have no meaning. NULL: no padding.
  const size_t *lengths;
  /// The number of lengths.
  size_t count;
  /// Linear: the activation of the result, one of `ADEAD_ACTIVATION_...`.
  adead_activation activation;
  /// Always 0.
  int32_t reserved;
} adead_forward_options;

/// The format that a program has or was decoded from, one of `ADEAD_FORMAT_...`.
typedef int32_t adead_format;

/// The direction of a slot's contents, one of `ADEAD_DIRECTION_...`.
typedef int32_t adead_direction;

/// A named input or output of a program. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_slot)`.
  size_t struct_size;
  /// The tensor's name; for AGPU programs the host address as text, such as "0x1000". It belongs to the program.
  const char *name;
  /// Bytes of its contents.
  size_t bytes;
  /// The direction of its contents.
  adead_direction direction;
  /// The type of its elements.
  adead_dtype dtype;
  /// Not 0: a tensor bound to it must have exactly this dtype and shape. 0: it must only have this many bytes.
  int32_t typed;
  /// Not 0: the caller must bind a tensor to it.
  int32_t required;
  /// The number of dimensions.
  size_t rank;
  /// The dimensions.
  size_t dims[ADEAD_MAX_RANK];
} adead_slot;

/// How to run a program. Start from `ADEAD_RUN_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_run_options)`.
  size_t struct_size;
  /// The most bytes that registers, temporaries and outputs may take at the same time.
  size_t memory_limit;
  /// Not 0: independent instructions may run at the same time. The results are the same.
  int32_t parallel;
  /// Always 0.
  int32_t reserved;
} adead_run_options;

/// Statistics of a run. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_outcome_stats)`.
  size_t struct_size;
  /// The number of instructions that ran.
  size_t instructions;
  /// The most bytes that registers, temporaries and outputs took at the same time.
  size_t memory;
  /// Floating-point operations; a multiply-add counts as two.
  double flops;
  /// Seconds from the start of the first instruction to the end of the last.
  double seconds;
} adead_outcome_stats;

/// Statistics of one instruction in a run. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_trace)`.
  size_t struct_size;
  /// Its index in the program.
  size_t instruction;
  /// Seconds that it took.
  double seconds;
  /// Floating-point operations; a multiply-add counts as two.
  double flops;
  /// Bytes read and written, counting each operand once.
  double bytes;
  /// Its name.
  char name[32];
  /// The device that it ran on.
  char device[32];
} adead_trace;

/// The state of an allocator. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_allocator_stats)`.
  size_t struct_size;
  /// Bytes of a block.
  size_t block_size;
  /// All bytes, free or not.
  size_t capacity;
  /// Bytes of the blocks in use.
  size_t used;
  /// Bytes of the free blocks, contiguous or not.
  size_t available;
  /// The largest allocation that would succeed; 0 if none would.
  size_t largest_free;
  /// The highest end of an allocation since the start or the last reset, as an offset.
  size_t high_water;
  /// The number of live allocations.
  size_t live;
} adead_allocator_stats;

/// A matrix or a stream as a number. It is never 0 and never negative. A freed number is not reused for 2^24
/// allocations.
typedef int64_t adead_flat_handle;

/// Provides the next batch by `adead_batch_memory` or `adead_batch_borrow`; without either call, no batch is left. Any
/// status other than `ADEAD_OK` ends the run, which returns it. The status may be a number of the caller's own.
typedef adead_status (*adead_next)(adead_batch *batch, void *user);

/// Enqueues the work of a batch on its stream and names its result. Any status other than `ADEAD_OK` ends the run.
typedef adead_status (*adead_work)(adead_stage *stage, void *user);

/// Takes the result of batch `index`; the first one is 0. `data` points into the download, valid only during the call,
/// aligned for every element type, and never NULL. Any status other than `ADEAD_OK` ends the run.
typedef adead_status (*adead_take)(size_t index, const void *data, size_t bytes, void *user);

/// A summary of a profile. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_profile_summary)`.
  size_t struct_size;
  /// The number of records, for `adead_profile_record_at`.
  size_t records;
  /// The number of totals, for `adead_profile_total_at`.
  size_t totals;
  /// The number of devices that worked, for `adead_profile_device_at`.
  size_t devices;
  /// Records beyond the limit. They are only counted here and appear nowhere else.
  uint64_t dropped;
  /// Nanoseconds from the start of the profile to its end.
  uint64_t ns;
  /// Nanoseconds during which there was work on the CPU, work on a GPU, or a transfer.
  uint64_t busy_ns;
  /// Nanoseconds of `busy_ns` during which at least two of the three overlapped.
  uint64_t overlapped_ns;
  /// The ratio of `overlapped_ns` to `busy_ns`.
  double overlap;
} adead_profile_summary;

/// A kind of work, one of `ADEAD_ACTIVITY_...`.
typedef int32_t adead_activity;

/// A piece of work: an operation, a user's kernel or a transfer. The caller sets `struct_size`. Texts live as long as
/// the profile. Times are nanoseconds since the profile's start.
typedef struct {
  /// `sizeof(adead_profile_record)`.
  size_t struct_size;
  /// The kind: `ADEAD_ACTIVITY_...`.
  adead_activity activity;
  /// Whether `work_begin_ns` and `work_end_ns` are valid: 0 or 1. It is 0 if the device measures no times, and for
  /// work that had not finished when the profile ended.
  int32_t has_work;
  /// Whether `cycles` is valid: 0 or 1. It is 0 on GPUs and on processors without a counter.
  int32_t has_cycles;
  /// Always 0.
  int32_t reserved;
  /// The name of the operation or the kernel; for other work, the name of its kind.
  const char *name;
  /// The operands: dtypes and shapes, a kernel's workgroups, or the operation that a transfer serves.
  const char *operands;
  /// The device, by its index for `adead_profile_device_at`.
  size_t device;
  /// The device's id: "cpu", "cuda:0".
  const char *device_id;
  /// Why it ran there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand",
  /// "stream's device", "divided" or "chosen GPU can't be opened".
  const char *reason;
  /// For "threshold", the threshold in elements; else 0.
  uint64_t threshold;
  /// The calling thread, counted from 0 in the order of the threads' first records.
  size_t thread;
  /// The device's stream: 0 is the context's own, others are numbered in the order of their creation.
  size_t stream;
  /// When the call began. On an asynchronous device, the call only enqueues the work.
  uint64_t host_begin_ns;
  /// When the call ended.
  uint64_t host_end_ns;
  /// When the work itself began, on the host's clock.
  uint64_t work_begin_ns;
  /// When the work itself ended.
  uint64_t work_end_ns;
  /// Cycles of the processor's time stamp counter.
  uint64_t cycles;
  /// Floating-point operations; a multiply-add counts as two. 0 if unknown.
  double flops;
  /// Bytes read and written, counting each operand once; for transfers and copies, bytes moved. 0 if unknown.
  double bytes;
} adead_profile_record;

/// The total of records with one kind, name, device and reason. The caller sets `struct_size`. Texts live as long as
/// the profile.
typedef struct {
  /// `sizeof(adead_profile_total)`.
  size_t struct_size;
  /// The kind: `ADEAD_ACTIVITY_...`.
  adead_activity activity;
  /// Always 0.
  int32_t reserved;
  /// The name of the operation or the kernel.
  const char *name;
  /// The device, by its index for `adead_profile_device_at`.
  size_t device;
  /// The device's id: "cpu", "cuda:0".
  const char *device_id;
  /// Why it ran there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand",
  /// "stream's device", "divided" or "chosen GPU can't be opened".
  const char *reason;
  /// For "threshold", the threshold in elements; else 0.
  uint64_t threshold;
  /// The number of records.
  uint64_t count;
  /// The number of records with a measured time. The fields below cover only these.
  uint64_t timed;
  /// The sum of their times, in nanoseconds.
  uint64_t ns;
  /// The shortest time, in nanoseconds.
  uint64_t min_ns;
  /// The longest time, in nanoseconds.
  uint64_t max_ns;
  /// The mean time, in nanoseconds.
  double mean_ns;
  /// Floating-point operations.
  double flops;
  /// Bytes read and written; for transfers, bytes moved.
  double bytes;
  /// Floating-point operations per nanosecond.
  double gflops;
  /// Bytes per nanosecond.
  double gbytes;
  /// The fraction of the device's peak rate of arithmetic or of memory, whichever fraction is larger; for transfers,
  /// of the link's rate. It can exceed 1.
  double of_peak;
} adead_profile_total;

/// A device that worked. The caller sets `struct_size`. Texts live as long as the profile.
typedef struct {
  /// `sizeof(adead_profile_device)`.
  size_t struct_size;
  /// The device's id: "cpu", "cuda:0".
  const char *id;
  /// Nanoseconds of work other than transfers. Concurrent work counts twice.
  uint64_t work_ns;
  /// Bytes uploaded to the device.
  uint64_t uploaded;
  /// Bytes downloaded from the device.
  uint64_t downloaded;
  /// Its peak rate of arithmetic as the dispatcher knows it, in floating-point operations per nanosecond; 0 if
  /// unknown.
  double peak_gflops;
  /// Its peak rate of memory as the dispatcher knows it, in bytes per nanosecond; 0 if unknown.
  double peak_gbytes;
  /// The source of these rates; NULL if there are none.
  const char *figures;
  /// Whether the rates were measured on this machine: 0 or 1.
  int32_t calibrated;
  /// Always 0.
  int32_t reserved;
} adead_profile_device;

/// The severity of a message, one of `ADEAD_LOG_...`.
typedef int32_t adead_log_level;

/// Receives messages: a level, a target ("adead.devices"), a text, and the pointer that was passed to `adead_log_set`.
/// Both texts are valid only during the call.
typedef void (*adead_log_callback)(adead_log_level level, const char *target, const char *text, void *user);

/// A linear layer.
#define ADEAD_MODULE_LINEAR 0

/// A table whose rows are looked up by id.
#define ADEAD_MODULE_EMBEDDING 1

/// Layer normalisation.
#define ADEAD_MODULE_LAYER_NORM 2

/// max(x, 0).
#define ADEAD_MODULE_RELU 3

/// The Gaussian error linear unit.
#define ADEAD_MODULE_GELU 4

/// Modules that are applied in order.
#define ADEAD_MODULE_SEQUENTIAL 5

/// Two linear layers with an activation between them.
#define ADEAD_MODULE_FEED_FORWARD 6

/// Multi-head self-attention.
#define ADEAD_MODULE_ATTENTION 7

/// Attention and feed-forward, with normalisation after each.
#define ADEAD_MODULE_TRANSFORMER_LAYER 8

/// Transformer layers that are applied in order.
#define ADEAD_MODULE_TRANSFORMER_ENCODER 9

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// Returns the error text of the last call that failed on this thread: what was wrong, with the numbers, and what to
/// do. "" if no call failed. It is valid until the next call on this thread fails.
ADEAD_API const char *adead_last_error(void);

/// Returns the name of a status, such as "shape_mismatch", or NULL for an unknown number. The text is never freed.
ADEAD_API const char *adead_status_name(adead_status status);

/// Returns the version of the library, such as "0.1.0". The text is never freed.
ADEAD_API const char *adead_version(void);

/// Returns the version of this interface. A program built with `ADEAD_ABI_VERSION` n runs with every library that
/// returns n.
ADEAD_API uint32_t adead_abi_version(void);

/// Returns the version of the arithmetic contract, such as "adead-contract-2". Libraries with the same version compute
/// the same bits. Publish it beside every hash. The text is never freed.
ADEAD_API const char *adead_contract_version(void);

/// Creates a flag that is not set.
ADEAD_API adead_status adead_interrupt_create(adead_interrupt **out);

/// Destroys a flag; NULL is allowed. No other thread may still watch it through `adead_interrupt_watch`. If the calling
/// thread watches it, the thread then watches none.
ADEAD_API void adead_interrupt_destroy(adead_interrupt *interrupt);

/// Sets a flag, or clears it if the value is 0; NULL is allowed. Calls that have seen the flag set still end early. Any
/// thread may call this, and so may a signal handler: it is async-signal-safe.
ADEAD_API void adead_interrupt_set(adead_interrupt *interrupt, int32_t value);

/// Returns whether a flag is set: 0 or 1. NULL is not set. Async-signal-safe.
ADEAD_API int32_t adead_interrupt_get(const adead_interrupt *interrupt);

/// Makes the calling thread watch a flag, or none if it is NULL. While the flag is set, the thread's long calls end
/// with `not_ready` within 0.1 s. Long calls are operations, programs and pipelines on the CPU, and waits for a GPU.
/// Work already submitted to the GPU continues. Calls of a few milliseconds finish. A call that ends early gives no
/// result, but may have written parts of its output arrays and buffers. Everything works as before afterwards.
///
/// Returns the flag that the thread watched before, or NULL, so that the caller can restore it. No thread may watch a
/// flag when it is destroyed.
ADEAD_API const adead_interrupt *adead_interrupt_watch(const adead_interrupt *interrupt);

/// Starts the simple API on a backend: 0 CPU, 1 CUDA, 2 Vulkan, -1 the best device or the one that `ADEAD_DEVICE`
/// names. A second call with another backend switches to that one. If the first call is another function of the simple
/// API, it starts the API as -1 does. `backend_unavailable` if this machine or this version does not have the backend.
ADEAD_API adead_status adead_init(int backend);

/// Ends the simple API and frees the blocks of `adead_alloc` that are still live. The API may be started again.
ADEAD_API adead_status adead_shutdown(void);

/// Allocates `bytes` zeroed bytes for the simple API, aligned to 64 bytes. The functions also accept any other memory
/// of the caller. `out_of_memory` if the system refuses.
ADEAD_API adead_status adead_alloc(size_t bytes, void **out);

/// Frees memory that `adead_alloc` returned; NULL is allowed. `invalid_argument`, and nothing changes, for any other
/// pointer and for freed memory.
ADEAD_API adead_status adead_free(void *pointer);

/// Computes `result = a*b`: a is `[m, k]`, b `[k, n]`, result `[m, n]`, row-major. The result must not overlap a or b.
ADEAD_API adead_status adead_matmul(const float *a, const float *b, float *result, int m, int n, int k);

/// Computes the softmax of every row of a row-major `[rows, cols]` matrix. `out` may equal `in`, but must not overlap
/// it otherwise.
ADEAD_API adead_status adead_softmax(const float *in, float *out, int rows, int cols);

/// Computes `max(x, 0)` of `size` values; NaN stays NaN. `out` may equal `in`, but must not overlap it otherwise.
ADEAD_API adead_status adead_relu(const float *in, float *out, int size);

/// Starts the simple API on the best Vulkan GPU, as `adead_init(2)` does. `backend_unavailable` if there is none.
ADEAD_API adead_status adead_vulkan_init(void);

/// Runs a compute shader on the best Vulkan GPU over `x`*`y`*`z` workgroups, and returns when it has finished. `shader`
/// names the file with its SPIR-V. Its buffers, by set and binding, are the live blocks of `adead_alloc` in the order
/// of allocation. The call copies them to the GPU first, and copies back those that the shader may write. For push
/// constants and repeated work use the object API: `adead_kernel_load_spirv`, `adead_dispatch`.
ADEAD_API
adead_status adead_vulkan_compute(const char *shader,
                                  int x,
                                  int y,
                                  int z);

/// Describes the machine: processor, memory, GPUs and the recommended mode. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_hardware_report(adead_hardware *out);

/// Opens a device by name. A name is "auto", "cpu", "cuda" or "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a
/// part of a GPU's name, or its UUID. "hybrid" (the CPU and every GPU), or names separated by commas, open several
/// devices as one. NULL takes the name in `ADEAD_DEVICE`, or else in adead.toml, or else "auto". `opts` may be NULL.
ADEAD_API adead_status adead_context_open(const char *device, const adead_context_options *opts, adead_context **out);

/// Closes a context; NULL is allowed. Tensors that it made stay valid.
ADEAD_API void adead_context_destroy(adead_context *context);

/// Reports the memory that tensors use on one of the context's devices, by its name. All counts are 0 for the CPU and
/// for a GPU that was not used yet. The caller sets `out->struct_size`. `invalid_argument` for a device that the
/// context does not have.
ADEAD_API
adead_status adead_context_tensor_cache(const adead_context *context,
                                        const char *device,
                                        adead_tensor_cache_use *out);

/// Sets the most bytes that tensors may keep on each of the context's GPUs. The default is half of the GPU's memory.
/// The least recently used copies are evicted, now and when others arrive. No value is lost.
ADEAD_API adead_status adead_context_set_tensor_cache(const adead_context *context, uint64_t bytes);

/// Sets the default precision, which products with `ADEAD_PRECISION_DEFAULT` have. It applies to calls, pipelines and programs that start
/// or are compiled later. The initial value is the one that the context was opened with, `ADEAD_PRECISION_F32` without options. Layers keep
/// the precision that the context had when they were made. `invalid_argument` for an unknown precision.
ADEAD_API
adead_status adead_context_set_precision(const adead_context *context,
                                         adead_precision precision);

/// Creates a context with the same devices, threads, profile and settings, and a default precision of its own: setting it on
/// either context does not change the other. So a layer or a pipeline can have another precision than the rest of a model.
/// `invalid_argument` for an unknown precision. Close it with `adead_context_destroy`.
ADEAD_API
adead_status adead_context_with_precision(const adead_context *context,
                                          adead_precision precision,
                                          adead_context **out);

/// Returns the default precision, which `adead_context_set_precision` sets.
ADEAD_API adead_status adead_context_precision(const adead_context *context, adead_precision *out);

/// Frees the resources that the context keeps for later work. Scratch memory returns to the system. Worker threads finish their
/// current work and exit. GPU copies of tensors whose values are also in host memory are freed. The next call allocates again
/// what it needs. Other threads may compute meanwhile.
ADEAD_API
adead_status adead_context_trim(const adead_context *context);

/// Describes the context's device. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_context_device_info(const adead_context *context, adead_device_info *out);

/// Returns how many devices the context can use.
ADEAD_API adead_status adead_context_device_count(const adead_context *context, size_t *out);

/// Describes device `index` of those that the context can use. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_context_device_at(const adead_context *context, size_t index, adead_device_info *out);

/// Returns how many GPUs this machine has, among those that `ADEAD_VISIBLE_DEVICES` allows; 0 without a driver. A GPU
/// that both CUDA and Vulkan see counts once.
ADEAD_API adead_status adead_gpu_count(size_t *out);

/// Opens the best GPU, as the name "vulkan" does. Discrete GPUs come before integrated ones; a software device is used
/// only if there is no other. CUDA is used if Vulkan has no GPU. `backend_unavailable` says why there is none.
ADEAD_API adead_status adead_gpu_open(adead_context **out);

/// Describes GPU `index`. 0 is the preferred one; software devices come last. The call opens no GPU. For a Vulkan GPU
/// whose arithmetic was not tested yet, the contract level is `ADEAD_CONTRACT_EMULATED`. The caller sets
/// `out->struct_size`.
ADEAD_API adead_status adead_gpu_info(size_t index, adead_device_info *out);

/// Returns how many backends see GPU `index`: 2 if CUDA and Vulkan do.
ADEAD_API adead_status adead_gpu_backend_count(size_t index, size_t *out);

/// Describes GPU `index` as its backend `backend` sees it. Backend 0 is the preferred one, which `adead_gpu_info`
/// describes. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_gpu_backend_info(size_t index, size_t backend, adead_device_info *out);

/// Reports the memory of the context's GPU, or of the host if the context has no GPU. The caller sets
/// `out->struct_size`.
ADEAD_API adead_status adead_memory(const adead_context *context, adead_memory_use *out);

/// Enqueues a kernel over `groups[0]`*`groups[1]`*`groups[2]` workgroups, with `count` buffers in the order of set and
/// binding. The call returns without waiting. Reading a buffer waits, and so does `adead_wait`. `invalid_argument`
/// names what does not fit: the number of buffers, their sizes, the groups, missing push constants.
ADEAD_API
adead_status adead_dispatch(const adead_context *context,
                            const adead_kernel *kernel,
                            adead_buffer *const *buffers,
                            size_t count,
                            const uint32_t *groups);

/// Works like `adead_dispatch`, and passes the `push_bytes` bytes at `push` as the kernel's push constants.
ADEAD_API
adead_status adead_dispatch_with(const adead_context *context,
                                 const adead_kernel *kernel,
                                 adead_buffer *const *buffers,
                                 size_t count,
                                 const void *push,
                                 size_t push_bytes,
                                 const uint32_t *groups);

/// Waits until everything that the context has enqueued has finished.
ADEAD_API adead_status adead_wait(const adead_context *context);

/// Creates a buffer of `bytes` bytes on the context's GPU, or in host memory if the context has no GPU. It holds a copy
/// of the bytes at `data`, or zeros if `data` is NULL. `out_of_memory` reports the bytes requested and free.
ADEAD_API
adead_status adead_buffer_create(const adead_context *context,
                                 const void *data,
                                 size_t bytes,
                                 adead_buffer **out);

/// Destroys a buffer, and frees its memory if that was not freed before. NULL is allowed.
ADEAD_API void adead_buffer_destroy(adead_buffer *buffer);

/// Frees the memory once the work that uses it has finished. The handle stays valid until it is destroyed. A second
/// free, and any other use after it, fails with `invalid_argument`.
ADEAD_API adead_status adead_buffer_free(adead_buffer *buffer);

/// Returns the buffer's size in bytes.
ADEAD_API adead_status adead_buffer_size(const adead_buffer *buffer, size_t *out);

/// Copies `bytes` bytes from `data` to the buffer at `offset`, after everything that its context has enqueued. The
/// caller may reuse `data` when the call returns. `invalid_argument` if the bytes don't fit.
ADEAD_API adead_status adead_buffer_write(adead_buffer *buffer, size_t offset, const void *data, size_t bytes);

/// Waits for everything that the buffer's context has enqueued, and copies `bytes` bytes at `offset` to `dst`.
/// `invalid_argument` if the buffer has fewer bytes.
ADEAD_API adead_status adead_buffer_read(const adead_buffer *buffer, size_t offset, void *dst, size_t bytes);

/// Loads a kernel from a SPIR-V file. The entry point is "main", or else the module's first; every specialization
/// constant has its default. `io` if the file can't be read. `invalid_kernel` if it is malformed or the driver refuses
/// it. `unsupported` if the kernel needs a feature that the device does not have.
ADEAD_API adead_status adead_kernel_load_spirv(const adead_context *context, const char *path, adead_kernel **out);

/// Loads a kernel from the `bytes` bytes of a SPIR-V module at `data`. The address needs no alignment.
ADEAD_API
adead_status adead_kernel_load_spirv_bytes(const adead_context *context,
                                           const void *data,
                                           size_t bytes,
                                           adead_kernel **out);

/// Loads the first kernel of a PTX file. Its leading 64-bit parameters are buffers, the others push constants. `io` if
/// the file can't be read. `invalid_kernel` if it is malformed or the driver refuses it. `unsupported` if it needs a
/// feature that the device or its driver does not have. On a Vulkan device, `unsupported` names the CUDA device that is
/// the same GPU.
ADEAD_API adead_status adead_kernel_load_ptx(const adead_context *context, const char *path, adead_kernel **out);

/// Loads a kernel from the `bytes` bytes of PTX at `data`, with or without a NUL at the end. `entry` names the kernel;
/// NULL takes the first. Workgroups have `workgroup[0]`*`workgroup[1]`*`workgroup[2]` threads; with NULL, as many as
/// the PTX declares. `invalid_argument` for an unknown entry point, for a number of threads that the kernel does not
/// allow, and if neither the caller nor the PTX gives a number.
ADEAD_API
adead_status adead_kernel_load_ptx_bytes(const adead_context *context,
                                         const void *data,
                                         size_t bytes,
                                         const char *entry,
                                         const uint32_t *workgroup,
                                         adead_kernel **out);

/// Loads a kernel as `adead_kernel_load_ptx` does, from a cubin or a fatbin. A cubin is machine code for one
/// architecture; a fatbin may hold code for several, and PTX. `unsupported` if nothing in it is for the device. A
/// fatbin also needs a driver for CUDA 12.4 or later.
ADEAD_API adead_status adead_kernel_load_cubin(const adead_context *context, const char *path, adead_kernel **out);

/// Loads a kernel as `adead_kernel_load_ptx_bytes` does, from a cubin or fatbin.
ADEAD_API
adead_status adead_kernel_load_cubin_bytes(const adead_context *context,
                                           const void *data,
                                           size_t bytes,
                                           const char *entry,
                                           const uint32_t *workgroup,
                                           adead_kernel **out);

/// Creates another kernel from the module of a kernel, with another entry point and `count` specialization constants
/// set. An entry point of NULL is "main", or else the module's first. `invalid_argument` for an entry point or a
/// constant that the module does not have.
ADEAD_API
adead_status adead_pipeline_create(const adead_context *context,
                                   const adead_kernel *kernel,
                                   const char *entry,
                                   const adead_constant *constants,
                                   size_t count,
                                   adead_kernel **out);

/// Destroys a kernel; NULL is allowed. Enqueued work that uses it continues.
ADEAD_API void adead_kernel_destroy(adead_kernel *kernel);

/// Describes what a dispatch of the kernel must pass. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_kernel_info(const adead_kernel *kernel, adead_kernel_details *out);

/// Describes buffer `index` of the kernel, in the order of a dispatch. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_kernel_parameter_at(const adead_kernel *kernel, size_t index, adead_parameter *out);

/// Compiles a kernel from source and loads it on the context's GPU. A CUDA device takes CUDA C++, which NVRTC compiles. A Vulkan device
/// takes a GLSL compute shader, which glslangValidator compiles. The compiler's messages call the source `name`; NULL is "kernel". `entry`
/// and `workgroup` are as for `adead_kernel_load_ptx_bytes`. `invalid_kernel` has the compiler's messages, with line numbers.
/// `backend_unavailable` if no compiler is found; `ADEAD_NVRTC` and `ADEAD_GLSLANG` may name one. `unsupported` on the CPU.
ADEAD_API
adead_status adead_kernel_compile(const adead_context *context,
                                  const char *source,
                                  const char *name,
                                  const char *entry,
                                  const uint32_t *workgroup,
                                  adead_kernel **out);

/// Creates an event after everything that the context has enqueued so far.
ADEAD_API adead_status adead_event_create(const adead_context *context, adead_event **out);

/// Destroys an event; NULL is allowed.
ADEAD_API void adead_event_destroy(adead_event *event);

/// Returns whether the stream has reached the event: 0 or 1.
ADEAD_API adead_status adead_event_query(const adead_event *event, int32_t *out);

/// Waits until the stream has reached the event, for at most the given nanoseconds; `ADEAD_FOREVER` is no limit.
/// `not_ready` if the time was too short.
ADEAD_API adead_status adead_event_wait(const adead_event *event, uint64_t nanoseconds);

/// Destroys a download; NULL is allowed.
ADEAD_API void adead_download_destroy(adead_download *download);

/// Returns whether the bytes have arrived: 0 or 1. It stays 1 after they were read.
ADEAD_API adead_status adead_download_query(const adead_download *download, int32_t *out);

/// Waits for the bytes and returns their address without a copy. The address is valid until the download is read or
/// destroyed. The device can access this memory, which is scarce, so don't keep it for long. `invalid_argument` if the
/// download was read.
ADEAD_API adead_status adead_download_data(const adead_download *download, const void **out);

/// Waits for the bytes and copies them to `dst`, once. `invalid_argument` unless `bytes` is the size of the download,
/// and for a second read.
ADEAD_API adead_status adead_download_read(adead_download *download, void *dst, size_t bytes);

/// Destroys a timestamp; NULL is allowed.
ADEAD_API void adead_timestamp_destroy(adead_timestamp *timestamp);

/// Returns the nanoseconds from `earlier` to `timestamp`, both of the same device. `not_ready` until the device has
/// taken both.
ADEAD_API
adead_status adead_timestamp_since(const adead_timestamp *timestamp,
                                   const adead_timestamp *earlier,
                                   uint64_t *out);

/// Destroys a recording; NULL is allowed. Enqueued replays of it continue.
ADEAD_API void adead_recording_destroy(adead_recording *recording);

/// Creates a stream on the context's device.
ADEAD_API adead_status adead_stream_create(const adead_context *context, adead_stream **out);

/// Creates a stream with a priority on the context's device. On an NVIDIA GPU through CUDA, pending work of
/// `ADEAD_PRIORITY_HIGH` starts before that of other streams. Other devices ignore the priority.
ADEAD_API
adead_status adead_stream_create_with(const adead_context *context,
                                      adead_priority priority,
                                      adead_stream **out);

/// Waits for the stream's work and destroys the stream; NULL is allowed.
ADEAD_API void adead_stream_destroy(adead_stream *stream);

/// Enqueues a copy of `bytes` bytes from `data` to a buffer at `offset`. The caller may reuse `data` when the call
/// returns.
ADEAD_API
adead_status adead_stream_upload(adead_stream *stream,
                                 adead_buffer *buffer,
                                 size_t offset,
                                 const void *data,
                                 size_t bytes);

/// Enqueues a copy of `bytes` bytes of a buffer at `offset` to the host. `adead_download_read` copies them out, and
/// `adead_download_data` gives access without a copy.
ADEAD_API
adead_status adead_stream_download(adead_stream *stream,
                                   const adead_buffer *buffer,
                                   size_t offset,
                                   size_t bytes,
                                   adead_download **out);

/// Enqueues a copy of `bytes` bytes from one buffer at `from_offset` to another at `to_offset`. Two ranges of one
/// buffer must not overlap.
ADEAD_API
adead_status adead_stream_copy(adead_stream *stream,
                               const adead_buffer *from,
                               size_t from_offset,
                               adead_buffer *to,
                               size_t to_offset,
                               size_t bytes);

/// Enqueues a fill with zeros of `bytes` bytes of a buffer from `offset` on. They must be whole 4-byte words, except at
/// the buffer's end.
ADEAD_API adead_status adead_stream_clear(adead_stream *stream, adead_buffer *buffer, size_t offset, size_t bytes);

/// Enqueues a kernel, as `adead_dispatch_with` does. Pass `push_bytes` 0 for a kernel without push constants.
ADEAD_API
adead_status adead_stream_dispatch(adead_stream *stream,
                                   const adead_kernel *kernel,
                                   adead_buffer *const *buffers,
                                   size_t count,
                                   const void *push,
                                   size_t push_bytes,
                                   const uint32_t *groups);

/// Enqueues an operation on buffers: `count` operands in the operation's order, and a buffer for the result. The
/// result's dtype and shape must be those that follow from the operands. `attrs` may be NULL. Errors that only the
/// device can find, such as an id outside a table, come from `adead_stream_sync`.
ADEAD_API
adead_status adead_stream_run(adead_stream *stream,
                              adead_op op,
                              const adead_operand *operands,
                              size_t count,
                              const adead_attrs *attrs,
                              const adead_operand *result);

/// Creates an event after all work that the stream was given so far.
ADEAD_API adead_status adead_stream_event(adead_stream *stream, adead_event **out);

/// Makes all work that is enqueued on the stream from now on wait for an event of the same device.
ADEAD_API adead_status adead_stream_wait_event(adead_stream *stream, const adead_event *event);

/// Enqueues a timestamp.
ADEAD_API adead_status adead_stream_timestamp(adead_stream *stream, adead_timestamp **out);

/// Starts recording the stream's work instead of running it, until `adead_stream_record_end`. Uploads, downloads,
/// events and timestamps can't be recorded. `invalid_argument` if the stream already records, `unsupported` on the CPU.
ADEAD_API adead_status adead_stream_record_begin(adead_stream *stream);

/// Ends the recording and returns it. `adead_stream_replay` runs it, any number of times. It keeps the memory and the
/// kernels that it uses alive.
ADEAD_API adead_status adead_stream_record_end(adead_stream *stream, adead_recording **out);

/// Enqueues a recording that was made on the same device.
ADEAD_API adead_status adead_stream_replay(adead_stream *stream, const adead_recording *recording);

/// Submits the stream's work to the device now, without waiting. Work also starts without this call, but perhaps only
/// after running work has finished.
ADEAD_API adead_status adead_stream_flush(adead_stream *stream);

/// Waits until all work of the stream has finished. Returns the first error that the device found in it.
ADEAD_API adead_status adead_stream_sync(adead_stream *stream);

/// Returns whether all work of the stream has finished: 0 or 1.
ADEAD_API adead_status adead_stream_query(adead_stream *stream, int32_t *out);

/// Returns the name of a dtype, such as "f32", or NULL for an unknown number. The text is never freed.
ADEAD_API const char *adead_dtype_name(adead_dtype dtype);

/// Returns the bytes of one element; 0 for an unknown number.
ADEAD_API size_t adead_dtype_size(adead_dtype dtype);

/// Creates a tensor from a copy of the `bytes` bytes at `data`. Elements are in native byte order, row-major; f16 and
/// bf16 are given by their bits. Their number is the product of `dims`. The rank is 0 to 8; rank 0 is a scalar.
/// `shape_mismatch` if `bytes` is not the size that dtype and dims need.
ADEAD_API
adead_status adead_tensor_create(adead_dtype dtype,
                                 const size_t *dims,
                                 size_t rank,
                                 const void *data,
                                 size_t bytes,
                                 adead_tensor **out);

/// Creates a tensor of zeros.
ADEAD_API adead_status adead_tensor_zeros(adead_dtype dtype, const size_t *dims, size_t rank, adead_tensor **out);

/// Destroys a tensor; NULL is allowed. Its clones and reshapes stay valid.
ADEAD_API void adead_tensor_destroy(adead_tensor *tensor);

/// Creates another handle to the same values, without a copy.
ADEAD_API adead_status adead_tensor_clone(const adead_tensor *tensor, adead_tensor **out);

/// Creates a handle to the same values in another shape, without a copy. `shape_mismatch` if the number of elements
/// differs.
ADEAD_API
adead_status adead_tensor_reshape(const adead_tensor *tensor,
                                  const size_t *dims,
                                  size_t rank,
                                  adead_tensor **out);

/// Returns the type of the elements.
ADEAD_API adead_status adead_tensor_dtype(const adead_tensor *tensor, adead_dtype *out);

/// Returns the number of dimensions.
ADEAD_API adead_status adead_tensor_rank(const adead_tensor *tensor, size_t *out);

/// Returns the dimensions, as many as the rank. They live as long as the tensor.
ADEAD_API adead_status adead_tensor_dims(const adead_tensor *tensor, const size_t **out);

/// Returns the bytes of all elements.
ADEAD_API adead_status adead_tensor_bytes(const adead_tensor *tensor, size_t *out);

/// Returns the elements, in native byte order, row-major, at a multiple of 64 bytes. They stay valid until the tensor
/// and all its clones are destroyed. If the values are only on a GPU, the first call waits for them and copies them to
/// host memory.
ADEAD_API adead_status adead_tensor_data(const adead_tensor *tensor, const void **out);

/// Copies a tensor's values to one of the context's devices, named as for `adead_context_open`. The call may return
/// while the copy is in progress. `"cpu"` starts a copy to host memory instead. Clones, reshapes and rows share copies.
/// Operations on the device use the copy, and their results stay on the device that computed them. `invalid_argument`
/// for a device that the context does not have.
ADEAD_API adead_status adead_tensor_to(const adead_context *context, const adead_tensor *tensor, const char *device);

/// Returns whether a tensor's values are on the device with an id, or for `"cpu"` in host memory: 0 or 1.
ADEAD_API adead_status adead_tensor_is_on(const adead_tensor *tensor, const char *device, int32_t *out);

/// Copies all elements to `dst`. `invalid_argument` unless `bytes` equals the tensor's `adead_tensor_bytes`.
ADEAD_API adead_status adead_tensor_read(const adead_tensor *tensor, void *dst, size_t bytes);

/// Draws uniform numbers from `low` to below `high`, f32: u*(high - low) + low, where u are multiples of 2^-24 in [0, 1).
ADEAD_API
adead_status adead_random_uniform(adead_random *random,
                                  const adead_context *context,
                                  double low,
                                  double high,
                                  const size_t *dims,
                                  size_t rank,
                                  adead_tensor **out);

/// Draws normal numbers with mean 0 and deviation 1, f32.
ADEAD_API
adead_status adead_random_standard_normal(adead_random *random,
                                          const adead_context *context,
                                          const size_t *dims,
                                          size_t rank,
                                          adead_tensor **out);

/// Draws normal numbers, f32: z*deviation + mean, where z is drawn as by `adead_random_standard_normal`. `invalid_argument` unless the
/// deviation is at least 0.
ADEAD_API
adead_status adead_random_normal(adead_random *random,
                                 const adead_context *context,
                                 float mean,
                                 float deviation,
                                 const size_t *dims,
                                 size_t rank,
                                 adead_tensor **out);

/// Draws integers from `low` to below `high`, i64. `invalid_argument` unless this range has 1 to 2^32 integers.
ADEAD_API
adead_status adead_random_integers(adead_random *random,
                                   int64_t low,
                                   int64_t high,
                                   const size_t *dims,
                                   size_t rank,
                                   adead_tensor **out);

/// Draws a permutation of the integers from 0 to below `count`, i64 of shape `[count]`.
ADEAD_API adead_status adead_random_permutation(adead_random *random, size_t count, adead_tensor **out);

/// Returns one more than the largest number of an operation. Numbers never change. Smaller numbers without an operation
/// have no name.
ADEAD_API size_t adead_op_count(void);

/// Returns the name of an operation, such as "matmul", or NULL for an unknown number. The text is never freed.
ADEAD_API const char *adead_op_name(adead_op op);

/// Returns the operation with a name. `invalid_argument` if there is none.
ADEAD_API adead_status adead_op_from_name(const char *name, adead_op *out);

/// Executes any operation. `operands` are `count` tensors in the order of docs/operations.md, with NULL for an absent
/// optional operand; trailing ones may be left out. If `attrs` is NULL, every attribute has its default.
ADEAD_API
adead_status adead_op_run(const adead_context *context,
                          adead_op op,
                          const adead_tensor *const *operands,
                          size_t count,
                          const adead_attrs *attrs,
                          adead_tensor **out);

/// Creates attributes, all with their defaults.
ADEAD_API adead_status adead_attrs_create(adead_attrs **out);

/// Destroys attributes; NULL is allowed.
ADEAD_API void adead_attrs_destroy(adead_attrs *attrs);

/// Sets an attribute of `op` from text. Integers and flags are decimal ("-1", "1"). Floats are decimal, or 0x and the
/// eight digits of their bits. Words are as in "relu" and "i32", "all" stands for every axis, and lists use commas
/// ("1,0,2"). docs/operations.md lists the attributes. `invalid_argument` for a name that `op` does not have and for a
/// value that the attribute can't take.
ADEAD_API adead_status adead_attrs_set(adead_attrs *attrs, adead_op op, const char *name, const char *value);

/// Returns the name of a family, such as "matmul", or NULL for an unknown number. The text is never freed.
ADEAD_API const char *adead_family_name(adead_family family);

/// Chooses the device for work on `elements` elements in host memory, when only this number is known. Returns the
/// device's index for `adead_context_device_at`. The call takes a few nanoseconds. Results are the same on every
/// device.
ADEAD_API adead_status adead_select(const adead_context *context, size_t elements, size_t *out);

/// Explains on which device `adead_op_run` would run with the same arguments, why, and how long each device would take.
/// Runs nothing. The caller sets `out->struct_size`.
ADEAD_API
adead_status adead_explain(const adead_context *context,
                           adead_op op,
                           const adead_tensor *const *operands,
                           size_t count,
                           const adead_attrs *attrs,
                           adead_explanation *out);

/// Sets the number of elements from which operations of a family run on a GPU; smaller ones run on the CPU. With
/// `ADEAD_NO_THRESHOLD` the cost model decides. Has no effect without a GPU. Other threads may use the context
/// meanwhile.
ADEAD_API adead_status adead_context_set_threshold(const adead_context *context, adead_family family, size_t elements);

/// Runs everything on one of the context's devices by its id ("cpu"), whatever the cost. NULL lets the cost model
/// decide again. `invalid_argument` for an id that the context does not have. Other threads may use the context
/// meanwhile.
ADEAD_API adead_status adead_context_force(const adead_context *context, const char *device);

/// Creates an empty chain on a context.
ADEAD_API adead_status adead_chain_create(const adead_context *context, adead_chain **out);

/// Destroys a chain; NULL is allowed. Chains that were compiled from it stay valid.
ADEAD_API void adead_chain_destroy(adead_chain *chain);

/// Adds an input: a tensor that the caller passes at each run, in the order of these calls.
ADEAD_API
adead_status adead_chain_input(adead_chain *chain,
                               adead_dtype dtype_,
                               const size_t *dims,
                               size_t rank,
                               adead_value *out);

/// Adds a constant: a tensor that is the same in each run, such as weights. The caller may destroy its handle.
ADEAD_API adead_status adead_chain_constant(adead_chain *chain, const adead_tensor *tensor, adead_value *out);

/// Adds an operation on `count` values, in the order of docs/operations.md. Pass `ADEAD_NO_VALUE` for an absent
/// optional operand; trailing ones may be left out. If `attrs` is NULL, every attribute has its default. The errors are
/// those of the operation; on an error the chain is unchanged.
ADEAD_API
adead_status adead_chain_op(adead_chain *chain,
                            adead_op op,
                            const adead_value *operands,
                            size_t count,
                            const adead_attrs *attrs,
                            adead_value *out);

/// Reshapes a value without a copy; the new shape must have as many elements.
ADEAD_API
adead_status adead_chain_reshape(adead_chain *chain,
                                 adead_value value,
                                 const size_t *dims,
                                 size_t rank,
                                 adead_value *out);

/// Makes a value an output, in the order of these calls. Without any call, the last value is the output.
/// `invalid_argument` for an input or a constant.
ADEAD_API adead_status adead_chain_output(adead_chain *chain, adead_value value);

/// Plans a chain for the device with the lowest estimated time. The chain may grow and be compiled again afterwards.
ADEAD_API adead_status adead_chain_compile(const adead_chain *chain, adead_compiled **out);

/// Runs a chain without inputs once, and returns its `count` outputs. The compiled form is cached: the next chain with
/// the same operations and shapes reuses it, whatever its constants.
ADEAD_API adead_status adead_chain_execute(const adead_chain *chain, adead_tensor **outputs, size_t count);

/// Destroys a compiled chain; NULL is allowed.
ADEAD_API void adead_compiled_destroy(adead_compiled *compiled);

/// Runs a compiled chain with its `input_count` inputs, and returns its `output_count` outputs.
ADEAD_API
adead_status adead_compiled_run(const adead_compiled *compiled,
                                const adead_tensor *const *inputs,
                                size_t input_count,
                                adead_tensor **outputs,
                                size_t output_count);

/// Describes a compiled chain. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_compiled_describe(const adead_compiled *compiled, adead_compiled_info *out);

/// Returns the plan as text, with a line for each step. The text lives as long as `compiled`.
ADEAD_API adead_status adead_compiled_text(const adead_compiled *compiled, const char **out);

/// Returns the plan as a graph in the DOT language, which Graphviz draws. The text lives as long as `compiled`.
ADEAD_API adead_status adead_compiled_dot(const adead_compiled *compiled, const char **out);

/// Reports the use of the context's cache, which holds the chains that `adead_chain_execute` compiled.
/// `adead_context_trim` empties the cache. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_chain_cache(const adead_context *context, adead_cache_use *out);

/// Returns a value with the same elements. No gradient passes through it.
ADEAD_API adead_status adead_chain_detach(adead_chain *chain, adead_value value, adead_value *out);

/// Adds the gradients of a value of one element, such as a loss, with respect to `count` values: inputs, constants or results. Writes them
/// to `gradients`, which has room for `count`. docs/training.md gives the rule of each operation. `invalid_argument` if the loss does not
/// depend on a value through operations that have gradients, `dtype_mismatch` for values that are not floating-point, `unsupported` for an
/// operand without a rule. On an error the chain is unchanged.
ADEAD_API
adead_status adead_chain_gradients(adead_chain *chain,
                                   adead_value loss,
                                   const adead_value *values,
                                   size_t count,
                                   adead_value *gradients);

/// Works like `adead_chain_gradients`, and calls `hook` when the gradient of one of the `hooked` values is recorded. Values on which no
/// gradient depends have no call.
ADEAD_API
adead_status adead_chain_gradients_with(adead_chain *chain,
                                        adead_value loss,
                                        const adead_value *values,
                                        size_t count,
                                        const adead_value *hooked,
                                        size_t hooked_count,
                                        adead_hook hook,
                                        void *user,
                                        adead_value *gradients);

/// Says whether gradients pass through the operations recorded from now on: 1, as in a new chain, or 0. Writes what it was to `before`,
/// unless that is NULL.
ADEAD_API
adead_status adead_chain_set_grad_enabled(adead_chain *chain,
                                          int32_t enabled,
                                          int32_t *before);

/// `a + b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
ADEAD_API
adead_status adead_tensor_add(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// `a - b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
ADEAD_API
adead_status adead_tensor_sub(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// `a*b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
ADEAD_API
adead_status adead_tensor_mul(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// `a / b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
ADEAD_API
adead_status adead_tensor_div(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// The larger of a and b, element by element with NumPy's broadcasting; NaN propagates, and -0 < +0. Both have the same dtype: f32, f16 or bf16.
ADEAD_API
adead_status adead_tensor_maximum(const adead_context *context,
                                  const adead_tensor *a,
                                  const adead_tensor *b,
                                  adead_tensor **out);

/// The smaller of a and b, element by element with NumPy's broadcasting; NaN propagates, and -0 < +0. Both have the same dtype: f32, f16 or bf16.
ADEAD_API
adead_status adead_tensor_minimum(const adead_context *context,
                                  const adead_tensor *a,
                                  const adead_tensor *b,
                                  adead_tensor **out);

/// `a^b`, element by element with NumPy's broadcasting; NaN for a finite a < 0 and a finite b that is not an integer. Both have the same dtype: f32, f16 or bf16.
ADEAD_API
adead_status adead_tensor_pow(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// Whether a equals b, element by element with NumPy's broadcasting; NaN equals nothing, and -0 equals +0. Takes any dtype, the same for both. Returns bool.
ADEAD_API
adead_status adead_tensor_equal(const adead_context *context,
                                const adead_tensor *a,
                                const adead_tensor *b,
                                adead_tensor **out);

/// Whether a differs from b, element by element with NumPy's broadcasting; true for NaN. Takes any dtype, the same for both. Returns bool.
ADEAD_API
adead_status adead_tensor_not_equal(const adead_context *context,
                                    const adead_tensor *a,
                                    const adead_tensor *b,
                                    adead_tensor **out);

/// Whether `a < b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
ADEAD_API
adead_status adead_tensor_less(const adead_context *context,
                               const adead_tensor *a,
                               const adead_tensor *b,
                               adead_tensor **out);

/// Whether `a <= b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
ADEAD_API
adead_status adead_tensor_less_equal(const adead_context *context,
                                     const adead_tensor *a,
                                     const adead_tensor *b,
                                     adead_tensor **out);

/// Whether `a > b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
ADEAD_API
adead_status adead_tensor_greater(const adead_context *context,
                                  const adead_tensor *a,
                                  const adead_tensor *b,
                                  adead_tensor **out);

/// Whether `a >= b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
ADEAD_API
adead_status adead_tensor_greater_equal(const adead_context *context,
                                        const adead_tensor *a,
                                        const adead_tensor *b,
                                        adead_tensor **out);

/// `x*alpha`, element by element.
ADEAD_API
adead_status adead_tensor_scale(const adead_context *context,
                                const adead_tensor *x,
                                float alpha,
                                adead_tensor **out);

/// `-x`, element by element.
ADEAD_API adead_status adead_tensor_neg(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `|x|`, element by element.
ADEAD_API adead_status adead_tensor_abs(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `e^x`, element by element.
ADEAD_API adead_status adead_tensor_exp(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The natural logarithm, element by element; NaN if x < 0.
ADEAD_API adead_status adead_tensor_log(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The square root, element by element; NaN if x < 0.
ADEAD_API adead_status adead_tensor_sqrt(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `1 / sqrt(x)`, element by element.
ADEAD_API adead_status adead_tensor_rsqrt(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `max(x, 0)`, element by element; NaN stays NaN.
ADEAD_API adead_status adead_tensor_relu(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `1 / (1 + e^-x)`, element by element.
ADEAD_API adead_status adead_tensor_sigmoid(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The hyperbolic tangent, element by element.
ADEAD_API adead_status adead_tensor_tanh(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The Gaussian error linear unit, with erf or tanh, element by element.
ADEAD_API
adead_status adead_tensor_gelu(const adead_context *context,
                               const adead_tensor *x,
                               adead_gelu_form form,
                               adead_tensor **out);

/// `x*sigmoid(x)`, element by element.
ADEAD_API adead_status adead_tensor_silu(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The largest integer <= x, element by element.
ADEAD_API adead_status adead_tensor_floor(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The nearest integer, element by element; ties go to even.
ADEAD_API adead_status adead_tensor_round(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The error function, element by element.
ADEAD_API adead_status adead_tensor_erf(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `minimum(maximum(x, min), max)`, element by element; NaN propagates, and -0 < +0.
ADEAD_API
adead_status adead_tensor_clamp(const adead_context *context,
                                const adead_tensor *x,
                                float min,
                                float max,
                                adead_tensor **out);

/// The sine of x in radians, element by element; NaN if x is infinite.
ADEAD_API adead_status adead_tensor_sin(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The cosine of x in radians, element by element; NaN if x is infinite.
ADEAD_API adead_status adead_tensor_cos(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `log(1 + x)`, also accurate near 0, element by element; NaN if x < -1.
ADEAD_API adead_status adead_tensor_log1p(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `e^x - 1`, also accurate near 0, element by element.
ADEAD_API adead_status adead_tensor_expm1(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// Computes `activation(alpha*(a*b) + beta*c + bias)`: a `[..., M, K]`, b `[..., K, N]`, result `[..., M, N]`. Leading
/// dimensions are broadcast. All have the same dtype: f32, f16 or bf16. With NULL for `options` it computes `a*b`.
/// `shape_mismatch` names the dimensions that don't fit.
ADEAD_API
adead_status adead_tensor_matmul(const adead_context *context,
                                 const adead_tensor *a,
                                 const adead_tensor *b,
                                 const adead_matmul_options *options,
                                 adead_tensor **out);

/// Computes the inner product of two vectors `[K]`. The result is a scalar.
ADEAD_API
adead_status adead_tensor_dot(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// Computes scaled dot-product attention: q `[..., Hq, Sq, D]`, k `[..., Hkv, Sk, D]`, v `[..., Hkv, Sk, Dv]`, result `[...,
/// Hq, Sq, Dv]`. Rank 2 is one head. Hq is a multiple of Hkv, and query head h reads key and value head h / (Hq / Hkv).
/// All have the same dtype: f32, f16 or bf16. `options` may be NULL.
ADEAD_API
adead_status adead_tensor_attention(const adead_context *context,
                                    const adead_tensor *q,
                                    const adead_tensor *k,
                                    const adead_tensor *v,
                                    const adead_attention_options *options,
                                    adead_tensor **out);

/// Computes `activation(x*w1 + b1)*w2 + b2`: x `[..., D]`, w1 `[D, H]`, b1 `[H]` or NULL, w2 `[H, E]`, b2 `[E]` or NULL,
/// result `[..., E]`. All have the same dtype: f32, f16 or bf16. Values between the products stay f32.
ADEAD_API
adead_status adead_tensor_ffn(const adead_context *context,
                              const adead_tensor *x,
                              const adead_tensor *w1,
                              const adead_tensor *b1,
                              const adead_tensor *w2,
                              const adead_tensor *b2,
                              adead_activation activation,
                              adead_tensor **out);

/// Computes the product of x and the transpose of w: x f32 `[..., K]`, w a matrix `[N, K]` in quantised blocks, result f32 `[..., N]`. w is a
/// u8 tensor `[N, bytes of a row]`, as in a GGUF file. x is quantised to blocks of 8-bit integers, and sums within a block are exact.
/// `shape_mismatch` if K differs or w's rows are not whole blocks.
ADEAD_API
adead_status adead_tensor_quantized_matmul(const adead_context *context,
                                           const adead_tensor *x,
                                           const adead_tensor *w,
                                           adead_block_format format,
                                           adead_tensor **out);

/// Converts a u8 tensor `[..., bytes of a row]` of quantised blocks to f32, `[..., K]`.
ADEAD_API
adead_status adead_tensor_dequantize(const adead_context *context,
                                     const adead_tensor *w,
                                     adead_block_format format,
                                     adead_tensor **out);

/// Packs a matrix for many products. b is `[K, N]`, or `[N, K]` if `trans_b` is not 0; f32, f16 or bf16. Products with
/// the packed matrix have the default precision that the context has now (`adead_context_set_precision`). A product
/// with another precision is `invalid_argument`. For f32 the packed matrix takes four bytes per element, with columns
/// rounded up to a multiple of 8, 16 or 32. The caller may destroy b. The packed matrix suits only the context's
/// instruction set. If the context runs everything on one GPU, for products in exact integers the GPU keeps the matrix's
/// digits, and only this context and those made from it can use the packed matrix. `shape_mismatch` unless b has two dimensions, `dtype_mismatch` for integers.
ADEAD_API
adead_status adead_packed_create(const adead_context *context,
                                 const adead_tensor *b,
                                 int32_t trans_b,
                                 adead_packed **out);

/// Destroys a packed matrix; NULL is allowed.
ADEAD_API void adead_packed_destroy(adead_packed *packed);

/// Returns the dimensions K and N, two values, in this order for both layouts of b. They live as long as the packed
/// matrix.
ADEAD_API adead_status adead_packed_dims(const adead_packed *packed, const size_t **out);

/// Returns the dtype of the matrix that was packed.
ADEAD_API adead_status adead_packed_dtype(const adead_packed *packed, adead_dtype *out);

/// Returns the bytes of memory that the packed elements take.
ADEAD_API adead_status adead_packed_bytes(const adead_packed *packed, size_t *out);

/// Multiplies a by a packed b. The result equals that of `adead_tensor_matmul`, without the time for packing. a is
/// `[..., M, K]` of b's dtype, the result `[..., M, N]`. `options` may be NULL, and its `trans_b` must be 0.
/// `invalid_argument` if b was packed for another instruction set than the context's, or on another context's GPU.
ADEAD_API
adead_status adead_packed_matmul(const adead_context *context,
                                 const adead_tensor *a,
                                 const adead_packed *b,
                                 const adead_matmul_options *options,
                                 adead_tensor **out);

/// Opens a safetensors file. `io` if it can't be read, `invalid_argument` if it is not a safetensors file.
ADEAD_API adead_status adead_safetensors_open(const char *path, adead_safetensors **out);

/// Closes a file; NULL is allowed. Tensors and modules made from it stay valid.
ADEAD_API void adead_safetensors_close(adead_safetensors *file);

/// Returns the number of tensors.
ADEAD_API adead_status adead_safetensors_count(const adead_safetensors *file, size_t *out);

/// Returns the name of tensor `index`, in sorted order. The text lives as long as the file. `invalid_argument` if the
/// file has no tensor `index`.
ADEAD_API adead_status adead_safetensors_name(const adead_safetensors *file, size_t index, const char **out);

/// Returns whether the file has a tensor with a name: 0 or 1.
ADEAD_API adead_status adead_safetensors_contains(const adead_safetensors *file, const char *name, int32_t *out);

/// Returns a tensor's dimensions and rank. The dimensions live as long as the file. `invalid_argument` if there is no
/// tensor of that name.
ADEAD_API
adead_status adead_safetensors_dims(const adead_safetensors *file,
                                    const char *name,
                                    const size_t **dims,
                                    size_t *rank);

/// Reads a tensor as f32; f16 and bf16 are widened, f64 is rounded. `invalid_argument` if there is no tensor of that name,
/// `shape_mismatch` if its dimensions differ from `dims`, `dtype_mismatch` for other dtypes, `io` if it can't be read.
ADEAD_API
adead_status adead_safetensors_tensor(const adead_safetensors *file,
                                      const char *name,
                                      const size_t *dims,
                                      size_t rank,
                                      adead_tensor **out);

/// Creates a linear layer, which computes `x*W^T + bias` for x `[..., inputs]`. The weight is `[outputs, inputs]`, the bias
/// `[outputs]` or NULL. If the context has no GPU, the weight is packed once. `shape_mismatch` if the two don't fit.
ADEAD_API
adead_status adead_module_linear(const adead_context *context,
                                 const adead_tensor *weight,
                                 const adead_tensor *bias,
                                 adead_module **out);

/// Creates an embedding layer, which looks up rows of a table `[count, width]` by id. Ids are i32, i64 or u32, of any shape.
/// `shape_mismatch` unless the table is a matrix.
ADEAD_API
adead_status adead_module_embedding(const adead_context *context,
                                    const adead_tensor *table,
                                    adead_module **out);

/// Creates a layer norm, which normalises mean and variance over the last axis, multiplies by a weight and adds a bias, both
/// `[width]`. `eps` is added to the variance; the usual value is 1e-5.
ADEAD_API
adead_status adead_module_layer_norm(const adead_context *context,
                                     const adead_tensor *weight,
                                     const adead_tensor *bias,
                                     float eps,
                                     adead_module **out);

/// Creates a ReLU layer, which computes max(x, 0).
ADEAD_API adead_status adead_module_relu(const adead_context *context, adead_module **out);

/// Creates a GELU layer, the Gaussian error linear unit. `form`, with erf or with tanh, is one of `ADEAD_GELU_...`.
ADEAD_API adead_status adead_module_gelu(const adead_context *context, adead_gelu_form form, adead_module **out);

/// Creates a module that applies `count` modules in order: each takes the result of the previous one. With none it returns its
/// input.
ADEAD_API
adead_status adead_module_sequential(const adead_module *const *modules,
                                     size_t count,
                                     adead_module **out);

/// Creates a feed-forward layer from two linear layers. It computes `activation(x*W1^T + b1)*W2^T + b2`. `shape_mismatch` unless
/// `outer` takes as many values as `inner` returns.
ADEAD_API
adead_status adead_module_feed_forward(const adead_module *inner,
                                       const adead_module *outer,
                                       adead_activation activation,
                                       adead_module **out);

/// Creates a self-attention layer from two linear layers. `qkv` returns queries, keys and values, concatenated; `output` maps the
/// attended values. The layer takes sequences `[count, length, width]`, or one sequence `[length, width]`. `shape_mismatch` if
/// the two don't fit each other, `invalid_argument` unless `heads` divides the width.
ADEAD_API
adead_status adead_module_attention(const adead_module *qkv,
                                    const adead_module *output,
                                    size_t heads,
                                    adead_module **out);

/// Creates a transformer layer with normalisation after each part, as in BERT: `h = norm(x + attention(x))`, then
/// `norm(h + feed_forward(h))`. `invalid_argument` if a part is of another kind.
ADEAD_API
adead_status adead_module_transformer_layer(const adead_module *attention,
                                            const adead_module *attention_norm,
                                            const adead_module *feed_forward,
                                            const adead_module *output_norm,
                                            adead_module **out);

/// Creates a transformer encoder, which applies `count` transformer layers in order. A sequence's rows have the same bits alone,
/// among other sequences, and padded.
ADEAD_API
adead_status adead_module_transformer_encoder(const adead_module *const *layers,
                                              size_t count,
                                              adead_module **out);

/// Creates a module with weights from a file. Linear and layer norm read `PREFIX.weight` and `PREFIX.bias`, an embedding
/// `PREFIX.weight`. A transformer layer reads BERT's names, `PREFIX.attention.self.query.weight` and so on. The errors are those
/// of `adead_safetensors_tensor` and of the function that creates this kind from tensors.
ADEAD_API
adead_status adead_module_load(const adead_context *context,
                               const adead_safetensors *file,
                               const char *prefix,
                               const adead_module_options *options,
                               adead_module **out);

/// Destroys a module; NULL is allowed. Modules that were made from it stay valid.
ADEAD_API void adead_module_destroy(adead_module *module);

/// Describes a module. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_module_describe(const adead_module *module, adead_module_info *out);

/// Returns a module's result for x, computed on the devices of its context. `options` may be NULL. The errors are those of its
/// operations, and `invalid_argument` for an option that this kind of module does not take.
ADEAD_API
adead_status adead_module_forward(const adead_module *module,
                                  const adead_tensor *x,
                                  const adead_forward_options *options,
                                  adead_tensor **out);

/// The sum over some or all axes; +0 for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_sum(const adead_context *context,
                              const adead_tensor *x,
                              int32_t axis,
                              int32_t keepdim,
                              adead_tensor **out);

/// The mean over some or all axes; NaN for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_mean(const adead_context *context,
                               const adead_tensor *x,
                               int32_t axis,
                               int32_t keepdim,
                               adead_tensor **out);

/// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_max(const adead_context *context,
                              const adead_tensor *x,
                              int32_t axis,
                              int32_t keepdim,
                              adead_tensor **out);

/// The index of the first maximum. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// `dtype` is the type of the index: i64, i32 or u32.
ADEAD_API
adead_status adead_tensor_argmax(const adead_context *context,
                                 const adead_tensor *x,
                                 int32_t axis,
                                 int32_t keepdim,
                                 adead_dtype dtype,
                                 adead_tensor **out);

/// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_min(const adead_context *context,
                              const adead_tensor *x,
                              int32_t axis,
                              int32_t keepdim,
                              adead_tensor **out);

/// The index of the first minimum. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// `dtype` is the type of the index: i64, i32 or u32.
ADEAD_API
adead_status adead_tensor_argmin(const adead_context *context,
                                 const adead_tensor *x,
                                 int32_t axis,
                                 int32_t keepdim,
                                 adead_dtype dtype,
                                 adead_tensor **out);

/// The product over some or all axes; 1 for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_prod(const adead_context *context,
                               const adead_tensor *x,
                               int32_t axis,
                               int32_t keepdim,
                               adead_tensor **out);

/// Computes the softmax along an axis: `e^x` over its sum. Negative axes count from the end. x has rank 1 or more.
ADEAD_API
adead_status adead_tensor_softmax(const adead_context *context,
                                  const adead_tensor *x,
                                  int32_t axis,
                                  adead_tensor **out);

/// Computes `(x - mean) / sqrt(variance + eps)*gamma + beta` over the last axis: x `[..., N]`, gamma and beta `[N]` or NULL. The
/// usual eps is 1e-5.
ADEAD_API
adead_status adead_tensor_layernorm(const adead_context *context,
                                    const adead_tensor *x,
                                    const adead_tensor *gamma,
                                    const adead_tensor *beta,
                                    float eps,
                                    adead_tensor **out);

/// Computes `adead_tensor_layernorm` of x + residual, two tensors of the same shape. The bits equal those of `adead_tensor_add`
/// followed by `adead_tensor_layernorm`.
ADEAD_API
adead_status adead_tensor_add_layernorm(const adead_context *context,
                                        const adead_tensor *x,
                                        const adead_tensor *residual,
                                        const adead_tensor *gamma,
                                        const adead_tensor *beta,
                                        float eps,
                                        adead_tensor **out);

/// Computes `x / sqrt(mean(x^2) + eps)*gamma` over the last axis: x `[..., N]`, gamma `[N]` or NULL. The usual eps is 1e-5.
ADEAD_API
adead_status adead_tensor_rmsnorm(const adead_context *context,
                                  const adead_tensor *x,
                                  const adead_tensor *gamma,
                                  float eps,
                                  adead_tensor **out);

/// Computes `adead_tensor_rmsnorm` of x + residual, two tensors of the same shape. The bits equal those of `adead_tensor_add`
/// followed by `adead_tensor_rmsnorm`.
ADEAD_API
adead_status adead_tensor_add_rmsnorm(const adead_context *context,
                                      const adead_tensor *x,
                                      const adead_tensor *residual,
                                      const adead_tensor *gamma,
                                      float eps,
                                      adead_tensor **out);

/// Rotates pairs of elements of x's last axis by angles: (a, b) becomes `(a*cos - b*sin, b*cos + a*sin)`. A pair is element i of
/// each half or, if `interleaved` is not 0, elements 2i and 2i + 1. cos and sin have the same shape. It broadcasts to x's shape
/// with the last dimension halved, such as `[S, D/2]` for x `[B, H, S, D]`.
ADEAD_API
adead_status adead_tensor_rope(const adead_context *context,
                               const adead_tensor *x,
                               const adead_tensor *cos,
                               const adead_tensor *sin,
                               int32_t interleaved,
                               adead_tensor **out);

/// Computes cumulative sums along an axis: element i of the result is the sum of elements 0 to i. Negative axes count from the
/// end. x has rank 1 or more.
ADEAD_API
adead_status adead_tensor_cumsum(const adead_context *context,
                                 const adead_tensor *x,
                                 int32_t axis,
                                 adead_tensor **out);

/// Returns the k greatest elements along an axis, greatest first; negative axes count from the end. The order is that of
/// `adead_tensor_max`: NaN comes first, and of equal elements the one with the lower index. `invalid_argument` if the axis has
/// fewer than k elements.
ADEAD_API
adead_status adead_tensor_topk(const adead_context *context,
                               const adead_tensor *x,
                               uint32_t k,
                               int32_t axis,
                               adead_tensor **out);

/// Returns the indices of the elements that `adead_tensor_topk` returns. `dtype` is i64, i32 or u32.
ADEAD_API
adead_status adead_tensor_argtopk(const adead_context *context,
                                  const adead_tensor *x,
                                  uint32_t k,
                                  int32_t axis,
                                  adead_dtype dtype,
                                  adead_tensor **out);

/// Looks up rows of a table by id: table `[V, ...]` of any dtype, ids of any shape, i32, i64 or u32. The result is
/// `[ids..., the table's row...]`. `invalid_argument` names the position of an id below 0 or not below V.
ADEAD_API
adead_status adead_tensor_embedding(const adead_context *context,
                                    const adead_tensor *table,
                                    const adead_tensor *ids,
                                    adead_tensor **out);

/// Permutes the axes: axis i of the result is axis `perm[i]` of x, which has `rank` axes. `perm` NULL (with rank 0)
/// reverses them.
ADEAD_API
adead_status adead_tensor_transpose(const adead_context *context,
                                    const adead_tensor *x,
                                    const int32_t *perm,
                                    size_t rank,
                                    adead_tensor **out);

/// Joins `count` tensors, at least one, along an axis; negative axes count from the end. All have the same dtype and
/// rank, and their dimensions differ only along that axis.
ADEAD_API
adead_status adead_tensor_concat(const adead_context *context,
                                 const adead_tensor *const *tensors,
                                 size_t count,
                                 int32_t axis,
                                 adead_tensor **out);

/// Slices the first `rank` axes of x: axis i from `start[i]` to before `stop[i]`, by steps of `step[i]`. Negative
/// starts and stops count from the end; those outside an axis are clamped to its ends. `step` NULL: every step is 1;
/// `start` NULL: 0; `stop` NULL: the ends.
ADEAD_API
adead_status adead_tensor_slice(const adead_context *context,
                                const adead_tensor *x,
                                const int32_t *start,
                                const int32_t *stop,
                                const int32_t *step,
                                size_t rank,
                                adead_tensor **out);

/// Pads the first `rank` axes of x with `before[i]` elements before and `after[i]` after axis i. The padding is the
/// element of `value`, a tensor of x's dtype with one element. Elements of x are `step[i]` apart, with copies of it between them.
/// `before` or `after` NULL: none; `step` NULL: 1.
ADEAD_API
adead_status adead_tensor_pad(const adead_context *context,
                              const adead_tensor *x,
                              const adead_tensor *value,
                              const int32_t *before,
                              const int32_t *after,
                              const int32_t *step,
                              size_t rank,
                              adead_tensor **out);

/// Gathers elements of x along an axis by index; negative axes count from the end. ids are i32, i64 or u32 and have x's
/// shape except along the axis; the result has their shape. `invalid_argument` names the position of an id below 0 or
/// not below the axis's size.
ADEAD_API
adead_status adead_tensor_gather(const adead_context *context,
                                 const adead_tensor *x,
                                 const adead_tensor *ids,
                                 int32_t axis,
                                 adead_tensor **out);

/// Selects elements of a where the condition is true, and of b elsewhere, with NumPy's broadcasting. The condition is
/// bool. a and b have the same dtype, of any kind.
ADEAD_API
adead_status adead_tensor_where(const adead_context *context,
                                const adead_tensor *condition,
                                const adead_tensor *a,
                                const adead_tensor *b,
                                adead_tensor **out);

/// Converts x to another dtype. Floats widen exactly and narrow to nearest even. Floats become integers by rounding
/// towards zero with saturation, and NaN becomes 0. Integers keep their low bits. As a bool, every value except 0 is
/// true, including NaN.
ADEAD_API
adead_status adead_tensor_cast(const adead_context *context,
                               const adead_tensor *x,
                               adead_dtype dtype,
                               adead_tensor **out);

/// Decodes an .adead file, an AGPU binary, an AHYB file, .hex text or program text. The bytes determine the format.
/// `invalid_program` reports the offset at which they are malformed. `adead_program_validate` checks the meaning of
/// instructions. docs/program-format.md specifies the formats.
ADEAD_API adead_status adead_program_decode(const void *data, size_t bytes, adead_program **out);

/// Decodes a file. `io` if it can't be read.
ADEAD_API adead_status adead_program_load(const char *path, adead_program **out);

/// Assembles program text, ".adead 1" or ".agpu 1". `invalid_program` reports the malformed line.
ADEAD_API adead_status adead_program_assemble(const char *source, adead_program **out);

/// Destroys a program; NULL is allowed.
ADEAD_API void adead_program_destroy(adead_program *program);

/// Returns the format that the program was decoded from.
ADEAD_API adead_status adead_program_format(const adead_program *program, adead_format *out);

/// Returns the number of instructions.
ADEAD_API adead_status adead_program_length(const adead_program *program, size_t *out);

/// Encodes the program as a file of `format`: .adead, AGPU, .hex or text. The `out_bytes` bytes at `out_data` are
/// followed by a NUL, and live as long as the program. `unsupported` if the format can't express the program.
ADEAD_API
adead_status adead_program_encode(const adead_program *program,
                                  adead_format format,
                                  const void **out_data,
                                  size_t *out_bytes);

/// Returns the program as text, which `adead_program_assemble` turns back into this program. The text lives as long as
/// the program.
ADEAD_API adead_status adead_program_disassemble(const adead_program *program, const char **out);

/// Returns the number of notes on the program, such as skipped parts and opcodes that do nothing.
ADEAD_API adead_status adead_program_note_count(const adead_program *program, size_t *out);

/// Returns note `index`. The text lives as long as the program.
ADEAD_API adead_status adead_program_note_at(const adead_program *program, size_t index, const char **out);

/// Returns the number of named inputs and outputs.
ADEAD_API adead_status adead_program_slot_count(const adead_program *program, size_t *out);

/// Describes input or output `index`. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_program_slot_at(const adead_program *program, size_t index, adead_slot *out);

/// Checks the program as far as is possible without data. Returns the most bytes that registers, temporaries and
/// outputs take at the same time. `memory_limit` 0 is the default limit. `invalid_program` reports the offset or line;
/// `out_of_memory` if the program needs more than the limit.
ADEAD_API adead_status adead_program_validate(const adead_program *program, size_t memory_limit, size_t *out);

/// Validates a program, binds `count` tensors to its slots by name, and runs it. `options` may be NULL. On an error
/// there is no outcome, and no data of the caller has changed.
ADEAD_API
adead_status adead_program_run(const adead_context *context,
                               const adead_program *program,
                               const char *const *names,
                               const adead_tensor *const *tensors,
                               size_t count,
                               const adead_run_options *options,
                               adead_outcome **out);

/// Destroys an outcome; NULL is allowed. Tensors taken from it stay valid.
ADEAD_API void adead_outcome_destroy(adead_outcome *outcome);

/// Returns the output with a name, as a new handle that the caller must destroy. `invalid_argument` if there is none.
ADEAD_API adead_status adead_outcome_output(const adead_outcome *outcome, const char *name, adead_tensor **out);

/// Returns the number of outputs.
ADEAD_API adead_status adead_outcome_output_count(const adead_outcome *outcome, size_t *out);

/// Returns the name of output `index`, in the order of the program's slots. The text lives as long as the outcome.
ADEAD_API adead_status adead_outcome_output_name(const adead_outcome *outcome, size_t index, const char **out);

/// Reports the statistics of the run. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_outcome_report(const adead_outcome *outcome, adead_outcome_stats *out);

/// Returns the number of traced instructions. Every instruction of the program is traced.
ADEAD_API adead_status adead_outcome_trace_count(const adead_outcome *outcome, size_t *out);

/// Reports the statistics of instruction `index`. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_outcome_trace_at(const adead_outcome *outcome, size_t index, adead_trace *out);

/// Creates an allocator of `blocks` blocks (0: 65536) of `block_size` bytes (0: 4096), a power of two from 64 bytes to
/// 1 GiB. The system provides memory when it is first written. `out_of_memory` if the system refuses.
ADEAD_API adead_status adead_allocator_create(size_t block_size, size_t blocks, adead_allocator **out);

/// Destroys an allocator and frees its memory; NULL is allowed.
ADEAD_API void adead_allocator_destroy(adead_allocator *allocator);

/// Allocates at least `bytes` bytes and returns their offset, a multiple of the block size. 0 bytes take one block.
/// `out_of_memory` if no free run of blocks is long enough.
ADEAD_API adead_status adead_allocator_alloc(adead_allocator *allocator, size_t bytes, size_t *out);

/// Frees the allocation at `offset`. `invalid_argument`, and nothing changes, if none starts there.
ADEAD_API adead_status adead_allocator_free(adead_allocator *allocator, size_t offset);

/// Frees everything. Later allocations get the offsets that a new allocator would give.
ADEAD_API adead_status adead_allocator_reset(adead_allocator *allocator);

/// Returns the address of the allocation at `offset`. It is valid until the allocation is freed or the allocator is
/// reset or destroyed. Fresh memory is zero; reused memory keeps its bytes. `invalid_argument` if no allocation starts
/// there.
ADEAD_API adead_status adead_allocator_pointer(const adead_allocator *allocator, size_t offset, void **out);

/// Returns the bytes of the allocation at `offset`, a multiple of the block size. `invalid_argument` if none starts
/// there.
ADEAD_API adead_status adead_allocator_size(const adead_allocator *allocator, size_t offset, size_t *out);

/// Reports the state of the allocator. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_allocator_report(const adead_allocator *allocator, adead_allocator_stats *out);

/// Creates an arena of `bytes` bytes that grows to at most `limit` bytes. With `bytes` 0 it allocates 64 KiB on first
/// use; with `limit` 0 it has no limit. If both are equal it never grows. `invalid_argument` if `bytes` is above
/// `limit`, or is 0 while `limit` is not.
ADEAD_API adead_status adead_arena_create(size_t bytes, size_t limit, adead_arena **out);

/// Destroys an arena and frees its memory; NULL is allowed.
ADEAD_API void adead_arena_destroy(adead_arena *arena);

/// Allocates `bytes` bytes at a multiple of `align`, a power of two up to 4096. They are valid until the arena is reset
/// or destroyed. Fresh memory is zero; reused memory keeps its bytes. `out_of_memory` at the limit, or when the system
/// has no more.
ADEAD_API adead_status adead_arena_alloc(adead_arena *arena, size_t bytes, size_t align, void **out);

/// Releases all allocations. The arena keeps the memory.
ADEAD_API adead_status adead_arena_reset(adead_arena *arena);

/// Returns the bytes in use, including padding between allocations.
ADEAD_API adead_status adead_arena_used(const adead_arena *arena, size_t *out);

/// Returns the bytes that the arena has taken from the system.
ADEAD_API adead_status adead_arena_capacity(const adead_arena *arena, size_t *out);

/// Creates a layout of tiles of `tile_size` by `tile_size` elements of `element` bytes. The tiles follow each other in
/// row-major order, and each is row-major inside. Rows and columns are padded to multiples of `tile_size`.
ADEAD_API
adead_status adead_layout_optimize_matrix(size_t element,
                                          size_t rows,
                                          size_t cols,
                                          size_t tile_size,
                                          adead_layout **out);

/// Creates a layout whose rows begin at multiples of `alignment` bytes, a multiple of `element`.
ADEAD_API
adead_status adead_layout_align(size_t element,
                                size_t rows,
                                size_t cols,
                                size_t alignment,
                                adead_layout **out);

/// Creates a layout that puts elements `stride` apart next to each other. An array of structures with `stride` fields
/// becomes an array of each field. `invalid_argument` unless `elements` is a multiple of `stride`.
ADEAD_API adead_status adead_layout_coalesce(size_t element, size_t elements, size_t stride, adead_layout **out);

/// Creates a layout in Morton (Z) order. Bits of row and column alternate in an element's index, the column's first.
/// The higher bits of the longer side are above them. Rows and columns are padded to powers of two.
ADEAD_API adead_status adead_layout_morton(size_t element, size_t rows, size_t cols, adead_layout **out);

/// Destroys a layout; NULL is allowed.
ADEAD_API void adead_layout_destroy(adead_layout *layout);

/// Writes the rows and columns of the arranged matrix, with padding. For coalesced elements these are the fields and
/// the structures.
ADEAD_API adead_status adead_layout_dims(const adead_layout *layout, size_t *out_rows, size_t *out_cols);

/// Writes the bytes of the plain matrix, and of the arranged one with padding.
ADEAD_API adead_status adead_layout_bytes(const adead_layout *layout, size_t *out_plain, size_t *out_arranged);

/// Arranges a plain matrix. `bytes` and `out_bytes` must be the sizes that `adead_layout_bytes` gives, or else the call
/// fails with `shape_mismatch`. `data` and `out` must not overlap.
ADEAD_API
adead_status adead_layout_arrange(const adead_layout *layout,
                                  const void *data,
                                  size_t bytes,
                                  void *out,
                                  size_t out_bytes);

/// Restores the plain matrix from an arranged one: the inverse of `adead_layout_arrange`. Ignores the padding.
ADEAD_API
adead_status adead_layout_restore(const adead_layout *layout,
                                  const void *data,
                                  size_t bytes,
                                  void *out,
                                  size_t out_bytes);

/// Writes whether the machine has a GPU: 0 or 1. Opens no GPU.
ADEAD_API adead_status adead_flat_gpu_available(int32_t *out);

/// Writes how many GPUs the machine has. They are numbered from 0, the preferred one first.
ADEAD_API adead_status adead_flat_device_count(int32_t *out);

/// Writes the backend of a device: "cpu" if `use_gpu` is 0, else "cuda" or "vulkan". The text is never freed.
ADEAD_API adead_status adead_flat_backend_name(int32_t use_gpu, int32_t device, const char **out);

/// Creates a matrix of zeros in the memory of GPU `device`, or of the CPU if `use_gpu` is 0 (then `device` must be 0).
/// `out_of_memory` reports the bytes requested and free. `backend_unavailable` if there is no such GPU.
ADEAD_API
adead_status adead_flat_alloc_zeros(int64_t rows,
                                    int64_t cols,
                                    int32_t use_gpu,
                                    int32_t device,
                                    adead_flat_handle *out);

/// Creates a matrix of ones, as `adead_flat_alloc_zeros` does.
ADEAD_API
adead_status adead_flat_alloc_ones(int64_t rows,
                                   int64_t cols,
                                   int32_t use_gpu,
                                   int32_t device,
                                   adead_flat_handle *out);

/// Creates a matrix from a copy of rows * cols values, as `adead_flat_alloc_zeros` does.
ADEAD_API
adead_status adead_flat_alloc_upload(const float *values,
                                     int64_t rows,
                                     int64_t cols,
                                     int32_t use_gpu,
                                     int32_t device,
                                     adead_flat_handle *out);

/// Frees a matrix. Work that is already enqueued can still use it.
ADEAD_API adead_status adead_flat_free(adead_flat_handle matrix);

/// Writes the rows and columns of a matrix. Either pointer may be NULL.
ADEAD_API adead_status adead_flat_shape(adead_flat_handle matrix, int64_t *rows, int64_t *cols);

/// Writes which device holds a matrix. Either pointer may be NULL.
ADEAD_API adead_status adead_flat_device(adead_flat_handle matrix, int32_t *use_gpu, int32_t *device);

/// Copies `count` values to a matrix, after all earlier work that uses it. `shape_mismatch` unless `count` is rows *
/// cols.
ADEAD_API adead_status adead_flat_upload(adead_flat_handle matrix, const float *values, int64_t count);

/// Waits for the work that computes a matrix, and copies its `count` values to `values`. `shape_mismatch` unless
/// `count` is rows * cols.
ADEAD_API adead_status adead_flat_download(adead_flat_handle matrix, float *values, int64_t count);

/// Copies a matrix to another device, or to a new matrix on the same one.
ADEAD_API adead_status adead_flat_to(adead_flat_handle matrix, int32_t use_gpu, int32_t device, adead_flat_handle *out);

/// Multiplies a and b: [m, k] and [k, n] give [m, n]. The work runs on the device that holds both, on `stream`, or on
/// the device's own stream if `stream` is 0. The call returns when the work is enqueued.
ADEAD_API
adead_status adead_flat_matmul(adead_flat_handle a,
                               adead_flat_handle b,
                               adead_flat_handle stream,
                               adead_flat_handle *out);

/// Runs any operation of docs/operations.md by its name, into an existing matrix. The `count` operands are in the
/// operation's order, with 0 for an absent optional operand. Attributes are "name=value;name=value" or NULL. All
/// matrices must be on one device. `result` must have the shape that follows from the operands, and must not be one of
/// them. `stream` is as for `adead_flat_matmul`.
ADEAD_API
adead_status adead_flat_run(const char *op,
                            const adead_flat_handle *operands,
                            int32_t count,
                            const char *attrs,
                            adead_flat_handle stream,
                            adead_flat_handle result);

/// Creates a stream. Its work runs in order, concurrently with other streams' work. Before a stream uses a matrix, it
/// waits for the work of the stream that used the matrix last.
ADEAD_API adead_status adead_flat_stream_create(int32_t use_gpu, int32_t device, adead_flat_handle *out);

/// Waits for all work of a stream. Returns the first error that the device found in it.
ADEAD_API adead_status adead_flat_stream_sync(adead_flat_handle stream);

/// Writes whether a stream has finished all its work: 0 or 1.
ADEAD_API adead_status adead_flat_stream_query(adead_flat_handle stream, int32_t *out);

/// Waits for a stream and frees it.
ADEAD_API adead_status adead_flat_stream_destroy(adead_flat_handle stream);

/// Enqueues `batch` uploads of `counts[i]` values at `values[i]` to `matrices[i]`. The caller may reuse the values when
/// the call returns. All arguments are checked before anything is enqueued.
ADEAD_API
adead_status adead_flat_async_upload_batch(adead_flat_handle stream,
                                           const adead_flat_handle *matrices,
                                           const float *const *values,
                                           const int64_t *counts,
                                           int32_t batch);

/// Writes how many matrices and streams exist.
ADEAD_API adead_status adead_flat_count(int64_t *out);

/// Waits for all work, frees every matrix and stream, and closes every device. All earlier numbers become invalid.
ADEAD_API adead_status adead_flat_reset(void);

/// Returns memory for a batch of `bytes` bytes, which `next` must fill before it returns. Later batches reuse the
/// memory, which then still holds the earlier bytes. `out_of_memory` reports the bytes.
ADEAD_API adead_status adead_batch_memory(adead_batch *batch, size_t bytes, void **out);

/// Uses bytes that the caller owns as the batch, without a copy. They must stay valid until `next` is called again or
/// the run is destroyed; for a loader, until the loader is destroyed.
ADEAD_API adead_status adead_batch_borrow(adead_batch *batch, const void *data, size_t bytes);

/// Processes batches on a device, at most `depth` at once, each on its own stream. A batch is uploaded, and `work`
/// enqueues work on it and names a result. The result is downloaded and passed to `take`. Depth 1 is sequential, 2
/// double buffering, 3 triple buffering. `user` is passed to all three callbacks.
///
/// At every depth the results equal those of a loop that processes one batch after the other. A batch's work starts
/// when the work of the previous batch is done, so `work` may read and write buffers that all batches share. Uploads
/// and downloads overlap with the work. All callbacks run on the calling thread. `take` gets results in the order of
/// the batches. `next` is called only while fewer than `depth` batches are in flight.
///
/// An error that `next`, `work` or the device finds in a batch is returned after `take` got the earlier batches. An
/// error of `take` is returned at once. Then no other batch starts, the batches in flight finish, and everything is
/// freed. The error's text says which callback failed for which batch, and has the last error text that this library
/// gave the callback. `invalid_argument` unless the depth is from 1 to `ADEAD_OVERLAP_MAX_DEPTH`. Like all functions of
/// batches and loaders, it is `unsupported` in a library built with ADEAD_MINIMAL.
ADEAD_API
adead_status adead_overlap(const adead_context *context,
                           size_t depth,
                           adead_next next,
                           adead_work work,
                           adead_take take,
                           void *user);

/// Creates a run like that of `adead_overlap`, without `take`: `adead_batches_next` returns each result.
ADEAD_API
adead_status adead_batches_create(const adead_context *context,
                                  size_t depth,
                                  adead_next next,
                                  adead_work work,
                                  void *user,
                                  adead_batches **out);

/// Starts batches while fewer than the depth are in flight, and waits for the oldest. Returns its index and its result,
/// which is valid until the next call. `data` is NULL when no batch is left. An error is returned once, in its batch's
/// place; then no batch is left. Must not be called from one of the run's callbacks.
ADEAD_API adead_status adead_batches_next(adead_batches *batches, size_t *index, const void **data, size_t *bytes);

/// Destroys a run: starts no more batches, and waits for those in flight. NULL is allowed. Must not be called from one
/// of the run's callbacks.
ADEAD_API void adead_batches_destroy(adead_batches *batches);

/// Returns the index of the batch; the first one is 0.
ADEAD_API size_t adead_stage_index(const adead_stage *stage);

/// Returns the stream of the batch. Its upload comes before all work on this stream.
ADEAD_API adead_stream *adead_stage_stream(const adead_stage *stage);

/// Returns the batch on the device: a buffer of exactly its bytes.
ADEAD_API adead_buffer *adead_stage_input(const adead_stage *stage);

/// Returns a buffer of `bytes` bytes for results and intermediate values. The n-th call for a batch reuses the buffer
/// of an earlier batch's n-th call, with its old bytes, if the size is the same. Otherwise it returns a new buffer of
/// zeros. `out_of_memory` reports the bytes requested and free.
ADEAD_API adead_status adead_stage_buffer(adead_stage *stage, size_t bytes, adead_buffer **out);

/// Sets the result of the batch: bytes of a buffer from an offset on, to be downloaded when the work is done. The last
/// call counts. Without a call, the result has 0 bytes, and its arrival means that the batch is done.
ADEAD_API adead_status adead_stage_result(adead_stage *stage, const adead_buffer *buffer, size_t offset, size_t bytes);

/// Starts a thread that calls `next` for batches. It is at most `ahead` batches ahead of the consumer, including the
/// batch in progress. `invalid_argument` unless `ahead` is at least 1. `io` if the system can't start a thread.
ADEAD_API adead_status adead_loader_create(adead_next next, void *user, size_t ahead, adead_loader **out);

/// Waits for the next batch. Its bytes stay valid until the next call for this loader. `data` is NULL if no batch is
/// left. An error of `next` is returned once, after the batches before it; then no batch is left.
ADEAD_API adead_status adead_loader_next(adead_loader *loader, const void **data, size_t *bytes);

/// Stops the thread, waits for the batch in progress, and destroys the loader. NULL is allowed. Must not be called from
/// the loader's own `next`.
ADEAD_API void adead_loader_destroy(adead_loader *loader);

/// Starts recording the work of a context and its streams, in every thread. It keeps at most `records` records; 0 means 65,536.
/// Records beyond the limit are only counted. `invalid_argument` while another profile of the context is active. The context may
/// be closed before the profile. Like all functions of profiles, it is `unsupported` in a library built with ADEAD_MINIMAL.
ADEAD_API
adead_status adead_profile_begin(const adead_context *context,
                                 size_t records,
                                 adead_profile **out);

/// Ends the profile, so that its records can be read. Waits for everything that the context has enqueued; synchronise
/// your own streams before. `invalid_argument` if the profile has already ended.
ADEAD_API adead_status adead_profile_finish(adead_profile *profile);

/// Destroys a profile; NULL is allowed. An active profile ends.
ADEAD_API void adead_profile_destroy(adead_profile *profile);

/// Reports the summary. `not_ready` while the profile is active. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_profile_report(const adead_profile *profile, adead_profile_summary *out);

/// Reports record `index`, in the order in which the calls returned. `not_ready` while the profile is active. The
/// caller sets `out->struct_size`.
ADEAD_API adead_status adead_profile_record_at(const adead_profile *profile, size_t index, adead_profile_record *out);

/// Reports total `index`; the one with the longest total time is first. `not_ready` while the profile is active. The
/// caller sets `out->struct_size`.
ADEAD_API adead_status adead_profile_total_at(const adead_profile *profile, size_t index, adead_profile_total *out);

/// Reports device `index` of those that worked. `not_ready` while the profile is active. The caller sets
/// `out->struct_size`.
ADEAD_API adead_status adead_profile_device_at(const adead_profile *profile, size_t index, adead_profile_device *out);

/// Returns a table with a line for each kind of work, device and reason, longest time first, and a summary of the
/// devices. The text lives as long as the profile. `not_ready` while the profile is active.
ADEAD_API adead_status adead_profile_table(const adead_profile *profile, const char **out);

/// Returns the whole report as JSON: an object with `ns`, `busy_ns`, `overlapped_ns`, `overlap`, `dropped` and the
/// lists `devices`, `totals` and `records`. The text lives as long as the profile. `not_ready` while the profile is
/// active.
ADEAD_API adead_status adead_profile_json(const adead_profile *profile, const char **out);

/// Returns a trace in Chrome's format, for Perfetto and chrome://tracing. The text lives as long as the profile.
/// `not_ready` while the profile is active.
ADEAD_API adead_status adead_profile_trace(const adead_profile *profile, const char **out);

/// Sets the callback that receives the runtime's messages of `level` and of higher severity, together with `user`. The
/// process has one callback; the last call wins. With NULL, `ADEAD_LOG` or adead.toml decides what is printed to
/// stderr, and `level` is ignored. `unsupported` in a library built with ADEAD_MINIMAL.
///
/// The callback runs in the thread that logs the message, which may be any thread. Its calls don't overlap. The old
/// callback is not called after `adead_log_set` has returned. A callback must return: no longjmp and no exception may
/// leave it. It must not call adead, which may hold its own locks; `adead_log_set` there returns `invalid_argument`.
ADEAD_API adead_status adead_log_set(adead_log_level level, adead_log_callback callback, void *user);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADEAD_H */
