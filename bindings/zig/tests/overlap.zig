//! Batches through a device, and loaders: results equal those of a plain loop, errors come in their places, and memory
//! is freed. The build names the device.

const std = @import("std");
const adead = @import("adead");
const options = @import("options");
const allocator = std.testing.allocator;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;
const expectError = std.testing.expectError;

fn open() !adead.Context {
    return adead.Context.open(std.fmt.comptimePrint("{s}", .{options.device}), .{}) catch |err| {
        if (err != error.BackendUnavailable) return err;
        std.debug.print("skipped: {s}\n", .{adead.lastError()});
        return error.SkipZigTest;
    };
}

fn says(words: []const u8) !void {
    if (std.mem.indexOf(u8, adead.lastError(), words) != null) return;
    std.debug.print("'{s}' is not in: {s}\n", .{ words, adead.lastError() });
    return error.OtherText;
}

const row = 1000;

/// Every seventh batch is small, and the eleventh is empty.
fn length(index: usize) usize {
    return if (index == 10) 0 else if (index % 7 == 6) 64 else row;
}

fn value(index: usize, i: usize) f32 {
    return @as(f32, @floatFromInt((index * 31 + i * 17) % 23)) - 11.5;
}

fn made(index: usize, into: *[row]f32) []f32 {
    for (into[0..length(index)], 0..) |*it, i| it.* = value(index, i);
    return into[0..length(index)];
}

/// Batches that apply relu, with an error at a chosen place.
const Relu = struct {
    count: usize,
    depth: usize,
    bad_next: usize = 99,
    bad_work: usize = 99,
    asked: usize = 0,
    worked: usize = 0,
    taken: usize = 0,
    values: [row]f32 = undefined,
    buffers: [32]adead.Buffer = undefined,

    pub fn next(self: *Relu) error{NoMoreTape}!?[]const f32 {
        // `next` is called when a lane is free.
        std.debug.assert(self.asked - self.taken < self.depth and self.worked == self.asked);
        if (self.asked == self.bad_next) return error.NoMoreTape;
        if (self.asked == self.count) return null;
        self.asked += 1;
        return made(self.asked - 1, &self.values);
    }

    pub fn work(self: *Relu, stage: *adead.Stage) !void {
        try expectEqual(self.worked, stage.index);
        self.worked += 1;
        const n = length(stage.index) + @intFromBool(stage.index == self.bad_work);
        try expectEqual(4 * length(stage.index), try stage.input.size());
        const y = try stage.buffer(4 * n);
        self.buffers[stage.index] = y;
        try stage.stream.run(.relu, &.{.of(stage.input, .f32, &.{n}, 0)}, .of(y, .f32, &.{n}, 0), .{});
        // The last call counts.
        stage.result(stage.input, 0, 0);
        stage.result(y, 0, 4 * n);
    }

    fn take(self: *Relu, result: adead.OverlapResult) !void {
        try expectEqual(self.taken, result.index);
        const found = try result.values(f32);
        try expectEqual(length(result.index), found.len);
        for (found, 0..) |it, i| try expectEqual(@max(value(result.index, i), 0), it);
        self.taken += 1;
    }
};

test "order, bounds, buffers that serve again" {
    const ctx = try open();
    defer ctx.deinit();
    const before = (try ctx.memory()).allocations;
    for ([_]usize{ 1, 2, 3, 8, adead.max_depth }) |depth| {
        for ([_]usize{ 0, 1, 20 }) |count| {
            var source: Relu = .{ .count = count, .depth = depth };
            var results = try adead.overlap(ctx, allocator, &source, depth);
            defer results.deinit();
            while (try results.next()) |result| try source.take(result);
            try expectEqual(count, source.taken);
            try expectEqual(null, try results.next());
            for (depth..@max(count, depth)) |i| {
                if (length(i) == length(i - depth)) try expectEqual(source.buffers[i - depth].handle, source.buffers[i].handle);
            }
        }
    }
    try expectEqual(before, (try ctx.memory()).allocations);
}

/// A state that every batch changes, downloaded each time.
const State = struct {
    sum: adead.Buffer,
    index: usize = 0,
    values: [row]f32 = undefined,

    // Both must be unable to fail.
    pub fn next(self: *State) ?[]const f32 {
        if (self.index == 20) return null;
        @memset(&self.values, @floatFromInt(self.index));
        self.index += 1;
        return &self.values;
    }
    pub fn work(self: *State, stage: *adead.Stage) adead.Error!void {
        const state: adead.Operand = .of(self.sum, .f32, &.{row}, 0);
        try stage.stream.run(.add, &.{ state, .of(stage.input, .f32, &.{row}, 0) }, state, .{});
        stage.result(self.sum, 4, 8);
    }
};

