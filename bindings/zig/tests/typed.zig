// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
const adead = @import("adead");
const Tensor = adead.Tensor;

/// Calls an operation's own method with operands that fit; `attrs.take(name, &option)` sets an option if it is given.
pub fn typed(ctx: adead.Context, op: adead.Op, operands: []const Tensor, attrs: anytype) adead.Error!Tensor {
    switch (op) {
        .matmul => {
            var options: adead.operations.MatmulOptions = .{};
            attrs.take("trans_a", &options.trans_a);
            attrs.take("trans_b", &options.trans_b);
            attrs.take("alpha", &options.alpha);
            attrs.take("beta", &options.beta);
            attrs.take("activation", &options.activation);
            attrs.take("precision", &options.precision);
            if (operands.len > 2) options.c = operands[2];
            if (operands.len > 3) options.bias = operands[3];
            return ctx.matmul(operands[0], operands[1], options);
        },
        .dot => {
            return ctx.dot(operands[0], operands[1]);
        },
        .add => {
            return ctx.add(operands[0], operands[1]);
        },
        .sub => {
            return ctx.sub(operands[0], operands[1]);
        },
        .mul => {
            return ctx.mul(operands[0], operands[1]);
        },
        .div => {
            return ctx.div(operands[0], operands[1]);
        },
        .scale => {
            var options: adead.operations.ScaleOptions = .{};
            attrs.take("alpha", &options.alpha);
            return ctx.scale(operands[0], options);
        },
        .neg => {
            return ctx.neg(operands[0]);
        },
        .abs => {
            return ctx.abs(operands[0]);
        },
        .exp => {
            return ctx.exp(operands[0]);
        },
        .log => {
            return ctx.log(operands[0]);
        },
        .sqrt => {
            return ctx.sqrt(operands[0]);
        },
        .rsqrt => {
            return ctx.rsqrt(operands[0]);
        },
        .relu => {
            return ctx.relu(operands[0]);
        },
        .sigmoid => {
            return ctx.sigmoid(operands[0]);
        },
        .tanh => {
            return ctx.tanh(operands[0]);
        },
        .gelu => {
            var options: adead.operations.GeluOptions = .{};
            attrs.take("form", &options.form);
            return ctx.gelu(operands[0], options);
        },
        .silu => {
            return ctx.silu(operands[0]);
        },
        .softmax => {
            var options: adead.operations.SoftmaxOptions = .{};
            attrs.take("axis", &options.axis);
            return ctx.softmax(operands[0], options);
        },
        .sum => {
            var options: adead.operations.SumOptions = .{};
            attrs.take("axis", &options.axis);
            attrs.take("keepdim", &options.keepdim);
            attrs.take("axes", &options.axes);
            return ctx.sum(operands[0], options);
        },
        .mean => {
            var options: adead.operations.MeanOptions = .{};
            attrs.take("axis", &options.axis);
            attrs.take("keepdim", &options.keepdim);
            attrs.take("axes", &options.axes);
            return ctx.mean(operands[0], options);
        },
        .max => {
            var options: adead.operations.MaxOptions = .{};
            attrs.take("axis", &options.axis);
            attrs.take("keepdim", &options.keepdim);
            attrs.take("axes", &options.axes);
            return ctx.max(operands[0], options);
        },
        .argmax => {
            var options: adead.operations.ArgmaxOptions = .{};
            attrs.take("axis", &options.axis);
            attrs.take("keepdim", &options.keepdim);
            attrs.take("dtype", &options.dtype);
            return ctx.argmax(operands[0], options);
        },
        .layernorm => {
            var options: adead.operations.LayernormOptions = .{};
            attrs.take("eps", &options.eps);
            if (operands.len > 1) options.gamma = operands[1];
            if (operands.len > 2) options.beta = operands[2];
            if (operands.len > 3) options.residual = operands[3];
            return ctx.layernorm(operands[0], options);
        },
        .rmsnorm => {
            var options: adead.operations.RmsnormOptions = .{};
            attrs.take("eps", &options.eps);
            if (operands.len > 1) options.gamma = operands[1];
            if (operands.len > 2) options.residual = operands[2];
            return ctx.rmsnorm(operands[0], options);
        },
        .attention => {
            var options: adead.operations.AttentionOptions = .{};
            attrs.take("causal", &options.causal);
            attrs.take("scale", &options.scale);
            attrs.take("precision", &options.precision);
            if (operands.len > 3) options.mask = operands[3];
            return ctx.attention(operands[0], operands[1], operands[2], options);
        },
        .ffn => {
            var options: adead.operations.FfnOptions = .{};
            attrs.take("activation", &options.activation);
            attrs.take("precision", &options.precision);
            if (operands.len > 2) options.b1 = operands[2];
            if (operands.len > 4) options.b2 = operands[4];
            return ctx.ffn(operands[0], operands[1], operands[3], options);
        },
        .embedding => {
            return ctx.embedding(operands[0], operands[1]);
        },
        .transpose => {
            var options: adead.operations.TransposeOptions = .{};
            attrs.take("perm", &options.perm);
            return ctx.transpose(operands[0], options);
        },
        .concat => {
            var options: adead.operations.ConcatOptions = .{};
            attrs.take("axis", &options.axis);
            return ctx.concat(operands, options);
        },
        .cast => {
            var options: adead.operations.CastOptions = .{};
            attrs.take("dtype", &options.dtype);
            return ctx.cast(operands[0], options);
        },
        .floor => {
            return ctx.floor(operands[0]);
        },
        .round => {
            return ctx.round(operands[0]);
        },
        .erf => {
            return ctx.erf(operands[0]);
        },
        .clamp => {
            var options: adead.operations.ClampOptions = .{};
            attrs.take("min", &options.min);
            attrs.take("max", &options.max);
            return ctx.clamp(operands[0], options);
        },
        .maximum => {
            return ctx.maximum(operands[0], operands[1]);
        },
        .minimum => {
            return ctx.minimum(operands[0], operands[1]);
        },
        .sin => {
            return ctx.sin(operands[0]);
        },
        .cos => {
            return ctx.cos(operands[0]);
        },
        .log1p => {
            return ctx.log1p(operands[0]);
        },
        .expm1 => {
            return ctx.expm1(operands[0]);
        },
        .pow => {
            return ctx.pow(operands[0], operands[1]);
        },
        .min => {
            var options: adead.operations.MinOptions = .{};
            attrs.take("axis", &options.axis);
            attrs.take("keepdim", &options.keepdim);
            attrs.take("axes", &options.axes);
            return ctx.min(operands[0], options);
        },
        .argmin => {
            var options: adead.operations.ArgminOptions = .{};
            attrs.take("axis", &options.axis);
            attrs.take("keepdim", &options.keepdim);
            attrs.take("dtype", &options.dtype);
            return ctx.argmin(operands[0], options);
        },
        .prod => {
            var options: adead.operations.ProdOptions = .{};
            attrs.take("axis", &options.axis);
            attrs.take("keepdim", &options.keepdim);
            attrs.take("axes", &options.axes);
            return ctx.prod(operands[0], options);
        },
        .slice => {
            var options: adead.operations.SliceOptions = .{};
            attrs.take("start", &options.start);
            attrs.take("stop", &options.stop);
            attrs.take("step", &options.step);
            return ctx.slice(operands[0], options);
        },
        .pad => {
            var options: adead.operations.PadOptions = .{};
            attrs.take("before", &options.before);
            attrs.take("after", &options.after);
            attrs.take("step", &options.step);
            return ctx.pad(operands[0], operands[1], options);
        },
        .gather => {
            var options: adead.operations.GatherOptions = .{};
            attrs.take("axis", &options.axis);
            return ctx.gather(operands[0], operands[1], options);
        },
        .rope => {
            var options: adead.operations.RopeOptions = .{};
            attrs.take("interleaved", &options.interleaved);
            return ctx.rope(operands[0], operands[1], operands[2], options);
        },
        .cumsum => {
            var options: adead.operations.CumsumOptions = .{};
            attrs.take("axis", &options.axis);
            return ctx.cumsum(operands[0], options);
        },
        .topk => {
            var options: adead.operations.TopkOptions = .{};
            attrs.take("k", &options.k);
            attrs.take("axis", &options.axis);
            return ctx.topk(operands[0], options);
        },
        .argtopk => {
            var options: adead.operations.ArgtopkOptions = .{};
            attrs.take("k", &options.k);
            attrs.take("axis", &options.axis);
            attrs.take("dtype", &options.dtype);
            return ctx.argtopk(operands[0], options);
        },
        .equal => {
            return ctx.equal(operands[0], operands[1]);
        },
        .not_equal => {
            return ctx.not_equal(operands[0], operands[1]);
        },
        .less => {
            return ctx.less(operands[0], operands[1]);
        },
        .less_equal => {
            return ctx.less_equal(operands[0], operands[1]);
        },
        .greater => {
            return ctx.greater(operands[0], operands[1]);
        },
        .greater_equal => {
            return ctx.greater_equal(operands[0], operands[1]);
        },
        .where => {
            return ctx.where(operands[0], operands[1], operands[2]);
        },
        .quantized_matmul => {
            var options: adead.operations.QuantizedMatmulOptions = .{};
            attrs.take("format", &options.format);
            return ctx.quantized_matmul(operands[0], operands[1], options);
        },
        .dequantize => {
            var options: adead.operations.DequantizeOptions = .{};
            attrs.take("format", &options.format);
            return ctx.dequantize(operands[0], options);
        },
        _ => return error.Internal,
    }
}

