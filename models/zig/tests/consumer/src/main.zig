const std = @import("std");
const adead = @import("adead");
const models = @import("adead_models");

/// A product with blocks that the other library made. Each library has the text of its own errors.
pub fn main() !void {
    const allocator = std.heap.c_allocator;
    const blocks = try models.quantize(allocator, &@as([64]f32, @splat(1)), .q8_0);
    defer allocator.free(blocks);
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    const w = try adead.Tensor.initBytes(.u8, &.{ 2, blocks.len / 2 }, blocks);
    defer w.deinit();
    const x = try adead.Tensor.init(f32, &.{ 1, 32 }, &@as([32]f32, @splat(0.5)));
    defer x.deinit();
    const y = try ctx.quantized_matmul(x, w, .{ .format = .q8_0 });
    defer y.deinit();
    for (try y.data(f32)) |value| if (@abs(value - 16) > 0.01) return error.OtherValues;

    if (models.TextGenerator.open("/nowhere", .{})) |_| return error.NoError else |err| if (err != error.Io) return err;
    if (std.mem.indexOf(u8, models.lastError(), "nowhere") == null) return error.OtherText;
    if (adead.lastError().len != 0) return error.OtherText;
}
