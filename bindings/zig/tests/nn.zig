//! Layers: the small model of tests/sentences must give the Rust crate's bits. And misuse of layers.

const std = @import("std");
const adead = @import("adead");
const options = @import("options");
const nn = adead.nn;
const Tensor = adead.Tensor;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualSlices = std.testing.expectEqualSlices;
const expectEqualStrings = std.testing.expectEqualStrings;

const gpa = std.testing.allocator;
const model: [:0]const u8 = options.model ++ "";
const width = 32;
const row = width * @sizeOf(f32);
const config: nn.TransformerConfig = .{ .width = width, .heads = 4, .hidden = 48 };
/// The offset after the header of tiny_bits.npy.
const expected = @embedFile("tiny_bits")[128..];

/// Checks that the call fails with the error and a text that contains these words.
fn fails(err: adead.Error, words: []const u8, result: anytype) !void {
    try std.testing.expectError(err, result);
    if (std.mem.indexOf(u8, adead.lastError(), words) == null) {
        std.debug.print("'{s}' is not in: {s}\n", .{ words, adead.lastError() });
        return error.OtherText;
    }
}

/// Collects tensors that are destroyed together.
const Scope = struct {
    all: std.ArrayList(Tensor) = .empty,

    fn deinit(self: *Scope) void {
        for (self.all.items) |tensor| tensor.deinit();
        self.all.deinit(gpa);
    }
    fn keep(self: *Scope, tensor: adead.Error!Tensor) !Tensor {
        try self.all.append(gpa, try tensor);
        return self.all.items[self.all.items.len - 1];
    }
    fn zeros(self: *Scope, dims: []const usize) !Tensor {
        return self.keep(Tensor.zeros(.f32, dims));
    }
};

fn expectSame(a: Tensor, result: adead.Error!Tensor) !void {
    const b = try result;
    defer b.deinit();
    try expectEqualSlices(usize, try a.shape(), try b.shape());
    try expectEqualSlices(u8, try a.bytes(), try b.bytes());
}

/// BERT with mean pooling and normalisation, as in sentence-transformers.
const Model = struct {
    ctx: adead.Context,
    words: nn.Embedding,
    places: nn.Embedding,
    norm: nn.LayerNorm,
    encoder: nn.TransformerEncoder,

    fn init(ctx: adead.Context) !Model {
        const weights = try nn.Weights.open(gpa, model);
        defer weights.deinit();
        var scope: Scope = .{};
        defer scope.deinit();
        const positions = try scope.keep(weights.tensor(ctx, "embeddings.position_embeddings.weight", &.{ 40, width }));
        const types = try scope.keep(weights.tensor(ctx, "embeddings.token_type_embeddings.weight", &.{ 2, width }));
        const first = try scope.keep(Tensor.init(f32, &.{width}, (try types.data(f32))[0..width]));
        return .{
            .ctx = ctx,
            .words = try .load(ctx, weights, "embeddings.word_embeddings", 92, width),
            .places = try .init(ctx, try scope.keep(ctx.add(positions, first))),
            .norm = try .load(ctx, weights, "embeddings.LayerNorm", width, .{ .eps = 1e-12 }),
            .encoder = try .load(gpa, ctx, weights, "encoder.layer", 2, config),
        };
    }

    fn deinit(self: Model) void {
        self.words.deinit();
        self.places.deinit();
        self.norm.deinit();
        self.encoder.deinit();
    }

    /// Computes the embeddings of sentences from their tokens. They are padded to a length, unless they all have
    /// it.
    fn embed(self: Model, batch: []const []const u32, length: usize, padded: bool) !Tensor {
        const ctx = self.ctx;
        const count = batch.len;
        var arena: std.heap.ArenaAllocator = .init(gpa);
        defer arena.deinit();
        const ids = try arena.allocator().alloc(u32, count * length);
        const at = try arena.allocator().alloc(u32, count * length);
        const own = try arena.allocator().alloc(f32, count * length);
        const counts = try arena.allocator().alloc(f32, count);
        const least = try arena.allocator().alloc(f32, count);
        const lengths = try arena.allocator().alloc(usize, count);
        for (batch, 0..) |tokens, n| {
            for (0..length) |i| {
                ids[n * length + i] = if (i < tokens.len) tokens[i] else 0;
                at[n * length + i] = @intCast(i);
                own[n * length + i] = if (i < tokens.len) 1 else 0;
            }
            counts[n] = @floatFromInt(tokens.len);
            lengths[n] = tokens.len;
        }
        @memset(least, 1e-12);
        var scope: Scope = .{};
        defer scope.deinit();
        const tokens = try scope.keep(self.words.forward(try scope.keep(Tensor.init(u32, &.{ count, length }, ids))));
        const places = try scope.keep(self.places.forward(try scope.keep(Tensor.init(u32, &.{ count, length }, at))));
        const x = try scope.keep(self.norm.forward(try scope.keep(ctx.add(tokens, places))));
        const y = try scope.keep(if (padded) self.encoder.forwardWith(x, lengths) else self.encoder.forward(x));
        const kept = try scope.keep(ctx.mul(y, try scope.keep(Tensor.init(f32, &.{ count, length, 1 }, own))));
        const sums = try scope.keep(ctx.sum(kept, .{ .axis = 1 }));
        const mean = try scope.keep(ctx.div(sums, try scope.keep(Tensor.init(f32, &.{ count, 1 }, counts))));
        const squares = try scope.keep(ctx.mul(mean, mean));
        const norm = try scope.keep(ctx.sqrt(try scope.keep(ctx.sum(squares, .{ .axis = -1, .keepdim = true }))));
        const floor = try scope.keep(Tensor.init(f32, &.{ count, 1 }, least));
        const both = try scope.keep(ctx.concat(&.{ norm, floor }, .{ .axis = -1 }));
        return ctx.div(mean, try scope.keep(ctx.max(both, .{ .axis = -1, .keepdim = true })));
    }

    fn expectRows(self: Model, batch: []const []const u32, length: usize, padded: bool, rows: []const u8) !void {
        const found = try self.embed(batch, length, padded);
        defer found.deinit();
        try expectEqualSlices(u8, rows, try found.bytes());
    }
};

