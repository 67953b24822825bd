//! The library's layers.

const std = @import("std");
const c = @import("c");
const enums = @import("../enums.zig");
const weights_zig = @import("weights.zig");
const call = @import("../call.zig");
const check = enums.check;
const joined = weights_zig.joined;
const Activation = enums.Activation;
const Context = @import("../context.zig").Context;
const Error = enums.Error;
const Tensor = @import("../tensor.zig").Tensor;
const Weights = weights_zig.Weights;

/// A layer's handle, shared with the layers that were made from it.
const Module = struct {
    handle: ?*c.adead_module = null,

    fn load(
        allocator: std.mem.Allocator,
        ctx: Context,
        weights: Weights,
        prefix: []const u8,
        options: c.adead_module_options,
    ) Error!Module {
        const text = try joined(allocator, prefix, "");
        defer allocator.free(text);
        return call.made(Module, c.adead_module_load, .{ ctx.handle, weights.handle, text.ptr, &options });
    }

    fn deinit(self: Module) void {
        c.adead_module_destroy(self.handle);
    }

    fn forward(self: Module, x: Tensor, lengths: []const usize, residual: Tensor, activation: Activation) Error!Tensor {
        var raw = enums.forward_options;
        raw.residual = residual.handle;
        raw.lengths = if (lengths.len > 0) lengths.ptr else null;
        raw.count = lengths.len;
        raw.activation = @intFromEnum(activation);
        return call.made(Tensor, c.adead_module_forward, .{ self.handle, x.handle, &raw });
    }
};

/// Computes `x·Wᵀ + bias` of [..., inputs]. If its context has no GPU, the weight is packed once.
pub const Linear = struct {
    module: Module,
    /// The sizes of an input row and of an output row.
    inputs: usize,
    outputs: usize,

    /// Makes the layer from a weight [outputs, inputs] and, unless it is none, a bias [outputs]. ShapeMismatch if they
    /// don't fit.
    pub fn init(ctx: Context, weight: Tensor, bias: Tensor) Error!Linear {
        var module: Module = .{};
        try check(c.adead_module_linear(ctx.handle, weight.handle, bias.handle, &module.handle));
        errdefer module.deinit();
        const dims = try weight.shape();
        return .{ .module = module, .inputs = dims[1], .outputs = dims[0] };
    }

    /// Loads the layer of `PREFIX.weight` and `PREFIX.bias`.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, inputs: usize, outputs: usize) Error!Linear {
        var options = enums.module_options;
        options.inputs = inputs;
        options.outputs = outputs;
        const module = try Module.load(weights.allocator, ctx, weights, prefix, options);
        return .{ .module = module, .inputs = inputs, .outputs = outputs };
    }

    pub fn deinit(self: Linear) void {
        self.module.deinit();
    }

    pub fn forward(self: Linear, x: Tensor) Error!Tensor {
        return self.forwardWith(x, .none, .none);
    }

    /// Computes `activation(x·Wᵀ + residual + bias)` as one product. The residual may be none.
    pub fn forwardWith(self: Linear, x: Tensor, residual: Tensor, activation: Activation) Error!Tensor {
        return self.module.forward(x, &.{}, residual, activation);
    }
};

/// Looks up rows of a table [count, width] by ids of any shape, i32, i64 or u32. InvalidArgument for an id outside the
/// table.
pub const Embedding = struct {
    module: Module,

    /// Makes the layer from a table. ShapeMismatch unless the table is a matrix.
    pub fn init(ctx: Context, table: Tensor) Error!Embedding {
        var module: Module = .{};
        try check(c.adead_module_embedding(ctx.handle, table.handle, &module.handle));
        return .{ .module = module };
    }

    /// Loads the table `PREFIX.weight`.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, count: usize, width: usize) Error!Embedding {
        var options = enums.module_options;
        options.kind = c.ADEAD_MODULE_EMBEDDING;
        options.inputs = count;
        options.width = width;
        return .{ .module = try .load(weights.allocator, ctx, weights, prefix, options) };
    }

    pub fn deinit(self: Embedding) void {
        self.module.deinit();
    }

    pub fn forward(self: Embedding, ids: Tensor) Error!Tensor {
        return self.module.forward(ids, &.{}, .none, .none);
    }
};

