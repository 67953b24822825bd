//! Trainers: networks that learn from arrays.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const SentenceEncoder = @import("encoder.zig").SentenceEncoder;
const owned = @import("texts.zig").owned;
const Transport = @import("transport.zig").Transport;
const Allocator = std.mem.Allocator;
const call = shared.call;
const check = shared.enums.check;
const enums = shared.enums;
const failure = shared.failure;
const Error = enums.Error;

/// The values of samples or of targets, one sample after another: floats, or ids and classes.
pub const Samples = union(enum) {
    f32: []const f32,
    i64: []const i64,

    fn pointer(self: Samples) *const anyopaque {
        return switch (self) {
            inline else => |values| @ptrCast(values.ptr),
        };
    }

    /// Returns the number of samples. DtypeMismatch or ShapeMismatch if the trainer does not take them.
    fn count(self: Samples, dtype: enums.DType, size: usize, comptime name: []const u8) Error!usize {
        const given: enums.DType, const values = switch (self) {
            .f32 => |it| .{ .f32, it.len },
            .i64 => |it| .{ .i64, it.len },
        };
        if (given != dtype) {
            return failure.fail(error.DtypeMismatch, name ++ " is {s}; the network takes {s}", .{ @tagName(given), @tagName(dtype) });
        }
        if (size == 0 or values == 0 or values % size != 0) {
            return failure.fail(error.ShapeMismatch, name ++ " has {d} values; pass samples of {d} values each", .{ values, size });
        }
        return values / size;
    }
};

/// Receives the progress of fit(): `.of(&it)`, where `it` has the method `progress(self, epoch: u32, step: u64, loss: f32)
/// bool`. The method is called after each step, in the caller's thread, with the epoch, counted from 1, the number of steps so
/// far and the step's loss. It returns false to end the training.
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

/// Options of fit().
pub const FitOptions = struct {
    /// The number of passes over all samples.
    epochs: u32 = 1,
    progress: ?FitProgress = null,
};

/// The result of evaluate().
pub const Measured = struct {
    /// The mean loss.
    loss: f64,
    /// The fraction of the samples whose most likely class is the right one, 0 to 1.
    accuracy: f64,
};

/// A parameter of a network.
pub const Parameter = struct {
    /// The name, valid as long as the trainer.
    name: [:0]const u8,
    rank: usize,
    /// The dimensions: the first `rank` elements.
    shape: [8]usize,
    values: []f32,

    pub fn dims(self: *const Parameter) []const usize {
        return self.shape[0..self.rank];
    }

    pub fn deinit(self: Parameter, allocator: Allocator) void {
        allocator.free(self.values);
    }
};

