const std = @import("std");
const models = @import("adead_models");

/// A network learns which of two spirals a point is on. The hash of its weights is the same on every device.
pub fn main() !void {
    var points: [800]f32 = undefined;
    var classes: [400]i64 = undefined;
    for (&classes, 0..) |*class, i| {
        const side: f64 = if (i < 200) 1 else -1;
        const angle = @sqrt(@as(f64, @floatFromInt(i % 200)) / 200) * 3 * std.math.pi;
        points[2 * i] = @floatCast(side * angle * @cos(angle) / 9);
        points[2 * i + 1] = @floatCast(side * angle * @sin(angle) / 9);
        class.* = @intFromBool(side > 0);
    }
    const net = try models.Trainer.create(
        \\{ "model": { "kind": "layers", "layers": [{ "linear": 64 }, "tanh", { "linear": 64 }, "tanh", { "linear": 2 }] },
        \\  "optimizer": { "kind": "adam", "rate": 0.01 }, "input": [2], "batch": 50, "seed": 7 }
    , .{});
    defer net.deinit();
    const x: models.Samples = .{ .floats = &points };
    const targets: models.Samples = .{ .ids = &classes };
    for (0..5) |_| {
        const loss = try net.fit(x, targets, 20, null);
        std.debug.print("{d} steps, loss {d:.4}\n", .{ (try net.info()).steps, loss });
    }
    const found = try net.evaluate(x, targets);
    const hash = try net.sha256();
    std.debug.print("{d:.1} % right, sha256 {s}\n", .{ 100 * found.accuracy, hash[0..16] });
}
