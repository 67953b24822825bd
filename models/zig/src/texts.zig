//! Texts and arrays for the C interface, which ends texts with a zero.

const std = @import("std");
const shared = @import("shared");
const failure = shared.failure;
const Error = shared.enums.Error;

/// Copies that live until deinit().
pub const Texts = struct {
    arena: std.heap.ArenaAllocator,

    pub fn init(allocator: std.mem.Allocator) Texts {
        return .{ .arena = .init(allocator) };
    }

    pub fn deinit(self: *Texts) void {
        self.arena.deinit();
    }

    /// Copies a text and ends it with a zero. InvalidArgument, with its name, for a text with a zero inside.
    pub fn one(self: *Texts, text: []const u8, comptime name: []const u8, arguments: anytype) Error![*:0]const u8 {
        if (std.mem.indexOfScalar(u8, text, 0)) |at| {
            const why = " has a zero at byte {d}, where the C interface would end it";
            return failure.fail(error.InvalidArgument, name ++ why, arguments ++ .{at});
        }
        const copy = self.arena.allocator().allocSentinel(u8, text.len, 0) catch return failure.outOfMemory();
        @memcpy(copy, text);
        return copy.ptr;
    }

    /// Copies texts. `name` has {d} for the number of a text.
    pub fn all(self: *Texts, texts: []const []const u8, comptime name: []const u8) Error![]const [*c]const u8 {
        const copies = try self.array([*c]const u8, texts.len);
        for (copies, texts, 0..) |*copy, text, number| copy.* = try self.one(text, name, .{number});
        return copies;
    }

    /// Allocates an array.
    pub fn array(self: *Texts, comptime T: type, count: usize) Error![]T {
        return self.arena.allocator().alloc(T, count) catch return failure.outOfMemory();
    }
};

/// Allocates an array for the caller.
pub fn owned(allocator: std.mem.Allocator, comptime T: type, count: usize) Error![]T {
    return allocator.alloc(T, count) catch return failure.outOfMemory();
}
