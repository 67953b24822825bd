//! Tensors, and attributes of operations.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const Error = enums.Error;
const call = @import("call.zig");
const failure = @import("failure.zig");
const check = enums.check;
const DType = enums.DType;

/// Returns whether `T` holds elements of a dtype. f16 is Zig's f16. bf16 is its bits, as u16. A bool is a byte; every
/// byte except 0 is true.
fn isElement(comptime T: type, dtype: DType) bool {
    return switch (T) {
        f32 => dtype == .f32,
        f64 => dtype == .f64,
        f16 => dtype == .f16,
        u16 => dtype == .bf16 or dtype == .f16,
        i32 => dtype == .i32,
        i64 => dtype == .i64,
        u32 => dtype == .u32,
        u8 => dtype == .bool,
        else => @compileError("elements are f32, f64, f16, i32, i64, u32 or, of bf16, u16, of bool, u8; not " ++ @typeName(T)),
    };
}

fn dtypeOf(comptime T: type) DType {
    return switch (T) {
        f32 => .f32,
        f64 => .f64,
        f16 => .f16,
        i32 => .i32,
        i64 => .i64,
        u32 => .u32,
        bool => .bool,
        else => @compileError("elements are f32, f64, f16, i32, i64, u32 or bool; initBytes takes the others; not " ++ @typeName(T)),
    };
}

/// A shaped value. Its contents never change, so threads may share one.
pub const Tensor = extern struct {
    handle: ?*c.adead_tensor = null,

    /// Stands for an absent optional operand.
    pub const none: Tensor = .{};

    /// Makes a tensor with a copy of these values.
    pub fn init(comptime T: type, dims: []const usize, values: []const T) Error!Tensor {
        return initBytes(dtypeOf(T), dims, std.mem.sliceAsBytes(values));
    }

    /// Makes a tensor with a copy of these bytes: elements in native byte order, row-major.
    pub fn initBytes(element: DType, dims: []const usize, values: []const u8) Error!Tensor {
        return call.made(Tensor, c.adead_tensor_create, .{ @intFromEnum(element), dims.ptr, dims.len, values.ptr, values.len });
    }

    pub fn zeros(element: DType, dims: []const usize) Error!Tensor {
        return call.made(Tensor, c.adead_tensor_zeros, .{ @intFromEnum(element), dims.ptr, dims.len });
    }

    pub fn deinit(self: Tensor) void {
        c.adead_tensor_destroy(self.handle);
    }

    /// Makes another handle to the same values, without a copy.
    pub fn clone(self: Tensor) Error!Tensor {
        return call.made(Tensor, c.adead_tensor_clone, .{self.handle});
    }

    /// Returns the same values in another shape, without a copy.
    pub fn reshape(self: Tensor, dims: []const usize) Error!Tensor {
        return call.made(Tensor, c.adead_tensor_reshape, .{ self.handle, dims.ptr, dims.len });
    }

    /// Returns whether the values are in host memory ("cpu") or on the device of an id. `Context.to` copies them.
    pub fn isOn(self: Tensor, device: [:0]const u8) Error!bool {
        return try call.asked(i32, c.adead_tensor_is_on, .{ self.handle, device.ptr }) != 0;
    }

    pub fn dtype(self: Tensor) Error!DType {
        return call.word(DType, c.adead_tensor_dtype, .{self.handle});
    }

    /// Returns the dimensions. They live as long as the tensor.
    pub fn shape(self: Tensor) Error![]const usize {
        var rank: usize = 0;
        var dims: [*c]const usize = null;
        try check(c.adead_tensor_rank(self.handle, &rank));
        try check(c.adead_tensor_dims(self.handle, &dims));
        return if (rank == 0) &.{} else dims[0..rank];
    }

    /// Returns the elements' bytes, native and row-major. They live as long as the last of the tensor and its clones.
    pub fn bytes(self: Tensor) Error![]const u8 {
        var length: usize = 0;
        var data_: ?*const anyopaque = null;
        try check(c.adead_tensor_bytes(self.handle, &length));
        try check(c.adead_tensor_data(self.handle, &data_));
        const first: [*]const u8 = @ptrCast(data_ orelse return &.{});
        return first[0..length];
    }

    /// Returns the elements, in the memory of bytes(). DtypeMismatch if they are not T.
    pub fn data(self: Tensor, comptime T: type) Error![]const T {
        if (!isElement(T, try self.dtype())) return error.DtypeMismatch;
        const all = try self.bytes();
        if (all.len == 0) return &.{};
        return std.mem.bytesAsSlice(T, @as([]align(@alignOf(T)) const u8, @alignCast(all)));
    }

    /// Writes dtype, shape and elements, for `{f}`: `f32 [2, 2] { 1, 2, 3, 4 }`. bf16 is written by its bits. More than 16 elements
    /// end in an ellipsis. WriteFailed if the values can't be read.
    pub fn format(self: Tensor, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        self.show(writer) catch return error.WriteFailed;
    }

    fn show(self: Tensor, writer: *std.Io.Writer) !void {
        const element = try self.dtype();
        const dims: failure.Dims = .{ .of = try self.shape() };
        try writer.print("{s} {f} ", .{ std.enums.tagName(DType, element) orelse "unknown", dims });
        switch (element) {
            .f32 => try list(writer, try self.data(f32)),
            .f64 => try list(writer, try self.data(f64)),
            .f16 => try list(writer, try self.data(f16)),
            .bf16 => try list(writer, try self.data(u16)),
            .i32 => try list(writer, try self.data(i32)),
            .i64 => try list(writer, try self.data(i64)),
            .u32 => try list(writer, try self.data(u32)),
            else => try list(writer, try self.bytes()),
        }
    }

    fn list(writer: *std.Io.Writer, values: anytype) std.Io.Writer.Error!void {
        try writer.writeAll("{");
        for (values[0..@min(values.len, 16)], 0..) |value, i| {
            try writer.writeAll(if (i == 0) " " else ", ");
            // Without an exponent, an f64 has up to 325 digits.
            if (@TypeOf(value) == f64 and value != 0 and (@abs(value) < 1e-5 or @abs(value) >= 1e16))
                try writer.print("{e}", .{value})
            else
                try writer.print("{d}", .{value});
        }
        try writer.writeAll(if (values.len > 16) ", … }" else " }");
    }

    /// Copies all elements. InvalidArgument unless the slice has exactly their size in bytes.
    pub fn read(self: Tensor, comptime T: type, to: []T) Error!void {
        if (!isElement(T, try self.dtype())) return error.DtypeMismatch;
        const room = std.mem.sliceAsBytes(to);
        try check(c.adead_tensor_read(self.handle, room.ptr, room.len));
    }
};

