//! Layers of neural networks, and their weights from safetensors files: the feature `nn`.
//!
//! [`Weights`] reads a file's tensors by name and checks their shapes. A layer is made for a context, from weights and the prefix
//! of its names in the file. Making it places or packs the weights once. A layer takes a tensor and returns a tensor, which stays
//! on the device that computed it. The bits equal those of the single operations, on every device.
//!
//! ```
//! use adead::nn::{Gelu, Layer, LayerNorm, Linear, Sequential};
//! use adead::{Context, GeluForm, Tensor};
//!
//! # fn main() -> adead::Result<()> {
//! let context = Context::open("cpu")?;
//! let weight = Tensor::new(&[0.5f32, -1.0, 0.25, 2.0, -0.5, 1.5], &[2, 3])?; // [out, in]
//! let bias = Tensor::new(&[0.1f32, -0.2], &[2])?;
//! let ones = Tensor::new(&[1.0f32; 2], &[2])?;
//! let zeros = Tensor::new(&[0.0f32; 2], &[2])?;
//! let net = Sequential::new()
//!     .then(Linear::new(&weight, Some(&bias), &context)?)
//!     .then(Gelu::new(GeluForm::Erf, &context))
//!     .then(LayerNorm::new(&ones, &zeros, 1e-5, &context)?);
//! let y = net.forward(&Tensor::new(&[1.0f32, 2.0, 3.0], &[1, 3])?)?;
//! assert_eq!(y.dims(), [1, 2]);
//! # Ok(())
//! # }
//! ```

mod activation;
mod attention;
mod embedding;
mod feed_forward;
mod header;
mod layer_norm;
mod linear;
mod module;
mod sequences;
mod sequential;
mod transformer;
mod weights;

pub use activation::{Gelu, Relu};
pub use attention::MultiHeadAttention;
pub use embedding::Embedding;
pub use feed_forward::FeedForward;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use module::{Forward, Module};
pub use sequences::{Group, Sequences};
pub use sequential::Sequential;
pub use transformer::{TransformerConfig, TransformerEncoder, TransformerLayer};
pub use weights::Weights;

use adead_core::{Context, Result, Tensor};

/// Computes a tensor from a tensor. Threads may share a layer.
pub trait Layer: Send + Sync {
    /// Returns the layer's result. The errors are those of its operations.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}

/// Copies a weight to the device that computes, if the context always uses the same one. Otherwise each device copies the weight
/// when it needs it.
fn placed(context: &Context, weight: &Tensor) -> Result<Tensor> {
    match context.dispatcher().forced() {
        Some(_) => context.to(weight, &context.device_info().id),
        None => Ok(weight.clone()),
    }
}
