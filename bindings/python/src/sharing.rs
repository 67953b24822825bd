//! Tensors that share others' memory, and their own with a pickler.

use crate::buffers::Exported;
use crate::current::default_context;
use crate::dlpack;
use crate::dtypes::Named;
use crate::errors::{Result, fail};
use crate::tensor::{PyTensor, on_host};
use crate::values::{Operand, tensor_of};
use adead::Tensor;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::c_int;

/// A tensor's bytes, for pickling out of band.
#[pyclass(frozen, module = "adead._adead", name = "_Bytes")]
pub struct Bytes(pub Tensor);

#[pymethods]
impl Bytes {
    unsafe fn __getbuffer__(slf: Bound<'_, Bytes>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = on_host(slf.py(), &slf.get().0)?;
        let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as isize);
        // SAFETY: the view to fill; the object keeps the bytes.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// A tensor that shares an array's memory where that is possible: row-major, of a dtype that core has, aligned. Else, and
/// with `copy=True`, it copies; `copy=False` makes that an error. Nobody may write to the array while the tensor is there:
/// tensors don't change.
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
    let shared = shared(data, copy)?;
    let tensor = match shared {
        Some(tensor) if dtype.is_none_or(|dtype| dtype == tensor.dtype()) => {
            if let Ok(same) = data.cast::<PyTensor>() {
                return Ok(same.clone().unbind());
            }
            tensor
        }
        _ => {
            never("that needs a copy: another dtype, float64, a layout with gaps, or numbers of Python's")?;
            tensor_of(&default_context(py)?.get().inner, data, dtype)?
        }
    };
    Ok(Py::new(py, PyTensor(tensor))?)
}

/// An operand as a tensor, which shares an array's memory where it can: for the time of a call.
pub fn lent(data: &Bound<'_, PyAny>) -> Result<Tensor> {
    match shared(data, None)? {
        Some(tensor) => Ok(tensor),
        None => Operand::new(data)?.tensor(),
    }
}

/// What shares the memory of an array, if it can and may.
fn shared(data: &Bound<'_, PyAny>, copy: Option<bool>) -> Result<Option<Tensor>> {
    if copy == Some(true) {
        return Ok(None);
    }
    if let Ok(tensor) = data.cast::<PyTensor>() {
        return Ok(Some(tensor.get().0.clone()));
    }
    if Exported::is_there(data) {
        // The memoryview keeps the export, and goes when Python has time for it, wherever the tensor is dropped.
        let keeper = PyMemoryView::from(data)?;
        let array = Exported::new(keeper.as_any())?;
        let meta = array.meta()?;
        if !array.is_plain(&meta) {
            return Ok(None);
        }
        let start = array.start();
        // SAFETY: plain and aligned; the export stays with the memoryview, which nobody else has. Not writing is what the
        // caller is told.
        return Ok(Some(unsafe { Tensor::foreign(start, &meta, Box::new(keeper.unbind())) }?));
    }
    if dlpack::is_there(data)? {
        return Ok(Some(dlpack::tensor(data, copy)?));
    }
    Ok(None)
}

/// A tensor of what has DLPack on the CPU, sharing its memory where the layout allows; a buffer of what is on a CUDA
/// device. `copy=True` copies, `copy=False` makes a needed copy an error.
#[pyfunction]
#[pyo3(signature = (x, /, *, copy=None))]
pub fn from_dlpack<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, copy: Option<bool>) -> Result<Bound<'py, PyAny>> {
    dlpack::import(py, x, copy)
}
