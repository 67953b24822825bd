//! Generated texts: how they are generated, whole ones, and streams.

const std = @import("std");
const c = @import("c");
const shared = @import("shared");
const Texts = @import("texts.zig").Texts;
const call = shared.call;
const check = shared.enums.check;
const Error = shared.enums.Error;

/// How text is generated. Without options the most likely tokens are taken, 512 at most. docs/text-generation.md has the
/// steps of sampling.
pub const GenerateOptions = struct {
    /// The most tokens of an answer.
    max_tokens: usize = 512,
    /// Texts that end an answer, wherever tokens begin and end. The answer does not contain them.
    stop: []const []const u8 = &.{},
    /// Whether an answer goes on after tokens that would end it.
    ignore_end: bool = false,
    /// A JSON schema: the answer is JSON that it allows, and ends when the JSON is complete. `{}` allows any JSON; null any text.
    json_schema: ?[]const u8 = null,
    /// The factor that flattens the distribution. 0 takes the most likely token; 1 draws by the model's own probabilities.
    temperature: f32 = 0,
    /// The most tokens to draw from; 0 is all.
    top_k: usize = 0,
    /// The probability that the tokens to draw from reach together, 0 to 1; 1 is all.
    top_p: f32 = 1,
    /// The least probability of a token to draw from, as a part of the most likely token's, 0 to 1; 0 is all.
    min_p: f32 = 0,
    /// The penalty of recent tokens; 1 is none.
    repeat_penalty: f32 = 1,
    /// How many of the last tokens are recent, the prompt's included.
    repeat_last: usize = 64,
    /// The seed of the random numbers.
    seed: u64 = 0,
    /// The number of the sequence. Sequences of one seed draw different numbers.
    sequence: u64 = 0,

    /// Returns the options of the C interface, valid as long as the texts.
    pub fn raw(self: GenerateOptions, texts: *Texts) Error!c.adead_generate_options {
        const stop = try texts.all(self.stop, "stop text {d}");
        return .{
            .struct_size = @sizeOf(c.adead_generate_options),
            .max_tokens = self.max_tokens,
            .stop = stop.ptr,
            .stop_count = stop.len,
            .ignore_end = @intFromBool(self.ignore_end),
            .temperature = self.temperature,
            .top_k = self.top_k,
            .top_p = self.top_p,
            .min_p = self.min_p,
            .repeat_penalty = self.repeat_penalty,
            .repeat_last = self.repeat_last,
            .seed = self.seed,
            .sequence = self.sequence,
            .json_schema = if (self.json_schema) |schema| try texts.one(schema, "json_schema", .{}) else null,
        };
    }
};

/// A message of a conversation.
pub const Message = struct {
    /// The speaker: "system", "user" or "assistant", or another name that the model's chat template knows.
    role: []const u8,
    content: []const u8,

    /// Returns messages of the C interface, valid as long as the texts.
    pub fn raw(messages: []const Message, texts: *Texts) Error![]const c.adead_message {
        const all = try texts.array(c.adead_message, messages.len);
        for (all, messages, 0..) |*to, message, number| to.* = .{
            .role = try texts.one(message.role, "the role of message {d}", .{number}),
            .content = try texts.one(message.content, "the content of message {d}", .{number}),
        };
        return all;
    }
};

/// Why a text ended.
pub const Finish = enum(c.adead_finish) {
    /// It has not ended: its stream has more.
    none = c.ADEAD_FINISH_NONE,
    /// The model ended it.
    end = c.ADEAD_FINISH_END,
    /// A stop text came.
    stop = c.ADEAD_FINISH_STOP,
    /// It has `max_tokens` tokens.
    max_tokens = c.ADEAD_FINISH_MAX_TOKENS,
    /// The sequence has as many tokens as the context length.
    context_full = c.ADEAD_FINISH_CONTEXT_FULL,
    _,
};

/// A generated text. Its slices live until deinit().
pub const Generation = struct {
    /// The text, without the prompt.
    text: [:0]const u8,
    /// Its tokens. If a token ended the text, it is the last one. Tokens of a stop text are among them.
    tokens: []const u32,
    finish: Finish,
    /// The number of the prompt's tokens.
    prompt_tokens: usize,
    handle: ?*c.adead_generation,

    /// Reads what the C interface gave, and takes it over.
    pub fn of(handle: ?*c.adead_generation) Error!Generation {
        errdefer c.adead_generation_destroy(handle);
        var text: [*c]const u8 = null;
        var length: usize = 0;
        var tokens: [*c]const u32 = null;
        var count: usize = 0;
        try check(c.adead_generation_text(handle, &text, &length));
        try check(c.adead_generation_tokens(handle, &tokens, &count));
        return .{
            .text = text[0..length :0],
            .tokens = tokens[0..count],
            .finish = try call.word(Finish, c.adead_generation_finish, .{handle}),
            .prompt_tokens = try call.asked(usize, c.adead_generation_prompt_tokens, .{handle}),
            .handle = handle,
        };
    }

    pub fn deinit(self: Generation) void {
        c.adead_generation_destroy(self.handle);
    }
};

/// A text that is generated piece by piece. One thread at a time may use it. It outlives its generator, and may end before
/// its text does.
pub const TextStream = struct {
    handle: ?*c.adead_text_stream = null,

    pub fn deinit(self: TextStream) void {
        c.adead_text_stream_destroy(self.handle);
    }

    /// Computes the next piece, which is valid until the next call; null at the end of the text. A piece is not empty, ends
    /// between characters and may have several tokens. The first call computes the prompt.
    pub fn next(self: TextStream) Error!?[:0]const u8 {
        var text: [*c]const u8 = null;
        var length: usize = 0;
        try check(c.adead_text_stream_next(self.handle, &text, &length));
        return if (text == null) null else text[0..length :0];
    }

    /// Returns what is generated so far: all of it behind the last piece. Before the end `finish` is `.none`.
    pub fn generation(self: TextStream) Error!Generation {
        return .of(try call.asked(?*c.adead_generation, c.adead_text_stream_generation, .{self.handle}));
    }

    /// Computes what is left, and returns the whole text.
    pub fn whole(self: TextStream) Error!Generation {
        while (try self.next()) |_| {}
        return self.generation();
    }
};
