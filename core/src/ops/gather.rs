//! `gather`: takes elements along an axis by index.

use super::{Attrs, OpInfo, Values, scalar, rules};
use super::rules::Lines;
use crate::operand::{Meta, View};
use crate::error::{Result, fail};
use crate::shape::Shape;

pub(super) const INFO: OpInfo = OpInfo {
    name: "gather",
    operands: &["x", "ids"],
    attrs: &["axis"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let (x, ids) = (rules::required(inputs, 0), rules::required(inputs, 1));
        if !ids.dtype.is_index() {
            fail!(DtypeMismatch, "gather: ids are i32, i64 or u32, not {}", ids.dtype);
        }
        let axis = axis(attrs, &x.shape)?;
        let (a, b) = (x.shape.dims(), ids.shape.dims());
        if a.len() != b.len() || a[..axis] != b[..axis] || a[axis + 1..] != b[axis + 1..] {
            fail!(ShapeMismatch, "gather: x is {} and ids are {}; they may differ only in axis {axis}", x.shape, ids.shape);
        }
        output.set(x.dtype, b)
    },
    flops: |_, _, _| 0.0,
};

/// Returns the axis as an index.
pub(crate) fn axis(attrs: &Attrs, shape: &Shape) -> Result<usize> {
    rules::one_axis("gather", -1, attrs, shape)
}

/// Returns an id as an index, or an error if the axis has no such index. Callers check all ids before they write.
pub(crate) fn check_index(position: usize, id: i64, n: usize) -> Result<usize> {
    match usize::try_from(id) {
        Ok(index) if index < n => Ok(index),
        _ => fail!(InvalidArgument, "gather: id {id} at position {position} is outside the axis of {n} elements"),
    }
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (x, ids) = (scalar::bytes(inputs, 0)?, scalar::bytes(inputs, 1)?);
    let (shape, dtype) = (rules::required(inputs, 0).shape, rules::required(inputs, 1).dtype);
    let axis = axis(attrs, &shape)?;
    let (of_x, of_y, size) = (Lines::along(&shape, axis), Lines::along(&output.shape, axis), output.dtype.size());
    let mut y = Vec::with_capacity(output.bytes());
    for position in 0..output.shape.elements() {
        // SAFETY: there are as many ids as elements of the result.
        let id = unsafe { super::id(ids.as_ptr(), dtype, position) };
        let index = check_index(position, id, of_x.n)?;
        let at = (position / (of_y.n * of_y.inner) * of_x.n + index) * of_x.inner + position % of_x.inner;
        y.extend_from_slice(&x[at * size..(at + 1) * size]);
    }
    Ok(y)
}
