//! `slice`: takes every axis from a start to a stop, in steps.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "slice",
    operands: &["x"],
    attrs: &["start", "stop", "step"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let x = rules::required(inputs, 0);
        let (dims, rank) = (plan(attrs, &x.shape)?.dims, x.shape.rank());
        output.set(x.dtype, &dims[..rank])
    },
    flops: |_, _, _| 0.0,
};

/// The part that a slice takes of each axis.
pub(crate) struct SlicePlan {
    /// The result's dimensions.
    pub dims: [usize; MAX_RANK],
    /// The first index.
    pub first: [usize; MAX_RANK],
    /// The distance from one index to the next, at least 1.
    pub step: [usize; MAX_RANK],
}

/// Plans a slice. As in Python, negative starts and stops count from the end, and all are clamped to the axis.
pub(crate) fn plan(attrs: &Attrs, shape: &Shape) -> Result<SlicePlan> {
    let rank = shape.rank();
    let mut plan = SlicePlan { dims: [0; MAX_RANK], first: [0; MAX_RANK], step: [1; MAX_RANK] };
    for (name, list) in [("start", attrs.start), ("stop", attrs.stop), ("step", attrs.step)] {
        if list.numbers().len() > rank {
            fail!(InvalidArgument, "slice: {name} {:?} is longer than the {rank} dimensions of {shape}", list.numbers());
        }
    }
    for (axis, &n) in shape.dims().iter().enumerate() {
        let inside = |index: i32| match usize::try_from(index) {
            Ok(index) => index.min(n),
            Err(_) => n.saturating_sub(index.unsigned_abs() as usize),
        };
        let step = attrs.step.at(axis, 1);
        if step < 1 {
            fail!(InvalidArgument, "slice: the step of axis {axis} is {step}; it must be at least 1");
        }
        let (start, step) = (inside(attrs.start.at(axis, 0)), step as usize);
        let stop = attrs.stop.numbers().get(axis).map_or(n, |&stop| inside(stop));
        plan.dims[axis] = stop.saturating_sub(start).div_ceil(step);
        (plan.first[axis], plan.step[axis]) = (start, step);
    }
    Ok(plan)
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (x, shape) = (scalar::bytes(inputs, 0)?, rules::required(inputs, 0).shape);
    let SlicePlan { first, step, .. } = plan(attrs, &shape)?;
    let size = output.dtype.size();
    let mut y = Vec::with_capacity(output.bytes());
    for flat in 0..output.shape.elements() {
        let (mut rest, mut at, mut stride) = (flat, 0, 1);
        for axis in (0..shape.rank()).rev() {
            let n = output.shape.dims()[axis];
            at += (first[axis] + rest % n * step[axis]) * stride;
            stride *= shape.dims()[axis];
            rest /= n;
        }
        y.extend_from_slice(&x[at * size..(at + 1) * size]);
    }
    Ok(y)
}
