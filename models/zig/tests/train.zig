//! Trainer and trainJob: the hash that every language has, files, ranks, progress, errors.

const std = @import("std");
const builtin = @import("builtin");
const models = @import("adead_models");
const fails = @import("check.zig").fails;
const Trainer = models.Trainer;
const gpa = std.testing.allocator;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;
const expectEqualStrings = std.testing.expectEqualStrings;

const File = opaque {};
extern fn mkdtemp(template: [*:0]u8) ?[*:0]u8;
extern fn fopen(path: [*:0]const u8, mode: [*:0]const u8) ?*File;
extern fn fputs(text: [*:0]const u8, file: *File) c_int;
extern fn fclose(file: *File) c_int;
extern fn remove(path: [*:0]const u8) c_int;
extern fn socket(domain: c_int, kind: c_int, protocol: c_int) c_int;
extern fn bind(socket: c_int, address: *const [16]u8, length: u32) c_int;
extern fn getsockname(socket: c_int, address: *[16]u8, length: *u32) c_int;
extern fn close(file: c_int) c_int;

/// What every language trains.
const Shared = struct {
    parsed: std.json.Parsed(std.json.Value),
    description: [:0]u8,
    samples: usize,
    epochs: u32,
    sha256: []const u8,

    fn read() !Shared {
        const parsed = try std.json.parseFromSlice(std.json.Value, gpa, @embedFile("trainer"), .{});
        errdefer parsed.deinit();
        const all = parsed.value.object;
        const text = try std.json.Stringify.valueAlloc(gpa, all.get("description").?, .{});
        defer gpa.free(text);
        const description = try gpa.allocSentinel(u8, text.len, 0);
        @memcpy(description, text);
        return .{
            .parsed = parsed,
            .description = description,
            .samples = @intCast(all.get("samples").?.integer),
            .epochs = @intCast(all.get("epochs").?.integer),
            .sha256 = all.get("sha256").?.string,
        };
    }

    fn deinit(self: Shared) void {
        gpa.free(self.description);
        self.parsed.deinit();
    }

    fn trainer(self: Shared, threads: usize) !Trainer {
        return Trainer.init(self.description, .{ .device = "cpu", .threads = threads });
    }
};

const batch = 24;
const most = 240;

/// The samples of tests/train/trainer.json, and their classes.
const Data = struct {
    x: [most * 6]f32,
    classes: [most]i64,

    fn make() Data {
        var data: Data = undefined;
        for (&data.x, 0..) |*value, k| {
            const whole: f64 = @floatFromInt((k * 7919) % 1009);
            value.* = @floatCast(whole / 504.5 - 1.0);
        }
        for (&data.classes, 0..) |*class, i| {
            class.* = @as(i64, @intFromBool(data.x[6 * i] > 0)) + @intFromBool(data.x[6 * i + 1] > @as(f32, 0.3));
        }
        return data;
    }

    fn samples(self: *const Data, count: usize) models.Samples {
        return .{ .f32 = self.x[0 .. 6 * count] };
    }

    fn targets(self: *const Data, count: usize) models.Samples {
        return .{ .i64 = self.classes[0..count] };
    }
};

const Steps = struct {
    epochs: [200]u32 = undefined,
    losses: [200]f32 = undefined,
    count: usize = 0,
    most: u64 = std.math.maxInt(u64),

    pub fn progress(self: *Steps, epoch: u32, step: u64, loss: f32) bool {
        if (self.count >= self.losses.len) return false;
        self.epochs[self.count] = epoch;
        self.losses[self.count] = loss;
        self.count += 1;
        return step == self.count and step < self.most;
    }
};

