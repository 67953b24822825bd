/*
 * adead: tensor operations with the same bits on every device. MIT license.
 *
 * Generated from bindings/c by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.
 *
 * Two layers. The simple API works on the caller's own float arrays: adead_init, adead_alloc, adead_matmul,
 * adead_softmax, adead_relu, adead_free, adead_shutdown. The object API has handles: a context (opened devices),
 * tensors, attributes, GPU buffers, kernels, streams and others, and one function for every operation. docs/c-api.md is the
 * guide, docs/operations.md lists the operations, docs/gpu.md is about GPUs.
 *
 * Rules, for every function:
 *
 * - A function is called adead_<noun>_<verb> and returns an adead_status: ADEAD_OK (0), or why it failed. Then
 *   adead_last_error() has the text, for the calling thread. Functions that can't fail return their value, and
 *   adead_<noun>_destroy returns nothing.
 * - Outputs come through the last pointers, called `out`, and are written only on success: a failed call changes
 *   nothing. Only one that was interrupted (adead_interrupt_watch) may have written parts of an array or a buffer.
 * - What a function only reads is const. Arrays and texts are borrowed for the call and never kept.
 * - A pointer must not be NULL unless its description says so or what it points to has no elements; a NULL is
 *   ADEAD_INVALID_ARGUMENT and the text names the parameter. Texts are UTF-8 and end with NUL.
 * - What _create, _open and every `adead_x **out` give is the caller's and goes back through its _destroy, once.
 *   _destroy(NULL) does nothing. A handle may outlive the others that it was made with.
 * - Handles may be used by several threads at once as long as they are only read (const), and buffers in any case; nothing
 *   is bound to the thread that made it. No call depends on the floating-point mode of the calling thread, nor changes it.
 * - Structs begin with struct_size, which the caller sets to sizeof the struct: options best by their ..._INIT, which
 *   also has the defaults. A struct of an older header is taken as it is; of a newer one, if what this version does
 *   not know is zero. A NULL for options is their defaults.
 * - Nothing aborts the process, and nothing is printed unless the environment variable ADEAD_LOG asks for it. A fault
 *   of adead itself is ADEAD_INTERNAL.
 */

#ifndef ADEAD_H
#define ADEAD_H

#include <stddef.h>
#include <stdint.h>

#ifndef ADEAD_API
/// What a build may put before every declaration.
#define ADEAD_API
#endif

// adead_status: what a call returns. The numbers never change.
enum {
  /// No error.
  ADEAD_OK = 0,
  /// An argument is out of range, missing or contradictory.
  ADEAD_INVALID_ARGUMENT = 1,
  /// Ranks or dimensions don't fit each other.
  ADEAD_SHAPE_MISMATCH = 2,
  /// An element type is not taken here, or two differ.
  ADEAD_DTYPE_MISMATCH = 3,
  /// Host or device memory ran out, or a limit set by the caller did.
  ADEAD_OUT_OF_MEMORY = 4,
  /// The device asked for is not on this machine, or its driver is missing.
  ADEAD_BACKEND_UNAVAILABLE = 5,
  /// The device stopped answering; it stays lost.
  ADEAD_DEVICE_LOST = 6,
  /// A user kernel is malformed or was refused by the driver.
  ADEAD_INVALID_KERNEL = 7,
  /// A program is malformed; the text gives the offset.
  ADEAD_INVALID_PROGRAM = 8,
  /// Well-formed, but not something this device or version does.
  ADEAD_UNSUPPORTED = 9,
  /// The result is not there yet.
  ADEAD_NOT_READY = 10,
  /// The operating system refused a file or a stream.
  ADEAD_IO = 11,
  /// A fault of adead itself (a caught panic). Please report it.
  ADEAD_INTERNAL = 12
};

// What the simple API computes on.
enum {
  /// The best at hand, or what the environment variable ADEAD_DEVICE names.
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
  /// True or false, a byte each: results are 0 or 1, and any other byte than 0 is read as true.
  ADEAD_DTYPE_BOOL = 6
};

// adead_op: the operations. The numbers never change; new ones come behind.
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
  /// The natural logarithm; NaN below 0.
  ADEAD_OP_LOG = 10,
  /// The square root; NaN below 0.
  ADEAD_OP_SQRT = 11,
  /// `1 / sqrt(x)`.
  ADEAD_OP_RSQRT = 12,
  /// `max(x, 0)`; NaN stays NaN.
  ADEAD_OP_RELU = 13,
  /// `1 / (1 + e^-x)`.
  ADEAD_OP_SIGMOID = 14,
  /// The hyperbolic tangent.
  ADEAD_OP_TANH = 15,
  /// The Gaussian error linear unit, by the error function or by tanh.
  ADEAD_OP_GELU = 16,
  /// `x*sigmoid(x)`.
  ADEAD_OP_SILU = 17,
  /// `e^x` over its sum, along an axis.
  ADEAD_OP_SOFTMAX = 18,
  /// The sum along axes or of all; of nothing +0.
  ADEAD_OP_SUM = 19,
  /// The mean along axes or of all; of nothing NaN.
  ADEAD_OP_MEAN = 20,
  /// The maximum along axes or of all; NaN wins. `invalid_argument` of nothing.
  ADEAD_OP_MAX = 21,
  /// The lowest index of the maximum, i64. `invalid_argument` of nothing.
  ADEAD_OP_ARGMAX = 22,
  /// Mean and variance normalised over the last axis, of x or of x + residual.
  ADEAD_OP_LAYERNORM = 23,
  /// Root mean square normalised over the last axis, of x or of x + residual.
  ADEAD_OP_RMSNORM = 24,
  /// Softmax-weighted values: scaled dot-product attention.
  ADEAD_OP_ATTENTION = 25,
  /// Two matrix products with an activation between them.
  ADEAD_OP_FFN = 26,
  /// Rows of a table by id.
  ADEAD_OP_EMBEDDING = 27,
  /// The axes permuted.
  ADEAD_OP_TRANSPOSE = 28,
  /// Tensors joined along an axis.
  ADEAD_OP_CONCAT = 29,
  /// Another element type.
  ADEAD_OP_CAST = 30,
  /// The largest integer that is not above x.
  ADEAD_OP_FLOOR = 31,
  /// The nearest integer; ties go to the even one.
  ADEAD_OP_ROUND = 32,
  /// The error function.
  ADEAD_OP_ERF = 33,
  /// `minimum(maximum(x, min), max)`; NaN wins, and -0 is below +0.
  ADEAD_OP_CLAMP = 34,
  /// The larger of a and b; NaN wins, and -0 is below +0.
  ADEAD_OP_MAXIMUM = 35,
  /// The smaller of a and b; NaN wins, and -0 is below +0.
  ADEAD_OP_MINIMUM = 36,
  /// The sine of an angle in radians; NaN of an infinity.
  ADEAD_OP_SIN = 37,
  /// The cosine of an angle in radians; NaN of an infinity.
  ADEAD_OP_COS = 38,
  /// `log(1 + x)`, accurate near 0 too; NaN below -1.
  ADEAD_OP_LOG1P = 39,
  /// `e^x - 1`, accurate near 0 too.
  ADEAD_OP_EXPM1 = 40,
  /// `a^b`; NaN of a negative a unless b is an integer.
  ADEAD_OP_POW = 41,
  /// The minimum along axes or of all; NaN wins. `invalid_argument` of nothing.
  ADEAD_OP_MIN = 53,
  /// The lowest index of the minimum, i64. `invalid_argument` of nothing.
  ADEAD_OP_ARGMIN = 54,
  /// The product along axes or of all; of nothing 1.
  ADEAD_OP_PROD = 55,
  /// Every axis from a start to a stop, by steps.
  ADEAD_OP_SLICE = 56,
  /// A value put before and behind every axis.
  ADEAD_OP_PAD = 57,
  /// Elements along an axis by index.
  ADEAD_OP_GATHER = 58,
  /// Pairs of elements of the last axis turned by angles.
  ADEAD_OP_ROPE = 59,
  /// The sums of an axis's elements up to each.
  ADEAD_OP_CUMSUM = 60,
  /// The k greatest elements along an axis, the greatest first; of equals the one with the lower index.
  ADEAD_OP_TOPK = 61,
  /// The indices of the k greatest elements along an axis, i64; of equals the lower one first.
  ADEAD_OP_ARGTOPK = 62,
  /// Whether a equals b; NaN equals nothing, and -0 equals +0.
  ADEAD_OP_EQUAL = 70,
  /// Whether a does not equal b; true of NaN.
  ADEAD_OP_NOT_EQUAL = 71,
  /// Whether a is below b; false of NaN.
  ADEAD_OP_LESS = 72,
  /// Whether a is below b or equals it; false of NaN.
  ADEAD_OP_LESS_EQUAL = 73,
  /// Whether a is above b; false of NaN.
  ADEAD_OP_GREATER = 74,
  /// Whether a is above b or equals it; false of NaN.
  ADEAD_OP_GREATER_EQUAL = 75,
  /// Elements of a where the condition is true, and of b elsewhere.
  ADEAD_OP_WHERE = 76
};

// adead_activation: what follows a matrix product.
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

// adead_precision: how a matrix product is computed.
enum {
  /// In chains of fused multiply-adds of f32.
  ADEAD_PRECISION_F32 = 0,
  /// In exact integers, of operands cut to 24 bits.
  ADEAD_PRECISION_FIXED24 = 1,
  /// In exact integers, of operands cut to 16 bits.
  ADEAD_PRECISION_FIXED16 = 2
};

// adead_gelu_form: which form of gelu.
enum {
  /// By the error function.
  ADEAD_GELU_ERF = 0,
  /// By tanh.
  ADEAD_GELU_TANH = 1
};

// adead_priority: whose work begins first.
enum {
  /// As most streams.
  ADEAD_PRIORITY_NORMAL = 0,
  /// Before the others: short work whose result is waited for, beside work that takes long.
  ADEAD_PRIORITY_HIGH = 1
};

// adead_contract_level: how a device keeps the arithmetic contract.
enum {
  /// Its own instructions have the contract's bits.
  ADEAD_CONTRACT_NATIVE = 0,
  /// Some primitive is put together from others, exactly but more slowly.
  ADEAD_CONTRACT_EMULATED = 1
};

