//! Linear layers.

use super::{Layer, Weights, placed};
use adead_core::contract::{Activation, Precision};
use adead_core::{Attrs, Context, Error, Op, Packed, Result, Status, Tensor, View};
use std::sync::Arc;

/// `x·Wᵀ + bias` of `[…, inputs]`. The weight is laid out once: packed where the processor computes alone. Its products have the
/// precision that the context has when the layer is made ([`Context::set_precision`]).
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
    /// The layer of `PREFIX.weight`, `[outputs, inputs]`, and `PREFIX.bias`, `[outputs]`.
    pub fn load(weights: &Weights, prefix: &str, inputs: usize, outputs: usize, context: &Context) -> Result<Linear> {
        let weight = weights.tensor(&format!("{prefix}.weight"), &[outputs, inputs])?;
        let bias = weights.tensor(&format!("{prefix}.bias"), &[outputs])?;
        Linear::new(&weight, Some(&bias), context)
    }

    /// The layer of a weight `[outputs, inputs]` and a bias `[outputs]`, of f32. `shape_mismatch` where they don't fit.
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
        let matrix = match context.is_host_only() {
            true => Matrix::Packed(Arc::new(context.pack(weight, true)?)),
            false => Matrix::Plain(placed(context, &context.transpose(weight)?)?),
        };
        // What is packed has a precision already, which another thread may have changed since.
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

    /// Values of a row that it takes.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Values of a row that it returns.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// `activation(x·Wᵀ + residual + bias)`, as one product.
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
