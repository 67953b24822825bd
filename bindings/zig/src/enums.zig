// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
const c = @import("c");
const failure = @import("failure.zig");

/// The result of a call. The numbers never change.
pub const Status = enum(c.adead_status) {
    /// No error.
    ok = c.ADEAD_OK,
    /// An argument is out of range, missing or contradictory.
    invalid_argument = c.ADEAD_INVALID_ARGUMENT,
    /// Ranks or dimensions don't fit each other.
    shape_mismatch = c.ADEAD_SHAPE_MISMATCH,
    /// An element type is not accepted here, or two differ.
    dtype_mismatch = c.ADEAD_DTYPE_MISMATCH,
    /// Host or device memory ran out, or a limit that the caller set was exceeded.
    out_of_memory = c.ADEAD_OUT_OF_MEMORY,
    /// The device asked for is not on this machine, or its driver is missing.
    backend_unavailable = c.ADEAD_BACKEND_UNAVAILABLE,
    /// The device stopped responding. It stays lost.
    device_lost = c.ADEAD_DEVICE_LOST,
    /// A user kernel is malformed or was refused by the driver.
    invalid_kernel = c.ADEAD_INVALID_KERNEL,
    /// A program is malformed. The message has the offset.
    invalid_program = c.ADEAD_INVALID_PROGRAM,
    /// Well-formed, but this device or version does not support it.
    unsupported = c.ADEAD_UNSUPPORTED,
    /// The result is not ready yet.
    not_ready = c.ADEAD_NOT_READY,
    /// The operating system refused a file or a stream.
    io = c.ADEAD_IO,
    /// A fault in adead itself (a caught panic). Please report it.
    internal = c.ADEAD_INTERNAL,
    _,
};

/// The type of elements.
pub const DType = enum(c.adead_dtype) {
    /// IEEE-754 binary32.
    f32 = c.ADEAD_DTYPE_F32,
    /// IEEE-754 binary16, storage only.
    f16 = c.ADEAD_DTYPE_F16,
    /// bfloat16, storage only.
    bf16 = c.ADEAD_DTYPE_BF16,
    /// 32-bit signed integer.
    i32 = c.ADEAD_DTYPE_I32,
    /// 64-bit signed integer.
    i64 = c.ADEAD_DTYPE_I64,
    /// 32-bit unsigned integer.
    u32 = c.ADEAD_DTYPE_U32,
    /// True or false, one byte each. Results are 0 or 1. Any byte other than 0 is read as true.
    bool = c.ADEAD_DTYPE_BOOL,
    /// 8-bit unsigned integer; the bytes of quantised matrices too.
    u8 = c.ADEAD_DTYPE_U8,
    /// IEEE-754 binary64, storage only, without arithmetic.
    f64 = c.ADEAD_DTYPE_F64,
    _,
};

