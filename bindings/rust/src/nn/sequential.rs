//! Sequences of layers.

use super::Layer;
use adead_core::{Result, Tensor};

/// Applies layers in order: each layer takes the result of the previous one.
#[derive(Default)]
pub struct Sequential(Vec<Box<dyn Layer>>);

impl Sequential {
    /// Makes an empty sequence. Without layers, `forward` returns its input.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer.
    pub fn then(mut self, layer: impl Layer + 'static) -> Sequential {
        self.0.push(Box::new(layer));
        self
    }

    /// Returns the number of layers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, layer| layer.forward(&x))
    }
}
