//! `rsqrt`: the reciprocal of the square root.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "rsqrt",
    operands: &["x"],
    attrs: &[],
    in_place: true,
    shape: |_, inputs, output| rules::elementwise("rsqrt", inputs, output),
    flops: |_, _, output| 2.0 * output.shape.elements() as f64,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::map(inputs, output, contract::rsqrt)
}