/// The operations. The numbers never change; new ones come last.
pub const Op = enum(c.adead_op) {
    /// `alpha*(a*b) + beta*c + bias`, then an activation.
    matmul = c.ADEAD_OP_MATMUL,
    /// The inner product of two vectors.
    dot = c.ADEAD_OP_DOT,
    /// `a + b`.
    add = c.ADEAD_OP_ADD,
    /// `a - b`.
    sub = c.ADEAD_OP_SUB,
    /// `a*b`, element by element.
    mul = c.ADEAD_OP_MUL,
    /// `a / b`.
    div = c.ADEAD_OP_DIV,
    /// `x*alpha`.
    scale = c.ADEAD_OP_SCALE,
    /// `-x`.
    neg = c.ADEAD_OP_NEG,
    /// `|x|`.
    abs = c.ADEAD_OP_ABS,
    /// `e^x`.
    exp = c.ADEAD_OP_EXP,
    /// The natural logarithm; NaN if x < 0.
    log = c.ADEAD_OP_LOG,
    /// The square root; NaN if x < 0.
    sqrt = c.ADEAD_OP_SQRT,
    /// `1 / sqrt(x)`.
    rsqrt = c.ADEAD_OP_RSQRT,
    /// `max(x, 0)`; NaN stays NaN.
    relu = c.ADEAD_OP_RELU,
    /// `1 / (1 + e^-x)`.
    sigmoid = c.ADEAD_OP_SIGMOID,
    /// The hyperbolic tangent.
    tanh = c.ADEAD_OP_TANH,
    /// The Gaussian error linear unit, with erf or tanh.
    gelu = c.ADEAD_OP_GELU,
    /// `x*sigmoid(x)`.
    silu = c.ADEAD_OP_SILU,
    /// `e^x` divided by its sum along an axis.
    softmax = c.ADEAD_OP_SOFTMAX,
    /// The sum over some or all axes; +0 for no elements.
    sum = c.ADEAD_OP_SUM,
    /// The mean over some or all axes; NaN for no elements.
    mean = c.ADEAD_OP_MEAN,
    /// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
    max = c.ADEAD_OP_MAX,
    /// The index of the first maximum, i64. `invalid_argument` for no elements.
    argmax = c.ADEAD_OP_ARGMAX,
    /// Normalises mean and variance over the last axis, of x or x + residual.
    layernorm = c.ADEAD_OP_LAYERNORM,
    /// Normalises the root mean square over the last axis, of x or x + residual.
    rmsnorm = c.ADEAD_OP_RMSNORM,
    /// Scaled dot-product attention: values weighted by softmax.
    attention = c.ADEAD_OP_ATTENTION,
    /// Two matrix products with an activation between them.
    ffn = c.ADEAD_OP_FFN,
    /// Looks up rows of a table by id.
    embedding = c.ADEAD_OP_EMBEDDING,
    /// Permutes the axes.
    transpose = c.ADEAD_OP_TRANSPOSE,
    /// Joins tensors along an axis.
    concat = c.ADEAD_OP_CONCAT,
    /// Converts to another dtype.
    cast = c.ADEAD_OP_CAST,
    /// The largest integer <= x.
    floor = c.ADEAD_OP_FLOOR,
    /// The nearest integer; ties go to even.
    round = c.ADEAD_OP_ROUND,
    /// The error function.
    erf = c.ADEAD_OP_ERF,
    /// `minimum(maximum(x, min), max)`; NaN propagates, and -0 < +0.
    clamp = c.ADEAD_OP_CLAMP,
    /// The larger of a and b; NaN propagates, and -0 < +0.
    maximum = c.ADEAD_OP_MAXIMUM,
    /// The smaller of a and b; NaN propagates, and -0 < +0.
    minimum = c.ADEAD_OP_MINIMUM,
    /// The sine of x in radians; NaN if x is infinite.
    sin = c.ADEAD_OP_SIN,
    /// The cosine of x in radians; NaN if x is infinite.
    cos = c.ADEAD_OP_COS,
    /// `log(1 + x)`, also accurate near 0; NaN if x < -1.
    log1p = c.ADEAD_OP_LOG1P,
    /// `e^x - 1`, also accurate near 0.
    expm1 = c.ADEAD_OP_EXPM1,
    /// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
    pow = c.ADEAD_OP_POW,
    /// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
    min = c.ADEAD_OP_MIN,
    /// The index of the first minimum, i64. `invalid_argument` for no elements.
    argmin = c.ADEAD_OP_ARGMIN,
    /// The product over some or all axes; 1 for no elements.
    prod = c.ADEAD_OP_PROD,
    /// Slices every axis from a start to a stop, in steps.
    slice = c.ADEAD_OP_SLICE,
    /// Pads every axis with a value: before, after and between its elements.
    pad = c.ADEAD_OP_PAD,
    /// Gathers elements along an axis by index.
    gather = c.ADEAD_OP_GATHER,
    /// Rotates pairs of elements of the last axis by angles.
    rope = c.ADEAD_OP_ROPE,
    /// The cumulative sums along an axis.
    cumsum = c.ADEAD_OP_CUMSUM,
    /// The k greatest elements along an axis, greatest first; ties go to the lower index.
    topk = c.ADEAD_OP_TOPK,
    /// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
    argtopk = c.ADEAD_OP_ARGTOPK,
    /// Whether a equals b; NaN equals nothing, and -0 equals +0.
    equal = c.ADEAD_OP_EQUAL,
    /// Whether a differs from b; true for NaN.
    not_equal = c.ADEAD_OP_NOT_EQUAL,
    /// Whether `a < b`; false for NaN.
    less = c.ADEAD_OP_LESS,
    /// Whether `a <= b`; false for NaN.
    less_equal = c.ADEAD_OP_LESS_EQUAL,
    /// Whether `a > b`; false for NaN.
    greater = c.ADEAD_OP_GREATER,
    /// Whether `a >= b`; false for NaN.
    greater_equal = c.ADEAD_OP_GREATER_EQUAL,
    /// Selects from a where the condition is true, and from b elsewhere.
    where = c.ADEAD_OP_WHERE,
    /// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
    quantized_matmul = c.ADEAD_OP_QUANTIZED_MATMUL,
    /// Converts quantised blocks to f32.
    dequantize = c.ADEAD_OP_DEQUANTIZE,
    _,
};