/// Normalises mean and variance over the last axis, multiplies by a weight and adds a bias, both [width].
pub const LayerNorm = struct {
    module: Module,

    pub const Options = struct {
        /// The number added to the variance.
        eps: f32 = 1e-5,
    };

    pub fn init(ctx: Context, weight: Tensor, bias: Tensor, options: Options) Error!LayerNorm {
        var module: Module = .{};
        try check(c.adead_module_layer_norm(ctx.handle, weight.handle, bias.handle, options.eps, &module.handle));
        return .{ .module = module };
    }

    /// Loads the layer of `PREFIX.weight` and `PREFIX.bias`.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, width: usize, options: Options) Error!LayerNorm {
        var raw = enums.module_options;
        raw.kind = c.ADEAD_MODULE_LAYER_NORM;
        raw.width = width;
        raw.eps = options.eps;
        return .{ .module = try .load(weights.allocator, ctx, weights, prefix, raw) };
    }

    pub fn deinit(self: LayerNorm) void {
        self.module.deinit();
    }

    pub fn forward(self: LayerNorm, x: Tensor) Error!Tensor {
        return self.module.forward(x, &.{}, .none, .none);
    }
};

/// Computes max(x, 0).
pub const ReLU = struct {
    ctx: Context,

    pub fn forward(self: ReLU, x: Tensor) Error!Tensor {
        return self.ctx.relu(x);
    }
};

/// Computes the Gaussian error linear unit, in its form with erf or with tanh.
pub const GELU = struct {
    ctx: Context,
    form: enums.GeluForm = .erf,

    pub fn forward(self: GELU, x: Tensor) Error!Tensor {
        return self.ctx.gelu(x, .{ .form = self.form });
    }
};

/// Computes `activation(x·W1ᵀ + b1)·W2ᵀ + b2`.
pub const FeedForward = struct {
    module: Module,

    /// Makes the layer and takes over the two given ones, unless it fails. ShapeMismatch if the second does not fit the
    /// result of the first.
    pub fn init(inner: Linear, outer: Linear, activation: Activation) Error!FeedForward {
        var module: Module = .{};
        const kind = @intFromEnum(activation);
        try check(c.adead_module_feed_forward(inner.module.handle, outer.module.handle, kind, &module.handle));
        inner.deinit();
        outer.deinit();
        return .{ .module = module };
    }

    pub fn deinit(self: FeedForward) void {
        self.module.deinit();
    }

    pub fn forward(self: FeedForward, x: Tensor) Error!Tensor {
        return self.forwardWith(x, .none);
    }

    /// Computes the result plus a residual, which may be none.
    pub fn forwardWith(self: FeedForward, x: Tensor, residual: Tensor) Error!Tensor {
        return self.module.forward(x, &.{}, residual, .none);
    }
};