test "the shared training has its hash, and no number of threads changes it" {
    const shared: Shared = try .read();
    defer shared.deinit();
    const data: Data = .make();
    try expectEqual(most, shared.samples);
    const x, const classes = .{ data.samples(most), data.targets(most) };
    for ([_]usize{ 1, 3 }) |threads| {
        const net = try shared.trainer(threads);
        defer net.deinit();
        const before = try net.evaluate(x, classes);
        var steps: Steps = .{};
        const loss = try net.fit(x, classes, .{ .epochs = shared.epochs, .progress = .of(&steps) });
        const after = try net.evaluate(x, classes);
        try expectEqualStrings(shared.sha256, &try net.sha256());
        try expect(loss < before.loss and before.accuracy < 0.9 and after.accuracy > 0.9);
        try expectEqual(200, steps.count);
        var sum: f64 = 0;
        for (steps.losses[190..]) |one| sum += one;
        try expectEqual(loss, sum / 10);
        try expectEqual(1, steps.epochs[9]);
        try expectEqual(2, steps.epochs[10]);
        try expectEqual(shared.epochs, steps.epochs[199]);

        const info = try net.info();
        try expectEqual(models.DType.f32, info.sample_type);
        try expectEqual(models.DType.i64, info.target_type);
        try expectEqualSlices(usize, &.{ 6, 1, 3, batch }, &.{ info.sample_size, info.target_size, info.output_size, info.batch });
        try expectEqual(200, info.steps);
        try expectEqualStrings("cpu", info.device());

        const predicted = try net.predict(gpa, x);
        defer gpa.free(predicted);
        try expectEqual(3 * most, predicted.len);
        var right: f64 = 0;
        for (data.classes, 0..) |class, i| {
            const row = predicted[3 * i ..][0..3];
            if (std.mem.indexOfMax(f32, row) == class) right += 1;
        }
        try expectEqual(after.accuracy, right / most);
    }
}

test "parameters" {
    const shared: Shared = try .read();
    defer shared.deinit();
    const net = try shared.trainer(1);
    defer net.deinit();
    const count = try net.parameterCount();
    try expectEqual(4, count);
    var found: usize = 0;
    for (0..count) |index| {
        const one = try net.parameter(gpa, index);
        defer one.deinit(gpa);
        var size: usize = 1;
        for (one.dims()) |dim| size *= dim;
        try expectEqual(size, one.values.len);
        for ([_]struct { []const u8, []const usize }{
            .{ "0.weight", &.{ 32, 6 } },
            .{ "0.bias", &.{32} },
            .{ "3.weight", &.{ 3, 32 } },
            .{ "3.bias", &.{3} },
        }) |expected| if (std.mem.eql(u8, expected[0], one.name)) {
            try expectEqualSlices(usize, expected[1], one.dims());
            found += 1;
        };
    }
    try expectEqual(4, found);
    try fails(error.InvalidArgument, "there is no parameter 4; there are 4", net.parameter(gpa, 4));
    try fails(error.OutOfMemory, "out of memory", net.parameter(std.testing.failing_allocator, 0));
}

test "steps of a batch are what fit makes" {
    const shared: Shared = try .read();
    defer shared.deinit();
    const data: Data = .make();
    const x, const classes = .{ data.samples(batch), data.targets(batch) };
    const one = try shared.trainer(1);
    defer one.deinit();
    const other = try shared.trainer(2);
    defer other.deinit();
    var last = std.math.inf(f32);
    for (0..3) |_| {
        const loss = try one.step(x, classes);
        try expect(loss < last);
        try expectEqual(loss, try other.step(x, classes));
        last = loss;
    }
    try expectEqualStrings(&try one.sha256(), &try other.sha256());
}

/// Writes a text that ends with a zero, for which the buffer has room.
fn written(buffer: []u8, comptime format: []const u8, arguments: anytype) [:0]const u8 {
    const text = std.fmt.bufPrint(buffer[0 .. buffer.len - 1], format, arguments) catch unreachable;
    buffer[text.len] = 0;
    return buffer[0..text.len :0];
}

/// A folder for files, which is removed with the files that were named.
const Folder = struct {
    path: [23:0]u8 = "/tmp/adead-train-XXXXXX".*,

    fn make() !Folder {
        var folder: Folder = .{};
        try expect(mkdtemp(&folder.path) != null);
        return folder;
    }

    fn file(self: *const Folder, buffer: *[64]u8, name: []const u8) [:0]const u8 {
        return written(buffer, "{s}/{s}", .{ self.path, name });
    }

    fn write(self: *const Folder, name: []const u8, text: [*:0]const u8, times: usize) !void {
        var buffer: [64]u8 = undefined;
        const opened = fopen(self.file(&buffer, name), "w") orelse return error.NoFile;
        for (0..times) |_| try expect(fputs(text, opened) >= 0);
        try expectEqual(0, fclose(opened));
    }

    fn delete(self: *const Folder, names: []const []const u8) void {
        var buffer: [64]u8 = undefined;
        for (names) |name| _ = remove(self.file(&buffer, name));
        _ = remove(&self.path);
    }
};

