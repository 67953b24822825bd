//! Contexts, and the GPU of the simple API.

use crate::attributes;
use crate::buffers::Exported;
use crate::current;
use crate::device::{self, PyDevice};
use crate::dispatch::PyExplanation;
use crate::dlpack;
use crate::dtypes::Named;
use crate::errors::{Result, detached, guard, interruptible, wrong_type};
use crate::gpu::{PyBuffer, PyKernel, buffers_of, groups_of, options};
use crate::operations::{self, keywords, sequence};
use crate::pipeline::{PyPipeline, cache_use};
use crate::profile;
use crate::program::PyProgram;
use crate::push;
use crate::stream::{PyEvent, PyStream};
use crate::tensor::PyTensor;
use crate::values::{Operand, PyPacked};
use adead::device::Isa;
use adead::dispatch::Family;
use adead::gpu::{Kernel, PipelineOptions, Priority};
use adead::{Attrs, Context, ContextOptions, Gpu, Meta, Op, Shape, TensorCacheUse};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::path::PathBuf;

/// Opened devices, with every operation as a method. Threads may share one.
///
/// `Context(device=None, isa=None, threads=None, precision=None)`: `device` is "auto", "cpu", "cuda:1", "vulkan", a part of a GPU's name or
/// its UUID. "hybrid" (the CPU and every GPU), or names separated by commas, open several devices as one. None takes the settings of the
/// environment or of adead.toml. `precision` is the default precision; None is "f32".
#[pyclass(frozen, subclass, module = "adead", name = "Context")]
#[derive(Clone)]
pub struct PyContext {
    pub inner: Context,
    /// Whether the CPU is the only device.
    pub alone: bool,
}

/// Where a kernel's module comes from.
enum Source {
    Path(PathBuf),
    Bytes(Vec<u8>),
}

impl Source {
    fn new(source: &Bound<'_, PyAny>) -> Result<Source> {
        if let Ok(path) = source.extract::<PathBuf>()
            && !source.is_instance_of::<PyBytes>()
        {
            return Ok(Source::Path(path));
        }
        if Exported::supports_buffer_protocol(source) {
            return Ok(Source::Bytes(Exported::bytes_of(source)?.bytes().to_vec()));
        }
        Err(wrong_type(format!("expected a path or bytes, not a {}", source.get_type().name()?)))
    }

    fn read(self) -> adead::Result<Vec<u8>> {
        match self {
            Source::Path(path) => adead::files::read(&path),
            Source::Bytes(bytes) => Ok(bytes),
        }
    }
}

impl PyContext {
    /// Makes a context for Python.
    pub fn of(inner: Context) -> PyContext {
        PyContext { alone: inner.devices().len() == 1, inner }
    }

    /// Returns the id of the device of the context's buffers and streams.
    fn working(&self) -> &str {
        self.inner.working_device().map_or("cpu", |info| &info.id)
    }

    fn load(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        options: PipelineOptions,
        make: impl FnOnce(&Context, &[u8], &PipelineOptions) -> adead::Result<Kernel>,
    ) -> Result<PyKernel> {
        let source = Source::new(source)?;
        Ok(PyKernel(detached(py, || make(&self.inner, &source.read()?, &options))?))
    }
}

/// Makes the core's options. The core parses the names, so this binding has no list of them.
fn context_options(isa: Option<&str>, threads: Option<usize>, precision: Option<&str>) -> Result<ContextOptions> {
    let isa = isa.map(|name| name.parse::<Isa>()).transpose()?;
    Ok(ContextOptions { isa, threads, precision: precision.map(str::parse).transpose()? })
}

#[pymethods]
impl PyContext {
    #[new]
    #[pyo3(signature = (device=None, *, isa=None, threads=None, precision=None))]
    fn new(
        py: Python<'_>,
        device: Option<&str>,
        isa: Option<&str>,
        threads: Option<usize>,
        precision: Option<&str>,
    ) -> Result<PyContext> {
        let options = context_options(isa, threads, precision)?;
        let open = || Context::configured(device, &options, &adead::config::Config::load()?);
        Ok(PyContext::of(detached(py, open)?))
    }

