//! Layer normalisation.

use super::{Array, Device, Layer, Weights};
use adead_core::{Attrs, Op, Result, Tensor};

/// Mean and variance normalised over the last axis, times a weight, plus a bias.
#[derive(Clone)]
pub struct LayerNorm {
    device: Device,
    weight: Array,
    bias: Array,
    eps: f32,
}

impl LayerNorm {
    /// The layer of `PREFIX.weight` and `PREFIX.bias`, both `[width]`; `eps` is added to the variance.
    pub fn load(weights: &Weights, prefix: &str, width: usize, eps: f32, device: &Device) -> Result<LayerNorm> {
        let tensor = |name| weights.tensor(&format!("{prefix}.{name}"), &[width]);
        LayerNorm::new(&tensor("weight")?, &tensor("bias")?, eps, device)
    }

    /// The layer of a weight and a bias, both `[width]`; `eps` is added to the variance.
    pub fn new(weight: &Tensor, bias: &Tensor, eps: f32, device: &Device) -> Result<LayerNorm> {
        Ok(LayerNorm { device: device.clone(), weight: device.array(weight)?, bias: device.array(bias)?, eps })
    }
}

impl Layer for LayerNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        let attrs = Attrs { eps: self.eps, ..Attrs::default() };
        self.device.run(Op::Layernorm, &attrs, &[Some(x), Some(&self.weight), Some(&self.bias)])
    }
}
