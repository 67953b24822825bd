//! `scale`: x·alpha.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "scale",
    operands: &["x"],
    attrs: &["alpha"],
    in_place: true,
    shape: |_, inputs, output| rules::elementwise("scale", inputs, output),
    flops: |_, _, output| output.shape.elements() as f64,
};

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::map(inputs, output, |x| x * attrs.alpha)
}
