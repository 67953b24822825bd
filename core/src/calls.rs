//! Direct calls: every operation as a method of [`Context`]. Each builds a command; none has a rule of its own.

use crate::context::Context;
use crate::contract::{Activation, BlockFormat, GeluForm, Precision};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::Packed;
use crate::operand::View;
use crate::ops::{Attrs, Axis, Gives, Op, OpKind, PerAxis, Permutation, table};
use crate::tensor::Tensor;

/// Options of [`Context::matmul_with`]. `Default` is a plain product.
#[derive(Clone, Copy, Debug)]
pub struct MatmulOptions<'a> {
    /// a is stored transposed, `[…, K, M]`.
    pub trans_a: bool,
    /// b is stored transposed, `[…, N, K]`.
    pub trans_b: bool,
    /// The factor of the product.
    pub alpha: f32,
    /// The factor of `c`; with 0, `c` is not read.
    pub beta: f32,
    /// The tensor that beta multiplies; broadcast to the result.
    pub c: Option<&'a Tensor>,
    /// Added to every row, `[N]`.
    pub bias: Option<&'a Tensor>,
    /// The function applied last.
    pub activation: Activation,
    /// The precision of the product; `None` is the context's default, initially f32.
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

/// Options of [`Context::attention_with`]. `Default` is plain attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Query i sees key j when j ≤ i + (Sk − Sq).
    pub causal: bool,
    /// The factor of the scores; `None` is 1/sqrt(D).
    pub scale: Option<f32>,
    /// Added to the scaled scores; broadcast to `[…, H, Sq, Sk]`.
    pub mask: Option<&'a Tensor>,
    /// The precision of both products; `None` is the context's default, initially f32.
    pub precision: Option<Precision>,
}

