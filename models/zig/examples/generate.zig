const std = @import("std");
const models = @import("adead_models");

pub fn main() !void {
    const allocator = std.heap.c_allocator;
    // This model is from adead's tests. A real one is a file such as SmolLM2-135M-Instruct.Q4_1.gguf.
    const model = try models.TextGenerator.open("tests/text/llama.gguf", .{});
    defer model.deinit();
    // Sampled. A seed gives the same text on every device.
    const stream = try model.stream(allocator, "the ferry", .{ .max_tokens = 20, .temperature = 0.8, .seed = 7 });
    defer stream.deinit();
    while (try stream.next()) |piece| std.debug.print("{s}", .{piece});
    const answer = try stream.generation();
    defer answer.deinit();
    std.debug.print("\n{d} tokens, {s}\n", .{ answer.tokens.len, @tagName(answer.finish) });

    const messages = [_]models.Message{.{ .role = "user", .content = "the ferry came in" }};
    const reply = try model.chat(allocator, &messages, .{ .max_tokens = 20 });
    defer reply.deinit();
    std.debug.print("{s}\n", .{reply.text});
}
