//! `cumsum`: the sums of an axis's elements up to each.

use super::{Attrs, Axis, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::{Result, fail};
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

/// The axis as an index.
pub(crate) fn axis(attrs: &Attrs, shape: &Shape) -> Result<usize> {
    if shape.rank() == 0 {
        fail!(ShapeMismatch, "cumsum: a scalar has no axis; at least one dimension is needed");
    }
    match attrs.axis {
        Axis::Default => rules::axis_index("cumsum", -1, shape),
        Axis::At(axis) => rules::axis_index("cumsum", axis, shape),
        Axis::All => fail!(InvalidArgument, "cumsum: works along one axis, not 'all'"),
    }
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let lines = rules::Lines::along(&output.shape, axis(attrs, &output.shape)?);
    Ok(scalar::stored(scalar::along(&scalar::floats(inputs, 0)?, lines, contract::cumsum), output.dtype))
}
