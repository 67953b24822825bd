//! Buffers and kernels.

use crate::buffers::Doubles;
use crate::contents::inferred;
use crate::context::PyContext;
use crate::dlpack;
use crate::dtypes::Named;
use crate::errors::{Result, detached, fail, wrong_type};
use crate::tensor::PyTensor;
use crate::values::{Operand, is_number, tensor_of};
use adead::gpu::{Buffer, Kernel, PipelineOptions};
use adead::{Context, DType, Meta, Shape};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// A range of memory on a device. It has a size in bytes, and a default dtype and shape, which are not enforced.
#[pyclass(frozen, module = "adead", name = "Buffer", weakref)]
pub struct PyBuffer {
    buffer: Buffer,
    /// The context, which waits for the buffer's device and casts data.
    ctx: Context,
    meta: Meta,
}

impl PyBuffer {
    /// Makes a buffer for Python.
    pub fn new(buffer: Buffer, ctx: &PyContext, meta: Meta) -> PyBuffer {
        PyBuffer { buffer, ctx: ctx.inner.clone(), meta }
    }

    /// Makes a buffer with a copy of anything that can be a tensor, except a single number, which could mean a size.
    pub fn of_data(py: Python<'_>, ctx: &PyContext, data: &Bound<'_, PyAny>, dtype: Option<DType>) -> Result<PyBuffer> {
        if is_number(data) {
            let number = data.str()?;
            return Err(wrong_type(format!(
                "buffer({number}): a single number is ambiguous: buffer(size={number}) makes that many zeros, \
                 buffer(nbytes={number}) that many zero bytes, and buffer([{number}]) holds the number"
            )));
        }
        let numbers = data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>();
        let operand = match (numbers, dtype) {
            (false, None) => Operand::new(data)?,
            // Kernels compute in f32, so numbers become f32 unless the dtype is named.
            _ => Operand::Own(tensor_of(&ctx.inner, data, dtype.or(numbers.then_some(DType::F32)))?),
        };
        let meta = match operand.view() {
            Some(view) if !matches!(operand, Operand::Packed(_)) => *view.meta(),
            _ => return Err(wrong_type("buffer() takes an array, a tensor or numbers".into())),
        };
        let bytes = bytes(&operand)?;
        let buffer = detached(py, || ctx.inner.buffer_of_bytes(bytes))?;
        Ok(PyBuffer::new(buffer, ctx, meta))
    }

    /// Returns the runtime's buffer.
    pub fn core(&self) -> &Buffer {
        &self.buffer
    }

    /// Returns the context that made it.
    pub fn context(&self) -> &Context {
        &self.ctx
    }

    /// Returns the default dtype and shape.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the requested dtype and shape, or else the default ones.
    fn described(&self, dtype: Option<Named>, shape: Option<&Bound<'_, PyAny>>, offset: usize) -> Result<Meta> {
        if dtype.is_none() && shape.is_none() && offset == 0 {
            let (bytes, known) = (self.buffer.size(), self.meta.bytes());
            if bytes != known {
                fail!(
                    InvalidArgument,
                    "a buffer of {bytes} bytes is not a whole number of {} elements: give dtype and shape",
                    self.dtype()
                );
            }
            return Ok(self.meta);
        }
        let dtype = dtype.map_or(self.meta.dtype, |Named(dtype)| dtype);
        let rest = self.buffer.size().saturating_sub(offset) / dtype.size();
        let shape = match shape {
            Some(shape) => Shape::new(&inferred(shape, rest)?)?,
            None => Shape::new(&[rest])?,
        };
        Ok(Meta::new(dtype, shape))
    }
}

/// Returns an operand's bytes in host memory.
fn bytes<'a>(operand: &'a Operand<'_>) -> Result<&'a [u8]> {
    let Some(view) = operand.view() else { return Err(wrong_type("data must not be None".into())) };
    // SAFETY: the view's maker vouched for this many initialised bytes while the operand lives.
    Ok(unsafe { std::slice::from_raw_parts(view.host()?, view.meta().bytes()) })
}

#[pymethods]
impl PyBuffer {
    /// The number of elements of its dtype, as for tensors and arrays.
    #[getter]
    fn size(&self) -> usize {
        self.buffer.size() / self.meta.dtype.size()
    }