/// The function after a matrix product.
pub const Activation = enum(c.adead_activation) {
    /// Nothing.
    none = c.ADEAD_ACTIVATION_NONE,
    /// `relu`.
    relu = c.ADEAD_ACTIVATION_RELU,
    /// `sigmoid`.
    sigmoid = c.ADEAD_ACTIVATION_SIGMOID,
    /// `tanh`.
    tanh = c.ADEAD_ACTIVATION_TANH,
    /// `gelu_tanh`.
    gelu_tanh = c.ADEAD_ACTIVATION_GELU_TANH,
    /// `gelu_erf`.
    gelu_erf = c.ADEAD_ACTIVATION_GELU_ERF,
    /// `silu`.
    silu = c.ADEAD_ACTIVATION_SILU,
    _,
};

/// The precision of a matrix product.
pub const Precision = enum(c.adead_precision) {
    /// In chains of fused multiply-adds of f32.
    f32 = c.ADEAD_PRECISION_F32,
    /// In exact integers, of operands cut to 24 bits.
    fixed24 = c.ADEAD_PRECISION_FIXED24,
    /// In exact integers, of operands cut to 16 bits.
    fixed16 = c.ADEAD_PRECISION_FIXED16,
    _,
};

/// How the elements of a quantised matrix are stored.
pub const BlockFormat = enum(c.adead_block_format) {
    /// 32 elements of 8 bits, one scale: 34 bytes.
    q8_0 = c.ADEAD_BLOCK_FORMAT_Q8_0,
    /// 32 elements of 4 bits, one scale: 18 bytes.
    q4_0 = c.ADEAD_BLOCK_FORMAT_Q4_0,
    /// 32 elements of 4 bits, a scale and a minimum: 20 bytes.
    q4_1 = c.ADEAD_BLOCK_FORMAT_Q4_1,
    /// 32 elements of 5 bits, one scale: 22 bytes.
    q5_0 = c.ADEAD_BLOCK_FORMAT_Q5_0,
    /// 32 elements of 5 bits, a scale and a minimum: 24 bytes.
    q5_1 = c.ADEAD_BLOCK_FORMAT_Q5_1,
    /// 256 elements of 4 bits, a scale and a minimum for each 32: 144 bytes.
    q4_k = c.ADEAD_BLOCK_FORMAT_Q4_K,
    /// 256 elements of 5 bits, a scale and a minimum for each 32: 176 bytes.
    q5_k = c.ADEAD_BLOCK_FORMAT_Q5_K,
    /// 256 elements of 6 bits, a scale for each 16: 210 bytes.
    q6_k = c.ADEAD_BLOCK_FORMAT_Q6_K,
    _,
};

/// The form of gelu.
pub const GeluForm = enum(c.adead_gelu_form) {
    /// By the error function.
    erf = c.ADEAD_GELU_ERF,
    /// By tanh.
    tanh = c.ADEAD_GELU_TANH,
    _,
};

/// The priority of a stream.
pub const Priority = enum(c.adead_priority) {
    /// The default.
    normal = c.ADEAD_PRIORITY_NORMAL,
    /// Starts before other streams' work: for short, urgent work beside long work.
    high = c.ADEAD_PRIORITY_HIGH,
    _,
};

/// How a device keeps the arithmetic contract.
pub const ContractLevel = enum(c.adead_contract_level) {
    /// The device's own instructions give the contract's bits.
    native = c.ADEAD_CONTRACT_NATIVE,
    /// Some primitive is composed of others: exact, but slower.
    emulated = c.ADEAD_CONTRACT_EMULATED,
    _,
};