fn bits(ctx: adead.Context) !void {
    const sentences = try std.json.parseFromSlice([]const []const u32, gpa, @embedFile("tiny_tokens"), .{});
    defer sentences.deinit();
    const all = sentences.value;
    try expectEqual(expected.len, all.len * row);
    const it = try Model.init(ctx);
    defer it.deinit();
    try expectEqual(2, it.encoder.layers);
    for (all, 0..) |tokens, i| try it.expectRows(&.{tokens}, tokens.len, false, expected[i * row ..][0..row]);
    try it.expectRows(all, 24, true, expected);
    try it.expectRows(all[0..9], 30, true, expected[0 .. 9 * row]);
    // Threads share layers.
    var threads: [3]std.Thread = undefined;
    var results: [3]anyerror!void = @splat({});
    for (&threads, &results) |*thread, *result| thread.* = try std.Thread.spawn(.{}, inThread, .{ it, all, result });
    for (threads, results) |thread, _| thread.join();
    for (results) |result| try result;
}

fn inThread(it: Model, all: []const []const u32, result: *anyerror!void) void {
    result.* = it.expectRows(all, 24, true, expected);
}

test "the encoder has the bits of the Rust crate" {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    try bits(ctx);
    if (comptime std.mem.eql(u8, options.device, "cpu")) return;
    const gpu = adead.Context.open(std.fmt.comptimePrint("{s}", .{options.device}), .{}) catch |err| {
        return if (err == error.BackendUnavailable) error.SkipZigTest else err;
    };
    defer gpu.deinit();
    try bits(gpu);
}

