//! Linear layers.

use super::device::Matrix;
use super::{Array, Device, Layer, Weights};
use adead_core::contract::Activation;
use adead_core::{Error, Result, Status, Tensor};

/// `x·Wᵀ + bias` of `[…, inputs]`, laid out once for its device.
#[derive(Clone)]
pub struct Linear {
    device: Device,
    matrix: Matrix,
    bias: Option<Array>,
    inputs: usize,
    outputs: usize,
}

impl Linear {
    /// The layer of `PREFIX.weight`, `[outputs, inputs]`, and `PREFIX.bias`, `[outputs]`.
    pub fn load(weights: &Weights, prefix: &str, inputs: usize, outputs: usize, device: &Device) -> Result<Linear> {
        let weight = weights.tensor(&format!("{prefix}.weight"), &[outputs, inputs])?;
        let bias = weights.tensor(&format!("{prefix}.bias"), &[outputs])?;
        Linear::new(&weight, Some(&bias), device)
    }

    /// The layer of a weight `[outputs, inputs]` and a bias `[outputs]`, of f32. `shape_mismatch` where they don't fit.
    pub fn new(weight: &Tensor, bias: Option<&Tensor>, device: &Device) -> Result<Linear> {
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
        let (matrix, bias) = (device.matrix(weight, true)?, bias.map(|bias| device.array(bias)).transpose()?);
        Ok(Linear { device: device.clone(), matrix, bias, inputs, outputs })
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
    pub fn forward_with(&self, x: &Array, residual: Option<&Array>, activation: Activation) -> Result<Array> {
        self.device.product(x, &self.matrix, residual, self.bias.as_ref(), activation)
    }
}

impl Layer for Linear {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_with(x, None, Activation::None)
    }
}
