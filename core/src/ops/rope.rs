//! `rope`: rotates pairs of elements of the last axis by angles, whose cosines and sines are operands.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "rope",
    operands: &["x", "cos", "sin"],
    attrs: &["interleaved"],
    in_place: false,
    shape: |_, inputs, output| {
        rules::one_float("rope", inputs)?;
        let (x, cos, sin) = (rules::required(inputs, 0), rules::required(inputs, 1), rules::required(inputs, 2));
        if x.shape.rank() == 0 || !x.shape.from_end(0).is_multiple_of(2) {
            fail!(ShapeMismatch, "rope: x is {}; its last dimension must be even", x.shape);
        }
        let pairs = pairs(&x.shape)?;
        if cos.shape != sin.shape || pairs.broadcast(&cos.shape) != Some(pairs) {
            fail!(
                ShapeMismatch,
                "rope: cos is {} and sin {}; they must have the same shape and broadcast to {pairs}",
                cos.shape,
                sin.shape
            );
        }
        output.assign(x);
        Ok(())
    },
    flops: |_, _, output| 3.0 * output.shape.elements() as f64,
};

/// Returns the shape of x's pairs: its last dimension is halved.
fn pairs(x: &Shape) -> Result<Shape> {
    let (mut dims, rank) = ([0; MAX_RANK], x.rank());
    dims[..rank].copy_from_slice(x.dims());
    dims[rank - 1] /= 2;
    Shape::new(&dims[..rank])
}

/// Returns the shape of x's pairs, and the strides of cos and sin along each of its axes, in elements.
pub(crate) fn tables(x: &Shape, cos: &Shape) -> Result<(Shape, [usize; MAX_RANK])> {
    let pairs = pairs(x)?;
    Ok((pairs, cos.broadcast_strides(&pairs)))
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (x, cos, sin) = (scalar::floats(inputs, 0)?, scalar::floats(inputs, 1)?, scalar::floats(inputs, 2)?);
    let (pairs, strides) = tables(&output.shape, &rules::required(inputs, 1).shape)?;
    let half = pairs.from_end(0);
    let (mut y, rank) = (x.clone(), pairs.rank());
    for pair in 0..pairs.elements() {
        let (mut rest, mut at) = (pair, 0);
        for axis in (0..rank).rev() {
            at += rest % pairs.dims()[axis] * strides[axis];
            rest /= pairs.dims()[axis];
        }
        let (row, column) = (pair / half * 2 * half, pair % half);
        let [a, b] = match attrs.interleaved {
            true => [row + 2 * column, row + 2 * column + 1],
            false => [row + column, row + column + half],
        };
        [y[a], y[b]] = contract::rope([x[a], x[b]], cos[at], sin[at]);
    }
    Ok(scalar::stored(y, output.dtype))
}
