//! What `adead.random` draws.

use crate::contents::dimensions;
use crate::errors::{Result, detached_copy};
use crate::tensor::PyTensor;
use adead::Random;
use pyo3::prelude::*;

/// Draws numbers in [0, 1), multiples of 2⁻²⁴.
#[pyfunction]
#[pyo3(name = "_draw_units")]
pub fn draw_units(py: Python<'_>, seed: u64, draw: u64, shape: &Bound<'_, PyAny>) -> Result<PyTensor> {
    let dims = dimensions(shape)?;
    Ok(PyTensor(detached_copy(py, work(&dims), || Random::after(seed, draw).units(&dims))?))
}

/// Draws integers from `low` to below `low + count`; `count` is at most 2³².
#[pyfunction]
#[pyo3(name = "_draw_integers")]
pub fn draw_integers(
    py: Python<'_>,
    seed: u64,
    draw: u64,
    shape: &Bound<'_, PyAny>,
    low: i64,
    count: u64,
) -> Result<PyTensor> {
    let dims = dimensions(shape)?;
    Ok(PyTensor(detached_copy(py, work(&dims), || Random::after(seed, draw).integers(low, count, &dims))?))
}

/// Draws a permutation of the integers below `count`, as i64.
#[pyfunction]
#[pyo3(name = "_draw_order")]
pub fn draw_order(py: Python<'_>, seed: u64, draw: u64, count: usize) -> Result<PyTensor> {
    Ok(PyTensor(detached_copy(py, work(&[count]), || Random::after(seed, draw).permutation(count))?))
}

/// The bytes of a copy that costs as much. For small draws, releasing the GIL takes longer than the draw.
fn work(dims: &[usize]) -> usize {
    dims.iter().fold(16usize, |all, &dim| all.saturating_mul(dim))
}
