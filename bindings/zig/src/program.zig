//! Programs: decode, check, run and encode them.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const hardware = @import("hardware.zig");
const Context = @import("context.zig").Context;
const Error = enums.Error;
const Tensor = @import("tensor.zig").Tensor;
const call = @import("call.zig");
const check = enums.check;

/// A named input or output of a program; `raw` has the numbers. Its texts belong to the program.
pub const Slot = struct {
    raw: c.adead_slot,

    /// Returns the tensor's name; for AGPU programs the host address as text, such as "0x1000".
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
    /// Returns whether the caller must bind a tensor to it.
    pub fn required(self: *const Slot) bool {
        return self.raw.required != 0;
    }
};

/// A decoded program. It never changes, so threads may share one.
pub const Program = struct {
    handle: ?*c.adead_program = null,

    /// Decodes an .adead file, an AGPU binary, an AHYB file, .hex text or program text. The bytes determine the format.
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

    /// Returns the format that it was decoded from.
    pub fn format(self: Program) Error!enums.Format {
        return call.word(enums.Format, c.adead_program_format, .{self.handle});
    }

    /// Returns the number of instructions.
    pub fn length(self: Program) Error!usize {
        return call.asked(usize, c.adead_program_length, .{self.handle});
    }

    /// Encodes the program as a file of a format. The bytes belong to the program. Unsupported if the format can't
    /// express it.
    pub fn encode(self: Program, as: enums.Format) Error![]const u8 {
        var data: ?*const anyopaque = null;
        var bytes: usize = 0;
        try check(c.adead_program_encode(self.handle, @intFromEnum(as), &data, &bytes));
        const first: [*]const u8 = @ptrCast(data orelse return &.{});
        return first[0..bytes];
    }

    /// Returns text from which assemble() makes this program again. It belongs to the program.
    pub fn disassemble(self: Program) Error![:0]const u8 {
        return call.text(c.adead_program_disassemble, .{self.handle});
    }

    /// Returns the number of notes on the program, such as skipped parts and opcodes that do nothing.
    pub fn noteCount(self: Program) Error!usize {
        return call.asked(usize, c.adead_program_note_count, .{self.handle});
    }

    /// Returns note `index`. It belongs to the program.
    pub fn noteAt(self: Program, index: usize) Error![:0]const u8 {
        return call.text(c.adead_program_note_at, .{ self.handle, index });
    }

    /// Returns the number of named inputs and outputs.
    pub fn slotCount(self: Program) Error!usize {
        return call.asked(usize, c.adead_program_slot_count, .{self.handle});
    }

    pub fn slotAt(self: Program, index: usize) Error!Slot {
        var out: Slot = .{ .raw = hardware.sized(c.adead_slot) };
        try check(c.adead_program_slot_at(self.handle, index, &out.raw));
        return out;
    }

    /// Checks the program as far as is possible without data. Returns the most bytes that a run takes at the same time.
    /// `memory_limit` 0 is the default limit.
    pub fn validate(self: Program, memory_limit: usize) Error!usize {
        return call.asked(usize, c.adead_program_validate, .{ self.handle, memory_limit });
    }
};

/// Binds a tensor to the program's slot of a name.
pub const Binding = struct { name: [:0]const u8, tensor: Tensor };

/// Options of a run. A field that is not set has the core's default.
pub const RunOptions = struct {
    /// The most bytes that registers, temporaries and outputs may take at the same time.
    memory_limit: ?usize = null,
    /// Whether independent instructions may run at the same time. The results are the same.
    parallel: ?bool = null,
};

/// Implements Context.runProgram. `scratch` holds the names during the call.
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

/// Statistics of one instruction in a run; `raw` has the numbers.
pub const Trace = struct {
    raw: c.adead_trace,

    pub fn name(self: *const Trace) [:0]const u8 {
        return hardware.text(&self.raw.name);
    }
    /// Returns the device that it ran on.
    pub fn device(self: *const Trace) [:0]const u8 {
        return hardware.text(&self.raw.device);
    }
};

/// The outcome of a program's run.
pub const Outcome = struct {
    handle: ?*c.adead_outcome = null,

    /// Destroys the outcome. Tensors taken from it stay valid.
    pub fn deinit(self: Outcome) void {
        c.adead_outcome_destroy(self.handle);
    }

    /// Returns the output of a name, as a tensor that the caller must destroy.
    pub fn output(self: Outcome, name: [:0]const u8) Error!Tensor {
        return call.made(Tensor, c.adead_outcome_output, .{ self.handle, name.ptr });
    }

    pub fn outputCount(self: Outcome) Error!usize {
        return call.asked(usize, c.adead_outcome_output_count, .{self.handle});
    }

    /// Returns the name of output `index`, in the order of the program's slots. It belongs to the outcome.
    pub fn outputName(self: Outcome, index: usize) Error![:0]const u8 {
        return call.text(c.adead_outcome_output_name, .{ self.handle, index });
    }

    /// Returns the statistics of the run: instructions, memory, flops, seconds.
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
