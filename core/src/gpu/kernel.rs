//! Users' kernels.

use super::{Buffer, same};
use crate::devices::{Opened, same_through};
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::registry::{Backend, Language};
use crate::hal::{self, DeviceInfo, KernelSource, Number, Parameter, PushNumber, Slice};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// How to make a kernel from a module. With `Default`, the entry point is `main` for SPIR-V, or else the first one, and every
/// constant has its default.
#[derive(Clone, Debug, Default)]
pub struct PipelineOptions {
    /// The entry point.
    pub entry: Option<String>,
    /// Specialization constants by id: integers and booleans as they are, f32 as their bits.
    pub constants: Vec<(u32, u32)>,
    /// Threads of a workgroup in x, y, z, for a CUDA kernel whose module does not fix them. A SPIR-V module always fixes them.
    pub workgroup: Option<[u32; 3]>,
}

impl PipelineOptions {
    /// Sets an integer or boolean constant.
    pub fn constant(mut self, id: u32, value: u32) -> PipelineOptions {
        self.constants.push((id, value));
        self
    }

    /// Sets the entry point.
    pub fn entry(mut self, name: impl Into<String>) -> PipelineOptions {
        self.entry = Some(name.into());
        self
    }

    /// Sets the threads of a workgroup.
    pub fn workgroup(mut self, threads: [u32; 3]) -> PipelineOptions {
        self.workgroup = Some(threads);
        self
    }
}

impl Language {
    fn of(code: &[u8]) -> Language {
        let spirv = 0x0723_0203_u32;
        let is_spirv = code.starts_with(&spirv.to_le_bytes()) || code.starts_with(&spirv.to_be_bytes());
        if is_spirv { Language::Spirv } else { Language::Cuda }
    }

    fn name(self) -> &'static str {
        match self {
            Language::Spirv => "SPIR-V",
            Language::Cuda => "PTX, cubins and fatbins",
        }
    }
}

/// Makes an `unsupported` error that names the device for this kind of module.
#[cold]
fn not_here(info: &DeviceInfo, language: Language) -> Error {
    let what = language.name();
    let there = match Backend::taking(language) {
        Some(backend) => match same_through(backend, info) {
            Some(id) => format!("open '{id}', which is the same GPU"),
            None => format!("{} does not see this GPU", backend.name),
        },
        None => "no backend accepts it".into(),
    };
    Error::new(Status::Unsupported, format!("{} does not accept {what}: {there}", info.id))
}

/// A kernel compiled for a device. Clones share it.
#[derive(Clone)]
pub struct Kernel {
    opened: Arc<Opened>,
    code: Arc<[u8]>,
    built: Arc<dyn hal::Kernel>,
}

impl Kernel {
    pub(super) fn new(
        opened: Arc<Opened>,
        code: Arc<[u8]>,
        options: &PipelineOptions,
        said: Language,
    ) -> Result<Kernel> {
        let info = opened.device.info();
        let takes = Backend::of(&info.id).map(|(backend, _)| backend.takes);
        // Vulkan's own check reports other bytes that are not SPIR-V.
        let is = if takes == Some(Language::Cuda) { Language::of(&code) } else { said };
        if let Some(other) = [said, is].into_iter().find(|&language| takes.is_some_and(|takes| takes != language)) {
            return Err(not_here(info, other));
        }
        let PipelineOptions { entry, constants, workgroup } = options;
        let source = KernelSource { code: &code, entry: entry.as_deref(), constants, workgroup: *workgroup };
        let _environment = DefaultEnvironment::enter();
        let built = opened.device.kernel(&source)?;
        Ok(Kernel { opened, code, built })
    }

    pub(super) fn again(&self, opened: Arc<Opened>, options: &PipelineOptions) -> Result<Kernel> {
        Kernel::new(opened, self.code.clone(), options, Language::of(&self.code))
    }

    /// Returns the name of the entry point.
    pub fn name(&self) -> &str {
        self.built.name()
    }

    /// Returns the buffers that a dispatch passes, in order.
    pub fn parameters(&self) -> &[Parameter] {
        self.built.parameters()
    }

    /// Returns the bytes of push constants that a dispatch passes.
    pub fn push_bytes(&self) -> usize {
        self.built.push_bytes()
    }

    /// Returns the numbers in the push constants, if the module describes them. SPIR-V does, and so does PTX unless a parameter
    /// is a structure. Machine code does not.
    pub fn push_numbers(&self) -> &[PushNumber] {
        self.built.push_numbers()
    }

    /// Packs one number for each push constant into bytes, in the module's order. Returns `invalid_argument` with the name of a
    /// number that is missing or does not fit its type.
    ///
    /// ```no_run
    /// # fn main() -> adead_core::Result<()> {
    /// use adead_core::gpu::{Gpu, Number};
    /// let gpu = Gpu::new()?;
    /// let (kernel, a) = (gpu.load_spirv("vecadd.spv")?, gpu.buffer(&[1.0f32; 1000])?);
    /// let push = kernel.pack(&[Number::Integer(1000)])?;
    /// gpu.dispatch_with(&kernel, &[&a, &a, &gpu.buffer_zeroed(4000)?], &push, [4, 1, 1])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn pack(&self, numbers: &[Number]) -> Result<Vec<u8>> {
        hal::pack(self.push_numbers(), self.push_bytes(), numbers)
    }

    /// Packs numbers by name like [`Kernel::pack`]. Returns `invalid_argument` for a number that is missing, unknown or given
    /// twice.
    pub fn pack_named(&self, numbers: &[(&str, Number)]) -> Result<Vec<u8>> {
        hal::pack_named(self.push_numbers(), self.push_bytes(), numbers)
    }

    /// Returns the threads of a workgroup in x, y, z.
    pub fn workgroup(&self) -> [u32; 3] {
        self.built.workgroup()
    }

    /// Dispatches the kernel. `runs` is false while the stream only records.
    pub(super) fn dispatch(
        &self,
        stream: &mut dyn hal::Stream,
        buffers: &[&Buffer],
        push: &[u8],
        groups: [u32; 3],
        runs: bool,
    ) -> Result<()> {
        if let Some(other) = buffers.iter().find(|buffer| !same(buffer.opened(), &self.opened)) {
            let (kernel, buffer) = (&self.opened.device.info().id, &other.device().id);
            fail!(
                InvalidArgument,
                "the kernel belongs to a context on {kernel}, and a buffer to another context on {buffer}"
            );
        }
        let memories: SmallVec<[Arc<dyn hal::Buffer>; 8]> =
            buffers.iter().map(|buffer| buffer.memory()).collect::<Result<_>>()?;
        let slices: SmallVec<[Slice<'_>; 8]> = memories
            .iter()
            .zip(buffers)
            .map(|(memory, of)| Slice { buffer: &**memory, offset: 0, bytes: of.size() })
            .collect();
        let mut work = |stream: &mut dyn hal::Stream| stream.dispatch(&*self.built, &slices, push, groups);
        match &self.opened.guards {
            Some(guards) if runs => {
                let name = format!("kernel '{}' over {groups:?} workgroups", self.name());
                let place_of = |number| buffers.iter().position(|buffer| buffer.guard() == Some(number));
                guards.watch(stream, &name, &place_of, &mut work)
            }
            _ => work(stream),
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({}, {} buffers, workgroup {:?})", self.name(), self.parameters().len(), self.workgroup())
    }
}