/// A network in training. Its weights depend only on the description and the samples: they have the same bits on every device,
/// with any number of threads, and in every language. One thread at a time may use it; a call during another one is NotReady.
pub const Trainer = struct {
    handle: ?*c.adead_trainer = null,

    /// How the device is opened, as for a SentenceEncoder.
    pub const Options = struct {
        /// "auto", "cpu", "cuda:0"; null takes the device of `ADEAD_DEVICE`, or else of adead.toml, or else "auto".
        device: ?[:0]const u8 = null,
        isa: ?[:0]const u8 = null,
        threads: ?usize = null,
        precision: enums.Precision = .f32,

        pub fn raw(self: Options) c.adead_context_options {
            const all: SentenceEncoder.Options = .{ .isa = self.isa, .threads = self.threads, .precision = self.precision };
            return all.raw();
        }
    };

    /// The types and sizes of a trainer's inputs and outputs.
    pub const Info = struct {
        /// The type of a sample's values: i64 for ids, else f32.
        sample_type: enums.DType,
        /// The type of a target's values: i64 for classes, else f32.
        target_type: enums.DType,
        /// The number of values in a sample.
        sample_size: usize,
        /// The number of values in a target.
        target_size: usize,
        /// The number of values that the network computes for a sample.
        output_size: usize,
        /// The number of samples in a step.
        batch: usize,
        /// The number of steps so far.
        steps: u64,
        /// The name of the device, which ends with a zero.
        device_name: [64]u8,

        /// Returns the device that trains: "cpu" or "cuda:0".
        pub fn device(self: *const Info) []const u8 {
            return std.mem.sliceTo(&self.device_name, 0);
        }
    };

    /// Compiles a network for training. The description is JSON: the network, its loss and its optimiser (docs/training.md).
    /// InvalidArgument or ShapeMismatch if it is malformed or does not describe a network.
    pub fn init(description: [:0]const u8, options: Options) Error!Trainer {
        const raw = options.raw();
        const device = if (options.device) |it| it.ptr else null;
        return call.made(Trainer, c.adead_trainer_create, .{ description.ptr, device, &raw });
    }

    pub fn deinit(self: Trainer) void {
        c.adead_trainer_destroy(self.handle);
    }

    /// Returns the types and sizes of its inputs and outputs.
    pub fn info(self: Trainer) Error!Info {
        var raw: c.adead_trainer_info = std.mem.zeroes(c.adead_trainer_info);
        raw.struct_size = @sizeOf(c.adead_trainer_info);
        try check(c.adead_trainer_inspect(self.handle, &raw));
        return .{
            .sample_type = @enumFromInt(raw.sample_type),
            .target_type = @enumFromInt(raw.target_type),
            .sample_size = raw.sample_size,
            .target_size = raw.target_size,
            .output_size = raw.output_size,
            .batch = raw.batch,
            .steps = raw.steps,
            .device_name = raw.device,
        };
    }

    fn pair(self: Trainer, x: Samples, targets: Samples) Error!usize {
        const own = try self.info();
        const count = try x.count(own.sample_type, own.sample_size, "x");
        const other = try targets.count(own.target_type, own.target_size, "targets");
        if (count != other) return failure.fail(error.ShapeMismatch, "there are {d} samples and {d} targets", .{ count, other });
        return count;
    }

    /// Trains with one batch, and returns the loss before the step. ShapeMismatch unless the number of samples is the batch
    /// size; InvalidArgument for a class that does not exist, or a loss that is not finite. After an error nothing has changed.
    pub fn step(self: Trainer, x: Samples, targets: Samples) Error!f32 {
        const count = try self.pair(x, targets);
        return call.asked(f32, c.adead_trainer_step, .{ self.handle, x.pointer(), targets.pointer(), count });
    }

    /// Trains with all samples `epochs` times, in an order that the seed determines for each epoch. Samples that don't fill a
    /// batch are skipped in that epoch. Returns the mean loss of the last epoch. Errors are those of step(), and NotReady if
    /// `progress` ended the training. Steps before an error keep their effect.
    pub fn fit(self: Trainer, x: Samples, targets: Samples, options: FitOptions) Error!f64 {
        const count = try self.pair(x, targets);
        const function = if (options.progress) |it| it.function else null;
        const user = if (options.progress) |it| it.user else null;
        return call.asked(f64, c.adead_trainer_fit, .{
            self.handle,
            x.pointer(),
            targets.pointer(),
            count,
            options.epochs,
            function,
            user,
        });
    }

    /// Computes the outputs for any number of samples, one after another, with the averages of the parameters if the optimiser
    /// keeps averages.
    pub fn predict(self: Trainer, allocator: Allocator, x: Samples) Error![]f32 {
        const own = try self.info();
        const count = try x.count(own.sample_type, own.sample_size, "x");
        const values = try owned(allocator, f32, count * own.output_size);
        errdefer allocator.free(values);
        try check(c.adead_trainer_predict(self.handle, x.pointer(), count, values.ptr, values.len));
        return values;
    }

    /// Computes the mean loss and the accuracy on samples with known classes. Unsupported for a loss without classes.
    pub fn evaluate(self: Trainer, x: Samples, targets: Samples) Error!Measured {
        const count = try self.pair(x, targets);
        var found: Measured = .{ .loss = 0, .accuracy = 0 };
        try check(c.adead_trainer_evaluate(self.handle, x.pointer(), targets.pointer(), count, &found.loss, &found.accuracy));
        return found;
    }

    /// Writes parameters, optimiser and step to a safetensors file, atomically. Io if it can't be written.
    pub fn save(self: Trainer, path: [:0]const u8) Error!void {
        try check(c.adead_trainer_save(self.handle, path.ptr));
    }

    /// Continues from a file of save(). The next steps have the same bits as without the interruption. Io, InvalidArgument or
    /// ShapeMismatch if the file can't be read or belongs to another network or optimiser.
    pub fn load(self: Trainer, path: [:0]const u8) Error!void {
        try check(c.adead_trainer_load(self.handle, path.ptr));
    }

    /// Returns the SHA-256 of the parameters in the order of their names, as f32, little endian: 64 hexadecimal digits.
    pub fn sha256(self: Trainer) Error![64]u8 {
        var text: [65]u8 = undefined;
        try check(c.adead_trainer_sha256(self.handle, &text, text.len));
        return text[0..64].*;
    }

    /// Returns the number of parameters: tensors with a name.
    pub fn parameterCount(self: Trainer) Error!usize {
        return call.asked(usize, c.adead_trainer_parameter_count, .{self.handle});
    }

    /// Copies a parameter, or its average if the optimiser keeps averages. InvalidArgument if there is no parameter of this
    /// index. Call deinit().
    pub fn parameter(self: Trainer, allocator: Allocator, index: usize) Error!Parameter {
        var raw: c.adead_trained_parameter = std.mem.zeroes(c.adead_trained_parameter);
        raw.struct_size = @sizeOf(c.adead_trained_parameter);
        try check(c.adead_trainer_parameter(self.handle, index, &raw, null, 0));
        const values = try owned(allocator, f32, raw.size);
        errdefer allocator.free(values);
        try check(c.adead_trainer_parameter(self.handle, index, &raw, values.ptr, values.len));
        const name = std.mem.span(@as([*:0]const u8, raw.name));
        return .{ .name = name, .rank = raw.rank, .shape = raw.dims, .values = values };
    }

    /// Joins other processes, which then train together. `place` names this process's rank: "0/4@host:29500" is rank 0 of 4,
    /// and rank 0 listens on that address. "env" reads the variables of torchrun, Open MPI, MPICH or Slurm. A rank may take
    /// `patience` seconds to connect, and to compute its part of a step. All ranks receive the parameters of rank 0. After
    /// joining, each rank makes the same calls with the same samples, and computes its own part of every batch.
    ///
    /// InvalidArgument if there are more ranks than shards, or the ranks' trainers differ; Io if a rank does not connect or is
    /// lost.
    pub fn join(self: Trainer, place: [:0]const u8, patience: f64) Error!void {
        try check(c.adead_trainer_join(self.handle, place.ptr, patience));
    }

    /// Joins other processes as join() does, through the program's own transport.
    ///
    /// InvalidArgument if there are more ranks than shards, or the ranks' trainers differ; Io if an exchange fails.
    pub fn joinThrough(self: Trainer, transport: Transport) Error!void {
        var raw: c.adead_transport = std.mem.zeroes(c.adead_transport);
        raw.struct_size = @sizeOf(c.adead_transport);
        raw.rank = transport.rank;
        raw.size = transport.size;
        raw.user = transport.user;
        raw.exchange = transport.function;
        try check(c.adead_trainer_join_through(self.handle, &raw));
    }
};
