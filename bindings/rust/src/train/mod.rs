//! Networks that learn: the feature `train`.
//!
//! A [`Network`] records a pipeline with parameters. [`layers`] and [`losses`] record the usual parts. A [`Trainer`] adds the gradients
//! and an optimiser's step, compiles all of it once, and replays it for each batch. Every number is a function of the seed and the
//! batches: the same bits on every device and with any number of threads.
//!
//! ```
//! use adead::train::{Network, Optimizer, Trainer, layers, losses};
//! use adead::{Context, DType, Op, Tensor};
//!
//! # fn main() -> adead::Result<()> {
//! let context = Context::open("cpu")?;
//! let mut net = Network::new(&context, 7);
//! let x = net.input(DType::F32, &[4, 2])?;
//! let target = net.input(DType::I64, &[4])?;
//! let h = layers::linear(&mut net, "hidden", x, 16)?;
//! let h = net.op(Op::Tanh, &[h])?;
//! let logits = layers::linear(&mut net, "out", h, 2)?;
//! let loss = losses::cross_entropy(&mut net, logits, target)?;
//! let mut trainer = Trainer::new(net, loss, Optimizer::adam(0.05))?;
//!
//! let x = Tensor::new(&[0.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], &[4, 2])?;
//! let xor = Tensor::new(&[0i64, 1, 1, 0], &[4])?;
//! for _ in 0..200 {
//!     trainer.step(&[&x, &xor])?;
//! }
//! assert!(trainer.step(&[&x, &xor])? < 0.01);
//! # Ok(())
//! # }
//! ```

mod checkpoint;
mod fixed;
mod flat;
mod joined;
pub mod layers;
pub mod losses;
mod network;
mod optimizer;
mod random;
pub mod ranks;
mod replay;
mod scaling;
mod schedule;
mod shards;
mod trainer;
mod tree;
mod whole;

pub use checkpoint::write_tensors;
pub use network::{Init, Network, Predictor};
pub use optimizer::{Optimizer, Rule};
pub use scaling::LossScale;
pub use schedule::Schedule;
pub use trainer::Trainer;
