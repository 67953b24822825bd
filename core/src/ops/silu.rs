//! `silu`: x·sigmoid(x).

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "silu",
    operands: &["x"],
    attrs: &[],
    in_place: true,
    shape: |_, inputs, output| rules::elementwise("silu", inputs, output),
    flops: |_, _, output| 20.0 * output.shape.elements() as f64,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::map(inputs, output, contract::silu)
}
