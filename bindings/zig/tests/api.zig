//! The Zig API on the CPU: the results of each call, and its errors.

const std = @import("std");
const adead = @import("adead");
const library = @import("library");
const Tensor = adead.Tensor;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;
const expectEqualStrings = std.testing.expectEqualStrings;

const without_texts = "this is a minimal build of adead, which has no texts of choices and plans: build it without ADEAD_MINIMAL";

/// Checks that the call fails with the error and a text that contains these words.
fn fails(expected: adead.Error, words: []const u8, result: anytype) !void {
    try std.testing.expectError(expected, result);
    if (std.mem.indexOf(u8, adead.lastError(), words) == null) {
        std.debug.print("'{s}' is not in: {s}\n", .{ words, adead.lastError() });
        return error.OtherText;
    }
}

fn values(comptime count: usize, seed: u32) [count]f32 {
    var all: [count]f32 = undefined;
    var state = seed;
    for (&all) |*value| {
        state = state *% 1664525 +% 1013904223;
        value.* = (@as(f32, @floatFromInt(state >> 8)) - (1 << 23)) / (1 << 22);
    }
    return all;
}

fn expectSame(a: Tensor, b: Tensor) !void {
    defer a.deinit();
    defer b.deinit();
    try expectEqual(try a.dtype(), try b.dtype());
    try expectEqualSlices(usize, try a.shape(), try b.shape());
    try expectEqualSlices(u8, try a.bytes(), try b.bytes());
}

fn expectValues(expected: []const f32, tensor: Tensor) !void {
    defer tensor.deinit();
    try expectEqualSlices(f32, expected, try tensor.data(f32));
}

fn cpu() !adead.Context {
    return adead.Context.open("cpu", .{});
}

test "tensors as text" {
    var room: [128]u8 = undefined;
    inline for (.{
        .{ f32, &[_]f32{ 1.5, -2 }, "f32 [2] { 1.5, -2 }" },
        .{ f16, &[_]f16{ 1.5, -2 }, "f16 [2] { 1.5, -2 }" },
        .{ f64, &[_]f64{ 0.1, -2, 1e300, 5e-324, 0 }, "f64 [5] { 0.1, -2, 1e300, 5e-324, 0 }" },
        .{ f64, &[_]f64{ 1.0 / 3.0, std.math.inf(f64) }, "f64 [2] { 0.3333333333333333, inf }" },
        .{ i64, &[_]i64{-7}, "i64 [1] { -7 }" },
        .{ bool, &[_]bool{ true, false }, "bool [2] { 1, 0 }" },
        .{ u32, &[_]u32{}, "u32 [0] { }" },
    }) |case| {
        const tensor = try Tensor.init(case[0], &.{case[1].len}, case[1]);
        defer tensor.deinit();
        try expectEqualStrings(case[2], try std.fmt.bufPrint(&room, "{f}", .{tensor}));
    }
    const many = try Tensor.zeros(.i32, &.{17});
    defer many.deinit();
    const written = try std.fmt.bufPrint(&room, "{f}", .{many});
    try expectEqualStrings("i32 [17] { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, … }", written);
    try std.testing.expectError(error.NoSpaceLeft, std.fmt.bufPrint(&room, "{f}", .{Tensor.none}));
}

test "tensors" {
    const x = try Tensor.init(f32, &.{ 2, 3 }, &.{ 1, 2, 3, 4, 5, 6 });
    defer x.deinit();
    try expectEqual(adead.DType.f32, try x.dtype());
    try expectEqualSlices(usize, &.{ 2, 3 }, try x.shape());
    try expectEqual(5, (try x.data(f32))[4]);
    var copy: [6]f32 = undefined;
    try x.read(f32, &copy);
    try expectEqual(6, copy[5]);
    try fails(error.InvalidArgument, "24", x.read(f32, copy[0..5]));
    try std.testing.expectError(error.DtypeMismatch, x.data(i64));
    try fails(error.ShapeMismatch, "", Tensor.init(f32, &.{ 2, 2 }, &.{ 1, 2, 3 }));
    try fails(error.InvalidArgument, "rank is 9", Tensor.zeros(.f32, &.{ 1, 1, 1, 1, 1, 1, 1, 1, 1 }));
    try fails(error.InvalidArgument, "77", Tensor.zeros(@enumFromInt(77), &.{1}));
    try fails(error.InvalidArgument, "tensor is NULL", Tensor.none.shape());

    const scalar = try Tensor.init(i64, &.{}, &.{-8});
    defer scalar.deinit();
    try expectEqual(0, (try scalar.shape()).len);
    try expectEqual(-8, (try scalar.data(i64))[0]);
    const half = try Tensor.init(f16, &.{2}, &.{ 1, std.math.inf(f16) });
    defer half.deinit();
    try expectEqual(0x7c00, (try half.data(u16))[1]);
    const none = try Tensor.zeros(.i32, &.{ 3, 0 });
    defer none.deinit();
    try expectEqual(0, (try none.data(i32)).len);

    const clone = try x.clone();
    defer clone.deinit();
    try expectEqual((try x.data(f32)).ptr, (try clone.data(f32)).ptr);
    const row = try x.reshape(&.{6});
    defer row.deinit();
    try fails(error.ShapeMismatch, "", x.reshape(&.{5}));
}

