//! Flags that end long calls early.

const c = @import("c");
const enums = @import("enums.zig");
const call = @import("call.zig");
const Error = enums.Error;

/// A flag that ends long calls early. Threads and signal handlers may share one.
pub const Interrupt = struct {
    handle: ?*c.adead_interrupt = null,

    /// Makes a flag that is not set.
    pub fn init() Error!Interrupt {
        return call.made(Interrupt, c.adead_interrupt_create, .{});
    }

    /// Destroys the flag. No watch of it may be left.
    pub fn deinit(self: Interrupt) void {
        c.adead_interrupt_destroy(self.handle);
    }

    /// Sets or clears the flag. Calls that have seen it set still end early. Any thread may call this, and so may a
    /// signal handler.
    pub fn set(self: Interrupt, value: bool) void {
        c.adead_interrupt_set(self.handle, @intFromBool(value));
    }

    /// Returns whether the flag is set.
    pub fn isSet(self: Interrupt) bool {
        return c.adead_interrupt_get(self.handle) != 0;
    }

    /// Watches the flag until the watch's deinit(): while the flag is set, long calls of this thread end with NotReady.
    /// Long calls are operations, programs and pipelines on the CPU, and waits for a GPU. They give no result, but may
    /// have written parts of their output slices and buffers.
    pub fn watch(self: Interrupt) Watch {
        return .{ .before = c.adead_interrupt_watch(self.handle) };
    }
};

/// A thread's watch of a flag. The last one made must end first.
pub const Watch = struct {
    before: ?*const c.adead_interrupt,

    pub fn deinit(self: Watch) void {
        _ = c.adead_interrupt_watch(self.before);
    }
};
