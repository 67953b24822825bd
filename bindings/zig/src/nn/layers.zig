//! Layers that are an operation or two.

const std = @import("std");
const context = @import("../context.zig");
const enums = @import("../enums.zig");
const failure = @import("../failure.zig");
const operations = @import("../operations.zig");
const Activation = enums.Activation;
const Context = context.Context;
const Dims = failure.Dims;
const Error = enums.Error;
const Tensor = @import("../tensor.zig").Tensor;
const Weights = @import("weights.zig").Weights;

/// `x·Wᵀ + bias` of [..., inputs]. The weight is packed once where its context has no GPU.
pub const Linear = struct {
    ctx: Context,
    /// The weight: packed, or transposed.
    pack: context.Packed = .{},
    plain: Tensor = .none,
    bias: Tensor = .none,
    /// Values of a row that it takes, and that it returns.
    inputs: usize,
    outputs: usize,

    /// The layer of a weight [outputs, inputs] and, unless it is none, a bias [outputs]. ShapeMismatch where they don't fit.
    pub fn init(ctx: Context, weight: Tensor, bias: Tensor) Error!Linear {
        const dims = try weight.shape();
        if (dims.len != 2) {
            const text = "linear: the weight is {f}; it must be [outputs, inputs]";
            return failure.fail(error.ShapeMismatch, text, .{Dims{ .of = dims }});
        }
        var self: Linear = .{ .ctx = ctx, .outputs = dims[0], .inputs = dims[1] };
        errdefer self.deinit();
        if (bias.handle != null) {
            const own = try bias.shape();
            if (own.len != 1 or own[0] != dims[0]) {
                const text = "linear: the bias is {f} and the weight {f}";
                return failure.fail(error.ShapeMismatch, text, .{ Dims{ .of = own }, Dims{ .of = dims } });
            }
            self.bias = try bias.clone();
        }
        if (try onCpuAlone(ctx)) self.pack = try ctx.pack(weight, true) else self.plain = try ctx.transpose(weight, .{});
        return self;
    }

    /// The layer of `PREFIX.weight` and `PREFIX.bias`.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, inputs: usize, outputs: usize) Error!Linear {
        const weight = try weights.part(ctx, prefix, ".weight", &.{ outputs, inputs });
        defer weight.deinit();
        const bias = try weights.part(ctx, prefix, ".bias", &.{outputs});
        defer bias.deinit();
        return init(ctx, weight, bias);
    }

    pub fn deinit(self: Linear) void {
        self.pack.deinit();
        self.plain.deinit();
        self.bias.deinit();
    }

    pub fn forward(self: Linear, x: Tensor) Error!Tensor {
        return self.forwardWith(x, .none, .none);
    }

    /// `activation(x·Wᵀ + residual + bias)`, as one product. The residual may be none.
    pub fn forwardWith(self: Linear, x: Tensor, residual: Tensor, activation: Activation) Error!Tensor {
        const options: operations.MatmulOptions = .{
            .beta = if (residual.handle == null) 0 else 1,
            .activation = activation,
            .c = residual,
            .bias = self.bias,
        };
        if (self.pack.handle != null) return self.pack.matmul(self.ctx, x, options);
        return self.ctx.matmul(x, self.plain, options);
    }
};

/// Whether a context has no other device than the CPU, which takes packed matrices.
fn onCpuAlone(ctx: Context) Error!bool {
    if (try ctx.deviceCount() != 1) return false;
    const info = try ctx.deviceAt(0);
    return std.mem.eql(u8, info.id(), "cpu");
}