test "layers are their operations" {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    var scope: Scope = .{};
    defer scope.deinit();
    const x = try scope.keep(Tensor.init(f32, &.{ 2, 3 }, &.{ 1, -2, 3, 0.5, 0.25, -1 }));
    const w = try scope.keep(Tensor.init(f32, &.{ 2, 3 }, &.{ 0.5, -1, 0.25, 2, -0.5, 1.5 }));
    const b = try scope.keep(Tensor.init(f32, &.{2}, &.{ 0.1, -0.2 }));
    const ones = try scope.keep(Tensor.init(f32, &.{2}, &.{ 1, 2 }));
    const plain = try nn.Linear.init(ctx, w, .none);
    defer plain.deinit();
    try expectSame(try scope.keep(ctx.matmul(x, w, .{ .trans_b = true })), plain.forward(x));

    const product = try scope.keep(ctx.matmul(x, w, .{ .trans_b = true, .bias = b }));
    var net: nn.Sequential = .init(gpa);
    defer net.deinit();
    try expectSame(x, net.forward(x));
    {
        const linear = try nn.Linear.init(ctx, w, b);
        errdefer linear.deinit();
        try expect(linear.inputs == 3 and linear.outputs == 2);
        try expectSame(product, linear.forward(x));
        const more: adead.operations.MatmulOptions =
            .{ .trans_b = true, .bias = b, .c = product, .beta = 1, .activation = .relu };
        try expectSame(try scope.keep(ctx.matmul(x, w, more)), linear.forwardWith(x, product, .relu));
        try net.append(linear);
    }
    try net.append(nn.GELU{ .ctx = ctx, .form = .tanh });
    try net.append(nn.ReLU{ .ctx = ctx });
    try net.append(try nn.LayerNorm.init(ctx, ones, b, .{}));
    const positive = try scope.keep(ctx.relu(try scope.keep(ctx.gelu(product, .{ .form = .tanh }))));
    const by_hand = try scope.keep(ctx.layernorm(positive, .{ .eps = 1e-5, .gamma = ones, .beta = b }));
    try expectEqual(4, net.len());
    try expectSame(by_hand, net.forward(x));
    const erf: nn.GELU = .{ .ctx = ctx };
    try expectSame(try scope.keep(ctx.gelu(x, .{ .form = .erf })), erf.forward(x));

    // A single sequence needs no batch dimension.
    const weights = try nn.Weights.open(gpa, model);
    defer weights.deinit();
    const encoder = try nn.TransformerEncoder.load(gpa, ctx, weights, "encoder.layer", 1, config);
    defer encoder.deinit();
    var values: [5 * width]f32 = undefined;
    for (&values, 0..) |*value, i| value.* = @sin(@as(f32, @floatFromInt(i)));
    const alone = try scope.keep(encoder.forward(try scope.keep(Tensor.init(f32, &.{ 5, width }, &values))));
    const batch = try scope.keep(encoder.forward(try scope.keep(Tensor.init(f32, &.{ 1, 5, width }, &values))));
    try expectEqualSlices(usize, &.{ 5, width }, try alone.shape());
    try expectSame(alone, batch.reshape(&.{ 5, width }));
}

test "weights are the file's" {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    const weights = try nn.Weights.open(gpa, model);
    defer weights.deinit();
    try expectEqualStrings(model, weights.path);
    try expectEqual(37, weights.count());
    for (1..weights.count()) |i| try expect(std.mem.lessThan(u8, weights.nameAt(i - 1), weights.nameAt(i)));
    try expect(weights.contains("embeddings.LayerNorm.bias") and !weights.contains("embeddings.LayerNorm.bia"));
    try expect(!weights.contains("embeddings.LayerNorm.bias2") and !weights.contains(""));
    try expectEqualSlices(usize, &.{ 48, 32 }, try weights.dims("encoder.layer.0.intermediate.dense.weight"));
    for (0..weights.count()) |i| {
        const name = weights.nameAt(i);
        const tensor = try weights.tensor(ctx, name, try weights.dims(name));
        defer tensor.deinit();
        try expectEqual(adead.DType.f32, try tensor.dtype());
    }
    // bf16 is the upper half of f32.
    const words = try weights.tensor(ctx, "embeddings.word_embeddings.weight", &.{ 92, width });
    defer words.deinit();
    for (try words.data(f32)) |value| try expectEqual(0, @as(u32, @bitCast(value)) & 0xffff);

    const name = "embeddings.LayerNorm.bias";
    const other = "tiny/model.safetensors: the tensor '" ++ name ++ "' is [32]; it must be [4, 8]";
    try fails(error.ShapeMismatch, other, weights.tensor(ctx, name, &.{ 4, 8 }));
    try fails(error.InvalidArgument, "the tensor 'nothing' is not among the file's 37 tensors", weights.dims("nothing"));
    // The last failure's text, whichever call failed.
    try fails(error.ShapeMismatch, "matmul: A is", ctx.matmul(words, words, .{}));
    try fails(error.InvalidArgument, "the tensor 'a.b' is not", weights.part(ctx, "a", ".b", &.{1}));
    try fails(error.Io, "nowhere: No such file", nn.Weights.open(gpa, "nowhere"));
    try fails(error.Io, "irectory", nn.Weights.open(gpa, "/"));
    try fails(error.OutOfMemory, "out of memory", nn.Weights.open(std.testing.failing_allocator, model));
}