/// The kind of a device.
pub const DeviceKind = enum(c.adead_device_kind) {
    /// The processor, with the host's memory.
    cpu = c.ADEAD_KIND_CPU,
    /// A GPU with its own memory, behind a bus.
    discrete = c.ADEAD_KIND_DISCRETE,
    /// A GPU in the processor, which shares the host's memory.
    integrated = c.ADEAD_KIND_INTEGRATED,
    /// A GPU, or a part of one, that a hypervisor provides.
    virtual = c.ADEAD_KIND_VIRTUAL,
    /// A GPU that a program on the processor emulates.
    software = c.ADEAD_KIND_SOFTWARE,
    _,
};

/// Where work should run.
pub const Mode = enum(c.adead_mode) {
    /// On the processor: no GPU, or one with less than 2 GB.
    cpu = c.ADEAD_MODE_CPU,
    /// On both: a GPU with 2 to 4 GB.
    hybrid = c.ADEAD_MODE_HYBRID,
    /// On the GPU: one with 4 GB or more.
    gpu = c.ADEAD_MODE_GPU,
    _,
};

/// Operations with similar costs.
pub const Family = enum(c.adead_family) {
    /// Matrix products: matmul, ffn.
    matmul = c.ADEAD_FAMILY_MATMUL,
    /// attention.
    attention = c.ADEAD_FAMILY_ATTENTION,
    /// A few instructions for each element: add, mul, relu, cast.
    elementwise = c.ADEAD_FAMILY_ELEMENTWISE,
    /// A polynomial for each element: exp, log, tanh, sigmoid, gelu.
    function = c.ADEAD_FAMILY_FUNCTION,
    /// Along an axis: sum, max, dot, softmax, the norms.
    reduction = c.ADEAD_FAMILY_REDUCTION,
    /// No arithmetic: transpose, concat, embedding.
    move = c.ADEAD_FAMILY_MOVE,
    _,
};

/// The format of a program.
pub const Format = enum(c.adead_format) {
    /// adead's own container.
    adead = c.ADEAD_FORMAT_ADEAD,
    /// An AGPU binary.
    agpu = c.ADEAD_FORMAT_AGPU,
    /// AGPU instructions as hexadecimal text.
    hex = c.ADEAD_FORMAT_HEX,
    /// The hybrid container. Only its AGPU program is used.
    ahyb = c.ADEAD_FORMAT_AHYB,
    /// Assembler text.
    text = c.ADEAD_FORMAT_TEXT,
    _,
};

/// The direction of a slot's contents.
pub const Direction = enum(c.adead_direction) {
    /// The caller supplies it.
    in = c.ADEAD_DIRECTION_IN,
    /// The program produces it.
    out = c.ADEAD_DIRECTION_OUT,
    /// Both.
    both = c.ADEAD_DIRECTION_BOTH,
    _,
};

/// The kind of work in a profile.
pub const Activity = enum(c.adead_activity) {
    /// An operation of the op table.
    operation = c.ADEAD_ACTIVITY_OPERATION,
    /// A user's kernel.
    kernel = c.ADEAD_ACTIVITY_KERNEL,
    /// A replay of a recording.
    replay = c.ADEAD_ACTIVITY_REPLAY,
    /// A transfer from the host to a device.
    upload = c.ADEAD_ACTIVITY_UPLOAD,
    /// A transfer from a device to the host.
    download = c.ADEAD_ACTIVITY_DOWNLOAD,
    /// A copy from one buffer of a device to another.
    copy = c.ADEAD_ACTIVITY_COPY,
    /// Setting bytes of a buffer to zero.
    clear = c.ADEAD_ACTIVITY_CLEAR,
    _,
};

/// The severity of a message.
pub const LogLevel = enum(c.adead_log_level) {
    /// Nothing.
    off = c.ADEAD_LOG_OFF,
    /// Something was lost, such as a device.
    err = c.ADEAD_LOG_ERROR,
    /// Something can't be used or is ignored, and why.
    warn = c.ADEAD_LOG_WARN,
    /// Devices that were found and opened.
    info = c.ADEAD_LOG_INFO,
    /// Everything read, compiled or set.
    debug = c.ADEAD_LOG_DEBUG,
    /// The steps of single calls.
    trace = c.ADEAD_LOG_TRACE,
    _,
};

