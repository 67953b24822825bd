//! Self-attention and the encoders made of it.

const std = @import("std");
const enums = @import("../enums.zig");
const failure = @import("../failure.zig");
const layers = @import("layers.zig");
const Arena = @import("../memory.zig").Arena;
const Context = @import("../context.zig").Context;
const Dims = failure.Dims;
const Error = enums.Error;
const FeedForward = layers.FeedForward;
const LayerNorm = layers.LayerNorm;
const Linear = layers.Linear;
const Tensor = @import("../tensor.zig").Tensor;
const Weights = @import("weights.zig").Weights;

/// Self-attention: queries, keys and values as one product, then the heads, then the output's product.
pub const MultiHeadAttention = struct {
    qkv: Linear,
    output: Linear,
    heads: usize,

    /// Of a layer that returns queries, keys and values behind each other, and the output's. Takes them over, unless it fails:
    /// ShapeMismatch where they don't fit each other, InvalidArgument unless `heads` divides the width.
    pub fn init(qkv: Linear, output: Linear, heads: usize) Error!MultiHeadAttention {
        const width = output.inputs;
        if (qkv.outputs != 3 *| width) {
            const text = "attention: {d} values are no queries, keys and values of {d}";
            return failure.fail(error.ShapeMismatch, text, .{ qkv.outputs, width });
        }
        if (heads == 0 or width % heads != 0) {
            const text = "attention: {d} heads don't divide a width of {d}";
            return failure.fail(error.InvalidArgument, text, .{ heads, width });
        }
        return .{ .qkv = qkv, .output = output, .heads = heads };
    }

    /// The layer of four linear ones, named by their prefixes: query, key, value, output; all of `width` to `width`.
    pub fn load(ctx: Context, weights: Weights, prefixes: [4][]const u8, width: usize, heads: usize) Error!MultiHeadAttention {
        const weight = try joined(ctx, weights, prefixes[0..3], ".weight", &.{ width, width });
        defer weight.deinit();
        const bias = try joined(ctx, weights, prefixes[0..3], ".bias", &.{width});
        defer bias.deinit();
        const qkv = try Linear.init(ctx, weight, bias);
        errdefer qkv.deinit();
        const output = try Linear.load(ctx, weights, prefixes[3], width, width);
        errdefer output.deinit();
        return init(qkv, output, heads);
    }

    pub fn deinit(self: MultiHeadAttention) void {
        self.qkv.deinit();
        self.output.deinit();
    }

    pub fn forward(self: MultiHeadAttention, x: Tensor) Error!Tensor {
        return self.forwardWith(x, &.{}, .none);
    }

    /// Attention within each sequence of [count, length, width], or of the one that [length, width] is, plus a residual, which
    /// may be none. With `lengths`, one for each, the rows behind them are padding, which nothing attends to.
    pub fn forwardWith(self: MultiHeadAttention, x: Tensor, lengths: []const usize, residual: Tensor) Error!Tensor {
        const ctx = self.qkv.ctx;
        const dims = try x.shape();
        const rank = dims.len;
        const width = self.output.inputs;
        if ((rank != 2 and rank != 3) or dims[rank - 1] != self.qkv.inputs) {
            const text = "attention: x is {f}; it must be [count, length, {d}]";
            return failure.fail(error.ShapeMismatch, text, .{ Dims{ .of = dims }, self.qkv.inputs });
        }
        const count = if (rank == 3) dims[0] else 1;
        const length = dims[rank - 2];
        if (lengths.len > 0 and lengths.len != count) {
            const text = "attention: {d} lengths for {d} sequences";
            return failure.fail(error.ShapeMismatch, text, .{ lengths.len, count });
        }
        const masked: Tensor = if (lengths.len > 0) try mask(lengths, length) else .none;
        defer masked.deinit();
        const of_head = [_]usize{ count, self.heads, length, width / self.heads };
        const parts = try self.apart(x, of_head);
        defer for (parts) |part| part.deinit();
        const attended = try ctx.attention(parts[0], parts[1], parts[2], .{ .mask = masked });
        defer attended.deinit();
        const together = try ctx.transpose(attended, .{ .perm = &.{ 0, 2, 1, 3 } });
        defer together.deinit();
        const shape = [_]usize{ count, length, width };
        const rows = try together.reshape(shape[3 - rank ..]);
        defer rows.deinit();
        return self.output.forwardWith(rows, residual, .none);
    }

    /// Queries, keys and values, each of these dimensions.
    fn apart(self: MultiHeadAttention, x: Tensor, dims: [4]usize) Error![3]Tensor {
        const product = try self.qkv.forward(x);
        defer product.deinit();
        const split = try product.reshape(&.{ dims[0], dims[2], 3, dims[1], dims[3] });
        defer split.deinit();
        const ordered = try self.qkv.ctx.transpose(split, .{ .perm = &.{ 2, 0, 3, 1, 4 } });
        defer ordered.deinit();
        const bytes = try ordered.bytes();
        const size = bytes.len / 3;
        var parts: [3]Tensor = @splat(.none);
        errdefer for (parts) |part| part.deinit();
        for (&parts, 0..) |*part, i| part.* = try Tensor.initBytes(.f32, &dims, bytes[i * size ..][0..size]);
        return parts;
    }
};

