//! Weights: the tensors of a safetensors file by name.

const std = @import("std");
const c = @import("c");
const enums = @import("../enums.zig");
const failure = @import("../failure.zig");
const call = @import("../call.zig");
const check = enums.check;
const Context = @import("../context.zig").Context;
const Error = enums.Error;
const Tensor = @import("../tensor.zig").Tensor;

/// An open safetensors file. Opening reads its header; each tensor is read on request. Threads may share it.
pub const Weights = struct {
    /// The file's path.
    path: [:0]const u8,
    allocator: std.mem.Allocator,
    handle: ?*c.adead_safetensors,

    /// Opens a file. Io if it can't be read, InvalidArgument if it is not a safetensors file.
    pub fn open(allocator: std.mem.Allocator, path: [:0]const u8) Error!Weights {
        const own = try joined(allocator, path, "");
        errdefer allocator.free(own);
        var handle: ?*c.adead_safetensors = null;
        try check(c.adead_safetensors_open(own.ptr, &handle));
        return .{ .path = own, .allocator = allocator, .handle = handle };
    }

    /// Closes the file. Tensors and layers made from it stay valid.
    pub fn deinit(self: Weights) void {
        c.adead_safetensors_close(self.handle);
        self.allocator.free(self.path);
    }

    /// Returns the number of tensors.
    pub fn count(self: Weights) usize {
        var out: usize = 0;
        // This fails only without a file.
        check(c.adead_safetensors_count(self.handle, &out)) catch {};
        return out;
    }

    /// Returns the name of tensor `index`, in sorted order.
    pub fn nameAt(self: Weights, index: usize) []const u8 {
        var out: [*c]const u8 = null;
        check(c.adead_safetensors_name(self.handle, index, &out)) catch @panic("index beyond the weights' tensors");
        return std.mem.span(@as([*:0]const u8, out));
    }

    /// Returns whether the file has a tensor of this name.
    pub fn contains(self: Weights, name: []const u8) bool {
        const text = joined(self.allocator, name, "") catch return false;
        defer self.allocator.free(text);
        var out: i32 = 0;
        check(c.adead_safetensors_contains(self.handle, text.ptr, &out)) catch return false;
        return out != 0;
    }

    /// Returns a tensor's dimensions, which live as long as the weights. InvalidArgument if there is no tensor of that
    /// name.
    pub fn dims(self: Weights, name: []const u8) Error![]const usize {
        const text = try joined(self.allocator, name, "");
        defer self.allocator.free(text);
        var out: [*c]const usize = null;
        var rank: usize = 0;
        try check(c.adead_safetensors_dims(self.handle, text.ptr, &out, &rank));
        return out[0..rank];
    }

    /// Reads a tensor as f32; f16 and bf16 are widened, f64 is rounded. InvalidArgument if there is no tensor of that name,
    /// ShapeMismatch if its dimensions differ, DtypeMismatch for other elements, Io if it can't be read.
    pub fn tensor(self: Weights, ctx: Context, name: []const u8, shape: []const usize) Error!Tensor {
        return self.part(ctx, name, "", shape);
    }

    /// Reads the tensor that is named by `PREFIX` and a suffix.
    pub fn part(self: Weights, _: Context, prefix: []const u8, suffix: []const u8, shape: []const usize) Error!Tensor {
        const name = try joined(self.allocator, prefix, suffix);
        defer self.allocator.free(name);
        return call.made(Tensor, c.adead_safetensors_tensor, .{ self.handle, name.ptr, shape.ptr, shape.len });
    }
};

/// Concatenates two texts and ends them with a zero, as C needs.
pub fn joined(allocator: std.mem.Allocator, first: []const u8, second: []const u8) Error![:0]u8 {
    const own = allocator.allocSentinel(u8, first.len + second.len, 0) catch return failure.outOfMemory();
    @memcpy(own[0..first.len], first);
    @memcpy(own[first.len..], second);
    return own;
}
