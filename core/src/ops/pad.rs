//! `pad`: adds elements of one value before and after every axis.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "pad",
    operands: &["x", "value"],
    attrs: &["before", "after"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let (x, value) = (rules::required(inputs, 0), rules::required(inputs, 1));
        if x.dtype != value.dtype {
            fail!(DtypeMismatch, "pad: x is {} and value is {}; cast one of them", x.dtype, value.dtype);
        }
        if value.shape.elements() != 1 {
            fail!(ShapeMismatch, "pad: value is {}; it must have one element", value.shape);
        }
        let (rank, mut dims) = (x.shape.rank(), [0; MAX_RANK]);
        let before = before(attrs, &x.shape)?;
        for (axis, &n) in x.shape.dims().iter().enumerate() {
            dims[axis] = n.saturating_add(before[axis]).saturating_add(attrs.stop.at(axis, 0) as usize);
        }
        output.set(x.dtype, &dims[..rank])
    },
    flops: |_, _, _| 0.0,
};

/// Returns the number of elements to add before each axis.
pub(crate) fn before(attrs: &Attrs, shape: &Shape) -> Result<[usize; MAX_RANK]> {
    for (name, list) in [("before", attrs.start), ("after", attrs.stop)] {
        let (numbers, rank) = (list.numbers(), shape.rank());
        if numbers.len() > rank {
            fail!(InvalidArgument, "pad: {name} {numbers:?} is longer than the {rank} dimensions of {shape}");
        }
        if let Some(negative) = numbers.iter().find(|&&number| number < 0) {
            fail!(InvalidArgument, "pad: {name} has {negative}; use slice to remove elements");
        }
    }
    Ok(std::array::from_fn(|axis| attrs.start.at(axis, 0) as usize))
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (x, value) = (scalar::bytes(inputs, 0)?, scalar::bytes(inputs, 1)?);
    let shape = rules::required(inputs, 0).shape;
    let (before, size) = (before(attrs, &shape)?, output.dtype.size());
    let mut y = Vec::with_capacity(output.bytes());
    for flat in 0..output.shape.elements() {
        let (mut rest, mut at, mut stride, mut inside) = (flat, 0, 1, true);
        for axis in (0..shape.rank()).rev() {
            let (n, of) = (output.shape.dims()[axis], shape.dims()[axis]);
            let index = (rest % n).wrapping_sub(before[axis]);
            inside &= index < of;
            at = if inside { at + index * stride } else { 0 };
            stride *= of;
            rest /= n;
        }
        y.extend_from_slice(if inside { &x[at * size..(at + 1) * size] } else { value });
    }
    Ok(y)
}
