// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
//
// Every operation, as a method of Context. docs/operations.md has shapes, attributes and errors.
// A null option has the core's default.
const enums = @import("enums.zig");
const Attrs = @import("tensor.zig").Attrs;
const Context = @import("context.zig").Context;
const Error = enums.Error;
const Tensor = @import("tensor.zig").Tensor;

/// Options of matmul.
pub const MatmulOptions = struct {
    trans_a: ?bool = null,
    trans_b: ?bool = null,
    alpha: ?f32 = null,
    beta: ?f32 = null,
    activation: ?enums.Activation = null,
    precision: ?enums.Precision = null,
    c: Tensor = .none,
    bias: Tensor = .none,
};

/// Options of scale.
pub const ScaleOptions = struct {
    alpha: ?f32 = null,
};

/// Options of gelu.
pub const GeluOptions = struct {
    form: ?enums.GeluForm = null,
};

/// Options of softmax.
pub const SoftmaxOptions = struct {
    axis: ?i32 = null,
};

/// Options of sum.
pub const SumOptions = struct {
    axis: ?i32 = null,
    keepdim: ?bool = null,
    axes: ?[]const i32 = null,
};

/// Options of mean.
pub const MeanOptions = struct {
    axis: ?i32 = null,
    keepdim: ?bool = null,
    axes: ?[]const i32 = null,
};

/// Options of max.
pub const MaxOptions = struct {
    axis: ?i32 = null,
    keepdim: ?bool = null,
    axes: ?[]const i32 = null,
};

/// Options of argmax.
pub const ArgmaxOptions = struct {
    axis: ?i32 = null,
    keepdim: ?bool = null,
    dtype: ?enums.DType = null,
};

/// Options of layernorm.
pub const LayernormOptions = struct {
    eps: ?f32 = null,
    gamma: Tensor = .none,
    beta: Tensor = .none,
    residual: Tensor = .none,
};

/// Options of rmsnorm.
pub const RmsnormOptions = struct {
    eps: ?f32 = null,
    gamma: Tensor = .none,
    residual: Tensor = .none,
};

/// Options of attention.
pub const AttentionOptions = struct {
    causal: ?bool = null,
    scale: ?f32 = null,
    precision: ?enums.Precision = null,
    mask: Tensor = .none,
};

/// Options of ffn.
pub const FfnOptions = struct {
    activation: ?enums.Activation = null,
    precision: ?enums.Precision = null,
    b1: Tensor = .none,
    b2: Tensor = .none,
};

/// Options of transpose.
pub const TransposeOptions = struct {
    perm: ?[]const i32 = null,
};

/// Options of concat.
pub const ConcatOptions = struct {
    axis: ?i32 = null,
};

/// Options of cast.
pub const CastOptions = struct {
    dtype: ?enums.DType = null,
};

/// Options of clamp.
pub const ClampOptions = struct {
    min: ?f32 = null,
    max: ?f32 = null,
};

/// Options of min.
pub const MinOptions = struct {
    axis: ?i32 = null,
    keepdim: ?bool = null,
    axes: ?[]const i32 = null,
};

/// Options of argmin.
pub const ArgminOptions = struct {
    axis: ?i32 = null,
    keepdim: ?bool = null,
    dtype: ?enums.DType = null,
};

/// Options of prod.
pub const ProdOptions = struct {
    axis: ?i32 = null,
    keepdim: ?bool = null,
    axes: ?[]const i32 = null,
};

/// Options of slice.
pub const SliceOptions = struct {
    start: ?[]const i32 = null,
    stop: ?[]const i32 = null,
    step: ?[]const i32 = null,
};

/// Options of pad.
pub const PadOptions = struct {
    before: ?[]const i32 = null,
    after: ?[]const i32 = null,
    step: ?[]const i32 = null,
};

/// Options of gather.
pub const GatherOptions = struct {
    axis: ?i32 = null,
};

/// Options of rope.
pub const RopeOptions = struct {
    interleaved: ?bool = null,
};

/// Options of cumsum.
pub const CumsumOptions = struct {
    axis: ?i32 = null,
};

/// Options of topk.
pub const TopkOptions = struct {
    k: ?i32 = null,
    axis: ?i32 = null,
};

