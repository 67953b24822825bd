//! The device layer: what a device is to the rest of the runtime. Nothing here knows a particular one.
//!
//! A [`Stream`] of a [`Device`] executes [`Command`]s, and users' [`Kernel`]s, in order; a [`Buffer`] is memory on it; an
//! [`Event`] is a point that a stream reaches. Shapes and dtypes were checked when a command was made: a device never checks
//! them again.

pub mod cpu;
#[cfg(any(test, feature = "cts"))]
pub mod cts;
#[cfg(feature = "cuda")]
pub mod cuda;
pub(crate) mod lowering;
mod lzma;
mod push;
pub(crate) mod registry;
pub mod spirv;
pub mod vulkan;
mod workers;

pub use crate::operand::Buffer;
pub use push::{Number, NumberKind, PushNumber, pack, pack_named};
pub use workers::Workers;
pub(crate) use workers::copy;

use crate::command::Command;
use crate::error::{Result, fail};
use std::any::Any;
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

/// What kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The processor: its memory is the host's.
    Cpu,
    /// A GPU with memory of its own behind a bus.
    Discrete,
    /// A GPU in the processor, on the same memory chips.
    Integrated,
    /// A GPU, or a part of one, that a hypervisor lends.
    Virtual,
    /// A GPU that is a program on the processor.
    Software,
}

impl DeviceKind {
    /// `cpu`, `discrete`, `integrated`, `virtual` or `software`.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Discrete => "discrete",
            DeviceKind::Integrated => "integrated",
            DeviceKind::Virtual => "virtual",
            DeviceKind::Software => "software",
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
    /// What its kernels are built for: an instruction set, a compute capability, a version of Vulkan.
    pub arch: String,
    /// Execution units that work at once: threads, multiprocessors; 0 where the driver does not tell.
    pub units: usize,
    /// Bytes of memory, 0 where unknown.
    pub memory: u64,
    /// What kind it is.
    pub kind: DeviceKind,
    /// Its maker.
    pub vendor: String,
    /// Its driver, with the version; empty for a processor.
    pub driver: String,
    /// What names this very device among all, as the driver has it; `None` for a processor.
    pub uuid: Option<[u8; 16]>,
    /// Where it is on the PCI bus: domain, bus, device and function, as `0000:65:00.0`; `None` for a processor, and where the
    /// driver does not tell.
    pub bus: Option<String>,
}

/// A device's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it has.
    pub total: u64,
    /// What the driver says is left for this process; `total - held` where it does not say.
    pub free: u64,
    /// Taken from the driver by this process through adead.
    pub held: u64,
    /// Of that, in use through this opening of the device.
    pub used: u64,
    /// Allocations in use through it.
    pub allocations: u64,
}

/// A kernel of the user's: what to build it from.
#[derive(Clone, Copy, Debug)]
pub struct KernelSource<'a> {
    /// The module: SPIR-V words as bytes for Vulkan; PTX text, a cubin or a fatbin for CUDA.
    pub code: &'a [u8],
    /// Which of its entry points; `None` takes `main`, else the first.
    pub entry: Option<&'a str>,
    /// Values of specialization constants by id, as 32-bit words.
    pub constants: &'a [(u32, u32)],
    /// Threads of a workgroup in x, y, z, for a CUDA kernel whose module does not fix them.
    pub workgroup: Option<[u32; 3]>,
}

/// A buffer of a kernel, by its number in the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Descriptor set and binding.
    pub slot: (u32, u32),
    /// The least bytes that the kernel's declaration covers.
    pub least: u64,
    /// Bytes of an element of its runtime array, 0 without one: what is beyond `least` must be a multiple of it.
    pub stride: u64,
    /// Whether the kernel declares that it never writes it.
    pub readonly: bool,
}

/// Part of a buffer.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    /// Of which.
    pub buffer: &'a dyn Buffer,
    /// The first byte.
    pub offset: usize,
    /// Bytes.
    pub bytes: usize,
}