    /// The size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.buffer.size()
    }

    /// The id of its device.
    #[getter]
    fn device(&self) -> &str {
        &self.buffer.device().id
    }

    /// The dtype that `read` returns by default.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.meta.dtype.name()
    }

    /// The shape that `read` returns by default.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.meta.shape.dims())
    }

    /// Waits for enqueued work, and copies an array, a tensor or numbers to the buffer at a byte offset.
    #[pyo3(signature = (data, offset=0))]
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>, offset: usize) -> Result<()> {
        let operand = match is_number(data) || data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>() {
            true => Operand::Own(tensor_of(&self.ctx, data, Some(self.meta.dtype))?),
            false => Operand::with(data, Doubles::beside(self.meta.dtype == DType::F64))?,
        };
        let bytes = bytes(&operand)?;
        detached(py, || self.buffer.write_bytes(offset, bytes))
    }

    /// Waits for enqueued work, and copies the buffer to a tensor, of its default dtype and shape or of others.
    #[pyo3(signature = (dtype=None, shape=None, offset=0))]
    fn read(
        &self,
        py: Python<'_>,
        dtype: Option<Named>,
        shape: Option<&Bound<'_, PyAny>>,
        offset: usize,
    ) -> Result<PyTensor> {
        let meta = self.described(dtype, shape, offset)?;
        Ok(PyTensor(detached(py, || self.buffer.to_tensor(offset, &meta))?))
    }

    /// Waits for enqueued work, and returns `nbytes` bytes from a byte offset on; None returns all bytes after it.
    #[pyo3(signature = (offset=0, nbytes=None))]
    fn read_bytes<'py>(&self, py: Python<'py>, offset: usize, nbytes: Option<usize>) -> Result<Bound<'py, PyBytes>> {
        let size = nbytes.unwrap_or(self.buffer.size().saturating_sub(offset));
        if size > self.buffer.size() {
            // The core refuses it before memory of this size is allocated.
            fail!(InvalidArgument, "{size} bytes don't fit in a buffer of {} bytes", self.buffer.size());
        }
        let mut bytes = crate::values::reserved(size)?;
        bytes.resize(size, 0);
        detached(py, || self.buffer.read_bytes(offset, &mut bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the buffer, or a part from a byte offset on, as an operand of `Stream.run` with another dtype and shape.
    #[pyo3(signature = (dtype=None, shape=None, offset=0))]
    fn view(
        slf: Bound<'_, PyBuffer>,
        dtype: Option<Named>,
        shape: Option<&Bound<'_, PyAny>>,
        offset: usize,
    ) -> Result<PyBufferView> {
        let meta = slf.get().described(dtype, shape, offset)?;
        Ok(PyBufferView { buffer: slf.unbind(), offset, meta })
    }

    /// Frees the memory once the work that uses it has finished.
    fn free(&self, py: Python<'_>) -> Result<()> {
        detached(py, || self.buffer.free())
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, PyBuffer>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let request = dlpack::Request { stream, max_version, dl_device, copy };
        dlpack::export_buffer(slf, &request)
    }

    fn __dlpack_device__(&self) -> Result<(i32, i32)> {
        dlpack::device_of(&self.buffer)
    }

    fn __enter__(slf: Bound<'_, PyBuffer>) -> Bound<'_, PyBuffer> {
        slf
    }

    /// Frees the buffer if it was not freed before.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Result<()> {
        if self.buffer.memory().is_ok() { self.free(py) } else { Ok(()) }
    }

    fn __repr__(&self) -> String {
        let state = if self.buffer.memory().is_ok() { "" } else { ", freed" };
        format!("Buffer({:?}, {} bytes on {}{state})", self.meta, self.buffer.size(), self.device())
    }
}

/// A buffer as an operand: an offset in bytes, a dtype and a shape.
#[pyclass(frozen, module = "adead", name = "BufferView")]
pub struct PyBufferView {
    pub buffer: Py<PyBuffer>,
    pub offset: usize,
    pub meta: Meta,
}

#[pymethods]
impl PyBufferView {
    /// The buffer.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> Py<PyBuffer> {
        self.buffer.clone_ref(py)
    }

    /// The offset of the first element, in bytes.
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.meta.dtype.name()
    }

    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.meta.shape.dims())
    }

    fn __repr__(&self) -> String {
        format!("BufferView({:?} at byte {})", self.meta, self.offset)
    }
}

