//! Linear layers.

use super::{Layer, Weights, placed};
use adead_core::contract::{Activation, Precision};
use adead_core::{Attrs, Context, Error, Op, Packed, Result, Status, Tensor, View};
use std::sync::Arc;

/// Computes `x·Wᵀ + bias` for x of `[…, inputs]`. The weight is prepared once: packed if only the CPU computes, or one GPU in exact
/// integers, else transposed.
/// Products have the context's default precision at the time when the layer is made ([`Context::set_precision`]).
#[derive(Clone)]
pub struct Linear {
    context: Context,
    matrix: Matrix,
    bias: Option<Tensor>,
    inputs: usize,
    outputs: usize,
    precision: Precision,
}

/// The right operand of the product.
#[derive(Clone)]
enum Matrix {
    Packed(Arc<Packed>),
    /// `[inputs, outputs]`.
    Plain(Tensor),
}

impl Linear {
    /// Loads the layer from `PREFIX.weight`, `[outputs, inputs]`, and `PREFIX.bias`, `[outputs]`.
    pub fn load(weights: &Weights, prefix: &str, inputs: usize, outputs: usize, context: &Context) -> Result<Linear> {
        let weight = weights.tensor(&format!("{prefix}.weight"), &[outputs, inputs])?;
        let bias = weights.tensor(&format!("{prefix}.bias"), &[outputs])?;
        Linear::new(&weight, Some(&bias), context)
    }

    /// Makes the layer from a weight `[outputs, inputs]` and a bias `[outputs]`, of f32. `shape_mismatch` if the weight is not a
    /// matrix or the bias does not fit it.
    pub fn new(weight: &Tensor, bias: Option<&Tensor>, context: &Context) -> Result<Linear> {
        let &[outputs, inputs] = weight.dims() else {
            let text = format!("linear: the weight is {}; it must be [outputs, inputs]", weight.shape());
            return Err(Error::new(Status::ShapeMismatch, text));
        };
        if let Some(bias) = bias
            && bias.dims() != [outputs]
        {
            let text = format!("linear: the bias is {} and the weight {}", bias.shape(), weight.shape());
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        let matrix = match context.is_host_only() || context.packs_on_gpu() {
            true => Matrix::Packed(Arc::new(context.pack(weight, true)?)),
            false => Matrix::Plain(placed(context, &context.transpose(weight)?)?),
        };
        // Another thread may have changed the context's precision since the weight was packed.
        let precision = match &matrix {
            Matrix::Packed(packed) => packed.precision(),
            Matrix::Plain(_) => context.precision(),
        };
        let bias = bias.map(|bias| placed(context, bias)).transpose()?;
        Ok(Linear { context: context.clone(), matrix, bias, inputs, outputs, precision })
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the number of values of an input row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of values of an output row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Computes `activation(x·Wᵀ + residual + bias)` as one operation.
    pub fn forward_with(&self, x: &Tensor, residual: Option<&Tensor>, activation: Activation) -> Result<Tensor> {
        let beta = if residual.is_some() { 1.0 } else { 0.0 };
        let attrs = Attrs { beta, activation: Some(activation), precision: Some(self.precision), ..Attrs::default() };
        let matrix = match &self.matrix {
            Matrix::Packed(packed) => View::packed(packed),
            Matrix::Plain(tensor) => tensor.view(),
        };
        let (residual, bias) = (residual.map(Tensor::view), self.bias.as_ref().map(Tensor::view));
        self.context.run_views(Op::Matmul, &attrs, &[Some(x.view()), Some(matrix), residual, bias])
    }
}

impl Layer for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, None, Activation::None)
    }
}
