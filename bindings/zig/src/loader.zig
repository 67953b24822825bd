//! Items made ahead in a thread.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const overlap = @import("overlap.zig");
const Allocator = std.mem.Allocator;
const Error = enums.Error;
const check = enums.check;

/// A loader: items that `source`, of the struct `Source`, makes in a thread of its own, at most `ahead` before who takes them,
/// counting the one that is being made. One thread at a time takes them.
///
/// `Source` has the type `Item` and `make(self: *Source, item: *Item) !bool`, which makes one in the memory of an earlier one that
/// is done with, or says false: there is none any more. Where it has `free(self: *Source, item: *Item) void`, that is called for
/// each of the `ahead + 1` items when the loader goes. `make` and the thread that takes share `source`.
pub fn DataLoader(comptime Source: type) type {
    const Item = Source.Item;
    const Make = @TypeOf(@as(*Source, undefined).make(undefined));
    return struct {
        asked: *Asked,
        handle: ?*c.adead_loader,

        const Self = @This();
        /// What next() may return: also what `make` does.
        pub const Errors = Error || overlap.ErrorsOf(Make);

        /// What the library asks in its thread. An item goes through it as where it is.
        const Asked = struct {
            allocator: Allocator,
            source: *Source,
            /// `ahead` + 1 items: the one behind the newest is being made, the one before the oldest is with who takes them.
            items: []Item,
            made: usize = 0,
            failed: overlap.Kept(Errors) = .{},

            fn next(batch: ?*c.adead_batch, user: ?*anyopaque) callconv(.c) c.adead_status {
                const self: *Asked = @ptrCast(@alignCast(user));
                const item = &self.items[self.made % self.items.len];
                const more = if (Make == bool) self.source.make(item) else self.source.make(item) catch |err| return self.failed.keep(err);
                if (!more) return c.ADEAD_OK;
                self.made += 1;
                // Not its bytes: an item may have none.
                return c.adead_batch_borrow(batch, item, 1);
            }
        };

        /// Starts the thread. `first` is what each item is before it is made for the first time, and a failed init() has freed
        /// none. InvalidArgument unless `ahead` is at least 1, Io where the system has no thread to give.
        pub fn init(allocator: Allocator, source: *Source, ahead: usize, first: Item) Error!Self {
            const asked = allocator.create(Asked) catch return failure.outOfMemory();
            errdefer allocator.destroy(asked);
            const items = allocator.alloc(Item, ahead +| 1) catch return failure.outOfMemory();
            errdefer allocator.free(items);
            @memset(items, first);
            asked.* = .{ .allocator = allocator, .source = source, .items = items };
            var handle: ?*c.adead_loader = null;
            try check(c.adead_loader_create(Asked.next, asked, ahead, &handle));
            return .{ .asked = asked, .handle = handle };
        }

        /// Stops the thread, waits for an item that is just being made, and frees everything.
        pub fn deinit(self: Self) void {
            c.adead_loader_destroy(self.handle);
            const asked = self.asked;
            if (@hasDecl(Source, "free")) for (asked.items) |*item| asked.source.free(item);
            asked.allocator.free(asked.items);
            asked.allocator.destroy(asked);
        }

        /// Waits for the next item, which stays until the next call; null when there is none any more. What `make` returned in
        /// place of an item comes once, behind the items before it, with the text of adead's last error in its thread.
        pub fn next(self: Self) Errors!?*Item {
            var bytes: usize = 0;
            var data: ?*const anyopaque = null;
            const status = c.adead_loader_next(self.handle, &data, &bytes);
            if (status == overlap.kept_error) return self.asked.failed.say();
            try check(status);
            return @ptrCast(@alignCast(@constCast(data orelse return null)));
        }
    };
}
