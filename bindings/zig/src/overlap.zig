//! Batches through a device: several are in flight at once, and copies overlap with the work. docs/overlap.md is the
//! guide.

const std = @import("std");
const c = @import("c");
const callback = @import("callback.zig");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const gpu = @import("gpu.zig");
const Allocator = std.mem.Allocator;
const Buffer = gpu.Buffer;
const Context = @import("context.zig").Context;
const Error = enums.Error;
const call = @import("call.zig");
const check = enums.check;
const ErrorFree = callback.ErrorFree;
const ErrorsOf = callback.ErrorsOf;
const Kept = callback.Kept;
const kept_error = callback.kept_error;
const Stream = gpu.Stream;

/// The most batches in flight at once.
pub const max_depth = c.ADEAD_OVERLAP_MAX_DEPTH;

/// The objects for a batch's work. They are valid only during the call, and the library owns the buffers.
pub const Stage = struct {
    /// The index of the batch; the first one is 0.
    index: usize,
    /// The stream for the batch's work. The upload comes before all work on this stream.
    stream: Stream,
    /// The batch on the device: a buffer of exactly its bytes.
    input: Buffer,
    handle: ?*c.adead_stage,

    fn of(handle: ?*c.adead_stage) Stage {
        return .{
            .index = c.adead_stage_index(handle),
            .stream = .{ .handle = c.adead_stage_stream(handle) },
            .input = .{ .handle = c.adead_stage_input(handle) },
            .handle = handle,
        };
    }

    /// Returns a buffer of `bytes` bytes for results and intermediate values. The n-th call for a batch reuses the
    /// buffer of an earlier batch's n-th call, with its old bytes, if the size is the same. Otherwise it returns a new
    /// buffer of zeros.
    pub fn buffer(self: *Stage, bytes: usize) Error!Buffer {
        return call.made(Buffer, c.adead_stage_buffer, .{ self.handle, bytes });
    }

    /// Sets the result of the batch: bytes of a buffer from an offset on, to be downloaded when the work is done. The
    /// last call counts. Without a call, the result has no bytes, and its arrival says that the batch is done.
    pub fn result(self: *Stage, from: Buffer, offset: usize, bytes: usize) void {
        // This fails only for an empty buffer, which counts as no result.
        _ = c.adead_stage_result(self.handle, from.handle, offset, bytes);
    }
};

/// A batch's result, in the memory of the download. It is valid until the next call of next() or deinit().
pub const Result = struct {
    /// The index of the batch; the first one is 0.
    index: usize,
    bytes: []const u8,

    /// Returns the whole result as values. InvalidArgument if its size is not a multiple of theirs.
    pub fn values(self: Result, comptime T: type) Error![]const T {
        if (self.bytes.len == 0) return &.{};
        if (self.bytes.len % @sizeOf(T) != 0 or !std.mem.isAligned(@intFromPtr(self.bytes.ptr), @alignOf(T))) {
            return failure.fail(error.InvalidArgument, "a result of {d} bytes is not an array of {s}s of {d}", .{
                self.bytes.len, @typeName(T), @sizeOf(T),
            });
        }
        const first: [*]const T = @ptrCast(@alignCast(self.bytes.ptr));
        return first[0 .. self.bytes.len / @sizeOf(T)];
    }
};

/// Processes batches on a device, at most `depth` at once, each on its own stream. A batch is uploaded, and its work is
/// enqueued and names a result, which is downloaded. Depth 1 is sequential, 2 double buffering, 3 triple buffering.
///
/// `source` is a pointer to a struct with two methods. `next(self) !?[]const T` returns the next batch, or null at the
/// end. Its plain values must stay valid until `next` is called again. `work(self, stage: *adead.Stage) !void` enqueues
/// a batch's work on `stage.stream`.
///
/// At every depth the results equal those of a loop that processes one batch after the other. A batch's work begins
/// when the work of the batch before is done, so `work` may read and write buffers that all batches share. Uploads and
/// downloads overlap with the work. The thread that asks for results calls `next` and `work`, and calls `next` only
/// while fewer than `depth` batches are in flight. An error of `next`, `work` or the device is returned in its batch's
/// place and is the last result.
///
/// InvalidArgument unless the depth is from 1 to `max_depth`.
pub fn overlap(ctx: Context, allocator: Allocator, source: anytype, depth: usize) Error!Overlap(@TypeOf(source)) {
    const Asked = Overlap(@TypeOf(source)).Asked;
    const asked = allocator.create(Asked) catch return failure.outOfMemory();
    errdefer allocator.destroy(asked);
    asked.* = .{ .source = source };
    var handle: ?*c.adead_batches = null;
    try check(c.adead_batches_create(ctx.handle, depth, Asked.next, Asked.work, asked, &handle));
    return .{ .allocator = allocator, .asked = asked, .handle = handle };
}

/// The results of `overlap`, in the order of the batches.
pub fn Overlap(comptime Source: type) type {
    const Next = @TypeOf(@as(Source, undefined).next());
    const Work = @TypeOf(@as(Source, undefined).work(undefined));
    return struct {
        allocator: Allocator,
        asked: *Asked,
        handle: ?*c.adead_batches,

        const Self = @This();
        /// The errors of next(), including those of the source's methods.
        pub const Errors = Error || ErrorsOf(Next) || ErrorsOf(Work);

        /// The source, which the library calls, and the error that a callback returned.
        const Asked = struct {
            source: Source,
            failed: Kept(Errors) = .{},

            fn next(batch: ?*c.adead_batch, user: ?*anyopaque) callconv(.c) c.adead_status {
                const self: *Asked = @ptrCast(@alignCast(user));
                const given = if (Next == ErrorFree(Next)) self.source.next() else self.source.next() catch |err| return self.failed.keep(err);
                const bytes = std.mem.sliceAsBytes(given orelse return c.ADEAD_OK);
                return c.adead_batch_borrow(batch, if (bytes.len > 0) bytes.ptr else "", bytes.len);
            }

            fn work(handle: ?*c.adead_stage, user: ?*anyopaque) callconv(.c) c.adead_status {
                const self: *Asked = @ptrCast(@alignCast(user));
                var stage: Stage = .of(handle);
                if (Work == ErrorFree(Work)) self.source.work(&stage) else self.source.work(&stage) catch |err| return self.failed.keep(err);
                return c.ADEAD_OK;
            }
        };

        /// Waits for the batches in flight and frees everything.
        pub fn deinit(self: *Self) void {
            c.adead_batches_destroy(self.handle);
            self.allocator.destroy(self.asked);
        }

        /// Waits for the next result; null means that no result is left.
        pub fn next(self: *Self) Errors!?Result {
            var index: usize = 0;
            var bytes: usize = 0;
            var data: ?*const anyopaque = null;
            const status = c.adead_batches_next(self.handle, &index, &data, &bytes);
            if (status == kept_error) return self.asked.failed.say();
            try check(status);
            const first: [*]const u8 = @ptrCast(data orelse return null);
            return .{ .index = index, .bytes = first[0..bytes] };
        }
    };
}
