//! Contexts: opened devices, the objects that they make, and the choice of a device.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const gpu = @import("gpu.zig");
const hardware = @import("hardware.zig");
const operations = @import("operations.zig");
const pipelines = @import("pipeline.zig");
const profiles = @import("profile.zig");
const program = @import("program.zig");
const Attrs = @import("tensor.zig").Attrs;
const Error = enums.Error;
const Tensor = @import("tensor.zig").Tensor;
const call = @import("call.zig");
const check = enums.check;

/// Opened devices, and every operation on them. Threads may share one.
pub const Context = struct {
    handle: ?*c.adead_context = null,

    /// Options of a context. An option that is not set comes from the environment or adead.toml, or else has the default value.
    pub const Options = struct {
        /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon", "portable".
        isa: ?[:0]const u8 = null,
        /// The number of CPU threads.
        threads: ?usize = null,
        /// The default precision, for products that don't set one.
        precision: enums.Precision = .f32,
    };

    /// Opens a device by name: "auto", "cpu", "cuda", "vulkan:1", a part of a GPU's name, or its UUID. "hybrid" (the CPU and
    /// every GPU), or names separated by commas, open several devices as one. null takes the name from the environment or
    /// adead.toml, or else "auto".
    pub fn open(name: ?[:0]const u8, options: Options) Error!Context {
        var raw = enums.context_options;
        if (options.isa) |isa| raw.isa = isa.ptr;
        if (options.threads) |threads| raw.threads = threads;
        raw.precision = @intFromEnum(options.precision);
        return call.made(Context, c.adead_context_open, .{ if (name) |it| it.ptr else null, &raw });
    }

    /// Opens the best GPU. BackendUnavailable if there is none; lastError() says why.
    pub fn openGpu() Error!Context {
        return call.made(Context, c.adead_gpu_open, .{});
    }

    /// Closes the context. Everything that it made stays valid.
    pub fn deinit(self: Context) void {
        c.adead_context_destroy(self.handle);
    }

    /// Describes the context's device.
    pub fn device(self: Context) Error!hardware.DeviceInfo {
        var out: hardware.DeviceInfo = .{ .raw = hardware.sized(c.adead_device_info) };
        try check(c.adead_context_device_info(self.handle, &out.raw));
        return out;
    }

    /// Returns the number of devices that the context can use.
    pub fn deviceCount(self: Context) Error!usize {
        return call.asked(usize, c.adead_context_device_count, .{self.handle});
    }

    /// Describes device `index` of those.
    pub fn deviceAt(self: Context, index: usize) Error!hardware.DeviceInfo {
        var out: hardware.DeviceInfo = .{ .raw = hardware.sized(c.adead_device_info) };
        try check(c.adead_context_device_at(self.handle, index, &out.raw));
        return out;
    }

    /// Returns the memory use of the context's GPU, or of the host if it has none: total, free, held, used, allocations.
    pub fn memory(self: Context) Error!c.adead_memory_use {
        var out = hardware.sized(c.adead_memory_use);
        try check(c.adead_memory(self.handle, &out));
        return out;
    }

    /// Frees what the context keeps for its next work: scratch memory, cached pipelines, and GPU copies of tensors that are
    /// also in host memory. Worker threads end.
    pub fn trim(self: Context) Error!void {
        try check(c.adead_context_trim(self.handle));
    }

    // The operations are in operations.zig, which is generated. run() takes any of them.

    /// Runs any operation. Tensor.none stands for an absent optional operand.
    pub fn run(self: Context, op: enums.Op, operands: []const Tensor, attrs: Attrs) Error!Tensor {
        var out: Tensor = .{};
        try check(c.adead_op_run(self.handle, @intFromEnum(op), @ptrCast(operands.ptr), operands.len, attrs.handle, &out.handle));
        return out;
    }

    // Operations, generated as operations.zig is:
    pub const matmul = operations.matmul;
    pub const dot = operations.dot;
    pub const add = operations.add;
    pub const sub = operations.sub;
    pub const mul = operations.mul;
    pub const div = operations.div;
    pub const scale = operations.scale;
    pub const neg = operations.neg;
    pub const abs = operations.abs;
    pub const exp = operations.exp;
    pub const log = operations.log;
    pub const sqrt = operations.sqrt;
    pub const rsqrt = operations.rsqrt;
    pub const relu = operations.relu;
    pub const sigmoid = operations.sigmoid;
    pub const tanh = operations.tanh;
    pub const gelu = operations.gelu;
    pub const silu = operations.silu;
    pub const softmax = operations.softmax;
    pub const sum = operations.sum;
    pub const mean = operations.mean;
    pub const max = operations.max;
    pub const argmax = operations.argmax;
    pub const layernorm = operations.layernorm;
    pub const rmsnorm = operations.rmsnorm;
    pub const attention = operations.attention;
    pub const ffn = operations.ffn;
    pub const embedding = operations.embedding;
    pub const transpose = operations.transpose;
    pub const concat = operations.concat;
    pub const cast = operations.cast;
    pub const floor = operations.floor;
    pub const round = operations.round;
    pub const erf = operations.erf;
    pub const clamp = operations.clamp;
    pub const maximum = operations.maximum;
    pub const minimum = operations.minimum;
    pub const sin = operations.sin;
    pub const cos = operations.cos;
    pub const log1p = operations.log1p;
    pub const expm1 = operations.expm1;
    pub const pow = operations.pow;
    pub const min = operations.min;
    pub const argmin = operations.argmin;
    pub const prod = operations.prod;
    pub const slice = operations.slice;
    pub const pad = operations.pad;
    pub const gather = operations.gather;
    pub const rope = operations.rope;
    pub const cumsum = operations.cumsum;
    pub const topk = operations.topk;
    pub const argtopk = operations.argtopk;
    pub const equal = operations.equal;
    pub const not_equal = operations.not_equal;
    pub const less = operations.less;
    pub const less_equal = operations.less_equal;
    pub const greater = operations.greater;
    pub const greater_equal = operations.greater_equal;
    pub const where = operations.where;
    pub const quantized_matmul = operations.quantized_matmul;
    pub const dequantize = operations.dequantize;
    // Until here.

    /// Starts to record the work of the context and its streams: docs/profile.md. It keeps at most `records` records, 65,536
    /// for null; further ones are only counted. InvalidArgument while another profile of the context is active; Unsupported in
    /// a library built with `-Dminimal`.
    pub fn profile(self: Context, records: ?usize) Error!profiles.Profile {
        return call.made(profiles.Profile, c.adead_profile_begin, .{ self.handle, records orelse 0 });
    }

    /// Makes an empty pipeline, which records operations and runs them together.
    pub fn pipeline(self: Context) Error!pipelines.Pipeline {
        return call.made(pipelines.Pipeline, c.adead_chain_create, .{self.handle});
    }

    /// Returns how the cache of executed pipelines was used: entries, most, hits, misses. trim() empties it.
    pub fn pipelineCache(self: Context) Error!c.adead_cache_use {
        var out = hardware.sized(c.adead_cache_use);
        try check(c.adead_chain_cache(self.handle, &out));
        return out;
    }

    /// Copies a tensor's values to one of the context's devices, by its name. May return while the copy is in progress. "cpu"
    /// starts a copy to host memory. Operations use the copy there, and their results stay on the device that computed them.
    pub fn to(self: Context, x: Tensor, device_name: [:0]const u8) Error!void {
        try check(c.adead_tensor_to(self.handle, x.handle, device_name.ptr));
    }

    /// Returns the memory that tensors use on one of the context's devices, by its name: budget and used in bytes, tensors,
    /// hits, misses, evictions. All are 0 for the CPU.
    pub fn tensorCache(self: Context, device_name: [:0]const u8) Error!c.adead_tensor_cache_use {
        var out = hardware.sized(c.adead_tensor_cache_use);
        try check(c.adead_context_tensor_cache(self.handle, device_name.ptr, &out));
        return out;
    }

    /// Sets the most bytes that tensors may keep on each GPU. The least recently used copies are evicted; no value is lost.
    pub fn setTensorCache(self: Context, bytes: u64) Error!void {
        try check(c.adead_context_set_tensor_cache(self.handle, bytes));
    }

    /// Sets the default precision, for products that don't set one. It applies to calls, pipelines and programs that start or
    /// are compiled later. The initial value is f32, unless Options gave another. Layers keep the precision that the context
    /// had when they were made.
    pub fn setPrecision(self: Context, value: enums.Precision) Error!void {
        try check(c.adead_context_set_precision(self.handle, @intFromEnum(value)));
    }

    /// Makes a context with the same devices and settings, and a default precision of its own. This gives a layer or a pipeline
    /// another precision than the rest of a model.
    pub fn withPrecision(self: Context, value: enums.Precision) Error!Context {
        return call.made(Context, c.adead_context_with_precision, .{ self.handle, @intFromEnum(value) });
    }

    /// Returns the default precision.
    pub fn precision(self: Context) Error!enums.Precision {
        return call.word(enums.Precision, c.adead_context_precision, .{self.handle});
    }

    /// Packs a matrix for many multiplications: b is [K, N], or [N, K] if `trans_b`. Products with it have the default
    /// precision that the context has now. If the context runs everything on one GPU and computes in exact integers, the
    /// GPU keeps the matrix's digits.
    pub fn pack(self: Context, b: Tensor, trans_b: bool) Error!Packed {
        return call.made(Packed, c.adead_packed_create, .{ self.handle, b.handle, @intFromBool(trans_b) });
    }

    // The choice of the device.

    /// Returns the device for work on `elements` elements, as an index for deviceAt().
    pub fn select(self: Context, elements: usize) Error!usize {
        return call.asked(usize, c.adead_select, .{ self.handle, elements });
    }

    /// Explains where run() with the same arguments would run: device, reason and every device's estimate. Runs nothing.
    pub fn explain(self: Context, op: enums.Op, operands: []const Tensor, attrs: Attrs) Error!Explanation {
        var out: Explanation = .{ .raw = hardware.sized(c.adead_explanation) };
        try check(c.adead_explain(self.handle, @intFromEnum(op), @ptrCast(operands.ptr), operands.len, attrs.handle, &out.raw));
        return out;
    }

    /// Sets the threshold of a family: operations with at least `elements` elements run on a GPU, smaller ones on the CPU.
    /// `no_threshold` lets the cost model decide.
    pub fn setThreshold(self: Context, family: enums.Family, elements: usize) Error!void {
        try check(c.adead_context_set_threshold(self.handle, @intFromEnum(family), elements));
    }

    /// Sends everything to one of the context's devices, by its id. null lets the cost model decide again.
    pub fn force(self: Context, id: ?[:0]const u8) Error!void {
        try check(c.adead_context_force(self.handle, if (id) |it| it.ptr else null));
    }

    /// Runs a program with tensors bound to its slots.
    pub const runProgram = program.run;

    // Memory, kernels and streams: gpu.zig.

    /// Makes a buffer with a copy of values.
    pub fn buffer(self: Context, comptime T: type, values: []const T) Error!gpu.Buffer {
        const bytes = std.mem.sliceAsBytes(values);
        return call.made(gpu.Buffer, c.adead_buffer_create, .{ self.handle, bytes.ptr, bytes.len });
    }

    /// Makes a buffer of `bytes` bytes of zeros.
    pub fn bufferZeroed(self: Context, bytes: usize) Error!gpu.Buffer {
        return call.made(gpu.Buffer, c.adead_buffer_create, .{ self.handle, null, bytes });
    }

    pub const loadSpirv = gpu.Kernel.loadSpirv;
    pub const loadSpirvBytes = gpu.Kernel.loadSpirvBytes;
    pub const loadPtx = gpu.Kernel.loadPtx;
    pub const loadPtxBytes = gpu.Kernel.loadPtxBytes;
    pub const loadCubin = gpu.Kernel.loadCubin;
    pub const loadCubinBytes = gpu.Kernel.loadCubinBytes;
    pub const compileKernel = gpu.Kernel.compileKernel;
    pub const createPipeline = gpu.Kernel.createPipeline;

    /// Enqueues a kernel, with buffers in the order of their set and binding, and the bytes of its push constants. The call
    /// returns at once; reading a buffer and wait() wait for the kernel.
    pub fn dispatch(self: Context, kernel: gpu.Kernel, buffers: []const gpu.Buffer, groups: [3]u32, push: []const u8) Error!void {
        try check(c.adead_dispatch_with(self.handle, kernel.handle, @ptrCast(buffers.ptr), buffers.len, push.ptr, push.len, &groups));
    }

    /// Waits until everything that the context enqueued has finished.
    pub fn wait(self: Context) Error!void {
        try check(c.adead_wait(self.handle));
    }

    /// Makes an event at the point after everything that the context has enqueued so far.
    pub fn event(self: Context) Error!gpu.Event {
        return call.made(gpu.Event, c.adead_event_create, .{self.handle});
    }

    /// Makes a stream on the context's device.
    pub fn stream(self: Context) Error!gpu.Stream {
        return self.streamWith(.normal);
    }

    /// Makes a stream with a priority. On an NVIDIA GPU through CUDA, waiting work of `.high` begins before that of other
    /// streams. Elsewhere the priority has no effect.
    pub fn streamWith(self: Context, priority: enums.Priority) Error!gpu.Stream {
        return call.made(gpu.Stream, c.adead_stream_create_with, .{ self.handle, @intFromEnum(priority) });
    }
};