/// Computes self-attention: queries, keys and values as one product, then the heads, then the output's product.
pub const MultiHeadAttention = struct {
    module: Module,

    /// Makes the layer from one layer that returns queries, keys and values in this order, and an output layer. Takes
    /// both over, unless it fails. ShapeMismatch if they don't fit each other, InvalidArgument unless `heads` divides
    /// the width.
    pub fn init(qkv: Linear, output: Linear, heads: usize) Error!MultiHeadAttention {
        var module: Module = .{};
        try check(c.adead_module_attention(qkv.module.handle, output.module.handle, heads, &module.handle));
        qkv.deinit();
        output.deinit();
        return .{ .module = module };
    }

    /// Loads the layer from four linear ones by their prefixes: query, key, value, output; each maps `width` to
    /// `width`.
    pub fn load(ctx: Context, weights: Weights, prefixes: [4][]const u8, width: usize, heads: usize) Error!MultiHeadAttention {
        var arena: std.heap.ArenaAllocator = .init(weights.allocator);
        defer arena.deinit();
        var parts: [4][*c]const u8 = undefined;
        for (&parts, prefixes) |*part, prefix| part.* = (try joined(arena.allocator(), prefix, "")).ptr;
        var options = enums.module_options;
        options.kind = c.ADEAD_MODULE_ATTENTION;
        options.width = width;
        options.heads = heads;
        options.parts = &parts;
        return .{ .module = try .load(weights.allocator, ctx, weights, "", options) };
    }

    pub fn deinit(self: MultiHeadAttention) void {
        self.module.deinit();
    }

    pub fn forward(self: MultiHeadAttention, x: Tensor) Error!Tensor {
        return self.forwardWith(x, &.{}, .none);
    }

    /// Computes attention within each sequence of [count, length, width], or of the single one [length, width], plus a
    /// residual, which may be none. With `lengths`, one for each sequence, the rows beyond them are padding, which no
    /// row attends to.
    pub fn forwardWith(self: MultiHeadAttention, x: Tensor, lengths: []const usize, residual: Tensor) Error!Tensor {
        return self.module.forward(x, lengths, residual, .none);
    }
};

/// The configuration of an encoder's layers, which are all alike.
pub const TransformerConfig = struct {
    /// The size of a row.
    width: usize,
    /// The number of attention heads.
    heads: usize,
    /// The size between the two products of the feed-forward part.
    hidden: usize,
    /// The function between those products.
    activation: Activation = .gelu_erf,
    /// The number added to variances.
    eps: f32 = 1e-12,

    fn options(self: TransformerConfig, kind: c_int, count: usize) c.adead_module_options {
        var raw = enums.module_options;
        raw.kind = kind;
        raw.layers = count;
        raw.width = self.width;
        raw.heads = self.heads;
        raw.hidden = self.hidden;
        raw.activation = @intFromEnum(self.activation);
        raw.eps = self.eps;
        return raw;
    }
};

/// A layer that normalises after each part, as BERT does: `h = norm(x + attention(x))`, then `norm(h +
/// feed_forward(h))`.
pub const TransformerLayer = struct {
    module: Module,

    /// Loads the layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, config: TransformerConfig) Error!TransformerLayer {
        const options = config.options(c.ADEAD_MODULE_TRANSFORMER_LAYER, 0);
        return .{ .module = try .load(weights.allocator, ctx, weights, prefix, options) };
    }

    pub fn deinit(self: TransformerLayer) void {
        self.module.deinit();
    }

    pub fn forward(self: TransformerLayer, x: Tensor) Error!Tensor {
        return self.forwardWith(x, &.{});
    }

    /// Computes the result with `lengths`, as for MultiHeadAttention.
    pub fn forwardWith(self: TransformerLayer, x: Tensor, lengths: []const usize) Error!Tensor {
        return self.module.forward(x, lengths, .none, .none);
    }
};

/// Applies transformer layers one after another.
pub const TransformerEncoder = struct {
    module: Module,
    /// The number of layers.
    layers: usize,

    /// Loads the layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on.
    pub fn load(
        allocator: std.mem.Allocator,
        ctx: Context,
        weights: Weights,
        prefix: []const u8,
        count: usize,
        config: TransformerConfig,
    ) Error!TransformerEncoder {
        const options = config.options(c.ADEAD_MODULE_TRANSFORMER_ENCODER, count);
        return .{ .module = try .load(allocator, ctx, weights, prefix, options), .layers = count };
    }

    pub fn deinit(self: TransformerEncoder) void {
        self.module.deinit();
    }

    pub fn forward(self: TransformerEncoder, x: Tensor) Error!Tensor {
        return self.forwardWith(x, &.{});
    }

    /// Computes the result for sequences [count, length, width], or for a single one [length, width]. A sequence's rows
    /// have the same bits alone, among other sequences, and padded with `lengths`.
    pub fn forwardWith(self: TransformerEncoder, x: Tensor, lengths: []const usize) Error!Tensor {
        return self.module.forward(x, lengths, .none, .none);
    }
};
