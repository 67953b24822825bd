//! Programs: decoded, checked, run, written again.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const hardware = @import("hardware.zig");
const Context = @import("context.zig").Context;
const Error = enums.Error;
const Tensor = @import("tensor.zig").Tensor;
const call = @import("call.zig");
const check = enums.check;

/// A named input or output of a program; `raw` has the numbers. What it shows belongs to the program.
pub const Slot = struct {
    raw: c.adead_slot,

    /// The tensor's name; for AGPU programs the host address as text, such as "0x1000".
    pub fn name(self: *const Slot) [:0]const u8 {
        return std.mem.span(self.raw.name);
    }
    pub fn dims(self: *const Slot) []const usize {
        return self.raw.dims[0..self.raw.rank];
    }
    pub fn dtype(self: *const Slot) enums.DType {
        return @enumFromInt(self.raw.dtype);
    }
    pub fn direction(self: *const Slot) enums.Direction {
        return @enumFromInt(self.raw.direction);
    }
    /// Whether the caller must supply it.
    pub fn required(self: *const Slot) bool {
        return self.raw.required != 0;
    }
};

/// A decoded program. It never changes, so threads may share one.
pub const Program = struct {
    handle: ?*c.adead_program = null,

    /// Decodes an .adead file, an AGPU binary, an AHYB file, .hex text or program text: which one, the bytes say.
    pub fn decode(bytes: []const u8) Error!Program {
        return call.made(Program, c.adead_program_decode, .{ bytes.ptr, bytes.len });
    }

    /// Decodes a file.
    pub fn load(path: [:0]const u8) Error!Program {
        return call.made(Program, c.adead_program_load, .{path.ptr});
    }

    /// Assembles program text, ".adead 1" or ".agpu 1".
    pub fn assemble(source: [:0]const u8) Error!Program {
        return call.made(Program, c.adead_program_assemble, .{source.ptr});
    }

    pub fn deinit(self: Program) void {
        c.adead_program_destroy(self.handle);
    }

    /// What it was decoded from.
    pub fn format(self: Program) Error!enums.Format {
        return call.word(enums.Format, c.adead_program_format, .{self.handle});
    }

    /// The number of instructions.
    pub fn length(self: Program) Error!usize {
        return call.asked(usize, c.adead_program_length, .{self.handle});
    }

    /// The program as a file of that format. It belongs to the program. Unsupported where the format has no words for it.
    pub fn encode(self: Program, as: enums.Format) Error![]const u8 {
        var data: ?*const anyopaque = null;
        var bytes: usize = 0;
        try check(c.adead_program_encode(self.handle, @intFromEnum(as), &data, &bytes));
        const first: [*]const u8 = @ptrCast(data orelse return &.{});
        return first[0..bytes];
    }

    /// Text that assemble() makes this program of again. It belongs to the program.
    pub fn disassemble(self: Program) Error![:0]const u8 {
        return call.text(c.adead_program_disassemble, .{self.handle});
    }

    /// How many things a user should know of the program.
    pub fn noteCount(self: Program) Error!usize {
        return call.asked(usize, c.adead_program_note_count, .{self.handle});
    }

    /// One of those. It belongs to the program.
    pub fn noteAt(self: Program, index: usize) Error![:0]const u8 {
        return call.text(c.adead_program_note_at, .{ self.handle, index });
    }

    /// The number of named inputs and outputs.
    pub fn slotCount(self: Program) Error!usize {
        return call.asked(usize, c.adead_program_slot_count, .{self.handle});
    }

    pub fn slotAt(self: Program, index: usize) Error!Slot {
        var out: Slot = .{ .raw = hardware.sized(c.adead_slot) };
        try check(c.adead_program_slot_at(self.handle, index, &out.raw));
        return out;
    }

    /// Checks everything that can be without data, and gives the most bytes that a run takes at once. `memory_limit` 0 is the
    /// default limit.
    pub fn validate(self: Program, memory_limit: usize) Error!usize {
        return call.asked(usize, c.adead_program_validate, .{ self.handle, memory_limit });
    }
};

/// A tensor for a program's slot of that name.
pub const Binding = struct { name: [:0]const u8, tensor: Tensor };

/// How to run a program. What is left out has the core's default.
pub const RunOptions = struct {
    /// The most bytes that registers, temporaries and outputs may take at once.
    memory_limit: ?usize = null,
    /// Whether instructions that don't depend on each other may run at the same time; the results are the same.
    parallel: ?bool = null,
};

/// Context.runProgram. `scratch` holds the names for the call.
pub fn run(ctx: Context, program: Program, scratch: std.mem.Allocator, bindings: []const Binding, options: RunOptions) Error!Outcome {
    var raw = enums.run_options;
    if (options.memory_limit) |limit| raw.memory_limit = limit;
    if (options.parallel) |parallel| raw.parallel = @intFromBool(parallel);
    const names = try scratch.alloc([*c]const u8, bindings.len);
    defer scratch.free(names);
    const tensors = try scratch.alloc(?*const c.adead_tensor, bindings.len);
    defer scratch.free(tensors);
    for (bindings, names, tensors) |binding, *name, *tensor| {
        name.* = binding.name.ptr;
        tensor.* = binding.tensor.handle;
    }
    return call.made(Outcome, c.adead_program_run, .{ ctx.handle, program.handle, names.ptr, tensors.ptr, bindings.len, &raw });
}

/// What one instruction did in a run; `raw` has the numbers.
pub const Trace = struct {
    raw: c.adead_trace,

    pub fn name(self: *const Trace) [:0]const u8 {
        return hardware.text(&self.raw.name);
    }
    /// The device that it ran on.
    pub fn device(self: *const Trace) [:0]const u8 {
        return hardware.text(&self.raw.device);
    }
};

/// What a program's run gave.
pub const Outcome = struct {
    handle: ?*c.adead_outcome = null,

    /// Tensors taken from it stay.
    pub fn deinit(self: Outcome) void {
        c.adead_outcome_destroy(self.handle);
    }

    /// The output of that name, as a tensor of the caller's.
    pub fn output(self: Outcome, name: [:0]const u8) Error!Tensor {
        return call.made(Tensor, c.adead_outcome_output, .{ self.handle, name.ptr });
    }

    pub fn outputCount(self: Outcome) Error!usize {
        return call.asked(usize, c.adead_outcome_output_count, .{self.handle});
    }

    /// The name of output `index`, in the order of the program's slots. It belongs to the outcome.
    pub fn outputName(self: Outcome, index: usize) Error![:0]const u8 {
        return call.text(c.adead_outcome_output_name, .{ self.handle, index });
    }

    /// The run in numbers: instructions, memory, flops, seconds.
    pub fn report(self: Outcome) Error!c.adead_outcome_stats {
        var out = hardware.sized(c.adead_outcome_stats);
        try check(c.adead_outcome_report(self.handle, &out));
        return out;
    }

    pub fn traceCount(self: Outcome) Error!usize {
        return call.asked(usize, c.adead_outcome_trace_count, .{self.handle});
    }

    pub fn traceAt(self: Outcome, index: usize) Error!Trace {
        var out: Trace = .{ .raw = hardware.sized(c.adead_trace) };
        try check(c.adead_outcome_trace_at(self.handle, index, &out.raw));
        return out;
    }
};