/// Whose work begins first where a device has work of several streams to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// As most streams.
    #[default]
    Normal,
    /// Before the others: short work whose result is waited for, beside work that takes long.
    High,
}

/// A device. Shareable between threads.
///
/// # Safety
/// Its buffers, streams and kernels keep what their traits say.
pub unsafe trait Device: Send + Sync {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// Its memory now.
    fn memory(&self) -> MemoryUse;

    /// Memory on it, zeroed. `out_of_memory` with bytes asked and free, after what is kept for reuse was given back.
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>>;

    /// Memory on it with whatever was there before: for what is written before it is read.
    fn allocate_unset(&self, bytes: usize) -> Result<Arc<dyn Buffer>>;

    /// Memory of this device that somebody else has, as a buffer: CUDA's by its address, which is a multiple of 16. `owner` is
    /// dropped when neither the buffer nor work uses it any more. What CUDA's default stream was given before is done when it
    /// returns. `unsupported` where the device has no addresses to share.
    ///
    /// # Safety
    /// So many bytes are there on this device until `owner` is dropped.
    unsafe fn over(&self, _address: u64, _bytes: usize, _owner: Box<dyn Send + Sync>) -> Result<Arc<dyn Buffer>> {
        fail!(Unsupported, "{} has no buffers over others' memory", self.info().id)
    }

    /// Waits for what others gave the device's default stream, CUDA's: before memory that they used is used again.
    fn wait_for_others(&self) -> Result<()> {
        Ok(())
    }

    /// A queue of work. Belongs to one thread at a time.
    fn stream(self: Arc<Self>) -> Result<Box<dyn Stream>> {
        self.stream_with(Priority::Normal)
    }

    /// A queue of work whose kernels begin before those of others where both wait. A device without priorities takes it for an
    /// ordinary one: only when work is done may differ.
    fn stream_with(self: Arc<Self>, priority: Priority) -> Result<Box<dyn Stream>>;

    /// Builds a user's kernel. `invalid_kernel` for a module that is malformed or refused by the driver, `unsupported` where it
    /// asks for what the device has not.
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>>;

    /// Gives back to the driver what is kept for reuse.
    fn trim(&self);
}

/// A user's kernel, built for a device.
///
/// # Safety
/// `as_any` is itself.
pub unsafe trait Kernel: Send + Sync {
    /// Its entry point.
    fn name(&self) -> &str;

    /// Its buffers, in the order in which a dispatch gives them: by set and binding.
    fn parameters(&self) -> &[Parameter];

    /// Bytes of push constants, 0 without any.
    fn push_bytes(&self) -> usize;

    /// The numbers that these bytes are; none where the module does not tell.
    fn push_numbers(&self) -> &[PushNumber];

    /// Threads of a workgroup in x, y, z.
    fn workgroup(&self) -> [u32; 3];

    /// Itself, for its own backend.
    fn as_any(&self) -> &dyn Any;
}

