const std = @import("std");
const adead = @import("adead");

pub fn main() !void {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    const x = try adead.Tensor.init(f32, &.{ 2, 2 }, &.{ -1, 0, 2, 3 });
    defer x.deinit();
    const y = try ctx.matmul(x, x, .{ .activation = .relu });
    defer y.deinit();
    if (!std.mem.eql(f32, try y.data(f32), &.{ 1, 0, 4, 9 })) return error.OtherValues;
    if (ctx.matmul(x, .none, .{})) |_| return error.NoError else |err| if (err != error.InvalidArgument) return err;
}
