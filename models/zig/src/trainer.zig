//! Training: networks that learn from arrays, and jobs that a file describes.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const owned = @import("texts.zig").owned;
const call = shared.call;
const check = shared.enums.check;
const enums = shared.enums;
const fail = shared.failure.fail;
const Error = enums.Error;

/// Values of samples or targets, one sample behind the other: f32, or i64 for ids and classes.
pub const Samples = union(enum) {
    floats: []const f32,
    ids: []const i64,

    /// Returns the number of samples of this size. The library sees only pointers, so types and sizes are checked here.
    fn count(self: Samples, name: []const u8, dtype: i32, size: usize) Error!usize {
        const given: i32 = if (self == .ids) c.ADEAD_DTYPE_I64 else c.ADEAD_DTYPE_F32;
        if (given != dtype) {
            const takes = if (dtype == c.ADEAD_DTYPE_I64) "i64" else "f32";
            return fail(error.DtypeMismatch, "{s} holds {s}; the network takes {s}", .{ name, if (self == .ids) "i64" else "f32", takes });
        }
        const length = switch (self) {
            inline else => |values| values.len,
        };
        if (length % size != 0) return fail(error.ShapeMismatch, "{s} has {d} values; a sample has {d}", .{ name, length, size });
        return length / size;
    }

    fn pointer(self: Samples) ?*const anyopaque {
        return switch (self) {
            inline else => |values| values.ptr,
        };
    }
};

/// What is told of each step: `.of(&it)`, where `it` has the method `progress(self, epoch: u32, step: u64, loss: f32) bool`,
/// which returns false to end the training.
pub const FitProgress = struct {
    user: ?*anyopaque,
    function: *const fn (?*anyopaque, u32, u64, f32) callconv(.c) i32,

    pub fn of(it: anytype) FitProgress {
        const It = @TypeOf(it);
        const callback = struct {
            fn told(user: ?*anyopaque, epoch: u32, step: u64, loss: f32) callconv(.c) i32 {
                const self: It = @ptrCast(@alignCast(user));
                return @intFromBool(!self.progress(epoch, step, loss));
            }
        };
        return .{ .user = it, .function = callback.told };
    }
};

/// How the device of a training is opened.
pub const DeviceOptions = struct {
    /// "auto", "cpu", "cuda:0"; null takes what `ADEAD_DEVICE` names, or else adead.toml, or else "auto".
    device: ?[:0]const u8 = null,
    /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon", "portable".
    isa: ?[:0]const u8 = null,
    /// The number of CPU threads.
    threads: ?usize = null,
    /// How products are computed.
    precision: enums.Precision = .f32,

    fn raw(self: DeviceOptions) c.adead_context_options {
        var options = enums.context_options;
        if (self.isa) |isa| options.isa = isa.ptr;
        if (self.threads) |threads| options.threads = threads;
        options.precision = @intFromEnum(self.precision);
        return options;
    }

    fn name(self: DeviceOptions) [*c]const u8 {
        return if (self.device) |device| device.ptr else null;
    }
};