// adead_device_kind: what kind of device.
enum {
  /// The processor: its memory is the host's.
  ADEAD_KIND_CPU = 0,
  /// A GPU with memory of its own behind a bus.
  ADEAD_KIND_DISCRETE = 1,
  /// A GPU in the processor, on the same memory chips.
  ADEAD_KIND_INTEGRATED = 2,
  /// A GPU, or a part of one, that a hypervisor lends.
  ADEAD_KIND_VIRTUAL = 3,
  /// A GPU that is a program on the processor.
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

// adead_family: operations that cost alike.
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

/// A wait without an end.
#define ADEAD_FOREVER ((uint64_t)-1)

/// In place of a value of a chain: an optional operand that is left out.
#define ADEAD_NO_VALUE ((adead_value)-1)

/// A threshold that is none: the cost model decides.
#define ADEAD_NO_THRESHOLD ((size_t)-1)

// adead_format: what a program is or was decoded from.
enum {
  /// adead's own container.
  ADEAD_FORMAT_ADEAD = 0,
  /// The binary of AGPU.
  ADEAD_FORMAT_AGPU = 1,
  /// AGPU's instructions as hexadecimal text.
  ADEAD_FORMAT_HEX = 2,
  /// The hybrid container, of which the AGPU program is taken.
  ADEAD_FORMAT_AHYB = 3,
  /// Assembler text.
  ADEAD_FORMAT_TEXT = 4
};

// adead_direction: which way a slot's contents go.
enum {
  /// The caller supplies it.
  ADEAD_DIRECTION_IN = 0,
  /// The program makes it.
  ADEAD_DIRECTION_OUT = 1,
  /// Both.
  ADEAD_DIRECTION_BOTH = 2
};

// adead_activity: what kind of work a profile recorded.
enum {
  /// An operation of the table.
  ADEAD_ACTIVITY_OPERATION = 0,
  /// A user's kernel.
  ADEAD_ACTIVITY_KERNEL = 1,
  /// A recording that was run.
  ADEAD_ACTIVITY_REPLAY = 2,
  /// Bytes from the host to a device.
  ADEAD_ACTIVITY_UPLOAD = 3,
  /// Bytes from a device to the host.
  ADEAD_ACTIVITY_DOWNLOAD = 4,
  /// Bytes from one buffer of a device to another.
  ADEAD_ACTIVITY_COPY = 5,
  /// Bytes of a buffer set to zero.
  ADEAD_ACTIVITY_CLEAR = 6
};

// adead_log_level: how serious a message is.
enum {
  /// Nothing.
  ADEAD_LOG_OFF = 0,
  /// What was lost, such as a device.
  ADEAD_LOG_ERROR = 1,
  /// What can't be used or is ignored, and why.
  ADEAD_LOG_WARN = 2,
  /// Devices that were found and opened.
  ADEAD_LOG_INFO = 3,
  /// What was read, compiled and set.
  ADEAD_LOG_DEBUG = 4,
  /// What single calls do.
  ADEAD_LOG_TRACE = 5
};

/// The defaults of adead_context_options.
#define ADEAD_CONTEXT_OPTIONS_INIT { sizeof(adead_context_options), NULL, 0 }

/// The defaults of adead_matmul_options.
#define ADEAD_MATMUL_OPTIONS_INIT { sizeof(adead_matmul_options), 0, 0, 1.0f, 0.0f, NULL, NULL, ADEAD_ACTIVATION_NONE, ADEAD_PRECISION_F32 }

/// The defaults of adead_attention_options.
#define ADEAD_ATTENTION_OPTIONS_INIT { sizeof(adead_attention_options), NULL, 0, 0.0f }

/// The defaults of adead_module_options.
#define ADEAD_MODULE_OPTIONS_INIT { sizeof(adead_module_options), ADEAD_MODULE_LINEAR, ADEAD_ACTIVATION_GELU_ERF, 0, 0, 0, 0, 0, 0, NULL, 1e-12f, 0 }

/// The defaults of adead_forward_options.
#define ADEAD_FORWARD_OPTIONS_INIT { sizeof(adead_forward_options), NULL, NULL, 0, ADEAD_ACTIVATION_NONE, 0 }

/// The defaults of adead_run_options.
#define ADEAD_RUN_OPTIONS_INIT { sizeof(adead_run_options), (size_t)1073741824, 0, 0 }



/// The version of this interface that the header describes.
#define ADEAD_ABI_VERSION 1

/// The most caches that a report has room for.
#define ADEAD_MAX_CACHES 8

/// The most dimensions that a tensor may have.
#define ADEAD_MAX_RANK 8

/// The most devices that an explanation has room for.
#define ADEAD_MAX_ESTIMATES 16

/// The axis of an operation that works on the row-major flattening of everything.
#define ADEAD_AXIS_ALL INT32_MIN

/// The most batches under way at once.
#define ADEAD_OVERLAP_MAX_DEPTH 64

/// Blocks in one region of host memory: the same calls give the same offsets, on every machine. One thread at a time.
typedef struct adead_allocator adead_allocator;

/// Scratch memory: an allocation advances a pointer, and everything is released together. One thread at a time.
typedef struct adead_arena adead_arena;

/// Attributes of an operation, each with its default until it is set. One thread at a time may change one.
typedef struct adead_attrs adead_attrs;

/// What an `adead_next` fills in. It is there for the call only.
typedef struct adead_batch adead_batch;

/// Batches under way, and what they are asked of. One thread at a time.
typedef struct adead_batches adead_batches;

/// Memory on a device, with a size in bytes and no type. Threads may share one; the order of what they do with it is
/// theirs to make. Work that uses it keeps its memory until it is done.
typedef struct adead_buffer adead_buffer;

/// Operations under construction. One thread at a time.
typedef struct adead_chain adead_chain;

/// A chain planned for a device, to be run any number of times. Threads may share one.
typedef struct adead_compiled adead_compiled;

/// Opened devices. Threads may share one.
typedef struct adead_context adead_context;

/// Bytes on their way to the host. One thread at a time.
typedef struct adead_download adead_download;

/// A point in a stream, to ask, to wait for, and for other streams to wait for. Threads may share one.
typedef struct adead_event adead_event;

/// A flag that ends long calls early. Threads and signal handlers may share one.
typedef struct adead_interrupt adead_interrupt;

/// A kernel, compiled for a context's GPU. It never changes, so threads may share one.
typedef struct adead_kernel adead_kernel;

/// How the elements of a row-major matrix are arranged: elements of 1, 2, 4 or 8 bytes, padding zeros. It never changes,
/// so threads may share one.
typedef struct adead_layout adead_layout;

/// Batches made ahead in a thread. One thread at a time takes them.
typedef struct adead_loader adead_loader;

/// A layer, which takes a tensor and returns one. It shares what it is made of, tensors and modules, and keeps its context's
/// devices: the caller gives up its own handles whenever it likes. It never changes, so threads may share one.
typedef struct adead_module adead_module;

/// What a program's run gave: its outputs and how they came about.
typedef struct adead_outcome adead_outcome;

/// A right operand of matrix products, laid out in advance for them. It never changes, so threads may share one.
typedef struct adead_packed adead_packed;

/// A profile of a context: under way, and after `adead_profile_finish` what it recorded.
typedef struct adead_profile adead_profile;

/// A decoded program. It never changes, so threads may share one.
typedef struct adead_program adead_program;

/// Work that was recorded. Threads may share one.
typedef struct adead_recording adead_recording;

/// An open safetensors file: its header was read when it was opened, a tensor is read when it is asked for. Threads may
/// share one.
typedef struct adead_safetensors adead_safetensors;

/// What the work of a batch is given: a stream, the batch on the device, and buffers. It is there for the call only, and what is
/// asked of it belongs to it.
typedef struct adead_stage adead_stage;

/// A queue of work on a context's device. What it is given runs in order; streams run beside each other. One thread at a
/// time.
typedef struct adead_stream adead_stream;

/// A shaped value. Its contents never change, so threads may share one.
typedef struct adead_tensor adead_tensor;

/// A time that a device took. Threads may share one.
typedef struct adead_timestamp adead_timestamp;

/// What a call returns: `ADEAD_OK` (0), or why it failed.
typedef int32_t adead_status;

/// Where work should run, one of `ADEAD_MODE_...`.
typedef int32_t adead_mode;

/// A data or unified cache.
typedef struct {
  /// 1 is the nearest.
  uint32_t level;
  /// Bytes of a line.
  uint32_t line;
  /// Bytes.
  uint64_t size;
} adead_cache;

/// A report on the machine. The caller sets `struct_size`; texts end with NUL and are cut if they are longer.
typedef struct {
  /// `sizeof(adead_hardware)`.
  size_t struct_size;
  /// Bytes of host memory that this process could use if it were alone.
  uint64_t memory_total;
  /// Bytes of host memory that it could use now.
  uint64_t memory_available;
  /// Physical cores that this process may use.
  uint32_t cpu_cores;
  /// Hardware threads that this process may use.
  uint32_t cpu_threads;
  /// Nominal frequency in MHz, 0 where unknown.
  uint32_t cpu_frequency_mhz;
  /// The mode that suits the machine.
  adead_mode recommended;
  /// How many of `cpu_caches` are there, from the nearest.
  size_t cpu_cache_count;
  /// The caches.
  adead_cache cpu_caches[ADEAD_MAX_CACHES];
  /// "GenuineIntel", "AuthenticAMD", ...
  char cpu_vendor[32];
  /// The maker's name for the processor.
  char cpu_model[128];
  /// Instruction-set extensions that kernels may use, with a space between them.
  char cpu_features[512];
  /// How many GPUs `adead_gpu_info` can describe.
  size_t gpu_count;
} adead_hardware;

/// How to open a context. Start from `ADEAD_CONTEXT_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_context_options)`.
  size_t struct_size;
  /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon", "portable". NULL: what `ADEAD_ISA` names, else the
  /// best.
  const char *isa;
  /// CPU threads. 0: what `ADEAD_NUM_THREADS` says, else as many as the process may use.
  size_t threads;
} adead_context_options;

/// What tensors keep on a device. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_tensor_cache_use)`.
  size_t struct_size;
  /// The most bytes that tensors keep there.
  uint64_t budget;
  /// Bytes that they keep; more than the budget only where one operation needs them.
  uint64_t used;
  /// How many tensors do.
  uint64_t tensors;
  /// How often an operand of an operation was there.
  uint64_t hits;
  /// How often one had to be moved there.
  uint64_t misses;
  /// How often one had to leave for others.
  uint64_t evictions;
} adead_tensor_cache_use;

/// How a device keeps the arithmetic contract, one of `ADEAD_CONTRACT_...`.
typedef int32_t adead_contract_level;

/// What kind of device, one of `ADEAD_KIND_...`.
typedef int32_t adead_device_kind;

/// What a device is. The caller sets `struct_size`; texts end with NUL and are cut if they are longer.
typedef struct {
  /// `sizeof(adead_device_info)`.
  size_t struct_size;
  /// Bytes of memory, 0 where unknown.
  uint64_t memory;
  /// Execution units that work at once: threads, multiprocessors.
  uint32_t units;
  /// How it keeps the arithmetic contract: `ADEAD_CONTRACT_...`.
  adead_contract_level contract;
  /// How to open it: "cpu", "cuda:0", "vulkan:1".
  char id[32];
  /// What its kernels are built for: an instruction set, a compute capability.
  char arch[32];
  /// What its maker calls it.
  char name[128];
  /// What kind it is: `ADEAD_KIND_...`.
  adead_device_kind kind;
  /// Whether `uuid` is there: 0 or 1; 0 for a processor.
  int32_t has_uuid;
  /// What names this very device among all, as the driver has it.
  uint8_t uuid[16];
  /// Its maker.
  char vendor[32];
  /// Its driver, with the version; "" for a processor.
  char driver[128];
  /// Where it is on the PCI bus: domain, bus, device and function, as "0000:65:00.0"; "" for a processor, and where the
  /// driver does not tell.
  char bus[32];
} adead_device_info;

/// A device's memory, in bytes. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_memory_use)`.
  size_t struct_size;
  /// What it has.
  uint64_t total;
  /// What the driver says is left for this process; what adead has not taken where it does not say.
  uint64_t free;
  /// Taken from the driver by this process through adead.
  uint64_t held;
  /// Of that, in use.
  uint64_t used;
  /// Allocations in use.
  uint64_t allocations;
} adead_memory_use;

/// A specialization constant of a kernel.
typedef struct {
  /// Its number.
  uint32_t id;
  /// Its value: integers and booleans as they are, a float by its bits.
  uint32_t value;
} adead_constant;

/// What a dispatch of a kernel must give. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_kernel_details)`.
  size_t struct_size;
  /// The entry point. It belongs to the kernel.
  const char *name;
  /// The number of buffers.
  size_t parameter_count;
  /// Bytes of push constants, 0 without any.
  size_t push_bytes;
  /// Threads of a workgroup in x, y, z.
  uint32_t workgroup[3];
  /// 0.
  uint32_t reserved;
} adead_kernel_details;

/// A buffer of a kernel. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_parameter)`.
  size_t struct_size;
  /// The least bytes that a buffer for it has.
  uint64_t least;
  /// Bytes of an element of its array of any length, 0 without one: what a buffer has beyond `least` must be a
  /// multiple of it.
  uint64_t stride;
  /// Its descriptor set.
  uint32_t set;
  /// Its binding.
  uint32_t binding;
  /// Not 0: the kernel declares that it never writes it.
  int32_t readonly;
  /// 0.
  int32_t reserved;
} adead_parameter;

/// Whose work begins first, one of `ADEAD_PRIORITY_...`.
typedef int32_t adead_priority;

/// An operation, one of `ADEAD_OP_...`.
typedef int32_t adead_op;

/// The type of elements, one of `ADEAD_DTYPE_...`.
typedef int32_t adead_dtype;

/// A buffer as an operand of an operation.
typedef struct {
  /// Where the elements are. NULL: an optional operand is absent.
  adead_buffer *buffer;
  /// The byte at which the first one begins.
  size_t offset;
  /// The dimensions.
  const size_t *dims;
  /// How many dimensions.
  size_t rank;
  /// What the elements are.
  adead_dtype dtype;
  /// 0.
  int32_t reserved;
} adead_operand;

/// Operations that cost alike, one of `ADEAD_FAMILY_...`.
typedef int32_t adead_family;

/// What a device would take for an operation, in nanoseconds.
typedef struct {
  /// The work itself.
  double compute_ns;
  /// Getting it started.
  double launch_ns;
  /// Moving operands there and the result back.
  double transfer_ns;
  /// All of it.
  double total_ns;
  /// Whether operands and result fit in its memory: 0 or 1.
  int32_t fits;
  /// 0.
  int32_t reserved;
} adead_estimate;

/// A choice with its reason and what every device would take. The caller sets `struct_size`; texts end with NUL and are
/// cut if they are longer.
typedef struct {
  /// `sizeof(adead_explanation)`.
  size_t struct_size;
  /// The chosen device, by its index for `adead_context_device_at`.
  size_t device;
  /// Elements of the largest operand or result: what a threshold is compared with.
  size_t elements;
  /// Floating-point operations; a multiply-add is two.
  double flops;
  /// Bytes read and written.
  double bytes;
  /// What the operation was priced as.
  adead_family family;
  /// How many of `estimates` are there, in the order of the devices.
  uint32_t estimate_count;
  /// What every device would take.
  adead_estimate estimates[ADEAD_MAX_ESTIMATES];
  /// How to open the chosen device: "cpu", "cuda:0".
  char id[32];
  /// Why it was chosen.
  char reason[256];
  /// Where the operation is divided: rows of its result for each device, in the order of the devices; else 0.
  uint64_t rows[ADEAD_MAX_ESTIMATES];
  /// Nanoseconds until all have theirs done; 0 where it is not divided.
  double split_ns;
} adead_explanation;

/// A value of a chain: an input, a constant, or the result of an operation. Another chain's is refused.
typedef uint64_t adead_value;

/// What a chain was compiled to. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_compiled_info)`.
  size_t struct_size;
  /// Inputs that it is given.
  size_t inputs;
  /// Outputs that it gives.
  size_t outputs;
  /// Operations that were recorded and are needed.
  size_t operations;
  /// Steps that they became.
  size_t steps;
  /// Bytes of the memory that intermediate values share; on a GPU inputs and outputs too.
  size_t memory;
  /// The device that it runs on: "cpu", "cuda:0".
  char device[32];
} adead_compiled_info;

/// How the cache of executed chains was used. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_cache_use)`.
  size_t struct_size;
  /// Chains in it.
  uint64_t entries;
  /// Chains that it holds at most; the one that was not used for longest goes first.
  uint64_t most;
  /// Executions that found theirs.
  uint64_t hits;
  /// Executions that compiled theirs.
  uint64_t misses;
} adead_cache_use;

/// Which form of gelu, one of `ADEAD_GELU_...`.
typedef int32_t adead_gelu_form;

/// What follows a matrix product, one of `ADEAD_ACTIVATION_...`.
typedef int32_t adead_activation;

/// How a matrix product is computed, one of `ADEAD_PRECISION_...`.
typedef int32_t adead_precision;

/// What a matrix product may do besides. Start from `ADEAD_MATMUL_OPTIONS_INIT`.
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
  /// Broadcast to the result. Needed when beta is not 0, else it may be NULL.
  const adead_tensor *c;
  /// `[N]`, added to every row. NULL: none.
  const adead_tensor *bias;
  /// What follows, one of `ADEAD_ACTIVATION_...`.
  adead_activation activation;
  /// How it is computed, one of `ADEAD_PRECISION_...`.
  adead_precision precision;
} adead_matmul_options;

/// What attention may do besides. Start from `ADEAD_ATTENTION_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_attention_options)`.
  size_t struct_size;
  /// Added to the scaled scores; broadcast to `[..., Hq, Sq, Sk]`. NULL: none.
  const adead_tensor *mask;
  /// Not 0: query i sees key j when j <= i + (Sk - Sq), so that the last query sees every key.
  int32_t causal;
  /// The factor of the scores; 0 is 1/sqrt(D).
  float scale;
} adead_attention_options;

