//! Activations as layers.

use super::Layer;
use adead_core::contract::GeluForm;
use adead_core::{Context, Result, Tensor};

/// Computes max(x, 0).
#[derive(Clone)]
pub struct Relu(Context);

impl Relu {
    /// Makes the layer.
    pub fn new(context: &Context) -> Relu {
        Relu(context.clone())
    }
}

impl Layer for Relu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.relu(x)
    }
}

/// Computes the Gaussian error linear unit.
#[derive(Clone)]
pub struct Gelu {
    context: Context,
    form: GeluForm,
}

impl Gelu {
    /// Makes the layer, in the form with erf or with tanh.
    pub fn new(form: GeluForm, context: &Context) -> Gelu {
        Gelu { context: context.clone(), form }
    }
}

impl Layer for Gelu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.context.gelu(x, self.form)
    }
}
