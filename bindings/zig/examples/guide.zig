//! The excerpts of the guide (README.md), docs/profile.md and docs/logging.md. `ci/guide` copies what stands between [guide: NAME] and
//! [end] there.

const std = @import("std");
const adead = @import("adead");

fn interrupted(ctx: adead.Context, x: adead.Tensor, w: adead.Tensor) !void {
    // [guide: interrupt]
    const stop = try adead.Interrupt.init();
    defer stop.deinit();
    const watch = stop.watch(); // this thread's calls, until its deinit()
    defer watch.deinit();
    const y = try ctx.matmul(x, w, .{}); // error.NotReady if another thread calls stop.set(true)
    // [end]
    defer y.deinit();
    if ((try y.data(f32))[0] != 7) return error.WrongProduct;
}

fn work(ctx: adead.Context) !void {
    const x = try adead.Tensor.init(f32, &.{ 2, 2 }, &.{ 1, 2, 3, 4 });
    defer x.deinit();
    const y = try ctx.softmax(x, .{});
    y.deinit();
}

fn profiled(ctx: adead.Context, allocator: std.mem.Allocator) !void {
    // [guide: profile]
    const profile = try ctx.profile(null);
    defer profile.deinit();
    try work(ctx);
    const report = try profile.finish(allocator); // the profile owns its texts
    defer report.deinit();
    std.debug.print("{s}: {d} ns\n{s}", .{ report.totals[0].name(), report.totals[0].raw.ns, try profile.table() }); // json(), trace()
    // [end]
}

fn tell(level: adead.LogLevel, target: [:0]const u8, text: [:0]const u8) void {
    std.debug.print("{s} {s} {s}\n", .{ @tagName(level), target, text });
}

fn messages() !void {
    // [guide: log]
    try adead.log.toStd(.info); // to std.log, scope .adead; trace messages become debug
    try adead.log.set(.debug, tell); // fn tell(level: adead.LogLevel, target: [:0]const u8, text: [:0]const u8) void
    try adead.log.unset(); // remove the function
    // [end]
}

pub fn main() !void {
    try messages();
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    const x = try adead.Tensor.init(f32, &.{ 2, 2 }, &.{ 1, 2, 3, 4 });
    defer x.deinit();
    try interrupted(ctx, x, x);
    try profiled(ctx, std.heap.c_allocator);
}
