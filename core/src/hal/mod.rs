//! The device layer: the traits through which the rest of the runtime uses a device. The traits know no particular
//! device.
//!
//! A [`Stream`] of a [`Device`] runs [`Command`]s and users' [`Kernel`]s in order. A [`Buffer`] is memory on the
//! device; an [`Event`] is a point that a stream reaches. A command's shapes and dtypes were checked when it was made,
//! and a device never checks them again.

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
pub(crate) mod tiles;
pub mod vulkan;
mod workers;

pub use crate::operand::Buffer;
pub use push::{Number, NumberKind, PushNumber, pack, pack_named};
pub use tiles::TileCosts;
pub use workers::Workers;
pub(crate) use workers::copy;

use crate::command::Command;
#[cfg(feature = "integers")]
use crate::contract::Precision;
use crate::error::{Error, Result, Status, fail};
use std::any::Any;
use std::sync::Arc;

/// How a device keeps the arithmetic contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractLevel {
    /// The device's own instructions give the contract's bits.
    Native,
    /// Some primitive is composed of others: exact, but slower.
    Emulated,
}

impl ContractLevel {
    /// Returns `native` or `emulated`.
    pub const fn name(self) -> &'static str {
        match self {
            ContractLevel::Native => "native",
            ContractLevel::Emulated => "emulated",
        }
    }
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The processor, with the host's memory.
    Cpu,
    /// A GPU with its own memory, behind a bus.
    Discrete,
    /// A GPU in the processor, which shares the host's memory.
    Integrated,
    /// A GPU, or a part of one, that a hypervisor provides.
    Virtual,
    /// A GPU that a program on the processor emulates.
    Software,
}

impl DeviceKind {
    /// Returns `cpu`, `discrete`, `integrated`, `virtual` or `software`.
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

/// The end of `arch` of a device whose matrix units multiply exact integers through Vulkan.
pub(crate) const INT8_MATRICES: &str = " + int8 matrices";

/// Describes a device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The id that opens it: `cpu`, `cuda:0`, `vulkan:1`.
    pub id: String,
    /// The maker's name for it.
    pub name: String,
    /// How the device keeps the arithmetic contract.
    pub contract: ContractLevel,
    /// The target of its kernels: an instruction set, a compute capability, a version of Vulkan and
    /// whether its matrix units multiply exact integers.
    pub arch: String,
    /// The number of execution units: threads, multiprocessors. 0 if the driver doesn't report it.
    pub units: usize,
    /// Bytes of memory, or 0 if unknown.
    pub memory: u64,
    /// Its kind.
    pub kind: DeviceKind,
    /// Its maker.
    pub vendor: String,
    /// Its driver, with the version; empty for a processor.
    pub driver: String,
    /// The driver's unique id of this physical device; `None` for a processor.
    pub uuid: Option<[u8; 16]>,
    /// The PCI address: domain, bus, device and function, as `0000:65:00.0`. `None` for a processor, and if the driver
    /// doesn't report it.
    pub bus: Option<String>,
}

/// The use of a device's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The device's memory.
    pub total: u64,
    /// What the driver reports as free for this process; `total - held` if it doesn't report it.
    pub free: u64,
    /// What this process holds from the driver through adead.
    pub held: u64,
    /// The part of `held` that this opened device uses.
    pub used: u64,
    /// The number of allocations that this opened device uses.
    pub allocations: u64,
}

/// What a user's kernel is built from.
#[derive(Clone, Copy, Debug)]
pub struct KernelSource<'a> {
    /// The module: SPIR-V for Vulkan; PTX text, a cubin or a fatbin for CUDA.
    pub code: &'a [u8],
    /// The entry point; `None` selects `main`, or the first if there is no `main`.
    pub entry: Option<&'a str>,
    /// Values of specialization constants: each an id and a 32-bit word.
    pub constants: &'a [(u32, u32)],
    /// Threads of a workgroup in x, y, z, for a CUDA kernel whose module doesn't fix them.
    pub workgroup: Option<[u32; 3]>,
}

/// A buffer parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Descriptor set and binding.
    pub slot: (u32, u32),
    /// The fewest bytes that the buffer must have.
    pub least: u64,
    /// Bytes of an element of the runtime array; 0 without such an array. The bytes beyond `least` must be a multiple
    /// of it.
    pub stride: u64,
    /// Whether the kernel declares the buffer as never written.
    pub readonly: bool,
}

/// Part of a buffer.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    /// The buffer.
    pub buffer: &'a dyn Buffer,
    /// The first byte.
    pub offset: usize,
    /// The number of bytes.
    pub bytes: usize,
}

/// The order in which streams begin work when several have work to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// The default.
    #[default]
    Normal,
    /// Starts before other streams' work: for short, urgent work beside long work.
    High,
}

/// A device. Threads may share it.
///
/// # Safety
/// Its buffers, streams and kernels must satisfy the safety sections of their traits.
pub unsafe trait Device: Send + Sync {
    /// Describes the device.
    fn info(&self) -> &DeviceInfo;

    /// Returns the present use of its memory.
    fn memory(&self) -> MemoryUse;

