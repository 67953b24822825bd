//! Layer normalisation.

use super::{Layer, Weights, placed};
use adead_core::{Context, Result, Tensor};

/// Normalises mean and variance over the last axis, multiplies by a weight and adds a bias.
#[derive(Clone)]
pub struct LayerNorm {
    context: Context,
    weight: Tensor,
    bias: Tensor,
    eps: f32,
}

impl LayerNorm {
    /// Loads the layer from `PREFIX.weight` and `PREFIX.bias`, both `[width]`. `eps` is added to the variance.
    pub fn load(weights: &Weights, prefix: &str, width: usize, eps: f32, context: &Context) -> Result<LayerNorm> {
        let tensor = |name| weights.tensor(&format!("{prefix}.{name}"), &[width]);
        LayerNorm::new(&tensor("weight")?, &tensor("bias")?, eps, context)
    }

    /// Makes the layer from a weight and a bias, both `[width]`. `eps` is added to the variance.
    pub fn new(weight: &Tensor, bias: &Tensor, eps: f32, context: &Context) -> Result<LayerNorm> {
        let (weight, bias) = (placed(context, weight)?, placed(context, bias)?);
        Ok(LayerNorm { context: context.clone(), weight, bias, eps })
    }
}

impl Layer for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.context.layernorm(x, Some(&self.weight), Some(&self.bias), self.eps)
    }
}
