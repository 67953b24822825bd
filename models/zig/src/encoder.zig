//! Sentence encoders: models of sentence-transformers, such as all-MiniLM-L6-v2.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const Allocator = std.mem.Allocator;
const Texts = @import("texts.zig").Texts;
const owned = @import("texts.zig").owned;
const call = shared.call;
const callback = shared.callback;
const check = shared.enums.check;
const enums = shared.enums;
const Error = enums.Error;

/// Options for batching sentences. They never change a bit of a result. A field that is not set suits the device.
pub const EncodeOptions = struct {
    /// The most sentences of a batch.
    batch: ?usize = null,
    /// Whether sentences of a batch are padded to the longest one.
    padded: ?bool = null,

    fn raw(self: EncodeOptions) c.adead_encode_options {
        return .{
            .struct_size = @sizeOf(c.adead_encode_options),
            // ADEAD_BATCH_AUTO
            .batch = self.batch orelse std.math.maxInt(usize),
            .padded = if (self.padded) |it| @intFromBool(it) else -1,
        };
    }
};

/// A row of f32 for each sentence, in the order of the sentences.
pub const Embeddings = struct {
    /// All rows, one after another.
    values: []f32,
    /// The number of values of a row.
    width: usize,
    /// For each sentence, whether it has more tokens than the model takes. Only its first tokens were used.
    truncated: []bool,

    pub fn deinit(self: Embeddings, allocator: Allocator) void {
        allocator.free(self.values);
        allocator.free(self.truncated);
    }

    /// Returns the row of a sentence.
    pub fn row(self: Embeddings, sentence: usize) []const f32 {
        return self.values[sentence * self.width ..][0..self.width];
    }
};

/// Rows of a stream, valid during the call that receives them.
pub const Rows = struct {
    /// The index of the first row's sentence.
    first: u64,
    /// All rows, one after another.
    values: []const f32,
    /// The number of values of a row.
    width: usize,
    /// For each row whether its sentence was cut.
    truncated: []const bool,
};

/// A model on a device: tokenizer, network, pooling. Threads may share one.
pub const SentenceEncoder = struct {
    handle: ?*c.adead_sentence_encoder = null,

    /// How the device is opened. An option that is not set comes from the environment or adead.toml, or else has the default
    /// value.
    pub const Options = struct {
        /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon", "portable".
        isa: ?[:0]const u8 = null,
        /// The number of CPU threads.
        threads: ?usize = null,
        /// The default precision of products.
        precision: enums.Precision = .f32,

        pub fn raw(self: Options) c.adead_context_options {
            var all = enums.context_options;
            if (self.isa) |isa| all.isa = isa.ptr;
            if (self.threads) |threads| all.threads = threads;
            all.precision = @intFromEnum(self.precision);
            return all;
        }
    };

    /// Opens a model's folder on a device: "auto", "cpu", "cuda:0"; null takes the device of `ADEAD_DEVICE`, or else of
    /// adead.toml, or else "auto". Errors: Io for a missing file, InvalidArgument or ShapeMismatch for a malformed one,
    /// Unsupported for another kind of model.
    pub fn open(folder: [:0]const u8, device_: ?[:0]const u8, options: Options) Error!SentenceEncoder {
        const raw = options.raw();
        const name = if (device_) |it| it.ptr else null;
        return call.made(SentenceEncoder, c.adead_sentence_encoder_open, .{ folder.ptr, name, &raw });
    }

    pub fn deinit(self: SentenceEncoder) void {
        c.adead_sentence_encoder_destroy(self.handle);
    }

    /// Returns the number of values in an embedding.
    pub fn width(self: SentenceEncoder) Error!usize {
        return call.asked(usize, c.adead_sentence_encoder_width, .{self.handle});
    }

    /// Returns the most tokens of a sentence, with the special ones at its ends. Later tokens have no effect.
    pub fn maxTokens(self: SentenceEncoder) Error!usize {
        return call.asked(usize, c.adead_sentence_encoder_max_tokens, .{self.handle});
    }

    /// Returns the device that it computes on: "cpu", "cuda:0", or several separated by commas.
    pub fn device(self: SentenceEncoder) Error![:0]const u8 {
        return call.text(c.adead_sentence_encoder_device, .{self.handle});
    }

    /// Embeds sentences. InvalidArgument for batches of 0 sentences, and for a sentence that is not UTF-8; the message has its
    /// index.
    pub fn encode(self: SentenceEncoder, allocator: Allocator, sentences: []const []const u8, options: EncodeOptions) Error!Embeddings {
        var texts: Texts = .init(allocator);
        defer texts.deinit();
        const pointers = try texts.array([*c]const u8, sentences.len);
        const lengths = try texts.array(usize, sentences.len);
        for (sentences, pointers, lengths) |sentence, *pointer, *length| {
            pointer.* = sentence.ptr;
            length.* = sentence.len;
        }
        const size = try self.width();
        const values = try owned(allocator, f32, sentences.len * size);
        errdefer allocator.free(values);
        const truncated = try owned(allocator, bool, sentences.len);
        errdefer allocator.free(truncated);
        const raw = options.raw();
        try check(c.adead_sentence_encoder_encode(
            self.handle,
            pointers.ptr,
            lengths.ptr,
            sentences.len,
            &raw,
            values.ptr,
            values.len,
            // Each byte is 0 or 1.
            @ptrCast(truncated.ptr),
        ));
        return .{ .values = values, .width = size, .truncated = truncated };
    }

    /// Embeds any number of sentences as they arrive. Returns the number of rows that `take` got.
    ///
    /// `source` is a pointer to a struct. `next(self) !?[]const u8` returns the next sentence, valid until the next call, or
    /// null at the end. The library calls it in a separate thread, a few thousand sentences ahead. `take(self, rows: Rows)
    /// !bool` receives the next rows, and returns false to end the stream. `progress(self, computed: u64) !void` is optional,
    /// and receives the number of sentences computed so far. The caller's thread calls `take` and `progress`. An error of a
    /// method ends the stream and is returned.
    pub fn batchEmbed(self: SentenceEncoder, source: anytype, options: EncodeOptions) Streamed(@TypeOf(source)).Errors!u64 {
        var state: Streamed(@TypeOf(source)) = .{ .source = source, .width = try self.width() };
        const raw = options.raw();
        const stream = state.raw();
        var count: u64 = 0;
        const status = c.adead_sentence_encoder_batch_embed(self.handle, &stream, &raw, &count);
        if (state.taking.err != null) return state.taking.say();
        if (state.giving.err != null) return state.giving.say();
        try check(status);
        return count;
    }
};