test "a training goes on from its file" {
    const shared: Shared = try .read();
    defer shared.deinit();
    const data: Data = .make();
    const x, const classes = .{ data.samples(most), data.targets(most) };
    const folder: Folder = try .make();
    defer folder.delete(&.{"state.safetensors"});
    var buffer: [64]u8 = undefined;
    const path = folder.file(&buffer, "state.safetensors");
    const first = try shared.trainer(2);
    defer first.deinit();
    _ = try first.fit(x, classes, .{ .epochs = 8 });
    try first.save(path);
    const second = try shared.trainer(1);
    defer second.deinit();
    try second.load(path);
    try expectEqual(80, (try second.info()).steps);
    _ = try second.fit(x, classes, .{ .epochs = shared.epochs - 8 });
    try expectEqualStrings(shared.sha256, &try second.sha256());
    try fails(error.Io, "/nowhere", second.load("/nowhere"));
    try fails(error.Io, "/nowhere", second.save("/nowhere/state.safetensors"));
}

/// The places of two ranks.
fn places(buffer: *[2][32]u8) ![2][:0]const u8 {
    const listener = socket(2, 1, 0);
    try expect(listener >= 0);
    defer _ = close(listener);
    var address: [16]u8 = @splat(0);
    address[0..2].* = if (builtin.os.tag.isDarwin()) .{ 16, 2 } else @bitCast(@as(u16, 2));
    address[4..8].* = .{ 127, 0, 0, 1 };
    var length: u32 = 16;
    try expectEqual(0, bind(listener, &address, 16));
    try expectEqual(0, getsockname(listener, &address, &length));
    const port = std.mem.readInt(u16, address[2..4], .big);
    var all: [2][:0]const u8 = undefined;
    for (buffer, &all, 0..) |*one, *place, rank| place.* = written(one, "{d}/2@127.0.0.1:{d}", .{ rank, port });
    return all;
}

const Rank = struct {
    shared: *const Shared,
    data: *const Data,
    place: [:0]const u8,
    hash: [64]u8 = @splat(' '),

    fn run(self: *Rank) void {
        self.hash = self.train() catch return;
    }

    fn train(self: *Rank) ![64]u8 {
        const net = try self.shared.trainer(1);
        defer net.deinit();
        try net.join(self.place, 60);
        _ = try net.fit(self.data.samples(most), self.data.targets(most), .{ .epochs = self.shared.epochs });
        return net.sha256();
    }
};

test "two ranks have the hash of one" {
    const shared: Shared = try .read();
    defer shared.deinit();
    const data: Data = .make();
    var buffer: [2][32]u8 = undefined;
    const meet = try places(&buffer);
    var ranks: [2]Rank = undefined;
    var threads: [2]std.Thread = undefined;
    for (&ranks, &threads, meet) |*rank, *thread, place| {
        rank.* = .{ .shared = &shared, .data = &data, .place = place };
        thread.* = try std.Thread.spawn(.{}, Rank.run, .{rank});
    }
    for (threads) |thread| thread.join();
    for (ranks) |rank| try expectEqualStrings(shared.sha256, &rank.hash);
}

/// Ranks in threads of this process, which hand each other pointers to their parts.
const Post = struct {
    sent: [2]std.atomic.Value(?*const []const u8) = .{ .init(null), .init(null) },
};

