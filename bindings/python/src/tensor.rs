//! Tensors.

use crate::buffers::{self, Exported};
use crate::contents::{dimensions, inferred, nested, rows_text};
use crate::context::PyContext;
use crate::current::default_context;
use crate::dlpack;
use crate::dtypes::{self, Named};
use crate::errors::{Result, detached, fail, wrong_type};
use crate::operations;
use crate::operators::or_not;
use crate::sharing::Bytes;
use crate::values::tensor_of;
use adead::{Attrs, DType, Meta, Op, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PySlice, PyTuple, PyType};
use std::ffi::c_int;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A shaped value. Its contents never change, so threads may share one.
///
/// `Tensor(data, dtype=None, shape=None)` copies an array (buffer protocol or DLPack), a number, or nested sequences of
/// numbers. Floats become f32, ints i64 and bools bool; a float64 array becomes f32, unless `dtype` is "f64".
/// `adead.asarray` shares an array's memory instead.
#[pyclass(frozen, module = "adead", name = "Tensor", weakref)]
pub struct PyTensor(pub Tensor);

/// The tensor class; NULL until the module is made.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

impl PyTensor {
    /// Keeps the class for [`PyTensor::is`].
    pub fn remember(class: &Bound<'_, PyType>) {
        CLASS.store(class.as_type_ptr(), Ordering::Relaxed);
    }

    /// Returns whether an object is a tensor. The class can't be subclassed.
    ///
    /// # Safety
    /// `object` is an object, and the caller holds the GIL.
    #[inline]
    pub unsafe fn is(object: *mut ffi::PyObject) -> bool {
        // SAFETY: as the caller says.
        unsafe { ffi::Py_TYPE(object) == CLASS.load(Ordering::Relaxed) }
    }

    fn meta(&self) -> Meta {
        Meta::new(self.0.dtype(), *self.0.shape())
    }

    /// Returns its bytes in host memory. While they are copied from a device, other threads run.
    pub fn on_host(&self, py: Python<'_>) -> Result<&[u8]> {
        on_host(py, &self.0)
    }
}

/// Returns a tensor's bytes in host memory; see [`PyTensor::on_host`].
pub fn on_host<'a>(py: Python<'_>, tensor: &'a Tensor) -> Result<&'a [u8]> {
    if tensor.is_on_host() { Ok(tensor.host_bytes()?) } else { detached(py, || tensor.host_bytes()) }
}

/// Returns an index of `rows` entries; a negative one counts from the end.
fn row(index: &Bound<'_, PyAny>, rows: usize, axis: usize) -> Result<usize> {
    let given: isize = index.extract()?;
    let at = if given < 0 { given + rows as isize } else { given };
    match usize::try_from(at) {
        Ok(at) if at < rows => Ok(at),
        _ => {
            let text = format!("index {given} is outside {rows} entries of axis {axis}");
            Err(pyo3::exceptions::PyIndexError::new_err(text).into())
        }
    }
}

/// Returns an entry of the first axis.
fn entry(tensor: &Tensor, at: usize) -> Result<Tensor> {
    Ok(tensor.rows(at, 1)?.reshape(&tensor.dims()[1..])?)
}

/// Returns the entry of the first axes with these indices, without a copy; None if an index is no int, or there are none or too many.
fn element(tensor: &Tensor, index: &Bound<'_, PyTuple>) -> Result<Option<Tensor>> {
    if index.is_empty() || index.len() > tensor.dims().len() {
        return Ok(None);
    }
    if !index.iter_borrowed().all(|one| one.is_exact_instance_of::<PyInt>()) {
        return Ok(None);
    }
    let mut place = 0;
    for (axis, (one, &size)) in index.iter_borrowed().zip(tensor.dims()).enumerate() {
        place = place * size + row(&one, size, axis)?;
    }
    let rest = &tensor.dims()[index.len()..];
    let lines = tensor.dims()[..index.len()].iter().product();
    let lines: Vec<usize> = [lines].into_iter().chain(rest.iter().copied()).collect();
    Ok(Some(tensor.reshape(&lines)?.rows(place, 1)?.reshape(rest)?))
}