/// The state of a stream during the call: the caller's struct, and the errors of its methods.
fn Streamed(comptime Source: type) type {
    const Struct = @typeInfo(Source).pointer.child;
    const Next = @TypeOf(@as(Source, undefined).next());
    const Take = @TypeOf(@as(Source, undefined).take(undefined));
    const tells = @hasDecl(Struct, "progress");
    const Told = if (tells) @TypeOf(@as(Source, undefined).progress(undefined)) else void;
    return struct {
        source: Source,
        width: usize,
        // One for each thread.
        giving: callback.Kept(Errors) = .{},
        taking: callback.Kept(Errors) = .{},

        const Self = @This();
        pub const Errors = Error || callback.ErrorsOf(Next) || callback.ErrorsOf(Take) || callback.ErrorsOf(Told);

        fn raw(self: *Self) c.adead_sentence_stream {
            return .{
                .struct_size = @sizeOf(c.adead_sentence_stream),
                .user = self,
                .next = next,
                .take = take,
                .progress = if (tells) progress else null,
            };
        }

        fn of(user: ?*anyopaque) *Self {
            return @ptrCast(@alignCast(user));
        }

        fn next(user: ?*anyopaque, text: [*c][*c]const u8, length: [*c]usize) callconv(.c) i32 {
            const self = of(user);
            const given = if (Next == callback.ErrorFree(Next)) self.source.next() else self.source.next() catch |err| return self.giving.keep(err);
            const sentence = given orelse return 0;
            text.* = sentence.ptr;
            length.* = sentence.len;
            return 1;
        }

        fn take(user: ?*anyopaque, first: u64, rows: [*c]const f32, truncated: [*c]const u8, count: usize) callconv(.c) i32 {
            const self = of(user);
            const some: Rows = .{
                .first = first,
                .values = rows[0 .. count * self.width],
                .width = self.width,
                .truncated = @ptrCast(truncated[0..count]),
            };
            const more = if (Take == bool) self.source.take(some) else self.source.take(some) catch |err| return self.taking.keep(err);
            return @intFromBool(!more);
        }

        fn progress(user: ?*anyopaque, computed: u64) callconv(.c) i32 {
            const self = of(user);
            if (Told == void) self.source.progress(computed) else self.source.progress(computed) catch |err| return self.taking.keep(err);
            return 0;
        }
    };
}
