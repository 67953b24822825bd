//! `where`: elements of a where a condition is true, and of b elsewhere.

use super::{Attrs, OpInfo, Values, rules, scalar};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::{Meta, View};

pub(super) const INFO: OpInfo = OpInfo {
    name: "where",
    operands: &["condition", "a", "b"],
    attrs: &[],
    in_place: true,
    shape: |_, inputs, output| {
        let [condition, a, b] = [0, 1, 2].map(|i| rules::required(inputs, i));
        if condition.dtype != DType::Bool {
            fail!(DtypeMismatch, "where: the condition is bool, not {}; compare it, or cast it first", condition.dtype);
        }
        rules::same_dtype("where", a, b)?;
        rules::broadcast("where", &[condition, a, b], output)?;
        output.dtype = a.dtype;
        Ok(())
    },
    flops: |_, _, _| 0.0,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (conditions, a, b) = (scalar::bytes(inputs, 0)?, scalar::bytes(inputs, 1)?, scalar::bytes(inputs, 2)?);
    let index = |i: usize| scalar::broadcast_index(inputs[i].as_ref().map(|view| *view.meta()), output);
    let (of_condition, of_a, of_b) = (index(0), index(1), index(2));
    let size = output.dtype.size();
    let mut y = Vec::with_capacity(output.bytes());
    for i in 0..output.shape.elements() {
        let (from, at) = if conditions[of_condition(i)] != 0 { (a, of_a(i)) } else { (b, of_b(i)) };
        y.extend_from_slice(&from[at * size..(at + 1) * size]);
    }
    Ok(y)
}
