//! The text of the last failure on a thread: the library's, or of what is written in Zig its own.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");

/// What doesn't fit is cut off.
threadlocal var own: [4096:0]u8 = undefined;
threadlocal var mine = false;

/// The text of the last call on this thread that failed. Valid until the next one fails.
pub fn lastError() [:0]const u8 {
    return if (mine) std.mem.span(@as([*:0]const u8, &own)) else std.mem.span(c.adead_last_error());
}

/// A call of the library failed: its text is the last one.
pub fn ofLibrary() void {
    mine = false;
}

/// An error with a text.
pub fn fail(err: enums.Error, comptime format: []const u8, arguments: anytype) enums.Error {
    @branchHint(.cold);
    var writer: std.Io.Writer = .fixed(&own);
    writer.print(format, arguments) catch {};
    own[writer.end] = 0;
    mine = true;
    return err;
}

pub fn outOfMemory() enums.Error {
    return fail(error.OutOfMemory, "out of memory", .{});
}

/// Dimensions for a message, with {f}: [2, 3].
pub const Dims = struct {
    of: []const usize,

    pub fn format(self: Dims, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.writeByte('[');
        for (self.of, 0..) |dim, i| try writer.print("{s}{d}", .{ if (i == 0) "" else ", ", dim });
        try writer.writeByte(']');
    }
};
