#![doc = include_str!("../README.md")]

pub use adead_core::contract::{self, Activation, GeluForm};
pub use adead_core::{
    AttentionOptions, Attrs, Axis, Command, Context, ContextOptions, DType, Element, Error, MatmulOptions, Meta, Op,
    Packed, Permutation, Result, Shape, Status, Tensor, VERSION, View, ViewMut,
};
pub use adead_core::{hardware, memory, program};

/// Devices, as [`Context::devices`] describes them.
pub mod device {
    pub use adead_core::hal::cpu::Isa;
    pub use adead_core::hal::{ContractLevel, DeviceInfo};
}
