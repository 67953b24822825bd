#![doc = include_str!("../README.md")]

mod after;
mod batch;
mod loader;
#[cfg(feature = "log")]
pub mod log;
#[cfg(feature = "nn")]
pub mod nn;
pub mod overlap;
mod random;
mod thread;
#[cfg(feature = "train")]
pub mod train;

pub use after::{After, after};
pub use batch::{Batch, Bytes};
pub use loader::DataLoader;
pub use overlap::overlap;
pub use random::Random;

#[cfg(feature = "details")]
pub use adead_core::FailedOperation;
pub use adead_core::contract::{self, Activation, BlockFormat, GeluForm, Precision};
pub use adead_core::gpu::GpuArray;
pub use adead_core::hal::cpu::single_threaded;
#[cfg(feature = "profile")]
pub use adead_core::profile;
#[cfg(feature = "programs")]
pub use adead_core::program;
pub use adead_core::{
    AttentionOptions, Attrs, Axis, Command, Context, ContextOptions, Cost, DType, Element, Error, Gives, Gpu,
    Interrupt, MAX_RANK, MatmulOptions, Meta, Op, OpInfo, OpKind, Packed, PerAxis, Permutation, Result, Shape, Status,
    Tensor, TensorCacheUse, VERSION, View, ViewMut, interruptible,
};
pub use adead_core::{config, files, gpu, hardware, layout, memory, pipeline};

/// Which device an operation runs on, and why: `docs/dispatch.md`.
pub mod dispatch {
    pub use adead_core::Family;
    pub use adead_core::dispatch::*;
}

/// Devices, as [`Context::devices`] describes them.
pub mod device {
    pub use adead_core::devices::{gpus, unknown_visible};
    pub use adead_core::hal::cpu::Isa;
    pub use adead_core::hal::{Buffer, ContractLevel, DeviceInfo, DeviceKind, MemoryUse, Parameter};
}

/// Describes a SPIR-V module without a device: entry points, buffers, push constants, specialization constants.
pub mod spirv {
    pub use adead_core::hal::spirv::*;
}

/// The examples of the guides run as tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/dispatch.md")]
    mod dispatch {}
    #[doc = include_str!("../../../docs/tensors.md")]
    mod tensors {}
    #[doc = include_str!("../../../docs/gpu.md")]
    mod gpu {}
    #[doc = include_str!("../../../docs/layout.md")]
    mod layout {}
    #[doc = include_str!("../../../docs/precision.md")]
    mod precision {}
    #[doc = include_str!("../../../docs/pipelines.md")]
    mod pipelines {}
    #[doc = include_str!("../../../docs/overlap.md")]
    mod overlap {}
    #[cfg(feature = "log")]
    #[doc = include_str!("../../../docs/logging.md")]
    mod logging {}
    #[cfg(feature = "profile")]
    #[doc = include_str!("../../../docs/profile.md")]
    mod profile {}
}
