//! Calls of the C interface that give one output, through their last argument.

const std = @import("std");
const enums = @import("enums.zig");
const Error = enums.Error;
const check = enums.check;

/// A value.
pub fn asked(comptime T: type, function: anytype, arguments: anytype) Error!T {
    var out: T = std.mem.zeroes(T);
    try check(@call(.auto, function, arguments ++ .{&out}));
    return out;
}

/// A word: the value of an enum.
pub fn word(comptime T: type, function: anytype, arguments: anytype) Error!T {
    return @enumFromInt(try asked(std.meta.Tag(T), function, arguments));
}

/// A text of the library's.
pub fn text(function: anytype, arguments: anytype) Error![:0]const u8 {
    return std.mem.span(@as([*:0]const u8, try asked([*c]const u8, function, arguments)));
}

/// Something with a handle.
pub fn made(comptime T: type, function: anytype, arguments: anytype) Error!T {
    var out: T = .{};
    try check(@call(.auto, function, arguments ++ .{&out.handle}));
    return out;
}
