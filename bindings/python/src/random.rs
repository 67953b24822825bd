//! What `adead.random` draws, by the contract's rules for random tensors.

use crate::contents::dimensions;
use crate::errors::{Result, detached_copy, fail};
use crate::tensor::PyTensor;
use crate::values::reserved;
use adead::{Tensor, contract};
use pyo3::prelude::*;

/// What the words are for, beside what training draws.
const PURPOSE: u32 = 5;
/// The most words of a draw.
const MOST: usize = 1 << 34;

/// Makes a tensor of a number for each word of a draw.
fn drawn<T: adead::Element>(
    py: Python<'_>,
    (seed, draw): (u64, u64),
    shape: &Bound<'_, PyAny>,
    number: impl Fn(u32) -> T,
) -> Result<PyTensor> {
    let dims = dimensions(shape)?;
    let count = match dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim)) {
        Some(count) if count <= MOST => count,
        _ => fail!(InvalidArgument, "a draw has at most {MOST} elements; the shape is {dims:?}"),
    };
    let mut values = reserved::<T>(count)?;
    Ok(PyTensor(detached_copy(py, count * 16, || {
        values.extend(words(seed, draw).take(count).map(number));
        Tensor::new(&values, &dims)
    })?))
}

fn words(seed: u64, draw: u64) -> impl Iterator<Item = u32> {
    contract::words(seed, [draw as u32, (draw >> 32) as u32, PURPOSE])
}

/// Draws numbers in [0, 1), multiples of 2⁻²⁴.
#[pyfunction]
#[pyo3(name = "_draw_units")]
pub fn draw_units(py: Python<'_>, seed: u64, draw: u64, shape: &Bound<'_, PyAny>) -> Result<PyTensor> {
    drawn(py, (seed, draw), shape, |word| (word >> 8) as f32 * (1.0 / (1 << 24) as f32))
}

/// Draws integers from `low` on, of `count` different ones, at most 2³².
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
    if count == 0 || count > 1 << 32 || low.checked_add_unsigned(count - 1).is_none() {
        fail!(InvalidArgument, "integers are drawn from 1 to 2**32 different ones, not {count} from {low} on");
    }
    drawn(py, (seed, draw), shape, |word| low + ((u128::from(word) * u128::from(count)) >> 32) as i64)
}

/// Draws an order of the numbers below `count`, as i64.
#[pyfunction]
#[pyo3(name = "_draw_order")]
pub fn draw_order(py: Python<'_>, seed: u64, draw: u64, count: usize) -> Result<PyTensor> {
    // Memory for it is reserved first, because the core's function would abort without.
    if count > MOST {
        fail!(InvalidArgument, "an order has at most {MOST} entries, not {count}");
    }
    drop(reserved::<u64>(2 * count)?);
    Ok(PyTensor(detached_copy(py, count * 16, || {
        let order: Vec<i64> = contract::drawn_order(words(seed, draw), count).into_iter().map(|at| at as i64).collect();
        Tensor::new(&order, &[count])
    })?))
}
