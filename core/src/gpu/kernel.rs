//! Kernels of the user's.

use super::{Buffer, same};
use crate::devices::{Opened, same_through};
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::registry::{Backend, Language};
use crate::hal::{self, DeviceInfo, KernelSource, Number, Parameter, PushNumber, Slice};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// How to make a kernel of a module; `Default` is the entry point `main` of SPIR-V, else its first, with every constant at its
/// default.
#[derive(Clone, Debug, Default)]
pub struct PipelineOptions {
    /// The entry point.
    pub entry: Option<String>,
    /// Specialization constants by id: integers and booleans as they are, f32 by their bits.
    pub constants: Vec<(u32, u32)>,
    /// Threads of a workgroup in x, y, z, for a CUDA kernel whose module does not fix them; a SPIR-V module always does.
    pub workgroup: Option<[u32; 3]>,
}

impl PipelineOptions {
    /// With an integer or boolean constant.
    pub fn constant(mut self, id: u32, value: u32) -> PipelineOptions {
        self.constants.push((id, value));
        self
    }

    /// With another entry point.
    pub fn entry(mut self, name: impl Into<String>) -> PipelineOptions {
        self.entry = Some(name.into());
        self
    }

    /// With so many threads of a workgroup.
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

/// `unsupported`, with the device that takes such a module.
#[cold]
fn not_here(info: &DeviceInfo, language: Language) -> Error {
    let what = language.name();
    let there = match Backend::taking(language) {
        Some(backend) => match same_through(backend, info) {
            Some(id) => format!("open '{id}', which is the same GPU"),
            None => format!("this GPU is not there through {}", backend.name),
        },
        None => "no backend takes it".into(),
    };
    Error::new(Status::Unsupported, format!("{} takes no {what}: {there}", info.id))
}

/// A kernel, compiled for a device. Clones share it.
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
        // What else is no SPIR-V, Vulkan's own check says.
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

    /// The entry point.
    pub fn name(&self) -> &str {
        self.built.name()
    }

    /// The buffers that a dispatch gives, in order.
    pub fn parameters(&self) -> &[Parameter] {
        self.built.parameters()
    }

    /// Bytes of push constants that a dispatch gives.
    pub fn push_bytes(&self) -> usize {
        self.built.push_bytes()
    }

    /// The numbers that those bytes are, where the module tells: SPIR-V does, PTX of what is no structure, machine code not.
    pub fn push_numbers(&self) -> &[PushNumber] {
        self.built.push_numbers()
    }

    /// Push constants' bytes from one number for each, in the module's order. `invalid_argument` names the one that is missing or
    /// does not fit its type.
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

    /// [`Kernel::pack`] with the numbers by name. `invalid_argument` for one that is missing, unknown or given twice.
    pub fn pack_named(&self, numbers: &[(&str, Number)]) -> Result<Vec<u8>> {
        hal::pack_named(self.push_numbers(), self.push_bytes(), numbers)
    }

    /// Threads of a workgroup in x, y, z.
    pub fn workgroup(&self) -> [u32; 3] {
        self.built.workgroup()
    }

    /// `runs`: it is not only recorded.
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
            fail!(InvalidArgument, "the kernel is of one context's {kernel} and a buffer of another's {buffer}");
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
