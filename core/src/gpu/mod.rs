//! Users' own GPU work: buffers, kernels, streams. It runs on the same devices and streams as the operations.
//!
//! Work that a context enqueues runs in order, and reading a buffer waits for it. Streams of your own run concurrently; events
//! order them.

mod array;
mod buffer;
#[cfg(feature = "compilers")]
mod compile;
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
#[cfg(feature = "programs")]
use crate::program::Program;
use crate::tensor::Element;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// Opens the best GPU of the machine as a context: `Gpu::new()`. It has all methods of [`Context`].
#[derive(Clone, Debug)]
pub struct Gpu(Context);

impl Gpu {
    /// Opens the best GPU. A GPU with its own memory is preferred over one in the processor. A software GPU is used only if there
    /// is no other. Vulkan is used first, because it accepts SPIR-V kernels on every maker's GPU; without a Vulkan GPU, CUDA is
    /// used. `backend_unavailable` states why there is no GPU.
    pub fn new() -> Result<Gpu> {
        match Gpu::open("vulkan") {
            Err(error) if error.status() == Status::BackendUnavailable => Gpu::open("cuda").map_err(|_| error),
            opened => opened,
        }
    }

    /// Opens a GPU by name: `cuda:0`, `vulkan:0`, a part of its name, or its UUID.
    pub fn open(device: &str) -> Result<Gpu> {
        if matches!(device, "auto" | "cpu" | "hybrid") {
            return Err(no_gpu(&format!("'{device}' is not a GPU")));
        }
        Ok(Gpu(Context::with_options(device, &ContextOptions::default())?))
    }

