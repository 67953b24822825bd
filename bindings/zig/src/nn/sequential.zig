//! Layers that are applied one after another.

const std = @import("std");
const enums = @import("../enums.zig");
const failure = @import("../failure.zig");
const Allocator = std.mem.Allocator;
const Error = enums.Error;
const Tensor = @import("../tensor.zig").Tensor;

/// Applies layers one after another: each takes the result of the one before. Without layers it returns its input.
pub const Sequential = struct {
    allocator: Allocator,
    layers: std.ArrayList(Layer) = .empty,

    pub fn init(allocator: Allocator) Sequential {
        return .{ .allocator = allocator };
    }

    /// Destroys its layers, too.
    pub fn deinit(self: Sequential) void {
        for (self.layers.items) |layer| layer.destroy(layer.pointer, self.allocator);
        var layers = self.layers;
        layers.deinit(self.allocator);
    }

    /// Appends a layer: any type with `forward(Tensor) Error!Tensor`, including the caller's own. Takes the layer over,
    /// with the `deinit()` that it may have, unless this fails with OutOfMemory.
    pub fn append(self: *Sequential, layer: anytype) Error!void {
        const L = @TypeOf(layer);
        self.layers.ensureUnusedCapacity(self.allocator, 1) catch return failure.outOfMemory();
        const own = self.allocator.create(L) catch return failure.outOfMemory();
        own.* = layer;
        self.layers.appendAssumeCapacity(.{ .pointer = own, .forward = Calls(L).forward, .destroy = Calls(L).destroy });
    }

    /// Returns the number of layers.
    pub fn len(self: Sequential) usize {
        return self.layers.items.len;
    }

    pub fn forward(self: Sequential, x: Tensor) Error!Tensor {
        var y = try x.clone();
        for (self.layers.items) |layer| {
            const before = y;
            defer before.deinit();
            y = try layer.forward(layer.pointer, before);
        }
        return y;
    }
};

const Layer = struct {
    pointer: *anyopaque,
    forward: *const fn (*const anyopaque, Tensor) Error!Tensor,
    destroy: *const fn (*anyopaque, Allocator) void,
};

fn Calls(comptime L: type) type {
    return struct {
        fn forward(pointer: *const anyopaque, x: Tensor) Error!Tensor {
            const layer: *const L = @ptrCast(@alignCast(pointer));
            return layer.forward(x);
        }
        fn destroy(pointer: *anyopaque, allocator: Allocator) void {
            const layer: *L = @ptrCast(@alignCast(pointer));
            if (@hasDecl(L, "deinit")) layer.deinit();
            allocator.destroy(layer);
        }
    };
}