/// Whether an operation's own method accepts these operands: all required ones, and no surplus.
pub fn fits(op: adead.Op, operands: []const Tensor) bool {
    const there = struct {
        fn at(all: []const Tensor, i: usize) bool {
            return i < all.len and all[i].handle != null;
        }
    }.at;
    return switch (op) {
        .matmul => operands.len <= 4 and there(operands, 0) and there(operands, 1),
        .dot => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .add => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .sub => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .mul => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .div => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .scale => operands.len <= 1 and there(operands, 0),
        .neg => operands.len <= 1 and there(operands, 0),
        .abs => operands.len <= 1 and there(operands, 0),
        .exp => operands.len <= 1 and there(operands, 0),
        .log => operands.len <= 1 and there(operands, 0),
        .sqrt => operands.len <= 1 and there(operands, 0),
        .rsqrt => operands.len <= 1 and there(operands, 0),
        .relu => operands.len <= 1 and there(operands, 0),
        .sigmoid => operands.len <= 1 and there(operands, 0),
        .tanh => operands.len <= 1 and there(operands, 0),
        .gelu => operands.len <= 1 and there(operands, 0),
        .silu => operands.len <= 1 and there(operands, 0),
        .softmax => operands.len <= 1 and there(operands, 0),
        .sum => operands.len <= 1 and there(operands, 0),
        .mean => operands.len <= 1 and there(operands, 0),
        .max => operands.len <= 1 and there(operands, 0),
        .argmax => operands.len <= 1 and there(operands, 0),
        .layernorm => operands.len <= 4 and there(operands, 0),
        .rmsnorm => operands.len <= 3 and there(operands, 0),
        .attention => operands.len <= 4 and there(operands, 0) and there(operands, 1) and there(operands, 2),
        .ffn => operands.len <= 5 and there(operands, 0) and there(operands, 1) and there(operands, 3),
        .embedding => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .transpose => operands.len <= 1 and there(operands, 0),
        .concat => for (operands) |one| {
            if (one.handle == null) break false;
        } else true,
        .cast => operands.len <= 1 and there(operands, 0),
        .floor => operands.len <= 1 and there(operands, 0),
        .round => operands.len <= 1 and there(operands, 0),
        .erf => operands.len <= 1 and there(operands, 0),
        .clamp => operands.len <= 1 and there(operands, 0),
        .maximum => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .minimum => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .sin => operands.len <= 1 and there(operands, 0),
        .cos => operands.len <= 1 and there(operands, 0),
        .log1p => operands.len <= 1 and there(operands, 0),
        .expm1 => operands.len <= 1 and there(operands, 0),
        .pow => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .min => operands.len <= 1 and there(operands, 0),
        .argmin => operands.len <= 1 and there(operands, 0),
        .prod => operands.len <= 1 and there(operands, 0),
        .slice => operands.len <= 1 and there(operands, 0),
        .pad => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .gather => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .rope => operands.len <= 3 and there(operands, 0) and there(operands, 1) and there(operands, 2),
        .cumsum => operands.len <= 1 and there(operands, 0),
        .topk => operands.len <= 1 and there(operands, 0),
        .argtopk => operands.len <= 1 and there(operands, 0),
        .equal => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .not_equal => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .less => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .less_equal => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .greater => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .greater_equal => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .where => operands.len <= 3 and there(operands, 0) and there(operands, 1) and there(operands, 2),
        .quantized_matmul => operands.len <= 2 and there(operands, 0) and there(operands, 1),
        .dequantize => operands.len <= 1 and there(operands, 0),
        _ => false,
    };
}