/// What kind of layer a module is, one of `ADEAD_MODULE_...`.
typedef int32_t adead_module_kind;

/// What `adead_module_load` makes. Start from `ADEAD_MODULE_OPTIONS_INIT`, and set `kind` and the fields that it names.
typedef struct {
  /// `sizeof(adead_module_options)`.
  size_t struct_size;
  /// A kind with weights, one of `ADEAD_MODULE_...`.
  adead_module_kind kind;
  /// Transformers: between the products of the feed-forward part.
  adead_activation activation;
  /// Linear: values of a row that it takes. Embedding: rows of the table.
  size_t inputs;
  /// Linear: values of a row that it returns.
  size_t outputs;
  /// All but linear: values of a row.
  size_t width;
  /// Attention and transformers.
  size_t heads;
  /// Transformers: values between the products of the feed-forward part.
  size_t hidden;
  /// Transformer encoder: its layers, `PREFIX.0`, `PREFIX.1` and so on.
  size_t layers;
  /// Attention: four names of linear layers, which follow the prefix: query, key, value, output.
  const char *const *parts;
  /// Layer norm and transformers: added to variances.
  float eps;
  /// 0.
  int32_t reserved;
} adead_module_options;

/// What a module is. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_module_info)`.
  size_t struct_size;
  /// One of `ADEAD_MODULE_...`.
  adead_module_kind kind;
  /// 0.
  int32_t reserved;
  /// Linear: values of a row that it takes. Embedding: rows of the table. Sequential and encoder: layers. Else 0.
  size_t inputs;
  /// Linear: values of a row that it returns. Embedding: values of a row. Else 0.
  size_t outputs;
} adead_module_info;

/// What a call gives a module besides its tensor. Start from `ADEAD_FORWARD_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(adead_forward_options)`.
  size_t struct_size;
  /// Linear, feed-forward, attention: added to the result. NULL: none.
  const adead_tensor *residual;
  /// Attention and transformers: rows of each sequence that are its own. Those behind them are padding, which nothing
  /// attends to, and come out with values of no meaning. NULL: all rows.
  const size_t *lengths;
  /// How many lengths there are.
  size_t count;
  /// Linear: what follows, one of `ADEAD_ACTIVATION_...`.
  adead_activation activation;
  /// 0.
  int32_t reserved;
} adead_forward_options;

/// What a program is or was decoded from, one of `ADEAD_FORMAT_...`.
typedef int32_t adead_format;

/// Which way a slot's contents go, one of `ADEAD_DIRECTION_...`.
typedef int32_t adead_direction;

/// A named input or output of a program. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_slot)`.
  size_t struct_size;
  /// The tensor's name; for AGPU programs the host address as text, such as "0x1000". It belongs to the program.
  const char *name;
  /// Bytes of its contents.
  size_t bytes;
  /// Which way its contents go.
  adead_direction direction;
  /// What its elements are.
  adead_dtype dtype;
  /// Not 0: a tensor bound to it must have exactly this dtype and shape. 0: only this many bytes.
  int32_t typed;
  /// Not 0: the caller must supply it.
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
  /// The most bytes that registers, temporaries and outputs may take at once.
  size_t memory_limit;
  /// Not 0: instructions that don't depend on each other may run at the same time; the results are the same.
  int32_t parallel;
  /// 0.
  int32_t reserved;
} adead_run_options;

/// A run in numbers. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_outcome_stats)`.
  size_t struct_size;
  /// Instructions that ran.
  size_t instructions;
  /// The most bytes that registers, temporaries and outputs had at once.
  size_t memory;
  /// Floating-point operations; a multiply-add is two.
  double flops;
  /// Seconds from the first instruction's beginning to the last one's end.
  double seconds;
} adead_outcome_stats;

/// What one instruction did in a run. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_trace)`.
  size_t struct_size;
  /// Its index in the program.
  size_t instruction;
  /// Seconds spent in it.
  double seconds;
  /// Floating-point operations; a multiply-add is two.
  double flops;
  /// Bytes read and written, each operand once.
  double bytes;
  /// Its name.
  char name[32];
  /// The device that it ran on.
  char device[32];
} adead_trace;

/// What an allocator has. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_allocator_stats)`.
  size_t struct_size;
  /// Bytes of a block.
  size_t block_size;
  /// All bytes, free or not.
  size_t capacity;
  /// Bytes of the blocks in use.
  size_t used;
  /// Bytes of the free blocks, in one piece or not.
  size_t available;
  /// The largest allocation that succeeds, 0 if none does.
  size_t largest_free;
  /// The highest end of an allocation since the start or the last reset, as an offset.
  size_t high_water;
  /// The number of live allocations.
  size_t live;
} adead_allocator_stats;

/// A matrix or a stream as a number. Never 0 and never negative; a number that was freed is not given out again for 2^24
/// allocations.
typedef int64_t adead_flat_handle;

/// Gives the next batch, by `adead_batch_memory` or `adead_batch_borrow`; without either there is none any more. Everything
/// but `ADEAD_OK` ends whatever asked and is returned there, also a number of the caller's own.
typedef adead_status (*adead_next)(adead_batch *batch, void *user);

/// Enqueues the work of a batch on its stream and names its result. Everything but `ADEAD_OK` ends it.
typedef adead_status (*adead_work)(adead_stage *stage, void *user);

/// Takes the result of batch `index`; the first one is 0. The bytes are where the download put them, aligned for every
/// element type, for the call only, and never NULL. Everything but `ADEAD_OK` ends it.
typedef adead_status (*adead_take)(size_t index, const void *data, size_t bytes, void *user);

/// What was recorded, in numbers. The caller sets `struct_size`.
typedef struct {
  /// `sizeof(adead_profile_summary)`.
  size_t struct_size;
  /// Records, for `adead_profile_record_at`.
  size_t records;
  /// Totals, for `adead_profile_total_at`.
  size_t totals;
  /// Devices that worked, for `adead_profile_device_at`.
  size_t devices;
  /// Records beyond the limit, which are only counted: in nothing else here.
  uint64_t dropped;
  /// From the profile's beginning to its end, in nanoseconds.
  uint64_t ns;
  /// Nanoseconds in which anything was under way: work on the CPU, work on a GPU, a transfer.
  uint64_t busy_ns;
  /// Of these, nanoseconds in which at least two of the three were.
  uint64_t overlapped_ns;
  /// The share of `busy_ns` that `overlapped_ns` is.
  double overlap;
} adead_profile_summary;

/// What kind of work, one of `ADEAD_ACTIVITY_...`.
typedef int32_t adead_activity;

/// A piece of work: an operation, a user's kernel, a transfer. The caller sets `struct_size`; texts belong to the
/// profile and go with it. Times are nanoseconds since the profile's beginning.
typedef struct {
  /// `sizeof(adead_profile_record)`.
  size_t struct_size;
  /// What kind: `ADEAD_ACTIVITY_...`.
  adead_activity activity;
  /// Whether `work_begin_ns` and `work_end_ns` are there: 0 or 1; 0 where the device takes no times, and for work that was not
  /// done when the profile ended.
  int32_t has_work;
  /// Whether `cycles` is there: 0 or 1; 0 on GPUs and where the processor has no counter.
  int32_t has_cycles;
  /// 0.
  int32_t reserved;
  /// The operation's or the kernel's name; of the others, that of their kind.
  const char *name;
  /// What it worked on: dtypes and shapes, a kernel's workgroups, the operation that bytes travel for.
  const char *operands;
  /// The device, by its index for `adead_profile_device_at`.
  size_t device;
  /// Its id: "cpu", "cuda:0".
  const char *device_id;
  /// Why there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand", "stream's device",
  /// "divided" or "chosen GPU can't be opened".
  const char *reason;
  /// Of "threshold", how many elements it is; else 0.
  uint64_t threshold;
  /// The thread that called, counted from 0 in the order of their first records.
  size_t thread;
  /// The device's stream: 0 is the context's own, others are numbered in the order in which they were made.
  size_t stream;
  /// When the call began. Where the device works behind the caller's back, it only hands work over.
  uint64_t host_begin_ns;
  /// When the call ended.
  uint64_t host_end_ns;
  /// When the work itself began, on the host's clock.
  uint64_t work_begin_ns;
  /// When it ended.
  uint64_t work_end_ns;
  /// Cycles of the processor's time stamp counter.
  uint64_t cycles;
  /// Floating-point operations; a multiply-add is two. 0 where nobody knows.
  double flops;
  /// Bytes read and written, each operand once; of transfers and copies, those that travelled. 0 where nobody knows.
  double bytes;
} adead_profile_record;

/// What was recorded of one kind and name, on one device, for one reason. The caller sets `struct_size`; texts belong to the
/// profile and go with it.
typedef struct {
  /// `sizeof(adead_profile_total)`.
  size_t struct_size;
  /// What kind: `ADEAD_ACTIVITY_...`.
  adead_activity activity;
  /// 0.
  int32_t reserved;
  /// The operation's or the kernel's name.
  const char *name;
  /// The device, by its index for `adead_profile_device_at`.
  size_t device;
  /// Its id: "cpu", "cuda:0".
  const char *device_id;
  /// Why there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand", "stream's device",
  /// "divided" or "chosen GPU can't be opened".
  const char *reason;
  /// Of "threshold", how many elements it is; else 0.
  uint64_t threshold;
  /// How often.
  uint64_t count;
  /// Of these, how many have a time; the numbers below are of those.
  uint64_t timed;
  /// Nanoseconds of all.
  uint64_t ns;
  /// Nanoseconds of the fastest.
  uint64_t min_ns;
  /// Nanoseconds of the slowest.
  uint64_t max_ns;
  /// Nanoseconds of one, on average.
  double mean_ns;
  /// Floating-point operations.
  double flops;
  /// Bytes read and written; of transfers, those that travelled.
  double bytes;
  /// Floating-point operations a nanosecond.
  double gflops;
  /// Bytes a nanosecond.
  double gbytes;
  /// The share of the device's peak, of arithmetic or of memory, whichever is nearer; of transfers, of the link's rate. It can
  /// be above 1.
  double of_peak;
} adead_profile_total;

/// A device that worked. The caller sets `struct_size`; texts belong to the profile and go with
/// it.
typedef struct {
  /// `sizeof(adead_profile_device)`.
  size_t struct_size;
  /// Its id: "cpu", "cuda:0".
  const char *id;
  /// Nanoseconds of work other than transfers; of two pieces at a time, both.
  uint64_t work_ns;
  /// Bytes that it was sent.
  uint64_t uploaded;
  /// Bytes that it sent back.
  uint64_t downloaded;
  /// Its best rate of arithmetic as the dispatcher knows it, in floating-point operations a nanosecond; 0 where it does not.
  double peak_gflops;
  /// Its best rate of memory as the dispatcher knows it, in bytes a nanosecond; 0 where it does not.
  double peak_gbytes;
  /// Where these are from; NULL where there are none.
  const char *figures;
  /// Whether they were measured on this machine: 0 or 1.
  int32_t calibrated;
  /// 0.
  int32_t reserved;
} adead_profile_device;

/// How serious a message is, one of `ADEAD_LOG_...`.
typedef int32_t adead_log_level;

/// What gets messages: a level, what it is about ("adead.devices"), a text, and what `adead_log_set` was given for it. Both
/// texts are the library's and go with the call.
typedef void (*adead_log_callback)(adead_log_level level, const char *target, const char *text, void *user);

/// A linear layer.
#define ADEAD_MODULE_LINEAR 0

/// Rows of a table by number.
#define ADEAD_MODULE_EMBEDDING 1

/// Layer normalisation.
#define ADEAD_MODULE_LAYER_NORM 2

/// max(x, 0).
#define ADEAD_MODULE_RELU 3

/// The Gaussian error linear unit.
#define ADEAD_MODULE_GELU 4

/// Modules one after another.
#define ADEAD_MODULE_SEQUENTIAL 5

/// Two linear layers with an activation between them.
#define ADEAD_MODULE_FEED_FORWARD 6

/// Self-attention with several heads.
#define ADEAD_MODULE_ATTENTION 7

/// Attention and feed-forward, each normalised behind.
#define ADEAD_MODULE_TRANSFORMER_LAYER 8

/// Transformer layers one after another.
#define ADEAD_MODULE_TRANSFORMER_ENCODER 9

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The text of the last call on this thread that failed: what was wrong, with the numbers, and what to do. "" if none
/// did. Valid until the next call on this thread fails.
ADEAD_API const char *adead_last_error(void);

/// The name of a status, such as "shape_mismatch"; NULL for a number that is none. Never freed.
ADEAD_API const char *adead_status_name(adead_status status);

/// The version of the library, such as "0.1.0". Never freed.
ADEAD_API const char *adead_version(void);

/// The version of this interface. A program that was built with `ADEAD_ABI_VERSION` n runs with every library that
/// answers n.
ADEAD_API uint32_t adead_abi_version(void);

/// The version of the arithmetic contract, such as "adead-contract-1": libraries that answer the same compute the same
/// bits. It belongs beside every published hash. Never freed.
ADEAD_API const char *adead_contract_version(void);

/// A flag that is not set.
ADEAD_API adead_status adead_interrupt_create(adead_interrupt **out);

/// Gives a flag up; NULL is fine. No other thread has it from `adead_interrupt_watch` any more; the calling thread then has none.
ADEAD_API
void adead_interrupt_destroy(adead_interrupt *interrupt);

/// Sets a flag, or with 0 takes it back; NULL is fine. Calls that saw it end all the same. Async-signal-safe: a signal handler may
/// call it, as may any thread.
ADEAD_API
void adead_interrupt_set(adead_interrupt *interrupt,
                         int32_t value);

/// Whether a flag is set: 0 or 1; NULL is not. Async-signal-safe.
ADEAD_API int32_t adead_interrupt_get(const adead_interrupt *interrupt);

/// From here on, long calls of the calling thread end with `not_ready` within 0.1 s while the flag is set: operations, programs and
/// pipelines on the processor, and waiting for a GPU, where what it was given goes on. Calls of a few milliseconds are done whole.
/// A call that ends early gives no result, but parts of the arrays and buffers that it was to write may be written; everything
/// works as before afterwards. NULL: nothing ends them.
///
/// The flag that there was before, or NULL, is what the function returns, to be put back: a flag must be watched by no thread when
/// it is given up.
ADEAD_API
const adead_interrupt *adead_interrupt_watch(const adead_interrupt *interrupt);