test "whatever allocation fails, nothing is left behind" {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    try std.testing.checkAllAllocationFailures(gpa, loading, .{ctx});
}

fn loading(allocator: std.mem.Allocator, ctx: adead.Context) !void {
    const weights = try nn.Weights.open(allocator, model);
    defer weights.deinit();
    const encoder = try nn.TransformerEncoder.load(allocator, ctx, weights, "encoder.layer", 2, config);
    defer encoder.deinit();
    var net: nn.Sequential = .init(allocator);
    defer net.deinit();
    try net.append(nn.ReLU{ .ctx = ctx });
}

test "misuse is refused" {
    const ctx = try adead.Context.open("cpu", .{});
    defer ctx.deinit();
    var scope: Scope = .{};
    defer scope.deinit();
    const weights = try nn.Weights.open(gpa, model);
    defer weights.deinit();
    const name = "encoder.layer.0.intermediate.dense";
    const unfit = "dense.weight' is [48, 32]; it must be [64, 32]";
    try fails(error.ShapeMismatch, unfit, nn.Linear.load(ctx, weights, name, 32, 64));
    const missing = "the tensor 'encoder.layer.2.intermediate.dense.weight' is not among";
    try fails(error.InvalidArgument, missing, nn.TransformerEncoder.load(gpa, ctx, weights, "encoder.layer", 3, config));
    var five = config;
    five.heads = 5;
    const divide = "5 heads don't divide a width of 32";
    try fails(error.InvalidArgument, divide, nn.TransformerLayer.load(ctx, weights, "encoder.layer.0", five));

    const vector = try scope.zeros(&.{4});
    const square = try scope.zeros(&.{ 4, 4 });
    try fails(error.ShapeMismatch, "linear: the weight is [4]; it must be", nn.Linear.init(ctx, vector, .none));
    const three = try scope.zeros(&.{3});
    try fails(error.ShapeMismatch, "the bias is [3] and the weight [4, 4]", nn.Linear.init(ctx, square, three));
    try fails(error.InvalidArgument, "NULL", nn.Linear.init(ctx, .none, .none));
    try fails(error.ShapeMismatch, "the table is [4]", nn.Embedding.init(ctx, vector));
    const table = try nn.Embedding.init(ctx, square);
    defer table.deinit();
    try fails(error.InvalidArgument, "4", table.forward(try scope.keep(Tensor.init(u32, &.{1}, &.{4}))));
    try fails(error.InvalidArgument, "NULL", nn.LayerNorm.init(ctx, vector, .none, .{}));

    const linear = try nn.Linear.init(ctx, square, .none);
    const triple = try nn.Linear.init(ctx, try scope.zeros(&.{ 12, 4 }), .none);
    try fails(error.ShapeMismatch, "", linear.forward(try scope.zeros(&.{ 2, 3 })));
    const values = "returns 12 values and the second takes 4";
    try fails(error.ShapeMismatch, values, nn.FeedForward.init(triple, linear, .gelu_erf));
    try fails(error.ShapeMismatch, "4 values are no queries", nn.MultiHeadAttention.init(linear, linear, 2));
    for ([_]usize{ 0, 3 }) |heads| {
        const text = "heads don't divide a width of 4";
        try fails(error.InvalidArgument, text, nn.MultiHeadAttention.init(triple, linear, heads));
    }
    const attention = try nn.MultiHeadAttention.init(triple, linear, 2);
    defer attention.deinit();
    for ([_][]const usize{ &.{4}, &.{ 2, 3 }, &.{ 1, 2, 2, 4 }, &.{} }) |dims| {
        try fails(error.ShapeMismatch, "attention: x is", attention.forward(try scope.zeros(dims)));
    }
    const x = try scope.zeros(&.{ 3, 2, 4 });
    try fails(error.ShapeMismatch, "2 lengths for 3 sequences", attention.forwardWith(x, &.{ 1, 2 }, .none));
    for ([_]usize{ 0, 3 }) |own| {
        const text = "rows can't be padded to 2";
        try fails(error.InvalidArgument, text, attention.forwardWith(try scope.zeros(&.{ 1, 2, 4 }), &.{own}, .none));
    }
    try fails(error.InvalidArgument, "NULL", attention.forward(.none));
}
