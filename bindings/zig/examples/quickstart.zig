const adead = @import("adead");

pub fn main() !void {
    const ctx = try adead.Context.open("auto", .{});
    defer ctx.deinit();
    const x = try adead.Tensor.init(f32, &.{ 2, 3 }, &.{ 1, 2, 3, 4, 5, 6 });
    defer x.deinit();
    const y = try ctx.softmax(x, .{ .axis = -1 });
    defer y.deinit();
    @import("std").debug.print("{any} {any}\n", .{ try y.shape(), try y.data(f32) });
}
