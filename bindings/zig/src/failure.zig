//! The text of the last error on a thread, from the library or from Zig code.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const failure = @This();

/// The text of the last error from Zig code. It is cut at 4096 bytes.
threadlocal var own: [4096:0]u8 = undefined;
threadlocal var mine = false;

/// Returns the error text of the last call that failed on this thread. Valid until the next one
/// fails.
pub fn lastError() [:0]const u8 {
    return if (mine) std.mem.span(@as([*:0]const u8, &own)) else std.mem.span(last_error());
}

/// Each library has a text of its own. The header of models has the function of that library.
const last_error = if (@hasDecl(c, "adead_models_last_error")) c.adead_models_last_error else c.adead_last_error;

/// Notes that a call of the library failed, so that its text is the last one.
pub fn ofLibrary() void {
    mine = false;
}

/// Returns an error and sets its text.
pub fn fail(err: enums.Error, comptime format: []const u8, arguments: anytype) enums.Error {
    @branchHint(.cold);
    say(format, arguments);
    return err;
}

fn say(comptime format: []const u8, arguments: anytype) void {
    var writer: std.Io.Writer = .fixed(&own);
    writer.print(format, arguments) catch {};
    own[writer.end] = 0;
    mine = true;
}

/// The text of a failure that is reported later, or on another thread.
pub const Kept = struct {
    text: [1024]u8 = undefined,
    len: usize = 0,

    /// Keeps the last text.
    pub fn keep(self: *Kept) void {
        const last = lastError();
        self.len = @min(last.len, self.text.len);
        @memcpy(self.text[0..self.len], last[0..self.len]);
    }

    /// Makes the kept text this thread's last one, if there is one.
    pub fn say(self: *const Kept) void {
        if (self.len > 0) failure.say("{s}", .{self.text[0..self.len]});
    }
};

pub fn outOfMemory() enums.Error {
    return fail(error.OutOfMemory, "out of memory", .{});
}

/// Dimensions in a message, with {f}: [2, 3].
pub const Dims = struct {
    of: []const usize,

    pub fn format(self: Dims, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.writeByte('[');
        for (self.of, 0..) |dim, i| try writer.print("{s}{d}", .{ if (i == 0) "" else ", ", dim });
        try writer.writeByte(']');
    }
};
