//! `layernorm`: mean and variance normalised over the last axis.

use super::{Attrs, Metas, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::{Float, Result, fail};

pub(super) const INFO: OpInfo = OpInfo {
    name: "layernorm",
    operands: &["x", "gamma?", "beta?"],
    attrs: &["eps"],
    in_place: true,
    shape: |attrs, inputs, output| normalised("layernorm", attrs, inputs, output),
    flops: |_, _, output| 8.0 * output.shape.elements() as f64,
};

/// The rule of normalisations over the last axis, with vectors of its length.
pub(super) fn normalised(op: &str, attrs: &Attrs, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
    rules::elementwise(op, inputs, output)?;
    // A negative one makes NaN of rows whose variance is small.
    if !(attrs.eps >= 0.0 && attrs.eps.is_finite()) {
        fail!(InvalidArgument, "{op}: eps is {}; it must be a finite number of at least 0", Float(attrs.eps));
    }
    if output.shape.rank() == 0 {
        fail!(ShapeMismatch, "{op}: x is a scalar; it must have at least one dimension");
    }
    let n = output.shape.from_end(0);
    rules::vector_of(op, "gamma", rules::optional(inputs, 1), n)?;
    rules::vector_of(op, "beta", rules::optional(inputs, 2), n)
}

/// `(d·r)·γ + β`, steps left out where a vector is absent.
pub(super) fn affine(y: f32, i: usize, gamma: &Option<Vec<f32>>, beta: &Option<Vec<f32>>) -> f32 {
    let y = gamma.as_ref().map_or(y, |gamma| y * gamma[i]);
    beta.as_ref().map_or(y, |beta| y + beta[i])
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let x = scalar::floats(inputs, 0)?;
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
