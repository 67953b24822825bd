//! The header of a safetensors file: JSON, of just the form that such a header has.

const std = @import("std");
const enums = @import("../enums.zig");
const failure = @import("../failure.zig");
const Error = enums.Error;
const Value = std.json.Value;

/// A tensor in the file: dtype by the format's name, dimensions, and its bytes, counted from the header's end.
pub const Stored = struct {
    name: []const u8,
    dtype: []const u8,
    dims: []const usize,
    begin: usize,
    end: usize,

    /// Saturated: no file has as much.
    fn bytes(self: Stored) usize {
        var size = sizes.get(self.dtype) orelse 0;
        for (self.dims) |dim| size *|= dim;
        return size;
    }
    fn placedBefore(_: void, a: Stored, b: Stored) bool {
        return if (a.begin == b.begin) a.end < b.end else a.begin < b.begin;
    }
    fn namedBefore(_: void, a: Stored, b: Stored) bool {
        return std.mem.lessThan(u8, a.name, b.name);
    }
};

/// Bytes of an element, of the dtypes that the format has.
const sizes: std.StaticStringMap(usize) = .initComptime(.{
    .{ "BOOL", 1 }, .{ "U8", 1 },  .{ "I8", 1 },  .{ "F8_E4M3", 1 }, .{ "F8_E5M2", 1 },
    .{ "U16", 2 },  .{ "I16", 2 }, .{ "F16", 2 }, .{ "BF16", 2 },    .{ "U32", 4 },
    .{ "I32", 4 },  .{ "F32", 4 }, .{ "U64", 8 }, .{ "I64", 8 },     .{ "F64", 8 },
});

/// Reads the header of the file `path`, which has so many bytes behind it: its tensors, sorted by name, in memory of `arena`.
pub fn read(arena: *std.heap.ArenaAllocator, path: []const u8, text: []const u8, bytes: usize) Error![]Stored {
    // What the JSON needs is given back.
    var scratch: std.heap.ArenaAllocator = .init(arena.child_allocator);
    defer scratch.deinit();
    const reader: Reader = .{ .arena = arena.allocator(), .path = path };
    const root = try reader.json(scratch.allocator(), text);
    const tensors = try reader.tensors(root);
    std.mem.sort(Stored, tensors, {}, Stored.placedBefore);
    var next: usize = 0;
    for (tensors) |tensor| {
        const size = tensor.bytes();
        if (tensor.begin != next or tensor.end < tensor.begin or tensor.end - tensor.begin != size) {
            return reader.refused(
                "the tensor '{s}' of {d} bytes has offsets [{d}, {d}]; {d} is the next",
                .{ tensor.name, size, tensor.begin, tensor.end, next },
            );
        }
        next = tensor.end;
    }
    if (next != bytes) return reader.refused("the tensors have {d} bytes and the file {d} for them", .{ next, bytes });
    std.mem.sort(Stored, tensors, {}, Stored.namedBefore);
    return tensors;
}

const Reader = struct {
    arena: std.mem.Allocator,
    path: []const u8,

    fn refused(self: Reader, comptime format: []const u8, arguments: anytype) Error {
        return failure.fail(error.InvalidArgument, "{s}: no safetensors file: " ++ format, .{self.path} ++ arguments);
    }

    fn json(self: Reader, scratch: std.mem.Allocator, text: []const u8) Error!Value {
        var scanner: std.json.Scanner = .initCompleteInput(scratch, text);
        defer scanner.deinit();
        var place: std.json.Diagnostics = .{};
        scanner.enableDiagnostics(&place);
        return std.json.parseFromTokenSourceLeaky(Value, scratch, &scanner, .{}) catch |err| {
            const what = switch (err) {
                error.OutOfMemory => return failure.outOfMemory(),
                error.DuplicateField => "the name is there twice",
                error.UnexpectedEndOfInput => "the JSON has no end",
                else => "this is no JSON",
            };
            return self.refused("byte {d} of the header: {s}", .{ place.getByteOffset(), what });
        };
    }

    fn tensors(self: Reader, root: Value) Error![]Stored {
        if (root != .object) return self.refused("the header is no object", .{});
        const all = self.arena.alloc(Stored, root.object.count()) catch return failure.outOfMemory();
        var count: usize = 0;
        var entries = root.object.iterator();
        while (entries.next()) |entry| {
            const name = entry.key_ptr.*;
            if (std.mem.eql(u8, name, "__metadata__")) {
                try self.metadata(entry.value_ptr.*);
            } else {
                all[count] = try self.tensor(name, entry.value_ptr.*);
                count += 1;
            }
        }
        return all[0..count];
    }

    fn metadata(self: Reader, value: Value) Error!void {
        if (value != .object) return self.refused("'__metadata__' is no object", .{});
        for (value.object.values()) |one| {
            if (one != .string) return self.refused("'__metadata__' has a value that is no text", .{});
        }
    }

    fn tensor(self: Reader, name: []const u8, value: Value) Error!Stored {
        const form = "the tensor '{s}' has not just dtype, shape and two data_offsets";
        if (value != .object or value.object.count() != 3) return self.refused(form, .{name});
        const dtype = value.object.get("dtype") orelse .null;
        if (dtype != .string) return self.refused(form, .{name});
        if (!sizes.has(dtype.string)) {
            return self.refused("the tensor '{s}' has no dtype of the format: '{s}'", .{ name, dtype.string });
        }
        const dims = try self.numbers(name, value.object.get("shape") orelse .null);
        const offsets = try self.numbers(name, value.object.get("data_offsets") orelse .null);
        if (offsets.len != 2) return self.refused(form, .{name});
        return .{
            .name = self.arena.dupe(u8, name) catch return failure.outOfMemory(),
            .dtype = sizes.keys()[sizes.getIndex(dtype.string).?],
            .dims = dims,
            .begin = offsets[0],
            .end = offsets[1],
        };
    }

    fn numbers(self: Reader, name: []const u8, value: Value) Error![]usize {
        if (value != .array) return self.refused("the tensor '{s}' has no list where one is due", .{name});
        const all = self.arena.alloc(usize, value.array.items.len) catch return failure.outOfMemory();
        for (all, value.array.items) |*number, item| {
            const whole: ?usize = if (item == .integer) std.math.cast(usize, item.integer) else null;
            number.* = whole orelse return self.refused("the tensor '{s}' has a number that is no size", .{name});
        }
        return all;
    }
};