/// Options of argtopk.
pub const ArgtopkOptions = struct {
    k: ?i32 = null,
    axis: ?i32 = null,
    dtype: ?enums.DType = null,
};

/// Options of quantized_matmul.
pub const QuantizedMatmulOptions = struct {
    format: ?enums.BlockFormat = null,
};

/// Options of dequantize.
pub const DequantizeOptions = struct {
    format: ?enums.BlockFormat = null,
};

/// `alpha*(a*b) + beta*c + bias`, then an activation.
pub fn matmul(ctx: Context, a: Tensor, b: Tensor, options: MatmulOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.matmul, "trans_a", options.trans_a);
    try attrs.give(.matmul, "trans_b", options.trans_b);
    try attrs.give(.matmul, "alpha", options.alpha);
    try attrs.give(.matmul, "beta", options.beta);
    try attrs.give(.matmul, "activation", options.activation);
    try attrs.give(.matmul, "precision", options.precision);
    return ctx.run(.matmul, &.{ a, b, options.c, options.bias }, attrs);
}

/// The inner product of two vectors.
pub fn dot(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.dot, &.{ a, b }, .{});
}

/// `a + b`.
pub fn add(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.add, &.{ a, b }, .{});
}

/// `a - b`.
pub fn sub(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.sub, &.{ a, b }, .{});
}

/// `a*b`, element by element.
pub fn mul(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.mul, &.{ a, b }, .{});
}

/// `a / b`.
pub fn div(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.div, &.{ a, b }, .{});
}

/// `x*alpha`.
pub fn scale(ctx: Context, x: Tensor, options: ScaleOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.scale, "alpha", options.alpha);
    return ctx.run(.scale, &.{x}, attrs);
}

/// `-x`.
pub fn neg(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.neg, &.{x}, .{});
}

/// `|x|`.
pub fn abs(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.abs, &.{x}, .{});
}

/// `e^x`.
pub fn exp(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.exp, &.{x}, .{});
}

/// The natural logarithm; NaN if x < 0.
pub fn log(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.log, &.{x}, .{});
}

/// The square root; NaN if x < 0.
pub fn sqrt(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.sqrt, &.{x}, .{});
}

/// `1 / sqrt(x)`.
pub fn rsqrt(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.rsqrt, &.{x}, .{});
}

/// `max(x, 0)`; NaN stays NaN.
pub fn relu(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.relu, &.{x}, .{});
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.sigmoid, &.{x}, .{});
}

/// The hyperbolic tangent.
pub fn tanh(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.tanh, &.{x}, .{});
}

/// The Gaussian error linear unit, with erf or tanh.
pub fn gelu(ctx: Context, x: Tensor, options: GeluOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.gelu, "form", options.form);
    return ctx.run(.gelu, &.{x}, attrs);
}

/// `x*sigmoid(x)`.
pub fn silu(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.silu, &.{x}, .{});
}

/// `e^x` divided by its sum along an axis.
pub fn softmax(ctx: Context, x: Tensor, options: SoftmaxOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.softmax, "axis", options.axis);
    return ctx.run(.softmax, &.{x}, attrs);
}

/// The sum over some or all axes; +0 for no elements.
pub fn sum(ctx: Context, x: Tensor, options: SumOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.sum, "axis", options.axis);
    try attrs.give(.sum, "keepdim", options.keepdim);
    try attrs.give(.sum, "axes", options.axes);
    return ctx.run(.sum, &.{x}, attrs);
}

/// The mean over some or all axes; NaN for no elements.
pub fn mean(ctx: Context, x: Tensor, options: MeanOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.mean, "axis", options.axis);
    try attrs.give(.mean, "keepdim", options.keepdim);
    try attrs.give(.mean, "axes", options.axes);
    return ctx.run(.mean, &.{x}, attrs);
}

/// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
pub fn max(ctx: Context, x: Tensor, options: MaxOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.max, "axis", options.axis);
    try attrs.give(.max, "keepdim", options.keepdim);
    try attrs.give(.max, "axes", options.axes);
    return ctx.run(.max, &.{x}, attrs);
}