test "a state that all batches share" {
    const ctx = try open();
    defer ctx.deinit();
    for (1..6) |depth| {
        const sum = try ctx.bufferZeroed(4 * row);
        defer sum.deinit();
        var source: State = .{ .sum = sum };
        var results = try adead.overlap(ctx, allocator, &source, depth);
        defer results.deinit();
        var expected: f32 = 0;
        while (try results.next()) |result| {
            expected += @floatFromInt(result.index);
            try expectEqualSlices(f32, &.{ expected, expected }, try result.values(f32));
        }
        try expectEqual(190, expected);
    }
}

const Nothing = struct {
    left: usize,

    pub fn next(self: *Nothing) ?[]const u8 {
        if (self.left == 0) return null;
        self.left -= 1;
        return "";
    }
    pub fn work(_: *Nothing, _: *adead.Stage) void {}
};

test "batches and results of nothing" {
    const ctx = try open();
    defer ctx.deinit();
    var source: Nothing = .{ .left = 5 };
    var results = try adead.overlap(ctx, allocator, &source, 2);
    defer results.deinit();
    var count: usize = 0;
    while (try results.next()) |result| : (count += 1) {
        try expectEqual(count, result.index);
        try expectEqual(0, result.bytes.len);
        try expectEqual(0, (try result.values(i64)).len);
    }
    try expectEqual(5, count);
    try expectError(error.InvalidArgument, adead.overlap(ctx, allocator, &source, 0));
    try says("the depth is 0; it must be from 1 to 64");
    try expectError(error.InvalidArgument, adead.overlap(ctx, allocator, &source, 65));
}

test "errors in their places, and early ends" {
    const ctx = try open();
    defer ctx.deinit();
    const before = (try ctx.memory()).allocations;
    for (1..6) |depth| {
        var source: Relu = .{ .count = 20, .depth = depth, .bad_next = 9 };
        var results = try adead.overlap(ctx, allocator, &source, depth);
        defer results.deinit();
        for (0..9) |_| try source.take((try results.next()).?);
        try expectError(error.NoMoreTape, results.next());
        try expectEqual(null, try results.next());
        try expectEqual(9, source.worked);

        var wrong: Relu = .{ .count = 20, .depth = depth, .bad_work = 4 };
        var some = try adead.overlap(ctx, allocator, &wrong, depth);
        defer some.deinit();
        for (0..4) |_| {
            try wrong.take((try some.next()).?);
            // An error that is raised meanwhile must not replace the loader's own.
            try expectError(error.InvalidArgument, adead.overlap(ctx, allocator, &wrong, 0));
        }
        try expectError(error.InvalidArgument, some.next());
        try says("4004");
        try expectEqual(null, try some.next());
        try expectEqual(5, wrong.worked);

        // Destroyed with results left; no other batch starts.
        var early: Relu = .{ .count = 20, .depth = depth };
        var left = try adead.overlap(ctx, allocator, &early, depth);
        for (0..3) |_| try early.take((try left.next()).?);
        left.deinit();
        try expectEqual(2 + depth, early.worked);
    }
    try expectEqual(before, (try ctx.memory()).allocations);
}

/// An error that only the device finds: an id outside a table.
const LookUp = struct {
    table: adead.Buffer,
    index: usize = 0,
    id: [1]i32 = undefined,

    pub fn next(self: *LookUp) ?[]const i32 {
        if (self.index == 10) return null;
        self.id[0] = if (self.index == 3) 5 else @intCast(self.index % 4);
        self.index += 1;
        return &self.id;
    }
    pub fn work(self: *LookUp, stage: *adead.Stage) !void {
        const y = try stage.buffer(8);
        stage.result(y, 0, 8);
        const table: adead.Operand = .of(self.table, .f32, &.{ 4, 2 }, 0);
        try stage.stream.run(.embedding, &.{ table, .of(stage.input, .i32, &.{1}, 0) }, .of(y, .f32, &.{ 1, 2 }, 0), .{});
    }
};

test "what the device finds" {
    const ctx = try open();
    defer ctx.deinit();
    const table = try ctx.buffer(f32, &.{ 0, 1, 2, 3, 4, 5, 6, 7 });
    defer table.deinit();
    for (1..5) |depth| {
        var source: LookUp = .{ .table = table };
        var results = try adead.overlap(ctx, allocator, &source, depth);
        defer results.deinit();
        for (0..3) |i| {
            const result = (try results.next()).?;
            const first: f32 = @floatFromInt(2 * i);
            try expectEqualSlices(f32, &.{ first, first + 1 }, try result.values(f32));
            try expectError(error.InvalidArgument, result.values([3]f32));
            try says("a result of 8 bytes is not an array of [3]f32s of 12");
        }
        try expectError(error.InvalidArgument, results.next());
        try says("embedding: id 5");
        try expectEqual(null, try results.next());
    }
}