/// Starts the simple API on a backend: 0 CPU, 1 CUDA, 2 Vulkan, -1 the best at hand or what `ADEAD_DEVICE` names.
/// Again with another backend switches to that. A function of the simple API that is called first starts it as -1 does.
/// `backend_unavailable` if the backend is not on this machine or not in this version.
ADEAD_API adead_status adead_init(int backend);

/// Ends the simple API: frees what `adead_alloc` gave and nobody freed. It may be started again.
ADEAD_API adead_status adead_shutdown(void);

/// Memory for the simple API: `bytes` bytes, zero, on a multiple of 64. Any other memory of the caller does as well.
/// `out_of_memory` if the system refuses.
ADEAD_API adead_status adead_alloc(size_t bytes, void **out);

/// Gives back what `adead_alloc` gave; NULL is fine. `invalid_argument`, and nothing happens, for any other pointer and
/// for one that was freed.
ADEAD_API adead_status adead_free(void *pointer);

/// `result = a*b`: a is `[m, k]`, b `[k, n]`, result `[m, n]`, row-major. The result may not overlap a or b.
ADEAD_API adead_status adead_matmul(const float *a, const float *b, float *result, int m, int n, int k);

/// Softmax of every row of a `[rows, cols]` matrix, row-major. `out` may be `in`, but not overlap it otherwise.
ADEAD_API adead_status adead_softmax(const float *in, float *out, int rows, int cols);

/// `max(x, 0)` of `size` values; a NaN stays NaN. `out` may be `in`, but not overlap it otherwise.
ADEAD_API adead_status adead_relu(const float *in, float *out, int size);

/// Starts the simple API on the best Vulkan GPU, as `adead_init(2)` does. `backend_unavailable` where there is none.
ADEAD_API adead_status adead_vulkan_init(void);

/// Runs a compute shader on the best Vulkan GPU over `x`*`y`*`z` workgroups, and returns when it is done. `shader` names the
/// file of its SPIR-V. Its buffers, by set and binding, are what `adead_alloc` gave and nobody freed, in the order in
/// which it was given: they are copied to the GPU before, and those that the shader may write are copied back after.
/// Shaders with push constants and for repeated work take the object API: `adead_kernel_load_spirv`, `adead_dispatch`.
ADEAD_API
adead_status adead_vulkan_compute(const char *shader,
                                  int x,
                                  int y,
                                  int z);

/// Looks at the machine: processor, memory, GPUs and the mode that suits it. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_hardware_report(adead_hardware *out);

/// Opens a device by name: "auto", "cpu", "cuda" and "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a part of a
/// GPU's name, or its UUID; several as one: "hybrid" (the CPU and every GPU), or names with commas between them. NULL is what
/// `ADEAD_DEVICE` names, else what adead.toml does, else "auto". `opts` may be NULL.
ADEAD_API
adead_status adead_context_open(const char *device,
                                const adead_context_options *opts,
                                adead_context **out);

/// Closes a context; NULL is fine. Tensors that it made stay.
ADEAD_API void adead_context_destroy(adead_context *context);

/// What tensors keep on one of the context's devices, by its name; nothing on the CPU and on a GPU that was not used yet. The
/// caller sets `out->struct_size`. `invalid_argument` for a device that the context has not.
ADEAD_API
adead_status adead_context_tensor_cache(const adead_context *context,
                                        const char *device,
                                        adead_tensor_cache_use *out);

/// The most bytes that tensors may keep on each of the context's GPUs; half of its memory where this was not called. Those that
/// were not used for longest leave, now and when others come; no value is lost.
ADEAD_API
adead_status adead_context_set_tensor_cache(const adead_context *context,
                                            uint64_t bytes);

/// Gives back what the context keeps for its next work: scratch memory goes to the system, worker threads finish what
/// they have begun and end, copies on GPUs of tensors that are in host memory too go. The next call takes them anew. May be called while other threads compute.
ADEAD_API
adead_status adead_context_trim(const adead_context *context);

/// What the context's device is. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_context_device_info(const adead_context *context, adead_device_info *out);

/// How many devices the context can use.
ADEAD_API adead_status adead_context_device_count(const adead_context *context, size_t *out);

/// What device `index` of those that the context can use is. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_context_device_at(const adead_context *context, size_t index, adead_device_info *out);

/// How many GPUs this machine has, of those that `ADEAD_VISIBLE_DEVICES` leaves; 0 without a driver. One that there is
/// through CUDA and Vulkan is one.
ADEAD_API adead_status adead_gpu_count(size_t *out);

/// Opens the best GPU, as "vulkan" does: one of its own memory before one in the processor, and a software one only where
/// there is no other; through CUDA where Vulkan has none. `backend_unavailable` says why there is none.
ADEAD_API
adead_status adead_gpu_open(adead_context **out);

/// What GPU `index` is: the preferred one is 0, software ones come last. It is not opened, and the contract level of one
/// through Vulkan says `ADEAD_CONTRACT_EMULATED` as long as nobody has looked how it computes. The caller sets
/// `out->struct_size`.
ADEAD_API
adead_status adead_gpu_info(size_t index,
                            adead_device_info *out);

/// Through how many backends there is GPU `index`: 2 where CUDA and Vulkan have it.
ADEAD_API adead_status adead_gpu_backend_count(size_t index, size_t *out);

/// What GPU `index` is through its backend `backend`, the preferred one, which `adead_gpu_info` tells of, being 0. The
/// caller sets `out->struct_size`.
ADEAD_API adead_status adead_gpu_backend_info(size_t index, size_t backend, adead_device_info *out);

/// The memory of the context's GPU, or of the host where it has none. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_memory(const adead_context *context, adead_memory_use *out);

/// Enqueues a kernel over `groups[0]`*`groups[1]`*`groups[2]` workgroups, with `count` buffers in the order of their set
/// and binding. It returns at once; reading a buffer, or `adead_wait`, waits. `invalid_argument` says what does not
/// fit: the number of buffers, their sizes, the groups, missing push constants.
ADEAD_API
adead_status adead_dispatch(const adead_context *context,
                            const adead_kernel *kernel,
                            adead_buffer *const *buffers,
                            size_t count,
                            const uint32_t *groups);

/// `adead_dispatch` with the `push_bytes` bytes of the kernel's push constants at `push`.
ADEAD_API
adead_status adead_dispatch_with(const adead_context *context,
                                 const adead_kernel *kernel,
                                 adead_buffer *const *buffers,
                                 size_t count,
                                 const void *push,
                                 size_t push_bytes,
                                 const uint32_t *groups);

/// Waits until everything that the context enqueued has finished.
ADEAD_API adead_status adead_wait(const adead_context *context);

/// A buffer of `bytes` bytes on the context's GPU, or in host memory where it has none: a copy of what is at `data`, or
/// zeros where `data` is NULL. `out_of_memory` with the bytes asked and free.
ADEAD_API
adead_status adead_buffer_create(const adead_context *context,
                                 const void *data,
                                 size_t bytes,
                                 adead_buffer **out);

/// Gives a buffer up, and its memory if that was not freed; NULL is fine.
ADEAD_API void adead_buffer_destroy(adead_buffer *buffer);

/// Gives the memory back, once work that uses it is done; the handle stays, to be destroyed. `invalid_argument` the
/// second time, and for any other use after it.
ADEAD_API adead_status adead_buffer_free(adead_buffer *buffer);

/// Bytes.
ADEAD_API adead_status adead_buffer_size(const adead_buffer *buffer, size_t *out);

/// Copies `bytes` bytes at `data` to the buffer from `offset` on, behind everything that its context enqueued; `data` is
/// the caller's again when it returns. `invalid_argument` if they don't fit.
ADEAD_API
adead_status adead_buffer_write(adead_buffer *buffer,
                                size_t offset,
                                const void *data,
                                size_t bytes);

/// Waits for everything that its context enqueued and copies `bytes` bytes from `offset` on to `dst`.
/// `invalid_argument` if there are fewer.
ADEAD_API adead_status adead_buffer_read(const adead_buffer *buffer, size_t offset, void *dst, size_t bytes);

/// A kernel from a SPIR-V file: its entry point "main", else its first, with every specialization constant at its
/// default. `io` if the file can't be read, `invalid_kernel` if it is malformed or the driver refuses it, `unsupported`
/// if it needs what the device has not.
ADEAD_API adead_status adead_kernel_load_spirv(const adead_context *context, const char *path, adead_kernel **out);

/// A kernel from the `bytes` bytes of a SPIR-V module at `data`, at any address.
ADEAD_API
adead_status adead_kernel_load_spirv_bytes(const adead_context *context,
                                           const void *data,
                                           size_t bytes,
                                           adead_kernel **out);

/// A kernel from a PTX file, its first: its leading 64-bit parameters are buffers, the rest push constants. `io` if the
/// file can't be read, `invalid_kernel` if it is malformed or the driver refuses it, `unsupported` if it needs what the
/// device or its driver has not; and on a Vulkan device, with the CUDA device that is the same GPU.
ADEAD_API adead_status adead_kernel_load_ptx(const adead_context *context, const char *path, adead_kernel **out);

/// A kernel from the `bytes` bytes of PTX at `data`, with or without a zero at the end: the one called `entry`, or with
/// NULL the first, with workgroups of `workgroup[0]`*`workgroup[1]`*`workgroup[2]` threads, or with NULL of as many as it
/// says. `invalid_argument` for an entry point that it does not have, or for threads that it does not take or that
/// nobody says.
ADEAD_API
adead_status adead_kernel_load_ptx_bytes(const adead_context *context,
                                         const void *data,
                                         size_t bytes,
                                         const char *entry,
                                         const uint32_t *workgroup,
                                         adead_kernel **out);

/// `adead_kernel_load_ptx` from a cubin, which is machine code for one architecture, or a fatbin, which may have code for
/// several and PTX. `unsupported` where none of it is for the device; a fatbin also needs a driver of CUDA 12.4.
ADEAD_API
adead_status adead_kernel_load_cubin(const adead_context *context,
                                     const char *path,
                                     adead_kernel **out);

/// `adead_kernel_load_ptx_bytes` from a cubin or fatbin.
ADEAD_API
adead_status adead_kernel_load_cubin_bytes(const adead_context *context,
                                           const void *data,
                                           size_t bytes,
                                           const char *entry,
                                           const uint32_t *workgroup,
                                           adead_kernel **out);

/// The module of a kernel as another kernel: with another entry point (NULL: "main", else its first), and with `count`
/// specialization constants set. `invalid_argument` for an entry point or a constant that it does not have.
ADEAD_API
adead_status adead_pipeline_create(const adead_context *context,
                                   const adead_kernel *kernel,
                                   const char *entry,
                                   const adead_constant *constants,
                                   size_t count,
                                   adead_kernel **out);

/// Gives a kernel up; NULL is fine. Work that was enqueued with it goes on.
ADEAD_API void adead_kernel_destroy(adead_kernel *kernel);

/// What a dispatch of the kernel must give. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_kernel_info(const adead_kernel *kernel, adead_kernel_details *out);

/// Buffer `index` of the kernel, in the order in which a dispatch gives them. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_kernel_parameter_at(const adead_kernel *kernel, size_t index, adead_parameter *out);

/// The point after everything that the context enqueued so far.
ADEAD_API adead_status adead_event_create(const adead_context *context, adead_event **out);

/// Gives an event up; NULL is fine.
ADEAD_API void adead_event_destroy(adead_event *event);

/// Whether its stream has come there: 0 or 1.
ADEAD_API adead_status adead_event_query(const adead_event *event, int32_t *out);

/// Waits until its stream has come there, at most so many nanoseconds; `ADEAD_FOREVER` is no limit. `not_ready` if they
/// did not suffice.
ADEAD_API adead_status adead_event_wait(const adead_event *event, uint64_t nanoseconds);

/// Gives a download up; NULL is fine.
ADEAD_API void adead_download_destroy(adead_download *download);

/// Whether the bytes have arrived: 0 or 1; 1 also once they were read.
ADEAD_API adead_status adead_download_query(const adead_download *download, int32_t *out);

/// Waits for the bytes and says where they are, without a copy, until the download is read or given up. It is memory that the
/// device reaches, of which there is not much: not to be kept for long. `invalid_argument` once they were read.
ADEAD_API
adead_status adead_download_data(const adead_download *download,
                                 const void **out);

/// Waits for the bytes and copies them to `dst`, once. `invalid_argument` unless `bytes` is what the download has, and the
/// second time.
ADEAD_API
adead_status adead_download_read(adead_download *download,
                                 void *dst,
                                 size_t bytes);

/// Gives a timestamp up; NULL is fine.
ADEAD_API void adead_timestamp_destroy(adead_timestamp *timestamp);

/// Nanoseconds from `earlier` to `timestamp`, both of one device. `not_ready` before both were taken.
ADEAD_API
adead_status adead_timestamp_since(const adead_timestamp *timestamp,
                                   const adead_timestamp *earlier,
                                   uint64_t *out);

/// Gives a recording up; NULL is fine. Replays of it go on.
ADEAD_API void adead_recording_destroy(adead_recording *recording);

/// A stream on the context's device.
ADEAD_API adead_status adead_stream_create(const adead_context *context, adead_stream **out);

/// A stream on the context's device with a priority: on an NVIDIA GPU through CUDA the work of `ADEAD_PRIORITY_HIGH` begins
/// before that of other streams where both wait; elsewhere it is an ordinary stream.
ADEAD_API
adead_status adead_stream_create_with(const adead_context *context,
                                      adead_priority priority,
                                      adead_stream **out);

/// Waits for what the stream was given and gives it up; NULL is fine.
ADEAD_API void adead_stream_destroy(adead_stream *stream);

/// Enqueues a copy of `bytes` bytes at `data` to a buffer from `offset` on; `data` is the caller's again when it returns.
ADEAD_API
adead_status adead_stream_upload(adead_stream *stream,
                                 adead_buffer *buffer,
                                 size_t offset,
                                 const void *data,
                                 size_t bytes);

