//! TextGenerator on the small models of tests/text.

const std = @import("std");
const models = @import("adead_models");
const options = @import("options");
const fails = @import("check.zig").fails;
const TextGenerator = models.TextGenerator;
const gpa = std.testing.allocator;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;
const expectEqualStrings = std.testing.expectEqualStrings;

const llama: [:0]const u8 = options.llama ++ "";
/// What every language must generate.
const answer = @embedFile("answer");
const prompt = "the ferry";
const ferry = "the ferry came in";
const warm: models.GenerateOptions = .{
    .max_tokens = 60,
    .ignore_end = true,
    .temperature = 1.5,
    .top_k = 60,
    .top_p = 0.98,
    .min_p = 0.001,
    .repeat_penalty = 1.1,
    .repeat_last = 16,
    .seed = 42,
};

fn answerTokens() ![60]u32 {
    var tokens: [60]u32 = undefined;
    var words = std.mem.tokenizeAny(u8, @embedFile("answer_tokens"), " \n");
    for (&tokens) |*token| token.* = try std.fmt.parseInt(u32, words.next().?, 10);
    try expect(words.next() == null);
    return tokens;
}

fn open(given: TextGenerator.Options) !TextGenerator {
    var chosen = given;
    if (chosen.device == null) chosen.device = "cpu";
    return TextGenerator.open(llama, chosen);
}

fn expectAnswer(found: models.Generation) !void {
    defer found.deinit();
    try expectEqualStrings(answer, found.text);
    try expectEqualSlices(u32, &try answerTokens(), found.tokens);
    try expectEqual(models.Finish.max_tokens, found.finish);
}

test "generators" {
    const model = try open(.{});
    defer model.deinit();
    try expectEqual(256, try model.contextLength());
    try expectEqual(281, try model.vocabulary());
    try expectEqual(64, try model.width());
    try expect(try model.hasChatTemplate());
    try expectEqualStrings("cpu", try model.device());
    try expect(models.version().len > 0);
    try fails(error.Io, "nowhere", TextGenerator.open("/nowhere", .{}));
    try fails(error.InvalidArgument, "make_tiny.py", TextGenerator.open(options.no_model ++ "", .{}));
    try fails(error.InvalidArgument, "a context length of 300", open(.{ .context_length = 300 }));
    try fails(error.InvalidArgument, "tpu", open(.{ .device = "tpu" }));
    const none: TextGenerator = .{};
    try fails(error.InvalidArgument, "generator is NULL", none.generate(gpa, "a", .{}));
    try fails(error.InvalidArgument, "generator is NULL", none.tokenize(gpa, "a"));
    none.deinit();
}

test "every language has this answer, and no choice changes a bit" {
    for ([_]TextGenerator.Options{ .{ .threads = 1 }, .{ .threads = 3, .chunk = 7 }, .{ .threads = 2, .chunk = 1 }, .{ .map = true } }) |choice| {
        const model = try open(choice);
        defer model.deinit();
        try expectAnswer(try model.generate(gpa, prompt, warm));
    }
}

test "a stream gives the text in pieces" {
    const model = try open(.{ .threads = 2 });
    const stream = try model.stream(gpa, prompt, warm);
    defer stream.deinit();
    {
        const before = try stream.generation();
        defer before.deinit();
        try expectEqual(models.Finish.none, before.finish);
        try expectEqual(0, before.tokens.len);
    }
    // A stream outlives its generator.
    model.deinit();
    var length: usize = 0;
    while (try stream.next()) |piece| {
        try expect(piece.len > 0);
        try expectEqualStrings(answer[length..][0..piece.len], piece);
        length += piece.len;
        const sofar = try stream.generation();
        defer sofar.deinit();
        try expectEqualStrings(answer[0..length], sofar.text);
    }
    try expectEqual(answer.len, length);
    try expect(try stream.next() == null);
    try expectAnswer(try stream.generation());
}

test "a stream may end before its text" {
    const model = try open(.{ .threads = 1 });
    defer model.deinit();
    const stream = try model.stream(gpa, prompt, warm);
    try expect((try stream.next()) != null);
    stream.deinit();
    const none: models.TextStream = .{};
    try fails(error.InvalidArgument, "stream is NULL", none.next());
}