    /// Returns the context.
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

/// Buffers, kernels and streams on the context's GPU. Without a GPU, buffers are in host memory and kernels are `unsupported`.
impl Context {
    /// Makes a buffer with a copy of these values.
    pub fn buffer<T: Element>(&self, data: &[T]) -> Result<Buffer> {
        // SAFETY: any Copy slice is readable as its bytes.
        self.buffer_of_bytes(unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) })
    }

    /// Makes a buffer with a copy of these bytes.
    pub fn buffer_of_bytes(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = Buffer::new(self.working()?, bytes.len(), false)?;
        buffer.write_bytes(0, bytes)?;
        Ok(buffer)
    }

    /// Makes a zeroed buffer of this many bytes.
    pub fn buffer_zeroed(&self, bytes: usize) -> Result<Buffer> {
        Buffer::new(self.working()?, bytes, true)
    }

    /// Makes a buffer over CUDA memory that other code owns, without a copy. The address must be a multiple of 16, and `device`
    /// is the id of the memory's CUDA device. `owner` is dropped when neither the buffer nor enqueued work uses the memory any
    /// more. The call returns once CUDA's default stream has finished its earlier work. Returns `invalid_argument` if the
    /// context's GPU is another one, `unsupported` if it is not a CUDA device.
    ///
    /// # Safety
    /// The device must have this many bytes at the address until `owner` is dropped. Other users of the memory must order their
    /// accesses.
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
        // SAFETY: the caller keeps this function's contract, which is the same.
        Ok(Buffer::over(opened, unsafe { opened.device.over(address, bytes, owner) }?, bytes))
    }

    /// Waits for the work that other code enqueued on CUDA's default stream, so that memory it used can be reused. Does nothing
    /// on other devices.
    pub fn wait_for_others(&self) -> Result<()> {
        self.working()?.device.wait_for_others()
    }

    /// Loads a kernel from a SPIR-V file. The entry point is `main`, or else the first one. Specialization constants have their
    /// defaults. Returns `io` if the file can't be read, `invalid_kernel` if it is malformed or the driver refuses it,
    /// `unsupported` if the device lacks something that it needs. On a CUDA device it is `unsupported` too, and the error names
    /// the Vulkan device of the same GPU.
    pub fn load_spirv(&self, path: impl AsRef<Path>) -> Result<Kernel> {
        self.load_spirv_bytes(&read(path.as_ref())?)
    }

    /// Loads a kernel from a SPIR-V module in memory.
    pub fn load_spirv_bytes(&self, code: &[u8]) -> Result<Kernel> {
        self.load_spirv_with(code, &PipelineOptions::default())
    }

    /// Loads a kernel from a SPIR-V module in memory, with options such as the entry point and specialization constants.
    pub fn load_spirv_with(&self, code: &[u8], options: &PipelineOptions) -> Result<Kernel> {
        Kernel::new(self.working()?.clone(), code.into(), options, Language::Spirv)
    }

    /// Loads the first kernel of a PTX file. Its leading 64-bit parameters are buffers, the others push constants. Returns `io`
    /// if the file can't be read, `invalid_kernel` if it is malformed or the driver refuses it, `unsupported` if the device or
    /// its driver lacks something that it needs. On a Vulkan device it is `unsupported` too, and the error names the CUDA device
    /// of the same GPU.
    pub fn load_ptx(&self, path: impl AsRef<Path>) -> Result<Kernel> {
        self.load_ptx_bytes(&read(path.as_ref())?)
    }

    /// Loads a kernel from PTX in memory. A terminating zero is optional.
    pub fn load_ptx_bytes(&self, code: &[u8]) -> Result<Kernel> {
        self.load_ptx_with(code, &PipelineOptions::default())
    }

    /// Loads a kernel from PTX in memory, with options such as its name and the workgroup size that the module leaves open.
    pub fn load_ptx_with(&self, code: &[u8], options: &PipelineOptions) -> Result<Kernel> {
        Kernel::new(self.working()?.clone(), code.into(), options, Language::Cuda)
    }

    /// Loads a kernel like [`Context::load_ptx`] from a cubin or a fatbin. A cubin is machine code for one architecture. A fatbin
    /// may hold code for several architectures, and PTX. Returns `unsupported` if none of it fits the device. A fatbin also needs
    /// a driver for CUDA 12.4.
    pub fn load_cubin(&self, path: impl AsRef<Path>) -> Result<Kernel> {
        self.load_cubin_bytes(&read(path.as_ref())?)
    }

    /// Loads a kernel from a cubin or fatbin in memory.
    pub fn load_cubin_bytes(&self, code: &[u8]) -> Result<Kernel> {
        self.load_cubin_with(code, &PipelineOptions::default())
    }

    /// Loads a kernel from a cubin or fatbin in memory, with options such as its name and the workgroup size that the module
    /// leaves open.
    pub fn load_cubin_with(&self, code: &[u8], options: &PipelineOptions) -> Result<Kernel> {
        self.load_ptx_with(code, options)
    }

    /// Makes another kernel from the same module, with another entry point, specialization constants or workgroup.
    pub fn create_pipeline(&self, kernel: &Kernel, options: &PipelineOptions) -> Result<Kernel> {
        kernel.again(self.working()?.clone(), options)
    }

    /// Loads a program from an `.adead` file (or an older format). [`Program::run`] runs it on a context.
    #[cfg(feature = "programs")]
    pub fn load_adead(&self, path: impl AsRef<Path>) -> Result<Program> {
        Program::load(path.as_ref())
    }

    /// Enqueues a kernel over workgroups in x, y, z. Buffers are in the order of their set and binding. It returns at once;
    /// reading a buffer and [`Context::wait`] wait. `invalid_argument` states what does not fit: the number of buffers, their
    /// sizes, the workgroups, missing push constants.
    pub fn dispatch(&self, kernel: &Kernel, buffers: &[&Buffer], groups: [u32; 3]) -> Result<()> {
        self.dispatch_with(kernel, buffers, &[], groups)
    }

    /// Enqueues a kernel like [`Context::dispatch`], with the bytes of its push constants.
    pub fn dispatch_with(&self, kernel: &Kernel, buffers: &[&Buffer], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let what = What::kernel(kernel.name(), groups, Reason::Operands);
        self.working()?.watched(&what, |stream| kernel.dispatch(stream, buffers, push, groups, true))
    }

    /// Waits until everything that the context enqueued is done.
    pub fn wait(&self) -> Result<()> {
        self.working()?.finish()
    }

    /// Returns the device of the context's buffers, kernels and streams: its GPU, or the CPU if it has none. Returns the errors
    /// of opening it.
    pub fn working_device(&self) -> Result<&DeviceInfo> {
        Ok(self.working()?.device.info())
    }

    /// Returns the point after everything that the context enqueued. Streams can wait for it, and the host can query it.
    pub fn event(&self) -> Result<Event> {
        Ok(Event::new(self.working()?.with(|stream| stream.event())?))
    }

    /// Returns the same point for the host to wait for.
    pub fn fence(&self) -> Result<Fence> {
        self.event()
    }

    /// Makes a new stream.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(Priority::Normal)
    }

    /// Makes a new stream with a priority. On an NVIDIA GPU through CUDA, work of [`Priority::High`] begins before that of other
    /// streams. Elsewhere the priority has no effect.
    pub fn stream_with(&self, priority: Priority) -> Result<Stream> {
        Stream::new(self.working()?.clone(), priority, self.default_precision().clone())
    }

    /// Returns the memory use of the context's GPU, or of the host if it has none.
    pub fn memory(&self) -> Result<MemoryUse> {
        let _environment = DefaultEnvironment::enter();
        Ok(self.working()?.device.memory())
    }
}

/// Whether both belong to the same opened device.
fn same(a: &Arc<Opened>, b: &Arc<Opened>) -> bool {
    Arc::ptr_eq(&a.device, &b.device)
}