    /// Runs any operation by its name on a sequence of operands. None stands for an absent optional operand. Attributes are
    /// keywords.
    #[pyo3(signature = (op, operands, **attributes))]
    fn run(
        &self,
        py: Python<'_>,
        op: &str,
        operands: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyDict>>,
    ) -> Result<PyTensor> {
        let op = Op::from_name(op)?;
        let attrs = keywords(op, attributes)?;
        Ok(PyTensor(operations::run_operands(py, self, op, &attrs, &sequence(op, operands)?)?))
    }

    /// Packs a matrix for many matmuls that have it as b. Products with it have the default precision that the context has now. A product
    /// of another precision raises InvalidArgumentError. If the context runs everything on one GPU and computes in exact integers, the GPU
    /// keeps the matrix's digits.
    #[pyo3(signature = (b, trans_b=None))]
    fn pack(&self, py: Python<'_>, b: &Bound<'_, PyAny>, trans_b: Option<&Bound<'_, PyAny>>) -> Result<PyPacked> {
        let mut attrs = Attrs::default();
        if let Some(trans_b) = trans_b {
            attributes::set(&mut attrs, Op::Matmul, "trans_b", trans_b)?;
        }
        let b = Operand::new(b)?.tensor()?;
        Ok(PyPacked(interruptible(py, || self.inner.pack(&b, attrs.trans_b))?))
    }

    /// Makes an empty pipeline, which records operations and runs them as a whole.
    fn pipeline(&self) -> PyPipeline {
        PyPipeline::new(&self.inner)
    }