/// The index of the first maximum, i64. `invalid_argument` for no elements.
pub fn argmax(ctx: Context, x: Tensor, options: ArgmaxOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.argmax, "axis", options.axis);
    try attrs.give(.argmax, "keepdim", options.keepdim);
    try attrs.give(.argmax, "dtype", options.dtype);
    return ctx.run(.argmax, &.{x}, attrs);
}

/// Normalises mean and variance over the last axis, of x or x + residual.
pub fn layernorm(ctx: Context, x: Tensor, options: LayernormOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.layernorm, "eps", options.eps);
    return ctx.run(.layernorm, &.{ x, options.gamma, options.beta, options.residual }, attrs);
}

/// Normalises the root mean square over the last axis, of x or x + residual.
pub fn rmsnorm(ctx: Context, x: Tensor, options: RmsnormOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.rmsnorm, "eps", options.eps);
    return ctx.run(.rmsnorm, &.{ x, options.gamma, options.residual }, attrs);
}

/// Scaled dot-product attention: values weighted by softmax.
pub fn attention(ctx: Context, q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.attention, "causal", options.causal);
    try attrs.give(.attention, "scale", options.scale);
    try attrs.give(.attention, "precision", options.precision);
    return ctx.run(.attention, &.{ q, k, v, options.mask }, attrs);
}

/// Two matrix products with an activation between them.
pub fn ffn(ctx: Context, x: Tensor, w1: Tensor, w2: Tensor, options: FfnOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.ffn, "activation", options.activation);
    try attrs.give(.ffn, "precision", options.precision);
    return ctx.run(.ffn, &.{ x, w1, options.b1, w2, options.b2 }, attrs);
}

/// Looks up rows of a table by id.
pub fn embedding(ctx: Context, table: Tensor, ids: Tensor) Error!Tensor {
    return ctx.run(.embedding, &.{ table, ids }, .{});
}

/// Permutes the axes.
pub fn transpose(ctx: Context, x: Tensor, options: TransposeOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.transpose, "perm", options.perm);
    return ctx.run(.transpose, &.{x}, attrs);
}

/// Joins tensors along an axis.
pub fn concat(ctx: Context, x: []const Tensor, options: ConcatOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.concat, "axis", options.axis);
    return ctx.run(.concat, x, attrs);
}

/// Converts to another dtype.
pub fn cast(ctx: Context, x: Tensor, options: CastOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.cast, "dtype", options.dtype);
    return ctx.run(.cast, &.{x}, attrs);
}

/// The largest integer <= x.
pub fn floor(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.floor, &.{x}, .{});
}

/// The nearest integer; ties go to even.
pub fn round(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.round, &.{x}, .{});
}

/// The error function.
pub fn erf(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.erf, &.{x}, .{});
}

/// `minimum(maximum(x, min), max)`; NaN propagates, and -0 < +0.
pub fn clamp(ctx: Context, x: Tensor, options: ClampOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.clamp, "min", options.min);
    try attrs.give(.clamp, "max", options.max);
    return ctx.run(.clamp, &.{x}, attrs);
}

/// The larger of a and b; NaN propagates, and -0 < +0.
pub fn maximum(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.maximum, &.{ a, b }, .{});
}

/// The smaller of a and b; NaN propagates, and -0 < +0.
pub fn minimum(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.minimum, &.{ a, b }, .{});
}

/// The sine of x in radians; NaN if x is infinite.
pub fn sin(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.sin, &.{x}, .{});
}

/// The cosine of x in radians; NaN if x is infinite.
pub fn cos(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.cos, &.{x}, .{});
}

/// `log(1 + x)`, also accurate near 0; NaN if x < -1.
pub fn log1p(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.log1p, &.{x}, .{});
}

/// `e^x - 1`, also accurate near 0.
pub fn expm1(ctx: Context, x: Tensor) Error!Tensor {
    return ctx.run(.expm1, &.{x}, .{});
}

/// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
pub fn pow(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.pow, &.{ a, b }, .{});
}

/// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
pub fn min(ctx: Context, x: Tensor, options: MinOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.min, "axis", options.axis);
    try attrs.give(.min, "keepdim", options.keepdim);
    try attrs.give(.min, "axes", options.axes);
    return ctx.run(.min, &.{x}, attrs);
}

