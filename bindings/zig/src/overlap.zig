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
const Event = gpu.Event;
const Stream = gpu.Stream;

/// The most batches under way at once.
pub const max_depth = 64;

/// A buffer with its size.
const Sized = struct {
    buffer: Buffer = .{},
    bytes: usize = 0,

    /// Makes it one of so many bytes. What does not fit goes first, so that both need not be there at once.
    fn fit(self: *Sized, ctx: Context, bytes: usize) Error!Buffer {
        if (self.buffer.handle == null or self.bytes != bytes) {
            self.buffer.deinit();
            self.buffer = .{};
            self.buffer = try ctx.bufferZeroed(bytes);
            self.bytes = bytes;
        }
        return self.buffer;
    }
};

/// A stream and the buffers of the one batch that is under way on it.
const Lane = struct {
    stream: Stream = .{},
    input: Sized = .{},
    buffers: std.ArrayList(Sized) = .empty,
    download: gpu.Download = .{},
    bytes: usize = 0,

    /// Waits for what is under way.
    fn deinit(self: *Lane, allocator: Allocator) void {
        self.stream.deinit();
        self.download.deinit();
        self.input.buffer.deinit();
        for (self.buffers.items) |it| it.buffer.deinit();
        self.buffers.deinit(allocator);
    }

    fn release(self: *Lane) void {
        self.download.deinit();
        self.download = .{};
    }

    /// Whether a buffer is one of this lane's, which no other batch has.
    fn owns(self: *const Lane, buffer: Buffer) bool {
        for (self.buffers.items) |it| if (it.buffer.handle == buffer.handle) return true;
        return self.input.buffer.handle == buffer.handle;
    }

    /// Enqueues the download, and the point where the work of the next batch begins. A buffer that others have too may be
    /// written by that work, which waits for the download then.
    fn bring(self: *Lane, stage: Stage, before: *Event) Error!void {
        const part = stage.part orelse return self.mark(before);
        const own = self.owns(part.buffer);
        if (own) try self.mark(before);
        self.download = try self.stream.download(part.buffer, part.offset, part.bytes);
        self.bytes = part.bytes;
        if (!own) try self.mark(before);
    }

    fn mark(self: *Lane, before: *Event) Error!void {
        const event = try self.stream.event();
        before.deinit();
        before.* = event;
    }
};

/// What `work` is given for a batch. It is there for the call only, and its buffers are the lane's.
pub const Stage = struct {
    /// Of which batch: the first one is 0.
    index: usize,
    /// Where to enqueue work, which finds the batch there.
    stream: Stream,
    /// The batch on the device: a buffer of exactly its bytes.
    input: Buffer,
    ctx: Context,
    allocator: Allocator,
    lane: *Lane,
    used: usize = 0,
    part: ?struct { buffer: Buffer, offset: usize, bytes: usize } = null,

    /// A buffer of so many bytes for results and intermediate values. The n-th call for a batch gives what the n-th call gave
    /// for an earlier one, with what it had, if that had the same size; else a new one, zeroed.
    pub fn buffer(self: *Stage, bytes: usize) Error!Buffer {
        const all = &self.lane.buffers;
        if (self.used == all.items.len) all.append(self.allocator, .{}) catch return failure.outOfMemory();
        const out = try all.items[self.used].fit(self.ctx, bytes);
        self.used += 1;
        return out;
    }

    /// What comes to the host when the work is done: bytes of a buffer from an offset on. The last call counts; without one,
    /// a result of no bytes says that the batch is done.
    pub fn result(self: *Stage, from: Buffer, offset: usize, bytes: usize) void {
        self.part = .{ .buffer = from, .offset = offset, .bytes = bytes };
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
    if (depth < 1 or depth > max_depth) {
        const text = "overlap: the depth is {d}; it must be from 1 to {d}";
        return failure.fail(error.InvalidArgument, text, .{ depth, max_depth });
    }
    const lanes = allocator.alloc(Lane, depth) catch return failure.outOfMemory();
    @memset(lanes, .{});
    var out: Overlap(@TypeOf(source)) = .{ .ctx = ctx, .allocator = allocator, .source = source, .lanes = lanes };
    errdefer out.deinit();
    for (lanes) |*lane| lane.stream = try ctx.stream();
    return out;
}

/// The results of `overlap`, in the order of the batches.
pub fn Overlap(comptime Source: type) type {
    const Next = @TypeOf(@as(Source, undefined).next());
    const Work = @TypeOf(@as(Source, undefined).work(undefined));
    return struct {
        ctx: Context,
        allocator: Allocator,
        source: Source,
        lanes: []Lane,
        started: usize = 0,
        finished: usize = 0,
        more: bool = true,
        before: Event = .{},
        /// What comes behind the batches that were started.
        ended: ?Errors = null,
        text: failure.Kept = .{},

        const Self = @This();
        /// What next() may return: also what the source's methods do.
        pub const Errors = Error || ErrorsOf(Next) || ErrorsOf(Work);

        /// Waits for what is under way and frees everything.
        pub fn deinit(self: *Self) void {
            for (self.lanes) |*lane| lane.deinit(self.allocator);
            self.allocator.free(self.lanes);
            self.before.deinit();
        }

        /// Waits for the next result; null when there is none any more.
        pub fn next(self: *Self) Errors!?Result {
            const depth = self.lanes.len;
            if (self.finished > 0) self.lanes[(self.finished - 1) % depth].release();
            while (self.more and self.started - self.finished < depth) {
                self.more = self.start() catch |err| {
                    self.text.keep();
                    self.ended = err;
                    self.more = false;
                    break;
                };
            }
            if (self.finished == self.started) {
                const ended = self.ended orelse return null;
                self.ended = null;
                self.text.say();
                return ended;
            }
            errdefer {
                self.more = false;
                self.ended = null;
                self.started = self.finished;
            }
            const lane = &self.lanes[self.finished % depth];
            // What only the device can find is told here.
            try lane.stream.sync();
            var bytes: []const u8 = &.{};
            if (lane.download.handle != null) bytes = (try lane.download.data())[0..lane.bytes];
            self.finished += 1;
            return .{ .index = self.finished - 1, .bytes = bytes };
        }

        /// Asks for a batch and enqueues it: upload, work behind the work of the batch before, download. Whether there was one.
        fn start(self: *Self) Errors!bool {
            const given = if (Next == ErrorFree(Next)) self.source.next() else try self.source.next();
            const bytes = std.mem.sliceAsBytes(given orelse return false);
            const lane = &self.lanes[self.started % self.lanes.len];
            const input = try lane.input.fit(self.ctx, bytes.len);
            if (bytes.len > 0) try lane.stream.upload(input, 0, u8, bytes);
            if (self.before.handle != null) try lane.stream.waitEvent(self.before);
            var stage: Stage = .{
                .index = self.started,
                .stream = lane.stream,
                .input = input,
                .ctx = self.ctx,
                .allocator = self.allocator,
                .lane = lane,
            };
            if (Work == ErrorFree(Work)) self.source.work(&stage) else try self.source.work(&stage);
            try lane.bring(stage, &self.before);
            try lane.stream.flush();
            self.started += 1;
            return true;
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
