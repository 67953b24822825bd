//! `topk`: the greatest elements of every line along an axis, the greatest first.

use super::{Attrs, Metas, OpInfo, Values, rules, scalar};
use crate::contract;
use crate::error::{Result, fail};
use crate::operand::{Meta, View};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "topk",
    operands: &["x"],
    attrs: &["k", "axis"],
    in_place: false,
    shape: |attrs, inputs, output| rule("topk", attrs, inputs, output),
    flops: |_, inputs, _| rules::required(inputs, 0).shape.elements() as f64,
};

/// The most elements that an axis may have: kernels count them in 32 bits.
const MOST: usize = u32::MAX as usize;

/// The shape rule of topk and argtopk: x's shape with k elements on the axis.
pub(super) fn rule(op: &str, attrs: &Attrs, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
    rules::elementwise(op, inputs, output)?;
    let axis = rules::one_axis(op, -1, attrs, &output.shape)?;
    let (mut dims, rank, k) = ([0; MAX_RANK], output.shape.rank(), attrs.k as usize);
    dims[..rank].copy_from_slice(output.shape.dims());
    if k > dims[axis] {
        fail!(InvalidArgument, "{op}: k is {k}; axis {axis} of {} has {} elements", output.shape, dims[axis]);
    }
    if dims[axis] > MOST {
        fail!(InvalidArgument, "{op}: axis {axis} has {} elements; it may have up to {MOST}", dims[axis]);
    }
    dims[axis] = k;
    output.shape.set(&dims[..rank])
}

/// Returns the axis as an index, for attributes that the rule accepted.
pub(crate) fn axis(attrs: &Attrs, shape: &Shape) -> Result<usize> {
    rules::one_axis("topk", -1, attrs, shape)
}

/// Calls `f` on each line with its elements and the indices of its k greatest, and joins the results.
pub(super) fn of_lines<T>(
    attrs: &Attrs,
    inputs: &[Option<View<'_>>],
    f: impl Fn(&[f32], Vec<usize>) -> Vec<T>,
) -> Result<Vec<T>>
where
    T: Copy + Default,
{
    let shape = &rules::required(inputs, 0).shape;
    let lines = rules::Lines::along(shape, axis(attrs, shape)?);
    let greatest = |line: &[f32]| f(line, contract::topk(line, attrs.k as usize));
    Ok(scalar::along(&scalar::floats(inputs, 0)?, lines, greatest))
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let values = of_lines(attrs, inputs, |line, at| at.into_iter().map(|i| line[i]).collect())?;
    Ok(scalar::stored(values, output.dtype))
}
