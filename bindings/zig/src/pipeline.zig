//! Fused pipelines: operations recorded first, then run as a whole. docs/pipelines.md tells what is fused.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const hardware = @import("hardware.zig");
const tensor = @import("tensor.zig");
const Attrs = tensor.Attrs;
const Error = enums.Error;
const Tensor = tensor.Tensor;
const call = @import("call.zig");
const check = enums.check;

/// A value of a pipeline: an input, a constant, or the result of an operation. Another pipeline refuses it.
pub const Value = enum(c.adead_value) {
    /// An optional operand that is left out.
    none = std.math.maxInt(c.adead_value),
    _,
};

/// Operations under construction. One thread at a time.
pub const Pipeline = struct {
    handle: ?*c.adead_chain = null,

    /// Gives it up. What was compiled of it stays.
    pub fn deinit(self: Pipeline) void {
        c.adead_chain_destroy(self.handle);
    }

    /// A tensor that is given each time it runs, in the order of these calls.
    pub fn input(self: Pipeline, dtype: enums.DType, dims: []const usize) Error!Value {
        return call.word(Value, c.adead_chain_input, .{ self.handle, @intFromEnum(dtype), dims.ptr, dims.len });
    }

    /// A tensor that is the same each time, such as weights. It may be given up.
    pub fn constant(self: Pipeline, of: Tensor) Error!Value {
        return call.word(Value, c.adead_chain_constant, .{ self.handle, of.handle });
    }

    /// An operation on values in the order of docs/operations.md; trailing optional ones may be left out.
    pub fn op(self: Pipeline, what: enums.Op, operands: []const Value, attrs: Attrs) Error!Value {
        var out: c.adead_value = 0;
        const values: [*c]const c.adead_value = @ptrCast(operands.ptr);
        try check(c.adead_chain_op(self.handle, @intFromEnum(what), values, operands.len, attrs.handle, &out));
        return @enumFromInt(out);
    }

    /// A value's elements in another shape of as many, without a copy.
    pub fn reshape(self: Pipeline, value: Value, dims: []const usize) Error!Value {
        return call.word(Value, c.adead_chain_reshape, .{ self.handle, @intFromEnum(value), dims.ptr, dims.len });
    }

    /// Says that a value comes out: in the order of these calls. Without any, the last value does.
    pub fn output(self: Pipeline, value: Value) Error!void {
        try check(c.adead_chain_output(self.handle, @intFromEnum(value)));
    }

    /// Runs it once, its constants as they are; `outputs` has room for as many tensors as it gives. What it was compiled to
    /// serves the next one with the same operations and shapes.
    pub fn execute(self: Pipeline, outputs: []Tensor) Error!void {
        try check(c.adead_chain_execute(self.handle, @ptrCast(outputs.ptr), outputs.len));
    }

    /// Plans it for the device that takes least.
    pub fn compile(self: Pipeline) Error!Compiled {
        return call.made(Compiled, c.adead_chain_compile, .{self.handle});
    }
};

/// A pipeline planned for a device, to be run any number of times. Threads may share one.
pub const Compiled = struct {
    handle: ?*c.adead_compiled = null,

    pub fn deinit(self: Compiled) void {
        c.adead_compiled_destroy(self.handle);
    }

    /// Its outputs, given its inputs; there is room for as many as it gives.
    pub fn run(self: Compiled, inputs: []const Tensor, outputs: []Tensor) Error!void {
        try check(c.adead_compiled_run(self.handle, @ptrCast(inputs.ptr), inputs.len, @ptrCast(outputs.ptr), outputs.len));
    }

    /// What it is: inputs, outputs, operations, steps, memory, device.
    pub fn info(self: Compiled) Error!c.adead_compiled_info {
        var out = hardware.sized(c.adead_compiled_info);
        try check(c.adead_compiled_describe(self.handle, &out));
        return out;
    }

    /// The plan, a line for each step. It goes with this.
    pub fn text(self: Compiled) Error![:0]const u8 {
        return call.text(c.adead_compiled_text, .{self.handle});
    }

    /// The plan as a graph in the DOT language, which Graphviz draws. It goes with this.
    pub fn dot(self: Compiled) Error![:0]const u8 {
        return call.text(c.adead_compiled_dot, .{self.handle});
    }
};
