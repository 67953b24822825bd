//! Layers one after another.

use super::Layer;
use adead_core::{Result, Tensor};

/// Layers of which each takes the result of the one before.
#[derive(Default)]
pub struct Sequential(Vec<Box<dyn Layer>>);

impl Sequential {
    /// None yet: then it returns what it is given.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// With another layer behind the last.
    pub fn then(mut self, layer: impl Layer + 'static) -> Sequential {
        self.0.push(Box::new(layer));
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, layer| layer.forward(&x))
    }
}