/// Attributes of an operation. Each has its default until it is set.
pub const Attrs = struct {
    handle: ?*c.adead_attrs = null,

    pub fn deinit(self: Attrs) void {
        c.adead_attrs_destroy(self.handle);
    }

    /// Sets an attribute from text, as in docs/operations.md: "-1", "0x3f000000", "relu", "1,0,2".
    pub fn set(self: *Attrs, op: enums.Op, name: [*:0]const u8, value: [*:0]const u8) Error!void {
        if (self.handle == null) try check(c.adead_attrs_create(&self.handle));
        try check(c.adead_attrs_set(self.handle, @intFromEnum(op), name, value));
    }

    /// Sets an attribute from an operation's option, if the option is present.
    pub fn give(self: *Attrs, op: enums.Op, name: [*:0]const u8, value: anytype) Error!void {
        const it = value orelse return;
        var buffer: [16 * c.ADEAD_MAX_RANK]u8 = undefined;
        const text: [*:0]const u8 = switch (@TypeOf(it)) {
            bool => if (it) "1" else "0",
            i32 => if (it == c.ADEAD_AXIS_ALL) "all" else print(&buffer, "{d}", .{it}),
            f32 => print(&buffer, "0x{x:0>8}", .{@as(u32, @bitCast(it))}),
            []const i32 => list(&buffer, it),
            // An unknown number has no name. The operation refuses the empty text.
            else => |E| std.enums.tagName(E, it) orelse "",
        };
        try self.set(op, name, text);
    }

    fn print(buffer: []u8, comptime format: []const u8, arguments: anytype) [*:0]const u8 {
        const text = std.fmt.bufPrint(buffer, format ++ "\x00", arguments) catch unreachable; // An i32 or its like: it fits.
        return text[0 .. text.len - 1 :0];
    }

    /// Writes a list of axes. A list longer than any permutation is cut to one that is invalid.
    fn list(buffer: []u8, values: []const i32) [*:0]const u8 {
        var length: usize = 0;
        for (values, 0..) |value, i| {
            const comma = if (i == 0) "" else ",";
            const room = buffer[length .. buffer.len - 2];
            const text = std.fmt.bufPrint(room, "{s}{d}", .{ comma, value }) catch {
                buffer[length] = ',';
                buffer[length + 1] = '?';
                length += 2;
                break;
            };
            length += text.len;
        }
        if (length == buffer.len) length -= 1;
        buffer[length] = 0;
        return buffer[0..length :0];
    }
};
