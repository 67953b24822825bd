//! The feed-forward part of a transformer layer.

use super::{Layer, Linear};
use adead_core::contract::Activation;
use adead_core::{Error, Result, Status, Tensor};

/// Computes `activation(x·W1ᵀ + b1)·W2ᵀ + b2`.
#[derive(Clone)]
pub struct FeedForward {
    inner: Linear,
    outer: Linear,
    activation: Activation,
}

impl FeedForward {
    /// Makes the layer from two linear layers and the activation between them. `shape_mismatch` unless `outer` takes as many
    /// values as `inner` returns.
    pub fn new(inner: Linear, outer: Linear, activation: Activation) -> Result<FeedForward> {
        if inner.outputs() != outer.inputs() {
            let (made, taken) = (inner.outputs(), outer.inputs());
            let text = format!("feed-forward: the first layer returns {made} values and the second takes {taken}");
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        Ok(FeedForward { inner, outer, activation })
    }

    /// Returns the layer's result plus a residual.
    pub fn forward_with(&self, x: &Tensor, residual: Option<&Tensor>) -> Result<Tensor> {
        let hidden = self.inner.forward_with(x, None, self.activation)?;
        self.outer.forward_with(&hidden, residual, Activation::None)
    }
}

impl Layer for FeedForward {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, None)
    }
}
