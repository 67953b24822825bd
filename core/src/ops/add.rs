//! `add`: a + b, with broadcasting.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "add",
    operands: &["a", "b"],
    attrs: &[],
    in_place: true,
    shape: |_, inputs, output| rules::broadcasting("add", inputs, output),
    flops: |_, _, output| output.shape.elements() as f64,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::zip(inputs, output, |a, b| a + b)
}
