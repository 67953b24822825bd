//! `rmsnorm`: normalises the root mean square over the last axis, of x or of its sum with a residual.

use super::{Attrs, OpInfo, Values, layernorm, scalar};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "rmsnorm",
    operands: &["x", "gamma?", "residual?"],
    attrs: &["eps"],
    in_place: true,
    shape: |attrs, inputs, output| layernorm::normalised("rmsnorm", ["gamma", "residual"], attrs, inputs, output),
    flops: |_, inputs, output| (4.0 + f64::from(inputs.get(RESIDUAL).is_some())) * output.shape.elements() as f64,
};

/// The index of the residual among the operands.
pub(crate) const RESIDUAL: usize = 2;

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let x = layernorm::of_sum(inputs, RESIDUAL, output)?;
    let gamma = scalar::optional_floats(inputs, 1)?;
    let n = output.shape.from_end(0);
    let mut y = Vec::with_capacity(x.len());
    for row in x.chunks_exact(n.max(1)) {
        let squares: Vec<f32> = row.iter().map(|x| x * x).collect();
        let r = contract::rsqrt(contract::mean(&squares) + attrs.eps);
        y.extend(row.iter().enumerate().map(|(i, x)| layernorm::affine(x * r, i, &gamma, &None)));
    }
    Ok(scalar::stored(y, output.dtype))
}