/// Returns a range of entries of the first axis; None for another index, or a range with steps.
fn range(tensor: &Tensor, index: &Bound<'_, PyAny>, rows: usize) -> Result<Option<Tensor>> {
    let Ok(slice) = index.cast::<PySlice>() else { return Ok(None) };
    let range = slice.indices(rows as isize)?;
    if range.step != 1 {
        return Ok(None);
    }
    Ok(Some(tensor.rows(range.start as usize, range.slicelength)?))
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (data, dtype=None, shape=None))]
    fn new(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        dtype: Option<Named>,
        shape: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyTensor> {
        let dtype = dtype.map(|Named(dtype)| dtype);
        let tensor = tensor_of(&default_context(py)?.get().inner, data, dtype)?;
        Ok(PyTensor(match shape {
            Some(shape) => tensor.reshape(&inferred(shape, tensor.len())?)?,
            None => tensor,
        }))
    }

    /// Makes a tensor from its elements' bytes, row-major, in the machine's order, as `tobytes` returns them. bf16
    /// tensors can be made from their bits this way.
    #[staticmethod]
    fn frombytes(data: &Bound<'_, PyAny>, dtype: Named, shape: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let bytes = Exported::bytes_of(data)?;
        Ok(PyTensor(Tensor::from_bytes(bytes.bytes(), dtype.0, &dimensions(shape)?)?))
    }

    /// Makes a tensor of zeros.
    #[staticmethod]
    #[pyo3(signature = (shape, dtype=None))]
    fn zeros(shape: &Bound<'_, PyAny>, dtype: Option<Named>) -> Result<PyTensor> {
        let dtype = dtype.map(|Named(dtype)| dtype).unwrap_or_default();
        Ok(PyTensor(Tensor::zeros(dtype, &dimensions(shape)?)?))
    }

    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.dims())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.dims().len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.len()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.byte_len()
    }

    /// The element type, an `adead.DType`. It equals its name, such as "f32", and NumPy's dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        Ok(dtypes::objects(py)?[self.0.dtype() as usize].clone_ref(py))
    }

    /// The tensor with its axes reversed.
    #[getter(T)]
    fn turned(&self, py: Python<'_>) -> Result<PyTensor> {
        let views = [Some(self.0.view())];
        Ok(PyTensor(operations::run(py, default_context(py)?.get(), Op::Transpose, &Attrs::DEFAULT, &views)?))
    }

    /// Returns the same values in another shape, without a copy. The number of elements must be equal; one dimension may be -1, which
    /// stands for the remaining elements.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> Result<PyTensor> {
        let dims = match shape.len() {
            1 => inferred(&shape.get_item(0)?, self.0.len())?,
            _ => inferred(shape, self.0.len())?,
        };
        Ok(PyTensor(self.0.reshape(&dims)?))
    }

    /// Copies the values to a device of the default context, or of `ctx`, by its name. May return while the copy is in progress. Clones and
    /// reshapes share the copy. Operations on the device use it, and their results stay on the device that computed them. "cpu" does the
    /// same as `to_cpu()`.
    #[pyo3(signature = (device, *, ctx=None))]
    fn to(&self, py: Python<'_>, device: &str, ctx: Option<&Bound<'_, PyContext>>) -> Result<PyTensor> {
        let ctx = match ctx {
            Some(ctx) => ctx.clone(),
            None => default_context(py)?,
        };
        let ctx = &ctx.get().inner;
        Ok(PyTensor(detached(py, || ctx.to(&self.0, device))?))
    }

    /// Starts to copy the values to host memory if they are only on devices; reading them waits.
    fn to_cpu(&self, py: Python<'_>) -> Result<PyTensor> {
        Ok(PyTensor(detached(py, || self.0.to_cpu())?))
    }

    /// The places that hold the values: "cpu" for host memory, and ids of devices.
    #[getter]
    fn places(&self) -> Vec<String> {
        self.0.places()
    }

    /// Returns the elements' bytes, row-major, in the machine's order.
    fn tobytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = self.on_host(py)?;
        // Without memory for a copy this raises an error instead of aborting.
        Ok(PyBytes::new_with(py, bytes.len(), |room| {
            room.copy_from_slice(bytes);
            Ok(())
        })?)
    }

    /// Returns the elements as numbers in nested lists; for a scalar, the number.
    fn tolist<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        nested(py, &self.numbers(py)?, self.0.dims())
    }

    /// Returns the only element, as a number. `shape_mismatch` if there are more or none.
    fn item<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        if self.0.len() != 1 {
            let (shape, n) = (self.0.shape(), self.0.len());
            fail!(
                ShapeMismatch,
                "a tensor of shape {shape} has {n} elements, not one: take x[i] first, or use tolist()"
            );
        }
        let only = self.0.reshape(&[])?;
        nested(py, &PyTensor(only).numbers(py)?, &[])
    }

    /// Returns a NumPy array that shares the memory and is read-only.
    fn numpy<'py>(slf: &Bound<'py, PyTensor>) -> Result<Bound<'py, PyAny>> {
        PyTensor::__array__(slf, None, None)
    }

    /// Implements NumPy's protocol: an array that shares the memory, unless another dtype or a copy is asked for.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, PyTensor>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = slf.py();
        if slf.get().0.dtype() == DType::BF16 {
            fail!(DtypeMismatch, "NumPy has no bf16: cast to f32 first, or use tobytes() or DLPack");
        }
        let view = pyo3::types::PyMemoryView::from(slf.as_any())?;
        let array = py.import("numpy")?.call_method1("asarray", (view,))?;
        let same = match dtype {
            Some(dtype) => array.getattr("dtype")?.eq(py.import("numpy")?.call_method1("dtype", (dtype,))?)?,
            None => true,
        };
        if same && copy != Some(true) {
            return Ok(array);
        }
        if !same && copy == Some(false) {
            let text = "another dtype needs a copy, but copy is False";
            return Err(pyo3::exceptions::PyValueError::new_err(text).into());
        }
        Ok(array.call_method1("astype", (dtype.cloned().unwrap_or(array.getattr("dtype")?),))?)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, PyTensor>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let request = dlpack::Request { stream, max_version, dl_device, copy };
        dlpack::export_tensor(slf, &request)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    unsafe fn __getbuffer__(slf: Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // Never dangling. Without elements it is not read.
        let start = NonNull::from(slf.get().on_host(slf.py())?).cast();
        let meta = slf.get().meta();
        // SAFETY: the view is to be filled in, and the tensor keeps its memory.
        unsafe { buffers::export(slf.into_any(), view, flags, start, &meta, true) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `__getbuffer__` filled it in.
        unsafe { buffers::release(view) };
    }

    /// Pickles the tensor. With protocol 5 the elements travel as a buffer, out of band if the pickler supports it.
    fn __reduce_ex__<'py>(slf: &Bound<'py, PyTensor>, protocol: i32) -> Result<Bound<'py, PyTuple>> {
        let (py, tensor) = (slf.py(), &slf.get().0);
        let shape = PyTuple::new(py, tensor.dims())?;
        let make = py.get_type::<PyTensor>().getattr("frombytes")?;
        let data = if protocol >= 5 {
            // As bytes, because the buffer protocol has a format for them whatever the dtype.
            let bytes = tensor.clone();
            let holder = Bound::new(py, Bytes(bytes))?;
            py.import("pickle")?.call_method1("PickleBuffer", (holder,))?
        } else {
            slf.get().tobytes(py)?.into_any()
        };
        Ok(PyTuple::new(
            py,
            [
                make,
                PyTuple::new(py, [data, tensor.dtype().name().into_bound_py_any(py)?, shape.into_any()])?.into_any(),
            ],
        )?)
    }

    fn __copy__(slf: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, PyTensor>, _memo: &Bound<'py, PyAny>) -> Bound<'py, PyTensor> {
        slf
    }

    /// Returns dtype, shape and values. Each row has its own line; long axes show only the first and the last entries.
    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        rows_text(py, self)
    }

    /// Compares each element, with broadcasting, and returns a bool tensor.
    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, compare: CompareOp) -> Result<Py<PyAny>> {
        let op = match compare {
            CompareOp::Eq => Op::Equal,
            CompareOp::Ne => Op::NotEqual,
            CompareOp::Lt => Op::Less,
            CompareOp::Le => Op::LessEqual,
            CompareOp::Gt => Op::Greater,
            CompareOp::Ge => Op::GreaterEqual,
        };
        if other.is_instance_of::<PyList>() || other.is_instance_of::<PyTuple>() {
            // Otherwise Python would compare identities.
            let kind = other.get_type().name()?;
            return Err(wrong_type(format!(
                "a tensor can be compared with tensors, arrays and numbers: make a Tensor of the {kind}"
            )));
        }
        or_not(py, self.operator(py, op, other, false))
    }

    /// Hashes by identity, so that tensors may be keys.
    fn __hash__(slf: &Bound<'_, PyTensor>) -> isize {
        (slf.as_ptr().addr() >> 4) as isize
    }

    /// Iterates over the entries of the first axis.
    fn __iter__<'py>(slf: &Bound<'py, PyTensor>) -> Result<Bound<'py, PyAny>> {
        if slf.get().0.dims().is_empty() {
            return Err(wrong_type("a scalar has no entries to iterate over: use item()".into()));
        }
        // SAFETY: a sequence; the result is a new reference, or NULL with an exception.
        Ok(unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr())) }?)
    }

    fn __len__(&self) -> Result<usize> {
        match self.0.dims().first() {
            Some(&rows) => Ok(rows),
            None => Err(wrong_type("a scalar has no length".into())),
        }
    }

    /// Returns a part, as NumPy does: integers, slices with steps, `...`, None, and arrays of bools or integers. An entry or a range of the
    /// first axis shares memory instead of being copied: `x[0]`, `x[-1]`, `x[2:5]`.
    fn __getitem__<'py>(slf: &Bound<'py, PyTensor>, index: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let (py, tensor) = (slf.py(), &slf.get().0);
        let part = match tensor.dims().first() {
            Some(&rows) if index.is_exact_instance_of::<PyInt>() => Some(entry(tensor, row(index, rows, 0)?)?),
            Some(&rows) => match index.cast::<PyTuple>() {
                Ok(index) => element(tensor, index)?,
                Err(_) => range(tensor, index, rows)?,
            },
            None => None,
        };
        match part {
            Some(part) => Ok(Bound::new(py, PyTensor(part))?.into_any()),
            None => Ok(py.import("adead._indexing")?.call_method1("part", (slf, index))?),
        }
    }

    fn __float__(&self, py: Python<'_>) -> Result<f64> {
        Ok(self.item(py)?.extract()?)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.item(py)?.call_method0("__int__")?)
    }

    fn __bool__(&self, py: Python<'_>) -> Result<bool> {
        if self.0.len() != 1 {
            let (shape, n) = (self.0.shape(), self.0.len());
            fail!(
                ShapeMismatch,
                "a tensor of shape {shape} has {n} elements, so it is neither true nor false: use adead.all(x) or adead.any(x)"
            );
        }
        Ok(self.item(py)?.is_truthy()?)
    }

    fn __neg__(&self, py: Python<'_>) -> Result<PyTensor> {
        let views = [Some(self.0.view())];
        Ok(PyTensor(operations::run(py, default_context(py)?.get(), Op::Neg, &Attrs::DEFAULT, &views)?))
    }

    fn __abs__(&self, py: Python<'_>) -> Result<PyTensor> {
        let views = [Some(self.0.view())];
        Ok(PyTensor(operations::run(py, default_context(py)?.get(), Op::Abs, &Attrs::DEFAULT, &views)?))
    }

    fn __add__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.plus(py, other))
    }

    fn __radd__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.onto(py, other))
    }

    fn __sub__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.minus(py, other))
    }

    fn __rsub__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.from(py, other))
    }

    fn __mul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.times(py, other))
    }

    fn __rmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.by(py, other))
    }

    fn __truediv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.over(py, other))
    }

    fn __rtruediv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.under(py, other))
    }

    /// Implements `**` and `pow(x, y)`. A third argument, the modulus, is not supported.
    fn __pow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulus: Option<&Bound<'_, PyAny>>,
    ) -> Result<Py<PyAny>> {
        if modulus.is_some() { Ok(py.NotImplemented()) } else { or_not(py, self.raised(py, other)) }
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulus: Option<&Bound<'_, PyAny>>,
    ) -> Result<Py<PyAny>> {
        if modulus.is_some() { Ok(py.NotImplemented()) } else { or_not(py, self.exponent_of(py, other)) }
    }

    fn __matmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.product(py, other))
    }

    fn __rmatmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        or_not(py, self.of(py, other))
    }
}