/// The source of a loader.
const Maker = struct {
    pub const Item = std.ArrayList(f32);
    allocator: std.mem.Allocator = allocator,
    count: usize,
    ahead: usize,
    bad: usize = 99,
    index: usize = 0,
    taken: std.atomic.Value(usize) = .init(0),
    freed: usize = 0,

    pub fn make(self: *Maker, item: *Item) !bool {
        // This item is included: it is counted just before it is taken.
        std.debug.assert(self.index + 1 - self.taken.load(.seq_cst) <= self.ahead);
        if (self.index == self.bad) {
            const nine: [9]usize = @splat(1);
            (try adead.Tensor.zeros(.f32, &nine)).deinit();
        }
        if (self.index == self.count) return false;
        try item.resize(self.allocator, length(self.index));
        for (item.items, 0..) |*it, i| it.* = value(self.index, i);
        self.index += 1;
        return true;
    }
    pub fn free(self: *Maker, item: *Item) void {
        item.deinit(self.allocator);
        self.freed += 1;
    }
};
const Loader = adead.DataLoader(Maker);

test "loaders" {
    for (1..5) |ahead| {
        var source: Maker = .{ .count = 20, .ahead = ahead };
        const loader: Loader = try .init(allocator, &source, ahead, .empty);
        for (0..20) |index| {
            _ = source.taken.fetchAdd(1, .seq_cst);
            const item = (try loader.next()).?;
            try expectEqual(length(index), item.items.len);
            for (item.items, 0..) |it, i| try expectEqual(value(index, i), it);
        }
        for (0..3) |_| try expectEqual(null, try loader.next());
        loader.deinit();
        try expectEqual(ahead + 1, source.freed);

        // Its error comes in its place, once, with its text.
        var broken: Maker = .{ .count = 20, .ahead = ahead, .bad = 5 };
        const some: Loader = try .init(allocator, &broken, ahead, .empty);
        defer some.deinit();
        for (0..5) |_| {
            _ = broken.taken.fetchAdd(1, .seq_cst);
            _ = (try some.next()).?;
        }
        try expectError(error.InvalidArgument, some.next());
        try says("9");
        try expectEqual(null, try some.next());

        // Dropped early, whatever its thread is doing.
        for (0..20) |i| {
            var endless: Maker = .{ .count = std.math.maxInt(usize), .ahead = ahead };
            const dropped: Loader = try .init(allocator, &endless, ahead, .empty);
            for (0..i % 4) |_| {
                _ = endless.taken.fetchAdd(1, .seq_cst);
                _ = (try dropped.next()).?;
            }
            dropped.deinit();
            try expect(endless.index <= i % 4 + ahead);
        }
    }
    var source: Maker = .{ .count = 1, .ahead = 1 };
    try expectError(error.InvalidArgument, Loader.init(allocator, &source, 0, .empty));
    try says("at least 1 item ahead, not 0");
}

/// Batches from a loader, downloaded unchanged.
const Back = struct {
    loader: Loader,

    pub fn next(self: *Back) !?[]const f32 {
        return if (try self.loader.next()) |item| item.items else null;
    }
    pub fn work(_: *Back, stage: *adead.Stage) void {
        stage.result(stage.input, 0, 4 * length(stage.index));
    }
};

fn loadedOverlap(failing: std.mem.Allocator, ctx: adead.Context) !void {
    var maker: Maker = .{ .count = 20, .ahead = 99 };
    const loader: Loader = try .init(failing, &maker, 2, .empty);
    defer loader.deinit();
    var source: Back = .{ .loader = loader };
    var results = try adead.overlap(ctx, failing, &source, 3);
    defer results.deinit();
    var count: usize = 0;
    while (try results.next()) |result| : (count += 1) {
        for (try result.values(f32), 0..) |it, i| try expectEqual(value(count, i), it);
    }
    try expectEqual(20, count);
}

fn buffersOverlap(failing: std.mem.Allocator, ctx: adead.Context) !void {
    var source: Relu = .{ .count = 8, .depth = 3 };
    var results = try adead.overlap(ctx, failing, &source, 3);
    defer results.deinit();
    while (try results.next()) |result| try source.take(result);
}

test "a loader before overlap, and every allocation failing once" {
    const ctx = try open();
    defer ctx.deinit();
    try loadedOverlap(allocator, ctx);
    try std.testing.checkAllAllocationFailures(allocator, loadedOverlap, .{ctx});
    try std.testing.checkAllAllocationFailures(allocator, buffersOverlap, .{ctx});
}
