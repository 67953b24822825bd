//! `layernorm`: normalises mean and variance over the last axis, of x or of its sum with a residual.

use super::{Attrs, Metas, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::{Float, Result, fail};

pub(super) const INFO: OpInfo = OpInfo {
    name: "layernorm",
    operands: &["x", "gamma?", "beta?", "residual?"],
    attrs: &["eps"],
    in_place: true,
    shape: |attrs, inputs, output| normalised("layernorm", ["gamma", "beta", "residual"], attrs, inputs, output),
    flops: |_, inputs, output| (8.0 + f64::from(inputs.get(RESIDUAL).is_some())) * output.shape.elements() as f64,
};

/// The index of the residual among the operands.
pub(crate) const RESIDUAL: usize = 3;

/// The shape rule of normalisations over the last axis. After x come vectors of the axis's length, then a residual of x's shape.
pub(super) fn normalised<const N: usize>(
    op: &str,
    names: [&str; N],
    attrs: &Attrs,
    inputs: Metas<'_>,
    output: &mut Meta,
) -> Result<()> {
    rules::elementwise(op, inputs, output)?;
    // A negative eps gives NaN for rows whose variance is small.
    if !(attrs.eps >= 0.0 && attrs.eps.is_finite()) {
        fail!(InvalidArgument, "{op}: eps is {}; it must be a finite number of at least 0", Float(attrs.eps));
    }
    if output.shape.rank() == 0 {
        fail!(ShapeMismatch, "{op}: x is a scalar; it must have at least one dimension");
    }
    let n = output.shape.from_end(0);
    for (i, name) in names[..N - 1].iter().enumerate() {
        rules::vector_of(op, name, rules::optional(inputs, i + 1), n)?;
    }
    match rules::optional(inputs, N) {
        Some(residual) if residual.shape != output.shape => {
            fail!(ShapeMismatch, "{op}: residual is {} and x {}; they must have the same shape", residual.shape, output.shape)
        }
        _ => Ok(()),
    }
}

/// Returns the values to normalise: x, or its sum with the residual as `add` stores it.
pub(super) fn of_sum(inputs: &[Option<View<'_>>], residual: usize, output: &Meta) -> Result<Vec<f32>> {
    let x = scalar::floats(inputs, 0)?;
    let Some(residual) = scalar::optional_floats(inputs, residual)? else { return Ok(x) };
    let sum = scalar::stored(x.iter().zip(&residual).map(|(x, r)| x + r), output.dtype);
    Ok(scalar::widened(&sum, output.dtype))
}

/// Computes `y·γ + β`. If a vector is absent, its step is left out.
pub(super) fn affine(y: f32, i: usize, gamma: &Option<Vec<f32>>, beta: &Option<Vec<f32>>) -> f32 {
    let y = gamma.as_ref().map_or(y, |gamma| y * gamma[i]);
    beta.as_ref().map_or(y, |beta| y + beta[i])
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let x = of_sum(inputs, RESIDUAL, output)?;
    let (gamma, beta) = (scalar::optional_floats(inputs, 1)?, scalar::optional_floats(inputs, 2)?);
    let n = output.shape.from_end(0);
    let mut y = Vec::with_capacity(x.len());
    for row in x.chunks_exact(n.max(1)) {
        let mean = contract::mean(row);
        let d: Vec<f32> = row.iter().map(|x| x - mean).collect();
        let squares: Vec<f32> = d.iter().map(|d| d * d).collect();
        let r = contract::rsqrt(contract::mean(&squares) + attrs.eps);
        y.extend(d.iter().enumerate().map(|(i, d)| affine(d * r, i, &gamma, &beta)));
    }
    Ok(scalar::stored(y, output.dtype))
}
