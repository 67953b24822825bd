#![doc = include_str!("../README.md")]

pub use adead_core::contract::{self, Activation, GeluForm};
pub use adead_core::{
    AttentionOptions, Attrs, Axis, Command, Context, ContextOptions, Cost, DType, Element, Error, MatmulOptions, Meta,
    Op, Packed, Permutation, Result, Shape, Status, Tensor, VERSION, View, ViewMut,
};
pub use adead_core::{config, hardware, memory, program};

/// Which device an operation runs on, and why: `docs/dispatch.md`.
pub mod dispatch {
    pub use adead_core::Family;
    pub use adead_core::dispatch::*;
}

/// Devices, as [`Context::devices`] describes them.
pub mod device {
    pub use adead_core::hal::cpu::Isa;
    pub use adead_core::hal::{ContractLevel, DeviceInfo};
}

/// The examples of the guides run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/dispatch.md")]
mod guides {}
