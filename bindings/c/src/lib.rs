//! `adead-c`: the C interface. `bindings/c/artifact` links it as `libadead.so` and `libadead.a`; `include/adead.h` is
//! generated from the comments and signatures here by `tests/header.rs`. The rules are in `docs/c-api.md`.
//!
//! This crate decides nothing: a function turns pointers into values, calls the core inside `guard`, and writes its
//! outputs if the call succeeded.

#![allow(non_camel_case_types)]
// docs/c-api.md and the top of the header state once what every function requires of its caller.
#![allow(clippy::missing_safety_doc)]

mod buffer;
mod call;
#[cfg(any(feature = "autograd", feature = "overlap"))]
mod callback;
mod chain;
#[cfg(feature = "compilers")]
mod compile;
mod context;
mod dispatch;
mod elementwise;
mod event;
#[cfg(feature = "flat")]
mod flat;
#[cfg(feature = "flat")]
mod flat_table;
mod gpu;
#[cfg(feature = "autograd")]
mod gradients;
mod hardware;
mod interrupt;
mod kernel;
mod layout;
#[cfg(feature = "overlap")]
mod loader;
#[cfg(feature = "log")]
mod log;
mod matrix;
mod memory;
#[cfg(feature = "nn")]
mod module;
mod moves;
mod op;
#[cfg(feature = "programs")]
mod outcome;
#[cfg(feature = "overlap")]
mod overlap;
mod packed;
#[cfg(feature = "profile")]
mod profile;
#[cfg(feature = "programs")]
mod program;
#[cfg(feature = "random")]
mod random;
mod reduce;
mod reductions;
#[cfg(feature = "nn")]
mod safetensors;
mod simple;
mod status;
mod stream;
mod tensor;
mod without;

pub(crate) use adead_c_support::pointers;
pub use buffer::*;
pub use chain::*;
#[cfg(feature = "compilers")]
pub use compile::*;
pub use context::*;
pub use dispatch::*;
pub use elementwise::*;
pub use event::*;
#[cfg(feature = "flat")]
pub use flat::*;
pub use gpu::*;
#[cfg(feature = "autograd")]
pub use gradients::*;
pub use hardware::*;
pub use interrupt::*;
pub use kernel::*;
pub use layout::*;
#[cfg(feature = "overlap")]
pub use loader::*;
#[cfg(feature = "log")]
pub use log::*;
pub use matrix::*;
pub use memory::*;
#[cfg(feature = "nn")]
pub use module::*;
pub use moves::*;
pub use op::*;
#[cfg(feature = "programs")]
pub use outcome::*;
#[cfg(feature = "overlap")]
pub use overlap::*;
pub use packed::*;
#[cfg(feature = "profile")]
pub use profile::*;
#[cfg(feature = "programs")]
pub use program::*;
#[cfg(feature = "random")]
pub use random::*;
pub use reduce::*;
pub use reductions::*;
#[cfg(feature = "nn")]
pub use safetensors::*;
pub use simple::*;
pub use status::*;
pub use stream::*;
pub use tensor::*;
