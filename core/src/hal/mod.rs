//! The device layer: what a device is to the rest of the runtime. Nothing here knows a particular one.
//!
//! A [`Device`] executes [`Command`]s on a [`Stream`]; a [`Buffer`] is memory on it. Shapes and dtypes were checked
//! when the command was made: a device never checks them again.

pub mod cpu;
#[cfg(any(test, feature = "cts"))]
pub mod cts;
pub mod spirv;

use crate::command::Command;
use crate::error::Result;
use std::ptr::NonNull;
use std::sync::Arc;

/// How a device keeps the arithmetic contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractLevel {
    /// Its own instructions have the contract's bits.
    Native,
    /// Some primitive is put together from others, exactly but more slowly.
    Emulated,
}

impl ContractLevel {
    /// `native` or `emulated`.
    pub const fn name(self) -> &'static str {
        match self {
            ContractLevel::Native => "native",
            ContractLevel::Emulated => "emulated",
        }
    }
}

/// What a device says about itself.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// How to open it: `cpu`, `cuda:0`, `vulkan:1`.
    pub id: String,
    /// What its maker calls it.
    pub name: String,
    /// How it keeps the contract.
    pub contract: ContractLevel,
    /// What its kernels are built for: an instruction set, a compute capability.
    pub arch: String,
    /// Execution units that work at once: threads, multiprocessors.
    pub units: usize,
    /// Bytes of memory, 0 where unknown.
    pub memory: u64,
}

/// A device. Shareable between threads.
pub trait Device: Send + Sync {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// Memory on it, zeroed.
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>>;

    /// A queue of work. Belongs to one thread.
    fn stream(&self) -> Result<Box<dyn Stream>>;

    /// Enqueues commands in order. When it returns an error, no output has been written.
    fn submit(&self, stream: &mut dyn Stream, commands: &mut [Command<'_>]) -> Result<()>;
}

/// Memory on a device.
pub trait Buffer: Send + Sync {
    /// Bytes.
    fn size(&self) -> usize;

    /// The device that it is on, for messages.
    fn device_name(&self) -> &str;

    /// Its first byte, where the host can address it.
    fn host_pointer(&self) -> Option<NonNull<u8>>;
}

/// A queue of work on a device; what is submitted to it runs in order.
pub trait Stream {
    /// Waits until everything submitted has finished.
    fn synchronize(&mut self) -> Result<()>;

    /// Whether everything submitted has finished.
    fn is_idle(&self) -> Result<bool>;
}