test "f64 is stored, moved, compared and cast" {
    const ctx = try cpu();
    defer ctx.deinit();
    const x = try Tensor.init(f64, &.{3}, &.{ 0.1, -2.5, 1e300 });
    defer x.deinit();
    try expectEqual(adead.DType.f64, try x.dtype());
    try expectEqual(24, (try x.bytes()).len);
    try expectEqualSlices(f64, &.{ 0.1, -2.5, 1e300 }, try x.data(f64));
    try std.testing.expectError(error.DtypeMismatch, x.data(f32));
    try std.testing.expectError(error.DtypeMismatch, x.data(i64));
    var copy: [3]f64 = undefined;
    try x.read(f64, &copy);
    try expectEqual(1e300, copy[2]);
    const zeros = try Tensor.zeros(.f64, &.{3});
    defer zeros.deinit();

    const joined = try ctx.concat(&.{ x, zeros }, .{});
    defer joined.deinit();
    try expectEqualSlices(f64, &.{ 0.1, -2.5, 1e300, 0, 0, 0 }, try joined.data(f64));
    const less = try ctx.less(x, zeros);
    defer less.deinit();
    try expectEqualSlices(u8, &.{ 0, 1, 0 }, try less.data(u8));
    const chosen = try ctx.where(less, zeros, x);
    defer chosen.deinit();
    try expectEqualSlices(f64, &.{ 0.1, 0, 1e300 }, try chosen.data(f64));

    const narrow = try ctx.cast(x, .{ .dtype = .f32 });
    defer narrow.deinit();
    try expectEqualSlices(f32, &.{ 0.1, -2.5, std.math.inf(f32) }, try narrow.data(f32));
    const wide = try ctx.cast(narrow, .{ .dtype = .f64 });
    defer wide.deinit();
    try expectEqual(@as(f64, @as(f32, 0.1)), (try wide.data(f64))[0]);

    try fails(error.DtypeMismatch, "not f64; cast it first", ctx.add(x, x));
    try fails(error.DtypeMismatch, "not f64; cast it first", ctx.relu(x));
    try fails(error.DtypeMismatch, "f64", ctx.less(x, narrow));
}

test "bools" {
    const ctx = try cpu();
    defer ctx.deinit();
    const a = try Tensor.init(f32, &.{3}, &.{ 1, std.math.nan(f32), -0.0 });
    defer a.deinit();
    const b = try Tensor.init(f32, &.{3}, &.{ 2, std.math.nan(f32), 0 });
    defer b.deinit();
    const less = try ctx.less(a, b);
    defer less.deinit();
    try std.testing.expectEqualSlices(u8, &.{ 1, 0, 0 }, try less.data(u8));
    const mask = try Tensor.init(bool, &.{3}, &.{ false, true, false });
    defer mask.deinit();
    try std.testing.expectEqualSlices(u8, &.{ 0, 1, 0 }, try mask.data(u8));
    const chosen = try ctx.where(mask, a, b);
    defer chosen.deinit();
    try expectEqual(2, (try chosen.data(f32))[0]);
    try fails(error.DtypeMismatch, "not bool", ctx.relu(mask));
}

test "operations: what is left out has the core's default" {
    const ctx = try cpu();
    defer ctx.deinit();
    const x = try Tensor.init(f32, &.{ 4, 6 }, &values(24, 1));
    defer x.deinit();
    const w = try Tensor.init(f32, &.{ 5, 6 }, &values(30, 2));
    defer w.deinit();
    const bias = try Tensor.init(f32, &.{5}, &values(5, 3));
    defer bias.deinit();
    try expectSame(try ctx.softmax(x, .{}), try ctx.softmax(x, .{ .axis = -1 }));
    try expectSame(try ctx.sum(x, .{}), try ctx.sum(x, .{ .axis = adead.all_axes }));
    try expectSame(try ctx.transpose(x, .{}), try ctx.transpose(x, .{ .perm = &.{ 1, 0 } }));
    try expectSame(try ctx.layernorm(x, .{}), try ctx.layernorm(x, .{ .eps = 1e-5 }));
    const index = try ctx.argmax(x, .{ .axis = 0, .dtype = .u32 });
    defer index.deinit();
    try expectEqual(6, (try index.data(u32)).len);
    const joined = try ctx.concat(&.{ x, x, w }, .{});
    defer joined.deinit();
    try expectEqual(13, (try joined.shape())[0]);

    const options: adead.operations.MatmulOptions = .{ .alpha = 0.5, .bias = bias, .activation = .gelu_tanh };
    var transposed = options;
    transposed.trans_b = true;
    const y = try ctx.matmul(x, w, transposed);
    defer y.deinit();
    const it = try ctx.pack(w, true);
    defer it.deinit();
    try expectEqual([2]usize{ 6, 5 }, try it.dims());
    try expectEqual(adead.DType.f32, try it.dtype());
    try expect(try it.bytes() >= 120);
    try expectSame(try y.clone(), try it.matmul(ctx, x, options));

    try expectEqual(adead.Precision.f32, try ctx.precision());
    try ctx.setPrecision(.fixed16);
    try expectEqual(adead.Precision.fixed16, try ctx.precision());
    var said = transposed;
    said.precision = .fixed16;
    try expectSame(try ctx.matmul(x, w, transposed), try ctx.matmul(x, w, said));
    try ctx.setPrecision(.f32);
    const own = try ctx.withPrecision(.fixed16);
    defer own.deinit();
    try expectEqual(adead.Precision.fixed16, try own.precision());
    try expectEqual(adead.Precision.f32, try ctx.precision());
    try expectSame(try own.matmul(x, w, transposed), try ctx.matmul(x, w, said));

    var attrs: adead.Attrs = .{};
    defer attrs.deinit();
    try attrs.set(.softmax, "axis", "0");
    try expectSame(try ctx.run(.softmax, &.{x}, attrs), try ctx.softmax(x, .{ .axis = 0 }));
    try fails(error.InvalidArgument, "axes", attrs.set(.softmax, "axes", "0"));
    try fails(error.InvalidArgument, "axis", ctx.softmax(x, .{ .axis = 2 }));
    try fails(error.InvalidArgument, "activation", ctx.ffn(x, w, w, .{ .activation = @enumFromInt(99) }));
    try fails(error.InvalidArgument, "perm", ctx.transpose(x, .{ .perm = &@as([40]i32, @splat(-2147483648)) }));
    try fails(error.InvalidArgument, "op is 99", ctx.run(@enumFromInt(99), &.{x}, .{}));
    try fails(error.ShapeMismatch, "matmul: A is [4, 6] and B is [5, 6]", ctx.matmul(x, w, .{}));
    try fails(error.InvalidArgument, "", ctx.relu(.none));
    try expectEqual(adead.Status.shape_mismatch, adead.statusOf(error.ShapeMismatch));
}

