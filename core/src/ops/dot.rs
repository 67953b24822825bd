//! `dot`: the inner product of two vectors.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::{Result, fail};

pub(super) const INFO: OpInfo = OpInfo {
    name: "dot",
    operands: &["a", "b"],
    attrs: &[],
    in_place: false,
    shape: |_, inputs, output| {
        let dtype = rules::one_float("dot", inputs)?;
        let (a, b) = (&rules::required(inputs, 0).shape, &rules::required(inputs, 1).shape);
        if a.rank() != 1 || a != b {
            fail!(ShapeMismatch, "dot: a is {a} and b is {b}; they must be vectors of the same length");
        }
        output.set(dtype, &[])
    },
    flops: |_, inputs, _| 2.0 * rules::required(inputs, 0).shape.elements() as f64,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (a, b) = (scalar::floats(inputs, 0)?, scalar::floats(inputs, 1)?);
    Ok(scalar::stored([contract::dot(a.len(), |k| a[k], |k| b[k])], output.dtype))
}
