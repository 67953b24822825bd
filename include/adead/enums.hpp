// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
#ifndef ADEAD_ENUMS_HPP
#define ADEAD_ENUMS_HPP

#include <adead/base.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// The result of a call. The numbers never change.
enum class Status : adead_status {
  /// No error.
  ok = ADEAD_OK,
  /// An argument is out of range, missing or contradictory.
  invalid_argument = ADEAD_INVALID_ARGUMENT,
  /// Ranks or dimensions don't fit each other.
  shape_mismatch = ADEAD_SHAPE_MISMATCH,
  /// An element type is not accepted here, or two differ.
  dtype_mismatch = ADEAD_DTYPE_MISMATCH,
  /// Host or device memory ran out, or a limit that the caller set was exceeded.
  out_of_memory = ADEAD_OUT_OF_MEMORY,
  /// The device asked for is not on this machine, or its driver is missing.
  backend_unavailable = ADEAD_BACKEND_UNAVAILABLE,
  /// The device stopped responding. It stays lost.
  device_lost = ADEAD_DEVICE_LOST,
  /// A user kernel is malformed or was refused by the driver.
  invalid_kernel = ADEAD_INVALID_KERNEL,
  /// A program is malformed. The message has the offset.
  invalid_program = ADEAD_INVALID_PROGRAM,
  /// Well-formed, but this device or version does not support it.
  unsupported = ADEAD_UNSUPPORTED,
  /// The result is not ready yet.
  not_ready = ADEAD_NOT_READY,
  /// The operating system refused a file or a stream.
  io = ADEAD_IO,
  /// A fault in adead itself (a caught panic). Please report it.
  internal = ADEAD_INTERNAL,
};

/// Returns the name; NULL for an unknown number.
inline const char *name(Status value) noexcept {
  return adead_status_name(static_cast<adead_status>(value));
}

/// The type of elements.
enum class DType : adead_dtype {
  /// IEEE-754 binary32.
  f32 = ADEAD_DTYPE_F32,
  /// IEEE-754 binary16, storage only.
  f16 = ADEAD_DTYPE_F16,
  /// bfloat16, storage only.
  bf16 = ADEAD_DTYPE_BF16,
  /// 32-bit signed integer.
  i32 = ADEAD_DTYPE_I32,
  /// 64-bit signed integer.
  i64 = ADEAD_DTYPE_I64,
  /// 32-bit unsigned integer.
  u32 = ADEAD_DTYPE_U32,
  /// True or false, one byte each. Results are 0 or 1. Any byte other than 0 is read as true.
  bool_ = ADEAD_DTYPE_BOOL,
  /// 8-bit unsigned integer; the bytes of quantised matrices too.
  u8 = ADEAD_DTYPE_U8,
  /// IEEE-754 binary64, storage only, without arithmetic.
  f64 = ADEAD_DTYPE_F64,
};

/// Returns the name; NULL for an unknown number.
inline const char *name(DType value) noexcept {
  return adead_dtype_name(static_cast<adead_dtype>(value));
}

