//! Training jobs, described by files.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const Trainer = @import("trainer.zig").Trainer;
const check = shared.enums.check;
const enums = shared.enums;
const Error = enums.Error;

/// An event of a job: the end of a step or of an epoch.
pub const TrainEvent = struct {
    /// Whether an epoch has ended.
    epoch_is_over: bool,
    /// The epoch, from 1 on.
    epoch: u32,
    /// The number of steps so far.
    step: u64,
    /// The number of all steps of the job.
    steps: u64,
    /// The loss of the step's batch, or the mean loss of the epoch's batches.
    loss: f64,
    /// The mean loss of the held-out samples; NaN after a step.
    held_out_loss: f64,
    /// The fraction of the held-out samples whose most likely class is the right one, 0 to 1; NaN after a step.
    accuracy: f64,
    /// The duration of the epoch, including its evaluation, in seconds; NaN after a step.
    seconds: f64,
};

/// Receives the events of a job: `.of(&it)`, where `it` has the method `progress(self, event: TrainEvent) bool`. The method is
/// called after each step and each epoch, in the caller's thread, and returns false to end the job.
pub const TrainProgress = struct {
    user: ?*anyopaque,
    function: *const fn (?*anyopaque, [*c]const c.adead_train_event) callconv(.c) i32,

    pub fn of(it: anytype) TrainProgress {
        const It = @TypeOf(it);
        const callback = struct {
            fn told(user: ?*anyopaque, event: [*c]const c.adead_train_event) callconv(.c) i32 {
                const self: It = @ptrCast(@alignCast(user));
                return @intFromBool(!self.progress(.{
                    .epoch_is_over = event.*.epoch_is_over != 0,
                    .epoch = event.*.epoch,
                    .step = event.*.step,
                    .steps = event.*.steps,
                    .loss = event.*.loss,
                    .held_out_loss = event.*.held_out_loss,
                    .accuracy = event.*.accuracy,
                    .seconds = event.*.seconds,
                }));
            }
        };
        return .{ .user = it, .function = callback.told };
    }
};

/// Options for running a job.
pub const TrainOptions = struct {
    /// As for a Trainer.
    device: ?[:0]const u8 = null,
    isa: ?[:0]const u8 = null,
    threads: ?usize = null,
    precision: enums.Precision = .f32,
    /// Whether to continue from the job's checkpoint, if it exists.
    @"resume": bool = false,
    /// The number of epochs, at least 1; null takes the job's.
    epochs: ?u32 = null,
    /// The rank of this process, as for join(). By default the process trains alone.
    ranks: ?[:0]const u8 = null,
    /// How many seconds a rank may take to connect, and to compute its part of a step.
    patience: f64 = 300,
    progress: ?TrainProgress = null,
};

/// The result of a job.
pub const TrainOutcome = struct {
    /// The number of steps, including those before a checkpoint.
    steps: u64,
    /// The mean loss of the held-out samples after the last epoch. NaN if this run made no epoch, and on ranks above 0.
    held_out_loss: f64,
    /// The fraction of the held-out samples whose most likely class is the right one, 0 to 1. NaN as above.
    accuracy: f64,
    /// The SHA-256 of the parameters, as Trainer.sha256() returns it.
    sha256: [64]u8,
    /// The name of the device, which ends with a zero.
    device_name: [64]u8,

    /// Returns the device that trained.
    pub fn device(self: *const TrainOutcome) []const u8 {
        return std.mem.sliceTo(&self.device_name, 0);
    }
};

/// Runs a training job from a TOML file (docs/training.md). Errors: Io or InvalidArgument if the job, its data or a checkpoint
/// can't be read or is malformed; NotReady if `progress` ended the job.
pub fn trainJob(path: [:0]const u8, options: TrainOptions) Error!TrainOutcome {
    if (options.epochs == 0) return shared.failure.fail(error.InvalidArgument, "epochs is 0; it must be at least 1", .{});
    const opened: Trainer.Options = .{ .isa = options.isa, .threads = options.threads, .precision = options.precision };
    const context = opened.raw();
    const raw: c.adead_train_options = .{
        .struct_size = @sizeOf(c.adead_train_options),
        .@"resume" = @intFromBool(options.@"resume"),
        .epochs = options.epochs orelse 0,
        .ranks = if (options.ranks) |ranks| ranks.ptr else null,
        .patience = options.patience,
        .progress = if (options.progress) |it| it.function else null,
        .user = if (options.progress) |it| it.user else null,
    };
    var out: c.adead_train_outcome = std.mem.zeroes(c.adead_train_outcome);
    out.struct_size = @sizeOf(c.adead_train_outcome);
    const device = if (options.device) |it| it.ptr else null;
    try check(c.adead_train_job(path.ptr, device, &context, &raw, &out));
    return .{
        .steps = out.steps,
        .held_out_loss = out.held_out_loss,
        .accuracy = out.accuracy,
        .sha256 = out.sha256[0..64].*,
        .device_name = out.device,
    };
}