const Thread = struct {
    post: *Post,
    rank: usize,
    shared: *const Shared,
    data: *const Data,
    waits: usize = 0,
    hash: [64]u8 = @splat(' '),

    pub fn exchange(self: *Thread, parts: models.Parts, mailbox: models.Mailbox) !void {
        const other = 1 - self.rank;
        const part = parts.of(other);
        self.post.sent[self.rank].store(&part, .release);
        while (self.post.sent[other].load(.acquire) == null) try self.wait();
        try mailbox.put(other, self.post.sent[other].load(.acquire).?.*);
        // The other rank takes this one's part the same way, and says so.
        self.post.sent[other].store(null, .release);
        while (self.post.sent[self.rank].load(.acquire) != null) try self.wait();
    }

    fn wait(self: *Thread) !void {
        self.waits += 1;
        if (self.waits > 1 << 28) return error.TheOtherRankEnded;
        std.Thread.yield() catch {};
    }

    fn run(self: *Thread) void {
        self.hash = self.train() catch return;
    }

    fn train(self: *Thread) ![64]u8 {
        const net = try self.shared.trainer(1);
        defer net.deinit();
        try net.joinThrough(.of(self, self.rank, 2));
        _ = try net.fit(self.data.samples(most), self.data.targets(most), .{ .epochs = self.shared.epochs });
        return net.sha256();
    }
};

test "two ranks over the program's own transport have the hash of one" {
    const shared: Shared = try .read();
    defer shared.deinit();
    const data: Data = .make();
    var post: Post = .{};
    var ranks: [2]Thread = undefined;
    var threads: [2]std.Thread = undefined;
    for (&ranks, &threads, 0..) |*rank, *thread, number| {
        rank.* = .{ .post = &post, .rank = number, .shared = &shared, .data = &data };
        thread.* = try std.Thread.spawn(.{}, Thread.run, .{rank});
    }
    for (threads) |thread| thread.join();
    for (ranks) |rank| try expectEqualStrings(shared.sha256, &rank.hash);
}

const Lost = struct {
    pub fn exchange(_: *Lost, _: models.Parts, _: models.Mailbox) !void {
        return error.NoNetwork;
    }
};

test "what does not fit is refused" {
    const shared: Shared = try .read();
    defer shared.deinit();
    const data: Data = .make();
    const x, const classes = .{ data.samples(batch), data.targets(batch) };
    const net = try shared.trainer(1);
    defer net.deinit();
    const before = try net.sha256();
    try fails(error.ShapeMismatch, "there are 24 samples and 23 targets", net.step(x, data.targets(23)));
    try fails(error.ShapeMismatch, "23 samples; a step takes a batch of 24", net.step(data.samples(23), data.targets(23)));
    try fails(error.ShapeMismatch, "x has 143 values; pass samples of 6 values each", net.step(.{ .f32 = data.x[1..144] }, classes));
    try fails(error.ShapeMismatch, "x has 0 values", net.predict(gpa, .{ .f32 = &.{} }));
    try fails(error.DtypeMismatch, "targets is f32; the network takes i64", net.step(x, .{ .f32 = data.x[0..24] }));
    try fails(error.DtypeMismatch, "x is i64; the network takes f32", net.predict(gpa, classes));
    var wrong: [batch]i64 = data.classes[0..batch].*;
    wrong[3] = 9;
    try fails(error.InvalidArgument, "element 3 of targets is 9; there are 3 classes", net.step(x, .{ .i64 = &wrong }));
    try fails(error.InvalidArgument, "the loss is NaN", net.step(.{ .f32 = &@as([144]f32, @splat(std.math.nan(f32))) }, classes));
    try fails(error.InvalidArgument, "0 epochs", net.fit(x, classes, .{ .epochs = 0 }));
    try fails(error.OutOfMemory, "out of memory", net.predict(std.testing.failing_allocator, x));
    try fails(error.InvalidArgument, "'7' is no place of a rank", net.join("7", 60));
    try fails(error.InvalidArgument, "patience is 0", net.join("0/2@127.0.0.1:1", 0));
    var lost: Lost = .{};
    try fails(error.InvalidArgument, "rank 2 of 2", net.joinThrough(.of(&lost, 2, 2)));
    try fails(error.Io, "exchange failed with 1", net.joinThrough(.of(&lost, 0, 2)));
    try expectEqualStrings(&before, &try net.sha256());
    var steps: Steps = .{ .most = 3 };
    try fails(error.NotReady, "progress ended the training at step 3", net.fit(data.samples(most), data.targets(most), .{ .progress = .of(&steps) }));
    try expectEqual(3, (try net.info()).steps);

    const optimizer = "\"optimizer\": { \"kind\": \"sgd\", \"rate\": 0.1 }, \"batch\": 24";
    const squares = try Trainer.init("{ \"model\": { \"kind\": \"layers\", \"layers\": [{ \"linear\": 2 }] }, \"input\": [6], \"loss\": \"mse\", " ++ optimizer ++ " }", .{});
    defer squares.deinit();
    const numbers: models.Samples = .{ .f32 = data.x[0..48] };
    try fails(error.Unsupported, "has none", squares.evaluate(x, numbers));
    try expect(try squares.step(x, numbers) > 0);

    try fails(error.InvalidArgument, "the training's description", Trainer.init("{", .{}));
    try fails(error.InvalidArgument, "unknown variant `lstm`", Trainer.init("{ \"model\": { \"kind\": \"layers\", \"layers\": [\"lstm\"] } }", .{}));
    try fails(error.InvalidArgument, "missing field `model`", Trainer.init("{ " ++ optimizer ++ " }", .{}));
    try fails(error.InvalidArgument, "tpu", Trainer.init(shared.description, .{ .device = "tpu" }));
    const none: Trainer = .{};
    try fails(error.InvalidArgument, "trainer is NULL", none.sha256());
    none.deinit();
}

