//! The Zig API on a GPU, which may be a software device: kernels, dispatches, recordings.

const std = @import("std");
const adead = @import("adead");
const kernels = @import("kernels");
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;

const n = 1000;
const groups = [3]u32{ (n + 255) / 256, 1, 1 };
const push = std.mem.asBytes(&@as(u32, n));

fn open() !adead.Context {
    return adead.gpu() catch |err| {
        if (err != error.BackendUnavailable) return err;
        std.debug.print("skipped: {s}\n", .{adead.lastError()});
        return error.SkipZigTest;
    };
}

test "kernels of one's own" {
    const gpu = try open();
    defer gpu.deinit();
    try expect((try gpu.device()).kind() != .cpu and try adead.gpuCount() > 0);
    try expect((try adead.gpuInfo(0)).id().len > 0 and try adead.gpuBackendCount(0) > 0);
    try expect((try adead.gpuBackendInfo(0, 0)).name().len > 0);
    const vecadd = try gpu.loadSpirv(std.fmt.comptimePrint("{s}", .{kernels.vecadd}));
    defer vecadd.deinit();
    const details = try vecadd.info();
    try expectEqual(3, details.parameter_count);
    try expectEqual(4, details.push_bytes);
    try expectEqual(2, (try vecadd.parameter(2)).binding);
    const reduce = try gpu.loadSpirv(std.fmt.comptimePrint("{s}", .{kernels.reduce}));
    defer reduce.deinit();
    const small = try gpu.createPipeline(reduce, null, &.{.{ .id = 0, .value = 64 }});
    defer small.deinit();
    try expectEqual(64, (try small.info()).workgroup[0]);
    try std.testing.expectError(error.InvalidKernel, gpu.loadSpirvBytes("nonsense"));
    // From its source, if there is a compiler.
    if (gpu.compileKernel("#version 450\nlayout(local_size_x = 32) in;\nvoid main() {}\n", null, .{})) |empty| {
        defer empty.deinit();
        try std.testing.expectError(error.InvalidKernel, gpu.compileKernel("wrong", "wrong.comp", .{}));
    } else |failed| try expectEqual(error.BackendUnavailable, failed);
    try std.testing.expectError(error.Unsupported, gpu.loadPtxBytes("nonsense", .{}));
    try std.testing.expectError(error.Unsupported, gpu.loadCubinBytes("nonsense", .{ .name = "k", .workgroup = .{ 1, 1, 1 } }));
    try std.testing.expectError(error.Io, gpu.loadPtx("nowhere.ptx"));
    try std.testing.expectError(error.Io, gpu.loadCubin("nowhere.cubin"));

    var ones: [n]f32 = @splat(1);
    const one = try gpu.buffer(f32, &ones);
    defer one.deinit();
    const sum = try gpu.bufferZeroed(4 * n);
    defer sum.deinit();
    try gpu.dispatch(vecadd, &.{ sum, one, sum }, groups, push);
    try std.testing.expectError(error.InvalidArgument, gpu.dispatch(vecadd, &.{ sum, one, sum }, groups, ""));
    try gpu.wait();

    const stream = try gpu.stream();
    defer stream.deinit();
    try stream.recordBegin();
    try stream.dispatch(vecadd, &.{ sum, one, sum }, groups, push);
    const recording = try stream.recordEnd();
    defer recording.deinit();
    const before = try stream.timestamp();
    defer before.deinit();
    for (0..10) |_| try stream.replay(recording);
    const after = try stream.timestamp();
    defer after.deinit();
    const done = try stream.event();
    defer done.deinit();
    const other = try gpu.stream();
    defer other.deinit();
    try other.waitEvent(done);
    const download = try other.download(sum, 0, 4 * n);
    defer download.deinit();
    try download.read(f32, &ones);
    try expect(ones[0] == 11 and ones[n - 1] == 11);
    _ = try after.since(before);
}

test "the same bits" {
    const gpu = try open();
    defer gpu.deinit();
    const cpu = try adead.Context.open("cpu", .{});
    defer cpu.deinit();
    var values: [33 * 65]f32 = undefined;
    for (&values, 0..) |*value, i| value.* = @as(f32, @floatFromInt(i * 37 % 101)) / 64 - 0.7;
    const x = try adead.Tensor.init(f32, &.{ 33, 65 }, &values);
    defer x.deinit();
    const a = try gpu.softmax(x, .{});
    defer a.deinit();
    const b = try cpu.softmax(x, .{});
    defer b.deinit();
    try std.testing.expectEqualSlices(u8, try b.bytes(), try a.bytes());
}

test "results stay where they were computed" {
    const first = try open();
    defer first.deinit();
    const info = try first.device();
    var name: [64:0]u8 = @splat(0);
    @memcpy(name[0..info.id().len], info.id());
    const id: [:0]const u8 = name[0..info.id().len :0];
    const gpu = try adead.Context.open(id, .{});
    const cpu = try adead.Context.open("cpu", .{});
    defer cpu.deinit();
    var values: [40 * 50]f32 = undefined;
    for (&values, 0..) |*value, i| value.* = @as(f32, @floatFromInt(i * 37 % 101)) / 64 - 0.7;
    const x = try adead.Tensor.init(f32, &.{ 40, 50 }, &values);
    defer x.deinit();
    const y = try gpu.relu(x);
    defer y.deinit();
    try expect(try x.isOn("cpu") and try x.isOn(id) and try y.isOn(id) and !try y.isOn("cpu"));
    const z = try gpu.add(y, x);
    defer z.deinit();
    const now = try gpu.tensorCache(id);
    try expectEqual([4]u64{ 2, 1, 3, 24000 }, [4]u64{ now.hits, now.misses, now.tensors, now.used });
    const relu = try cpu.relu(x);
    defer relu.deinit();
    const expected = try cpu.add(relu, x);
    defer expected.deinit();
    try gpu.to(z, "cpu");
    try std.testing.expectEqualSlices(u8, try expected.bytes(), try z.bytes());
    try expect(try z.isOn("cpu") and !try y.isOn("cpu"));
    try gpu.to(expected, id);
    try expect(try expected.isOn(id));
    try std.testing.expectError(error.InvalidArgument, gpu.to(x, "cuda:77"));
    try std.testing.expectError(error.InvalidArgument, gpu.tensorCache("cuda:77"));
    try gpu.setTensorCache(0);
    try expectEqual(0, (try gpu.tensorCache(id)).tensors);
    const last = try gpu.neg(y);
    defer last.deinit();
    gpu.deinit();
    try expect(try last.isOn(id));
    const negated = try cpu.neg(relu);
    defer negated.deinit();
    try std.testing.expectEqualSlices(u8, try negated.bytes(), try last.bytes());
}
