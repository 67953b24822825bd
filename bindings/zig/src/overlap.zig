//! Batches through a device, several under way at once, with copies beside the work: docs/overlap.md.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const gpu = @import("gpu.zig");
const Allocator = std.mem.Allocator;
const Buffer = gpu.Buffer;
const Context = @import("context.zig").Context;
const Error = enums.Error;
const call = @import("call.zig");
const check = enums.check;
const Stream = gpu.Stream;

/// The most batches under way at once.
pub const max_depth = c.ADEAD_OVERLAP_MAX_DEPTH;

/// What a callback returns in place of an error that is kept beside: no status of the library's.
pub const kept_error: c.adead_status = -1;

/// What `work` is given for a batch. It is there for the call only, and its buffers are the library's.
pub const Stage = struct {
    /// Of which batch: the first one is 0.
    index: usize,
    /// Where to enqueue work, which finds the batch there.
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

    /// A buffer of so many bytes for results and intermediate values. The n-th call for a batch gives what the n-th call gave
    /// for an earlier one, with what it had, if that had the same size; else a new one, zeroed.
    pub fn buffer(self: *Stage, bytes: usize) Error!Buffer {
        return call.made(Buffer, c.adead_stage_buffer, .{ self.handle, bytes });
    }

    /// What comes to the host when the work is done: bytes of a buffer from an offset on. The last call counts; without one,
    /// a result of no bytes says that the batch is done.
    pub fn result(self: *Stage, from: Buffer, offset: usize, bytes: usize) void {
        // It fails for an empty buffer only, which is as good as no result.
        _ = c.adead_stage_result(self.handle, from.handle, offset, bytes);
    }
};

/// A batch's result, where the download put it: until the next call of next() or deinit().
pub const Result = struct {
    /// Of which batch: the first one is 0.
    index: usize,
    bytes: []const u8,

    /// All of it as values. InvalidArgument if its size is no multiple of theirs.
    pub fn values(self: Result, comptime T: type) Error![]const T {
        if (self.bytes.len == 0) return &.{};
        if (self.bytes.len % @sizeOf(T) != 0 or !std.mem.isAligned(@intFromPtr(self.bytes.ptr), @alignOf(T))) {
            return failure.fail(error.InvalidArgument, "a result of {d} bytes is no array of {s}s of {d}", .{
                self.bytes.len, @typeName(T), @sizeOf(T),
            });
        }
        const first: [*]const T = @ptrCast(@alignCast(self.bytes.ptr));
        return first[0 .. self.bytes.len / @sizeOf(T)];
    }
};

/// Takes batches through a device, at most `depth` at once, each on a stream of its own: it is uploaded, work is enqueued on it,
/// and what that names as its result is brought to the host. 1 is sequential, 2 double buffering, 3 triple buffering.
///
/// `source` is a pointer to a struct with two methods. `next(self) !?[]const T` gives the next batch, plain values that need only
/// stay until it is called again, or null at the end. `work(self, stage: *adead.Stage) !void` enqueues a batch's work on
/// `stage.stream`.
///
/// The results are those of a loop that does one batch after the other, whatever the depth: work of a batch begins when the work
/// of the batch before is done, so `work` may read and write buffers that all batches share. Uploads and downloads run beside it.
/// `next` and `work` are called in the thread that asks for results, a batch only when fewer than `depth` are under way. An error
/// of theirs or of the device comes in its batch's place and is the last result.
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
        /// What next() may return: also what the source's methods do.
        pub const Errors = Error || ErrorsOf(Next) || ErrorsOf(Work);

        /// What the library asks, and the error that it is given in place of an answer.
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

        /// Waits for what is under way and frees everything.
        pub fn deinit(self: *Self) void {
            c.adead_batches_destroy(self.handle);
            self.allocator.destroy(self.asked);
        }

        /// Waits for the next result; null when there is none any more.
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

/// An error of a callback, with its text, until the caller is told of it.
pub fn Kept(comptime Errors: type) type {
    return struct {
        err: ?Errors = null,
        text: failure.Kept = .{},

        pub fn keep(self: *@This(), err: Errors) c.adead_status {
            self.text.keep();
            self.err = err;
            return kept_error;
        }
        pub fn say(self: *@This()) Errors {
            self.text.say();
            return self.err.?;
        }
    };
}

/// The errors of what a function returns.
pub fn ErrorsOf(comptime Returned: type) type {
    return switch (@typeInfo(Returned)) {
        .error_union => |it| it.error_set,
        else => error{},
    };
}

/// What a function returns where it does not fail.
pub fn ErrorFree(comptime Returned: type) type {
    return switch (@typeInfo(Returned)) {
        .error_union => |it| it.payload,
        else => Returned,
    };
}
