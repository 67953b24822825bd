//! Fused pipelines: operations are recorded first and run as a whole.
//!
//! A [`Pipeline`] records operations on [`Value`]s: inputs, constants, results. Compiling it chooses a device, folds a bias, a
//! residual and an activation into the product before them, and joins elementwise operations into runs (`fuse.rs`). It plans
//! memory so that values share it once nothing reads the earlier one (`plan.rs`). The result is a [`Compiled`], which runs any
//! number of times: on a GPU as one submission, on the CPU without an allocation between operations. The bits are the same as
//! those of the single operations.
//!
//! A [`Chain`] is the short form, in which each operation takes the previous result:
//! `ctx.pipeline().matmul(&x, &w1).bias(&b1).relu().matmul(&w2).execute()`.

mod cache;
mod chain;
mod compiled;
mod draw;
mod fuse;
mod gpu;
mod graph;
mod host;
mod ids;
mod join;
mod plan;
mod price;
mod weights;

pub use cache::CacheUse;
pub use chain::{Chain, ChainOperand as Operand};
pub use compiled::Compiled;
#[cfg(feature = "autograd")]
pub use graph::Hook;
#[cfg(any(feature = "programs", feature = "autograd"))]
pub(crate) use graph::Source;
#[cfg(feature = "programs")]
pub(crate) use graph::{Graph, Node};
pub use graph::{Pipeline, Value};
pub use ids::Ids;
#[cfg(feature = "programs")]
pub(crate) use price::Prices;
