//! `pad`: adds elements of one value before, between and after the elements of every axis.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "pad",
    operands: &["x", "value"],
    attrs: &["before", "after", "step"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let (x, value) = (rules::required(inputs, 0), rules::required(inputs, 1));
        if x.dtype != value.dtype {
            fail!(DtypeMismatch, "pad: x is {} and value is {}; cast one of them", x.dtype, value.dtype);
        }
        if value.shape.elements() != 1 {
            fail!(ShapeMismatch, "pad: value is {}; it must have one element", value.shape);
        }
        let (dims, rank) = (plan(attrs, &x.shape)?.dims, x.shape.rank());
        output.set(x.dtype, &dims[..rank])
    },
    flops: |_, _, _| 0.0,
};

/// Where the elements of each axis go.
pub(crate) struct PadPlan {
    /// The result's dimensions.
    pub dims: [usize; MAX_RANK],
    /// The first element's index.
    pub first: [usize; MAX_RANK],
    /// The distance from one element to the next, at least 1.
    pub step: [usize; MAX_RANK],
}

/// Plans a pad.
pub(crate) fn plan(attrs: &Attrs, shape: &Shape) -> Result<PadPlan> {
    for (name, list) in [("before", attrs.start), ("after", attrs.stop), ("step", attrs.step)] {
        let (numbers, rank) = (list.numbers(), shape.rank());
        if numbers.len() > rank {
            fail!(InvalidArgument, "pad: {name} {numbers:?} is longer than the {rank} dimensions of {shape}");
        }
        if name == "step" {
            if let Some(step) = numbers.iter().find(|&&number| number < 1) {
                fail!(InvalidArgument, "pad: step has {step}; it must be at least 1");
            }
        } else if let Some(negative) = numbers.iter().find(|&&number| number < 0) {
            fail!(InvalidArgument, "pad: {name} has {negative}; use slice to remove elements");
        }
    }
    let mut plan = PadPlan { dims: [0; MAX_RANK], first: [0; MAX_RANK], step: [1; MAX_RANK] };
    for (axis, &n) in shape.dims().iter().enumerate() {
        (plan.first[axis], plan.step[axis]) = (attrs.start.at(axis, 0) as usize, attrs.step.at(axis, 1) as usize);
        let covered = n.checked_sub(1).map_or(0, |gaps| gaps.saturating_mul(plan.step[axis]).saturating_add(1));
        plan.dims[axis] = covered.saturating_add(plan.first[axis]).saturating_add(attrs.stop.at(axis, 0) as usize);
    }
    Ok(plan)
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (x, value) = (scalar::bytes(inputs, 0)?, scalar::bytes(inputs, 1)?);
    let shape = rules::required(inputs, 0).shape;
    let (PadPlan { first, step, .. }, size) = (plan(attrs, &shape)?, output.dtype.size());
    let mut y = Vec::with_capacity(output.bytes());
    for flat in 0..output.shape.elements() {
        let (mut rest, mut at, mut stride, mut inside) = (flat, 0, 1, true);
        for axis in (0..shape.rank()).rev() {
            let (n, of) = (output.shape.dims()[axis], shape.dims()[axis]);
            let from_first = (rest % n).wrapping_sub(first[axis]);
            let index = from_first / step[axis];
            inside &= from_first.is_multiple_of(step[axis]) && index < of;
            at = if inside { at + index * stride } else { 0 };
            stride *= of;
            rest /= n;
        }
        y.extend_from_slice(if inside { &x[at * size..(at + 1) * size] } else { value });
    }
    Ok(y)
}
