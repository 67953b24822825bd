//! `abs`: the sign cleared.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "abs",
    operands: &["x"],
    attrs: &[],
    in_place: true,
    shape: |_, inputs, output| rules::elementwise("abs", inputs, output),
    flops: |_, _, output| 1.0 * output.shape.elements() as f64,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::map(inputs, output, f32::abs)
}