test "options" {
    const model = try open(.{ .threads = 1 });
    defer model.deinit();
    // Three characters of ASCII.
    var at: usize = 12;
    while (answer[at] | answer[at + 1] | answer[at + 2] >= 128) at += 1;
    const stop = answer[at..][0..3];
    var choice = warm;
    choice.stop = &.{ "no such text", stop };
    const stopped = try model.generate(gpa, prompt, choice);
    defer stopped.deinit();
    try expectEqual(models.Finish.stop, stopped.finish);
    try expectEqualStrings(answer[0..std.mem.indexOf(u8, answer, stop).?], stopped.text);
    choice = warm;
    choice.json_schema = "{\"const\": {\"a\": [1, null]}}";
    const only = try model.generate(gpa, prompt, choice);
    defer only.deinit();
    try expectEqual(models.Finish.end, only.finish);
    try expectEqualStrings("{\"a\": [1, null]}", only.text);
    const none = try model.generate(gpa, prompt, .{ .max_tokens = 0 });
    defer none.deinit();
    try expectEqual(0, none.tokens.len);
    try expectEqualStrings("", none.text);

    const short = try open(.{ .context_length = 20 });
    defer short.deinit();
    const full = try short.generate(gpa, ferry, .{ .ignore_end = true });
    defer full.deinit();
    try expectEqual(models.Finish.context_full, full.finish);

    try fails(error.InvalidArgument, "the prompt has no tokens", model.generate(gpa, "", .{}));
    try fails(error.InvalidArgument, "the prompt has a zero at byte 1", model.generate(gpa, "a\x00b", .{}));
    try fails(error.InvalidArgument, "stop text 1 has a zero", model.stream(gpa, "a", .{ .stop = &.{ "b", "\x00" } }));
    try fails(error.InvalidArgument, "prompt is not UTF-8", model.generate(gpa, "\xff", .{}));
    try fails(error.InvalidArgument, "temperature is -1", model.stream(gpa, "a", .{ .temperature = -1 }));
    try fails(error.InvalidArgument, "top_p is 2", model.generate(gpa, "a", .{ .top_p = 2 }));
    try fails(error.OutOfMemory, "out of memory", model.generate(std.testing.failing_allocator, "a", .{}));
}

test "defaults are the library's" {
    const model = try open(.{ .threads = 1 });
    defer model.deinit();
    const found = try model.generate(gpa, prompt, .{});
    defer found.deinit();
    var handle: ?*models.c.adead_generation = null;
    try expectEqual(models.c.ADEAD_OK, models.c.adead_text_generate(model.handle, prompt, null, null, null, &handle));
    defer models.c.adead_generation_destroy(handle);
    var text: [*c]const u8 = null;
    try expectEqual(models.c.ADEAD_OK, models.c.adead_generation_text(handle, &text, null));
    try expectEqualStrings(std.mem.span(@as([*:0]const u8, text)), found.text);
}

test "a batch gives the texts that each prompt gives alone" {
    const model = try open(.{ .threads = 2 });
    defer model.deinit();
    const prompts = [_][]const u8{ prompt, "came in", "a rather longer prompt than the others" };
    const together = try model.generateBatch(gpa, &prompts, warm);
    defer {
        for (together) |one| one.deinit();
        gpa.free(together);
    }
    try expectEqualStrings(answer, together[0].text);
    for (prompts, together, 0..) |one, found, number| {
        var choice = warm;
        choice.sequence = number;
        const alone = try model.generate(gpa, one, choice);
        defer alone.deinit();
        try expectEqualStrings(alone.text, found.text);
        try expectEqualSlices(u32, alone.tokens, found.tokens);
        try expectEqual(alone.finish, found.finish);
        try expectEqual(alone.prompt_tokens, found.prompt_tokens);
    }
    try expectEqual(0, (try model.generateBatch(gpa, &.{}, .{})).len);
    try fails(error.InvalidArgument, "no tokens", model.generateBatch(gpa, &.{ "a", "" }, .{}));
}

