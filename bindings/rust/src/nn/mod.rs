//! Layers of neural networks, and their weights from safetensors files: the feature `nn`.
//!
//! [`Weights`] maps a file and gives its tensors by name, with their shapes checked. [`Device`] says where layers compute, and
//! keeps memory between calls. A layer is made from weights and the prefix of its names, is laid out for its device once, and
//! then takes an [`Array`] and returns one. The bits are those of the operations by themselves, on every device.
//!
//! ```
//! use adead::nn::{Device, Gelu, Layer, LayerNorm, Linear, Sequential};
//! use adead::{Context, Tensor};
//!
//! # fn main() -> adead::Result<()> {
//! let device = Device::new(&Context::open("cpu")?)?;
//! let weight = Tensor::new(&[0.5f32, -1.0, 0.25, 2.0, -0.5, 1.5], &[2, 3])?; // [out, in]
//! let bias = Tensor::new(&[0.1f32, -0.2], &[2])?;
//! let ones = Tensor::new(&[1.0f32; 2], &[2])?;
//! let zeros = Tensor::new(&[0.0f32; 2], &[2])?;
//! let net = Sequential::new()
//!     .then(Linear::new(&weight, Some(&bias), &device)?)
//!     .then(Gelu::default())
//!     .then(LayerNorm::new(&ones, &zeros, 1e-5, &device)?);
//! let y = net.forward(&device.array(&Tensor::new(&[1.0f32, 2.0, 3.0], &[1, 3])?)?)?;
//! assert_eq!(y.to_tensor()?.dims(), [1, 2]);
//! # Ok(())
//! # }
//! ```

mod activation;
mod array;
mod attention;
mod device;
mod embedding;
mod feed_forward;
mod header;
mod layer_norm;
mod linear;
mod memory;
mod module;
mod sequences;
mod sequential;
mod transformer;
mod weights;

pub use activation::{Gelu, Relu};
pub use array::{Array, Download};
pub use attention::MultiHeadAttention;
pub use device::Device;
pub use embedding::Embedding;
pub use feed_forward::FeedForward;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use module::{Forward, Module};
pub use sequences::{Group, Sequences};
pub use sequential::Sequential;
pub use transformer::{TransformerConfig, TransformerEncoder, TransformerLayer};
pub use weights::Weights;

use adead_core::Result;

/// What takes an array and returns one. It may be shared by threads.
pub trait Layer: Send + Sync {
    /// Its result; the errors are those of its operations.
    fn forward(&self, x: &Array) -> Result<Array>;
}
