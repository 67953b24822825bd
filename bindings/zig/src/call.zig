//! Calls of the C interface that return one output through their last argument.

const std = @import("std");
const enums = @import("enums.zig");
const Error = enums.Error;
const check = enums.check;

/// Calls a function that returns a value.
pub fn asked(comptime T: type, function: anytype, arguments: anytype) Error!T {
    var out: T = std.mem.zeroes(T);
    try check(@call(.auto, function, arguments ++ .{&out}));
    return out;
}

/// Calls a function that returns an enum's value.
pub fn word(comptime T: type, function: anytype, arguments: anytype) Error!T {
    return @enumFromInt(try asked(std.meta.Tag(T), function, arguments));
}

/// Calls a function that returns a text of the library.
pub fn text(function: anytype, arguments: anytype) Error![:0]const u8 {
    return std.mem.span(@as([*:0]const u8, try asked([*c]const u8, function, arguments)));
}

/// Calls a function that returns a new handle.
pub fn made(comptime T: type, function: anytype, arguments: anytype) Error!T {
    var out: T = .{};
    try check(@call(.auto, function, arguments ++ .{&out.handle}));
    return out;
}
