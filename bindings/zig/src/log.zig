//! What the runtime tells of itself, to a function of the program's or to std.log: docs/logging.md.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const check = enums.check;
const Error = enums.Error;

pub const Level = enums.LogLevel;

/// What gets messages: a level, what it is about ("adead.devices"), a text. Both texts go with the call.
pub const Function = fn (level: Level, target: [:0]const u8, text: [:0]const u8) void;

/// Gives messages of a level and above to a function; one for the process, the last one that was given. Without one, `ADEAD_LOG`
/// or adead.toml say what is printed to stderr. It is called where a message comes from, by any thread, one call at a time, and
/// must not call adead. InvalidArgument in such a function; Unsupported in a library built with `-Dminimal`.
pub fn set(level: Level, comptime function: Function) Error!void {
    const callback = struct {
        fn call(number: c.adead_log_level, target: [*c]const u8, text: [*c]const u8, _: ?*anyopaque) callconv(.c) void {
            function(@enumFromInt(number), std.mem.span(@as([*:0]const u8, target)), std.mem.span(@as([*:0]const u8, text)));
        }
    };
    try check(c.adead_log_set(@intFromEnum(level), callback.call, null));
}

/// Gives them to std.log, with the scope `.adead`: trace is debug there.
pub fn toStd(level: Level) Error!void {
    try set(level, forward);
}

/// Takes the function away.
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
