//! Tensors that share memory: that of other libraries' arrays, or their own with a pickler.

use crate::buffers::{Doubles, Exported};
use crate::current::default_context;
use crate::dlpack;
use crate::dtypes::Named;
use crate::errors::{Result, fail};
use crate::tensor::{PyTensor, on_host};
use crate::values::{Operand, tensor_of};
use adead::{DType, Tensor};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::c_int;

/// A tensor's bytes, for out-of-band pickling.
#[pyclass(frozen, module = "adead._adead", name = "_Bytes")]
pub struct Bytes(pub Tensor);

#[pymethods]
impl Bytes {
    unsafe fn __getbuffer__(slf: Bound<'_, Bytes>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = on_host(slf.py(), &slf.get().0)?;
        let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as isize);
        // SAFETY: the view is to be filled in, and the object keeps the bytes.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// Makes a tensor that shares an array's memory if it can: a row-major, aligned array of a dtype that the core has.
/// Otherwise, and with `copy=True`, it copies; with `copy=False` it raises an error instead. A float64 array becomes f32,
/// unless `dtype` is "f64". Don't write to the array while the tensor lives, because tensors don't change.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, *, copy=None))]
pub fn asarray(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<Named>,
    copy: Option<bool>,
) -> Result<Py<PyTensor>> {
    let dtype = dtype.map(|Named(dtype)| dtype);
    let never = |what: &str| -> Result<()> {
        match copy {
            Some(false) => fail!(InvalidArgument, "copy is False, and {what}"),
            _ => Ok(()),
        }
    };
    let shared = shared(data, copy, Doubles::towards(dtype))?;
    let tensor = match shared {
        Some(tensor) if dtype.is_none_or(|dtype| dtype == tensor.dtype()) => {
            if let Ok(same) = data.cast::<PyTensor>() {
                return Ok(same.clone().unbind());
            }
            tensor
        }
        _ => {
            never(
                "a copy is needed: another dtype, float64 without dtype=\"f64\", a layout with gaps, or Python numbers",
            )?;
            tensor_of(&default_context(py)?.get().inner, data, dtype)?
        }
    };
    Ok(Py::new(py, PyTensor(tensor))?)
}

/// Returns an operand as a tensor for the duration of a call. It shares an array's memory if it can.
pub fn lent(data: &Bound<'_, PyAny>) -> Result<Tensor> {
    match shared(data, None, Doubles::Narrowed)? {
        Some(tensor) => Ok(tensor),
        None => Operand::new(data)?.tensor(),
    }
}

/// Returns a tensor that shares an array's memory, if the array allows it and `copy` does.
fn shared(data: &Bound<'_, PyAny>, copy: Option<bool>, doubles: Doubles) -> Result<Option<Tensor>> {
    if copy == Some(true) {
        return Ok(None);
    }
    if let Ok(tensor) = data.cast::<PyTensor>() {
        return Ok(Some(tensor.get().0.clone()));
    }
    if Exported::supports_buffer_protocol(data) {
        // The memoryview keeps the export. Python releases it with the GIL, wherever the tensor is dropped.
        let keeper = PyMemoryView::from(data)?;
        let array = Exported::new(keeper.as_any(), doubles)?;
        let meta = array.meta()?;
        if !array.is_plain(&meta) {
            return Ok(None);
        }
        let start = array.start();
        // SAFETY: the memory is plain and aligned, and the memoryview, to which nothing else refers, keeps the export.
        // The documentation tells the caller not to write.
        return Ok(Some(unsafe { Tensor::foreign(start, &meta, Box::new(keeper.unbind())) }?));
    }
    if dlpack::supports_dlpack(data)? {
        let tensor = dlpack::tensor(data, copy)?;
        let is_narrowed = tensor.dtype() == DType::F64 && doubles == Doubles::Narrowed;
        return Ok((!is_narrowed).then_some(tensor));
    }
    Ok(None)
}

/// Imports an object with DLPack: a tensor of memory on the CPU, shared if the layout allows, or a buffer of memory on
/// a CUDA device. `copy=True` copies; `copy=False` raises an error if a copy is needed.
#[pyfunction]
#[pyo3(signature = (x, /, *, copy=None))]
pub fn from_dlpack<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, copy: Option<bool>) -> Result<Bound<'py, PyAny>> {
    dlpack::import(py, x, copy)
}
