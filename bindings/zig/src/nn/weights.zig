//! Weights: the tensors of a safetensors file by name. For systems that have POSIX's mmap.

const std = @import("std");
const enums = @import("../enums.zig");
const failure = @import("../failure.zig");
const header = @import("header.zig");
const Context = @import("../context.zig").Context;
const Dims = failure.Dims;
const Error = enums.Error;
const Tensor = @import("../tensor.zig").Tensor;

/// A safetensors file in memory as the system maps it: what is not used is not read. Threads may share it. The file must not be
/// changed while it is open.
pub const Weights = struct {
    /// The file.
    path: [:0]const u8,
    arena: *std.heap.ArenaAllocator,
    map: []align(std.heap.page_size_min) const u8,
    /// What is behind the header.
    data: []const u8,
    /// Sorted by name.
    stored: []const header.Stored,

    /// Maps a file. Io if it can't be read, InvalidArgument if it is no safetensors file.
    pub fn open(allocator: std.mem.Allocator, path: [:0]const u8) Error!Weights {
        // As the format's own library has it.
        const longest = 100_000_000;
        const arena = allocator.create(std.heap.ArenaAllocator) catch return failure.outOfMemory();
        arena.* = .init(allocator);
        errdefer release(arena);
        const map = try mapped(path);
        errdefer unmap(map);
        const format = "{s}: no safetensors file: ";
        if (map.len < 8) return failure.fail(error.InvalidArgument, format ++ "{d} bytes", .{ path, map.len });
        const length = std.mem.readInt(u64, map[0..8], .little);
        if (length > longest or length > map.len - 8) {
            const text = format ++ "a header of {d} bytes in a file of {d}";
            return failure.fail(error.InvalidArgument, text, .{ path, length, map.len });
        }
        const start = 8 + @as(usize, @intCast(length));
        const own = arena.allocator().alloc(u8, path.len + 1) catch return failure.outOfMemory();
        @memcpy(own[0..path.len], path);
        own[path.len] = 0;
        return .{
            .path = own[0..path.len :0],
            .arena = arena,
            .map = map,
            .data = map[start..],
            .stored = try header.read(arena, path, map[8..start], map.len - start),
        };
    }

    /// Closes it. Tensors and layers made from it stay.
    pub fn deinit(self: Weights) void {
        unmap(self.map);
        release(self.arena);
    }

    /// How many tensors there are.
    pub fn count(self: Weights) usize {
        return self.stored.len;
    }

    /// The name of tensor `index`; they are sorted.
    pub fn nameAt(self: Weights, index: usize) []const u8 {
        return self.stored[index].name;
    }

    /// Whether there is a tensor of that name.
    pub fn contains(self: Weights, name: []const u8) bool {
        return self.find(&.{name}) != null;
    }

    /// A tensor's dimensions, which go with the weights. InvalidArgument if there is none of that name.
    pub fn dims(self: Weights, name: []const u8) Error![]const usize {
        const found = self.find(&.{name}) orelse return self.missing(name, "");
        return found.dims;
    }

    /// A copy of a tensor as f32, f16 and bf16 widened on `ctx`. InvalidArgument if there is none of that name, ShapeMismatch
    /// if its dimensions are others, DtypeMismatch if it has other elements.
    pub fn tensor(self: Weights, ctx: Context, name: []const u8, shape: []const usize) Error!Tensor {
        return self.part(ctx, name, "", shape);
    }

    /// The same of `PREFIX` and a suffix.
    pub fn part(self: Weights, ctx: Context, prefix: []const u8, suffix: []const u8, shape: []const usize) Error!Tensor {
        const found = self.find(&.{ prefix, suffix }) orelse return self.missing(prefix, suffix);
        const format = "{s}: the tensor '{s}' ";
        if (!std.mem.eql(usize, shape, found.dims)) {
            const text = format ++ "is {f}; it must be {f}";
            const arguments = .{ self.path, found.name, Dims{ .of = found.dims }, Dims{ .of = shape } };
            return failure.fail(error.ShapeMismatch, text, arguments);
        }
        const bytes = self.data[found.begin..found.end];
        if (std.mem.eql(u8, found.dtype, "F32")) return Tensor.initBytes(.f32, shape, bytes);
        const halves = [_]struct { []const u8, enums.DType }{ .{ "F16", .f16 }, .{ "BF16", .bf16 } };
        for (halves) |half| {
            if (!std.mem.eql(u8, found.dtype, half[0])) continue;
            const narrow = try Tensor.initBytes(half[1], shape, bytes);
            defer narrow.deinit();
            return ctx.cast(narrow, .{ .dtype = .f32 });
        }
        const text = format ++ "has elements of {s}; F32, F16 and BF16 are taken";
        return failure.fail(error.DtypeMismatch, text, .{ self.path, found.name, found.dtype });
    }

    /// The tensor of the name that these parts are together.
    fn find(self: Weights, parts: []const []const u8) ?*const header.Stored {
        const index = std.sort.binarySearch(header.Stored, self.stored, parts, order) orelse return null;
        return &self.stored[index];
    }

    fn order(parts: []const []const u8, found: header.Stored) std.math.Order {
        var rest = found.name;
        for (parts) |one| {
            const same = @min(one.len, rest.len);
            const part_order = std.mem.order(u8, one[0..same], rest[0..same]);
            if (part_order != .eq) return part_order;
            if (same < one.len) return .gt;
            rest = rest[same..];
        }
        return if (rest.len == 0) .eq else .lt;
    }

    fn missing(self: Weights, prefix: []const u8, suffix: []const u8) Error {
        const text = "{s}: the tensor '{s}{s}' is not among the file's {d} tensors";
        return failure.fail(error.InvalidArgument, text, .{ self.path, prefix, suffix, self.stored.len });
    }
};

fn release(arena: *std.heap.ArenaAllocator) void {
    const allocator = arena.child_allocator;
    arena.deinit();
    allocator.destroy(arena);
}

fn mapped(path: [:0]const u8) Error![]align(std.heap.page_size_min) const u8 {
    const file = std.c.open(path.ptr, .{ .ACCMODE = .RDONLY, .CLOEXEC = true });
    if (file < 0) return unreadable(path);
    // What is mapped stays.
    defer _ = std.c.close(file);
    // A folder can be opened, and not be read.
    var first: [1]u8 = undefined;
    if (std.c.read(file, &first, 1) < 0) return unreadable(path);
    const size = std.c.lseek(file, 0, std.c.SEEK.END);
    if (size < 0) return unreadable(path);
    if (size == 0) return &.{};
    const length = std.math.cast(usize, size) orelse return failure.outOfMemory();
    // A number until Zig 0.15, then a struct.
    const read_only = if (@hasDecl(std.c.PROT, "READ")) std.c.PROT.READ else std.c.PROT{ .READ = true };
    const address = std.c.mmap(null, length, read_only, .{ .TYPE = .PRIVATE }, file, 0);
    if (address == std.c.MAP_FAILED) return unreadable(path);
    const bytes: [*]align(std.heap.page_size_min) const u8 = @ptrCast(@alignCast(address));
    return bytes[0..length];
}

fn unmap(map: []align(std.heap.page_size_min) const u8) void {
    if (map.len > 0) _ = std.c.munmap(@ptrCast(map.ptr), map.len);
}

extern "c" fn strerror(number: c_int) [*:0]const u8;

fn unreadable(path: [:0]const u8) Error {
    return failure.fail(error.Io, "{s}: {s}", .{ path, strerror(std.c._errno().*) });
}
