//! Trainers and jobs: the hash that every language has, files, ranks, errors.

const std = @import("std");
const models = @import("adead_models");
const fails = @import("check.zig").fails;
const Trainer = models.Trainer;
const gpa = std.testing.allocator;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualStrings = std.testing.expectEqualStrings;

const job: [:0]const u8 = @import("options").job ++ "";
/// tests/train/trainer.json.
const shared = @embedFile("trainer");

/// The description in it: the object behind its name.
fn description() ![:0]u8 {
    const all = try std.json.parseFromSlice(std.json.Value, gpa, shared, .{});
    defer all.deinit();
    return std.fmt.allocPrintSentinel(gpa, "{f}", .{std.json.fmt(all.value.object.get("description").?, .{})}, 0);
}

fn hash() []const u8 {
    const before = "\"sha256\": \"";
    return shared[std.mem.indexOf(u8, shared, before).? + before.len ..][0..64];
}

fn create(threads: usize) !Trainer {
    const text = try description();
    defer gpa.free(text);
    return Trainer.create(text, .{ .device = "cpu", .threads = threads });
}

const Data = struct {
    values: [240 * 6]f32,
    classes: [240]i64,

    fn init() Data {
        var all: Data = undefined;
        for (&all.values, 0..) |*value, k| value.* = @floatCast(@as(f64, @floatFromInt(k * 7919 % 1009)) / 504.5 - 1);
        for (&all.classes, 0..) |*class, i| {
            class.* = @intFromBool(all.values[6 * i] > 0);
            class.* += @intFromBool(all.values[6 * i + 1] > @as(f32, 0.3));
        }
        return all;
    }

    fn x(self: *const Data, count: usize) models.Samples {
        return .{ .floats = self.values[0 .. 6 * count] };
    }

    fn targets(self: *const Data, count: usize) models.Samples {
        return .{ .ids = self.classes[0..count] };
    }
};

const Counter = struct {
    steps: u64 = 0,
    most: u64 = std.math.maxInt(u64),

    pub fn progress(self: *Counter, epoch: u32, step: u64, loss: f32) bool {
        self.steps += 1;
        return step == self.steps and epoch == (step - 1) / 10 + 1 and std.math.isFinite(loss) and step < self.most;
    }
};

test "the shared training has its hash" {
    const data: Data = .init();
    for ([_]usize{ 1, 3 }) |threads| {
        const net = try create(threads);
        defer net.deinit();
        const before = try net.evaluate(data.x(240), data.targets(240));
        var counter: Counter = .{};
        const loss = try net.fit(data.x(240), data.targets(240), 20, .of(&counter));
        const after = try net.evaluate(data.x(240), data.targets(240));
        try expect(loss < before.loss and after.accuracy > 0.9 and before.accuracy < 0.9);
        const info = try net.info();
        try expectEqual(200, info.steps);
        try expectEqual(200, counter.steps);
        try expectEqual(24, info.batch);
        try expectEqualStrings(hash(), &try net.sha256());
        const outputs = try net.predict(gpa, data.x(240));
        defer gpa.free(outputs);
        try expectEqual(720, outputs.len);
        var right: f64 = 0;
        for (data.classes, 0..) |class, i| {
            if (std.mem.indexOfMax(f32, outputs[3 * i ..][0..3]) == class) right += 1;
        }
        try expectEqual(after.accuracy, right / 240);
        var values: usize = 0;
        for (0..try net.parameterCount()) |index| {
            const parameter = try net.parameter(gpa, index);
            defer parameter.deinit(gpa);
            var size: usize = 1;
            for (parameter.dims()) |dim| size *= dim;
            try expectEqual(size, parameter.values.len);
            try expect(parameter.name.len > 0);
            values += size;
        }
        try expectEqual(6 * 32 + 32 + 32 * 3 + 3, values);
    }
}

