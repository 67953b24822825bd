//! `cumsum`: the cumulative sums along an axis.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::Result;
use crate::shape::Shape;

pub(super) const INFO: OpInfo = OpInfo {
    name: "cumsum",
    operands: &["x"],
    attrs: &["axis"],
    in_place: false,
    shape: |attrs, inputs, output| {
        rules::elementwise("cumsum", inputs, output)?;
        axis(attrs, &output.shape).map(|_| ())
    },
    flops: |_, _, output| output.shape.elements() as f64,
};

/// Returns the axis as an index.
pub(crate) fn axis(attrs: &Attrs, shape: &Shape) -> Result<usize> {
    rules::one_axis("cumsum", -1, attrs, shape)
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let lines = rules::Lines::along(&output.shape, axis(attrs, &output.shape)?);
    Ok(scalar::stored(scalar::along(&scalar::floats(inputs, 0)?, lines, contract::cumsum), output.dtype))
}