/// Rows of a table [count, width] by ids of any shape, i32, i64 or u32. InvalidArgument for an id outside the table.
pub const Embedding = struct {
    ctx: Context,
    table: Tensor,

    /// ShapeMismatch unless the table is a matrix.
    pub fn init(ctx: Context, table: Tensor) Error!Embedding {
        const dims = try table.shape();
        if (dims.len != 2) {
            const text = "embedding: the table is {f}; it must be [count, width]";
            return failure.fail(error.ShapeMismatch, text, .{Dims{ .of = dims }});
        }
        return .{ .ctx = ctx, .table = try table.clone() };
    }

    /// The table `PREFIX.weight`.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, count: usize, width: usize) Error!Embedding {
        return .{ .ctx = ctx, .table = try weights.part(ctx, prefix, ".weight", &.{ count, width }) };
    }

    pub fn deinit(self: Embedding) void {
        self.table.deinit();
    }

    pub fn forward(self: Embedding, ids: Tensor) Error!Tensor {
        return self.ctx.embedding(self.table, ids);
    }
};

/// Mean and variance normalised over the last axis, times a weight, plus a bias, both [width].
pub const LayerNorm = struct {
    ctx: Context,
    weight: Tensor,
    bias: Tensor,
    options: Options,

    pub const Options = struct {
        /// Added to the variance.
        eps: f32 = 1e-5,
    };

    pub fn init(ctx: Context, weight: Tensor, bias: Tensor, options: Options) Error!LayerNorm {
        const own = try weight.clone();
        errdefer own.deinit();
        return .{ .ctx = ctx, .weight = own, .bias = try bias.clone(), .options = options };
    }

    /// The layer of `PREFIX.weight` and `PREFIX.bias`.
    pub fn load(ctx: Context, weights: Weights, prefix: []const u8, width: usize, options: Options) Error!LayerNorm {
        const weight = try weights.part(ctx, prefix, ".weight", &.{width});
        errdefer weight.deinit();
        const bias = try weights.part(ctx, prefix, ".bias", &.{width});
        return .{ .ctx = ctx, .weight = weight, .bias = bias, .options = options };
    }

    pub fn deinit(self: LayerNorm) void {
        self.weight.deinit();
        self.bias.deinit();
    }

    pub fn forward(self: LayerNorm, x: Tensor) Error!Tensor {
        return self.ctx.layernorm(x, .{ .eps = self.options.eps, .gamma = self.weight, .beta = self.bias });
    }
};

/// max(x, 0).
pub const ReLU = struct {
    ctx: Context,

    pub fn forward(self: ReLU, x: Tensor) Error!Tensor {
        return self.ctx.relu(x);
    }
};

/// The Gaussian error linear unit, in its form with erf or with tanh.
pub const GELU = struct {
    ctx: Context,
    form: enums.GeluForm = .erf,

    pub fn forward(self: GELU, x: Tensor) Error!Tensor {
        return self.ctx.gelu(x, .{ .form = self.form });
    }
};

/// `activation(x·W1ᵀ + b1)·W2ᵀ + b2`.
pub const FeedForward = struct {
    inner: Linear,
    outer: Linear,
    activation: Activation,

    /// Takes the layers over, unless it fails: ShapeMismatch where the second does not take what the first returns.
    pub fn init(inner: Linear, outer: Linear, activation: Activation) Error!FeedForward {
        if (inner.outputs != outer.inputs) {
            const text = "feed-forward: the first layer returns {d} values and the second takes {d}";
            return failure.fail(error.ShapeMismatch, text, .{ inner.outputs, outer.inputs });
        }
        return .{ .inner = inner, .outer = outer, .activation = activation };
    }

    pub fn deinit(self: FeedForward) void {
        self.inner.deinit();
        self.outer.deinit();
    }

    pub fn forward(self: FeedForward, x: Tensor) Error!Tensor {
        return self.forwardWith(x, .none);
    }

    /// Its result plus a residual, which may be none.
    pub fn forwardWith(self: FeedForward, x: Tensor, residual: Tensor) Error!Tensor {
        const hidden = try self.inner.forwardWith(x, .none, self.activation);
        defer hidden.deinit();
        return self.outer.forwardWith(hidden, residual, .none);
    }
};