test "contexts and the machine" {
    const ctx = try cpu();
    defer ctx.deinit();
    const info = try ctx.device();
    try expectEqualStrings("cpu", info.id());
    try expectEqual(adead.DeviceKind.cpu, info.kind());
    try expectEqual(null, info.uuid());
    const arch = info;
    const pinned = try adead.Context.open("cpu", .{ .isa = arch.arch(), .threads = 2 });
    defer pinned.deinit();
    try expectEqual(2, (try pinned.device()).raw.units);
    try expectEqual(1, try ctx.deviceCount());
    try expectEqualStrings("cpu", (try ctx.deviceAt(0)).id());
    try expect((try ctx.memory()).total > 0);
    try ctx.trim();
    try fails(error.InvalidArgument, "nowhere", adead.Context.open("nowhere", .{}));
    try fails(error.InvalidArgument, "abacus", adead.Context.open("cpu", .{ .isa = "abacus" }));
    try fails(error.BackendUnavailable, "vulkan:99", adead.Context.open("vulkan:99", .{}));

    const machine = try adead.hardware();
    try expect(machine.raw.cpu_threads >= 1 and machine.cpuModel().len > 0 and machine.caches().len <= 8);
    const count = try adead.gpuCount();
    try expectEqual(machine.raw.gpu_count, count);
    try fails(error.InvalidArgument, "there are", adead.gpuInfo(count));
    try fails(error.InvalidArgument, "there are", adead.gpuBackendCount(count));
    try expect(std.mem.startsWith(u8, adead.contractVersion(), "adead-contract"));

    const x = try Tensor.init(f32, &.{ 3, 4 }, &values(12, 1));
    defer x.deinit();
    if (library.minimal) {
        try fails(error.Unsupported, without_texts, ctx.explain(.relu, &.{x}, .{}));
    } else {
        const why = try ctx.explain(.relu, &.{x}, .{});
        try expectEqualStrings("cpu", why.id());
        try expect(why.family() == .elementwise and why.estimates().len == 1 and why.reason().len > 0);
        try expectEqual(why.raw.device, try ctx.select(1000));
    }
    try ctx.setThreshold(.matmul, 5);
    try ctx.setThreshold(.matmul, adead.no_threshold);
    try ctx.force("cpu");
    try ctx.force(null);
    try fails(error.InvalidArgument, "moon", ctx.force("moon"));
    try expectEqual(std.math.maxInt(u64), adead.c.ADEAD_FOREVER);
    try expectEqual(adead.no_threshold, adead.c.ADEAD_NO_THRESHOLD);
}

