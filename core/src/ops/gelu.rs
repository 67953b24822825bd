//! `gelu`: the Gaussian error linear unit, by erf or by tanh.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract::{self, GeluForm};
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "gelu",
    operands: &["x"],
    attrs: &["form"],
    in_place: true,
    shape: |_, inputs, output| rules::elementwise("gelu", inputs, output),
    flops: |_, _, output| 36.0 * output.shape.elements() as f64,
};

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::map(
        inputs,
        output,
        match attrs.form {
            GeluForm::Erf => contract::gelu_erf,
            GeluForm::Tanh => contract::gelu_tanh,
        },
    )
}