/// A tensor of each prefix, joined along the first axis.
fn joined(ctx: Context, weights: Weights, prefixes: []const []const u8, suffix: []const u8, dims: []const usize) Error!Tensor {
    var parts: [3]Tensor = @splat(.none);
    defer for (parts) |part| part.deinit();
    for (&parts, prefixes) |*part, prefix| part.* = try weights.part(ctx, prefix, suffix, dims);
    return ctx.concat(&parts, .{ .axis = 0 });
}

/// What is added to the scores, [count, 1, 1, length]: 0 for a row of a sequence, -inf for padding.
fn mask(lengths: []const usize, length: usize) Error!Tensor {
    for (lengths) |own| {
        if (own >= 1 and own <= length) continue;
        const text = "attention: a sequence of {d} rows can't be padded to {d}";
        return failure.fail(error.InvalidArgument, text, .{ own, length });
    }
    const arena = try Arena.init(0, 0);
    defer arena.deinit();
    const bytes = try arena.alloc(lengths.len *| length *| @sizeOf(f32), @alignOf(f32));
    const added: []f32 = @alignCast(std.mem.bytesAsSlice(f32, bytes));
    for (lengths, 0..) |own, i| {
        @memset(added[i * length ..][0..own], 0);
        @memset(added[i * length ..][own..length], -std.math.inf(f32));
    }
    return Tensor.init(f32, &.{ lengths.len, 1, 1, length }, added);
}

/// What an encoder's layers are, all alike.
pub const TransformerConfig = struct {
    /// Values of a row.
    width: usize,
    /// Heads of attention.
    heads: usize,
    /// Values between the two products of the feed-forward part.
    hidden: usize,
    /// Between those products.
    activation: enums.Activation = .gelu_erf,
    /// Added to variances.
    eps: f32 = 1e-12,
};