/// A network in training. Its weights have the same bits on every device, with every number of threads, and in every
/// language. One thread at a time computes: calls meanwhile are NotReady.
pub const Trainer = struct {
    handle: ?*c.adead_trainer = null,

    pub const Info = c.adead_trainer_info;
    /// What was measured with samples: the mean loss, and the part of them that is classified right.
    pub const Measured = struct { loss: f64, accuracy: f64 };

    /// A parameter of a network.
    pub const Parameter = struct {
        /// Valid as long as the trainer.
        name: [:0]const u8,
        rank: usize,
        dimensions: [8]usize,
        values: []f32,

        pub fn dims(self: *const Parameter) []const usize {
            return self.dimensions[0..self.rank];
        }

        pub fn deinit(self: Parameter, allocator: std.mem.Allocator) void {
            allocator.free(self.values);
        }
    };

    /// Compiles a training. The description is JSON: the network, its loss and its optimiser, which docs/training.md
    /// describes. InvalidArgument and ShapeMismatch for one that is malformed or makes no network.
    pub fn create(description: [:0]const u8, options: DeviceOptions) Error!Trainer {
        const raw = options.raw();
        return call.made(Trainer, c.adead_trainer_create, .{ description.ptr, options.name(), &raw });
    }

    pub fn deinit(self: Trainer) void {
        c.adead_trainer_destroy(self.handle);
    }

    /// Returns what it takes and gives: types and sizes of samples, targets and outputs, the batch, the steps so far, the device.
    pub fn info(self: Trainer) Error!Info {
        var out = std.mem.zeroes(Info);
        out.struct_size = @sizeOf(Info);
        try check(c.adead_trainer_inspect(self.handle, &out));
        return out;
    }

    /// Trains together with other processes from here on. The place is the rank of this one, "0/4@host:29500" for rank 0 of 4
    /// with the address on which rank 0 waits, or "env" for what torchrun, Open MPI, MPICH or Slurm says. Then each rank
    /// makes the same calls with the same samples. A rank may take `patience` seconds to come, and to compute its part of a
    /// step. InvalidArgument if there are more ranks than shards or the trainings differ; Io if a rank is lost.
    pub fn join(self: Trainer, place: [:0]const u8, patience: f64) Error!void {
        try check(c.adead_trainer_join(self.handle, place.ptr, patience));
    }

    /// Trains with one batch, and returns its loss from before the step. ShapeMismatch for another number of samples than the
    /// batch; InvalidArgument for a class that does not exist and for a loss that is not finite. Then nothing has changed.
    pub fn step(self: Trainer, x: Samples, targets: Samples) Error!f32 {
        const count = try self.pair(x, targets);
        return call.asked(f32, c.adead_trainer_step, .{ self.handle, x.pointer(), targets.pointer(), count });
    }

    /// Trains with all samples `epochs` times, in an order that the seed draws, and returns the mean loss of the last epoch.
    /// Samples that don't fill a batch wait for the next epoch. NotReady if the progress ended it; otherwise as step().
    pub fn fit(self: Trainer, x: Samples, targets: Samples, epochs: u32, progress: ?FitProgress) Error!f64 {
        const count = try self.pair(x, targets);
        const function: c.adead_fit_progress = if (progress) |it| it.function else null;
        const user = if (progress) |it| it.user else null;
        return call.asked(f64, c.adead_trainer_fit, .{ self.handle, x.pointer(), targets.pointer(), count, epochs, function, user });
    }

    /// Returns what the network computes for samples, one row behind the other.
    pub fn predict(self: Trainer, allocator: std.mem.Allocator, x: Samples) Error![]f32 {
        const known = try self.info();
        const count = try x.count("x", known.sample_type, known.sample_size);
        const out = try owned(allocator, f32, count * known.output_size);
        errdefer allocator.free(out);
        try check(c.adead_trainer_predict(self.handle, x.pointer(), count, out.ptr, out.len));
        return out;
    }

    /// Measures samples with their classes. Unsupported for a loss without classes.
    pub fn evaluate(self: Trainer, x: Samples, targets: Samples) Error!Measured {
        const count = try self.pair(x, targets);
        var out: Measured = undefined;
        try check(c.adead_trainer_evaluate(self.handle, x.pointer(), targets.pointer(), count, &out.loss, &out.accuracy));
        return out;
    }

    /// Writes parameters, optimiser and step to a safetensors file, which replaces an older one at once. Io if it can't.
    pub fn save(self: Trainer, path: [:0]const u8) Error!void {
        try check(c.adead_trainer_save(self.handle, path.ptr));
    }

    /// Continues from a file of save(): the next steps have the bits that they would have had there. Io, InvalidArgument and
    /// ShapeMismatch for a file that can't be read or belongs to another training.
    pub fn load(self: Trainer, path: [:0]const u8) Error!void {
        try check(c.adead_trainer_load(self.handle, path.ptr));
    }

    /// Returns the SHA-256 of the parameters in the order of their names: f32, little endian.
    pub fn sha256(self: Trainer) Error![64]u8 {
        var text: [65]u8 = undefined;
        try check(c.adead_trainer_sha256(self.handle, &text, text.len));
        return text[0..64].*;
    }

    /// Returns the number of parameters.
    pub fn parameterCount(self: Trainer) Error!usize {
        return call.asked(usize, c.adead_trainer_parameter_count, .{self.handle});
    }

    /// Returns a copy of a parameter: the average, where the optimiser keeps one. InvalidArgument if there is none of the index.
    pub fn parameter(self: Trainer, allocator: std.mem.Allocator, index: usize) Error!Parameter {
        var raw = std.mem.zeroes(c.adead_trained_parameter);
        raw.struct_size = @sizeOf(c.adead_trained_parameter);
        try check(c.adead_trainer_parameter(self.handle, index, &raw, null, 0));
        const values = try owned(allocator, f32, raw.size);
        errdefer allocator.free(values);
        try check(c.adead_trainer_parameter(self.handle, index, &raw, values.ptr, values.len));
        return .{ .name = std.mem.span(@as([*:0]const u8, raw.name)), .rank = raw.rank, .dimensions = raw.dims, .values = values };
    }

    /// Returns the number of samples, for which there must be as many targets.
    fn pair(self: Trainer, x: Samples, targets: Samples) Error!usize {
        const known = try self.info();
        const count = try x.count("x", known.sample_type, known.sample_size);
        const others = try targets.count("targets", known.target_type, known.target_size);
        if (count != others) return fail(error.ShapeMismatch, "there are {d} samples and {d} targets", .{ count, others });
        return count;
    }
};

