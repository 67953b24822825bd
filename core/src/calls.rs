//! Direct calls: every operation as a method of [`Context`]. Each builds a command; none has a rule of its own.

use crate::context::Context;
use crate::contract::{Activation, GeluForm, Precision};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::Packed;
use crate::operand::View;
use crate::ops::{Attrs, Axis, Gives, Op, OpKind, PerAxis, Permutation, table};
use crate::tensor::Tensor;

/// What [`Context::matmul_with`] can do besides multiplying. `Default` is a plain product.
#[derive(Clone, Copy, Debug)]
pub struct MatmulOptions<'a> {
    /// a is stored transposed, `[…, K, M]`.
    pub trans_a: bool,
    /// b is stored transposed, `[…, N, K]`.
    pub trans_b: bool,
    /// The product is multiplied by this.
    pub alpha: f32,
    /// `c` is multiplied by this and added; 0 leaves it unread.
    pub beta: f32,
    /// Added times beta; broadcast to the result.
    pub c: Option<&'a Tensor>,
    /// Added to every row, `[N]`.
    pub bias: Option<&'a Tensor>,
    /// Applied last.
    pub activation: Activation,
    /// How the product is computed; `None` is what the context has, f32 unless it was set.
    pub precision: Option<Precision>,
}

impl Default for MatmulOptions<'_> {
    fn default() -> Self {
        let attrs = Attrs::default();
        MatmulOptions {
            trans_a: attrs.trans_a,
            trans_b: attrs.trans_b,
            alpha: attrs.alpha,
            beta: attrs.beta,
            c: None,
            bias: None,
            activation: Activation::None,
            precision: attrs.precision,
        }
    }
}

impl MatmulOptions<'_> {
    /// All but the operands.
    fn attrs(&self) -> Attrs {
        let MatmulOptions { trans_a, trans_b, alpha, beta, activation, precision, .. } = *self;
        Attrs { trans_a, trans_b, alpha, beta, activation: Some(activation), precision, ..Attrs::default() }
    }
}

/// What [`Context::attention_with`] can do besides attending to every key. `Default` is plain attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Query i sees key j when j ≤ i + (Sk − Sq).
    pub causal: bool,
    /// The factor of the scores; `None` is 1/sqrt(D).
    pub scale: Option<f32>,
    /// Added to the scaled scores; broadcast to `[…, H, Sq, Sk]`.
    pub mask: Option<&'a Tensor>,
}

