//! Messages of the runtime, passed to a function of the program or to std.log. docs/logging.md is the guide.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const check = enums.check;
const Error = enums.Error;

pub const Level = enums.LogLevel;

/// Receives messages: a level, a target ("adead.devices") and a text. Both texts are valid only during the call.
pub const Function = fn (level: Level, target: [:0]const u8, text: [:0]const u8) void;

/// Sets the function that receives messages of a level and above. The process has one; the last call wins. Without one,
/// `ADEAD_LOG` or adead.toml decides what is printed to stderr. Any thread may call the function, one call at a time,
/// and it must not call adead. InvalidArgument inside such a function; Unsupported in a library built with `-Dminimal`.
pub fn set(level: Level, comptime function: Function) Error!void {
    const callback = struct {
        fn call(number: c.adead_log_level, target: [*c]const u8, text: [*c]const u8, _: ?*anyopaque) callconv(.c) void {
            function(@enumFromInt(number), std.mem.span(@as([*:0]const u8, target)), std.mem.span(@as([*:0]const u8, text)));
        }
    };
    try check(c.adead_log_set(@intFromEnum(level), callback.call, null));
}

/// Sends messages to std.log, with the scope `.adead`; trace becomes debug there.
pub fn toStd(level: Level) Error!void {
    try set(level, forward);
}

/// Removes the function.
pub fn unset() Error!void {
    try check(c.adead_log_set(c.ADEAD_LOG_OFF, null, null));
}

fn forward(level: Level, target: [:0]const u8, text: [:0]const u8) void {
    const log = std.log.scoped(.adead);
    const about = target["adead.".len..];
    switch (level) {
        .err => log.err("{s}: {s}", .{ about, text }),
        .warn => log.warn("{s}: {s}", .{ about, text }),
        .info => log.info("{s}: {s}", .{ about, text }),
        else => log.debug("{s}: {s}", .{ about, text }),
    }
}