test "programs" {
    const ctx = try cpu();
    defer ctx.deinit();
    if (library.minimal) {
        const words = "this is a minimal build of adead, which has no programs: build it without ADEAD_MINIMAL";
        return fails(error.Unsupported, words, adead.Program.assemble(".adead 1\nhalt"));
    }
    const program = try adead.Program.assemble(
        \\.adead 1
        \\input  a f32[2,2]
        \\const  w f32[2,2] = 3f800000 40000000 0.5 -1.0
        \\temp   t f32[2,2]
        \\output c f32[2,2]
        \\t = matmul a w trans_b=1
        \\c = relu t
        \\halt
        \\
    );
    defer program.deinit();
    try expectEqual(adead.Format.text, try program.format());
    try expectEqual(3, try program.length());
    try expectEqual(0, try program.noteCount());
    try expectEqual(2, try program.slotCount());
    const slot = try program.slotAt(0);
    try expectEqualStrings("a", slot.name());
    try expect(slot.direction() == .in and slot.required() and slot.dtype() == .f32 and slot.raw.bytes == 16);
    try expectEqualSlices(usize, &.{ 2, 2 }, slot.dims());
    try expect(try program.validate(0) >= 32);
    try fails(error.OutOfMemory, "limit is 8", program.validate(8));

    const file = try program.encode(.adead);
    const again = try adead.Program.decode(file);
    defer again.deinit();
    try expectEqualSlices(u8, file, try again.encode(.adead));
    const text = try adead.Program.assemble(try again.disassemble());
    defer text.deinit();
    try expectEqual(3, try text.length());
    try fails(error.InvalidProgram, "", adead.Program.decode(file[0 .. file.len / 2]));
    try fails(error.Io, "nowhere.adead", adead.Program.load("nowhere.adead"));

    const a = try Tensor.init(f32, &.{ 2, 2 }, &.{ 1, 0, 0, 1 });
    defer a.deinit();
    const scratch = std.testing.allocator;
    try fails(error.InvalidArgument, "'a'", ctx.runProgram(program, scratch, &.{}, .{}));
    const bindings = [_]adead.Binding{.{ .name = "a", .tensor = a }};
    try fails(error.OutOfMemory, "limit is 8", ctx.runProgram(program, scratch, &bindings, .{ .memory_limit = 8 }));
    const outcome = try ctx.runProgram(program, scratch, &bindings, .{ .parallel = true });
    defer outcome.deinit();
    try expectEqual(1, try outcome.outputCount());
    try expectEqualStrings("c", try outcome.outputName(0));
    try expectEqual(3, (try outcome.report()).instructions);
    try expectEqual(3, try outcome.traceCount());
    const first = try outcome.traceAt(0);
    try expectEqualStrings("matmul", first.name());
    try expectEqualStrings("cpu", first.device());
    try fails(error.InvalidArgument, "no output 'a'", outcome.output("a"));
    try expectValues(&.{ 1, 0.5, 2, 0 }, try outcome.output("c"));
}

test "allocators, arenas, layouts" {
    const allocator = try adead.Allocator.init(256, 8);
    defer allocator.deinit();
    try expectEqual(0, try allocator.alloc(300));
    try expectEqual(512, try allocator.alloc(1));
    const memory = try allocator.memory(0);
    try expectEqual(512, memory.len);
    memory[511] = 7;
    try expectEqual(768, (try allocator.report()).used);
    try fails(error.OutOfMemory, "", allocator.alloc(4096));
    try fails(error.InvalidArgument, "", allocator.free(256));
    try allocator.free(0);
    try allocator.reset();
    try fails(error.InvalidArgument, "", allocator.memory(0));

    const arena = try adead.Arena.init(4096, 4096);
    defer arena.deinit();
    const piece = try arena.alloc(8, 64);
    try expect(piece.len == 8 and @intFromPtr(piece.ptr) % 64 == 0);
    try expect(try arena.used() >= 8 and try arena.capacity() == 4096);
    try fails(error.OutOfMemory, "", arena.alloc(8192, 1));
    try arena.reset();
    try expectEqual(0, try arena.used());

    var plain: [15]f32 = undefined;
    for (&plain, 1..) |*value, i| value.* = @floatFromInt(i);
    const tiles = try adead.Layout.optimizeMatrix(4, 3, 5, 2);
    defer tiles.deinit();
    try expectEqual([2]usize{ 4, 6 }, try tiles.dims());
    try expectEqual([2]usize{ 60, 96 }, try tiles.bytes());
    var arranged: [24]f32 = undefined;
    var back: [15]f32 = undefined;
    try tiles.arrange(f32, &plain, &arranged);
    try expectEqualSlices(f32, &.{ 1, 2, 6, 7, 3, 4, 8, 9, 5, 0 }, arranged[0..10]);
    try tiles.restore(f32, &arranged, &back);
    try expectEqualSlices(f32, &plain, &back);
    try fails(error.ShapeMismatch, "60", tiles.arrange(f32, plain[0..14], &arranged));
    const rows = try adead.Layout.aligned(4, 3, 5, 16);
    defer rows.deinit();
    try rows.arrange(f32, &plain, &arranged);
    try expectEqual(6, arranged[8]);
    const fields = try adead.Layout.coalesce(4, 15, 3);
    defer fields.deinit();
    try fields.arrange(f32, &plain, &back);
    try expectEqual(4, back[1]);
    try fails(error.InvalidArgument, "element is 3", adead.Layout.morton(3, 2, 2));
}

