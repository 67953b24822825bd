const std = @import("std");
const models = @import("adead_models");

pub fn main() !void {
    // Points in a square, from a simple generator. The class says whether both coordinates have the same sign.
    var points: [800]f32 = undefined;
    var classes: [400]i64 = undefined;
    var state: u64 = 1;
    for (&points) |*value| {
        state = state * 16807 % 2147483647;
        value.* = @floatCast(@as(f64, @floatFromInt(state)) / 1073741824.0 - 1.0);
    }
    for (&classes, 0..) |*class, number| class.* = @intFromBool((points[2 * number] > 0) == (points[2 * number + 1] > 0));

    const net = try models.Trainer.init(
        \\{ "model": { "kind": "layers", "layers": [{ "linear": 32 }, "tanh", { "linear": 2 }] }, "input": [2],
        \\  "optimizer": { "kind": "adam", "rate": 0.02 }, "batch": 40, "seed": 7 }
    , .{ .device = "cpu" });
    defer net.deinit();
    for (1..5) |part| {
        const loss = try net.fit(.{ .f32 = &points }, .{ .i64 = &classes }, .{ .epochs = 10 });
        std.debug.print("epoch {d}: loss {d:.4}\n", .{ 10 * part, loss });
    }
    const found = try net.evaluate(.{ .f32 = &points }, .{ .i64 = &classes });
    std.debug.print("{d:.1} % right, sha256 {s}\n", .{ 100 * found.accuracy, try net.sha256() });
}
