//! Flags that end long work early.

const c = @import("c");
const enums = @import("enums.zig");
const call = @import("call.zig");
const Error = enums.Error;

/// A flag that ends long calls early. Threads and signal handlers may share one.
pub const Interrupt = struct {
    handle: ?*c.adead_interrupt = null,

    /// A flag that is not set.
    pub fn init() Error!Interrupt {
        return call.made(Interrupt, c.adead_interrupt_create, .{});
    }

    /// No watch of it is left.
    pub fn deinit(self: Interrupt) void {
        c.adead_interrupt_destroy(self.handle);
    }

    /// Sets it, or takes it back; calls that saw it end all the same. Any thread may, and a signal handler.
    pub fn set(self: Interrupt, value: bool) void {
        c.adead_interrupt_set(self.handle, @intFromBool(value));
    }

    /// Whether it is set.
    pub fn isSet(self: Interrupt) bool {
        return c.adead_interrupt_get(self.handle) != 0;
    }

    /// Until the watch's deinit(), long calls of this thread end with NotReady while the flag is set: operations, programs and pipelines
    /// on the processor, and waiting for a GPU. They give no result, but parts of the slices and buffers that they were to write
    /// may be written.
    pub fn watch(self: Interrupt) Watch {
        return .{ .before = c.adead_interrupt_watch(self.handle) };
    }
};

/// What a thread watches. The last one that was made ends first.
pub const Watch = struct {
    before: ?*const c.adead_interrupt,

    pub fn deinit(self: Watch) void {
        _ = c.adead_interrupt_watch(self.before);
    }
};
