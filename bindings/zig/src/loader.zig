//! Items that a thread prepares in advance.

const std = @import("std");
const c = @import("c");
const callback = @import("callback.zig");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const Allocator = std.mem.Allocator;
const Error = enums.Error;
const check = enums.check;

/// A loader of items that `source`, of the struct `Source`, makes in a separate thread. The thread is at most `ahead` items
/// before the consumer, including the one that is being made. One thread at a time may take items.
///
/// `Source` has the type `Item` and the method `make(self: *Source, item: *Item) !bool`. `make` makes an item in the
/// memory of an earlier one that was consumed, or returns false if no item is left. If `Source` has `free(self:
/// *Source, item: *Item) void`, deinit() calls it for each of the `ahead + 1` items. `make` and the consuming thread
/// share `source`.
pub fn DataLoader(comptime Source: type) type {
    const Item = Source.Item;
    const Make = @TypeOf(@as(*Source, undefined).make(undefined));
    return struct {
        asked: *Asked,
        handle: ?*c.adead_loader,

        const Self = @This();
        /// The errors of next(), including those of `make`.
        pub const Errors = Error || callback.ErrorsOf(Make);

        /// The state of the callback that the library's thread calls. The library passes an item on as its address.
        const Asked = struct {
            allocator: Allocator,
            source: *Source,
            /// `ahead` + 1 items. The one after the newest is being made; the consumer holds the one before the oldest.
            items: []Item,
            made: usize = 0,
            failed: callback.Kept(Errors) = .{},

            fn next(batch: ?*c.adead_batch, user: ?*anyopaque) callconv(.c) c.adead_status {
                const self: *Asked = @ptrCast(@alignCast(user));
                const item = &self.items[self.made % self.items.len];
                const more = if (Make == bool) self.source.make(item) else self.source.make(item) catch |err| return self.failed.keep(err);
                if (!more) return c.ADEAD_OK;
                self.made += 1;
                // Lend the item itself, not its bytes, because an item may have none.
                return c.adead_batch_borrow(batch, item, 1);
            }
        };

        /// Starts the thread. `first` is the initial value of each item; a failed init() has freed none.
        /// InvalidArgument unless `ahead` is at least 1, Io if the system can't start a thread.
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

        /// Stops the thread, waits for the item that is being made, and frees everything.
        pub fn deinit(self: Self) void {
            c.adead_loader_destroy(self.handle);
            const asked = self.asked;
            if (@hasDecl(Source, "free")) for (asked.items) |*item| asked.source.free(item);
            asked.allocator.free(asked.items);
            asked.allocator.destroy(asked);
        }

        /// Waits for the next item, which is valid until the next call; null means that no item is left. An error that
        /// `make` returned is returned once, after the items before it, with the text of adead's last error in its
        /// thread.
        pub fn next(self: Self) Errors!?*Item {
            var bytes: usize = 0;
            var data: ?*const anyopaque = null;
            const status = c.adead_loader_next(self.handle, &data, &bytes);
            if (status == callback.kept_error) return self.asked.failed.say();
            try check(status);
            return @ptrCast(@alignCast(@constCast(data orelse return null)));
        }
    };
}