    /// Allocates `bytes` zeroed bytes. Before it returns `out_of_memory`, with the bytes asked for and free, it returns
    /// memory kept for reuse to the driver.
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>>;

    /// Allocates `bytes` bytes of unspecified contents, for memory that is written before it is read.
    fn allocate_unset(&self, bytes: usize) -> Result<Arc<dyn Buffer>>;

    /// Makes a buffer over memory of this device that other code owns: CUDA memory, by its address, a multiple of 16.
    /// `owner` is dropped when neither the buffer nor work uses the memory any more. Returns once all earlier work on
    /// CUDA's default stream is done. `unsupported` on a device without shareable addresses.
    ///
    /// # Safety
    /// `bytes` bytes at `address` must stay valid on this device until `owner` is dropped.
    unsafe fn over(&self, _address: u64, _bytes: usize, _owner: Box<dyn Send + Sync>) -> Result<Arc<dyn Buffer>> {
        fail!(Unsupported, "{} can't make a buffer over memory of another library", self.info().id)
    }

    /// Runs code that gives work to CUDA's default stream, with the device's context current in this thread. The default stream
    /// first waits for `after`. Returns an event behind all of its work. `unsupported` on a device without a default stream.
    #[cfg(feature = "lend")]
    fn lend(&self, _after: &dyn Event, _give: &mut dyn FnMut() -> Result<()>) -> Result<Arc<dyn Event>> {
        fail!(Unsupported, "{} can't run work of another library", self.info().id)
    }

    /// Returns whether its streams can copy from the memory of another device: [`Stream::copy_from`].
    fn reaches(&self, _memory: &dyn Buffer) -> bool {
        false
    }

    /// Waits for the work that other code gave CUDA's default stream, so that memory it used can be reused.
    fn wait_for_others(&self) -> Result<()> {
        Ok(())
    }

    /// Opens a queue of work. One thread at a time may use it.
    fn stream(self: Arc<Self>) -> Result<Box<dyn Stream>> {
        self.stream_with(Priority::Normal)
    }

    /// Opens a queue whose kernels begin before those of queues with a lower priority. A device without priorities
    /// ignores `priority`. It affects only when work runs, never a result.
    fn stream_with(self: Arc<Self>, priority: Priority) -> Result<Box<dyn Stream>>;

    /// Builds a user's kernel. `invalid_kernel` if the module is malformed or the driver refuses it; `unsupported` if
    /// it needs a feature that the device lacks.
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>>;

    /// Returns memory kept for reuse to the driver.
    fn trim(&self);

    /// Returns the tiles of its products, of which the cheapest is chosen for each product; `None` if it does not choose.
    fn tiles(&self) -> Option<&TileCosts> {
        None
    }

    /// Returns the number of the tile that is chosen for a product of these m, n and k; `None` if a special one is.
    fn tile_of(&self, _sizes: [u32; 3]) -> Option<usize> {
        None
    }
}

/// A user's kernel, built for a device.
///
/// # Safety
/// `as_any` must return `self`.
pub unsafe trait Kernel: Send + Sync {
    /// Returns the name of its entry point.
    fn name(&self) -> &str;

    /// Returns its buffer parameters, in the order in which a dispatch passes them: by set and binding.
    fn parameters(&self) -> &[Parameter];

    /// Returns the bytes of its push constants, 0 if it has none.
    fn push_bytes(&self) -> usize;

    /// Lists the numbers in the push constants; empty if the module doesn't describe them.
    fn push_numbers(&self) -> &[PushNumber];

    /// Returns the threads of a workgroup in x, y, z.
    fn workgroup(&self) -> [u32; 3];

    /// Returns itself, for its own backend.
    fn as_any(&self) -> &dyn Any;
}

