//! Activations as layers.

use super::{Array, Layer};
use adead_core::contract::GeluForm;
use adead_core::{Attrs, Op, Result};

/// max(x, 0).
#[derive(Clone, Copy, Debug, Default)]
pub struct Relu;

impl Layer for Relu {
    fn forward(&self, x: &Array) -> Result<Array> {
        x.device().run(Op::Relu, &Attrs::DEFAULT, &[Some(x)])
    }
}

/// The Gaussian error linear unit; `Default` is its form with erf.
#[derive(Clone, Copy, Debug)]
pub struct Gelu(pub GeluForm);

impl Default for Gelu {
    fn default() -> Gelu {
        Gelu(GeluForm::Erf)
    }
}

impl Layer for Gelu {
    fn forward(&self, x: &Array) -> Result<Array> {
        x.device().run(Op::Gelu, &Attrs { form: self.0, ..Attrs::default() }, &[Some(x)])
    }
}