macro_rules! methods {
    (
        unary { $($(#[$unary_doc:meta])* $unary:ident = $unary_number:literal $unary_name:ident
            ($($attr:ident: $attr_type:ty),*): $unary_family:ident $unary_flops:literal, $of_x:tt;)* }
        binary { $($(#[$binary_doc:meta])* $binary:ident = $binary_number:literal $binary_name:ident:
            $binary_family:ident $binary_flops:literal, $of_both:tt;)* }
        comparison { $($(#[$comparison_doc:meta])* $comparison:ident = $comparison_number:literal $comparison_name:ident:
            $comparison_family:ident $comparison_flops:literal, $truths:literal;)* }
        reduction { $($(#[$reduction_doc:meta])* $reduction:ident = $reduction_number:literal
            $reduction_name:ident: $reduction_family:ident, $function:ident = $function_number:literal $gives:ident;)* }
        own $own:tt
    ) => {
        /// Elementwise operations of one operand: any shape, f32, f16 or bf16. `dtype_mismatch` for integers.
        impl Context {
            $($(#[$unary_doc])* pub fn $unary_name(&self, x: &Tensor $(, $attr: $attr_type)*) -> Result<Tensor> {
                self.run(Op::$unary, &Attrs { $($attr,)* ..Attrs::DEFAULT }, &[Some(x)])
            })*
        }

        /// Arithmetic of two operands with NumPy's broadcasting. `shape_mismatch` where they don't broadcast,
        /// `dtype_mismatch` where they differ or are integers.
        impl Context {
            $($(#[$binary_doc])* pub fn $binary_name(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
                self.run(Op::$binary, &Attrs::DEFAULT, &[Some(a), Some(b)])
            })*
        }

        /// Comparisons of two operands of one dtype with NumPy's broadcasting: bool tensors. `shape_mismatch` where they don't
        /// broadcast, `dtype_mismatch` where they differ.
        impl Context {
            $($(#[$comparison_doc])* pub fn $comparison_name(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
                self.run(Op::$comparison, &Attrs::default(), &[Some(a), Some(b)])
            })*
        }

        /// Reductions along an axis (`Axis::At(-1)`) or of everything (`Axis::All`); `keepdim` leaves a 1 in its place.
        /// [`Context::reduce`] takes several axes.
        impl Context {
            $($(#[$reduction_doc])*
            pub fn $reduction_name(&self, x: &Tensor, axis: Axis, keepdim: bool) -> Result<Tensor> {
                self.run(Op::$reduction, &Attrs { axis, keepdim, ..Attrs::default() }, &[Some(x)])
            })*
        }
    };
}
table!(methods);

/// Everything else. Shapes, attributes and errors are in `docs/operations.md`.
impl Context {
    /// The matrix product of `[…, M, K]` and `[…, K, N]`; leading dimensions broadcast.
    pub fn matmul(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.matmul_with(a, b, MatmulOptions::default())
    }

    /// `activation(alpha·(a·b) + beta·c + bias)`.
    pub fn matmul_with(&self, a: &Tensor, b: &Tensor, options: MatmulOptions<'_>) -> Result<Tensor> {
        self.run(Op::Matmul, &options.attrs(), &[Some(a), Some(b), options.c, options.bias])
    }

    /// [`Context::matmul_with`] with a b that [`Context::pack`] made, here or in a context of the same instruction set:
    /// the same result, and no time spent on packing. Leading dimensions are a's; `trans_b` must be false.
    /// `invalid_argument` if b was packed for another instruction set.
    pub fn matmul_packed(&self, a: &Tensor, b: &Packed, options: MatmulOptions<'_>) -> Result<Tensor> {
        let (c, bias) = (options.c.map(Tensor::view), options.bias.map(Tensor::view));
        let inputs = [Some(a.view()), Some(View::packed(b)), c, bias];
        self.run_views(Op::Matmul, &options.attrs(), &inputs)
    }

    /// The inner product of two vectors, a scalar.
    pub fn dot(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.run(Op::Dot, &Attrs::DEFAULT, &[Some(a), Some(b)])
    }

    /// A reduction along several axes at once (negative ones count from the end): `sum`, `mean`, `max`, `min` or `prod`. Bits are
    /// those of one line that has the elements of the axes in row-major order.
    pub fn reduce(&self, op: Op, x: &Tensor, axes: &[i32], keepdim: bool) -> Result<Tensor> {
        if op.kind() != OpKind::Reduction || op.gives() == Some(Gives::Index) {
            fail!(InvalidArgument, "reduce: {op} does not reduce along several axes at once");
        }
        self.run(op, &Attrs { axes: Permutation::new(axes)?, keepdim, ..Attrs::default() }, &[Some(x)])
    }

    /// e^x over its sum along an axis; negative axes count from the end.
    pub fn softmax(&self, x: &Tensor, axis: i32) -> Result<Tensor> {
        self.run(Op::Softmax, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// Mean and variance normalised over the last axis, then `·gamma + beta` where given.
    pub fn layernorm(&self, x: &Tensor, gamma: Option<&Tensor>, beta: Option<&Tensor>, eps: f32) -> Result<Tensor> {
        self.run(Op::Layernorm, &Attrs { eps, ..Attrs::default() }, &[Some(x), gamma, beta])
    }

    /// `layernorm` of x + residual, which have one shape: the bits are those of [`Context::add`] followed by it.
    pub fn add_layernorm(
        &self,
        x: &Tensor,
        residual: &Tensor,
        gamma: Option<&Tensor>,
        beta: Option<&Tensor>,
        eps: f32,
    ) -> Result<Tensor> {
        self.run(Op::Layernorm, &Attrs { eps, ..Attrs::default() }, &[Some(x), gamma, beta, Some(residual)])
    }

    /// The root mean square normalised over the last axis, then `·gamma` where given.
    pub fn rmsnorm(&self, x: &Tensor, gamma: Option<&Tensor>, eps: f32) -> Result<Tensor> {
        self.run(Op::Rmsnorm, &Attrs { eps, ..Attrs::default() }, &[Some(x), gamma])
    }

    /// `rmsnorm` of x + residual, which have one shape: the bits are those of [`Context::add`] followed by it.
    pub fn add_rmsnorm(&self, x: &Tensor, residual: &Tensor, gamma: Option<&Tensor>, eps: f32) -> Result<Tensor> {
        self.run(Op::Rmsnorm, &Attrs { eps, ..Attrs::default() }, &[Some(x), gamma, Some(residual)])
    }

    /// Scaled dot-product attention: q `[…, Hq, Sq, D]`, k `[…, Hkv, Sk, D]`, v `[…, Hkv, Sk, Dv]`.
    pub fn attention(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        self.attention_with(q, k, v, AttentionOptions::default())
    }

    /// Attention with causality, a scale, a mask.
    pub fn attention_with(&self, q: &Tensor, k: &Tensor, v: &Tensor, options: AttentionOptions<'_>) -> Result<Tensor> {
        let AttentionOptions { causal, scale, mask } = options;
        let attrs = Attrs { causal, scale: scale.unwrap_or(0.0), ..Attrs::default() };
        self.run(Op::Attention, &attrs, &[Some(q), Some(k), Some(v), mask])
    }

    /// `activation(x·w1 + b1)·w2 + b2`.
    pub fn ffn(
        &self,
        x: &Tensor,
        (w1, b1): (&Tensor, Option<&Tensor>),
        (w2, b2): (&Tensor, Option<&Tensor>),
        activation: Activation,
    ) -> Result<Tensor> {
        let attrs = Attrs { activation: Some(activation), ..Attrs::default() };
        self.run(Op::Ffn, &attrs, &[Some(x), Some(w1), b1, Some(w2), b2])
    }

    /// Rows of a table by id (i32, i64 or u32). `invalid_argument` for an id outside the table.
    pub fn embedding(&self, table: &Tensor, ids: &Tensor) -> Result<Tensor> {
        self.run(Op::Embedding, &Attrs::DEFAULT, &[Some(table), Some(ids)])
    }

    /// The axes reversed.
    pub fn transpose(&self, x: &Tensor) -> Result<Tensor> {
        self.run(Op::Transpose, &Attrs::DEFAULT, &[Some(x)])
    }

    /// The axes in another order: axis i of the result is axis `axes[i]` of x, negative ones
    /// counted from the end.
    pub fn permute(&self, x: &Tensor, axes: &[i32]) -> Result<Tensor> {
        let perm = Permutation::new(axes)?;
        self.run(Op::Transpose, &Attrs { perm, ..Attrs::default() }, &[Some(x)])
    }

    /// Tensors joined along an axis.
    pub fn concat(&self, tensors: &[&Tensor], axis: i32) -> Result<Tensor> {
        let operands: Vec<_> = tensors.iter().map(|tensor| Some(*tensor)).collect();
        self.run(Op::Concat, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &operands)
    }

    /// Every axis from a start to a stop, by steps of at least 1. Lists are for the first axes: behind them starts are 0, stops the
    /// axes' ends and steps 1. Negative starts and stops count from the end; those outside an axis are its ends.
    pub fn slice(&self, x: &Tensor, start: &[i32], stop: &[i32], step: &[i32]) -> Result<Tensor> {
        let (start, stop, step) = (PerAxis::new(start)?, PerAxis::new(stop)?, PerAxis::new(step)?);
        self.run(Op::Slice, &Attrs { start, stop, step, ..Attrs::default() }, &[Some(x)])
    }

    /// `before` and `after` elements put around the first axes: those of `value`, which has one element.
    pub fn pad(&self, x: &Tensor, value: &Tensor, before: &[i32], after: &[i32]) -> Result<Tensor> {
        let (start, stop) = (PerAxis::new(before)?, PerAxis::new(after)?);
        self.run(Op::Pad, &Attrs { start, stop, ..Attrs::default() }, &[Some(x), Some(value)])
    }

    /// Elements along an axis by index (i32, i64 or u32): the result has the shape of `ids`, which is x's but for the axis.
    /// `invalid_argument` for an index outside the axis.
    pub fn gather(&self, x: &Tensor, ids: &Tensor, axis: i32) -> Result<Tensor> {
        self.run(Op::Gather, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &[Some(x), Some(ids)])
    }

    /// Elements of a where the condition, a bool tensor, is true, and of b elsewhere, with NumPy's broadcasting: a and b are of one
    /// dtype, which may be any, and keep their bits.
    pub fn where_(&self, condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.run(Op::Where, &Attrs::default(), &[Some(condition), Some(a), Some(b)])
    }

    /// Pairs of elements of x's last axis, of even length, turned by angles: `(a·cos − b·sin, b·cos + a·sin)`. A pair (a, b) is
    /// element i of each half or, `interleaved`, elements 2i and 2i + 1. `cos` and `sin` broadcast to x's shape with the last
    /// dimension halved, such as `[S, D/2]` for x `[B, H, S, D]`.
    pub fn rope(&self, x: &Tensor, cos: &Tensor, sin: &Tensor, interleaved: bool) -> Result<Tensor> {
        self.run(Op::Rope, &Attrs { interleaved, ..Attrs::default() }, &[Some(x), Some(cos), Some(sin)])
    }

    /// The sums of an axis's elements up to each; negative axes count from the end.
    pub fn cumsum(&self, x: &Tensor, axis: i32) -> Result<Tensor> {
        self.run(Op::Cumsum, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// The k greatest elements along an axis, the greatest first, in the order of [`Context::max`]: NaN comes first, and of equals
    /// the one with the lower index. `invalid_argument` where the axis has fewer.
    pub fn topk(&self, x: &Tensor, k: u32, axis: i32) -> Result<Tensor> {
        self.run(Op::Topk, &Attrs { k, axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// The indices, i64, of what [`Context::topk`] gives.
    pub fn argtopk(&self, x: &Tensor, k: u32, axis: i32) -> Result<Tensor> {
        self.run(Op::Argtopk, &Attrs { k, axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// Another element type.
    pub fn cast(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        self.run(Op::Cast, &Attrs { dtype: Some(dtype), ..Attrs::default() }, &[Some(x)])
    }
}
