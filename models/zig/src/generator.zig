//! Generators: language models that generate text.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const text = @import("text.zig");
const Allocator = std.mem.Allocator;
const GenerateOptions = text.GenerateOptions;
const Generation = text.Generation;
const Message = text.Message;
const TextStream = text.TextStream;
const Texts = @import("texts.zig").Texts;
const owned = @import("texts.zig").owned;
const call = shared.call;
const check = shared.enums.check;
const Error = shared.enums.Error;

/// Receives the progress of prompts: `.of(&bar)`, where `bar` has the method `progress(self, computed: usize, all: usize)
/// void`. The method is called after each chunk, with the number of the prompt's tokens computed so far, and the total, in the
/// thread whose call computes. `bar` must live as long as the generator and its streams.
pub const Progress = struct {
    user: ?*anyopaque,
    function: *const fn (?*anyopaque, usize, usize) callconv(.c) void,

    pub fn of(bar: anytype) Progress {
        const Bar = @TypeOf(bar);
        const callback = struct {
            fn told(user: ?*anyopaque, computed: usize, all: usize) callconv(.c) void {
                const self: Bar = @ptrCast(@alignCast(user));
                self.progress(computed, all);
            }
        };
        return .{ .user = bar, .function = callback.told };
    }
};

/// A language model in a GGUF file, on a device. Threads may share one.
pub const TextGenerator = struct {
    handle: ?*c.adead_text_generator = null,

    /// Options for opening a model. None of them changes a bit of a text.
    pub const Options = struct {
        /// The device: "cpu", "cuda:0", "vulkan", as for adead_context_open in adead.h. By default that of `ADEAD_DEVICE`, or
        /// else of adead.toml, or else the CPU.
        device: ?[:0]const u8 = null,
        /// The number of CPU threads.
        threads: ?usize = null,
        /// The most tokens of a sequence, prompt and answer together. The file's context length is the default and the maximum.
        context_length: ?usize = null,
        /// The most tokens that are computed at once. By default 512 on the CPU and 2,048 on a GPU.
        chunk: ?usize = null,
        /// Whether the file is mapped instead of read. It must not change while the generator lives.
        map: bool = false,
        progress: ?Progress = null,
    };

    /// Opens a file. Errors: Io if it can't be read; InvalidArgument, DtypeMismatch or ShapeMismatch if it is malformed;
    /// Unsupported for another kind of model.
    pub fn open(path: [:0]const u8, options: Options) Error!TextGenerator {
        const raw: c.adead_text_options = .{
            .struct_size = @sizeOf(c.adead_text_options),
            .device = if (options.device) |device_| device_.ptr else null,
            .threads = options.threads orelse 0,
            .context_length = options.context_length orelse 0,
            .chunk = options.chunk orelse 0,
            .map = @intFromBool(options.map),
            .progress = if (options.progress) |it| it.function else null,
            .user = if (options.progress) |it| it.user else null,
        };
        return call.made(TextGenerator, c.adead_text_generator_open, .{ path.ptr, &raw });
    }

    /// Releases the generator. Its streams and generations stay valid.
    pub fn deinit(self: TextGenerator) void {
        c.adead_text_generator_destroy(self.handle);
    }

    /// Returns the most tokens of a sequence, prompt and answer together.
    pub fn contextLength(self: TextGenerator) Error!usize {
        return call.asked(usize, c.adead_text_generator_context_length, .{self.handle});
    }

    /// Returns the number of tokens in the vocabulary.
    pub fn vocabulary(self: TextGenerator) Error!usize {
        return call.asked(usize, c.adead_text_generator_vocabulary, .{self.handle});
    }

    /// Returns the number of values in an embedding.
    pub fn width(self: TextGenerator) Error!usize {
        return call.asked(usize, c.adead_text_generator_width, .{self.handle});
    }

    /// Returns whether the file has a chat template, which chat() needs.
    pub fn hasChatTemplate(self: TextGenerator) Error!bool {
        return try call.asked(i32, c.adead_text_generator_has_chat_template, .{self.handle}) != 0;
    }

    /// Returns the device that it computes on: "cpu" or "cuda:0".
    pub fn device(self: TextGenerator) Error![:0]const u8 {
        return call.text(c.adead_text_generator_device, .{self.handle});
    }

    // Methods with an allocator take texts without a zero at the end, and copy them for the duration of the call.

    /// Starts to generate the text that follows a prompt. InvalidArgument if the prompt has no tokens or more than the context
    /// length, or an option is outside its range.
    pub fn stream(self: TextGenerator, allocator: Allocator, prompt: []const u8, options: GenerateOptions) Error!TextStream {
        var texts: Texts = .init(allocator);
        defer texts.deinit();
        const raw = try options.raw(&texts);
        return call.made(TextStream, c.adead_text_stream_create, .{ self.handle, try texts.one(prompt, "the prompt", .{}), &raw });
    }

    /// Starts to generate an answer to messages. The model's chat template makes the prompt. Unsupported if the file has no
    /// chat template, InvalidArgument if the template refuses the messages.
    pub fn chatStream(self: TextGenerator, allocator: Allocator, messages: []const Message, options: GenerateOptions) Error!TextStream {
        var texts: Texts = .init(allocator);
        defer texts.deinit();
        const raw = try options.raw(&texts);
        const all = try Message.raw(messages, &texts);
        return call.made(TextStream, c.adead_text_stream_create_chat, .{ self.handle, all.ptr, all.len, &raw });
    }

    /// Generates the text that follows a prompt. Errors are those of stream().
    pub fn generate(self: TextGenerator, allocator: Allocator, prompt: []const u8, options: GenerateOptions) Error!Generation {
        const begun = try self.stream(allocator, prompt, options);
        defer begun.deinit();
        return begun.whole();
    }

    /// Generates an answer to messages. Errors are those of chatStream().
    pub fn chat(self: TextGenerator, allocator: Allocator, messages: []const Message, options: GenerateOptions) Error!Generation {
        const begun = try self.chatStream(allocator, messages, options);
        defer begun.deinit();
        return begun.whole();
    }

    /// Generates texts for several prompts at once, which is faster than one by one. Each text has the same bits as alone.
    /// Prompt i uses the sequence number of the options plus i. Errors are those of stream(), for any of the prompts. Call
    /// deinit() of each generation, and free the slice.
    pub fn generateBatch(self: TextGenerator, allocator: Allocator, prompts: []const []const u8, options: GenerateOptions) Error![]Generation {
        var texts: Texts = .init(allocator);
        defer texts.deinit();
        const raw = try options.raw(&texts);
        const given = try texts.all(prompts, "prompt {d}");
        const handles = try texts.array(?*c.adead_generation, prompts.len);
        const all = try owned(allocator, Generation, prompts.len);
        errdefer allocator.free(all);
        try check(c.adead_text_generate_batch(self.handle, given.ptr, given.len, &raw, handles.ptr));
        var count: usize = 0;
        // Generations that were read, and those that were not.
        errdefer {
            for (all[0..count]) |generation| generation.deinit();
            for (handles[@min(count + 1, handles.len)..]) |handle| c.adead_generation_destroy(handle);
        }
        while (count < all.len) : (count += 1) all[count] = try .of(handles[count]);
        return all;
    }

    /// Returns a text's tokens. The text of a special token, such as `<|im_start|>`, becomes that token. The file decides
    /// whether a first token (bos) and a last one (eos) are added.
    pub fn tokenize(self: TextGenerator, allocator: Allocator, given: []const u8) Error![]u32 {
        var texts: Texts = .init(allocator);
        defer texts.deinit();
        const copy = try texts.one(given, "the text", .{});
        var count: usize = 0;
        try check(c.adead_text_tokenize(self.handle, copy, null, 0, &count));
        const tokens = try owned(allocator, u32, count);
        errdefer allocator.free(tokens);
        if (count > 0) try check(c.adead_text_tokenize(self.handle, copy, tokens.ptr, tokens.len, &count));
        return tokens;
    }

    /// Returns the text of tokens. Special tokens have no text. Bytes that are not UTF-8 become U+FFFD.
    pub fn detokenize(self: TextGenerator, allocator: Allocator, tokens: []const u32) Error![:0]u8 {
        var length: usize = 0;
        try check(c.adead_text_detokenize(self.handle, tokens.ptr, tokens.len, null, 0, &length));
        const found = allocator.allocSentinel(u8, length, 0) catch return shared.failure.outOfMemory();
        errdefer allocator.free(found);
        try check(c.adead_text_detokenize(self.handle, tokens.ptr, tokens.len, found.ptr, found.len + 1, &length));
        return found;
    }

    /// Returns the perplexity of a text: e to the mean of its negative logprobs(). A text beyond the context length is cut into
    /// parts of that length. InvalidArgument for fewer than two tokens.
    pub fn perplexity(self: TextGenerator, allocator: Allocator, given: []const u8) Error!f64 {
        var texts: Texts = .init(allocator);
        defer texts.deinit();
        return call.asked(f64, c.adead_text_perplexity, .{ self.handle, try texts.one(given, "the text", .{}) });
    }

    /// Returns the log-probability of each token except the first, given the tokens before it. InvalidArgument if there are no
    /// tokens or more than the context length, or one is outside the vocabulary.
    pub fn logprobs(self: TextGenerator, allocator: Allocator, tokens: []const u32) Error![]f32 {
        const values = try owned(allocator, f32, tokens.len -| 1);
        errdefer allocator.free(values);
        try check(c.adead_text_logprobs(self.handle, tokens.ptr, tokens.len, values.ptr, values.len));
        return values;
    }

    /// Returns the mean of the last hidden states of a text's tokens. To compare meanings, use a SentenceEncoder.
    pub fn embed(self: TextGenerator, allocator: Allocator, given: []const u8) Error![]f32 {
        var texts: Texts = .init(allocator);
        defer texts.deinit();
        const copy = try texts.one(given, "the text", .{});
        const values = try owned(allocator, f32, try self.width());
        errdefer allocator.free(values);
        try check(c.adead_text_embed(self.handle, copy, values.ptr, values.len));
        return values;
    }
};
