//! Checks that the tests share.

const std = @import("std");
const models = @import("adead_models");

/// Checks that the call fails with the error and a text that contains these words.
pub fn fails(expected: models.Error, words: []const u8, result: anytype) !void {
    try std.testing.expectError(expected, result);
    if (std.mem.indexOf(u8, models.lastError(), words) == null) {
        std.debug.print("'{s}' is not in: {s}\n", .{ words, models.lastError() });
        return error.OtherText;
    }
}

/// Returns the folder of a file.
pub fn folder(comptime file: []const u8) [:0]const u8 {
    return comptime std.fs.path.dirname(file).? ++ "";
}
