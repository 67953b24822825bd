//! Indices for `x[…]` with arrays: positions in tensors' rows, in host memory. The values of x are moved by operations.

use crate::errors::{Result, detached_copy, fail};
use crate::tensor::{PyTensor, on_host};
use crate::values::reserved;
use adead::{DType, Tensor};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// Returns the row-major positions of a bool tensor's true elements, as i64.
#[pyfunction]
#[pyo3(name = "_positions")]
pub fn positions(py: Python<'_>, mask: &PyTensor) -> Result<PyTensor> {
    if mask.0.dtype() != DType::Bool {
        fail!(DtypeMismatch, "a mask is bool, not {}", mask.0.dtype());
    }
    let bytes = on_host(py, &mask.0)?;
    let mut found = reserved::<i64>(bytes.iter().filter(|&&byte| byte != 0).count())?;
    found.extend(bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(at, _)| at as i64));
    Ok(PyTensor(detached_copy(py, found.len() * 8, || Tensor::new(&found, &[found.len()]))?))
}

/// Returns the positions of elements in a row-major tensor of these dimensions, as i64 of the indices' shape. There is one tensor of
/// indices for each dimension, and all have the same shape. Negative indices count from the end. Raises IndexError for an index outside its
/// dimension.
#[pyfunction]
#[pyo3(name = "_flat_index")]
pub fn flat_index(py: Python<'_>, indices: Vec<PyRef<'_, PyTensor>>, dims: Vec<usize>) -> Result<PyTensor> {
    let Some(first) = indices.first().filter(|_| indices.len() == dims.len()) else {
        fail!(InvalidArgument, "{} tensors of indices for {} dimensions", indices.len(), dims.len());
    };
    let shape = *first.0.shape();
    let mut flat = reserved::<i64>(shape.elements())?;
    flat.resize(shape.elements(), 0);
    for (tensor, &size) in indices.iter().zip(&dims) {
        let tensor = &tensor.0;
        if *tensor.shape() != shape {
            fail!(ShapeMismatch, "indices have the shapes {shape} and {}", tensor.shape());
        }
        on_host(py, tensor)?;
        match tensor.dtype() {
            DType::I64 => add(&mut flat, tensor.as_slice::<i64>()?.iter().copied(), size)?,
            DType::I32 => add(&mut flat, tensor.as_slice::<i32>()?.iter().map(|&id| id.into()), size)?,
            DType::U32 => add(&mut flat, tensor.as_slice::<u32>()?.iter().map(|&id| id.into()), size)?,
            DType::U8 => add(&mut flat, tensor.as_slice::<u8>()?.iter().map(|&id| id.into()), size)?,
            other => fail!(DtypeMismatch, "indices are integers or bools, not {other}: cast them to i64"),
        }
    }
    Ok(PyTensor(detached_copy(py, flat.len() * 8, || Tensor::new(&flat, shape.dims()))?))
}

/// Multiplies the positions by a dimension's size and adds its indices.
fn add(flat: &mut [i64], indices: impl Iterator<Item = i64>, size: usize) -> Result<()> {
    let size = size as i64;
    for (to, id) in flat.iter_mut().zip(indices) {
        let at = if id < 0 { id + size } else { id };
        if !(0..size).contains(&at) {
            return Err(PyIndexError::new_err(format!("index {id} is outside {size} entries")).into());
        }
        *to = *to * size + at;
    }
    Ok(())
}