const job =
    \\batch = 8
    \\epochs = 2
    \\shards = 2
    \\data = { kind = "text", files = ["text"] }
    \\model = { kind = "gpt", layers = 1, heads = 1, width = 8, context = 16 }
    \\optimizer = { kind = "adam", rate = 0.01 }
    \\checkpoint = { file = "state.safetensors" }
    \\
;

const Events = struct {
    steps: u64 = 0,
    all: u64 = 0,
    epochs: u32 = 0,
    last: models.TrainEvent = undefined,
    most: u64 = std.math.maxInt(u64),

    pub fn progress(self: *Events, event: models.TrainEvent) bool {
        if (event.epoch_is_over) {
            self.epochs += 1;
            self.last = event;
        } else {
            self.steps += 1;
            self.all = event.steps;
        }
        return self.steps < self.most;
    }
};

test "a job runs and goes on" {
    const folder: Folder = try .make();
    defer folder.delete(&.{ "text", "job.toml", "state.safetensors" });
    try folder.write("text", "a ferry came in, and nobody noticed. ", 40);
    try folder.write("job.toml", job, 1);
    var buffers: [2][64]u8 = undefined;
    const path = folder.file(&buffers[0], "job.toml");
    const state = folder.file(&buffers[1], "state.safetensors");
    var events: Events = .{};
    const whole = try models.trainJob(path, .{ .device = "cpu", .progress = .of(&events) });
    try expectEqual(whole.steps, events.steps);
    try expectEqual(whole.steps, events.all);
    try expectEqual(2, events.epochs);
    try expectEqual(2, events.last.epoch);
    try expectEqual(events.last.held_out_loss, whole.held_out_loss);
    try expectEqual(events.last.accuracy, whole.accuracy);
    try expect(events.last.seconds > 0 and events.last.loss > 0);
    try expectEqualStrings("cpu", whole.device());

    try expectEqual(0, remove(state));
    const half = try models.trainJob(path, .{ .device = "cpu", .threads = 1, .epochs = 1 });
    try expectEqual(whole.steps, 2 * half.steps);
    const rest = try models.trainJob(path, .{ .device = "cpu", .@"resume" = true });
    try expectEqualStrings(&whole.sha256, &rest.sha256);
    try expectEqual(whole.steps, rest.steps);

    events = .{ .most = 3 };
    try fails(error.NotReady, "progress ended the job at step 3", models.trainJob(path, .{ .device = "cpu", .progress = .of(&events) }));
    try fails(error.Io, "none.toml", models.trainJob("/none.toml", .{}));
    var buffer: [64]u8 = undefined;
    try fails(error.InvalidArgument, "text", models.trainJob(folder.file(&buffer, "text"), .{}));
    try fails(error.InvalidArgument, "epochs is 0", models.trainJob(path, .{ .epochs = 0 }));
    try fails(error.InvalidArgument, "patience is -1", models.trainJob(path, .{ .patience = -1 }));
    try fails(error.InvalidArgument, "'7' is no place of a rank", models.trainJob(path, .{ .ranks = "7" }));
}
