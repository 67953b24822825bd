//! Fused pipelines: the caller records operations first, then runs them together. docs/pipelines.md says what is fused.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const hardware = @import("hardware.zig");
const tensor = @import("tensor.zig");
const Attrs = tensor.Attrs;
const Error = enums.Error;
const Tensor = tensor.Tensor;
const call = @import("call.zig");
const callback = @import("callback.zig");
const check = enums.check;

/// A value of a pipeline: an input, a constant, or the result of an operation. Other pipelines refuse it.
pub const Value = enum(c.adead_value) {
    /// Stands for an absent optional operand.
    none = std.math.maxInt(c.adead_value),
    _,
};

/// What a hook's function returns.
fn Replaced(comptime Hook: type) type {
    const Type = switch (@typeInfo(Hook)) {
        .pointer => |it| it.child,
        else => Hook,
    };
    return @typeInfo(@TypeOf(Type.replace)).@"fn".return_type.?;
}

/// A pipeline under construction. One thread at a time may use it.
pub const Pipeline = struct {
    handle: ?*c.adead_chain = null,

    /// Destroys the pipeline. Pipelines compiled from it stay valid.
    pub fn deinit(self: Pipeline) void {
        c.adead_chain_destroy(self.handle);
    }

    /// Adds an input: a tensor that the caller passes at each run, in the order of these calls.
    pub fn input(self: Pipeline, dtype: enums.DType, dims: []const usize) Error!Value {
        return call.word(Value, c.adead_chain_input, .{ self.handle, @intFromEnum(dtype), dims.ptr, dims.len });
    }

    /// Adds a constant: a tensor that is the same in each run, such as weights. The caller may destroy its handle.
    pub fn constant(self: Pipeline, of: Tensor) Error!Value {
        return call.word(Value, c.adead_chain_constant, .{ self.handle, of.handle });
    }

    /// Adds an operation on values, in the order of docs/operations.md. Trailing optional values may be omitted.
    pub fn op(self: Pipeline, what: enums.Op, operands: []const Value, attrs: Attrs) Error!Value {
        var out: c.adead_value = 0;
        const values: [*c]const c.adead_value = @ptrCast(operands.ptr);
        try check(c.adead_chain_op(self.handle, @intFromEnum(what), values, operands.len, attrs.handle, &out));
        return @enumFromInt(out);
    }

    /// Reshapes a value without a copy; the new shape must have as many elements.
    pub fn reshape(self: Pipeline, value: Value, dims: []const usize) Error!Value {
        return call.word(Value, c.adead_chain_reshape, .{ self.handle, @intFromEnum(value), dims.ptr, dims.len });
    }

    /// Returns a value with the same elements that no gradient passes through.
    pub fn detach(self: Pipeline, value: Value) Error!Value {
        return call.word(Value, c.adead_chain_detach, .{ self.handle, @intFromEnum(value) });
    }

    /// Records the gradients of a one-element value, such as a loss, with respect to `values`, and writes them to `out`, which
    /// must have the same length. docs/training.md is the guide.
    pub fn gradients(self: Pipeline, loss: Value, values: []const Value, out: []Value) Error!void {
        std.debug.assert(out.len == values.len);
        const by: [*c]const c.adead_value = @ptrCast(values.ptr);
        const found: [*c]c.adead_value = @ptrCast(out.ptr);
        try check(c.adead_chain_gradients(self.handle, @intFromEnum(loss), by, values.len, found));
    }

    /// Works like gradients, and calls `hook.replace(pipeline, number, gradient)` when the gradient of `hooked[number]` is recorded.
    /// What it returns takes the gradient's place. It may return an error, which ends the recording.
    pub fn gradientsWith(
        self: Pipeline,
        loss: Value,
        values: []const Value,
        hooked: []const Value,
        hook: anytype,
        out: []Value,
    ) (Error || callback.ErrorsOf(Replaced(@TypeOf(hook))))!void {
        std.debug.assert(out.len == values.len);
        const Errors = Error || callback.ErrorsOf(Replaced(@TypeOf(hook)));
        const Hooked = struct {
            hook: @TypeOf(hook),
            failed: callback.Kept(Errors) = .{},

            fn call(chain: ?*c.adead_chain, number: usize, gradient: c.adead_value, replaced: [*c]c.adead_value, user: ?*anyopaque) callconv(.c) c.adead_status {
                const own: *@This() = @ptrCast(@alignCast(user));
                const given: Value = @enumFromInt(gradient);
                const found = own.hook.replace(Pipeline{ .handle = chain }, number, given);
                const value: Value = if (@TypeOf(found) == Value) found else found catch |err| return own.failed.keep(err);
                replaced.* = @intFromEnum(value);
                return c.ADEAD_OK;
            }
        };
        var state: Hooked = .{ .hook = hook };
        const by: [*c]const c.adead_value = @ptrCast(values.ptr);
        const of: [*c]const c.adead_value = @ptrCast(hooked.ptr);
        const found: [*c]c.adead_value = @ptrCast(out.ptr);
        const loss_value = @intFromEnum(loss);
        const status = c.adead_chain_gradients_with(self.handle, loss_value, by, values.len, of, hooked.len, Hooked.call, &state, found);
        if (status == callback.kept_error) return state.failed.say();
        try check(status);
    }

    /// Says whether gradients pass through the operations recorded from now on, as they do at first. Returns whether they did before.
    pub fn setGradEnabled(self: Pipeline, enabled: bool) Error!bool {
        var before: i32 = 1;
        try check(c.adead_chain_set_grad_enabled(self.handle, @intFromBool(enabled), &before));
        return before != 0;
    }

    /// Makes a value an output, in the order of these calls. Without any call, the last value is the output.
    pub fn output(self: Pipeline, value: Value) Error!void {
        try check(c.adead_chain_output(self.handle, @intFromEnum(value)));
    }

    /// Runs the pipeline once with its constants; `outputs` must have room for all outputs. The compiled form is
    /// cached: the next pipeline with the same operations and shapes reuses it.
    pub fn execute(self: Pipeline, outputs: []Tensor) Error!void {
        try check(c.adead_chain_execute(self.handle, @ptrCast(outputs.ptr), outputs.len));
    }

    /// Plans it for the device with the lowest estimated time.
    pub fn compile(self: Pipeline) Error!Compiled {
        return call.made(Compiled, c.adead_chain_compile, .{self.handle});
    }
};

