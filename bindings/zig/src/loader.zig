//! Items made ahead in a thread.

const std = @import("std");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const overlap = @import("overlap.zig");
const Allocator = std.mem.Allocator;
const Error = enums.Error;

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
        shared: *Shared,

        const Self = @This();
        /// What next() may return: also what `make` does.
        pub const Errors = Error || overlap.ErrorsOf(Make);

        const Shared = struct {
            allocator: Allocator,
            source: *Source,
            /// `ahead` + 1 items: the one behind the newest is being made, the one before the oldest is with who takes them. Each
            /// has its item without the lock.
            items: []Item,
            thread: std.Thread = undefined,
            lock: Lock = .{},
            // What the lock guards.
            made: usize = 0,
            taken: usize = 0,
            /// Nobody wants any more; none will come any more, and why.
            stopped: bool = false,
            ended: bool = false,
            failed: ?Errors = null,
            text: failure.Kept = .{},

            fn at(self: *Shared, number: usize) *Item {
                return &self.items[number % self.items.len];
            }

            fn makeAll(self: *Shared) void {
                self.lock.acquire();
                defer self.lock.release();
                while (true) {
                    while (!self.stopped and self.made - self.taken == self.items.len - 1) self.lock.wait();
                    if (self.stopped) break;
                    const item = self.at(self.made);
                    self.lock.release();
                    const outcome = self.makeOne(item);
                    self.lock.acquire();
                    const more = outcome catch |err| {
                        self.failed = err;
                        self.text.keep();
                        break;
                    };
                    if (!more) break;
                    self.made += 1;
                    self.lock.changed();
                }
                self.ended = true;
                self.lock.changed();
            }

            fn makeOne(self: *Shared, item: *Item) Errors!bool {
                return if (Make == bool) self.source.make(item) else try self.source.make(item);
            }

            fn destroy(self: *Shared) void {
                if (@hasDecl(Source, "free")) for (self.items) |*item| self.source.free(item);
                self.lock.deinit();
                self.allocator.free(self.items);
                self.allocator.destroy(self);
            }
        };

        /// Starts the thread. `first` is what each item is before it is made for the first time, and a failed init() has freed
        /// none. InvalidArgument unless `ahead` is at least 1, Io where the system has no thread to give.
        pub fn init(allocator: Allocator, source: *Source, ahead: usize, first: Item) Error!Self {
            if (ahead < 1) return failure.fail(error.InvalidArgument, "a loader must be at least 1 item ahead, not 0", .{});
            const shared = allocator.create(Shared) catch return failure.outOfMemory();
            errdefer allocator.destroy(shared);
            const items = allocator.alloc(Item, ahead +| 1) catch return failure.outOfMemory();
            errdefer allocator.free(items);
            @memset(items, first);
            shared.* = .{ .allocator = allocator, .source = source, .items = items };
            shared.thread = std.Thread.spawn(.{}, Shared.makeAll, .{shared}) catch |err| {
                return failure.fail(error.Io, "no thread for a loader: {s}", .{@errorName(err)});
            };
            return .{ .shared = shared };
        }

        /// Stops the thread, waits for an item that is just being made, and frees everything.
        pub fn deinit(self: Self) void {
            const shared = self.shared;
            shared.lock.acquire();
            shared.stopped = true;
            shared.lock.changed();
            shared.lock.release();
            shared.thread.join();
            shared.destroy();
        }

        /// Waits for the next item, which stays until the next call; null when there is none any more. What `make` returned in
        /// place of an item comes once, behind the items before it, with the text of adead's last error in its thread.
        pub fn next(self: Self) Errors!?*Item {
            const shared = self.shared;
            shared.lock.acquire();
            defer shared.lock.release();
            while (!shared.ended and shared.made == shared.taken) shared.lock.wait();
            if (shared.made > shared.taken) {
                const item = shared.at(shared.taken);
                shared.taken += 1;
                // There is room for another one.
                shared.lock.changed();
                return item;
            }
            const failed = shared.failed orelse return null;
            shared.failed = null;
            shared.text.say();
            return failed;
        }
    };
}

/// A lock with a condition. Zig's own moved into its interface for I/O in 0.16; the C library, which is linked anyway, has one.
const Lock = struct {
    mutex: std.c.pthread_mutex_t = .{},
    condition: std.c.pthread_cond_t = .{},

    fn deinit(self: *Lock) void {
        _ = std.c.pthread_cond_destroy(&self.condition);
        _ = std.c.pthread_mutex_destroy(&self.mutex);
    }
    fn acquire(self: *Lock) void {
        _ = std.c.pthread_mutex_lock(&self.mutex);
    }
    fn release(self: *Lock) void {
        _ = std.c.pthread_mutex_unlock(&self.mutex);
    }
    fn wait(self: *Lock) void {
        _ = std.c.pthread_cond_wait(&self.condition, &self.mutex);
    }
    fn changed(self: *Lock) void {
        _ = std.c.pthread_cond_broadcast(&self.condition);
    }
};
