//! The runtime. Applications use the facade crate `adead`; bindings use this one.
//!
//! The runtime executes [`Command`]s: an [`Op`] with its attributes and operands. Direct calls, programs and conformance cases
//! all build commands, and a [`Context`] executes them on its device. The results follow the arithmetic contract ([`contract`],
//! `docs/contract.md`): the same bits everywhere.

// Without a feature, what only that feature uses is dead code. Builds with all of them find what nothing uses.
#![cfg_attr(
    not(all(feature = "cuda", feature = "avx512", feature = "integers", feature = "quantized", feature = "programs")),
    allow(dead_code)
)]

#[cfg(feature = "autograd")]
mod autograd;
pub mod config;
pub mod contract;
pub mod devices;
pub mod dispatch;
pub mod files;
pub mod gpu;
pub mod hal;
pub mod hardware;
pub mod memory;
pub mod pipeline;
#[cfg(feature = "profile")]
pub mod profile;
#[cfg(not(feature = "profile"))]
#[path = "profile/off.rs"]
mod profile;
#[cfg(feature = "programs")]
pub mod program;

// Unit tests and core/tests share code that draws random calls and names this crate `adead_core`.
#[cfg(test)]
extern crate self as adead_core;

mod calls;
mod command;
mod context;
mod dtype;
mod error;
mod family;
mod fpenv;
mod host;
mod hybrid;
mod interrupt;
mod isa;
mod log;
mod machine;
mod operand;
mod ops;
mod process;
mod shape;
mod tensor;

pub use calls::{AttentionOptions, MatmulOptions};
pub use command::Command;
#[cfg(feature = "lend")]
pub use context::Writing;
pub use context::{Context, ContextOptions};
pub use dtype::DType;
pub use error::{Error, Result, Status};
pub use family::Family;
pub use gpu::Gpu;
pub use interrupt::{Interrupt, interruptible};
pub use operand::{Inputs, Meta, Packed, Place, View, ViewMut};
#[cfg(feature = "details")]
pub use ops::FailedOperation;
pub use ops::{Attrs, Axis, Cost, Gives, Metas, Op, OpInfo, OpKind, PerAxis, Permutation, Values, reference};
pub use shape::{MAX_ELEMENTS, MAX_RANK, Shape};
pub use tensor::{Element, Tensor, TensorCacheUse, layout};

/// The version of this library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