/// A kernel that was compiled for a device.
#[pyclass(frozen, module = "adead", name = "Kernel")]
pub struct PyKernel(pub Kernel);

#[pymethods]
impl PyKernel {
    /// The entry point.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The buffers of a dispatch, in order.
    #[getter]
    fn parameters(&self) -> Vec<PyParameter> {
        let all = self.0.parameters().iter();
        all.map(|it| PyParameter { slot: it.slot, least: it.least, stride: it.stride, readonly: it.readonly }).collect()
    }

    /// Bytes of a dispatch's push constants.
    #[getter]
    fn push_bytes(&self) -> usize {
        self.0.push_bytes()
    }

    /// The numbers in these bytes, each with its name in the module, its type such as "u32", and its byte offset. Empty if the module does
    /// not describe them.
    #[getter]
    fn push_constants(&self) -> Vec<(String, String, u32)> {
        let all = self.0.push_numbers().iter();
        all.map(|number| (number.name.clone(), number.kind.to_string(), number.offset)).collect()
    }

    /// Threads of a workgroup in x, y, z.
    #[getter]
    fn workgroup(&self) -> (u32, u32, u32) {
        self.0.workgroup().into()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A buffer of a kernel.
#[pyclass(frozen, get_all, module = "adead", name = "Parameter")]
pub struct PyParameter {
    /// The descriptor set and the binding.
    slot: (u32, u32),
    /// The smallest allowed size of a buffer for it, in bytes.
    least: u64,
    /// Bytes of an element of its runtime-sized array; 0 if it has none.
    stride: u64,
    /// Whether the kernel declares that it never writes the buffer.
    readonly: bool,
}

#[pymethods]
impl PyParameter {
    fn __repr__(&self) -> String {
        let Self { slot: (set, binding), least, stride, readonly } = self;
        format!("Parameter(set {set}, binding {binding}, from {least} bytes, stride {stride}, readonly {readonly})")
    }
}

/// Returns a kernel's options. Constants are ints, bools or floats; a float is rounded to f32.
pub fn options(
    entry: Option<String>,
    constants: Option<&Bound<'_, PyDict>>,
    workgroup: Option<[u32; 3]>,
) -> Result<PipelineOptions> {
    let mut options = PipelineOptions { entry, workgroup, ..PipelineOptions::default() };
    for (id, value) in constants.into_iter().flatten() {
        let value = match value.extract::<i64>() {
            Ok(value) => match u32::try_from(value).or_else(|_| i32::try_from(value).map(|value| value as u32)) {
                Ok(value) => value,
                Err(_) => fail!(InvalidArgument, "constant {value} has more than 32 bits"),
            },
            Err(_) => (value.extract::<f64>()? as f32).to_bits(),
        };
        options.constants.push((id.extract()?, value));
    }
    Ok(options)
}

/// Returns the buffers of a dispatch.
pub fn buffers_of<'py>(buffers: &Bound<'py, PyTuple>) -> Result<Vec<Bound<'py, PyBuffer>>> {
    let one = |buffer: Bound<'py, PyAny>| match buffer.cast_into::<PyBuffer>() {
        Ok(buffer) => Ok(buffer),
        Err(error) => {
            let name = error.into_inner().get_type().name()?.to_string();
            Err(wrong_type(format!("a dispatch takes buffers, not a {name}: gpu.buffer(…) makes one")))
        }
    };
    buffers.iter().map(one).collect()
}

/// Returns workgroups from an int, or from one to three ints; missing ones are 1.
pub fn groups_of(groups: &Bound<'_, PyAny>) -> Result<[u32; 3]> {
    let given: Vec<u32> = match groups.extract::<u32>() {
        Ok(x) => vec![x],
        Err(_) => groups.extract()?,
    };
    match given[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => fail!(InvalidArgument, "groups are one to three numbers, not {}", given.len()),
    }
}