test "a training goes on from its file" {
    const data: Data = .init();
    const whole = try create(2);
    defer whole.deinit();
    const first = try create(2);
    defer first.deinit();
    const second = try create(1);
    defer second.deinit();
    _ = try whole.fit(data.x(96), data.targets(96), 3, null);
    _ = try first.fit(data.x(96), data.targets(96), 1, null);
    var folder = std.testing.tmpDir(.{});
    defer folder.cleanup();
    const path = try std.fmt.allocPrintSentinel(gpa, ".zig-cache/tmp/{s}/state.safetensors", .{folder.sub_path}, 0);
    defer gpa.free(path);
    try first.save(path);
    try second.load(path);
    try expectEqual(4, (try second.info()).steps);
    _ = try second.fit(data.x(96), data.targets(96), 2, null);
    try expectEqualStrings(&try whole.sha256(), &try second.sha256());
    try fails(error.Io, "missing", second.load("missing"));
}

fn rank(place: [:0]const u8, data: *const Data, found: *[64]u8) !void {
    const net = try create(1);
    defer net.deinit();
    try net.join(place, 60);
    _ = try net.fit(data.x(240), data.targets(240), 20, null);
    found.* = try net.sha256();
}

fn spawned(place: [:0]const u8, data: *const Data, found: *[64]u8) void {
    rank(place, data, found) catch |err| std.debug.print("rank: {s}: {s}\n", .{ @errorName(err), models.lastError() });
}

test "ranks have the hash of one" {
    const data: Data = .init();
    // A port of this process's own.
    const port = 20000 + @as(usize, @intCast(std.c.getpid())) % 20000;
    var hashes: [2][64]u8 = @splat(@splat('-'));
    var places: [2][:0]u8 = undefined;
    for (&places, 0..) |*place, number| {
        place.* = try std.fmt.allocPrintSentinel(gpa, "{d}/2@127.0.0.1:{d}", .{ number, port }, 0);
    }
    defer for (places) |place| gpa.free(place);
    var threads: [2]std.Thread = undefined;
    for (&threads, places, &hashes) |*thread, place, *found| {
        thread.* = try std.Thread.spawn(.{}, spawned, .{ place, &data, found });
    }
    for (threads) |thread| thread.join();
    for (&hashes) |*found| try expectEqualStrings(hash(), found);
}

test "what does not fit is refused" {
    const data: Data = .init();
    const net = try create(2);
    defer net.deinit();
    const x = data.x(24);
    try fails(error.ShapeMismatch, "24 samples and 23 targets", net.step(x, data.targets(23)));
    try fails(error.ShapeMismatch, "23 samples; a step takes a batch of 24", net.step(data.x(23), data.targets(23)));
    try fails(error.ShapeMismatch, "x has 7 values; a sample has 6", net.predict(gpa, .{ .floats = data.values[0..7] }));
    try fails(error.DtypeMismatch, "targets holds f32; the network takes i64", net.step(x, .{ .floats = data.values[0..24] }));
    var wrong = data.classes;
    wrong[1] = 9;
    try fails(error.InvalidArgument, "element 1 of targets is 9", net.step(x, .{ .ids = wrong[0..24] }));
    try fails(error.InvalidArgument, "patience is 0", net.join("0/1@a:1", 0));
    try fails(error.InvalidArgument, "'here' is no place of a rank", net.join("here", 1));
    try fails(error.InvalidArgument, "there is no parameter 4; there are 4", net.parameter(gpa, 4));
    var counter: Counter = .{ .most = 1 };
    try fails(error.NotReady, "progress ended the training at step 1", net.fit(x, data.targets(24), 2, .of(&counter)));
    try expectEqual(1, (try net.info()).steps);
    try fails(error.InvalidArgument, "the training's description", Trainer.create("{", .{}));
}

const Events = struct {
    steps: u64 = 0,
    epochs: u64 = 0,

    pub fn progress(self: *Events, event: *const models.TrainEvent) bool {
        if (event.epoch_is_over == 1) self.epochs += 1 else self.steps += 1;
        return event.step == self.steps;
    }
};

test "a job runs" {
    var events: Events = .{};
    const whole = try models.train(job, .{ .device = .{ .device = "cpu" }, .progress = .of(&events) });
    try expectEqual(1, events.epochs);
    try expectEqual(events.steps, whole.steps());
    try expect(whole.sha256().len == 64 and whole.accuracy() > 0);
    try expectEqualStrings("cpu", whole.device());
    const again = try models.train(job, .{ .device = .{ .device = "cpu", .threads = 1 }, .epochs = 1 });
    try expectEqualStrings(whole.sha256(), again.sha256());
    try fails(error.Io, "none.toml", models.train("none.toml", .{}));
}
