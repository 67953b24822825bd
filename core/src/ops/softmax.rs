//! `softmax`: e^(x − MAX) over its SUM, along an axis.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::Result;
use crate::shape::Shape;

pub(super) const INFO: OpInfo = OpInfo {
    name: "softmax",
    operands: &["x"],
    attrs: &["axis"],
    in_place: true,
    shape: |attrs, inputs, output| {
        rules::elementwise("softmax", inputs, output)?;
        axis(attrs, &output.shape).map(|_| ())
    },
    flops: |_, _, output| 20.0 * output.shape.elements() as f64,
};

/// Returns the axis as an index.
pub(crate) fn axis(attrs: &Attrs, shape: &Shape) -> Result<usize> {
    rules::one_axis("softmax", -1, attrs, shape)
}

/// Softmax of one line.
pub(super) fn line(x: &[f32]) -> Vec<f32> {
    let Some(m) = contract::max(x) else { return Vec::new() };
    let e: Vec<f32> = x.iter().map(|x| contract::exp(x - m)).collect();
    let sum = contract::sum(&e);
    e.into_iter().map(|e| e / sum).collect()
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let lines = rules::Lines::along(&output.shape, axis(attrs, &output.shape)?);
    Ok(scalar::stored(scalar::along(&scalar::floats(inputs, 0)?, lines, line), output.dtype))
}
