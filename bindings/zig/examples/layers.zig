const std = @import("std");
const adead = @import("adead");
const nn = adead.nn;

pub fn main() !void {
    const allocator = std.heap.c_allocator;
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    // The small model from adead's own tests.
    const weights = try nn.Weights.open(allocator, "tests/sentences/tiny/model.safetensors");
    defer weights.deinit();
    const words = try nn.Embedding.load(ctx, weights, "embeddings.word_embeddings", 92, 32);
    defer words.deinit();
    const norm = try nn.LayerNorm.load(ctx, weights, "embeddings.LayerNorm", 32, .{ .eps = 1e-12 });
    defer norm.deinit();
    const config: nn.TransformerConfig = .{ .width = 32, .heads = 4, .hidden = 48, .activation = .gelu_erf, .eps = 1e-12 };
    const encoder = try nn.TransformerEncoder.load(allocator, ctx, weights, "encoder.layer", 2, config);
    defer encoder.deinit();

    // Two sequences; the second one is padded.
    const ids = try adead.Tensor.init(u32, &.{ 2, 4 }, &.{ 2, 73, 74, 3, 2, 74, 3, 0 });
    defer ids.deinit();
    const rows = try words.forward(ids);
    defer rows.deinit();
    const x = try norm.forward(rows);
    defer x.deinit();
    const y = try encoder.forwardWith(x, &.{ 4, 3 });
    defer y.deinit();

    // A sequence alone has the same bits.
    const second = try adead.Tensor.init(f32, &.{ 3, 32 }, (try x.data(f32))[4 * 32 .. 7 * 32]);
    defer second.deinit();
    const alone = try encoder.forward(second);
    defer alone.deinit();
    if (!std.mem.eql(f32, (try y.data(f32))[4 * 32 .. 7 * 32], try alone.data(f32))) return error.OtherBits;
}
