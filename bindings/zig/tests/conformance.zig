//! Runs the conformance cases of tests/conformance/FORMAT.md through the Zig API and compares bit for bit. The C
//! runner's code reads them. Every case runs by its operation's number, and also by the operation's own method if that
//! can express its operands and attributes. A pipeline is compiled and run, and also executed.
//!
//!     zig build conformance -- [--list] FOLDER|FILE.txt [ID-PREFIX ...]

const std = @import("std");
const adead = @import("adead");
const cases = @import("cases");
const typed = @import("typed.zig");
const Tensor = adead.Tensor;

extern fn printf(format: [*:0]const u8, ...) c_int;
extern fn puts(text: [*:0]const u8) c_int;
extern fn free(pointer: ?*anyopaque) void;

var context: adead.Context = .{};
var ran: usize = 0;
var pipelines: usize = 0;
var by_method: usize = 0;

/// A case's attributes that an operation's options can express.
const Attributes = struct {
    case: *const cases.test_case,
    used: usize = 0,
    expressible: bool = true,
    /// The number of lists among them.
    lists: usize = 0,

    pub fn take(self: *Attributes, name: []const u8, to: anytype) void {
        for (self.case.attrs[0..self.case.attr_count]) |attr| {
            if (!std.mem.eql(u8, std.mem.span(attr[0]), name)) continue;
            self.used += 1;
            to.* = self.parse(@TypeOf(to.*), std.mem.span(attr[1])) orelse return self.none();
        }
    }

    fn none(self: *Attributes) void {
        self.expressible = false;
    }

    fn parse(self: *Attributes, comptime T: type, text: []const u8) ?T {
        switch (T) {
            ?bool => return if (std.mem.eql(u8, text, "1")) true else if (std.mem.eql(u8, text, "0")) false else return null,
            ?i32 => {
                if (std.mem.eql(u8, text, "all")) return adead.all_axes;
                return std.fmt.parseInt(i32, text, 10) catch return null;
            },
            ?f32 => {
                if (text.len != 10 or !std.mem.startsWith(u8, text, "0x")) return null;
                return @as(f32, @bitCast(std.fmt.parseInt(u32, text[2..], 16) catch return null));
            },
            ?[]const i32 => {
                var count: usize = 0;
                if (self.lists == lists.len) return null;
                const numbers = &lists[self.lists];
                self.lists += 1;
                var words = std.mem.tokenizeScalar(u8, text, ',');
                while (words.next()) |word| : (count += 1) {
                    if (count == numbers.len) return null;
                    numbers[count] = std.fmt.parseInt(i32, word, 10) catch return null;
                }
                return @as([]const i32, numbers[0..count]);
            },
            else => return std.meta.stringToEnum(@typeInfo(T).optional.child, text) orelse return null,
        }
    }
};
/// The memory of an operation's list attributes.
var lists: [3][64]i32 = undefined;

/// Compares the result of a call with the case.
fn compare(case: *const cases.test_case, result: adead.Error!Tensor) void {
    const expected: [*:0]const u8 = if (case.@"error" != null) case.@"error" else "ok";
    const tensor = result catch |err| {
        const status = @tagName(adead.statusOf(err));
        if (!std.mem.eql(u8, status, std.mem.span(expected))) cases.fail(case.id, expected, adead.lastError());
        return;
    };
    defer tensor.deinit();
    if (case.@"error" != null) return cases.fail(case.id, expected, "ok");
    look(case.id, &case.out, tensor) catch cases.fail(case.id, "a tensor", adead.lastError());
}

fn look(id: [*:0]const u8, out: *const cases.value, tensor: Tensor) adead.Error!void {
    const shape = try tensor.shape();
    const bytes = try tensor.bytes();
    cases.check_result(id, out, @intFromEnum(try tensor.dtype()), shape.ptr, shape.len, bytes.ptr, bytes.len);
}

fn tensorOf(value: *const cases.value) adead.Error!Tensor {
    const elements = cases.read_value(value);
    defer free(elements.data);
    const data: [*]const u8 = @ptrCast(elements.data orelse unreachable);
    return Tensor.initBytes(@enumFromInt(elements.dtype), elements.dims[0..elements.rank], data[0..elements.bytes]);
}