test "buffers and streams" {
    const ctx = try cpu();
    defer ctx.deinit();
    const x = try ctx.buffer(f32, &.{ 1, -2, 3, -4 });
    defer x.deinit();
    const y = try ctx.bufferZeroed(16);
    defer y.deinit();
    try x.write(4, f32, &.{5});
    const stream = try ctx.streamWith(.high);
    defer stream.deinit();
    try stream.run(.relu, &.{.of(x, .f32, &.{4}, 0)}, .of(y, .f32, &.{4}, 0), .{});
    const event = try stream.event();
    defer event.deinit();
    try event.wait(adead.forever);
    try expect(try event.query());
    var got: [4]f32 = undefined;
    const download = try stream.download(y, 0, 16);
    defer download.deinit();
    try download.read(f32, &got);
    try expect(try download.query());
    try expectEqualSlices(f32, &.{ 1, 5, 3, 0 }, &got);
    try fails(error.InvalidArgument, "", download.read(f32, &got));

    var attrs: adead.Attrs = .{};
    defer attrs.deinit();
    try attrs.set(.scale, "alpha", "2");
    try stream.run(.scale, &.{.of(y, .f32, &.{2}, 8)}, .of(x, .f32, &.{2}, 0), attrs);
    try stream.copy(x, 0, y, 8, 8);
    try stream.clear(y, 0, 8);
    try stream.upload(y, 4, f32, &.{1});
    try stream.flush();
    try stream.sync();
    try expect(try stream.query());
    try y.read(0, f32, &got);
    try expectEqualSlices(f32, &.{ 0, 1, 6, 0 }, &got);
    try fails(error.ShapeMismatch, "", stream.run(.relu, &.{.of(x, .f32, &.{4}, 0)}, .of(y, .f32, &.{3}, 0), .{}));
    try fails(error.Unsupported, "", stream.recordBegin());
    try fails(error.Io, "nowhere.spv", ctx.loadSpirv("nowhere.spv"));
    try ctx.wait();
    const point = try ctx.event();
    defer point.deinit();
    try point.wait(adead.forever);
    try expectEqual(16, try x.size());
    try x.free();
    try fails(error.InvalidArgument, "freed", x.free());
}

test "threads share a context, and each has its own errors" {
    const ctx = try cpu();
    defer ctx.deinit();
    const x = try Tensor.init(f32, &.{ 64, 64 }, &values(4096, 9));
    defer x.deinit();
    const expected = try ctx.matmul(x, x, .{});
    defer expected.deinit();
    const Work = struct {
        fn work(c: adead.Context, a: Tensor, e: Tensor, width: usize, good: *bool) void {
            good.* = run(c, a, e, width) catch false;
        }
        fn run(c: adead.Context, a: Tensor, e: Tensor, width: usize) !bool {
            var text: [8]u8 = undefined;
            const words = try std.fmt.bufPrint(&text, "[{d}]", .{width});
            const wrong = try Tensor.zeros(.f32, &.{width});
            defer wrong.deinit();
            for (0..50) |_| {
                try expectSame(try c.matmul(a, a, .{}), try e.clone());
                try fails(error.ShapeMismatch, words, c.add(a, wrong));
            }
            return true;
        }
    };
    var good: [4]bool = @splat(false);
    var all: [4]std.Thread = undefined;
    for (&all, &good, 2..) |*thread, *it, width| thread.* = try std.Thread.spawn(.{}, Work.work, .{ ctx, x, expected, width, it });
    for (all) |thread| thread.join();
    try expectEqual([4]bool{ true, true, true, true }, good);
}

test "long work ends" {
    const ctx = try cpu();
    defer ctx.deinit();
    const n = 700;
    const all = try std.testing.allocator.create([n * n]f32);
    defer std.testing.allocator.destroy(all);
    for (all, 0..) |*value, i| value.* = @as(f32, @floatFromInt(i % 101)) / 50 - 1;
    const x = try Tensor.init(f32, &.{ n, n }, all);
    defer x.deinit();
    const expected = try ctx.matmul(x, x, .{});
    defer expected.deinit();

    const stop = try adead.Interrupt.init();
    defer stop.deinit();
    try expect(!stop.isSet());
    stop.set(true);
    try expect(stop.isSet());
    try expectSame(try ctx.matmul(x, x, .{}), try expected.clone()); // No thread watches the flag.
    stop.set(false);
    {
        const watch = stop.watch();
        defer watch.deinit();
        const setting = try std.Thread.spawn(.{}, adead.Interrupt.set, .{ stop, true });
        const ended = while (true) {
            (ctx.matmul(x, x, .{}) catch |err| break err).deinit();
        };
        setting.join();
        try expectEqual(error.NotReady, ended);
        try fails(error.NotReady, "interrupted", ctx.matmul(x, x, .{}));
        // The inner watch counts, and then the outer one again.
        const inner = try adead.Interrupt.init();
        defer inner.deinit();
        {
            const within = inner.watch();
            defer within.deinit();
            try expectSame(try ctx.matmul(x, x, .{}), try expected.clone());
        }
        try fails(error.NotReady, "interrupted", ctx.matmul(x, x, .{}));
    }
    try expectSame(try ctx.matmul(x, x, .{}), try expected.clone());
}