macro_rules! methods {
    (
        unary { $($(#[$unary_doc:meta])* $unary:ident = $unary_number:literal $unary_name:ident
            ($($attr:ident: $attr_type:ty),*): $unary_family:ident $unary_flops:literal, $of_x:tt $($of_x_integers:ident)?;)* }
        binary { $($(#[$binary_doc:meta])* $binary:ident = $binary_number:literal $binary_name:ident:
            $binary_family:ident $binary_flops:literal, $of_both:tt $($of_both_integers:ident)?;)* }
        comparison { $($(#[$comparison_doc:meta])* $comparison:ident = $comparison_number:literal $comparison_name:ident:
            $comparison_family:ident $comparison_flops:literal, $truths:literal;)* }
        reduction { $($(#[$reduction_doc:meta])* $reduction:ident = $reduction_number:literal
            $reduction_name:ident: $reduction_family:ident, $function:ident = $function_number:literal $gives:ident $($reduction_integers:ident)?;)* }
        own $own:tt
    ) => {
        /// Elementwise operations of one operand of any shape: f32, f16 or bf16; `neg` and `abs` also of integers and bools.
        /// `dtype_mismatch` for other dtypes.
        impl Context {
            $($(#[$unary_doc])* pub fn $unary_name(&self, x: &Tensor $(, $attr: $attr_type)*) -> Result<Tensor> {
                self.run(Op::$unary, &Attrs { $($attr,)* ..Attrs::DEFAULT }, &[Some(x)])
            })*
        }

        /// Arithmetic of two operands with NumPy's broadcasting. Integers and bools are exact and wrap around; `div` rounds them
        /// down, and by 0 it gives 0. `shape_mismatch` if the operands don't broadcast, `dtype_mismatch` if their dtypes
        /// differ, or are integers in `pow`.
        impl Context {
            $($(#[$binary_doc])* pub fn $binary_name(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
                self.run(Op::$binary, &Attrs::DEFAULT, &[Some(a), Some(b)])
            })*
        }

        /// Comparisons of two operands of the same dtype with NumPy's broadcasting. The result is bool. `shape_mismatch` if they
        /// don't broadcast, `dtype_mismatch` if their dtypes differ.
        impl Context {
            $($(#[$comparison_doc])* pub fn $comparison_name(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
                self.run(Op::$comparison, &Attrs::default(), &[Some(a), Some(b)])
            })*
        }

        /// Reductions along an axis (`Axis::At(-1)`) or all axes (`Axis::All`); `keepdim` keeps them with length 1. All but
        /// `mean` take integers and bools too, whose sums and products wrap around. [`Context::reduce`] takes several axes.
        impl Context {
            $($(#[$reduction_doc])*
            pub fn $reduction_name(&self, x: &Tensor, axis: Axis, keepdim: bool) -> Result<Tensor> {
                self.run(Op::$reduction, &Attrs { axis, keepdim, ..Attrs::default() }, &[Some(x)])
            })*
        }
    };
}
table!(methods);

/// The other operations. `docs/operations.md` has shapes, attributes and errors.
impl Context {
    /// Multiplies matrices: `[…, M, K]` by `[…, K, N]`. Leading dimensions are broadcast.
    pub fn matmul(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.matmul_with(a, b, MatmulOptions::default())
    }

    /// Computes `activation(alpha·(a·b) + beta·c + bias)`.
    pub fn matmul_with(&self, a: &Tensor, b: &Tensor, options: MatmulOptions<'_>) -> Result<Tensor> {
        self.run(Op::Matmul, &options.attrs(), &[Some(a), Some(b), options.c, options.bias])
    }

    /// Works like [`Context::matmul_with`], with a b that [`Context::pack`] made, here or in a context of the same instruction set.
    /// The result is the same, without the time for packing. Leading dimensions are a's; `trans_b` must be false.
    /// `invalid_argument` if b was packed for another instruction set.
    pub fn matmul_packed(&self, a: &Tensor, b: &Packed, options: MatmulOptions<'_>) -> Result<Tensor> {
        let (c, bias) = (options.c.map(Tensor::view), options.bias.map(Tensor::view));
        let inputs = [Some(a.view()), Some(View::packed(b)), c, bias];
        self.run_views(Op::Matmul, &options.attrs(), &inputs)
    }

    /// Computes the inner product of two vectors, a scalar.
    pub fn dot(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.run(Op::Dot, &Attrs::DEFAULT, &[Some(a), Some(b)])
    }

    /// Reduces several axes at once (negative ones count from the end): `sum`, `mean`, `max`, `min` or `prod`. The bits equal
    /// those of one line with the elements of the axes in row-major order.
    pub fn reduce(&self, op: Op, x: &Tensor, axes: &[i32], keepdim: bool) -> Result<Tensor> {
        if op.kind() != OpKind::Reduction || op.gives() == Some(Gives::Index) {
            fail!(InvalidArgument, "reduce: {op} does not reduce along several axes at once");
        }
        self.run(op, &Attrs { axes: Permutation::new(axes)?, keepdim, ..Attrs::default() }, &[Some(x)])
    }

    /// Computes e^x divided by its sum along an axis; negative axes count from the end.
    pub fn softmax(&self, x: &Tensor, axis: i32) -> Result<Tensor> {
        self.run(Op::Softmax, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// Normalises mean and variance over the last axis, then computes `·gamma + beta` if given.
    pub fn layernorm(&self, x: &Tensor, gamma: Option<&Tensor>, beta: Option<&Tensor>, eps: f32) -> Result<Tensor> {
        self.run(Op::Layernorm, &Attrs { eps, ..Attrs::default() }, &[Some(x), gamma, beta])
    }

    /// Computes `layernorm` of x + residual, of the same shape. The bits equal those of [`Context::add`] followed by it.
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

    /// Normalises the root mean square over the last axis, then computes `·gamma` if given.
    pub fn rmsnorm(&self, x: &Tensor, gamma: Option<&Tensor>, eps: f32) -> Result<Tensor> {
        self.run(Op::Rmsnorm, &Attrs { eps, ..Attrs::default() }, &[Some(x), gamma])
    }

    /// Computes `rmsnorm` of x + residual, of the same shape. The bits equal those of [`Context::add`] followed by it.
    pub fn add_rmsnorm(&self, x: &Tensor, residual: &Tensor, gamma: Option<&Tensor>, eps: f32) -> Result<Tensor> {
        self.run(Op::Rmsnorm, &Attrs { eps, ..Attrs::default() }, &[Some(x), gamma, Some(residual)])
    }

    /// Computes scaled dot-product attention: q `[…, Hq, Sq, D]`, k `[…, Hkv, Sk, D]`, v `[…, Hkv, Sk, Dv]`.
    pub fn attention(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        self.attention_with(q, k, v, AttentionOptions::default())
    }

    /// Computes attention with a causal mask, a scale, an additive mask or a precision.
    pub fn attention_with(&self, q: &Tensor, k: &Tensor, v: &Tensor, options: AttentionOptions<'_>) -> Result<Tensor> {
        let AttentionOptions { causal, scale, mask, precision } = options;
        let attrs = Attrs { causal, scale: scale.unwrap_or(0.0), precision, ..Attrs::default() };
        self.run(Op::Attention, &attrs, &[Some(q), Some(k), Some(v), mask])
    }

    /// Computes `activation(x·w1 + b1)·w2 + b2`.
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

    /// Looks up rows of a table by id (i32, i64 or u32). `invalid_argument` for an id outside the table.
    pub fn embedding(&self, table: &Tensor, ids: &Tensor) -> Result<Tensor> {
        self.run(Op::Embedding, &Attrs::DEFAULT, &[Some(table), Some(ids)])
    }

    /// Reverses the axes.
    pub fn transpose(&self, x: &Tensor) -> Result<Tensor> {
        self.run(Op::Transpose, &Attrs::DEFAULT, &[Some(x)])
    }

    /// Permutes the axes: axis i of the result is axis `axes[i]` of x. Negative axes count
    /// from the end.
    pub fn permute(&self, x: &Tensor, axes: &[i32]) -> Result<Tensor> {
        let perm = Permutation::new(axes)?;
        self.run(Op::Transpose, &Attrs { perm, ..Attrs::default() }, &[Some(x)])
    }

    /// Joins tensors along an axis.
    pub fn concat(&self, tensors: &[&Tensor], axis: i32) -> Result<Tensor> {
        let operands: Vec<_> = tensors.iter().map(|tensor| Some(*tensor)).collect();
        self.run(Op::Concat, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &operands)
    }

    /// Slices every axis from a start to a stop, in steps of at least 1. Lists are for the first axes; on the others the start is
    /// 0, the stop the end and the step 1. Negative starts and stops count from the end; those outside an axis are clamped.
    pub fn slice(&self, x: &Tensor, start: &[i32], stop: &[i32], step: &[i32]) -> Result<Tensor> {
        let (start, stop, step) = (PerAxis::new(start)?, PerAxis::new(stop)?, PerAxis::new(step)?);
        self.run(Op::Slice, &Attrs { start, stop, step, ..Attrs::default() }, &[Some(x)])
    }

    /// Pads the first axes with `before` and `after` elements, copies of the one element of `value`. Elements of x are `step` apart
    /// (1 if the list is shorter), with copies of `value` between them.
    pub fn pad(&self, x: &Tensor, value: &Tensor, before: &[i32], after: &[i32], step: &[i32]) -> Result<Tensor> {
        let (start, stop, step) = (PerAxis::new(before)?, PerAxis::new(after)?, PerAxis::new(step)?);
        self.run(Op::Pad, &Attrs { start, stop, step, ..Attrs::default() }, &[Some(x), Some(value)])
    }

    /// Gathers elements along an axis by index (i32, i64 or u32). The result has the shape of `ids`: x's, except along the axis.
    /// `invalid_argument` for an index outside the axis.
    pub fn gather(&self, x: &Tensor, ids: &Tensor, axis: i32) -> Result<Tensor> {
        self.run(Op::Gather, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &[Some(x), Some(ids)])
    }

    /// Selects from a where the condition, a bool tensor, is true, and from b elsewhere, with NumPy's broadcasting. a and b have
    /// the same dtype, of any kind, and keep their bits.
    pub fn where_(&self, condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.run(Op::Where, &Attrs::default(), &[Some(condition), Some(a), Some(b)])
    }

    /// Rotates pairs of elements of x's last axis, of even length, by angles: `(a·cos − b·sin, b·cos + a·sin)`. A pair (a, b) is
    /// element i of each half or, if `interleaved`, elements 2i and 2i + 1. `cos` and `sin` broadcast to x's shape with the last
    /// dimension halved, such as `[S, D/2]` for x `[B, H, S, D]`.
    pub fn rope(&self, x: &Tensor, cos: &Tensor, sin: &Tensor, interleaved: bool) -> Result<Tensor> {
        self.run(Op::Rope, &Attrs { interleaved, ..Attrs::default() }, &[Some(x), Some(cos), Some(sin)])
    }

    /// Computes the product of x `[…, K]`, f32, and the transpose of w, a matrix `[N, K]` of quantised blocks. w is a u8 tensor `[N,
    /// bytes of a row]`, as a GGUF file has it. The result is `[…, N]`, f32. The call cuts x into blocks of 8-bit integers, as long as
    /// the format's; sums in a block are exact. `shape_mismatch` unless w's rows have K elements.
    pub fn quantized_matmul(&self, x: &Tensor, w: &Tensor, format: BlockFormat) -> Result<Tensor> {
        self.run(Op::QuantizedMatmul, &Attrs { format: Some(format), ..Attrs::default() }, &[Some(x), Some(w)])
    }

    /// Converts a u8 tensor `[…, bytes of a row]` of quantised blocks to f32, `[…, K]`.
    pub fn dequantize(&self, w: &Tensor, format: BlockFormat) -> Result<Tensor> {
        self.run(Op::Dequantize, &Attrs { format: Some(format), ..Attrs::default() }, &[Some(w)])
    }

    /// Computes the cumulative sums along an axis; negative axes count from the end.
    pub fn cumsum(&self, x: &Tensor, axis: i32) -> Result<Tensor> {
        self.run(Op::Cumsum, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// Returns the k greatest elements along an axis, greatest first, in the order of [`Context::max`]: NaN comes first. Ties go
    /// to the lower index. `invalid_argument` if the axis has fewer than k elements.
    pub fn topk(&self, x: &Tensor, k: u32, axis: i32) -> Result<Tensor> {
        self.run(Op::Topk, &Attrs { k, axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// Returns the indices, i64, of the elements that [`Context::topk`] returns.
    pub fn argtopk(&self, x: &Tensor, k: u32, axis: i32) -> Result<Tensor> {
        self.run(Op::Argtopk, &Attrs { k, axis: Axis::At(axis), ..Attrs::default() }, &[Some(x)])
    }

    /// Converts to another dtype.
    pub fn cast(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        self.run(Op::Cast, &Attrs { dtype: Some(dtype), ..Attrs::default() }, &[Some(x)])
    }
}