/// A pipeline that was planned for a device, to be run any number of times. Threads may share one.
pub const Compiled = struct {
    handle: ?*c.adead_compiled = null,

    pub fn deinit(self: Compiled) void {
        c.adead_compiled_destroy(self.handle);
    }

    /// Runs it with its inputs and writes its outputs, for which `outputs` must have room.
    pub fn run(self: Compiled, inputs: []const Tensor, outputs: []Tensor) Error!void {
        try check(c.adead_compiled_run(self.handle, @ptrCast(inputs.ptr), inputs.len, @ptrCast(outputs.ptr), outputs.len));
    }

    /// Describes it: inputs, outputs, operations, steps, memory, device.
    pub fn info(self: Compiled) Error!c.adead_compiled_info {
        var out = hardware.sized(c.adead_compiled_info);
        try check(c.adead_compiled_describe(self.handle, &out));
        return out;
    }

    /// Returns the plan as text, with a line for each step. The text lives as long as this object.
    pub fn text(self: Compiled) Error![:0]const u8 {
        return call.text(c.adead_compiled_text, .{self.handle});
    }

    /// Returns the plan as a graph in the DOT language, which Graphviz draws. The text lives as long as this object.
    pub fn dot(self: Compiled) Error![:0]const u8 {
        return call.text(c.adead_compiled_dot, .{self.handle});
    }
};
