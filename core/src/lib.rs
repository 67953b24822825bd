//! `adead-core`: the runtime. Applications use the facade crate `adead`; bindings use this one.
//!
//! Everything is a [`Command`]: an [`Op`] with its attributes and operands. A direct call, a program and a conformance
//! case all build commands; a [`Context`] executes them on its device. What comes out is the arithmetic contract
//! ([`contract`], `docs/contract.md`): the same bits everywhere.

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
pub mod program;

// Unit tests share draws of random calls with the tests in core/tests, to which this crate is another one.
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
pub use context::{Context, ContextOptions};
pub use dtype::DType;
pub use error::{Error, Result, Status};
pub use family::Family;
pub use gpu::Gpu;
pub use interrupt::{Interrupt, interruptible};
pub use operand::{Inputs, Meta, Packed, Place, View, ViewMut};
pub use ops::{Attrs, Axis, Cost, Gives, Metas, Op, OpInfo, OpKind, PerAxis, Permutation, Values, reference};
pub use shape::{MAX_ELEMENTS, MAX_RANK, Shape};
pub use tensor::{Element, Tensor, TensorCacheUse, layout};

/// The version of this library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
