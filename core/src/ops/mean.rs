//! `mean`: SUM / n along an axis or of everything.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "mean",
    operands: &["x"],
    attrs: &["axis", "keepdim"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let dtype = rules::one_float("mean", inputs)?;
        *output = Meta::new(dtype, rules::reduced("mean", attrs, &rules::required(inputs, 0).shape)?);
        Ok(())
    },
    flops: |_, inputs, _| rules::required(inputs, 0).shape.elements() as f64,
};

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    scalar::reduce(attrs, inputs, output, contract::mean)
}