test "everything that is public compiles" {
    std.testing.refAllDecls(adead);
    std.testing.refAllDecls(adead.operations);
    inline for (.{
        adead.Context, adead.Packed,  adead.Explanation, adead.Tensor,     adead.Attrs,     adead.Buffer,
        adead.Kernel,  adead.Operand, adead.Event,       adead.Download,   adead.Timestamp, adead.Recording,
        adead.Stream,  adead.Program, adead.Slot,        adead.Outcome,    adead.Trace,     adead.Allocator,
        adead.Arena,   adead.Layout,  adead.Hardware,    adead.DeviceInfo, adead.Interrupt, adead.interrupt.Watch,
    }) |T| std.testing.refAllDecls(T);
}

test "pipelines" {
    const ctx = try cpu();
    defer ctx.deinit();
    const x = try Tensor.init(f32, &.{ 5, 24 }, &values(5 * 24, 1));
    defer x.deinit();
    const w = try Tensor.init(f32, &.{ 24, 24 }, &values(24 * 24, 2));
    defer w.deinit();
    const b = try Tensor.init(f32, &.{24}, &values(24, 3));
    defer b.deinit();

    // Computes relu(x·w + b)·w + x by single calls.
    const product = try ctx.matmul(x, w, .{});
    defer product.deinit();
    const sum = try ctx.add(product, b);
    defer sum.deinit();
    const hidden = try ctx.relu(sum);
    defer hidden.deinit();
    const last = try ctx.matmul(hidden, w, .{});
    defer last.deinit();

    for (0..3) |i| {
        const p = try ctx.pipeline();
        defer p.deinit();
        const from = try p.constant(x);
        const weights = try p.constant(w);
        const h = try p.op(.matmul, &.{ from, weights }, .{});
        const biased = try p.op(.add, &.{ h, try p.constant(b) }, .{});
        const r = try p.op(.relu, &.{biased}, .{});
        try p.output(r);
        const y = try p.op(.matmul, &.{ r, weights, .none, .none }, .{});
        try p.output(try p.reshape(y, &.{ 24, 5 }));
        var outputs: [2]Tensor = undefined;
        try p.execute(&outputs);
        try expectSame(outputs[0], try hidden.clone());
        try expectSame(outputs[1], try last.reshape(&.{ 24, 5 }));
        const use = try ctx.pipelineCache();
        try expectEqual(i, use.hits);
        try expectEqual(1, use.misses);
        try fails(error.InvalidArgument, "room for 1 outputs", p.execute(outputs[0..1]));
    }

    const p = try ctx.pipeline();
    defer p.deinit();
    try fails(error.InvalidArgument, "is empty", p.compile());
    const from = try p.input(.f32, &.{ 5, 24 });
    const weights = try p.constant(w);
    const h = try p.op(.matmul, &.{ from, weights }, .{});
    _ = try p.op(.relu, &.{try p.op(.add, &.{ h, try p.constant(b) }, .{})}, .{});
    try fails(error.ShapeMismatch, "must equal B's rows", p.op(.matmul, &.{ from, from }, .{}));
    try fails(error.InvalidArgument, "must be computed", p.output(from));
    const other = try ctx.pipeline();
    defer other.deinit();
    try fails(error.InvalidArgument, "another pipeline", other.op(.relu, &.{from}, .{}));
    const compiled = try p.compile();
    defer compiled.deinit();
    const info = try compiled.info();
    try expectEqual(1, info.inputs);
    try expectEqual(3, info.operations);
    try expectEqual(1, info.steps);
    if (library.minimal) {
        try fails(error.Unsupported, without_texts, compiled.text());
        try fails(error.Unsupported, without_texts, compiled.dot());
    } else {
        try expect(std.mem.indexOf(u8, try compiled.text(), "matmul+add+relu(input 0") != null);
        try expect(std.mem.indexOf(u8, try compiled.dot(), "\"step 0\" -> \"output 0\";") != null);
    }
    var outputs: [1]Tensor = undefined;
    try compiled.run(&.{x}, &outputs);
    try expectSame(outputs[0], try hidden.clone());
    try fails(error.InvalidArgument, "was given 0", compiled.run(&.{}, &outputs));
    try fails(error.ShapeMismatch, "input 0", compiled.run(&.{w}, &outputs));
}

test "gradients" {
    const ctx = try cpu();
    defer ctx.deinit();
    const p = try ctx.pipeline();
    defer p.deinit();
    const from = try p.input(.f32, &.{3});
    if (!library.gradients) {
        return fails(error.Unsupported, "no gradients: build it with ADEAD_GRADIENTS", p.detach(from));
    }
    const product = try p.op(.mul, &.{ from, try p.detach(from) }, .{});
    const loss = try p.op(.sum, &.{try p.op(.add, &.{ product, from }, .{})}, .{});
    var slopes: [1]adead.Value = undefined;
    try fails(error.ShapeMismatch, "it must have one element", p.gradients(product, &.{from}, &slopes));
    try p.gradients(loss, &.{from}, &slopes);
    try p.output(slopes[0]);
    const compiled = try p.compile();
    defer compiled.deinit();
    const x = try Tensor.init(f32, &.{3}, &.{ 1, -2, 0.5 });
    defer x.deinit();
    var outputs: [1]Tensor = undefined;
    try compiled.run(&.{x}, &outputs);
    try expectSame(outputs[0], try Tensor.init(f32, &.{3}, &.{ 2, -1, 1.5 }));
}