/// Records a pipeline. Its inputs become inputs, or constants if they are those of a run.
fn record(to: adead.Pipeline, recorded: *const cases.pipeline_case, executed: ?*const cases.pipeline_run) adead.Error!void {
    var values: [cases.MAX_VALUES]adead.Value = undefined;
    var inputs: usize = 0;
    for (recorded.values[0..recorded.value_count], values[0..recorded.value_count]) |*from, *value| {
        var dims: [8]usize = undefined;
        if (from.source == cases.VALUE_INPUT and executed == null) {
            const rank = cases.read_shape(from.given.shape, &dims);
            const dtype = std.meta.stringToEnum(adead.DType, std.mem.span(from.given.dtype)) orelse return error.Internal;
            value.* = try to.input(dtype, dims[0..rank]);
        } else if (from.source == cases.VALUE_INPUT or from.source == cases.VALUE_CONSTANT) {
            const given = if (from.source == cases.VALUE_CONSTANT) &from.given else &executed.?.inputs[inputs];
            if (from.source == cases.VALUE_INPUT) inputs += 1;
            const tensor = try tensorOf(given);
            defer tensor.deinit();
            value.* = try to.constant(tensor);
        } else if (from.source == cases.VALUE_RESHAPE) {
            const rank = cases.read_shape(from.given.shape, &dims);
            value.* = try to.reshape(values[@intCast(from.operands[0])], dims[0..rank]);
        } else {
            const op = std.meta.stringToEnum(adead.Op, std.mem.span(from.op)) orelse return error.Internal;
            var operands: [from.operands.len]adead.Value = undefined;
            for (from.operands[0..from.operand_count], operands[0..from.operand_count]) |number, *operand| {
                operand.* = if (number < 0) .none else values[@intCast(number)];
            }
            var attrs: adead.Attrs = .{};
            defer attrs.deinit();
            for (from.attrs[0..from.attr_count]) |attr| try attrs.set(op, attr[0], attr[1]);
            value.* = try to.op(op, operands[0..from.operand_count], attrs);
        }
    }
    for (recorded.gives[0..recorded.give_count]) |give| try to.output(values[give]);
    if (recorded.by_count == 0) return;
    var room: [2][cases.MAX_OUTPUTS]adead.Value = undefined;
    const by, const gradients = .{ room[0][0..recorded.by_count], room[1][0..recorded.by_count] };
    for (by, recorded.by[0..recorded.by_count]) |*value, number| value.* = values[number];
    try to.gradients(values[recorded.value_count - 1], by, gradients);
    // A copy, as a gradient may be a constant, which a pipeline does not give.
    for (gradients) |gradient| try to.output(try to.op(.scale, &.{gradient}, .{}));
}

/// Runs a compiled pipeline.
fn runCompiled(compiled: adead.Error!adead.Compiled, of: *const cases.pipeline_run, outputs: []Tensor) adead.Error!void {
    const plan = try compiled;
    var room: [cases.MAX_OPERANDS]Tensor = @splat(.none);
    const inputs = room[0..of.input_count];
    defer for (inputs) |input| input.deinit();
    for (inputs, of.inputs[0..of.input_count]) |*input, *value| input.* = try tensorOf(value);
    try plan.run(inputs, outputs);
}

fn compile(recorded: *const cases.pipeline_case) adead.Error!adead.Compiled {
    const pipeline = try context.pipeline();
    defer pipeline.deinit();
    try record(pipeline, recorded, null);
    return pipeline.compile();
}

fn execute(recorded: *const cases.pipeline_case, of: *const cases.pipeline_run, outputs: []Tensor) adead.Error!void {
    const pipeline = try context.pipeline();
    defer pipeline.deinit();
    try record(pipeline, recorded, of);
    try pipeline.execute(outputs);
}