/// Enqueues a copy of `bytes` bytes of a buffer from `offset` on to the host; `adead_download_read` takes them from
/// there, `adead_download_data` shows them.
ADEAD_API
adead_status adead_stream_download(adead_stream *stream,
                                   const adead_buffer *buffer,
                                   size_t offset,
                                   size_t bytes,
                                   adead_download **out);

/// Enqueues a copy of `bytes` bytes from one buffer's `from_offset` to another's `to_offset`. Within one buffer the parts
/// must not overlap.
ADEAD_API
adead_status adead_stream_copy(adead_stream *stream,
                               const adead_buffer *from,
                               size_t from_offset,
                               adead_buffer *to,
                               size_t to_offset,
                               size_t bytes);

/// Enqueues the zeroing of `bytes` bytes of a buffer from `offset` on: whole 4-byte words, but for a buffer's end.
ADEAD_API adead_status adead_stream_clear(adead_stream *stream, adead_buffer *buffer, size_t offset, size_t bytes);

/// Enqueues a kernel, as `adead_dispatch_with` does; without push constants `push_bytes` is 0.
ADEAD_API
adead_status adead_stream_dispatch(adead_stream *stream,
                                   const adead_kernel *kernel,
                                   adead_buffer *const *buffers,
                                   size_t count,
                                   const void *push,
                                   size_t push_bytes,
                                   const uint32_t *groups);

/// Enqueues an operation on buffers: `count` operands in its order, and where its result goes, with the dtype and shape
/// that follow from them. `attrs` may be NULL. What only the device can find (an id outside a table) comes from
/// `adead_stream_sync`.
ADEAD_API
adead_status adead_stream_run(adead_stream *stream,
                              adead_op op,
                              const adead_operand *operands,
                              size_t count,
                              const adead_attrs *attrs,
                              const adead_operand *result);

/// The point after everything that the stream was given so far.
ADEAD_API adead_status adead_stream_event(adead_stream *stream, adead_event **out);

/// Everything that the stream is given from now on waits for an event of the same device.
ADEAD_API adead_status adead_stream_wait_event(adead_stream *stream, const adead_event *event);

/// Enqueues the taking of a time.
ADEAD_API adead_status adead_stream_timestamp(adead_stream *stream, adead_timestamp **out);

/// From here to `adead_stream_record_end` the stream records what it is given instead of running it. Uploads, downloads,
/// events and timestamps can't be recorded. `invalid_argument` while recording already, `unsupported` on the CPU.
ADEAD_API
adead_status adead_stream_record_begin(adead_stream *stream);

/// What was recorded, to be run any number of times. It keeps the memory and the kernels that it uses.
ADEAD_API adead_status adead_stream_record_end(adead_stream *stream, adead_recording **out);

/// Enqueues a recording of the same device.
ADEAD_API adead_status adead_stream_replay(adead_stream *stream, const adead_recording *recording);

/// Hands what the stream was given to the device now, without waiting. Work begins by itself; this only spares it a wait
/// behind what is under way.
ADEAD_API
adead_status adead_stream_flush(adead_stream *stream);

/// Waits until everything that the stream was given has finished. The first error that the device found in it.
ADEAD_API adead_status adead_stream_sync(adead_stream *stream);

/// Whether everything that the stream was given has finished: 0 or 1.
ADEAD_API adead_status adead_stream_query(adead_stream *stream, int32_t *out);

/// The name of a dtype, such as "f32"; NULL for a number that is none. Never freed.
ADEAD_API const char *adead_dtype_name(adead_dtype dtype);

/// Bytes of one element; 0 for a number that is no dtype.
ADEAD_API size_t adead_dtype_size(adead_dtype dtype);

/// A tensor of the `bytes` bytes at `data`, which are copied: elements in native byte order, row-major, as many as
/// `dims` multiply to; f16 and bf16 by their bits. Rank 0 to 8, rank 0 is a scalar. `shape_mismatch` if `bytes` is not
/// what dtype and dims take.
ADEAD_API
adead_status adead_tensor_create(adead_dtype dtype,
                                 const size_t *dims,
                                 size_t rank,
                                 const void *data,
                                 size_t bytes,
                                 adead_tensor **out);

/// A tensor of zeros.
ADEAD_API adead_status adead_tensor_zeros(adead_dtype dtype, const size_t *dims, size_t rank, adead_tensor **out);

/// Gives a tensor up; NULL is fine. Its clones and reshapes stay.
ADEAD_API void adead_tensor_destroy(adead_tensor *tensor);

/// Another handle of the same values, without a copy.
ADEAD_API adead_status adead_tensor_clone(const adead_tensor *tensor, adead_tensor **out);

/// The same values in another shape of as many elements, without a copy. `shape_mismatch` if their number differs.
ADEAD_API
adead_status adead_tensor_reshape(const adead_tensor *tensor,
                                  const size_t *dims,
                                  size_t rank,
                                  adead_tensor **out);

/// The type of the elements.
ADEAD_API adead_status adead_tensor_dtype(const adead_tensor *tensor, adead_dtype *out);

/// The number of dimensions.
ADEAD_API adead_status adead_tensor_rank(const adead_tensor *tensor, size_t *out);

/// The dimensions, as many as its rank. They belong to the tensor and go with it.
ADEAD_API adead_status adead_tensor_dims(const adead_tensor *tensor, const size_t **out);

/// Bytes of all elements.
ADEAD_API adead_status adead_tensor_bytes(const adead_tensor *tensor, size_t *out);

/// The elements, in native byte order, row-major, on a multiple of 64 bytes. They belong to the tensor and its clones
/// and go with the last of them. Values that are on a GPU only are waited for and brought to host memory, once.
ADEAD_API adead_status adead_tensor_data(const adead_tensor *tensor, const void **out);

/// Puts a copy of a tensor's values on one of the context's devices, by its name as `adead_context_open` takes it, and returns
/// when they may be on their way; `"cpu"` starts their way to host memory instead. Clones, reshapes and rows share copies;
/// operations find them there, and leave their results where they compute. `invalid_argument` for a device that the context
/// has not.
ADEAD_API
adead_status adead_tensor_to(const adead_context *context,
                             const adead_tensor *tensor,
                             const char *device);

/// Whether a tensor's values are in host memory (`"cpu"`) or on the device of that id.
ADEAD_API adead_status adead_tensor_is_on(const adead_tensor *tensor, const char *device, int32_t *out);

/// Copies all elements to `dst`. `invalid_argument` unless `bytes` is exactly the tensor's `adead_tensor_bytes`.
ADEAD_API adead_status adead_tensor_read(const adead_tensor *tensor, void *dst, size_t bytes);

/// One more than the largest number of an operation. Numbers never change; those below it that no operation has are without a name.
ADEAD_API
size_t adead_op_count(void);

/// The name of an operation, such as "matmul"; NULL for a number that is none. Never freed.
ADEAD_API const char *adead_op_name(adead_op op);

/// The operation of that name. `invalid_argument` if there is none.
ADEAD_API adead_status adead_op_from_name(const char *name, adead_op *out);

/// Executes any operation. `operands` are `count` tensors in the order of docs/operations.md, NULL where an optional one
/// is absent; trailing ones may be left out. `attrs` may be NULL: every attribute has its default.
ADEAD_API
adead_status adead_op_run(const adead_context *context,
                          adead_op op,
                          const adead_tensor *const *operands,
                          size_t count,
                          const adead_attrs *attrs,
                          adead_tensor **out);

/// New attributes, all with their defaults.
ADEAD_API adead_status adead_attrs_create(adead_attrs **out);

/// Gives attributes up; NULL is fine.
ADEAD_API void adead_attrs_destroy(adead_attrs *attrs);

/// Sets an attribute of `op` from text: integers and flags in decimal ("-1", "1"), floats in decimal or as 0x and the
/// eight digits of their bits, words ("relu", "i32"), "all" for axis, lists with commas ("1,0,2"). docs/operations.md
/// lists them. `invalid_argument` for a name that `op` does not have and for a value that it can't take.
ADEAD_API adead_status adead_attrs_set(adead_attrs *attrs, adead_op op, const char *name, const char *value);

/// The name of a family, such as "matmul"; NULL for a number that is none. Never freed.
ADEAD_API const char *adead_family_name(adead_family family);

/// The device for work on that many elements in host memory of which nothing else is known, by its index for
/// `adead_context_device_at`. Takes some nanoseconds; results are the same on every device.
ADEAD_API adead_status adead_select(const adead_context *context, size_t elements, size_t *out);

/// On which device `adead_op_run` with the same arguments would run, why, and what every device would take. Runs nothing.
/// The caller sets `out->struct_size`.
ADEAD_API
adead_status adead_explain(const adead_context *context,
                           adead_op op,
                           const adead_tensor *const *operands,
                           size_t count,
                           const adead_attrs *attrs,
                           adead_explanation *out);

/// From how many elements on operations of a family go to a GPU and below it to the CPU; `ADEAD_NO_THRESHOLD` lets the
/// costs decide. Without a GPU it changes nothing. Threads may share the context meanwhile.
ADEAD_API adead_status adead_context_set_threshold(const adead_context *context, adead_family family, size_t elements);

/// Sends everything to one of the context's devices by its id ("cpu"), whatever it costs; NULL lets the costs decide.
/// `invalid_argument` for an id that it does not have. Threads may share the context meanwhile.
ADEAD_API adead_status adead_context_force(const adead_context *context, const char *device);

/// An empty chain on a context.
ADEAD_API adead_status adead_chain_create(const adead_context *context, adead_chain **out);

/// Gives a chain up; NULL is fine. What was compiled of it stays.
ADEAD_API void adead_chain_destroy(adead_chain *chain);

/// A tensor that is given each time it runs, in the order of these calls.
ADEAD_API
adead_status adead_chain_input(adead_chain *chain,
                               adead_dtype dtype_,
                               const size_t *dims,
                               size_t rank,
                               adead_value *out);

/// A tensor that is the same each time, such as weights. It may be given up.
ADEAD_API adead_status adead_chain_constant(adead_chain *chain, const adead_tensor *tensor, adead_value *out);

/// An operation on `count` values in the order of docs/operations.md, `ADEAD_NO_VALUE` where an optional one is absent;
/// trailing ones may be left out. `attrs` may be NULL: every attribute has its default. The errors are the operation's own;
/// then nothing is recorded.
ADEAD_API
adead_status adead_chain_op(adead_chain *chain,
                            adead_op op,
                            const adead_value *operands,
                            size_t count,
                            const adead_attrs *attrs,
                            adead_value *out);

/// A value's elements in another shape of as many, without a copy.
ADEAD_API
adead_status adead_chain_reshape(adead_chain *chain,
                                 adead_value value,
                                 const size_t *dims,
                                 size_t rank,
                                 adead_value *out);

/// Says that a value comes out: in the order of these calls. Without any, the last value does. `invalid_argument` for an input
/// or a constant.
ADEAD_API
adead_status adead_chain_output(adead_chain *chain,
                                adead_value value);

/// Plans a chain for the device that takes least. It may go on being built, and be compiled again.
ADEAD_API adead_status adead_chain_compile(const adead_chain *chain, adead_compiled **out);

/// Runs a chain without inputs once: its `count` outputs. What it was compiled to serves the next one with the same operations
/// and shapes, whatever its constants.
ADEAD_API
adead_status adead_chain_execute(const adead_chain *chain,
                                 adead_tensor **outputs,
                                 size_t count);

/// Gives up what a chain was compiled to; NULL is fine.
ADEAD_API void adead_compiled_destroy(adead_compiled *compiled);

/// Runs it with its `input_count` inputs: its `output_count` outputs.
ADEAD_API
adead_status adead_compiled_run(const adead_compiled *compiled,
                                const adead_tensor *const *inputs,
                                size_t input_count,
                                adead_tensor **outputs,
                                size_t output_count);

/// What it is. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_compiled_describe(const adead_compiled *compiled, adead_compiled_info *out);

/// The plan as a text, a line for each step. It belongs to `compiled` and goes with it.
ADEAD_API adead_status adead_compiled_text(const adead_compiled *compiled, const char **out);

/// The plan as a graph in the DOT language, which Graphviz draws. It belongs to `compiled` and goes with it.
ADEAD_API adead_status adead_compiled_dot(const adead_compiled *compiled, const char **out);

/// How the context's cache of what `adead_chain_execute` compiled was used; `adead_context_trim` empties it. The caller sets
/// `out->struct_size`.
ADEAD_API
adead_status adead_chain_cache(const adead_context *context,
                               adead_cache_use *out);