/// The operations. The numbers never change; new ones come last.
enum class Op : adead_op {
  /// `alpha*(a*b) + beta*c + bias`, then an activation.
  matmul = ADEAD_OP_MATMUL,
  /// The inner product of two vectors.
  dot = ADEAD_OP_DOT,
  /// `a + b`.
  add = ADEAD_OP_ADD,
  /// `a - b`.
  sub = ADEAD_OP_SUB,
  /// `a*b`, element by element.
  mul = ADEAD_OP_MUL,
  /// `a / b`.
  div = ADEAD_OP_DIV,
  /// `x*alpha`.
  scale = ADEAD_OP_SCALE,
  /// `-x`.
  neg = ADEAD_OP_NEG,
  /// `|x|`.
  abs = ADEAD_OP_ABS,
  /// `e^x`.
  exp = ADEAD_OP_EXP,
  /// The natural logarithm; NaN if x < 0.
  log = ADEAD_OP_LOG,
  /// The square root; NaN if x < 0.
  sqrt = ADEAD_OP_SQRT,
  /// `1 / sqrt(x)`.
  rsqrt = ADEAD_OP_RSQRT,
  /// `max(x, 0)`; NaN stays NaN.
  relu = ADEAD_OP_RELU,
  /// `1 / (1 + e^-x)`.
  sigmoid = ADEAD_OP_SIGMOID,
  /// The hyperbolic tangent.
  tanh = ADEAD_OP_TANH,
  /// The Gaussian error linear unit, with erf or tanh.
  gelu = ADEAD_OP_GELU,
  /// `x*sigmoid(x)`.
  silu = ADEAD_OP_SILU,
  /// `e^x` divided by its sum along an axis.
  softmax = ADEAD_OP_SOFTMAX,
  /// The sum over some or all axes; +0 for no elements.
  sum = ADEAD_OP_SUM,
  /// The mean over some or all axes; NaN for no elements.
  mean = ADEAD_OP_MEAN,
  /// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  max = ADEAD_OP_MAX,
  /// The index of the first maximum, i64. `invalid_argument` for no elements.
  argmax = ADEAD_OP_ARGMAX,
  /// Normalises mean and variance over the last axis, of x or x + residual.
  layernorm = ADEAD_OP_LAYERNORM,
  /// Normalises the root mean square over the last axis, of x or x + residual.
  rmsnorm = ADEAD_OP_RMSNORM,
  /// Scaled dot-product attention: values weighted by softmax.
  attention = ADEAD_OP_ATTENTION,
  /// Two matrix products with an activation between them.
  ffn = ADEAD_OP_FFN,
  /// Looks up rows of a table by id.
  embedding = ADEAD_OP_EMBEDDING,
  /// Permutes the axes.
  transpose = ADEAD_OP_TRANSPOSE,
  /// Joins tensors along an axis.
  concat = ADEAD_OP_CONCAT,
  /// Converts to another dtype.
  cast = ADEAD_OP_CAST,
  /// The largest integer <= x.
  floor = ADEAD_OP_FLOOR,
  /// The nearest integer; ties go to even.
  round = ADEAD_OP_ROUND,
  /// The error function.
  erf = ADEAD_OP_ERF,
  /// `minimum(maximum(x, min), max)`; NaN propagates, and -0 < +0.
  clamp = ADEAD_OP_CLAMP,
  /// The larger of a and b; NaN propagates, and -0 < +0.
  maximum = ADEAD_OP_MAXIMUM,
  /// The smaller of a and b; NaN propagates, and -0 < +0.
  minimum = ADEAD_OP_MINIMUM,
  /// The sine of x in radians; NaN if x is infinite.
  sin = ADEAD_OP_SIN,
  /// The cosine of x in radians; NaN if x is infinite.
  cos = ADEAD_OP_COS,
  /// `log(1 + x)`, also accurate near 0; NaN if x < -1.
  log1p = ADEAD_OP_LOG1P,
  /// `e^x - 1`, also accurate near 0.
  expm1 = ADEAD_OP_EXPM1,
  /// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
  pow = ADEAD_OP_POW,
  /// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
  min = ADEAD_OP_MIN,
  /// The index of the first minimum, i64. `invalid_argument` for no elements.
  argmin = ADEAD_OP_ARGMIN,
  /// The product over some or all axes; 1 for no elements.
  prod = ADEAD_OP_PROD,
  /// Slices every axis from a start to a stop, in steps.
  slice = ADEAD_OP_SLICE,
  /// Pads every axis with a value: before, after and between its elements.
  pad = ADEAD_OP_PAD,
  /// Gathers elements along an axis by index.
  gather = ADEAD_OP_GATHER,
  /// Rotates pairs of elements of the last axis by angles.
  rope = ADEAD_OP_ROPE,
  /// The cumulative sums along an axis.
  cumsum = ADEAD_OP_CUMSUM,
  /// The k greatest elements along an axis, greatest first; ties go to the lower index.
  topk = ADEAD_OP_TOPK,
  /// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
  argtopk = ADEAD_OP_ARGTOPK,
  /// Whether a equals b; NaN equals nothing, and -0 equals +0.
  equal = ADEAD_OP_EQUAL,
  /// Whether a differs from b; true for NaN.
  not_equal = ADEAD_OP_NOT_EQUAL,
  /// Whether `a < b`; false for NaN.
  less = ADEAD_OP_LESS,
  /// Whether `a <= b`; false for NaN.
  less_equal = ADEAD_OP_LESS_EQUAL,
  /// Whether `a > b`; false for NaN.
  greater = ADEAD_OP_GREATER,
  /// Whether `a >= b`; false for NaN.
  greater_equal = ADEAD_OP_GREATER_EQUAL,
  /// Selects from a where the condition is true, and from b elsewhere.
  where = ADEAD_OP_WHERE,
  /// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
  quantized_matmul = ADEAD_OP_QUANTIZED_MATMUL,
  /// Converts quantised blocks to f32.
  dequantize = ADEAD_OP_DEQUANTIZE,
};

/// Returns the name; NULL for an unknown number.
inline const char *name(Op value) noexcept {
  return adead_op_name(static_cast<adead_op>(value));
}

