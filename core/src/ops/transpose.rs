//! `transpose`: permutes the axes. By default it reverses them.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "transpose",
    operands: &["x"],
    attrs: &["perm"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let x = rules::required(inputs, 0);
        let axes = axes(attrs, &x.shape)?;
        let mut dims = [0; MAX_RANK];
        for (to, &axis) in dims.iter_mut().zip(&axes[..x.shape.rank()]) {
            *to = x.shape.dims()[axis as usize];
        }
        output.set(x.dtype, &dims[..x.shape.rank()])
    },
    flops: |_, _, _| 0.0,
};

/// Returns the axis of x that each axis of the result is. Only the first `rank` entries count.
pub(crate) fn axes(attrs: &Attrs, shape: &Shape) -> Result<[u8; MAX_RANK]> {
    let rank = shape.rank();
    let mut axes = [0; MAX_RANK];
    match attrs.perm.axes() {
        None => axes[..rank].iter_mut().enumerate().for_each(|(i, axis)| *axis = (rank - 1 - i) as u8),
        Some(perm) => {
            let mut seen = [false; MAX_RANK];
            for (to, &axis) in axes.iter_mut().zip(perm) {
                *to = rules::axis_index("transpose", axis as i32, shape)? as u8;
                seen[*to as usize] = true;
            }
            if perm.len() != rank || !seen[..rank].iter().all(|&seen| seen) {
                fail!(InvalidArgument, "transpose: perm {perm:?} is not a permutation of the {rank} axes of {shape}");
            }
        }
    }
    Ok(axes)
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let x = scalar::bytes(inputs, 0)?;
    let shape = rules::required(inputs, 0).shape;
    let axes = axes(attrs, &shape)?;
    let size = output.dtype.size();
    let mut y = Vec::with_capacity(output.bytes());
    for flat in 0..output.shape.elements() {
        let (mut rest, mut index) = (flat, 0);
        for i in (0..shape.rank()).rev() {
            let axis = axes[i] as usize;
            index += rest % shape.dims()[axis] * shape.dims()[axis + 1..].iter().product::<usize>();
            rest /= shape.dims()[axis];
        }
        y.extend_from_slice(&x[index * size..(index + 1) * size]);
    }
    Ok(y)
}