/// The index of the first minimum, i64. `invalid_argument` for no elements.
pub fn argmin(ctx: Context, x: Tensor, options: ArgminOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.argmin, "axis", options.axis);
    try attrs.give(.argmin, "keepdim", options.keepdim);
    try attrs.give(.argmin, "dtype", options.dtype);
    return ctx.run(.argmin, &.{x}, attrs);
}

/// The product over some or all axes; 1 for no elements.
pub fn prod(ctx: Context, x: Tensor, options: ProdOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.prod, "axis", options.axis);
    try attrs.give(.prod, "keepdim", options.keepdim);
    try attrs.give(.prod, "axes", options.axes);
    return ctx.run(.prod, &.{x}, attrs);
}

/// Slices every axis from a start to a stop, in steps.
pub fn slice(ctx: Context, x: Tensor, options: SliceOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.slice, "start", options.start);
    try attrs.give(.slice, "stop", options.stop);
    try attrs.give(.slice, "step", options.step);
    return ctx.run(.slice, &.{x}, attrs);
}

/// Pads every axis with a value: before, after and between its elements.
pub fn pad(ctx: Context, x: Tensor, value: Tensor, options: PadOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.pad, "before", options.before);
    try attrs.give(.pad, "after", options.after);
    try attrs.give(.pad, "step", options.step);
    return ctx.run(.pad, &.{ x, value }, attrs);
}

/// Gathers elements along an axis by index.
pub fn gather(ctx: Context, x: Tensor, ids: Tensor, options: GatherOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.gather, "axis", options.axis);
    return ctx.run(.gather, &.{ x, ids }, attrs);
}

/// Rotates pairs of elements of the last axis by angles.
pub fn rope(ctx: Context, x: Tensor, cos_: Tensor, sin_: Tensor, options: RopeOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.rope, "interleaved", options.interleaved);
    return ctx.run(.rope, &.{ x, cos_, sin_ }, attrs);
}

/// The cumulative sums along an axis.
pub fn cumsum(ctx: Context, x: Tensor, options: CumsumOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.cumsum, "axis", options.axis);
    return ctx.run(.cumsum, &.{x}, attrs);
}

/// The k greatest elements along an axis, greatest first; ties go to the lower index.
pub fn topk(ctx: Context, x: Tensor, options: TopkOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.topk, "k", options.k);
    try attrs.give(.topk, "axis", options.axis);
    return ctx.run(.topk, &.{x}, attrs);
}

/// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
pub fn argtopk(ctx: Context, x: Tensor, options: ArgtopkOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.argtopk, "k", options.k);
    try attrs.give(.argtopk, "axis", options.axis);
    try attrs.give(.argtopk, "dtype", options.dtype);
    return ctx.run(.argtopk, &.{x}, attrs);
}

/// Whether a equals b; NaN equals nothing, and -0 equals +0.
pub fn equal(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.equal, &.{ a, b }, .{});
}

/// Whether a differs from b; true for NaN.
pub fn not_equal(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.not_equal, &.{ a, b }, .{});
}

/// Whether `a < b`; false for NaN.
pub fn less(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.less, &.{ a, b }, .{});
}

/// Whether `a <= b`; false for NaN.
pub fn less_equal(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.less_equal, &.{ a, b }, .{});
}

/// Whether `a > b`; false for NaN.
pub fn greater(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.greater, &.{ a, b }, .{});
}

/// Whether `a >= b`; false for NaN.
pub fn greater_equal(ctx: Context, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.greater_equal, &.{ a, b }, .{});
}

/// Selects from a where the condition is true, and from b elsewhere.
pub fn where(ctx: Context, condition: Tensor, a: Tensor, b: Tensor) Error!Tensor {
    return ctx.run(.where, &.{ condition, a, b }, .{});
}

/// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
pub fn quantized_matmul(ctx: Context, x: Tensor, w: Tensor, options: QuantizedMatmulOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.quantized_matmul, "format", options.format);
    return ctx.run(.quantized_matmul, &.{ x, w }, attrs);
}

/// Converts quantised blocks to f32.
pub fn dequantize(ctx: Context, w: Tensor, options: DequantizeOptions) Error!Tensor {
    var attrs: Attrs = .{};
    defer attrs.deinit();
    try attrs.give(.dequantize, "format", options.format);
    return ctx.run(.dequantize, &.{w}, attrs);
}
