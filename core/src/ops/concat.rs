//! `concat`: joins tensors along an axis.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "concat",
    operands: &["x*"],
    attrs: &["axis"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let first = rules::required(inputs, 0);
        for meta in inputs.present() {
            if meta.dtype != first.dtype {
                fail!(DtypeMismatch, "concat: operands are {} and {}; cast one of them", first.dtype, meta.dtype);
            }
        }
        let axis = axis(attrs, &first.shape)?;
        let mut joined = 0usize;
        for (i, meta) in inputs.present().enumerate() {
            let (a, b) = (first.shape.dims(), meta.shape.dims());
            if a.len() != b.len() || a[..axis] != b[..axis] || a[axis + 1..] != b[axis + 1..] {
                fail!(
                    ShapeMismatch,
                    "concat: operand 0 is {} and operand {i} is {}; they may differ only in axis {axis}",
                    first.shape,
                    meta.shape
                );
            }
            joined = joined.saturating_add(b[axis]);
        }
        let mut dims = [0; MAX_RANK];
        dims[..first.shape.rank()].copy_from_slice(first.shape.dims());
        dims[axis] = joined;
        output.set(first.dtype, &dims[..first.shape.rank()])
    },
    flops: |_, _, _| 0.0,
};

/// Returns the axis as an index.
pub(crate) fn axis(attrs: &Attrs, shape: &Shape) -> Result<usize> {
    rules::one_axis("concat", 0, attrs, shape)
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let axis = axis(attrs, &output.shape)?;
    let outer: usize = output.shape.dims()[..axis].iter().product();
    let mut y = Vec::with_capacity(output.bytes());
    for o in 0..outer {
        for i in 0..inputs.len() {
            let x = scalar::bytes(inputs, i)?;
            let part = x.len() / outer;
            y.extend_from_slice(&x[o * part..(o + 1) * part]);
        }
    }
    Ok(y)
}