/// A queue of work on a device. Work runs in the order of submission and starts by itself.
///
/// # Safety
/// Work must touch only the memory of the operands, slices and bytes that it names. A stream must keep the buffers that
/// its work uses, and must not use the host's bytes after a call has returned.
pub unsafe trait Stream: Send {
    /// Enqueues commands in order. If a command works in place on the previous result, a device may fuse the two, with
    /// the same bits. If it returns an error, the refused command has written nothing. An error that only the device
    /// can find, such as an id outside a table, is returned by [`Stream::synchronize`]; that command has written
    /// nothing either.
    fn submit(&mut self, commands: &mut [Command<'_>]) -> Result<()>;

    /// Returns the bytes of the digits of a matrix `[k, n]`, the right operand of products in exact integers. `None` if the device keeps
    /// none.
    #[cfg(feature = "integers")]
    fn digits_bytes(&self, _precision: Precision, _sizes: [usize; 2]) -> Option<usize> {
        None
    }

    /// Enqueues the cutting of a matrix `[k, n]` of f32 into digits. If it is `transposed`, it lies there as `[n, k]`. `to` has the bytes
    /// that [`Stream::digits_bytes`] returns.
    #[cfg(feature = "integers")]
    fn cut(
        &mut self,
        _from: Slice<'_>,
        _precision: Precision,
        _sizes: [usize; 2],
        _transposed: bool,
        _to: &dyn Buffer,
    ) -> Result<()> {
        fail!(Unsupported, "this device keeps no digits")
    }

    /// Enqueues a user's kernel over workgroups in x, y, z. `buffers` follow the order of the kernel's parameters;
    /// `push` has the bytes of its push constants. `invalid_argument` if the number, sizes or alignments of buffers or
    /// the groups are wrong.
    fn dispatch(&mut self, kernel: &dyn Kernel, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<()>;

    /// Enqueues a copy of host bytes to a buffer. When it returns, the caller may reuse the bytes.
    fn write(&mut self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()>;

    /// Copies from a buffer to the host after all submitted work, and waits for the copy.
    fn read(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()>;

    /// Enqueues a copy from a buffer to memory that the host can read once the copy is done.
    fn download(&mut self, from: Slice<'_>) -> Result<Box<dyn Download>>;

    /// Enqueues a copy between two slices of the same length. Slices of one buffer must not overlap.
    fn copy(&mut self, from: Slice<'_>, to: Slice<'_>) -> Result<()>;

    /// Enqueues a copy from another device's memory, which [`Device::reaches`] must name, behind `after`, an event of one of that
    /// device's streams. The slices have the same length.
    fn copy_from(&mut self, _from: Slice<'_>, _after: &dyn Event, _to: Slice<'_>) -> Result<()> {
        fail!(Unsupported, "this device can't copy from another one's memory")
    }

    /// Enqueues a fill with zeros.
    fn clear(&mut self, to: Slice<'_>) -> Result<()>;

    /// Returns an event that the stream reaches when all work submitted so far is done.
    fn event(&mut self) -> Result<Arc<dyn Event>>;

    /// Makes all later work wait for an event of this or another stream of the device.
    fn wait(&mut self, event: &dyn Event) -> Result<()>;

    /// Enqueues a timestamp.
    fn timestamp(&mut self) -> Result<Arc<dyn Timestamp>>;

    /// Starts recording: work is recorded instead of run, until [`Stream::finish_recording`]. `invalid_argument` if the
    /// stream is already recording.
    fn start_recording(&mut self) -> Result<()>;

    /// Ends the recording and returns it. It can be replayed any number of times.
    fn finish_recording(&mut self) -> Result<Arc<dyn Recording>>;

    /// Enqueues the work of a recording.
    fn replay(&mut self, recording: &dyn Recording) -> Result<()>;

    /// Hands the enqueued work to the device now, without waiting for it.
    fn flush(&mut self) -> Result<()>;

    /// Waits until all enqueued work has finished. Returns the first error that the device found in it.
    fn synchronize(&mut self) -> Result<()>;

    /// Returns whether all enqueued work has finished.
    fn is_idle(&mut self) -> Result<bool>;
}

/// A point that a stream reaches.
///
/// # Safety
/// `as_any` must return `self`.
pub unsafe trait Event: Send + Sync {
    /// Returns whether the stream has reached it.
    fn is_done(&self) -> Result<bool>;

    /// Waits for at most `nanoseconds`. `not_ready` if the stream has not reached it by then.
    fn wait(&self, nanoseconds: u64) -> Result<()>;

    /// Returns itself, for its own backend.
    fn as_any(&self) -> &dyn Any;
}

/// A copy to the host that may still be under way.
///
/// # Safety
/// `bytes` and `take` must return bytes that have arrived, that nothing writes any more, and that stay valid until the
/// drop.
pub unsafe trait Download: Send + Sync {
    /// Returns the number of bytes.
    fn size(&self) -> usize;

    /// Returns whether the bytes have arrived.
    fn is_done(&self) -> Result<bool>;

    /// Returns the event of the bytes' arrival, to wait for; `None` if they have arrived.
    fn event(&self) -> Option<&dyn Event>;

    /// Waits for the bytes and returns them in place.
    fn bytes(&self) -> Result<&[u8]>;

    /// Waits for the bytes and copies them to `into`, which must have the same length.
    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()>;
}

/// A point in time, measured on the device.
///
/// # Safety
/// It must keep the memory that it reads.
pub unsafe trait Timestamp: Send + Sync {
    /// Returns nanoseconds since a point that all timestamps of the device share. `not_ready` if the device has not
    /// taken it yet.
    fn nanoseconds(&self) -> Result<u64>;
}

/// Recorded work.
///
/// # Safety
/// `as_any` must return `self`.
pub unsafe trait Recording: Send + Sync {
    /// Returns itself, for its own backend.
    fn as_any(&self) -> &dyn Any;
}

/// Returns the error of a buffer that is not in the memory of the device `id`.
#[cold]
fn not_there(buffer: &dyn Buffer, id: &str) -> Error {
    let text = format!("a buffer is on {}, not on {id} as this context opened it", buffer.device_name());
    Error::new(Status::InvalidArgument, text)
}

/// Checks that a slice lies within a buffer.
pub(crate) fn check_slice(what: &str, size: usize, offset: usize, bytes: usize) -> Result<()> {
    if offset > size || bytes > size - offset {
        fail!(InvalidArgument, "{what}: {bytes} bytes at offset {offset} don't fit in a buffer of {size} bytes");
    }
    Ok(())
}
