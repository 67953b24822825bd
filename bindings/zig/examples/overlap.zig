const std = @import("std");
const adead = @import("adead");

const row = 1000;

/// Reads and decodes items in a separate thread.
const Reader = struct {
    pub const Item = [row]f32;
    index: usize = 0,

    pub fn make(self: *Reader, item: *Item) !bool {
        if (self.index == 8) return false;
        @memset(item, @as(f32, @floatFromInt(self.index)) - 4);
        self.index += 1;
        return true;
    }
};

/// The batches, and the work on each.
const Relu = struct {
    loader: adead.DataLoader(Reader),

    pub fn next(self: *Relu) !?[]const f32 {
        return if (try self.loader.next()) |item| item else null;
    }
    pub fn work(_: *Relu, stage: *adead.Stage) !void {
        const y = try stage.buffer(4 * row);
        try stage.stream.run(.relu, &.{.of(stage.input, .f32, &.{row}, 0)}, .of(y, .f32, &.{row}, 0), .{});
        stage.result(y, 0, 4 * row);
    }
};

pub fn main() !void {
    const ctx = try adead.Context.open("auto", .{});
    defer ctx.deinit();
    var reader: Reader = .{};
    // The thread is at most two batches ahead.
    const loader: adead.DataLoader(Reader) = try .init(std.heap.c_allocator, &reader, 2, undefined);
    defer loader.deinit();
    var relu: Relu = .{ .loader = loader };
    // Three batches in flight: one being uploaded, one being computed, one being downloaded.
    var results = try adead.overlap(ctx, std.heap.c_allocator, &relu, 3);
    defer results.deinit();
    while (try results.next()) |result| {
        const values = try result.values(f32);
        std.debug.print("batch {d}: {d} values, the last one is {d}\n", .{ result.index, values.len, values[row - 1] });
        if (values[row - 1] != @max(@as(f32, @floatFromInt(result.index)) - 4, 0)) return error.Wrong;
    }
}
