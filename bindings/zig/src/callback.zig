//! The errors of functions that the library calls, until they are returned to the caller.

const c = @import("c");
const failure = @import("failure.zig");

/// The status that a callback returns when an error was kept for the caller. The library has no such status.
pub const kept_error: c.adead_status = -1;

/// An error of a callback, with its text, until it is returned to the caller.
pub fn Kept(comptime Errors: type) type {
    return struct {
        err: ?Errors = null,
        text: failure.Kept = .{},

        pub fn keep(self: *@This(), err: Errors) c.adead_status {
            self.text.keep();
            self.err = err;
            return kept_error;
        }
        pub fn say(self: *@This()) Errors {
            self.text.say();
            return self.err.?;
        }
    };
}

/// The errors of a function's return type.
pub fn ErrorsOf(comptime Returned: type) type {
    return switch (@typeInfo(Returned)) {
        .error_union => |it| it.error_set,
        else => error{},
    };
}

/// The return type of a function without its errors.
pub fn ErrorFree(comptime Returned: type) type {
    return switch (@typeInfo(Returned)) {
        .error_union => |it| it.payload,
        else => Returned,
    };
}