/// The function after a matrix product.
enum class Activation : adead_activation {
  /// Nothing.
  none = ADEAD_ACTIVATION_NONE,
  /// `relu`.
  relu = ADEAD_ACTIVATION_RELU,
  /// `sigmoid`.
  sigmoid = ADEAD_ACTIVATION_SIGMOID,
  /// `tanh`.
  tanh = ADEAD_ACTIVATION_TANH,
  /// `gelu_tanh`.
  gelu_tanh = ADEAD_ACTIVATION_GELU_TANH,
  /// `gelu_erf`.
  gelu_erf = ADEAD_ACTIVATION_GELU_ERF,
  /// `silu`.
  silu = ADEAD_ACTIVATION_SILU,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(Activation value) noexcept {
  switch (value) {
    case Activation::none: return "none";
    case Activation::relu: return "relu";
    case Activation::sigmoid: return "sigmoid";
    case Activation::tanh: return "tanh";
    case Activation::gelu_tanh: return "gelu_tanh";
    case Activation::gelu_erf: return "gelu_erf";
    case Activation::silu: return "silu";
  }
  return nullptr;
}

/// The precision of a matrix product.
enum class Precision : adead_precision {
  /// In chains of fused multiply-adds of f32.
  f32 = ADEAD_PRECISION_F32,
  /// In exact integers, of operands cut to 24 bits.
  fixed24 = ADEAD_PRECISION_FIXED24,
  /// In exact integers, of operands cut to 16 bits.
  fixed16 = ADEAD_PRECISION_FIXED16,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(Precision value) noexcept {
  switch (value) {
    case Precision::f32: return "f32";
    case Precision::fixed24: return "fixed24";
    case Precision::fixed16: return "fixed16";
  }
  return nullptr;
}

/// How the elements of a quantised matrix are stored.
enum class BlockFormat : adead_block_format {
  /// 32 elements of 8 bits, one scale: 34 bytes.
  q8_0 = ADEAD_BLOCK_FORMAT_Q8_0,
  /// 32 elements of 4 bits, one scale: 18 bytes.
  q4_0 = ADEAD_BLOCK_FORMAT_Q4_0,
  /// 32 elements of 4 bits, a scale and a minimum: 20 bytes.
  q4_1 = ADEAD_BLOCK_FORMAT_Q4_1,
  /// 32 elements of 5 bits, one scale: 22 bytes.
  q5_0 = ADEAD_BLOCK_FORMAT_Q5_0,
  /// 32 elements of 5 bits, a scale and a minimum: 24 bytes.
  q5_1 = ADEAD_BLOCK_FORMAT_Q5_1,
  /// 256 elements of 4 bits, a scale and a minimum for each 32: 144 bytes.
  q4_k = ADEAD_BLOCK_FORMAT_Q4_K,
  /// 256 elements of 5 bits, a scale and a minimum for each 32: 176 bytes.
  q5_k = ADEAD_BLOCK_FORMAT_Q5_K,
  /// 256 elements of 6 bits, a scale for each 16: 210 bytes.
  q6_k = ADEAD_BLOCK_FORMAT_Q6_K,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(BlockFormat value) noexcept {
  switch (value) {
    case BlockFormat::q8_0: return "q8_0";
    case BlockFormat::q4_0: return "q4_0";
    case BlockFormat::q4_1: return "q4_1";
    case BlockFormat::q5_0: return "q5_0";
    case BlockFormat::q5_1: return "q5_1";
    case BlockFormat::q4_k: return "q4_k";
    case BlockFormat::q5_k: return "q5_k";
    case BlockFormat::q6_k: return "q6_k";
  }
  return nullptr;
}

/// The form of gelu.
enum class GeluForm : adead_gelu_form {
  /// By the error function.
  erf = ADEAD_GELU_ERF,
  /// By tanh.
  tanh = ADEAD_GELU_TANH,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(GeluForm value) noexcept {
  switch (value) {
    case GeluForm::erf: return "erf";
    case GeluForm::tanh: return "tanh";
  }
  return nullptr;
}

/// The priority of a stream.
enum class Priority : adead_priority {
  /// The default.
  normal = ADEAD_PRIORITY_NORMAL,
  /// Starts before other streams' work: for short, urgent work beside long work.
  high = ADEAD_PRIORITY_HIGH,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(Priority value) noexcept {
  switch (value) {
    case Priority::normal: return "normal";
    case Priority::high: return "high";
  }
  return nullptr;
}

/// How a device keeps the arithmetic contract.
enum class ContractLevel : adead_contract_level {
  /// The device's own instructions give the contract's bits.
  native = ADEAD_CONTRACT_NATIVE,
  /// Some primitive is composed of others: exact, but slower.
  emulated = ADEAD_CONTRACT_EMULATED,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(ContractLevel value) noexcept {
  switch (value) {
    case ContractLevel::native: return "native";
    case ContractLevel::emulated: return "emulated";
  }
  return nullptr;
}

/// The kind of a device.
enum class DeviceKind : adead_device_kind {
  /// The processor, with the host's memory.
  cpu = ADEAD_KIND_CPU,
  /// A GPU with its own memory, behind a bus.
  discrete = ADEAD_KIND_DISCRETE,
  /// A GPU in the processor, which shares the host's memory.
  integrated = ADEAD_KIND_INTEGRATED,
  /// A GPU, or a part of one, that a hypervisor provides.
  virtual_ = ADEAD_KIND_VIRTUAL,
  /// A GPU that a program on the processor emulates.
  software = ADEAD_KIND_SOFTWARE,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(DeviceKind value) noexcept {
  switch (value) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::discrete: return "discrete";
    case DeviceKind::integrated: return "integrated";
    case DeviceKind::virtual_: return "virtual";
    case DeviceKind::software: return "software";
  }
  return nullptr;
}

/// Where work should run.
enum class Mode : adead_mode {
  /// On the processor: no GPU, or one with less than 2 GB.
  cpu = ADEAD_MODE_CPU,
  /// On both: a GPU with 2 to 4 GB.
  hybrid = ADEAD_MODE_HYBRID,
  /// On the GPU: one with 4 GB or more.
  gpu = ADEAD_MODE_GPU,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(Mode value) noexcept {
  switch (value) {
    case Mode::cpu: return "cpu";
    case Mode::hybrid: return "hybrid";
    case Mode::gpu: return "gpu";
  }
  return nullptr;
}

/// Operations with similar costs.
enum class Family : adead_family {
  /// Matrix products: matmul, ffn.
  matmul = ADEAD_FAMILY_MATMUL,
  /// attention.
  attention = ADEAD_FAMILY_ATTENTION,
  /// A few instructions for each element: add, mul, relu, cast.
  elementwise = ADEAD_FAMILY_ELEMENTWISE,
  /// A polynomial for each element: exp, log, tanh, sigmoid, gelu.
  function = ADEAD_FAMILY_FUNCTION,
  /// Along an axis: sum, max, dot, softmax, the norms.
  reduction = ADEAD_FAMILY_REDUCTION,
  /// No arithmetic: transpose, concat, embedding.
  move = ADEAD_FAMILY_MOVE,
};

/// Returns the name; NULL for an unknown number.
inline const char *name(Family value) noexcept {
  return adead_family_name(static_cast<adead_family>(value));
}

/// The format of a program.
enum class Format : adead_format {
  /// adead's own container.
  adead = ADEAD_FORMAT_ADEAD,
  /// An AGPU binary.
  agpu = ADEAD_FORMAT_AGPU,
  /// AGPU instructions as hexadecimal text.
  hex = ADEAD_FORMAT_HEX,
  /// The hybrid container. Only its AGPU program is used.
  ahyb = ADEAD_FORMAT_AHYB,
  /// Assembler text.
  text = ADEAD_FORMAT_TEXT,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(Format value) noexcept {
  switch (value) {
    case Format::adead: return "adead";
    case Format::agpu: return "agpu";
    case Format::hex: return "hex";
    case Format::ahyb: return "ahyb";
    case Format::text: return "text";
  }
  return nullptr;
}

/// The direction of a slot's contents.
enum class Direction : adead_direction {
  /// The caller supplies it.
  in = ADEAD_DIRECTION_IN,
  /// The program produces it.
  out = ADEAD_DIRECTION_OUT,
  /// Both.
  both = ADEAD_DIRECTION_BOTH,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(Direction value) noexcept {
  switch (value) {
    case Direction::in: return "in";
    case Direction::out: return "out";
    case Direction::both: return "both";
  }
  return nullptr;
}

/// The kind of work in a profile.
enum class Activity : adead_activity {
  /// An operation of the op table.
  operation = ADEAD_ACTIVITY_OPERATION,
  /// A user's kernel.
  kernel = ADEAD_ACTIVITY_KERNEL,
  /// A replay of a recording.
  replay = ADEAD_ACTIVITY_REPLAY,
  /// A transfer from the host to a device.
  upload = ADEAD_ACTIVITY_UPLOAD,
  /// A transfer from a device to the host.
  download = ADEAD_ACTIVITY_DOWNLOAD,
  /// A copy from one buffer of a device to another.
  copy = ADEAD_ACTIVITY_COPY,
  /// Setting bytes of a buffer to zero.
  clear = ADEAD_ACTIVITY_CLEAR,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(Activity value) noexcept {
  switch (value) {
    case Activity::operation: return "operation";
    case Activity::kernel: return "kernel";
    case Activity::replay: return "replay";
    case Activity::upload: return "upload";
    case Activity::download: return "download";
    case Activity::copy: return "copy";
    case Activity::clear: return "clear";
  }
  return nullptr;
}

/// The severity of a message.
enum class LogLevel : adead_log_level {
  /// Nothing.
  off = ADEAD_LOG_OFF,
  /// Something was lost, such as a device.
  error = ADEAD_LOG_ERROR,
  /// Something can't be used or is ignored, and why.
  warn = ADEAD_LOG_WARN,
  /// Devices that were found and opened.
  info = ADEAD_LOG_INFO,
  /// Everything read, compiled or set.
  debug = ADEAD_LOG_DEBUG,
  /// The steps of single calls.
  trace = ADEAD_LOG_TRACE,
};

/// Returns the name; NULL for an unknown number.
constexpr const char *name(LogLevel value) noexcept {
  switch (value) {
    case LogLevel::off: return "off";
    case LogLevel::error: return "error";
    case LogLevel::warn: return "warn";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
    case LogLevel::trace: return "trace";
  }
  return nullptr;
}

/// Why a call failed: a status and the library's text. Calls throw the class of the status. Without exceptions,
/// they return this in a Result.
class Error : public std::runtime_error {
 public:
  Error(Status status, const char *text) : std::runtime_error(text), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// An argument is out of range, missing or contradictory.
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const char *text) : Error(Status::invalid_argument, text) {}
};

/// Ranks or dimensions don't fit each other.
class ShapeMismatch : public Error {
 public:
  explicit ShapeMismatch(const char *text) : Error(Status::shape_mismatch, text) {}
};

/// An element type is not accepted here, or two differ.
class DtypeMismatch : public Error {
 public:
  explicit DtypeMismatch(const char *text) : Error(Status::dtype_mismatch, text) {}
};

/// Host or device memory ran out, or a limit that the caller set was exceeded.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const char *text) : Error(Status::out_of_memory, text) {}
};

/// The device asked for is not on this machine, or its driver is missing.
class BackendUnavailable : public Error {
 public:
  explicit BackendUnavailable(const char *text) : Error(Status::backend_unavailable, text) {}
};

/// The device stopped responding. It stays lost.
class DeviceLost : public Error {
 public:
  explicit DeviceLost(const char *text) : Error(Status::device_lost, text) {}
};

/// A user kernel is malformed or was refused by the driver.
class InvalidKernel : public Error {
 public:
  explicit InvalidKernel(const char *text) : Error(Status::invalid_kernel, text) {}
};

/// A program is malformed. The message has the offset.
class InvalidProgram : public Error {
 public:
  explicit InvalidProgram(const char *text) : Error(Status::invalid_program, text) {}
};

/// Well-formed, but this device or version does not support it.
class Unsupported : public Error {
 public:
  explicit Unsupported(const char *text) : Error(Status::unsupported, text) {}
};

/// The result is not ready yet.
class NotReady : public Error {
 public:
  explicit NotReady(const char *text) : Error(Status::not_ready, text) {}
};

/// The operating system refused a file or a stream.
class Io : public Error {
 public:
  explicit Io(const char *text) : Error(Status::io, text) {}
};

/// A fault in adead itself (a caught panic). Please report it.
class Internal : public Error {
 public:
  explicit Internal(const char *text) : Error(Status::internal, text) {}
};

#ifndef ADEAD_NO_EXCEPTIONS
namespace detail {
[[noreturn]] inline void raise(adead_status status, const char *text) {
  switch (static_cast<Status>(status)) {
    case Status::ok: break;
    case Status::invalid_argument: throw InvalidArgument(text);
    case Status::shape_mismatch: throw ShapeMismatch(text);
    case Status::dtype_mismatch: throw DtypeMismatch(text);
    case Status::out_of_memory: throw OutOfMemory(text);
    case Status::backend_unavailable: throw BackendUnavailable(text);
    case Status::device_lost: throw DeviceLost(text);
    case Status::invalid_kernel: throw InvalidKernel(text);
    case Status::invalid_program: throw InvalidProgram(text);
    case Status::unsupported: throw Unsupported(text);
    case Status::not_ready: throw NotReady(text);
    case Status::io: throw Io(text);
    case Status::internal: throw Internal(text);
  }
  throw Error(static_cast<Status>(status), text);
}
}  // namespace detail
#endif

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
