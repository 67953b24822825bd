//! The runtime of users' own GPU work: buffers, kernels, streams. On the same devices and streams as the operations.
//!
//! Work that a context enqueues runs in order behind what was enqueued before; reading a buffer waits for it. Streams of one's
//! own run beside each other, ordered by events.

mod array;
mod buffer;
#[cfg(all(test, feature = "cuda"))]
mod guard_tests;
mod kernel;
mod stream;

pub use array::{GpuArray, One};
pub use buffer::{Buffer, Operand};
pub use kernel::{Kernel, PipelineOptions};
pub use stream::{Download, Event, Fence, Recording, Stream, Timestamp};

use crate::context::{Context, ContextOptions};
use crate::devices::{Opened, no_gpu};
use crate::error::{Result, Status, fail};
use crate::files::read;
use crate::fpenv::DefaultEnvironment;
use crate::hal::registry::Language;
use crate::hal::{DeviceInfo, MemoryUse};
pub use crate::hal::{Number, NumberKind, Priority, PushNumber};
use crate::profile::{Reason, What};
use crate::program::Program;
use crate::tensor::Element;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// The best GPU of the machine, as a context: `Gpu::new()`, and then everything that a [`Context`] does.
#[derive(Clone, Debug)]
pub struct Gpu(Context);

impl Gpu {
    /// Opens the best GPU: one of its own memory before one in the processor, and a software one only where there is no other.
    /// Through Vulkan, which takes kernels in SPIR-V whoever made the GPU; through CUDA where Vulkan has none.
    /// `backend_unavailable` says why there is none.
    pub fn new() -> Result<Gpu> {
        match Gpu::open("vulkan") {
            Err(error) if error.status() == Status::BackendUnavailable => Gpu::open("cuda").map_err(|_| error),
            opened => opened,
        }
    }

    /// Opens a GPU by `cuda:0`, `vulkan:0`, a part of its name or its UUID.
    pub fn open(device: &str) -> Result<Gpu> {
        if matches!(device, "auto" | "cpu" | "hybrid") {
            return Err(no_gpu(&format!("'{device}' names none")));
        }
        Ok(Gpu(Context::with_options(device, &ContextOptions::default())?))
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.0
    }
}