/// `a + b`, element by element with NumPy's broadcasting. Operands f32, f16 or bf16, both the same.
ADEAD_API
adead_status adead_tensor_add(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// `a - b`, element by element with NumPy's broadcasting. Operands f32, f16 or bf16, both the same.
ADEAD_API
adead_status adead_tensor_sub(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// `a*b`, element by element with NumPy's broadcasting. Operands f32, f16 or bf16, both the same.
ADEAD_API
adead_status adead_tensor_mul(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// `a / b`, element by element with NumPy's broadcasting. Operands f32, f16 or bf16, both the same.
ADEAD_API
adead_status adead_tensor_div(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// The larger of a and b, element by element with NumPy's broadcasting; NaN wins, and -0 is below +0. Operands f32, f16 or bf16, both the same.
ADEAD_API
adead_status adead_tensor_maximum(const adead_context *context,
                                  const adead_tensor *a,
                                  const adead_tensor *b,
                                  adead_tensor **out);

/// The smaller of a and b, element by element with NumPy's broadcasting; NaN wins, and -0 is below +0. Operands f32, f16 or bf16, both the same.
ADEAD_API
adead_status adead_tensor_minimum(const adead_context *context,
                                  const adead_tensor *a,
                                  const adead_tensor *b,
                                  adead_tensor **out);

/// `a^b`, element by element with NumPy's broadcasting; NaN of a negative a unless b is an integer. Operands f32, f16 or bf16, both the same.
ADEAD_API
adead_status adead_tensor_pow(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// Whether a equals b, element by element with NumPy's broadcasting; NaN equals nothing, and -0 equals +0. Operands of one dtype, any; the result is bool.
ADEAD_API
adead_status adead_tensor_equal(const adead_context *context,
                                const adead_tensor *a,
                                const adead_tensor *b,
                                adead_tensor **out);

/// Whether a does not equal b, element by element with NumPy's broadcasting; true of NaN. Operands of one dtype, any; the result is bool.
ADEAD_API
adead_status adead_tensor_not_equal(const adead_context *context,
                                    const adead_tensor *a,
                                    const adead_tensor *b,
                                    adead_tensor **out);

/// Whether a is below b, element by element with NumPy's broadcasting; false of NaN. Operands of one dtype, any; the result is bool.
ADEAD_API
adead_status adead_tensor_less(const adead_context *context,
                               const adead_tensor *a,
                               const adead_tensor *b,
                               adead_tensor **out);

/// Whether a is below b or equals it, element by element with NumPy's broadcasting; false of NaN. Operands of one dtype, any; the result is bool.
ADEAD_API
adead_status adead_tensor_less_equal(const adead_context *context,
                                     const adead_tensor *a,
                                     const adead_tensor *b,
                                     adead_tensor **out);

/// Whether a is above b, element by element with NumPy's broadcasting; false of NaN. Operands of one dtype, any; the result is bool.
ADEAD_API
adead_status adead_tensor_greater(const adead_context *context,
                                  const adead_tensor *a,
                                  const adead_tensor *b,
                                  adead_tensor **out);

/// Whether a is above b or equals it, element by element with NumPy's broadcasting; false of NaN. Operands of one dtype, any; the result is bool.
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

/// The natural logarithm, element by element; NaN below 0.
ADEAD_API adead_status adead_tensor_log(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The square root, element by element; NaN below 0.
ADEAD_API adead_status adead_tensor_sqrt(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `1 / sqrt(x)`, element by element.
ADEAD_API adead_status adead_tensor_rsqrt(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `max(x, 0)`, element by element; NaN stays NaN.
ADEAD_API adead_status adead_tensor_relu(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `1 / (1 + e^-x)`, element by element.
ADEAD_API adead_status adead_tensor_sigmoid(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The hyperbolic tangent, element by element.
ADEAD_API adead_status adead_tensor_tanh(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The Gaussian error linear unit, by the error function or by tanh, element by element.
ADEAD_API
adead_status adead_tensor_gelu(const adead_context *context,
                               const adead_tensor *x,
                               adead_gelu_form form,
                               adead_tensor **out);

/// `x*sigmoid(x)`, element by element.
ADEAD_API adead_status adead_tensor_silu(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The largest integer that is not above x, element by element.
ADEAD_API adead_status adead_tensor_floor(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The nearest integer, element by element; ties go to the even one.
ADEAD_API adead_status adead_tensor_round(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The error function, element by element.
ADEAD_API adead_status adead_tensor_erf(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `minimum(maximum(x, min), max)`, element by element; NaN wins, and -0 is below +0.
ADEAD_API
adead_status adead_tensor_clamp(const adead_context *context,
                                const adead_tensor *x,
                                float min,
                                float max,
                                adead_tensor **out);

/// The sine of an angle in radians, element by element; NaN of an infinity.
ADEAD_API adead_status adead_tensor_sin(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// The cosine of an angle in radians, element by element; NaN of an infinity.
ADEAD_API adead_status adead_tensor_cos(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `log(1 + x)`, accurate near 0 too, element by element; NaN below -1.
ADEAD_API adead_status adead_tensor_log1p(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `e^x - 1`, accurate near 0 too, element by element.
ADEAD_API adead_status adead_tensor_expm1(const adead_context *context, const adead_tensor *x, adead_tensor **out);

/// `activation(alpha*(a*b) + beta*c + bias)`: a `[..., M, K]`, b `[..., K, N]`, result `[..., M, N]`, leading dimensions
/// broadcast. f32, f16 or bf16, all the same. `options` may be NULL: `a*b`. `shape_mismatch` names the dimensions that
/// don't fit.
ADEAD_API
adead_status adead_tensor_matmul(const adead_context *context,
                                 const adead_tensor *a,
                                 const adead_tensor *b,
                                 const adead_matmul_options *options,
                                 adead_tensor **out);

/// The inner product of two vectors `[K]`: a scalar.
ADEAD_API
adead_status adead_tensor_dot(const adead_context *context,
                              const adead_tensor *a,
                              const adead_tensor *b,
                              adead_tensor **out);

/// Scaled dot-product attention: q `[..., Hq, Sq, D]`, k `[..., Hkv, Sk, D]`, v `[..., Hkv, Sk, Dv]`, result
/// `[..., Hq, Sq, Dv]`. Rank 2 is one head. Hq is a multiple of Hkv, and query head h reads key and value head
/// h / (Hq / Hkv). f32, f16 or bf16, all the same. `options` may be NULL.
ADEAD_API
adead_status adead_tensor_attention(const adead_context *context,
                                    const adead_tensor *q,
                                    const adead_tensor *k,
                                    const adead_tensor *v,
                                    const adead_attention_options *options,
                                    adead_tensor **out);

/// `activation(x*w1 + b1)*w2 + b2`: x `[..., D]`, w1 `[D, H]`, b1 `[H]` or NULL, w2 `[H, E]`, b2 `[E]` or NULL, result
/// `[..., E]`. f32, f16 or bf16, all the same; between the products values stay f32.
ADEAD_API
adead_status adead_tensor_ffn(const adead_context *context,
                              const adead_tensor *x,
                              const adead_tensor *w1,
                              const adead_tensor *b1,
                              const adead_tensor *w2,
                              const adead_tensor *b2,
                              adead_activation activation,
                              adead_tensor **out);

/// Packs a matrix that is multiplied with many times: b is `[K, N]`, or `[N, K]` if `trans_b` is not 0; f32, f16 or
/// bf16. The packed matrix takes four bytes an element, and columns are rounded up to a multiple of 8, 16 or 32; b may
/// be given up. It is for the instruction set of the context. `shape_mismatch` unless b has two dimensions,
/// `dtype_mismatch` for integers.
ADEAD_API
adead_status adead_packed_create(const adead_context *context,
                                 const adead_tensor *b,
                                 int32_t trans_b,
                                 adead_packed **out);

/// Gives a packed matrix up; NULL is fine.
ADEAD_API void adead_packed_destroy(adead_packed *packed);

/// The dimensions K and N, two values, in this order however b was given. They belong to the packed matrix and go with
/// it.
ADEAD_API adead_status adead_packed_dims(const adead_packed *packed, const size_t **out);

/// The type of the elements of the matrix that was packed.
ADEAD_API adead_status adead_packed_dtype(const adead_packed *packed, adead_dtype *out);

/// Bytes of memory that the packed elements take.
ADEAD_API adead_status adead_packed_bytes(const adead_packed *packed, size_t *out);

/// `adead_tensor_matmul` with a packed b: the same result, and no time spent on packing. a is `[..., M, K]` of the dtype
/// that b had, result `[..., M, N]`; `options` may be NULL, and its `trans_b` is 0. `invalid_argument` if b was packed for
/// another instruction set than the context's.
ADEAD_API
adead_status adead_packed_matmul(const adead_context *context,
                                 const adead_tensor *a,
                                 const adead_packed *b,
                                 const adead_matmul_options *options,
                                 adead_tensor **out);

/// Opens a safetensors file. `io` if it can't be read, `invalid_argument` if it is no safetensors file.
ADEAD_API adead_status adead_safetensors_open(const char *path, adead_safetensors **out);

/// Closes a file; NULL is fine. Tensors and modules made from it stay.
ADEAD_API void adead_safetensors_close(adead_safetensors *file);

/// The number of tensors.
ADEAD_API adead_status adead_safetensors_count(const adead_safetensors *file, size_t *out);

/// The name of tensor `index`; names are sorted. It belongs to the file and goes with it. `invalid_argument` if there are
/// not so many.
ADEAD_API
adead_status adead_safetensors_name(const adead_safetensors *file,
                                    size_t index,
                                    const char **out);

/// Whether there is a tensor of that name: 1 or 0.
ADEAD_API adead_status adead_safetensors_contains(const adead_safetensors *file, const char *name, int32_t *out);

/// A tensor's dimensions and how many there are. They belong to the file and go with it. `invalid_argument` if there is no
/// tensor of that name.
ADEAD_API
adead_status adead_safetensors_dims(const adead_safetensors *file,
                                    const char *name,
                                    const size_t **dims,
                                    size_t *rank);

/// Reads a tensor as f32, f16 and bf16 widened. `invalid_argument` if there is none of that name, `shape_mismatch` if its
/// dimensions are others than these `rank`, `dtype_mismatch` if it has other elements, `io` if it can't be read.
ADEAD_API
adead_status adead_safetensors_tensor(const adead_safetensors *file,
                                      const char *name,
                                      const size_t *dims,
                                      size_t rank,
                                      adead_tensor **out);

/// Linear: `x*W^T + bias` of `[..., inputs]`, for a weight `[outputs, inputs]` and a bias `[outputs]`, which may be NULL. The
/// weight is packed once where its context has no GPU. `shape_mismatch` where they don't fit.
ADEAD_API
adead_status adead_module_linear(const adead_context *context,
                                 const adead_tensor *weight,
                                 const adead_tensor *bias,
                                 adead_module **out);

/// Embedding: rows of a table `[count, width]` by ids of any shape, i32, i64 or u32. `shape_mismatch` unless the table is a
/// matrix.
ADEAD_API
adead_status adead_module_embedding(const adead_context *context,
                                    const adead_tensor *table,
                                    adead_module **out);

/// Layer norm: mean and variance normalised over the last axis, times a weight, plus a bias, both `[width]`. `eps` is added
/// to the variance; the usual one is 1e-5.
ADEAD_API
adead_status adead_module_layer_norm(const adead_context *context,
                                     const adead_tensor *weight,
                                     const adead_tensor *bias,
                                     float eps,
                                     adead_module **out);

/// ReLU: max(x, 0).
ADEAD_API adead_status adead_module_relu(const adead_context *context, adead_module **out);

/// GELU: the Gaussian error linear unit, in its form with erf or with tanh, one of `ADEAD_GELU_...`.
ADEAD_API adead_status adead_module_gelu(const adead_context *context, adead_gelu_form form, adead_module **out);

/// Sequential: `count` modules of which each takes the result of the one before. With none it returns what it is given.
ADEAD_API adead_status adead_module_sequential(const adead_module *const *modules, size_t count, adead_module **out);

/// Feed-forward: `activation(x*W1^T + b1)*W2^T + b2`, of two linear layers. `shape_mismatch` where the second does not take
/// what the first returns.
ADEAD_API
adead_status adead_module_feed_forward(const adead_module *inner,
                                       const adead_module *outer,
                                       adead_activation activation,
                                       adead_module **out);

/// Self-attention, of a linear layer that returns queries, keys and values behind each other, and the output's.
/// `shape_mismatch` where they don't fit each other, `invalid_argument` unless `heads` divides the width. It takes sequences
/// `[count, length, width]`, or the one that `[length, width]` is.
ADEAD_API
adead_status adead_module_attention(const adead_module *qkv,
                                    const adead_module *output,
                                    size_t heads,
                                    adead_module **out);

/// A transformer layer that is normalised behind each part, as BERT's are: `h = norm(x + attention(x))`, then
/// `norm(h + feed_forward(h))`. `invalid_argument` where a part is of another kind.
ADEAD_API
adead_status adead_module_transformer_layer(const adead_module *attention,
                                            const adead_module *attention_norm,
                                            const adead_module *feed_forward,
                                            const adead_module *output_norm,
                                            adead_module **out);

/// A transformer encoder: `count` transformer layers one after another. A sequence's rows have the same bits alone, among
/// others, and padded.
ADEAD_API
adead_status adead_module_transformer_encoder(const adead_module *const *layers,
                                              size_t count,
                                              adead_module **out);

/// A module with weights from a file: linear and layer norm have `PREFIX.weight` and `PREFIX.bias`, an embedding
/// `PREFIX.weight`, a transformer layer BERT's names, `PREFIX.attention.self.query.weight` and so on. The errors are those of
/// `adead_safetensors_tensor` and of the function that makes this kind of its tensors.
ADEAD_API
adead_status adead_module_load(const adead_context *context,
                               const adead_safetensors *file,
                               const char *prefix,
                               const adead_module_options *options,
                               adead_module **out);

/// Gives a module up; NULL is fine. Modules that were made of it stay.
ADEAD_API void adead_module_destroy(adead_module *module);

/// What a module is. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_module_describe(const adead_module *module, adead_module_info *out);

/// A module's result for x, on the devices of its context. `options` may be NULL. The errors are those of its operations,
/// and `invalid_argument` for options that this kind of module does not take.
ADEAD_API
adead_status adead_module_forward(const adead_module *module,
                                  const adead_tensor *x,
                                  const adead_forward_options *options,
                                  adead_tensor **out);

/// The sum along axes or of all; of nothing +0.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps the axis as 1.
/// For several axes at once set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_sum(const adead_context *context,
                              const adead_tensor *x,
                              int32_t axis,
                              int32_t keepdim,
                              adead_tensor **out);

/// The mean along axes or of all; of nothing NaN.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps the axis as 1.
/// For several axes at once set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_mean(const adead_context *context,
                               const adead_tensor *x,
                               int32_t axis,
                               int32_t keepdim,
                               adead_tensor **out);

/// The maximum along axes or of all; NaN wins. `invalid_argument` of nothing.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps the axis as 1.
/// For several axes at once set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_max(const adead_context *context,
                              const adead_tensor *x,
                              int32_t axis,
                              int32_t keepdim,
                              adead_tensor **out);

/// The lowest index of the maximum. `invalid_argument` of nothing.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps the axis as 1.
/// The index is of type `dtype`: i64, i32 or u32.
ADEAD_API
adead_status adead_tensor_argmax(const adead_context *context,
                                 const adead_tensor *x,
                                 int32_t axis,
                                 int32_t keepdim,
                                 adead_dtype dtype,
                                 adead_tensor **out);

/// The minimum along axes or of all; NaN wins. `invalid_argument` of nothing.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps the axis as 1.
/// For several axes at once set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_min(const adead_context *context,
                              const adead_tensor *x,
                              int32_t axis,
                              int32_t keepdim,
                              adead_tensor **out);

/// The lowest index of the minimum. `invalid_argument` of nothing.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps the axis as 1.
/// The index is of type `dtype`: i64, i32 or u32.
ADEAD_API
adead_status adead_tensor_argmin(const adead_context *context,
                                 const adead_tensor *x,
                                 int32_t axis,
                                 int32_t keepdim,
                                 adead_dtype dtype,
                                 adead_tensor **out);

/// The product along axes or of all; of nothing 1.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps the axis as 1.
/// For several axes at once set the attribute `axes` and call `adead_op_run`.
ADEAD_API
adead_status adead_tensor_prod(const adead_context *context,
                               const adead_tensor *x,
                               int32_t axis,
                               int32_t keepdim,
                               adead_tensor **out);

/// `e^x` over its sum, along an axis (negative ones count from the end). Rank 1 or more.
ADEAD_API
adead_status adead_tensor_softmax(const adead_context *context,
                                  const adead_tensor *x,
                                  int32_t axis,
                                  adead_tensor **out);

/// `(x - mean) / sqrt(variance + eps)*gamma + beta` over the last axis: x `[..., N]`, gamma and beta `[N]` or NULL. The
/// usual eps is 1e-5.
ADEAD_API
adead_status adead_tensor_layernorm(const adead_context *context,
                                    const adead_tensor *x,
                                    const adead_tensor *gamma,
                                    const adead_tensor *beta,
                                    float eps,
                                    adead_tensor **out);

/// `adead_tensor_layernorm` of x + residual, two tensors of one shape: the bits are those of `adead_tensor_add` followed by it.
ADEAD_API
adead_status adead_tensor_add_layernorm(const adead_context *context,
                                        const adead_tensor *x,
                                        const adead_tensor *residual,
                                        const adead_tensor *gamma,
                                        const adead_tensor *beta,
                                        float eps,
                                        adead_tensor **out);

/// `x / sqrt(mean(x^2) + eps)*gamma` over the last axis: x `[..., N]`, gamma `[N]` or NULL. The usual eps is 1e-5.
ADEAD_API
adead_status adead_tensor_rmsnorm(const adead_context *context,
                                  const adead_tensor *x,
                                  const adead_tensor *gamma,
                                  float eps,
                                  adead_tensor **out);

/// `adead_tensor_rmsnorm` of x + residual, two tensors of one shape: the bits are those of `adead_tensor_add` followed by it.
ADEAD_API
adead_status adead_tensor_add_rmsnorm(const adead_context *context,
                                      const adead_tensor *x,
                                      const adead_tensor *residual,
                                      const adead_tensor *gamma,
                                      float eps,
                                      adead_tensor **out);

/// Pairs of elements of x's last axis, turned by angles: (a, b) becomes `(a*cos - b*sin, b*cos + a*sin)`. A pair is element i of each
/// half or, if `interleaved` is not 0, elements 2i and 2i + 1. cos and sin have one shape, which broadcasts to x's with the last
/// dimension halved: such as `[S, D/2]` for x `[B, H, S, D]`.
ADEAD_API
adead_status adead_tensor_rope(const adead_context *context,
                               const adead_tensor *x,
                               const adead_tensor *cos,
                               const adead_tensor *sin,
                               int32_t interleaved,
                               adead_tensor **out);

/// The sums of an axis's elements up to each (a negative axis counts from the end). Rank 1 or more.
ADEAD_API
adead_status adead_tensor_cumsum(const adead_context *context,
                                 const adead_tensor *x,
                                 int32_t axis,
                                 adead_tensor **out);

/// The k greatest elements along an axis (a negative one counts from the end), the greatest first, in the order of `adead_tensor_max`:
/// NaN comes first, and of equals the one with the lower index. `invalid_argument` if the axis has fewer than k.
ADEAD_API
adead_status adead_tensor_topk(const adead_context *context,
                               const adead_tensor *x,
                               uint32_t k,
                               int32_t axis,
                               adead_tensor **out);

/// The indices of what `adead_tensor_topk` gives, of type `dtype`: i64, i32 or u32.
ADEAD_API
adead_status adead_tensor_argtopk(const adead_context *context,
                                  const adead_tensor *x,
                                  uint32_t k,
                                  int32_t axis,
                                  adead_dtype dtype,
                                  adead_tensor **out);

/// Rows of a table by id: table `[V, ...]` of any dtype, ids of any shape, i32, i64 or u32; result
/// `[ids..., the table's row...]`. `invalid_argument` names the position of an id below 0 or not below V.
ADEAD_API
adead_status adead_tensor_embedding(const adead_context *context,
                                    const adead_tensor *table,
                                    const adead_tensor *ids,
                                    adead_tensor **out);

/// The axes in another order: axis i of the result is axis `perm[i]` of x, `rank` of them. `perm` NULL (with rank 0)
/// reverses them.
ADEAD_API
adead_status adead_tensor_transpose(const adead_context *context,
                                    const adead_tensor *x,
                                    const int32_t *perm,
                                    size_t rank,
                                    adead_tensor **out);

/// `count` tensors, one or more, joined along an axis (negative ones count from the end). One dtype, one rank, and
/// dimensions that differ only there.
ADEAD_API
adead_status adead_tensor_concat(const adead_context *context,
                                 const adead_tensor *const *tensors,
                                 size_t count,
                                 int32_t axis,
                                 adead_tensor **out);

/// Every axis of x from `start[i]` to before `stop[i]`, by steps of `step[i]`, for the first `rank` axes. Negative starts and stops
/// count from the end; those outside an axis are its ends. `step` NULL: every step is 1; `start` NULL: 0; `stop` NULL: the ends.
ADEAD_API
adead_status adead_tensor_slice(const adead_context *context,
                                const adead_tensor *x,
                                const int32_t *start,
                                const int32_t *stop,
                                const int32_t *step,
                                size_t rank,
                                adead_tensor **out);

/// x with `before[i]` elements before and `after[i]` behind axis i, for the first `rank` axes: those of `value`, a tensor of x's dtype
/// with one element. `before` or `after` NULL: none.
ADEAD_API
adead_status adead_tensor_pad(const adead_context *context,
                              const adead_tensor *x,
                              const adead_tensor *value,
                              const int32_t *before,
                              const int32_t *after,
                              size_t rank,
                              adead_tensor **out);

/// Elements of x along an axis (negative ones count from the end) by index: ids are i32, i64 or u32 and have x's shape but for the
/// axis; the result has theirs. `invalid_argument` names the position of an id below 0 or not below the axis's size.
ADEAD_API
adead_status adead_tensor_gather(const adead_context *context,
                                 const adead_tensor *x,
                                 const adead_tensor *ids,
                                 int32_t axis,
                                 adead_tensor **out);

/// Elements of a where the condition is true, and of b elsewhere, with NumPy's broadcasting. The condition is bool, a and b are of
/// one dtype, which may be any.
ADEAD_API
adead_status adead_tensor_where(const adead_context *context,
                                const adead_tensor *condition,
                                const adead_tensor *a,
                                const adead_tensor *b,
                                adead_tensor **out);

/// Another dtype. Floats widen exactly and narrow to nearest even; floats become integers towards zero, saturated, NaN
/// as 0; integers keep their low bits; what is not 0, NaN among it, is true as a bool.
ADEAD_API
adead_status adead_tensor_cast(const adead_context *context,
                               const adead_tensor *x,
                               adead_dtype dtype,
                               adead_tensor **out);

/// Decodes an .adead file, an AGPU binary, an AHYB file, .hex text or program text: which one, the bytes say.
/// `invalid_program` with the offset where they are malformed. What instructions mean is checked by
/// `adead_program_validate`. docs/program-format.md has the formats.
ADEAD_API adead_status adead_program_decode(const void *data, size_t bytes, adead_program **out);

/// Decodes a file. `io` if it can't be read.
ADEAD_API adead_status adead_program_load(const char *path, adead_program **out);

/// Assembles program text, ".adead 1" or ".agpu 1". `invalid_program` with the line where it is malformed.
ADEAD_API adead_status adead_program_assemble(const char *source, adead_program **out);

/// Gives a program up; NULL is fine.
ADEAD_API void adead_program_destroy(adead_program *program);

/// What the program was decoded from.
ADEAD_API adead_status adead_program_format(const adead_program *program, adead_format *out);

/// The number of instructions.
ADEAD_API adead_status adead_program_length(const adead_program *program, size_t *out);

/// The program as a file of `format`: .adead, AGPU, .hex or text, of `out_bytes` bytes at `out_data` with a NUL behind
/// them. They belong to the program and go with it. `unsupported` where a format has no words for it.
ADEAD_API
adead_status adead_program_encode(const adead_program *program,
                                  adead_format format,
                                  const void **out_data,
                                  size_t *out_bytes);

/// Text that `adead_program_assemble` makes this program of again. It belongs to the program and goes with it.
ADEAD_API adead_status adead_program_disassemble(const adead_program *program, const char **out);

/// How many things a user should know of the program: parts that were skipped, opcodes that do nothing.
ADEAD_API adead_status adead_program_note_count(const adead_program *program, size_t *out);

/// One of those. It belongs to the program and goes with it.
ADEAD_API adead_status adead_program_note_at(const adead_program *program, size_t index, const char **out);

/// The number of named inputs and outputs.
ADEAD_API adead_status adead_program_slot_count(const adead_program *program, size_t *out);

/// One of them. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_program_slot_at(const adead_program *program, size_t index, adead_slot *out);

/// Checks everything that can be without data, and gives the most bytes that registers, temporaries and outputs take at
/// once; `memory_limit` 0 is the default limit. `invalid_program` with the offset or line; `out_of_memory` above the
/// limit.
ADEAD_API adead_status adead_program_validate(const adead_program *program, size_t memory_limit, size_t *out);

/// Validates a program, binds `count` tensors to its slots by name and runs it. `options` may be NULL. If anything fails
/// there is no outcome, and nothing of the caller's has changed.
ADEAD_API
adead_status adead_program_run(const adead_context *context,
                               const adead_program *program,
                               const char *const *names,
                               const adead_tensor *const *tensors,
                               size_t count,
                               const adead_run_options *options,
                               adead_outcome **out);

/// Gives an outcome up; NULL is fine. Tensors taken from it stay.
ADEAD_API void adead_outcome_destroy(adead_outcome *outcome);

/// The output of that name, as a handle of the caller's. `invalid_argument` if there is none.
ADEAD_API adead_status adead_outcome_output(const adead_outcome *outcome, const char *name, adead_tensor **out);

/// The number of outputs.
ADEAD_API adead_status adead_outcome_output_count(const adead_outcome *outcome, size_t *out);

/// The name of output `index`, in the order of the program's slots. It belongs to the outcome and goes with it.
ADEAD_API adead_status adead_outcome_output_name(const adead_outcome *outcome, size_t index, const char **out);

/// The run in numbers. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_outcome_report(const adead_outcome *outcome, adead_outcome_stats *out);

/// The number of instructions that were traced: all of the program's.
ADEAD_API adead_status adead_outcome_trace_count(const adead_outcome *outcome, size_t *out);

/// What instruction `index` did. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_outcome_trace_at(const adead_outcome *outcome, size_t index, adead_trace *out);

/// An allocator of `blocks` blocks (0: 65536) of `block_size` bytes (0: 4096), a power of two from 64 bytes to 1 GiB.
/// Memory is used when it is first written. `out_of_memory` if the system refuses.
ADEAD_API adead_status adead_allocator_create(size_t block_size, size_t blocks, adead_allocator **out);

/// Gives an allocator and its memory up; NULL is fine.
ADEAD_API void adead_allocator_destroy(adead_allocator *allocator);

/// The offset of at least `bytes` bytes, a multiple of the block size; 0 bytes take one block. `out_of_memory` if no
/// free run of blocks is long enough.
ADEAD_API adead_status adead_allocator_alloc(adead_allocator *allocator, size_t bytes, size_t *out);

/// Gives back the allocation at `offset`. `invalid_argument`, and nothing changes, if none starts there.
ADEAD_API adead_status adead_allocator_free(adead_allocator *allocator, size_t offset);

/// Frees everything. What follows gets the offsets that a new allocator would give.
ADEAD_API adead_status adead_allocator_reset(adead_allocator *allocator);

/// The memory of the allocation at `offset`, until it is freed or the allocator reset or destroyed. Fresh memory is
/// zero, memory used again keeps its bytes. `invalid_argument` if none starts there.
ADEAD_API adead_status adead_allocator_pointer(const adead_allocator *allocator, size_t offset, void **out);

/// The bytes of the allocation at `offset`, a multiple of the block size. `invalid_argument` if none starts there.
ADEAD_API adead_status adead_allocator_size(const adead_allocator *allocator, size_t offset, size_t *out);

/// What the allocator has. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_allocator_report(const adead_allocator *allocator, adead_allocator_stats *out);

/// An arena of `bytes` bytes that grows to `limit` bytes at most. `bytes` 0: it takes 64 KiB when it is first used;
/// `limit` 0: no limit. With both the same it never grows. `invalid_argument` if `bytes` is above `limit`.
ADEAD_API adead_status adead_arena_create(size_t bytes, size_t limit, adead_arena **out);

/// Gives an arena and its memory up; NULL is fine.
ADEAD_API void adead_arena_destroy(adead_arena *arena);

/// `bytes` bytes on a multiple of `align`, a power of two up to 4096, until the arena is reset or destroyed. Fresh
/// memory is zero, memory used again keeps its bytes. `out_of_memory` at the limit or when the system has no more.
ADEAD_API adead_status adead_arena_alloc(adead_arena *arena, size_t bytes, size_t align, void **out);

/// Releases everything. The memory stays with the arena.
ADEAD_API adead_status adead_arena_reset(adead_arena *arena);

/// The bytes taken, padding between allocations included.
ADEAD_API adead_status adead_arena_used(const adead_arena *arena, size_t *out);

/// The bytes that the arena has from the system.
ADEAD_API adead_status adead_arena_capacity(const adead_arena *arena, size_t *out);

/// Tiles of `tile_size` by `tile_size` elements of `element` bytes, one after the other in row-major order, each
/// row-major within. Rows and columns are padded to multiples of `tile_size`.
ADEAD_API
adead_status adead_layout_optimize_matrix(size_t element,
                                          size_t rows,
                                          size_t cols,
                                          size_t tile_size,
                                          adead_layout **out);

/// Rows that begin at multiples of `alignment` bytes, a multiple of `element`.
ADEAD_API
adead_status adead_layout_align(size_t element,
                                size_t rows,
                                size_t cols,
                                size_t alignment,
                                adead_layout **out);

/// Elements that lie `stride` apart, side by side: structures of `stride` fields become an array of each field.
/// `invalid_argument` unless `elements` is a multiple of `stride`.
ADEAD_API adead_status adead_layout_coalesce(size_t element, size_t elements, size_t stride, adead_layout **out);

/// Morton (Z) order: bits of row and column alternate in an element's place, the column's first, and the higher bits of
/// the longer side are above them. Rows and columns are padded to powers of two.
ADEAD_API adead_status adead_layout_morton(size_t element, size_t rows, size_t cols, adead_layout **out);

/// Gives a layout up; NULL is fine.
ADEAD_API void adead_layout_destroy(adead_layout *layout);

/// Rows and columns as laid out, with the padding; of coalesced elements the fields and the structures.
ADEAD_API adead_status adead_layout_dims(const adead_layout *layout, size_t *out_rows, size_t *out_cols);

/// Bytes of the plain matrix, and as laid out with the padding.
ADEAD_API adead_status adead_layout_bytes(const adead_layout *layout, size_t *out_plain, size_t *out_arranged);

/// Arranges a plain matrix: `bytes` and `out_bytes` are what `adead_layout_bytes` says, else `shape_mismatch`. `data` and
/// `out` must not overlap.
ADEAD_API
adead_status adead_layout_arrange(const adead_layout *layout,
                                  const void *data,
                                  size_t bytes,
                                  void *out,
                                  size_t out_bytes);

/// Makes the plain matrix of an arranged one: the inverse of `adead_layout_arrange`. Padding is not looked at.
ADEAD_API
adead_status adead_layout_restore(const adead_layout *layout,
                                  const void *data,
                                  size_t bytes,
                                  void *out,
                                  size_t out_bytes);

/// Whether there is a GPU: 0 or 1. It is not opened.
ADEAD_API adead_status adead_flat_gpu_available(int32_t *out);

/// How many GPUs there are. They are numbered from 0, the preferred one first.
ADEAD_API adead_status adead_flat_device_count(int32_t *out);

/// What a device is reached through: "cpu" where `use_gpu` is 0, else "cuda" or "vulkan". The text stays.
ADEAD_API adead_status adead_flat_backend_name(int32_t use_gpu, int32_t device, const char **out);

/// A matrix of zeros, in the memory of GPU `device`, or of the CPU where `use_gpu` is 0 (`device` is then 0). `out_of_memory`
/// with the bytes asked and free, `backend_unavailable` where there is no such GPU.
ADEAD_API
adead_status adead_flat_alloc_zeros(int64_t rows,
                                    int64_t cols,
                                    int32_t use_gpu,
                                    int32_t device,
                                    adead_flat_handle *out);

/// The same of ones.
ADEAD_API
adead_status adead_flat_alloc_ones(int64_t rows,
                                   int64_t cols,
                                   int32_t use_gpu,
                                   int32_t device,
                                   adead_flat_handle *out);

/// The same with a copy of rows * cols values.
ADEAD_API
adead_status adead_flat_alloc_upload(const float *values,
                                     int64_t rows,
                                     int64_t cols,
                                     int32_t use_gpu,
                                     int32_t device,
                                     adead_flat_handle *out);

/// Frees a matrix. Work that was given to a stream before still has it.
ADEAD_API adead_status adead_flat_free(adead_flat_handle matrix);

/// The rows and columns of a matrix. Either pointer may be NULL.
ADEAD_API adead_status adead_flat_shape(adead_flat_handle matrix, int64_t *rows, int64_t *cols);

/// Where a matrix is. Either pointer may be NULL.
ADEAD_API adead_status adead_flat_device(adead_flat_handle matrix, int32_t *use_gpu, int32_t *device);

/// Copies `count` values to a matrix, behind everything that it is used in. `shape_mismatch` unless `count` is rows * cols.
ADEAD_API
adead_status adead_flat_upload(adead_flat_handle matrix,
                               const float *values,
                               int64_t count);

/// Waits for what computes a matrix and copies its `count` values to `values`. `shape_mismatch` as for uploads.
ADEAD_API adead_status adead_flat_download(adead_flat_handle matrix, float *values, int64_t count);

/// A copy of a matrix on another device, or on the same one.
ADEAD_API adead_status adead_flat_to(adead_flat_handle matrix, int32_t use_gpu, int32_t device, adead_flat_handle *out);

/// a times b: [m, k] and [k, n] give [m, n]. On the device where both are, on `stream`, or on the device's own where it is 0.
/// It returns when the work is enqueued.
ADEAD_API
adead_status adead_flat_matmul(adead_flat_handle a,
                               adead_flat_handle b,
                               adead_flat_handle stream,
                               adead_flat_handle *out);

/// Any operation of docs/operations.md by its name, into a matrix that is there: `count` operands in its order, 0 for an
/// optional one that is absent, and attributes as "name=value;name=value" or NULL. All are matrices of one device; `result` has
/// the shape that follows and is none of the operands. `stream` as for a product.
ADEAD_API
adead_status adead_flat_run(const char *op,
                            const adead_flat_handle *operands,
                            int32_t count,
                            const char *attrs,
                            adead_flat_handle stream,
                            adead_flat_handle result);

/// A stream: work given to it is done in order, beside that of other streams. A matrix that is used in another stream than
/// before waits for what the former has.
ADEAD_API
adead_status adead_flat_stream_create(int32_t use_gpu,
                                      int32_t device,
                                      adead_flat_handle *out);

/// Waits for all that a stream was given. The first error that the device found in it.
ADEAD_API adead_status adead_flat_stream_sync(adead_flat_handle stream);

/// Whether a stream has done all that it was given: 0 or 1.
ADEAD_API adead_status adead_flat_stream_query(adead_flat_handle stream, int32_t *out);

/// Waits for a stream and frees it.
ADEAD_API adead_status adead_flat_stream_destroy(adead_flat_handle stream);

/// Enqueues copies of `counts[i]` values at `values[i]` to `matrices[i]`, `batch` of them; the values are the caller's again
/// when it returns. Everything is checked before anything is enqueued.
ADEAD_API
adead_status adead_flat_async_upload_batch(adead_flat_handle stream,
                                           const adead_flat_handle *matrices,
                                           const float *const *values,
                                           const int64_t *counts,
                                           int32_t batch);

/// How many matrices and streams there are.
ADEAD_API adead_status adead_flat_count(int64_t *out);

/// Waits for all work, frees every matrix and stream and closes every device. Numbers from before are invalid.
ADEAD_API adead_status adead_flat_reset(void);

/// Memory for a batch of so many bytes, to be filled before `next` returns. It is used again for later batches and has what
/// they left. `out_of_memory` with the bytes.
ADEAD_API
adead_status adead_batch_memory(adead_batch *batch,
                                size_t bytes,
                                void **out);

/// A batch of bytes that the caller has. They must stay until `next` is asked again or its batches are given up; those given to a
/// loader until it is given up.
ADEAD_API
adead_status adead_batch_borrow(adead_batch *batch,
                                const void *data,
                                size_t bytes);

/// Takes batches through a device, at most `depth` at once, each on a stream of its own: it is uploaded, `work` enqueues work
/// on it, and what it names as its result is brought to the host and given to `take`. 1 is sequential, 2 double buffering, 3
/// triple buffering. `user` is passed to all three.
///
/// The results are those of a loop that does one batch after the other, whatever the depth: work of a batch begins when the
/// work of the batch before is done, so `work` may read and write buffers that all batches share. Uploads and downloads run
/// beside it. Everything is called in the caller's thread, results in the order of the batches, `next` only when fewer than
/// `depth` are under way.
///
/// What `next`, `work` or the device finds wrong with a batch is returned when the batches before it were given to `take`;
/// what `take` returns, at once. Then nothing more is started, what is under way is waited for, and everything is freed. The text
/// of the error says which callback failed for which batch, and what it was told last by this library. `invalid_argument`
/// unless the depth is from 1 to `ADEAD_OVERLAP_MAX_DEPTH`. As with all functions of batches and loaders, `unsupported` in a
/// library built with ADEAD_MINIMAL.
ADEAD_API
adead_status adead_overlap(const adead_context *context,
                           size_t depth,
                           adead_next next,
                           adead_work work,
                           adead_take take,
                           void *user);

/// The same without a `take`: its results are asked for one by one, by `adead_batches_next`.
ADEAD_API
adead_status adead_batches_create(const adead_context *context,
                                  size_t depth,
                                  adead_next next,
                                  adead_work work,
                                  void *user,
                                  adead_batches **out);

/// Starts batches while fewer than the depth are under way, and waits for the oldest: its index and its result, which stays
/// until the next call. Where there is none any more, `data` is NULL. An error comes in its batch's place, once; then
/// there is none any more. Not from a callback of theirs.
ADEAD_API
adead_status adead_batches_next(adead_batches *batches,
                                size_t *index,
                                const void **data,
                                size_t *bytes);

/// Starts no more, waits for what is under way, and gives all of it up; NULL is fine. Not from a callback of theirs.
ADEAD_API void adead_batches_destroy(adead_batches *batches);

/// Of which batch: the first one is 0.
ADEAD_API size_t adead_stage_index(const adead_stage *stage);

/// The stream of the batch. Work on it finds the batch there.
ADEAD_API adead_stream *adead_stage_stream(const adead_stage *stage);

/// The batch on the device: a buffer of exactly its bytes.
ADEAD_API adead_buffer *adead_stage_input(const adead_stage *stage);

/// A buffer of so many bytes for results and intermediate values. The n-th call for a batch gives what the n-th call gave for
/// an earlier one, with what it had, if that had the same size; else a new one, zeroed. `out_of_memory` with the bytes asked
/// and free.
ADEAD_API
adead_status adead_stage_buffer(adead_stage *stage,
                                size_t bytes,
                                adead_buffer **out);

/// What comes to the host when the work is done: bytes of a buffer from an offset on. The last call counts; without one, a
/// result of no bytes says that the batch is done.
ADEAD_API
adead_status adead_stage_result(adead_stage *stage,
                                const adead_buffer *buffer,
                                size_t offset,
                                size_t bytes);

/// Starts a thread that asks `next` for batches, at most `ahead` before who takes them, counting the one that is being made.
/// `invalid_argument` unless `ahead` is at least 1, `io` where the system has no thread to give.
ADEAD_API
adead_status adead_loader_create(adead_next next,
                                 void *user,
                                 size_t ahead,
                                 adead_loader **out);

/// Waits for the next batch: its bytes, until the next call for this loader, and NULL when there is none any more. What
/// `next` returned in place of a batch is returned once, behind the batches before it; then there is none any more.
ADEAD_API adead_status adead_loader_next(adead_loader *loader, const void **data, size_t *bytes);

/// Stops the thread, waits for a batch that is just being made, and gives the loader up; NULL is fine. Not from its own
/// `next`.
ADEAD_API void adead_loader_destroy(adead_loader *loader);

/// Begins to record what a context and its streams do, in every thread: up to so many records, 0 for 65,536, and what is
/// beyond is only counted. `invalid_argument` while another profile of the context is under way. The context may be
/// closed before the profile. As with all functions of profiles, `unsupported` in a library built with ADEAD_MINIMAL.
ADEAD_API
adead_status adead_profile_begin(const adead_context *context,
                                 size_t records,
                                 adead_profile **out);

/// Ends it, and it can be asked for what it recorded. Waits for what the context enqueued; synchronise streams of your
/// own before. `invalid_argument` if it is finished already.
ADEAD_API adead_status adead_profile_finish(adead_profile *profile);

/// Gives a profile up; NULL is fine. One that is under way ends.
ADEAD_API void adead_profile_destroy(adead_profile *profile);

/// What was recorded, in numbers. `not_ready` while the profile is under way. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_profile_report(const adead_profile *profile, adead_profile_summary *out);

/// Record `index`, in the order in which the calls returned. `not_ready` while the profile is under way. The caller sets
/// `out->struct_size`.
ADEAD_API
adead_status adead_profile_record_at(const adead_profile *profile,
                                     size_t index,
                                     adead_profile_record *out);

/// Total `index`: what took longest is first. `not_ready` while the profile is under way. The caller sets
/// `out->struct_size`.
ADEAD_API adead_status adead_profile_total_at(const adead_profile *profile, size_t index, adead_profile_total *out);

/// Device `index` of those that worked. `not_ready` while the profile is under way. The caller sets `out->struct_size`.
ADEAD_API adead_status adead_profile_device_at(const adead_profile *profile, size_t index, adead_profile_device *out);

/// A table: a line for each kind of work, device and reason, what took longest first, and what the devices did. The text
/// belongs to the profile and goes with it. `not_ready` while the profile is under way.
ADEAD_API
adead_status adead_profile_table(const adead_profile *profile,
                                 const char **out);

/// All of it as JSON: an object with `ns`, `busy_ns`, `overlapped_ns`, `overlap`, `dropped` and the lists `devices`, `totals`
/// and `records`. The text belongs to the profile and goes with it. `not_ready` while the profile is under way.
ADEAD_API
adead_status adead_profile_json(const adead_profile *profile,
                                const char **out);

/// A trace in Chrome's format, for Perfetto and chrome://tracing. The text belongs to the profile and goes with it.
/// `not_ready` while the profile is under way.
ADEAD_API adead_status adead_profile_trace(const adead_profile *profile, const char **out);

/// Gives what the runtime tells of itself, from a level on, to a callback, with a pointer of the caller's; one for the
/// process, the last one that was given. NULL is none: then `ADEAD_LOG` or adead.toml say what is printed to stderr, and
/// `level` is not looked at. `unsupported` in a library built with ADEAD_MINIMAL.
///
/// The callback is called where a message comes from, by any thread, one call at a time, and not after this returns when
/// another one is given. It must return: no longjmp and no exception leaves it. It must not call adead, which may hold locks
/// of its own; `adead_log_set` there is `invalid_argument`.
ADEAD_API
adead_status adead_log_set(adead_log_level level,
                           adead_log_callback callback,
                           void *user);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADEAD_H */
