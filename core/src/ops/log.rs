//! `log`: the natural logarithm.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "log",
    operands: &["x"],
    attrs: &[],
    in_place: true,
    shape: |_, inputs, output| rules::elementwise("log", inputs, output),
    flops: |_, _, output| 24.0 * output.shape.elements() as f64,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::map(inputs, output, contract::log)
}
