//! Allocators that give the same offsets on every machine, and layouts of matrices.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const hardware = @import("hardware.zig");
const Error = enums.Error;
const call = @import("call.zig");
const check = enums.check;

/// An allocator of blocks in one region of host memory. The same calls give the same offsets on every machine. One
/// thread at a time may use it.
pub const Allocator = struct {
    handle: ?*c.adead_allocator = null,

    /// Makes an allocator of `blocks` blocks of `block_size` bytes, a power of two. 0 is the core's default.
    pub fn init(block_size: usize, blocks: usize) Error!Allocator {
        return call.made(Allocator, c.adead_allocator_create, .{ block_size, blocks });
    }

    pub fn deinit(self: Allocator) void {
        c.adead_allocator_destroy(self.handle);
    }

    /// Allocates at least `bytes` bytes and returns their offset.
    pub fn alloc(self: Allocator, bytes: usize) Error!usize {
        return call.asked(usize, c.adead_allocator_alloc, .{ self.handle, bytes });
    }

    /// Frees the allocation at `offset`.
    pub fn free(self: Allocator, offset: usize) Error!void {
        try check(c.adead_allocator_free(self.handle, offset));
    }

    /// Frees everything.
    pub fn reset(self: Allocator) Error!void {
        try check(c.adead_allocator_reset(self.handle));
    }

    /// Returns the memory of the allocation at `offset`. It is valid until the allocation is freed or the allocator
    /// is reset or destroyed.
    pub fn memory(self: Allocator, offset: usize) Error![]u8 {
        var pointer: ?*anyopaque = null;
        var bytes: usize = 0;
        try check(c.adead_allocator_pointer(self.handle, offset, &pointer));
        try check(c.adead_allocator_size(self.handle, offset, &bytes));
        const first: [*]u8 = @ptrCast(pointer orelse return &.{});
        return first[0..bytes];
    }

    /// Reports block_size, capacity, used, available, largest_free, high_water and live.
    pub fn report(self: Allocator) Error!c.adead_allocator_stats {
        var out = hardware.sized(c.adead_allocator_stats);
        try check(c.adead_allocator_report(self.handle, &out));
        return out;
    }
};

/// An arena of scratch memory: an allocation advances a pointer, and a reset releases everything together. One thread
/// at a time may use it.
pub const Arena = struct {
    handle: ?*c.adead_arena = null,

    /// Makes an arena of `bytes` bytes that grows to `limit`. 0 is the core's default, and no limit.
    pub fn init(bytes: usize, limit: usize) Error!Arena {
        return call.made(Arena, c.adead_arena_create, .{ bytes, limit });
    }

    pub fn deinit(self: Arena) void {
        c.adead_arena_destroy(self.handle);
    }

    /// Allocates bytes at a multiple of `alignment`. They are valid until the arena is reset or destroyed.
    pub fn alloc(self: Arena, bytes: usize, alignment: usize) Error![]u8 {
        var out: ?*anyopaque = null;
        try check(c.adead_arena_alloc(self.handle, bytes, alignment, &out));
        const first: [*]u8 = @ptrCast(out orelse return &.{});
        return first[0..bytes];
    }

    /// Releases all allocations. The arena keeps the memory.
    pub fn reset(self: Arena) Error!void {
        try check(c.adead_arena_reset(self.handle));
    }

    /// Returns the bytes in use, including padding.
    pub fn used(self: Arena) Error!usize {
        return call.asked(usize, c.adead_arena_used, .{self.handle});
    }

    /// Returns the bytes that the arena has taken from the system.
    pub fn capacity(self: Arena) Error!usize {
        return call.asked(usize, c.adead_arena_capacity, .{self.handle});
    }
};

/// How the elements of a row-major matrix are arranged. An element has `element` bytes: 1, 2, 4 or 8. A layout never
/// changes.
pub const Layout = struct {
    handle: ?*c.adead_layout = null,

    /// Makes a layout of tiles that follow each other, each row-major inside.
    pub fn optimizeMatrix(element: usize, rows: usize, cols: usize, tile_size: usize) Error!Layout {
        return call.made(Layout, c.adead_layout_optimize_matrix, .{ element, rows, cols, tile_size });
    }

    /// Makes a layout whose rows begin at multiples of `alignment` bytes.
    pub fn aligned(element: usize, rows: usize, cols: usize, alignment: usize) Error!Layout {
        return call.made(Layout, c.adead_layout_align, .{ element, rows, cols, alignment });
    }

    /// Makes a layout in which structures of `stride` fields become an array of each field.
    pub fn coalesce(element: usize, elements: usize, stride: usize) Error!Layout {
        return call.made(Layout, c.adead_layout_coalesce, .{ element, elements, stride });
    }

    /// Makes a layout in Morton (Z) order.
    pub fn morton(element: usize, rows: usize, cols: usize) Error!Layout {
        return call.made(Layout, c.adead_layout_morton, .{ element, rows, cols });
    }

    pub fn deinit(self: Layout) void {
        c.adead_layout_destroy(self.handle);
    }

    /// Returns the rows and columns of the arranged matrix, with padding.
    pub fn dims(self: Layout) Error![2]usize {
        var out: [2]usize = .{ 0, 0 };
        try check(c.adead_layout_dims(self.handle, &out[0], &out[1]));
        return out;
    }

    /// Returns the bytes of the plain matrix, and of the arranged one.
    pub fn bytes(self: Layout) Error![2]usize {
        var out: [2]usize = .{ 0, 0 };
        try check(c.adead_layout_bytes(self.handle, &out[0], &out[1]));
        return out;
    }

    /// Arranges a plain matrix. ShapeMismatch unless both have the sizes that bytes() returns.
    pub fn arrange(self: Layout, comptime T: type, plain: []const T, to: []T) Error!void {
        const from = std.mem.sliceAsBytes(plain);
        const room = std.mem.sliceAsBytes(to);
        try check(c.adead_layout_arrange(self.handle, from.ptr, from.len, room.ptr, room.len));
    }

    /// Makes the plain matrix from an arranged one.
    pub fn restore(self: Layout, comptime T: type, arranged: []const T, to: []T) Error!void {
        const from = std.mem.sliceAsBytes(arranged);
        const room = std.mem.sliceAsBytes(to);
        try check(c.adead_layout_restore(self.handle, from.ptr, from.len, room.ptr, room.len));
    }
};
