//! Objects that are made and dropped 100,000 times leak no memory: handles, results, and errors.

const std = @import("std");
const adead = @import("adead");
const Tensor = adead.Tensor;

extern fn printf(format: [*:0]const u8, ...) c_int;
extern fn fopen(path: [*:0]const u8, mode: [*:0]const u8) ?*anyopaque;
extern fn fscanf(file: *anyopaque, format: [*:0]const u8, ...) c_int;
extern fn fclose(file: *anyopaque) c_int;

/// Returns the resident kilobytes, for pages of 4 KiB.
fn resident() !usize {
    var all: usize = 0;
    var pages: usize = 0;
    const file = fopen("/proc/self/statm", "r") orelse return error.NoStatm;
    defer _ = fclose(file);
    if (fscanf(file, "%zu %zu", &all, &pages) != 2) return error.NoStatm;
    return pages * 4;
}

const Cycles = struct {
    ctx: adead.Context,
    x: Tensor,
    wide: Tensor,
    a: adead.Buffer,
    b: adead.Buffer,
    file: []const u8,

    fn tensors(_: Cycles) !void {
        const it = try Tensor.init(f32, &.{4}, &.{ 1, 2, 3, 4 });
        defer it.deinit();
        (try it.clone()).deinit();
    }
    fn operations(self: Cycles) !void {
        const product = try self.ctx.matmul(self.x, self.x, .{});
        defer product.deinit();
        (try self.ctx.softmax(product, .{ .axis = 0 })).deinit();
    }
    fn errors(self: Cycles) !void {
        if (self.ctx.add(self.x, self.wide)) |_| return error.Succeeded else |err| if (err != error.ShapeMismatch) return err;
        if (std.mem.indexOf(u8, adead.lastError(), "[7]") == null) return error.OtherText;
    }
    fn packs(self: Cycles) !void {
        const it = try self.ctx.pack(self.x, false);
        defer it.deinit();
        (try it.matmul(self.ctx, self.x, .{})).deinit();
    }
    fn contexts(_: Cycles) !void {
        (try adead.Context.open("cpu", .{})).deinit();
    }
    fn streams(self: Cycles) !void {
        const stream = try self.ctx.stream();
        defer stream.deinit();
        try stream.run(.relu, &.{.of(self.a, .f32, &.{16}, 0)}, .of(self.b, .f32, &.{16}, 0), .{});
        const event = try stream.event();
        defer event.deinit();
        const download = try stream.download(self.b, 0, 64);
        defer download.deinit();
        try event.wait(adead.forever);
    }
    fn buffers(self: Cycles) !void {
        (try self.ctx.bufferZeroed(64)).deinit();
    }
    fn programs(self: Cycles) !void {
        const program = try adead.Program.decode(self.file);
        defer program.deinit();
        const outcome = try self.ctx.runProgram(program, std.heap.c_allocator, &.{.{ .name = "a", .tensor = self.x }}, .{});
        defer outcome.deinit();
        (try outcome.output("c")).deinit();
    }
    fn memory(_: Cycles) !void {
        const allocator = try adead.Allocator.init(64, 16);
        defer allocator.deinit();
        _ = try allocator.alloc(100);
        const arena = try adead.Arena.init(0, 0);
        defer arena.deinit();
        _ = try arena.alloc(100, 8);
    }
    fn layers(self: Cycles) !void {
        const linear = try adead.nn.Linear.init(self.ctx, self.x, .none);
        var net: adead.nn.Sequential = .init(std.heap.c_allocator);
        defer net.deinit();
        net.append(linear) catch |err| {
            linear.deinit();
            return err;
        };
        try net.append(adead.nn.ReLU{ .ctx = self.ctx });
        (try net.forward(self.x)).deinit();
        if (net.forward(self.wide)) |_| return error.Succeeded else |err| if (err != error.ShapeMismatch) return err;
    }
    fn layouts(_: Cycles) !void {
        (try adead.Layout.morton(4, 2, 2)).deinit();
    }
};

/// Runs 10,000 cycles to warm up, then 100,000. These must add less than six bytes each.
fn flat(name: [*:0]const u8, cycle: *const fn (Cycles) anyerror!void, self: Cycles) !void {
    for (0..10_000) |_| try cycle(self);
    const before = try resident();
    for (0..100_000) |_| try cycle(self);
    const after = try resident();
    const grown = after -| before;
    _ = printf("%-28s 100000 cycles: %zu KB, %zu KB more\n", name, after, grown);
    if (grown > 512) return error.KeepsMemory;
}

pub fn main() !void {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    const x = try Tensor.init(f32, &.{ 4, 4 }, &@as([16]f32, @splat(0.5)));
    defer x.deinit();
    const wide = try Tensor.zeros(.f32, &.{7});
    defer wide.deinit();
    const a = try ctx.bufferZeroed(64);
    defer a.deinit();
    const b = try ctx.bufferZeroed(64);
    defer b.deinit();
    const program = try adead.Program.assemble(".adead 1\ninput a f32[4,4]\noutput c f32[4,4]\nc = relu a\nhalt\n");
    defer program.deinit();
    const self: Cycles = .{ .ctx = ctx, .x = x, .wide = wide, .a = a, .b = b, .file = try program.encode(.adead) };
    try flat("tensors", Cycles.tensors, self);
    try flat("operations", Cycles.operations, self);
    try flat("errors", Cycles.errors, self);
    try flat("packed matrices", Cycles.packs, self);
    try flat("contexts", Cycles.contexts, self);
    try flat("buffers", Cycles.buffers, self);
    try flat("streams, events, downloads", Cycles.streams, self);
    try flat("programs and runs", Cycles.programs, self);
    try flat("allocators and arenas", Cycles.memory, self);
    try flat("layers", Cycles.layers, self);
    try flat("layouts", Cycles.layouts, self);
}
