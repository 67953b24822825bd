//! Fused pipelines: operations recorded first, then run as a whole.
//!
//! A [`Pipeline`] records operations on [`Value`]s: inputs, constants, results. Compiling it chooses a device, folds a bias, a
//! residual and an activation into the product before them (`fuse.rs`), joins elementwise operations to runs, plans memory so
//! that a value's is used again once nobody reads it (`plan.rs`), and makes a [`Compiled`], which runs any number of times:
//! on a GPU as one submission, on the CPU without an allocation between operations. The bits are those of the same operations
//! called one after another.
//!
//! A [`Chain`] is the short form, where each operation takes the result of the one before:
//! `ctx.pipeline().matmul(&x, &w1).bias(&b1).relu().matmul(&w2).execute()`.

mod cache;
mod chain;
mod compiled;
mod draw;
mod fuse;
mod gpu;
mod graph;
mod host;
mod plan;
mod price;

pub use cache::CacheUse;
pub use chain::{Chain, ChainOperand as Operand};
pub use compiled::Compiled;
pub(crate) use graph::{Graph, Node, Source};
pub use graph::{Pipeline, Value};
pub(crate) use price::Prices;