/// A queue of work on a device; what is submitted to it runs in order, and begins without being asked for.
///
/// # Safety
/// What it is given touches no memory but that of the operands, slices and bytes named, keeps the buffers that it uses, and is done
/// with the host's bytes when a call returns.
pub unsafe trait Stream: Send {
    /// Enqueues commands in order. Where one works in place on the result of the one before, a device may do both at once, with the
    /// same bits. When it returns an error, no output of a refused command has been written. What only a device
    /// can find (an id outside a table) is returned by [`Stream::synchronize`], and then that command has written nothing.
    fn submit(&mut self, commands: &mut [Command<'_>]) -> Result<()>;

    /// Enqueues a user's kernel over workgroups in x, y, z. Buffers are in the order of its parameters; `push` has its
    /// push constants' bytes. `invalid_argument` if count, sizes, alignments or groups don't fit.
    fn dispatch(&mut self, kernel: &dyn Kernel, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<()>;

    /// Enqueues a copy of host bytes to a buffer; the bytes are the caller's again when it returns.
    fn write(&mut self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()>;

    /// Copies from a buffer to the host, behind everything submitted, and waits for it.
    fn read(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()>;

    /// Enqueues a copy from a buffer to memory that the host can read when it has arrived.
    fn download(&mut self, from: Slice<'_>) -> Result<Box<dyn Download>>;

    /// Enqueues a copy between buffers, of as many bytes each; of one buffer, the parts must not overlap.
    fn copy(&mut self, from: Slice<'_>, to: Slice<'_>) -> Result<()>;

    /// Enqueues the filling of a buffer with zeros.
    fn clear(&mut self, to: Slice<'_>) -> Result<()>;

    /// The point that the stream will have reached when everything submitted so far is done.
    fn event(&mut self) -> Result<Arc<dyn Event>>;

    /// Everything enqueued from now on waits for an event, of this stream or another one of the device.
    fn wait(&mut self, event: &dyn Event) -> Result<()>;

    /// Enqueues the taking of a time.
    fn timestamp(&mut self) -> Result<Arc<dyn Timestamp>>;

    /// From here to [`Stream::finish_recording`], what is enqueued is recorded instead of run. `invalid_argument` while
    /// recording already.
    fn start_recording(&mut self) -> Result<()>;

    /// What was recorded, to be run any number of times.
    fn finish_recording(&mut self) -> Result<Arc<dyn Recording>>;

    /// Enqueues a recording.
    fn replay(&mut self, recording: &dyn Recording) -> Result<()>;

    /// Hands what was enqueued to the device now, without waiting.
    fn flush(&mut self) -> Result<()>;

    /// Waits until everything enqueued has finished; the first error that the device found in it.
    fn synchronize(&mut self) -> Result<()>;

    /// Whether everything enqueued has finished.
    fn is_idle(&mut self) -> Result<bool>;
}

/// A point that a stream reaches.
///
/// # Safety
/// `as_any` is itself.
pub unsafe trait Event: Send + Sync {
    /// Whether it has.
    fn is_done(&self) -> Result<bool>;

    /// Waits for it, at most so many nanoseconds. `not_ready` if they did not suffice.
    fn wait(&self, nanoseconds: u64) -> Result<()>;

    /// Itself, for its own backend.
    fn as_any(&self) -> &dyn Any;
}

/// Bytes on their way to the host.
///
/// # Safety
/// `bytes` and `take` give bytes that have arrived, which nobody writes any more, and which stay where they are until it is dropped.
pub unsafe trait Download: Send + Sync {
    /// Bytes.
    fn size(&self) -> usize;

    /// Whether they have arrived.
    fn is_done(&self) -> Result<bool>;

    /// What says that they have arrived, and can be waited for; `None` where they have.
    fn event(&self) -> Option<&dyn Event>;

    /// Waits for them, where they lie.
    fn bytes(&self) -> Result<&[u8]>;

    /// Waits for them and copies them; `into` has as many bytes.
    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()>;
}

/// A time that the device took.
///
/// # Safety
/// It keeps what it reads.
pub unsafe trait Timestamp: Send + Sync {
    /// Nanoseconds since a point that all timestamps of the device share. `not_ready` before it was taken.
    fn nanoseconds(&self) -> Result<u64>;
}

/// Work that was recorded.
///
/// # Safety
/// `as_any` is itself.
pub unsafe trait Recording: Send + Sync {
    /// Itself, for its own backend.
    fn as_any(&self) -> &dyn Any;
}

/// Checks a part of a buffer.
pub(crate) fn check_slice(what: &str, size: usize, offset: usize, bytes: usize) -> Result<()> {
    if offset > size || bytes > size - offset {
        fail!(InvalidArgument, "{what}: {bytes} bytes at offset {offset} don't fit in a buffer of {size} bytes");
    }
    Ok(())
}
