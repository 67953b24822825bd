//! Prints the hash of a small network's output. It is the same in every language and on every device.

const std = @import("std");
const adead = @import("adead");

extern fn puts(text: [*:0]const u8) c_int;

/// x[i] = ((i*step) mod modulus - shift)/scale
fn values(comptime count: usize, step: usize, modulus: usize, shift: f32, scale: f32) [count]f32 {
    var all: [count]f32 = undefined;
    for (&all, 0..) |*value, i| value.* = (@as(f32, @floatFromInt(i * step % modulus)) - shift) / scale;
    return all;
}

pub fn main() !void {
    const ctx = try adead.Context.open("auto", .{});
    defer ctx.deinit();
    const x = try adead.Tensor.init(f32, &.{ 16, 64 }, &values(16 * 64, 37, 101, 50, 64));
    defer x.deinit();
    const w1 = try adead.Tensor.init(f32, &.{ 64, 128 }, &values(64 * 128, 53, 127, 63, 256));
    defer w1.deinit();
    const w2 = try adead.Tensor.init(f32, &.{ 128, 32 }, &values(128 * 32, 29, 113, 56, 256));
    defer w2.deinit();

    const hidden = try ctx.matmul(x, w1, .{});
    defer hidden.deinit();
    const active = try ctx.gelu(hidden, .{});
    defer active.deinit();
    const scores = try ctx.matmul(active, w2, .{});
    defer scores.deinit();
    const y = try ctx.softmax(scores, .{ .axis = -1 });
    defer y.deinit();

    // FNV-1a over the elements' bytes. Machines that can run this store them in little-endian order.
    var hash: u64 = 0xcbf29ce484222325;
    for (try y.bytes()) |byte| hash = (hash ^ byte) *% 0x100000001b3;
    var text: [17]u8 = undefined;
    _ = try std.fmt.bufPrint(&text, "{x:0>16}\x00", .{hash});
    _ = puts(text[0..16 :0]);
}