/// What is told of a job: `.of(&it)`, where `it` has the method `progress(self, event: *const TrainEvent) bool`, which returns
/// false to end the job.
pub const JobProgress = struct {
    user: ?*anyopaque,
    function: *const fn (?*anyopaque, [*c]const c.adead_train_event) callconv(.c) i32,

    pub fn of(it: anytype) JobProgress {
        const It = @TypeOf(it);
        const callback = struct {
            fn told(user: ?*anyopaque, event: [*c]const c.adead_train_event) callconv(.c) i32 {
                const self: It = @ptrCast(@alignCast(user));
                return @intFromBool(!self.progress(@as(*const c.adead_train_event, event)));
            }
        };
        return .{ .user = it, .function = callback.told };
    }
};

/// A step was made, or an epoch is over.
pub const TrainEvent = c.adead_train_event;

/// How a job runs.
pub const TrainOptions = struct {
    device: DeviceOptions = .{},
    /// Whether it continues from its checkpoint, if there is one.
    @"resume": bool = false,
    /// The number of epochs; the job's without it.
    epochs: ?u32 = null,
    /// The rank of this process, as Trainer.join takes it; alone without it.
    ranks: ?[:0]const u8 = null,
    /// How many seconds a rank may take to come, and to compute its part of a step.
    patience: f64 = 300,
    progress: ?JobProgress = null,
};

/// What a job gave.
pub const TrainOutcome = struct {
    raw: c.adead_train_outcome,

    /// The number of steps, those before a checkpoint included.
    pub fn steps(self: *const TrainOutcome) u64 {
        return self.raw.steps;
    }

    /// The part of the held-out samples that is classified right. NaN if no epoch was made.
    pub fn accuracy(self: *const TrainOutcome) f64 {
        return self.raw.accuracy;
    }

    /// The SHA-256 of the trained parameters.
    pub fn sha256(self: *const TrainOutcome) []const u8 {
        return std.mem.sliceTo(@as([]const u8, @ptrCast(&self.raw.sha256)), 0);
    }

    /// The device that trained.
    pub fn device(self: *const TrainOutcome) []const u8 {
        return std.mem.sliceTo(@as([]const u8, @ptrCast(&self.raw.device)), 0);
    }
};

/// Trains what a job's file says: a TOML file, which docs/training.md describes. Io and InvalidArgument for a job, data or a
/// checkpoint that can't be read or is malformed; NotReady if the progress ended it.
pub fn train(job: [:0]const u8, options: TrainOptions) Error!TrainOutcome {
    const context = options.device.raw();
    const raw: c.adead_train_options = .{
        .struct_size = @sizeOf(c.adead_train_options),
        .@"resume" = @intFromBool(options.@"resume"),
        .epochs = options.epochs orelse 0,
        .ranks = if (options.ranks) |ranks| ranks.ptr else null,
        .patience = options.patience,
        .progress = if (options.progress) |it| it.function else null,
        .user = if (options.progress) |it| it.user else null,
    };
    var out: TrainOutcome = .{ .raw = std.mem.zeroes(c.adead_train_outcome) };
    out.raw.struct_size = @sizeOf(c.adead_train_outcome);
    try check(c.adead_train_job(job.ptr, options.device.name(), &context, &raw, &out.raw));
    return out;
}