    /// Returns how the cache of compiled pipelines was used, by `Pipeline.execute` and by runs of programs: `entries`, the
    /// limit `most`, `hits` and `misses`.
    fn pipeline_cache<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        cache_use(py, &self.inner)
    }

    /// Returns the memory that tensors use on one of the context's devices, by its name: `budget` and `used` in bytes, and the
    /// numbers of `tensors`, `hits`, `misses` and `evictions`. All are 0 for the CPU and for a GPU that was not used yet.
    fn tensor_cache<'py>(&self, py: Python<'py>, device: &str) -> Result<Bound<'py, PyDict>> {
        let TensorCacheUse { budget, used, tensors, hits, misses, evictions } = self.inner.tensor_cache(device)?;
        let dict = PyDict::new(py);
        let names = ["budget", "used", "tensors", "hits", "misses", "evictions"];
        for (name, value) in names.into_iter().zip([budget, used, tensors, hits, misses, evictions]) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// Sets the most bytes that tensors may keep on each of the context's GPUs. The default is half of the GPU's memory. The
    /// least recently used copies are evicted, now and when others are added. No value is lost.
    fn set_tensor_cache(&self, py: Python<'_>, bytes: u64) -> Result<()> {
        detached(py, || self.inner.set_tensor_cache(bytes))
    }

    /// The default precision, "f32", "fixed24" or "fixed16": the precision of products that specify none. It applies to calls, pipelines
    /// and programs that start or are compiled later. The initial value is "f32", unless `Context` was given another. Layers keep the
    /// precision that the context had when they were made.
    #[getter]
    fn precision(&self) -> &'static str {
        self.inner.precision().name()
    }

    #[setter]
    fn set_precision(&self, precision: &str) -> Result<()> {
        self.inner.set_precision(precision.parse()?);
        Ok(())
    }

    /// Returns a context with the same devices, threads, profile and settings, and a default precision of its own: setting one
    /// does not change the other. This gives a layer or a pipeline another precision than the rest of a model:
    /// ``Linear(weight, context=ctx.with_precision("fixed24"))``.
    fn with_precision(&self, precision: &str) -> Result<PyContext> {
        Ok(PyContext::of(self.inner.with_precision(precision.parse()?)))
    }

    /// Starts recording the work of the context and its streams, in every thread. Returns an `adead.Profile` for a `with` block. It keeps
    /// at most `records` records, 65,536 by default; further ones are only counted. Raises InvalidArgumentError while another profile of
    /// the context is active.
    #[pyo3(signature = (*, records=None))]
    fn profile<'py>(&self, py: Python<'py>, records: Option<usize>) -> Result<Bound<'py, PyAny>> {
        profile::begin(py, &self.inner, records)
    }

    /// The device that the context was opened on. With several devices, it is the CPU, or without the CPU the first GPU.
    #[getter]
    fn device(&self) -> PyDevice {
        self.inner.device_info().into()
    }

    /// Every device that the context can use.
    #[getter]
    fn devices(&self) -> Vec<PyDevice> {
        self.inner.devices().iter().map(Into::into).collect()
    }

    /// Returns the id of the device for work on `elements` elements.
    fn select(&self, elements: usize) -> String {
        self.inner.select(elements).to_string()
    }

    /// Explains where `run` with the same arguments would run: device, reason and every device's estimate. Runs nothing.
    #[pyo3(signature = (op, operands, **attributes))]
    fn explain(
        &self,
        op: &str,
        operands: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyDict>>,
    ) -> Result<PyExplanation> {
        let op = Op::from_name(op)?;
        let attrs = keywords(op, attributes)?;
        let tensors: Vec<_> = sequence(op, operands)?
            .iter()
            .map(|operand| match operand {
                Operand::Absent => Ok(None),
                operand => operand.tensor().map(Some),
            })
            .collect::<Result<_>>()?;
        let operands: Vec<_> = tensors.iter().map(Option::as_ref).collect();
        guard(|| Ok(PyExplanation::new(&self.inner.explain(op, &attrs, &operands)?, &self.inner)))
    }

    /// Runs everything on one of the context's devices, by its id. None lets the cost model decide again.
    #[pyo3(signature = (device))]
    fn force(&self, device: Option<&str>) -> Result<()> {
        Ok(self.inner.dispatcher().force(device)?)
    }

    /// The id of the device that runs everything; None if the context chooses among devices.
    #[getter]
    fn forced(&self) -> Option<String> {
        let dispatcher = self.inner.dispatcher();
        dispatcher.forced().map(|device| dispatcher.profiles()[device].id.clone())
    }

    /// Sets the threshold of a family: operations with at least `elements` elements run on a GPU, smaller ones on the CPU. None
    /// lets the cost model decide.
    #[pyo3(signature = (family, elements))]
    fn set_threshold(&self, family: &str, elements: Option<usize>) -> Result<()> {
        self.inner.dispatcher().set_threshold(family.parse::<Family>()?, elements);
        Ok(())
    }

    /// Returns the threshold that was set for a family; None if there is none.
    fn threshold(&self, family: &str) -> Result<Option<usize>> {
        Ok(self.inner.dispatcher().threshold(family.parse::<Family>()?))
    }

    /// Returns the memory use of the GPU, or of the host without one: `total`, `free`, `held` and `used` in bytes, and the
    /// number of `allocations`.
    fn memory<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        device::memory_use(py, &detached(py, || self.inner.memory())?)
    }

    /// Frees resources kept for later work: scratch memory, cached pipelines, and GPU copies of tensors that are also in host memory.
    /// Worker threads end.
    fn trim(&self, py: Python<'_>) -> Result<()> {
        detached(py, || {
            self.inner.trim();
            Ok(())
        })
    }

    /// Makes a buffer on the GPU, or in host memory without one. It holds a copy of an array or of numbers, or zeros: `size`
    /// elements of `dtype`, or `nbytes` bytes. Dtype and shape become the defaults of `read`. Numbers and zeros are f32 unless
    /// `dtype` is given.
    #[pyo3(signature = (data=None, *, size=None, nbytes=None, dtype=None))]
    fn buffer(
        &self,
        py: Python<'_>,
        data: Option<&Bound<'_, PyAny>>,
        size: Option<usize>,
        nbytes: Option<usize>,
        dtype: Option<Named>,
    ) -> Result<PyBuffer> {
        let dtype = dtype.map(|Named(dtype)| dtype);
        let zeroed = |elements: usize, bytes: Option<usize>| {
            let meta = Meta::new(dtype.unwrap_or_default(), Shape::new(&[elements])?);
            let buffer = detached(py, || self.inner.buffer_zeroed(bytes.unwrap_or(meta.bytes())))?;
            Ok(PyBuffer::new(buffer, self, meta))
        };
        match (data, size, nbytes) {
            (Some(data), None, None) => PyBuffer::of_data(py, self, data, dtype),
            (None, Some(size), None) => zeroed(size, None),
            (None, None, Some(nbytes)) => zeroed(nbytes / dtype.unwrap_or_default().size(), Some(nbytes)),
            _ => Err(wrong_type("buffer() needs one of data, size (elements) and nbytes (bytes)".into())),
        }
    }

    /// Imports an object with DLPack: a tensor of memory on the CPU, or a buffer that shares memory on this context's CUDA
    /// device. `copy=True` copies; `copy=False` raises an error if a copy is needed.
    #[allow(clippy::wrong_self_convention, reason = "Python's name for it")]
    #[pyo3(signature = (x, /, *, copy=None))]
    fn from_dlpack<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        dlpack::import_on(py, self, x, copy)
    }

    /// Loads a kernel from SPIR-V, a path or bytes. `entry` is `main` by default; specialization `constants` are by id.
    #[pyo3(signature = (source, *, entry=None, constants=None, workgroup=None))]
    fn load_spirv(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        entry: Option<String>,
        constants: Option<&Bound<'_, PyDict>>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<PyKernel> {
        self.load(py, source, options(entry, constants, workgroup)?, Context::load_spirv_with)
    }

    /// Loads a kernel from PTX, given as a path or bytes. `entry` is the kernel's name, by default the first. `workgroup` sets
    /// the threads of a workgroup if the module does not fix them.
    #[pyo3(signature = (source, *, entry=None, constants=None, workgroup=None))]
    fn load_ptx(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        entry: Option<String>,
        constants: Option<&Bound<'_, PyDict>>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<PyKernel> {
        self.load(py, source, options(entry, constants, workgroup)?, Context::load_ptx_with)
    }

    /// Compiles a kernel from source and loads it on the context's GPU. A CUDA device takes CUDA C++, which NVRTC compiles. A Vulkan device
    /// takes a GLSL compute shader, which glslangValidator compiles. The compiler's messages call the source `name`. `InvalidKernelError`
    /// has these messages, with line numbers. `BackendUnavailableError` says where a compiler was searched for; the package
    /// nvidia-cuda-nvrtc has NVRTC.
    #[pyo3(signature = (source, *, name="kernel", entry=None, constants=None, workgroup=None))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn compile_kernel(
        &self,
        py: Python<'_>,
        source: &str,
        name: &str,
        entry: Option<String>,
        constants: Option<&Bound<'_, PyDict>>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<PyKernel> {
        let options = options(entry, constants, workgroup)?;
        Ok(PyKernel(detached(py, || self.inner.compile_kernel(source, name, &options))?))
    }

    /// Loads a kernel from a cubin or fatbin, given as a path or bytes.
    #[pyo3(signature = (source, *, entry=None, constants=None, workgroup=None))]
    fn load_cubin(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        entry: Option<String>,
        constants: Option<&Bound<'_, PyDict>>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<PyKernel> {
        self.load(py, source, options(entry, constants, workgroup)?, Context::load_cubin_with)
    }

    /// Loads a program from an .adead file or from a file in an older format.
    fn load_adead(&self, py: Python<'_>, path: PathBuf) -> Result<PyProgram> {
        Ok(PyProgram::new(detached(py, || self.inner.load_adead(path))?))
    }

    /// Makes another kernel from the same module, with another entry point, constants or workgroup.
    #[pyo3(signature = (kernel, *, entry=None, constants=None, workgroup=None))]
    fn create_pipeline(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, PyKernel>,
        entry: Option<String>,
        constants: Option<&Bound<'_, PyDict>>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<PyKernel> {
        let (kernel, options) = (&kernel.get().0, options(entry, constants, workgroup)?);
        Ok(PyKernel(detached(py, || self.inner.create_pipeline(kernel, &options))?))
    }

    /// Enqueues a kernel over workgroups in x, y, z, with buffers in the order of their set and binding. `push` is a number,
    /// numbers in the module's order, a dict or dataclass of numbers by name, or bytes. The call returns at once; `wait` and
    /// reading a buffer wait.
    #[pyo3(signature = (kernel, *buffers, groups, push=None))]
    fn dispatch(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, PyKernel>,
        buffers: &Bound<'_, PyTuple>,
        groups: &Bound<'_, PyAny>,
        push: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let buffers = buffers_of(buffers)?;
        let push = push::bytes(&kernel.get().0, push)?;
        let (buffers, groups) =
            (buffers.iter().map(|buffer| buffer.get().core()).collect::<Vec<_>>(), groups_of(groups)?);
        detached(py, || self.inner.dispatch_with(&kernel.get().0, &buffers, &push, groups))
    }

    /// Waits until everything that the context enqueued has finished.
    fn wait(&self, py: Python<'_>) -> Result<()> {
        interruptible(py, || self.inner.wait())
    }

    /// Creates an event after everything that the context has enqueued so far.
    fn event(&self, py: Python<'_>) -> Result<PyEvent> {
        Ok(PyEvent::new(detached(py, || self.inner.event())?, self.working()))
    }

    /// Creates an event as `event` does, for the host to wait for.
    fn fence(&self, py: Python<'_>) -> Result<PyEvent> {
        Ok(PyEvent::new(detached(py, || self.inner.fence())?, self.working()))
    }

    /// Makes a new stream. On an NVIDIA GPU through CUDA, pending work of a stream with `high_priority` starts before that of other
    /// streams. Other devices ignore the priority.
    #[pyo3(signature = (*, high_priority = false))]
    fn stream(&self, py: Python<'_>, high_priority: bool) -> Result<PyStream> {
        let priority = if high_priority { Priority::High } else { Priority::Normal };
        Ok(PyStream::new(detached(py, || self.inner.stream_with(priority))?))
    }

    /// Makes the context the default one inside the block, for this thread and this asyncio task.
    fn __enter__(slf: Bound<'_, PyContext>) -> Result<Bound<'_, PyContext>> {
        current::enter(&slf)?;
        Ok(slf)
    }

    /// Restores the previous default context, waits for enqueued work, and trims the context.
    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: Bound<'_, PyContext>, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Result<()> {
        current::leave(&slf)?;
        let ctx = slf.get();
        ctx.wait(py)?;
        ctx.trim(py)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}

/// A context on the best GPU. `GPU(device=None)`: `device` is "cuda", "vulkan:0", a part of a GPU's name or its UUID.
#[pyclass(frozen, extends = PyContext, module = "adead", name = "GPU")]
pub struct PyGpu;

#[pymethods]
impl PyGpu {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(py: Python<'_>, device: Option<&str>) -> Result<PyClassInitializer<PyGpu>> {
        let gpu = detached(py, || match device {
            Some(device) => Gpu::open(device),
            None => Gpu::new(),
        })?;
        Ok(PyClassInitializer::from(PyContext::of(gpu.context().clone())).add_subclass(PyGpu))
    }
}