/// Why a call failed: one error for each status. `lastError()` has the text.
pub const Error = error{
    /// An argument is out of range, missing or contradictory.
    InvalidArgument,
    /// Ranks or dimensions don't fit each other.
    ShapeMismatch,
    /// An element type is not accepted here, or two differ.
    DtypeMismatch,
    /// Host or device memory ran out, or a limit that the caller set was exceeded.
    OutOfMemory,
    /// The device asked for is not on this machine, or its driver is missing.
    BackendUnavailable,
    /// The device stopped responding. It stays lost.
    DeviceLost,
    /// A user kernel is malformed or was refused by the driver.
    InvalidKernel,
    /// A program is malformed. The message has the offset.
    InvalidProgram,
    /// Well-formed, but this device or version does not support it.
    Unsupported,
    /// The result is not ready yet.
    NotReady,
    /// The operating system refused a file or a stream.
    Io,
    /// A fault in adead itself (a caught panic). Please report it.
    Internal,
};

/// Returns the error of a status, or nothing.
pub fn check(status: c.adead_status) Error!void {
    if (status != c.ADEAD_OK) failure.ofLibrary();
    return switch (@as(Status, @enumFromInt(status))) {
        .ok => {},
        .invalid_argument => error.InvalidArgument,
        .shape_mismatch => error.ShapeMismatch,
        .dtype_mismatch => error.DtypeMismatch,
        .out_of_memory => error.OutOfMemory,
        .backend_unavailable => error.BackendUnavailable,
        .device_lost => error.DeviceLost,
        .invalid_kernel => error.InvalidKernel,
        .invalid_program => error.InvalidProgram,
        .unsupported => error.Unsupported,
        .not_ready => error.NotReady,
        .io => error.Io,
        .internal => error.Internal,
        // The status of a newer library; its text explains it.
        _ => error.Internal,
    };
}

/// The status of an error.
pub fn statusOf(err: Error) Status {
    return switch (err) {
        error.InvalidArgument => .invalid_argument,
        error.ShapeMismatch => .shape_mismatch,
        error.DtypeMismatch => .dtype_mismatch,
        error.OutOfMemory => .out_of_memory,
        error.BackendUnavailable => .backend_unavailable,
        error.DeviceLost => .device_lost,
        error.InvalidKernel => .invalid_kernel,
        error.InvalidProgram => .invalid_program,
        error.Unsupported => .unsupported,
        error.NotReady => .not_ready,
        error.Io => .io,
        error.Internal => .internal,
    };
}

/// The defaults of adead_context_options.
pub const context_options: c.adead_context_options = .{
    .struct_size = @sizeOf(c.adead_context_options),
    .isa = null,
    .threads = 0,
    .precision = c.ADEAD_PRECISION_F32,
};

/// The defaults of adead_matmul_options.
pub const matmul_options: c.adead_matmul_options = .{
    .struct_size = @sizeOf(c.adead_matmul_options),
    .trans_a = 0,
    .trans_b = 0,
    .alpha = 1.0,
    .beta = 0.0,
    .c = null,
    .bias = null,
    .activation = c.ADEAD_ACTIVATION_NONE,
    .precision = c.ADEAD_PRECISION_DEFAULT,
};

/// The defaults of adead_attention_options.
pub const attention_options: c.adead_attention_options = .{
    .struct_size = @sizeOf(c.adead_attention_options),
    .mask = null,
    .causal = 0,
    .scale = 0.0,
    .precision = c.ADEAD_PRECISION_DEFAULT,
};

/// The defaults of adead_module_options.
pub const module_options: c.adead_module_options = .{
    .struct_size = @sizeOf(c.adead_module_options),
    .kind = c.ADEAD_MODULE_LINEAR,
    .activation = c.ADEAD_ACTIVATION_GELU_ERF,
    .inputs = 0,
    .outputs = 0,
    .width = 0,
    .heads = 0,
    .hidden = 0,
    .layers = 0,
    .parts = null,
    .eps = 1e-12,
    .reserved = 0,
};

/// The defaults of adead_forward_options.
pub const forward_options: c.adead_forward_options = .{
    .struct_size = @sizeOf(c.adead_forward_options),
    .residual = null,
    .lengths = null,
    .count = 0,
    .activation = c.ADEAD_ACTIVATION_NONE,
    .reserved = 0,
};

/// The defaults of adead_run_options.
pub const run_options: c.adead_run_options = .{
    .struct_size = @sizeOf(c.adead_run_options),
    .memory_limit = 1073741824,
    .parallel = 0,
    .reserved = 0,
};