test "chats" {
    const model = try open(.{ .threads = 2 });
    defer model.deinit();
    const messages = [_]models.Message{ .{ .role = "system", .content = "be brief" }, .{ .role = "user", .content = ferry } };
    const written = "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n" ++ ferry ++ "<|im_end|>\n<|im_start|>assistant\n";
    const found = try model.chat(gpa, &messages, warm);
    defer found.deinit();
    const same = try model.generate(gpa, written, warm);
    defer same.deinit();
    try expectEqualSlices(u32, same.tokens, found.tokens);
    const stream = try model.chatStream(gpa, &messages, warm);
    defer stream.deinit();
    const whole = try stream.whole();
    defer whole.deinit();
    try expectEqualStrings(found.text, whole.text);
    const other = try TextGenerator.open(options.qwen3 ++ "", .{ .device = "cpu" });
    defer other.deinit();
    try fails(error.Unsupported, "no chat template", other.chat(gpa, &messages, .{}));
    try fails(error.InvalidArgument, "the content of message 0 has a zero", model.chat(gpa, &.{.{ .role = "user", .content = "\x00" }}, .{}));
}

test "tokens and scores" {
    const model = try open(.{ .threads = 2 });
    defer model.deinit();
    const tokens = try model.tokenize(gpa, ferry);
    defer gpa.free(tokens);
    const text = try model.detokenize(gpa, tokens);
    defer gpa.free(text);
    try expectEqualStrings(ferry, text);
    const nothing = try model.detokenize(gpa, &.{});
    defer gpa.free(nothing);
    try expectEqual(0, nothing.len);
    try expectEqual(0, (try model.tokenize(gpa, "")).len);

    const logprobs = try model.logprobs(gpa, tokens);
    defer gpa.free(logprobs);
    try expectEqual(tokens.len - 1, logprobs.len);
    var sum: f64 = 0;
    for (logprobs) |one| sum += one;
    const expected = @exp(-sum / @as(f64, @floatFromInt(logprobs.len)));
    try std.testing.expectApproxEqRel(expected, try model.perplexity(gpa, ferry), 1e-9);
    const embedding = try model.embed(gpa, ferry);
    defer gpa.free(embedding);
    try expectEqual(64, embedding.len);
    try expect(embedding[0] != 0);
    try fails(error.InvalidArgument, "needs at least 2", model.perplexity(gpa, ""));
    try fails(error.InvalidArgument, "token 999", model.logprobs(gpa, &.{ 1, 999 }));
    try fails(error.InvalidArgument, "0 tokens", model.logprobs(gpa, &.{}));
}

const Bar = struct {
    seen: [8][2]usize = undefined,
    count: usize = 0,

    pub fn progress(self: *Bar, computed: usize, all: usize) void {
        self.seen[self.count] = .{ computed, all };
        self.count += 1;
    }
};

test "progress" {
    var bar: Bar = .{};
    const model = try open(.{ .threads = 1, .chunk = 10, .progress = .of(&bar) });
    defer model.deinit();
    const found = try model.generate(gpa, &@as([30]u8, @splat('x')), .{ .max_tokens = 1 });
    defer found.deinit();
    try expectEqual(30, found.prompt_tokens);
    try expectEqualSlices([2]usize, &.{ .{ 10, 30 }, .{ 20, 30 }, .{ 30, 30 } }, bar.seen[0..bar.count]);
}

test "threads share a generator" {
    const model = try open(.{ .threads = 2 });
    defer model.deinit();
    const work = struct {
        fn run(shared: TextGenerator, wrong: *bool) void {
            const found = shared.generate(std.heap.c_allocator, prompt, warm) catch return;
            expectAnswer(found) catch return;
            wrong.* = false;
        }
    };
    var wrong: [4]bool = @splat(true);
    var threads: [4]std.Thread = undefined;
    for (&threads, &wrong) |*thread, *it| thread.* = try std.Thread.spawn(.{}, work.run, .{ model, it });
    for (threads) |thread| thread.join();
    try expectEqualSlices(bool, &@as([4]bool, @splat(false)), &wrong);
}
