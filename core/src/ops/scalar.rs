//! Helpers of the scalar references: they read operands as f32 and write results in their storage dtype.

use super::rules::Lines;
use crate::contract::{bf16_from_f32, bf16_to_f32, canonical, f16_from_f32, f16_to_f32};
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::{Meta, View};

/// A reference result: the bytes of its elements, native endian.
pub type Values = Vec<u8>;

/// Returns the operand's bytes, none if it is absent.
pub(super) fn bytes<'a>(inputs: &'a [Option<View<'_>>], i: usize) -> Result<&'a [u8]> {
    match &inputs[i] {
        // SAFETY: the view's creator guarantees this many initialised bytes while the view is borrowed.
        Some(view) => Ok(unsafe { std::slice::from_raw_parts(view.host()?, view.meta().bytes()) }),
        None => Ok(&[]),
    }
}

/// Returns the operand widened to f32.
pub(super) fn floats(inputs: &[Option<View<'_>>], i: usize) -> Result<Vec<f32>> {
    let dtype = inputs[i].as_ref().map_or(DType::F32, |view| view.dtype());
    Ok(widened(bytes(inputs, i)?, dtype))
}

/// Widens stored floats to f32.
pub(super) fn widened(bytes: &[u8], dtype: DType) -> Vec<f32> {
    let half = |bytes: &[u8]| u16::from_ne_bytes([bytes[0], bytes[1]]);
    match dtype {
        DType::F32 => bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect(),
        DType::F16 => bytes.chunks_exact(2).map(|b| f16_to_f32(half(b))).collect(),
        DType::BF16 => bytes.chunks_exact(2).map(|b| bf16_to_f32(half(b))).collect(),
        _ => unreachable!("the shape rule took only floating operands"),
    }
}

/// Returns the operand, which is f64.
pub(super) fn doubles(inputs: &[Option<View<'_>>], i: usize) -> Result<Vec<f64>> {
    let double = |x: &[u8]| f64::from_ne_bytes(x.try_into().unwrap_or_default());
    Ok(bytes(inputs, i)?.chunks_exact(8).map(double).collect())
}

/// Returns the operand's integers, its bools as 0 and 1.
pub(super) fn integers(inputs: &[Option<View<'_>>], i: usize) -> Result<Vec<i64>> {
    let dtype = inputs[i].as_ref().map_or(DType::I64, |view| view.dtype());
    let integer = |x: &[u8]| match dtype {
        DType::Bool => i64::from(x[0] != 0),
        DType::U8 => x[0].into(),
        DType::I64 => i64::from_ne_bytes(x.try_into().unwrap_or_default()),
        DType::U32 => u32::from_ne_bytes(x.try_into().unwrap_or_default()).into(),
        _ => i32::from_ne_bytes(x.try_into().unwrap_or_default()).into(),
    };
    Ok(bytes(inputs, i)?.chunks_exact(dtype.size()).map(integer).collect())
}

/// Returns the operand widened to f32, if it is present.
pub(super) fn optional_floats(inputs: &[Option<View<'_>>], i: usize) -> Result<Option<Vec<f32>>> {
    match inputs.get(i) {
        Some(Some(_)) => floats(inputs, i).map(Some),
        _ => Ok(None),
    }
}

/// Converts results to their storage dtype, with canonical NaN.
pub(super) fn stored(values: impl IntoIterator<Item = f32>, dtype: DType) -> Values {
    let values = values.into_iter().map(canonical);
    match dtype {
        DType::F32 => values.flat_map(f32::to_ne_bytes).collect(),
        DType::F16 => values.flat_map(|x| f16_from_f32(x).to_ne_bytes()).collect(),
        DType::BF16 => values.flat_map(|x| bf16_from_f32(x).to_ne_bytes()).collect(),
        _ => unreachable!("results of arithmetic are floating"),
    }
}

/// Converts results of integer arithmetic to their dtype.
pub(super) fn stored_integers(values: impl IntoIterator<Item = i64>, dtype: DType) -> Values {
    let values = values.into_iter();
    match dtype {
        DType::I64 => values.flat_map(i64::to_ne_bytes).collect(),
        DType::I32 | DType::U32 => values.flat_map(|x| (x as i32).to_ne_bytes()).collect(),
        DType::Bool => values.map(|x| u8::from(x != 0)).collect(),
        _ => values.map(|x| x as u8).collect(),
    }
}

/// Computes `y = f(x)` on integers or bools.
pub(super) fn map_integers(inputs: &[Option<View<'_>>], output: &Meta, f: impl Fn(i64) -> i64) -> Result<Values> {
    Ok(stored_integers(integers(inputs, 0)?.into_iter().map(f), output.dtype))
}

/// Computes `y = f(a, b)` on integers or bools with broadcasting.
pub(super) fn zip_integers(inputs: &[Option<View<'_>>], output: &Meta, f: impl Fn(i64, i64) -> i64) -> Result<Values> {
    let (a, b) = (integers(inputs, 0)?, integers(inputs, 1)?);
    Ok(stored_integers(pairs(inputs, output, &a, &b).map(|(a, b)| f(a, b)), output.dtype))
}

/// Computes `y = f(x)`.
pub(super) fn map(inputs: &[Option<View<'_>>], output: &Meta, f: impl Fn(f32) -> f32) -> Result<Values> {
    Ok(stored(floats(inputs, 0)?.into_iter().map(f), output.dtype))
}

/// Computes `y = f(a, b)` with broadcasting.
pub(super) fn zip(inputs: &[Option<View<'_>>], output: &Meta, f: impl Fn(f32, f32) -> f32) -> Result<Values> {
    let (a, b) = (floats(inputs, 0)?, floats(inputs, 1)?);
    Ok(stored(pairs(inputs, output, &a, &b).map(|(a, b)| f(a, b)), output.dtype))
}

/// Returns the elements of two operands, a and b, that are broadcast to each element of the output.
pub(super) fn pairs<T: Copy>(
    inputs: &[Option<View<'_>>],
    output: &Meta,
    a: &[T],
    b: &[T],
) -> impl Iterator<Item = (T, T)> {
    let [of_a, of_b] = [0, 1].map(|i| broadcast_index(inputs[i].as_ref().map(|view| *view.meta()), output));
    (0..output.shape.elements()).map(move |i| (a[of_a(i)], b[of_b(i)]))
}

/// Returns a function from a position in the output to the position in an operand that is broadcast to it.
pub(super) fn broadcast_index(operand: Option<Meta>, output: &Meta) -> impl Fn(usize) -> usize + use<> {
    let output = output.shape;
    let strides = operand.map_or([0; 8], |meta| meta.shape.broadcast_strides(&output));
    move |mut flat| {
        let mut index = 0;
        for axis in (0..output.rank()).rev() {
            let n = output.dims()[axis];
            index += flat % n * strides[axis];
            flat /= n;
        }
        index
    }
}

/// Applies `f` to every line of x along an axis. `f` returns as many values as the output's line has.
pub(super) fn along<T: Copy + Default>(x: &[f32], lines: Lines, f: impl Fn(&[f32]) -> Vec<T>) -> Vec<T> {
    let Lines { outer, n, inner } = lines;
    let results: Vec<Vec<T>> = (0..outer * inner)
        .map(|line| {
            let (o, i) = (line / inner, line % inner);
            let line: Vec<f32> = (0..n).map(|k| x[(o * n + k) * inner + i]).collect();
            f(&line)
        })
        .collect();
    let m = results.first().map_or(0, Vec::len);
    let mut y = vec![T::default(); outer * m * inner];
    for (line, result) in results.into_iter().enumerate() {
        let (o, i) = (line / inner, line % inner);
        for (k, value) in result.into_iter().enumerate() {
            y[(o * m + k) * inner + i] = value;
        }
    }
    y
}