/// Compares the result of a run with the case.
fn compareRun(id: [*:0]const u8, of: *const cases.pipeline_run, result: adead.Error!void, outputs: []const Tensor) void {
    const expected: [*:0]const u8 = if (of.@"error" != null) of.@"error" else "ok";
    defer for (outputs) |output| output.deinit();
    result catch |err| {
        const status = @tagName(adead.statusOf(err));
        if (!std.mem.eql(u8, status, std.mem.span(expected))) cases.fail(id, expected, adead.lastError());
        return;
    };
    if (of.@"error" != null) return cases.fail(id, expected, "ok");
    for (outputs, of.outputs[0..outputs.len]) |output, *out| {
        look(id, out, output) catch cases.fail(id, "a tensor", adead.lastError());
    }
}

fn runPipeline(case: *const cases.test_case) void {
    const recorded: *const cases.pipeline_case = case.pipeline;
    pipelines += 1;
    const compiled = compile(recorded);
    defer if (compiled) |plan| plan.deinit() else |_| {};
    for (recorded.runs[0..recorded.run_count]) |*of| {
        var room: [cases.MAX_OUTPUTS]Tensor = @splat(.none);
        const outputs = room[0..@max(1, recorded.give_count + recorded.by_count)];
        compareRun(case.id, of, runCompiled(compiled, of, outputs), outputs);
        if (cases.fits_recording(recorded, of) == 0) continue;
        room = @splat(.none);
        compareRun(case.id, of, execute(recorded, of, outputs), outputs);
    }
}

fn run(pointer: [*c]const cases.test_case) callconv(.c) void {
    const case: *const cases.test_case = pointer;
    ran += 1;
    if (case.pipeline != null) return runPipeline(case);
    const op = std.meta.stringToEnum(adead.Op, std.mem.span(case.op)) orelse
        return cases.fail(case.id, "an operation", case.op);
    var room: [cases.MAX_OPERANDS]Tensor = @splat(.none);
    const operands = room[0..case.operand_count];
    defer for (operands) |operand| operand.deinit();
    for (operands, case.operands[0..case.operand_count]) |*operand, *value| {
        if (value.shape == null) continue;
        operand.* = tensorOf(value) catch return cases.fail(case.id, "an operand", adead.lastError());
    }

    var attrs: adead.Attrs = .{};
    defer attrs.deinit();
    const set: adead.Error!void = for (case.attrs[0..case.attr_count]) |attr| {
        attrs.set(op, attr[0], attr[1]) catch |err| break err;
    } else {};
    if (set) |_| compare(case, context.run(op, operands, attrs)) else |err| compare(case, err);

    if (!typed.fits(op, operands)) return;
    var attributes: Attributes = .{ .case = case };
    const result = typed.typed(context, op, operands, &attributes);
    // Only text can express an attribute without an option, or a value without a type.
    if (!attributes.expressible or attributes.used != case.attr_count) {
        if (result) |tensor| tensor.deinit() else |_| {}
        return;
    }
    by_method += 1;
    compare(case, result);
}

fn list(case: [*c]const cases.test_case) callconv(.c) void {
    _ = puts(case.*.id);
}

pub export fn main(argc: c_int, argv: [*:null]?[*:0]u8) c_int {
    const listing = argc > 1 and std.mem.eql(u8, std.mem.span(argv[1].?), "--list");
    const arguments = argv + 1 + @as(usize, @intFromBool(listing));
    const folder = arguments[0] orelse {
        _ = puts("usage: conformance [--list] FOLDER|FILE.txt [ID-PREFIX ...]");
        return 2;
    };
    if (!listing) {
        context = adead.Context.open(null, .{}) catch |err| {
            const missing = err == error.BackendUnavailable;
            const what: [*:0]const u8 = if (missing) "skipped" else "conformance";
            _ = printf("%s: %s\n", what, adead.lastError().ptr);
            return if (missing) 77 else 2;
        };
    }
    cases.each_case(folder, @ptrCast(arguments + 1), if (listing) list else run);
    if (listing) return 0;
    context.deinit();
    _ = printf("%zu of them by their operation's own method\n", by_method);
    _ = printf("%zu ran, %zu failed, 0 skipped\n", ran, cases.failures);
    if (by_method < (ran - pipelines) / 2) {
        _ = puts("too few cases ran by their operation's own method");
        return 2;
    }
    return @intFromBool(cases.failures > 0);
}
