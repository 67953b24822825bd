//! Quantised blocks have the oracle's bytes, and models are converted.

const std = @import("std");
const models = @import("adead_models");
const options = @import("options");
const check = @import("check.zig");
const fails = check.fails;
const gpa = std.testing.allocator;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;

extern fn mkstemp(template: [*:0]u8) c_int;
extern fn close(file: c_int) c_int;
extern fn remove(path: [*:0]const u8) c_int;

test "blocks are the oracle's" {
    var lines = std.mem.tokenizeScalar(u8, @embedFile("blocks"), '\n');
    var count: usize = 0;
    while (lines.next()) |line| : (count += 1) {
        var words = std.mem.tokenizeScalar(u8, line, ' ');
        const format = std.meta.stringToEnum(models.BlockFormat, words.next().?).?;
        var values: [256]f32 = undefined;
        var expected: [256]u8 = undefined;
        const raw = try std.fmt.hexToBytes(std.mem.sliceAsBytes(&values), words.next().?);
        const bytes = try std.fmt.hexToBytes(&expected, words.next().?);
        const blocks = try models.quantize(gpa, values[0 .. raw.len / 4], format);
        defer gpa.free(blocks);
        try expectEqualSlices(u8, bytes, blocks);
    }
    try expect(count > 100);
    try expectEqual(0, (try models.quantize(gpa, &.{}, .q4_0)).len);
    var some: [64]f32 = @splat(0);
    try fails(error.ShapeMismatch, "33 values; q8_0 takes a multiple of 32", models.quantize(gpa, some[0..33], .q8_0));
    try fails(error.InvalidArgument, "format is 8", models.quantize(gpa, &some, @enumFromInt(8)));
    some[40] = std.math.inf(f32);
    try fails(error.InvalidArgument, "value 40 is inf", models.quantize(gpa, &some, .q8_0));
}

const Report = struct {
    written: u64 = 0,
    all: u64 = 0,
    most: u64 = std.math.maxInt(u64),
    notes: usize = 0,

    pub fn progress(self: *Report, written: u64, all: u64) bool {
        self.written = written;
        self.all = all;
        return written <= self.most;
    }
    pub fn note(self: *Report, text: [:0]const u8) void {
        if (text.len > 0) self.notes += 1;
    }
};

test "a folder and a file become a file" {
    const folder = check.folder(options.folder_config);
    var path: [24:0]u8 = "/tmp/adead-models-XXXXXX".*;
    const file = mkstemp(&path);
    try expect(file >= 0 and close(file) == 0);
    defer _ = remove(&path);
    try models.convert(folder, &path, .{});
    const model = try models.TextGenerator.open(&path, .{});
    defer model.deinit();
    try expectEqual(256, try model.contextLength());

    // Rows of 64 values are no whole blocks of 256: a note says that they become f16.
    var report: Report = .{};
    try models.convert(folder, &path, .{ .kind = "q4_k", .reporter = .of(&report) });
    try expect(report.notes > 0 and report.written > 0);
    try expectEqual(report.all, report.written);
    try models.convert(&path, &path, .{ .kind = "q8_0" });

    report.most = 1;
    try fails(error.NotReady, "progress ended the conversion", models.convert(folder, &path, .{ .reporter = .of(&report) }));
    try fails(error.InvalidArgument, "name one, such as q8_0", models.convert(&path, &path, .{}));
    try fails(error.InvalidArgument, "no kind of values 'q3_k'", models.convert(folder, &path, .{ .kind = "q3_k" }));
    try fails(error.Io, "no such file or folder", models.convert("/nowhere", &path, .{}));
    // The file is the one of the last conversion that succeeded.
    const same = try models.TextGenerator.open(&path, .{});
    same.deinit();
}
