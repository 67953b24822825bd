//! The first papers: each call that they name does what its name says, and their program runs as written. The build
//! names the device; kernels need a GPU.

const std = @import("std");
const adead = @import("adead");
const options = @import("options");
const allocator = std.testing.allocator;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;

fn open() !adead.Context {
    return adead.Context.open(std.fmt.comptimePrint("{s}", .{options.device}), .{}) catch |err| {
        if (err != error.BackendUnavailable) return err;
        std.debug.print("skipped: {s}\n", .{adead.lastError()});
        return error.SkipZigTest;
    };
}

test "their program" {
    const gpu = try open();
    defer gpu.deinit();
    const id = (try gpu.device()).id();
    if (std.mem.eql(u8, id, "cpu")) return error.SkipZigTest;
    const n = 512;
    const a = try allocator.alloc(f32, n * n);
    defer allocator.free(a);
    const b = try allocator.alloc(f32, n * n);
    defer allocator.free(b);
    const c = try allocator.alloc(f32, n * n);
    defer allocator.free(c);
    for (a, b, 0..) |*x, *y, i| {
        x.* = @as(f32, @floatFromInt(i * 37 % 101)) / 50 - 1;
        y.* = @as(f32, @floatFromInt(i * 59 % 101)) / 50 - 1;
    }
    const loaded = if (std.mem.startsWith(u8, id, "cuda"))
        try gpu.loadPtx(std.fmt.comptimePrint("{s}", .{options.ptx}))
    else
        try gpu.loadSpirv(std.fmt.comptimePrint("{s}", .{options.spv}));
    defer loaded.deinit();
    const matmul = try gpu.createPipeline(loaded, null, &.{});
    defer matmul.deinit();

    const A = try gpu.buffer(f32, a);
    defer A.deinit();
    const B = try gpu.buffer(f32, b);
    defer B.deinit();
    const C = try gpu.bufferZeroed(n * n * @sizeOf(f32));
    defer C.deinit();
    try gpu.dispatch(matmul, &.{ A, B, C }, .{ 32, 32, 1 }, "");
    try gpu.wait();
    try expectEqual(n * n * @sizeOf(f32), try C.size());
    try C.read(0, f32, c);

    for (0..n) |i| for (0..n) |j| {
        var exact: f64 = 0;
        for (0..n) |k| exact += @as(f64, a[i * n + k]) * b[k * n + j];
        try expect(@abs(c[i * n + j] - exact) < 1e-3);
    };
}

test "the machine and the decision" {
    const report = try adead.hardware();
    try expect(report.raw.cpu_threads >= 1 and report.raw.memory_total > 0);
    try expect(std.mem.indexOfScalar(adead.Mode, &.{ .cpu, .gpu, .hybrid }, report.recommended()) != null);
    const cpu = try adead.Context.open("cpu", .{});
    defer cpu.deinit();
    try expectEqual(0, try cpu.select(1024));
    const x = try adead.Tensor.init(f32, &.{ 2, 2 }, &.{ 1, 2, 3, 4 });
    defer x.deinit();
    try std.testing.expectEqualStrings("cpu", (try cpu.explain(.matmul, &.{ x, x }, .{})).id());
}

test "memory and order" {
    const ctx = try open();
    defer ctx.deinit();
    const x = try ctx.bufferZeroed(8);
    defer x.deinit();
    const y = try ctx.bufferZeroed(8);
    defer y.deinit();
    try x.write(0, f32, &.{ -1, 2 });
    const stream = try ctx.stream();
    defer stream.deinit();
    const other = try ctx.stream();
    defer other.deinit();
    try stream.run(.relu, &.{adead.Operand.of(x, .f32, &.{2}, 0)}, adead.Operand.of(y, .f32, &.{2}, 0), .{});
    const event = try stream.event();
    defer event.deinit();
    const fence = try ctx.event();
    defer fence.deinit();
    try other.waitEvent(event);
    try event.wait(adead.forever);
    try fence.wait(adead.forever);
    try other.sync();
    try ctx.wait();
    var found: [2]f32 = .{ 9, 9 };
    try y.read(0, f32, &found);
    try expectEqualSlices(f32, &.{ 0, 2 }, &found);
    try y.free();
    try std.testing.expectError(error.InvalidArgument, y.read(0, f32, &found));
}

test "a chain is its operations" {
    const cpu = try adead.Context.open("cpu", .{});
    defer cpu.deinit();
    const x = try adead.Tensor.init(f32, &.{ 1, 2 }, &.{ 1, -2 });
    defer x.deinit();
    const w1 = try adead.Tensor.init(f32, &.{ 2, 2 }, &.{ 1, 0, 0, 1 });
    defer w1.deinit();
    const w2 = try adead.Tensor.init(f32, &.{ 2, 1 }, &.{ 2, 3 });
    defer w2.deinit();
    const chain = try cpu.pipeline();
    defer chain.deinit();
    const h = try chain.op(.matmul, &.{ try chain.constant(x), try chain.constant(w1) }, .{});
    _ = try chain.op(.matmul, &.{ try chain.op(.relu, &.{h}, .{}), try chain.constant(w2) }, .{});
    var outputs: [1]adead.Tensor = undefined;
    try chain.execute(&outputs);
    defer outputs[0].deinit();
    try expectEqualSlices(u8, std.mem.asBytes(&@as(f32, 2)), try outputs[0].bytes());
}

test "a program is decoded and run" {
    const cpu = try adead.Context.open("cpu", .{});
    defer cpu.deinit();
    const program = try adead.Program.decode(@embedFile("mlp"));
    defer program.deinit();
    const loaded = try adead.Program.load(std.fmt.comptimePrint("{s}", .{options.program}));
    defer loaded.deinit();
    try expectEqual(try program.length(), try loaded.length());
    const zeros: [8]f32 = @splat(0);
    const x = try adead.Tensor.init(f32, &.{ 2, 4 }, &zeros);
    defer x.deinit();
    const outcome = try cpu.runProgram(program, allocator, &.{.{ .name = "x", .tensor = x }}, .{});
    defer outcome.deinit();
    try expectEqual(2, try outcome.outputCount());
}

test "layouts" {
    var out: [16]f32 = undefined;
    var back: [6]f32 = undefined;
    const data = [6]f32{ 0, 1, 2, 3, 4, 5 };
    const tiles = try adead.Layout.optimizeMatrix(4, 2, 3, 2);
    defer tiles.deinit();
    try tiles.arrange(f32, &data, out[0..8]);
    try expectEqualSlices(f32, &.{ 0, 1, 3, 4, 2 }, out[0..5]);
    try tiles.restore(f32, out[0..8], &back);
    try expectEqualSlices(f32, &data, &back);
    const rows = try adead.Layout.aligned(4, 1, 6, 64);
    defer rows.deinit();
    try rows.arrange(f32, &data, &out);
    try expect(out[5] == 5 and out[6] == 0 and out[15] == 0);
    const fields = try adead.Layout.coalesce(4, 6, 2);
    defer fields.deinit();
    try fields.arrange(f32, &data, out[0..6]);
    try expectEqualSlices(f32, &.{ 0, 2, 4, 1, 3, 5 }, out[0..6]);
}
