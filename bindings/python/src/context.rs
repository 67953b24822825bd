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

/// Opened devices; every operation is a method of it. Threads may share one.
///
/// `Context(device=None, isa=None, threads=None, precision=None)`: a device is "auto", "cpu", "cuda:1", "vulkan", a part of a GPU's name or
/// its UUID; several as one are "hybrid" (the CPU and every GPU) or names with commas between them; None is what the
/// environment and adead.toml say.
#[pyclass(frozen, subclass, module = "adead", name = "Context")]
#[derive(Clone)]
pub struct PyContext {
    pub inner: Context,
    /// Whether the processor is its only device.
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
        Err(wrong_type(format!("a path or bytes are needed, not a {}", source.get_type().name()?)))
    }

    fn read(self) -> adead::Result<Vec<u8>> {
        match self {
            Source::Path(path) => adead::files::read(&path),
            Source::Bytes(bytes) => Ok(bytes),
        }
    }
}

impl PyContext {
    /// A context for Python.
    pub fn of(inner: Context) -> PyContext {
        PyContext { alone: inner.devices().len() == 1, inner }
    }

    /// The id of the device that its buffers and streams are on.
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

/// The only words for threads and instruction sets are core's.
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

    /// Runs any operation by its name on a sequence of operands, None where an optional one is left out; attributes are
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
        Ok(PyTensor(operations::run_operands(py, self, op, &attrs, &sequence(operands)?)?))
    }

    /// Packs a matrix that is matmul's b many times. It is for products of the context's precision at this time: another
    /// precision in a product raises InvalidArgumentError.
    #[pyo3(signature = (b, trans_b=None))]
    fn pack(&self, py: Python<'_>, b: &Bound<'_, PyAny>, trans_b: Option<&Bound<'_, PyAny>>) -> Result<PyPacked> {
        let mut attrs = Attrs::default();
        if let Some(trans_b) = trans_b {
            attributes::set(&mut attrs, Op::Matmul, "trans_b", trans_b)?;
        }
        let b = Operand::new(b)?.tensor()?;
        Ok(PyPacked(interruptible(py, || self.inner.pack(&b, attrs.trans_b))?))
    }

    /// Begins to record operations that are to be run as a whole.
    fn pipeline(&self) -> PyPipeline {
        PyPipeline::new(&self.inner)
    }

    /// How the cache of what `Pipeline.execute` compiled was used: its entries, the most that it holds, hits and misses.
    fn pipeline_cache<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        cache_use(py, &self.inner)
    }

    /// What tensors keep on one of its devices, by its name: `budget` and `used` in bytes, how many `tensors`, `hits`, `misses` and
    /// `evictions` there were. Nothing on the CPU and on a GPU that was not used yet.
    fn tensor_cache<'py>(&self, py: Python<'py>, device: &str) -> Result<Bound<'py, PyDict>> {
        let TensorCacheUse { budget, used, tensors, hits, misses, evictions } = self.inner.tensor_cache(device)?;
        let dict = PyDict::new(py);
        let names = ["budget", "used", "tensors", "hits", "misses", "evictions"];
        for (name, value) in names.into_iter().zip([budget, used, tensors, hits, misses, evictions]) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// The most bytes that tensors may keep on each of its GPUs; half of its memory where this was not called. Those that were
    /// not used for longest leave, now and when others come; no value is lost.
    fn set_tensor_cache(&self, py: Python<'_>, bytes: u64) -> Result<()> {
        detached(py, || self.inner.set_tensor_cache(bytes))
    }

    /// How products are computed whose `precision` is not said: "f32", "fixed24" or "fixed16". It holds for calls, pipelines and
    /// programs that begin or are compiled after it is set. At first it is "f32". Layers keep what the context had when they
    /// were made.
    #[getter]
    fn precision(&self) -> &'static str {
        self.inner.precision().name()
    }

    #[setter]
    fn set_precision(&self, precision: &str) -> Result<()> {
        self.inner.set_precision(precision.parse()?);
        Ok(())
    }

    /// Returns a context of the same devices, threads, profile and settings, whose precision is its own: setting either's does
    /// not change the other's. So a layer or a pipeline can have another precision than the rest of a model:
    /// ``Linear(weight, context=ctx.with_precision("fixed24"))``.
    fn with_precision(&self, precision: &str) -> Result<PyContext> {
        Ok(PyContext::of(self.inner.with_precision(precision.parse()?)))
    }

    /// Begins to record what it and its streams do, in every thread: an `adead.Profile`, for a `with` block. `records` is how
    /// many it keeps, 65,536 where it is None; what is beyond is only counted. InvalidArgumentError while another is under way.
    #[pyo3(signature = (*, records=None))]
    fn profile<'py>(&self, py: Python<'py>, records: Option<usize>) -> Result<Bound<'py, PyAny>> {
        profile::begin(py, &self.inner, records)
    }

    /// What its device is: the one that it was opened on; the CPU of one that chooses.
    #[getter]
    fn device(&self) -> PyDevice {
        self.inner.device_info().into()
    }

    /// Every device that it can use.
    #[getter]
    fn devices(&self) -> Vec<PyDevice> {
        self.inner.devices().iter().map(Into::into).collect()
    }

    /// The id of the device for work on that many elements.
    fn select(&self, elements: usize) -> String {
        self.inner.select(elements).to_string()
    }

    /// On which device `run` with the same arguments would run, why, and what every device would take. Runs nothing.
    #[pyo3(signature = (op, operands, **attributes))]
    fn explain(
        &self,
        op: &str,
        operands: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyDict>>,
    ) -> Result<PyExplanation> {
        let op = Op::from_name(op)?;
        let attrs = keywords(op, attributes)?;
        let tensors: Vec<_> = sequence(operands)?
            .iter()
            .map(|operand| match operand {
                Operand::Absent => Ok(None),
                operand => operand.tensor().map(Some),
            })
            .collect::<Result<_>>()?;
        let operands: Vec<_> = tensors.iter().map(Option::as_ref).collect();
        guard(|| Ok(PyExplanation::new(&self.inner.explain(op, &attrs, &operands)?, &self.inner)))
    }

    /// Sends everything to one of its devices by id; None lets the costs decide.
    #[pyo3(signature = (device))]
    fn force(&self, device: Option<&str>) -> Result<()> {
        Ok(self.inner.dispatcher().force(device)?)
    }

    /// The id of the device that everything is sent to, if it is one.
    #[getter]
    fn forced(&self) -> Option<String> {
        let dispatcher = self.inner.dispatcher();
        dispatcher.forced().map(|device| dispatcher.profiles()[device].id.clone())
    }

    /// From how many elements on operations of a family go to a GPU; None lets the costs decide.
    #[pyo3(signature = (family, elements))]
    fn set_threshold(&self, family: &str, elements: Option<usize>) -> Result<()> {
        self.inner.dispatcher().set_threshold(family.parse::<Family>()?, elements);
        Ok(())
    }

    /// The threshold that was set for a family.
    fn threshold(&self, family: &str) -> Result<Option<usize>> {
        Ok(self.inner.dispatcher().threshold(family.parse::<Family>()?))
    }

    /// The memory of its GPU, or of the host where it has none.
    fn memory<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        device::memory_use(py, &detached(py, || self.inner.memory())?)
    }

    /// Gives back what is kept for the next work: scratch memory and threads.
    fn trim(&self, py: Python<'_>) -> Result<()> {
        detached(py, || {
            self.inner.trim();
            Ok(())
        })
    }

    /// A buffer on its GPU, in host memory where it has none: with a copy of an array or of numbers, or zeroed with `size`
    /// elements of `dtype`, or zeroed with `nbytes` bytes. What it was made of is remembered for `read`. Numbers and zeros are f32
    /// unless `dtype` says otherwise.
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
            _ => Err(wrong_type("buffer() takes one of data, size (elements) and nbytes (bytes)".into())),
        }
    }

    /// A tensor of what has DLPack on the CPU, and a buffer over what is on this context's CUDA device, which shares its
    /// memory; `copy=True` copies, `copy=False` makes a needed copy an error.
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

    /// A kernel from SPIR-V, a path or bytes: with another entry point than `main`, specialization constants by id.
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

    /// A kernel from PTX, a path or bytes: its first or the one of that name, with workgroups of a size that it leaves open.
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

    /// A kernel from a cubin or fatbin, a path or bytes.
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

    /// A program from an .adead file, or in an older format.
    fn load_adead(&self, py: Python<'_>, path: PathBuf) -> Result<PyProgram> {
        Ok(PyProgram::new(detached(py, || self.inner.load_adead(path))?))
    }

    /// The same module as another kernel: another entry point, other constants, another workgroup.
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

    /// Enqueues a kernel over workgroups in x, y, z, with buffers in the order of their set and binding. `push` is a number, numbers
    /// in the module's order, a dict or dataclass of numbers by name, or bytes. It returns at once; reading a buffer, or `wait`, waits.
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

    /// The point after everything that the context enqueued.
    fn event(&self, py: Python<'_>) -> Result<PyEvent> {
        Ok(PyEvent::new(detached(py, || self.inner.event())?, self.working()))
    }

    /// The same for the host to wait for.
    fn fence(&self, py: Python<'_>) -> Result<PyEvent> {
        Ok(PyEvent::new(detached(py, || self.inner.fence())?, self.working()))
    }

    /// A stream of its own. On an NVIDIA GPU through CUDA the work of one with high priority begins before that of other streams where
    /// both wait; elsewhere it is an ordinary stream.
    #[pyo3(signature = (*, high_priority = false))]
    fn stream(&self, py: Python<'_>, high_priority: bool) -> Result<PyStream> {
        let priority = if high_priority { Priority::High } else { Priority::Normal };
        Ok(PyStream::new(detached(py, || self.inner.stream_with(priority))?))
    }

    /// Makes it the default context inside the block, for this thread and this task of asyncio.
    fn __enter__(slf: Bound<'_, PyContext>) -> Result<Bound<'_, PyContext>> {
        current::enter(&slf)?;
        Ok(slf)
    }

    /// Waits for what was enqueued, and gives back what is kept for the next work. The default context is the one from before.
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

/// The best GPU of the machine, as a context. `GPU(device=None)`: "cuda", "vulkan:0", a part of its name or its UUID.
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