impl Deref for Gpu {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

/// Buffers, kernels and streams, on the context's GPU; where it has none, buffers are in host memory and kernels are
/// `unsupported`.
impl Context {
    /// A buffer with a copy of these values.
    pub fn buffer<T: Element>(&self, data: &[T]) -> Result<Buffer> {
        // SAFETY: any Copy slice is readable as its bytes.
        self.buffer_of_bytes(unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) })
    }

    /// A buffer with a copy of these bytes.
    pub fn buffer_of_bytes(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = Buffer::new(self.working()?, bytes.len(), false)?;
        buffer.write_bytes(0, bytes)?;
        Ok(buffer)
    }

    /// A buffer of so many bytes, zeroed.
    pub fn buffer_zeroed(&self, bytes: usize) -> Result<Buffer> {
        Buffer::new(self.working()?, bytes, true)
    }

    /// A buffer over CUDA memory that somebody else has, without a copy; its address is a multiple of 16. `device` is the id of
    /// the CUDA device that it is on. `owner` is dropped when neither the buffer nor work uses the memory any more. What CUDA's
    /// default stream was given before is done when it returns. `invalid_argument` if the context's GPU is another,
    /// `unsupported` if it is not a CUDA device.
    ///
    /// # Safety
    /// So many bytes are there on that device until `owner` is dropped, and whoever else uses them orders that use.
    pub unsafe fn buffer_over(
        &self,
        device: &str,
        address: u64,
        bytes: usize,
        owner: Box<dyn Send + Sync>,
    ) -> Result<Buffer> {
        let opened = self.working()?;
        let own = &opened.device.info().id;
        if device != own {
            fail!(InvalidArgument, "the memory is on {device} and the context on {own}: open '{device}'");
        }
        // SAFETY: passed on.
        Ok(Buffer::over(opened, unsafe { opened.device.over(address, bytes, owner) }?, bytes))
    }

    /// Waits for what others, who share memory of this context, gave CUDA's default stream; on other devices there is nothing
    /// to wait for.
    pub fn wait_for_others(&self) -> Result<()> {
        self.working()?.device.wait_for_others()
    }

    /// A kernel from a SPIR-V file, with the entry point called `main`, else its first, and every specialization constant at its
    /// default. `io` if the file can't be read, `invalid_kernel` if it is malformed or the driver refuses it, `unsupported` if
    /// it needs what the device has not; and on a CUDA device, with the Vulkan device that is the same GPU.
    pub fn load_spirv(&self, path: impl AsRef<Path>) -> Result<Kernel> {
        self.load_spirv_bytes(&read(path.as_ref())?)
    }

    /// A kernel from a SPIR-V module in memory.
    pub fn load_spirv_bytes(&self, code: &[u8]) -> Result<Kernel> {
        self.load_spirv_with(code, &PipelineOptions::default())
    }

    /// A kernel from a SPIR-V module in memory, with another entry point, with specialization constants.
    pub fn load_spirv_with(&self, code: &[u8], options: &PipelineOptions) -> Result<Kernel> {
        Kernel::new(self.working()?.clone(), code.into(), options, Language::Spirv)
    }

    /// A kernel from a PTX file, its first: its leading 64-bit parameters are buffers, the rest push constants. `io` if the file
    /// can't be read, `invalid_kernel` if it is malformed or the driver refuses it, `unsupported` if it needs what the device or
    /// its driver has not; and on a Vulkan device, with the CUDA device that is the same GPU.
    pub fn load_ptx(&self, path: impl AsRef<Path>) -> Result<Kernel> {
        self.load_ptx_bytes(&read(path.as_ref())?)
    }

    /// A kernel from PTX in memory, with or without a zero at its end.
    pub fn load_ptx_bytes(&self, code: &[u8]) -> Result<Kernel> {
        self.load_ptx_with(code, &PipelineOptions::default())
    }

    /// A kernel from PTX in memory, of another name, with workgroups of a size that it leaves open.
    pub fn load_ptx_with(&self, code: &[u8], options: &PipelineOptions) -> Result<Kernel> {
        Kernel::new(self.working()?.clone(), code.into(), options, Language::Cuda)
    }

    /// As [`Context::load_ptx`], from a cubin, which is machine code for one architecture, or a fatbin, which may have code for
    /// several and PTX. `unsupported` where none of it is for the device; a fatbin also needs a driver of CUDA 12.4.
    pub fn load_cubin(&self, path: impl AsRef<Path>) -> Result<Kernel> {
        self.load_cubin_bytes(&read(path.as_ref())?)
    }

    /// A kernel from a cubin or fatbin in memory.
    pub fn load_cubin_bytes(&self, code: &[u8]) -> Result<Kernel> {
        self.load_cubin_with(code, &PipelineOptions::default())
    }

    /// A kernel from a cubin or fatbin in memory, of another name, with workgroups of a size that it leaves open.
    pub fn load_cubin_with(&self, code: &[u8], options: &PipelineOptions) -> Result<Kernel> {
        self.load_ptx_with(code, options)
    }

    /// The same module as another kernel: with another entry point, with other specialization constants or another workgroup.
    pub fn create_pipeline(&self, kernel: &Kernel, options: &PipelineOptions) -> Result<Kernel> {
        kernel.again(self.working()?.clone(), options)
    }

    /// A program from an `.adead` file (or in an older format), to be run with [`Program::run`] on this context.
    pub fn load_adead(&self, path: impl AsRef<Path>) -> Result<Program> {
        Program::load(path.as_ref())
    }

    /// Enqueues a kernel over workgroups in x, y, z, with buffers in the order of their set and binding. It returns at once;
    /// reading a buffer, or [`Context::wait`], waits. `invalid_argument` says what does not fit: the number of buffers, their
    /// sizes, the groups, missing push constants.
    pub fn dispatch(&self, kernel: &Kernel, buffers: &[&Buffer], groups: [u32; 3]) -> Result<()> {
        self.dispatch_with(kernel, buffers, &[], groups)
    }

    /// [`Context::dispatch`] with push constants' bytes.
    pub fn dispatch_with(&self, kernel: &Kernel, buffers: &[&Buffer], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let what = What::kernel(kernel.name(), groups, Reason::Operands);
        self.working()?.watched(&what, |stream| kernel.dispatch(stream, buffers, push, groups, true))
    }

    /// Waits until everything that the context enqueued has finished.
    pub fn wait(&self) -> Result<()> {
        self.working()?.catch_up()?;
        self.working()?.with(|stream| stream.synchronize())
    }

    /// What the device is that its buffers, kernels and streams are on: its GPU, the CPU where it has none. Errors are those of
    /// opening it.
    pub fn working_device(&self) -> Result<&DeviceInfo> {
        Ok(self.working()?.device.info())
    }

    /// The point after everything that the context enqueued, for streams to wait for and the host to ask.
    pub fn event(&self) -> Result<Event> {
        Ok(Event::new(self.working()?.with(|stream| stream.event())?))
    }

    /// The same for the host to wait for.
    pub fn fence(&self) -> Result<Fence> {
        self.event()
    }

    /// A stream of its own.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(Priority::Normal)
    }

    /// A stream of its own with that priority: on an NVIDIA GPU through CUDA the work of [`Priority::High`] begins before that of
    /// other streams; elsewhere it is an ordinary stream.
    pub fn stream_with(&self, priority: Priority) -> Result<Stream> {
        Stream::new(self.working()?.clone(), priority)
    }

    /// The memory of the context's GPU, or of the host where it has none.
    pub fn memory(&self) -> Result<MemoryUse> {
        let _environment = DefaultEnvironment::enter();
        Ok(self.working()?.device.memory())
    }
}

/// Whether two things are of one opened device.
fn same(a: &Arc<Opened>, b: &Arc<Opened>) -> bool {
    Arc::ptr_eq(&a.device, &b.device)
}