/// Halves each gradient, or fails.
const Halve = struct {
    calls: usize = 0,
    wrong: bool = false,

    pub fn replace(self: *Halve, pipeline: adead.Pipeline, number: usize, gradient: adead.Value) error{ Tired, OutOfMemory }!adead.Value {
        self.calls += 1;
        if (self.wrong or number != 0) return error.Tired;
        var attrs: adead.Attrs = .{};
        defer attrs.deinit();
        attrs.set(.scale, "alpha", "0x3f000000") catch return error.Tired;
        return pipeline.op(.scale, &.{gradient}, attrs) catch return error.Tired;
    }
};

test "hooks" {
    if (!library.gradients) return;
    const ctx = try cpu();
    defer ctx.deinit();
    const p = try ctx.pipeline();
    defer p.deinit();
    const from = try p.input(.f32, &.{2});
    try expect(try p.setGradEnabled(false));
    const first = try p.op(.mul, &.{ from, from }, .{});
    try expect(!try p.setGradEnabled(true));
    const square = try p.op(.mul, &.{ from, from }, .{});
    const loss = try p.op(.sum, &.{try p.op(.add, &.{ first, square }, .{})}, .{});
    var slopes: [1]adead.Value = undefined;
    var halve: Halve = .{ .wrong = true };
    try std.testing.expectError(error.Tired, p.gradientsWith(loss, &.{from}, &.{square}, &halve, &slopes));
    halve.wrong = false;
    try p.gradientsWith(loss, &.{from}, &.{square}, &halve, &slopes);
    try expectEqual(2, halve.calls);
    try p.output(slopes[0]);
    const compiled = try p.compile();
    defer compiled.deinit();
    const x = try Tensor.init(f32, &.{2}, &.{ 3, -0.25 });
    defer x.deinit();
    var outputs: [1]Tensor = undefined;
    try compiled.run(&.{x}, &outputs);
    try expectSame(outputs[0], try Tensor.init(f32, &.{2}, &.{ 3, -0.25 }));
}

test "where values are" {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    const x = try adead.Tensor.init(f32, &.{ 2, 2 }, &.{ 1, -2, 3, -4 });
    defer x.deinit();
    try ctx.to(x, "cpu");
    try expect(try x.isOn("cpu") and !try x.isOn("cuda:77"));
    const none = try ctx.tensorCache("cpu");
    try expectEqual([4]u64{ 0, 0, 0, 0 }, [4]u64{ none.budget, none.used, none.tensors, none.evictions });
    try ctx.setTensorCache(0);
    try fails(error.InvalidArgument, "it has cpu", ctx.to(x, "cuda:77"));
    try fails(error.InvalidArgument, "cuda:77", ctx.tensorCache("cuda:77"));
}