/// A right operand of matrix products, packed in advance. Threads may share one.
pub const Packed = struct {
    handle: ?*c.adead_packed = null,

    pub fn deinit(self: Packed) void {
        c.adead_packed_destroy(self.handle);
    }

    /// Multiplies `a` with the packed b. The result equals that of Context.matmul, without the time for packing.
    pub fn matmul(self: Packed, ctx: Context, a: Tensor, options: operations.MatmulOptions) Error!Tensor {
        var raw = enums.matmul_options;
        if (options.trans_a) |flag| raw.trans_a = @intFromBool(flag);
        if (options.trans_b) |flag| raw.trans_b = @intFromBool(flag);
        if (options.alpha) |alpha| raw.alpha = alpha;
        if (options.beta) |beta| raw.beta = beta;
        if (options.activation) |activation| raw.activation = @intFromEnum(activation);
        if (options.precision) |precision| raw.precision = @intFromEnum(precision);
        raw.c = options.c.handle;
        raw.bias = options.bias.handle;
        return call.made(Tensor, c.adead_packed_matmul, .{ ctx.handle, a.handle, self.handle, &raw });
    }

    /// Returns K and N, in this order for both layouts of b.
    pub fn dims(self: Packed) Error![2]usize {
        var out: [*c]const usize = null;
        try check(c.adead_packed_dims(self.handle, &out));
        return .{ out[0], out[1] };
    }

    /// Returns the dtype of the matrix that was packed.
    pub fn dtype(self: Packed) Error!enums.DType {
        return call.word(enums.DType, c.adead_packed_dtype, .{self.handle});
    }

    /// Returns the bytes of memory that the packed elements take.
    pub fn bytes(self: Packed) Error!usize {
        return call.asked(usize, c.adead_packed_bytes, .{self.handle});
    }
};

/// A choice of a device, its reason, and every device's estimate; `raw` has the numbers.
pub const Explanation = struct {
    raw: c.adead_explanation,

    /// Returns the id of the chosen device.
    pub fn id(self: *const Explanation) [:0]const u8 {
        return hardware.text(&self.raw.id);
    }
    pub fn reason(self: *const Explanation) [:0]const u8 {
        return hardware.text(&self.raw.reason);
    }
    pub fn family(self: *const Explanation) enums.Family {
        return @enumFromInt(self.raw.family);
    }
    /// Returns the estimates, in the order of the context's devices.
    pub fn estimates(self: *const Explanation) []const c.adead_estimate {
        return self.raw.estimates[0..self.raw.estimate_count];
    }
    /// Returns the rows of the result for each device, in the same order; null if the operation is not divided.
    pub fn rows(self: *const Explanation) ?[]const u64 {
        return if (self.raw.split_ns > 0) self.raw.rows[0..self.raw.estimate_count] else null;
    }
};
