//! GGUF files: values as quantised blocks, models as files.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const owned = @import("texts.zig").owned;
const BlockFormat = shared.enums.BlockFormat;
const check = shared.enums.check;
const Error = shared.enums.Error;

/// Writes values as blocks of a format. Rows of a matrix may be written together: the result has the bytes of what adead's
/// `quantized_matmul` takes as a u8 tensor `[rows, bytes of a row]`. The same values give the same bytes everywhere.
///
/// ShapeMismatch if the values are not whole blocks; InvalidArgument with the position for a value that is NaN or infinite,
/// and for a block whose scale is beyond 65504.
pub fn quantize(allocator: std.mem.Allocator, values: []const f32, format: BlockFormat) Error![]u8 {
    var size: usize = 0;
    try check(c.adead_quantize(null, values.len, @intFromEnum(format), null, 0, &size));
    const blocks = try owned(allocator, u8, size);
    errdefer allocator.free(blocks);
    if (size > 0) try check(c.adead_quantize(values.ptr, values.len, @intFromEnum(format), blocks.ptr, blocks.len, &size));
    return blocks;
}

/// What is told of a conversion: `.of(&it)`, where `it` has at least one of two methods. `progress(self, written: u64, all:
/// u64) bool` gets the number of values written so far, and of all of them; it returns false to end the conversion.
/// `note(self, text: [:0]const u8) void` gets what the user should know: tensors that are stored in another way, what a GGUF
/// file can't say.
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

/// How a model is converted.
pub const ConvertOptions = struct {
    /// How matrices are stored: "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", or
    /// llama.cpp's mixtures "q4_k_m" and "q5_k_m". Without
    /// it as a folder has them; a GGUF file needs it.
    kind: ?[:0]const u8 = null,
    reporter: ?Reporter = null,
};

/// Writes a model as a GGUF file: a folder of Hugging Face, such as SmolLM2-135M-Instruct, or another GGUF file. The file
/// appears when it is complete, and then replaces a file of that name. The same model gives the same bytes everywhere.
///
/// Io for a file that is missing or can't be read or written; InvalidArgument and ShapeMismatch for a malformed one;
/// Unsupported for a model of another kind; NotReady if the reporter ended it.
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