test "profiles" {
    const ctx = try cpu();
    defer ctx.deinit();
    const x = try Tensor.init(f32, &.{ 3, 3 }, &values(9, 7));
    defer x.deinit();
    if (library.minimal) {
        const words = "this is a minimal build of adead, which has no profiler: build it without ADEAD_MINIMAL";
        try fails(error.Unsupported, words, ctx.profile(3));
        const none: adead.Profile = .{};
        defer none.deinit();
        try fails(error.Unsupported, words, none.finish(std.testing.allocator));
        try fails(error.Unsupported, words, none.table());
        return fails(error.Unsupported, words, none.report(std.testing.allocator));
    }
    const profile = try ctx.profile(3);
    defer profile.deinit();
    try fails(error.InvalidArgument, "under way", ctx.profile(null));
    try fails(error.NotReady, "finish it first", profile.report(std.testing.allocator));
    try fails(error.NotReady, "finish it first", profile.json());
    for (0..2) |_| {
        const y = try ctx.matmul(x, x, .{});
        defer y.deinit();
        (try ctx.softmax(y, .{})).deinit();
    }
    const report = try profile.finish(std.testing.allocator);
    defer report.deinit();
    try expectEqual(3, report.records.len);
    try expectEqual(1, report.summary.dropped);
    const first = report.records[0];
    try expectEqual(adead.Activity.operation, first.activity());
    try expectEqualStrings("matmul", first.name());
    try expectEqualStrings("f32[3, 3], f32[3, 3] -> f32[3, 3]", first.operands());
    try expectEqualStrings("cpu", first.device());
    try expectEqualStrings("only device", first.reason());
    try expectEqual(first.host(), first.work().?);
    try expect(first.host().ns() <= report.summary.ns and first.raw.flops == 2 * 3 * 3 * 3);
    try expect(first.raw.has_cycles == 1 or first.cycles() == null);
    try expectEqual(2, report.totals.len);
    try expect(report.totals[0].raw.ns >= report.totals[1].raw.ns);
    try expectEqual(3, report.totals[0].raw.count + report.totals[1].raw.count);
    try expectEqual(adead.Activity.operation, report.totals[0].activity());
    try expectEqualStrings("cpu", report.totals[0].device());
    try expectEqualStrings("only device", report.totals[0].reason());
    try expect(report.totals[0].name().len > 0);
    try expectEqual(1, report.devices.len);
    try expectEqualStrings("cpu", report.devices[0].id());
    try expect(report.devices[0].figures() != null);
    const table, const json, const trace = .{ try profile.table(), try profile.json(), try profile.trace() };
    try expect(std.mem.startsWith(u8, table, "name ") and std.mem.indexOf(u8, table, "3 records in ") != null);
    const parsed = try std.json.parseFromSlice(struct { ns: u64 }, std.testing.allocator, json, .{ .ignore_unknown_fields = true });
    defer parsed.deinit();
    try expectEqual(report.summary.ns, parsed.value.ns);
    try expect(std.mem.startsWith(u8, trace, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["));
    try fails(error.InvalidArgument, "finished already", profile.finish(std.testing.allocator));
    try fails(error.OutOfMemory, "out of memory", profile.report(std.testing.failing_allocator));
    const again = try ctx.profile(null);
    again.deinit();
}

/// The messages that the logger below has received.
const Told = struct {
    var opened: usize = 0;
    var details: usize = 0;
    var others: usize = 0;

    fn logger(level: adead.LogLevel, target: [:0]const u8, text: [:0]const u8) void {
        const of_devices = std.mem.eql(u8, target, "adead.devices");
        if (level == .info and of_devices and std.mem.startsWith(u8, text, "opened cpu: ")) opened += 1;
        if (level == .debug and std.mem.startsWith(u8, target, "adead.")) details += 1;
    }
    fn other(_: adead.LogLevel, _: [:0]const u8, _: [:0]const u8) void {
        others += 1;
    }
    fn open() void {
        (cpu() catch return).deinit();
    }
};

test "messages" {
    if (library.minimal) {
        const words = "this is a minimal build of adead, which has no messages: build it without ADEAD_MINIMAL";
        try fails(error.Unsupported, words, adead.log.set(.info, Told.logger));
        try fails(error.Unsupported, words, adead.log.toStd(.info));
        try fails(error.Unsupported, words, adead.log.unset());
        Told.open();
        return expectEqual(0, Told.opened);
    }
    try adead.log.set(.info, Told.logger);
    defer adead.log.unset() catch unreachable;
    Told.open();
    try expectEqual(1, Told.opened);
    try expectEqual(0, Told.details);
    try adead.log.set(.debug, Told.logger);
    Told.open();
    try expectEqual(2, Told.opened);
    try expect(Told.details > 0);
    // Any thread may call it, one call at a time.
    var threads: [4]std.Thread = undefined;
    for (&threads) |*thread| thread.* = try std.Thread.spawn(.{}, Told.open, .{});
    for (threads) |thread| thread.join();
    try expectEqual(6, Told.opened);
    // Only the last function receives messages.
    try adead.log.set(.info, Told.other);
    Told.open();
    try expect(Told.others > 0);
    const others = Told.others;
    try fails(error.InvalidArgument, "level is 6; it must be 0 to 5", adead.log.set(@enumFromInt(6), Told.logger));
    Told.open();
    try expect(Told.others > others);
    try adead.log.toStd(.info);
    Told.others = 0;
    Told.open();
    try adead.log.unset();
    Told.open();
    try expectEqual(6, Told.opened);
    try expectEqual(0, Told.others);
}

/// Returns a tensor's elements as draws.txt has them, in `text`.
fn hex(comptime Bits: type, tensor: Tensor, text: []u8) ![]const u8 {
    const bytes = try tensor.bytes();
    var length: usize = 0;
    for (std.mem.bytesAsSlice(Bits, bytes), 0..) |number, i| {
        const format = if (Bits == u64) "{s}{x:0>16}" else "{s}{x:0>8}";
        length += (try std.fmt.bufPrint(text[length..], format, .{ if (i == 0) "" else " ", number })).len;
    }
    return text[0..length];
}

test "random tensors are those of every language" {
    if (library.minimal) return error.SkipZigTest;
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    var random: adead.Random = .{ .seed = 7 };
    var lines = std.mem.tokenizeScalar(u8, @embedFile("draws"), '\n');
    var number: usize = 0;
    while (lines.next()) |line| {
        if (line[0] == '#') continue;
        const drawn = try switch (number) {
            0 => random.uniform(ctx, 0, 1, &.{ 2, 3 }),
            1 => random.uniform(ctx, -2.5, 4, &.{5}),
            2 => random.standardNormal(ctx, &.{ 2, 2 }),
            3 => random.normal(ctx, 3, 0.5, &.{4}),
            4 => random.integers(-10, 90, &.{6}),
            else => random.permutation(8),
        };
        defer drawn.deinit();
        var text: [256]u8 = undefined;
        const found = if (number < 4) try hex(u32, drawn, &text) else try hex(u64, drawn, &text);
        try expectEqualStrings(line[std.mem.indexOf(u8, line, ": ").? + 2 ..], found);
        number += 1;
    }
    try expectEqual(6, number);
    try expectEqual(6, random.draws);
    try fails(error.InvalidArgument, "at least 0, not -1", random.normal(ctx, 0, -1, &.{1}));
    try fails(error.InvalidArgument, "above low, 5", random.integers(5, 5, &.{1}));
    try expectEqual(6, random.draws);
}
