//! Safetensors files: valid but unusual ones are read, and malformed ones are refused.

const std = @import("std");
const adead = @import("adead");
const nn = adead.nn;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const gpa = std.testing.allocator;

extern "c" fn mkstemp(template: [*:0]u8) c_int;

/// A file for one test, which is deleted afterwards.
const File = struct {
    path: [64:0]u8,

    /// Makes a file from the header's length, the header, and a number of bytes after it.
    fn init(header: []const u8, bytes: usize) !File {
        const all = try gpa.alloc(u8, 8 + header.len + bytes);
        defer gpa.free(all);
        std.mem.writeInt(u64, all[0..8], header.len, .little);
        @memcpy(all[8..][0..header.len], header);
        @memset(all[8 + header.len ..], 0);
        return of(all);
    }

    fn of(all: []const u8) !File {
        var self: File = .{ .path = undefined };
        const template = "/tmp/adead-nn-XXXXXX";
        @memcpy(self.path[0 .. template.len + 1], template ++ "\x00");
        const file = mkstemp(&self.path);
        if (file < 0) return error.NoFile;
        defer _ = std.c.close(file);
        if (std.c.write(file, all.ptr, all.len) != all.len) return error.NotWritten;
        return self;
    }

    fn deinit(self: *const File) void {
        _ = std.c.unlink(&self.path);
    }

    fn open(self: *const File) adead.Error!nn.Weights {
        return nn.Weights.open(gpa, std.mem.span(@as([*:0]const u8, &self.path)));
    }
};

fn refused(file: File, words: []const u8) !void {
    defer file.deinit();
    if (file.open()) |weights| {
        weights.deinit();
        return error.Opened;
    } else |err| try expectEqual(error.InvalidArgument, err);
    const text = adead.lastError();
    const named = std.mem.indexOf(u8, text, ": not a safetensors file: ") != null;
    if (!named or std.mem.indexOf(u8, text, words) == null) {
        std.debug.print("'{s}' is not in: {s}\n", .{ words, text });
        return error.OtherText;
    }
}

fn entry(comptime dtype: []const u8, comptime shape: []const u8, comptime offsets: []const u8) []const u8 {
    return "{\"dtype\":\"" ++ dtype ++ "\",\"shape\":" ++ shape ++ ",\"data_offsets\":" ++ offsets ++ "}";
}

test "odd files that are right" {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    // Spaces, escapes, bytes that are not aligned, a scalar, no element.
    const header = "{ \"__metadata__\" : {\"a\":\"\\\"\\\\\"}, \"\\u00e9\\ud83c\\udf0a\\u6e2f\\n\":" ++
        comptime entry("U8", "[1]", "[0,1]") ++ ",\n\"b\":" ++ entry("F32", "[ 2 ]", "[1, 9]") ++ ",\"c\":" ++
            entry("F32", "[]", "[9,13]") ++ ",\"d\":" ++ entry("F32", "[0,3]", "[13,13]") ++ "}  ";
    const file = try File.init(header, 13);
    defer file.deinit();
    const weights = try file.open();
    defer weights.deinit();
    try expectEqual(4, weights.count());
    const dims = [_][]const usize{ &.{2}, &.{}, &.{ 0, 3 } };
    for ([_][]const u8{ "b", "c", "d" }, dims) |name, shape| {
        const tensor = try weights.tensor(ctx, name, shape);
        defer tensor.deinit();
        try std.testing.expectEqualSlices(usize, shape, try tensor.shape());
        for (try tensor.data(f32)) |value| try expectEqual(0, value);
    }
    const name = "\xc3\xa9\xf0\x9f\x8c\x8a\xe6\xb8\xaf\n";
    try std.testing.expectError(error.DtypeMismatch, weights.tensor(ctx, name, &.{1}));
    try expect(std.mem.endsWith(u8, adead.lastError(), "has elements of U8; F32, F16, BF16 and F64 are taken"));

    const empty = try File.init("{}", 0);
    defer empty.deinit();
    const none = try empty.open();
    defer none.deinit();
    try expectEqual(0, none.count());
}

test "malformed files are refused" {
    const one = comptime entry("F32", "[2]", "[0,8]");
    // The tests of C cover malformed files, because it is the same reader.
    const cases = comptime [_]struct { []const u8, usize, []const u8 }{
        .{ "", 0, "byte 0 of the header: '{' is missing" },
        .{ "{\"a\":3}", 0, "'{' is missing" },
        .{ "{\"a\xff\":3}", 0, "this is not UTF-8" },
        .{ "{\"a\":" ++ one ++ ",\"a\":" ++ one ++ "}", 8, "the name occurs twice" },
        .{ "{\"a\":" ++ entry("F7", "[2]", "[0,8]") ++ "}", 8, "there is no such dtype" },
        .{ "{\"a\":" ++ entry("F32", "[2]", "[4,12]") ++ "}", 12, "0 is the next" },
        .{ "{\"a\":" ++ one ++ "}", 9, "the tensors have 8 bytes and the file 9 for them" },
    };
    for (cases) |case| try refused(try .init(case[0], case[1]), case[2]);
    const long = "\xff\xff\xff\xff\xff\xff\xff";
    try refused(try .of(""), "not a safetensors file: 0 bytes");
    try refused(try .of(long), "not a safetensors file: 7 bytes");
    try refused(try .of(long ++ "\x7f{}"), "a header of 9223372036854775807 bytes in a file of 10");
}

test "a file that was cut, or of which a byte is another" {
    const whole = @embedFile("tiny_model");
    const header = 8 + @as(usize, @intCast(std.mem.readInt(u64, whole[0..8], .little)));
    var length: usize = 0;
    while (length < whole.len) : (length += if (length < header) 37 else 9973) try refused(try .of(whole[0..length]), "");
    const text = try gpa.dupe(u8, whole[8..header]);
    defer gpa.free(text);
    // None of these has the right number of bytes after its header, so the accepted headers are
    // refused, too.
    for (0..text.len) |at| {
        const before = text[at];
        text[at] ^= @as(u8, 1) << @intCast(at % 7);
        try refused(try .init(text, 1), "");
        text[at] = before;
    }
}
