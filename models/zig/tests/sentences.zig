//! SentenceEncoder on the small model of tests/sentences.

const std = @import("std");
const models = @import("adead_models");
const options = @import("options");
const check = @import("check.zig");
const fails = check.fails;
const SentenceEncoder = models.SentenceEncoder;
const gpa = std.testing.allocator;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;
const expectEqualStrings = std.testing.expectEqualStrings;

const model = check.folder(options.tiny_config);
const width = 32;

fn open() !SentenceEncoder {
    return SentenceEncoder.open(model, "cpu", .{ .threads = 2 });
}

/// The lines of tiny.txt.
fn lines() ![]const []const u8 {
    const text = std.mem.trimEnd(u8, @embedFile("tiny_sentences"), "\n");
    var all: std.ArrayList([]const u8) = .empty;
    var each = std.mem.splitScalar(u8, text, '\n');
    while (each.next()) |line| try all.append(gpa, line);
    return all.toOwnedSlice(gpa);
}

test "encoders" {
    const encoder = try open();
    defer encoder.deinit();
    try expectEqual(width, try encoder.width());
    try expectEqual(24, try encoder.maxTokens());
    try expectEqualStrings("cpu", try encoder.device());
    try fails(error.Io, "nowhere", SentenceEncoder.open("/nowhere", "cpu", .{}));
    try fails(error.InvalidArgument, "mmx", SentenceEncoder.open(model, "cpu", .{ .isa = "mmx" }));
    const none: SentenceEncoder = .{};
    try fails(error.InvalidArgument, "encoder is NULL", none.encode(gpa, &.{"a"}, .{}));
}

test "embeddings have the bits of every language" {
    const encoder = try open();
    defer encoder.deinit();
    const sentences = try lines();
    defer gpa.free(sentences);
    const expected = try encoder.encode(gpa, sentences, .{});
    defer expected.deinit(gpa);
    var digest: [32]u8 = undefined;
    std.crypto.hash.sha2.Sha256.hash(std.mem.sliceAsBytes(expected.values), &digest, .{});
    try expectEqualStrings(std.mem.trimEnd(u8, @embedFile("tiny_hash"), "\n"), &std.fmt.bytesToHex(digest, .lower));
    try expectEqual(width, expected.width);
    try expectEqual(3, std.mem.count(bool, expected.truncated, &.{true}));

    for ([_]usize{ 1, 3, 100 }) |batch| for ([_]bool{ false, true }) |padded| {
        const again = try encoder.encode(gpa, sentences, .{ .batch = batch, .padded = padded });
        defer again.deinit(gpa);
        try expectEqualSlices(f32, expected.values, again.values);
        try expectEqualSlices(bool, expected.truncated, again.truncated);
    };
    const two = try encoder.encode(gpa, sentences[3..5], .{});
    defer two.deinit(gpa);
    try expectEqualSlices(f32, expected.row(4), two.row(1));
    const none = try encoder.encode(gpa, &.{}, .{});
    defer none.deinit(gpa);
    try expectEqual(0, none.values.len);
    try fails(error.InvalidArgument, "at least 1 sentence, not 0", encoder.encode(gpa, &.{"a"}, .{ .batch = 0 }));
    try fails(error.InvalidArgument, "sentence 1 is not UTF-8", encoder.encode(gpa, &.{ "a", "\xff" }, .{}));
    try fails(error.OutOfMemory, "out of memory", encoder.encode(std.testing.failing_allocator, &.{"a"}, .{}));
}

/// The sentences again and again, so many, and their rows.
const Stream = struct {
    sentences: []const []const u8,
    most: usize,
    expected: []const f32,
    given: usize = 0,
    taken: usize = 0,
    computed: u64 = 0,

    pub fn next(self: *Stream) ?[]const u8 {
        if (self.given == self.most) return null;
        defer self.given += 1;
        return self.sentences[self.given % self.sentences.len];
    }
    pub fn take(self: *Stream, rows: models.Rows) !bool {
        if (rows.first != self.taken or rows.truncated.len * rows.width != rows.values.len) return error.WrongRows;
        for (0..rows.truncated.len) |row| {
            const sentence = (self.taken + row) % self.sentences.len;
            const same = std.mem.eql(f32, self.expected[sentence * width ..][0..width], rows.values[row * width ..][0..width]);
            if (!same) return error.OtherBits;
        }
        self.taken += rows.truncated.len;
        return true;
    }
    pub fn progress(self: *Stream, computed: u64) void {
        self.computed = computed;
    }
};

test "streams" {
    const encoder = try open();
    defer encoder.deinit();
    const sentences = try lines();
    defer gpa.free(sentences);
    const expected = try encoder.encode(gpa, sentences, .{});
    defer expected.deinit(gpa);
    for ([_]usize{ 0, 1, 500 }) |count| {
        var stream: Stream = .{ .sentences = sentences, .most = count, .expected = expected.values };
        try expectEqual(count, try encoder.batchEmbed(&stream, .{ .batch = 7 }));
        try expectEqual(count, stream.taken);
        try expectEqual(count, stream.computed);
    }
}

const Endless = struct {
    pub fn next(_: *Endless) ?[]const u8 {
        return "ferry";
    }
    pub fn take(_: *Endless, rows: models.Rows) bool {
        return rows.first < 300;
    }
};

const Failing = struct {
    given: usize = 0,

    pub fn next(self: *Failing) !?[]const u8 {
        self.given += 1;
        return if (self.given > 100) error.DiskIsGone else "a";
    }
    pub fn take(_: *Failing, _: models.Rows) bool {
        return true;
    }
};

const Full = struct {
    pub fn next(_: *Full) ?[]const u8 {
        return "a";
    }
    pub fn take(_: *Full, rows: models.Rows) !bool {
        return if (rows.first > 0) error.Full else true;
    }
    pub fn progress(_: *Full, computed: u64) !void {
        if (computed > 100_000) return error.Late;
    }
};

const NoText = struct {
    pub fn next(_: *NoText) ?[]const u8 {
        return "\xff";
    }
    pub fn take(_: *NoText, _: models.Rows) bool {
        return true;
    }
};

test "who takes rows may end a stream, and errors end it" {
    const encoder = try open();
    defer encoder.deinit();
    var endless: Endless = .{};
    try expect(try encoder.batchEmbed(&endless, .{}) >= 300);
    var failing: Failing = .{};
    try std.testing.expectError(error.DiskIsGone, encoder.batchEmbed(&failing, .{}));
    var full: Full = .{};
    try std.testing.expectError(error.Full, encoder.batchEmbed(&full, .{}));
    var no_text: NoText = .{};
    try std.testing.expectError(error.InvalidArgument, encoder.batchEmbed(&no_text, .{}));
    try expect(std.mem.indexOf(u8, models.lastError(), "sentence 0 is not UTF-8") != null);
}
