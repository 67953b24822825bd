//! GGUF files: values as quantised blocks, models as files.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const owned = @import("texts.zig").owned;
const BlockFormat = shared.enums.BlockFormat;
const check = shared.enums.check;
const Error = shared.enums.Error;

/// Encodes values as blocks of a format. Rows of a matrix may be encoded together: adead's `quantized_matmul` takes the result
/// as a u8 tensor `[rows, bytes of a row]`. The same values give the same bytes on every machine.
///
/// ShapeMismatch if the values are not whole blocks; InvalidArgument with the position for a value that is NaN or infinite, and
/// for a block whose scale exceeds 65504.
pub fn quantize(allocator: std.mem.Allocator, values: []const f32, format: BlockFormat) Error![]u8 {
    var size: usize = 0;
    try check(c.adead_quantize(null, values.len, @intFromEnum(format), null, 0, &size));
    const blocks = try owned(allocator, u8, size);
    errdefer allocator.free(blocks);
    if (size > 0) try check(c.adead_quantize(values.ptr, values.len, @intFromEnum(format), blocks.ptr, blocks.len, &size));
    return blocks;
}

/// Receives the progress of a conversion: `.of(&it)`, where `it` has at least one of two methods. `progress(self, written: u64,
/// all: u64) bool` receives the number of values written so far, and the total, and returns false to end the conversion.
/// `note(self, text: [:0]const u8) void` receives notes for the user: which tensors are stored in another type, and which
/// settings a GGUF file can't hold.
pub const Reporter = struct {
    user: ?*anyopaque,
    progress: ?*const fn (?*anyopaque, u64, u64) callconv(.c) i32,
    note: ?*const fn (?*anyopaque, [*c]const u8) callconv(.c) void,

    pub fn of(it: anytype) Reporter {
        const It = @TypeOf(it);
        const callbacks = struct {
            fn progress(user: ?*anyopaque, written: u64, all: u64) callconv(.c) i32 {
                const self: It = @ptrCast(@alignCast(user));
                return @intFromBool(!self.progress(written, all));
            }
            fn note(user: ?*anyopaque, text: [*c]const u8) callconv(.c) void {
                const self: It = @ptrCast(@alignCast(user));
                self.note(std.mem.span(@as([*:0]const u8, text)));
            }
        };
        const Struct = @typeInfo(It).pointer.child;
        return .{
            .user = it,
            .progress = if (@hasDecl(Struct, "progress")) callbacks.progress else null,
            .note = if (@hasDecl(Struct, "note")) callbacks.note else null,
        };
    }
};

/// Options for a conversion.
pub const ConvertOptions = struct {
    /// How matrices are stored: "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", or
    /// llama.cpp's mixtures "q4_k_m" and "q5_k_m". If not set, matrices keep the types that the folder has. Required for a GGUF
    /// file.
    kind: ?[:0]const u8 = null,
    reporter: ?Reporter = null,
};

/// Converts a model to a GGUF file. The model is a Hugging Face folder, such as SmolLM2-135M-Instruct, or another GGUF file.
/// The file appears when it is complete, and then replaces a file of that name. The same model gives the same bytes on every
/// machine.
///
/// Errors: Io if a file is missing or can't be read or written; InvalidArgument or ShapeMismatch if it is malformed;
/// Unsupported for another kind of model; NotReady if the reporter ended the conversion.
pub fn convert(model: [:0]const u8, file: [:0]const u8, options: ConvertOptions) Error!void {
    const raw: c.adead_convert_options = .{
        .struct_size = @sizeOf(c.adead_convert_options),
        .kind = if (options.kind) |kind| kind.ptr else null,
        .progress = if (options.reporter) |it| it.progress else null,
        .note = if (options.reporter) |it| it.note else null,
        .user = if (options.reporter) |it| it.user else null,
    };
    try check(c.adead_convert(model.ptr, file.ptr, &raw));
}