/// A layer that is normalised behind each part, as BERT's are: `h = norm(x + attention(x))`, then `norm(h + feed_forward(h))`.
pub const TransformerLayer = struct {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    feed_forward: FeedForward,
    output_norm: LayerNorm,

    /// The layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, config: TransformerConfig) Error!TransformerLayer {
        const width = config.width;
        const options: LayerNorm.Options = .{ .eps = config.eps };
        var arena: std.heap.ArenaAllocator = .init(weights.arena.child_allocator);
        defer arena.deinit();
        const names: Names = .{ .arena = arena.allocator(), .prefix = prefix };
        const inner = try Linear.load(ctx, weights, try names.of(".intermediate.dense"), width, config.hidden);
        errdefer inner.deinit();
        const outer = try Linear.load(ctx, weights, try names.of(".output.dense"), config.hidden, width);
        errdefer outer.deinit();
        const parts: [4][]const u8 = .{
            try names.of(".attention.self.query"),
            try names.of(".attention.self.key"),
            try names.of(".attention.self.value"),
            try names.of(".attention.output.dense"),
        };
        const attention = try MultiHeadAttention.load(ctx, weights, parts, width, config.heads);
        errdefer attention.deinit();
        const attention_norm = try LayerNorm.load(ctx, weights, try names.of(".attention.output.LayerNorm"), width, options);
        errdefer attention_norm.deinit();
        const output_norm = try LayerNorm.load(ctx, weights, try names.of(".output.LayerNorm"), width, options);
        errdefer output_norm.deinit();
        return .{
            .attention = attention,
            .attention_norm = attention_norm,
            .feed_forward = try FeedForward.init(inner, outer, config.activation),
            .output_norm = output_norm,
        };
    }

    pub fn deinit(self: TransformerLayer) void {
        self.attention.deinit();
        self.attention_norm.deinit();
        self.feed_forward.deinit();
        self.output_norm.deinit();
    }

    pub fn forward(self: TransformerLayer, x: Tensor) Error!Tensor {
        return self.forwardWith(x, &.{});
    }

    /// The same with `lengths`, as of MultiHeadAttention.
    pub fn forwardWith(self: TransformerLayer, x: Tensor, lengths: []const usize) Error!Tensor {
        const attended = try self.attention.forwardWith(x, lengths, x);
        defer attended.deinit();
        const h = try self.attention_norm.forward(attended);
        defer h.deinit();
        const y = try self.feed_forward.forwardWith(h, h);
        defer y.deinit();
        return self.output_norm.forward(y);
    }
};

/// Names under a prefix.
const Names = struct {
    arena: std.mem.Allocator,
    prefix: []const u8,

    fn of(self: Names, suffix: []const u8) Error![]const u8 {
        return std.mem.concat(self.arena, u8, &.{ self.prefix, suffix }) catch failure.outOfMemory();
    }
};

/// Transformer layers one after another.
pub const TransformerEncoder = struct {
    allocator: std.mem.Allocator,
    layers: []const TransformerLayer,

    /// So many layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on.
    pub fn load(
        allocator: std.mem.Allocator,
        ctx: Context,
        weights: Weights,
        prefix: []const u8,
        count: usize,
        config: TransformerConfig,
    ) Error!TransformerEncoder {
        var found: std.ArrayList(TransformerLayer) = .empty;
        errdefer {
            for (found.items) |layer| layer.deinit();
            found.deinit(allocator);
        }
        for (0..count) |i| {
            const name = std.fmt.allocPrint(allocator, "{s}.{d}", .{ prefix, i }) catch return failure.outOfMemory();
            defer allocator.free(name);
            // Not as many at once as one says that there are: the file may have fewer.
            found.ensureUnusedCapacity(allocator, 1) catch return failure.outOfMemory();
            found.appendAssumeCapacity(try TransformerLayer.load(ctx, weights, name, config));
        }
        const own = found.toOwnedSlice(allocator) catch return failure.outOfMemory();
        return .{ .allocator = allocator, .layers = own };
    }

    pub fn deinit(self: TransformerEncoder) void {
        for (self.layers) |layer| layer.deinit();
        self.allocator.free(self.layers);
    }

    pub fn forward(self: TransformerEncoder, x: Tensor) Error!Tensor {
        return self.forwardWith(x, &.{});
    }

    /// Its result for sequences [count, length, width], or the one of [length, width]. A sequence's rows have the same bits
    /// alone, among others, and padded with `lengths`.
    pub fn forwardWith(self: TransformerEncoder, x: Tensor, lengths: []const usize) Error!Tensor {
        var y = try x.clone();
        for (self.layers) |layer| {
            const before = y;
            defer before.deinit();
            y = try layer.forwardWith(before, lengths);
        }
        return y;
    }
};
