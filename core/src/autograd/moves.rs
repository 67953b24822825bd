//! Rules of operations that move elements.

use super::recorder::Recorder;
use super::rules::{Gradients, Step};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::ops::{
    Attrs, Axis, Op, PadPlan, PerAxis, Permutation, concat_axis, gather_axis, pad_plan, slice_plan, topk_axis,
    transpose_axes,
};
use crate::pipeline::Value;
use crate::shape::Shape;

/// What ids along an axis took goes back to where it was: the sum over ids of the gradients of those that name an element.
#[cold]
#[inline(never)]
fn scattered(to: &mut Recorder<'_>, g: Value, ids: Value, shape: &Shape, axis: usize) -> Result<Value> {
    let (count, n) = (to.shape(ids)?.dims()[axis], shape.dims()[axis]);
    let (outer, inner) = (shape.dims()[..axis].iter().product(), shape.dims()[axis + 1..].iter().product());
    let dtype = to.meta(ids)?.dtype;
    let numbers = to.numbers(n, dtype)?;
    let numbers = to.reshape(numbers, &[n, 1])?;
    let ids = to.reshape(ids, &[outer, count, 1, inner])?;
    let named = to.binary(Op::Equal, ids, numbers)?;
    let g = to.reshape(g, &[outer, count, 1, inner])?;
    let spread = to.only_where(named, g)?;
    let summed = to.sums(spread, &[1])?;
    to.reshape(summed, shape.dims())
}

/// A product with the matrix that has a 1 where an id names a row.
#[cold]
#[inline(never)]
pub(super) fn embedding(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (table, ids, g) = (step.input(0)?, step.input(1)?, step.gradient);
    let (shape, rows) = (to.shape(table)?, to.shape(ids)?.elements());
    let (n, width) = (shape.dims()[0], shape.dims()[1..].iter().product());
    let meta = to.meta(ids)?;
    let numbers = to.numbers(n, meta.dtype)?;
    let ids = to.reshape(ids, &[rows, 1])?;
    let named = to.binary(Op::Equal, ids, numbers)?;
    let dtype = to.meta(g)?.dtype;
    let ones = to.cast(named, dtype)?;
    let g = to.reshape(g, &[rows, width])?;
    let sum = to.matmul((ones, true), (g, false), None)?;
    Ok(vec![Some(to.reshape(sum, shape.dims())?), None])
}

#[cold]
#[inline(never)]
pub(super) fn gather(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (x, ids) = (step.input(0)?, step.input(1)?);
    let shape = to.shape(x)?;
    let axis = gather_axis(step.attrs, &shape)?;
    Ok(vec![Some(scattered(to, step.gradient, ids, &shape, axis)?), None])
}

#[cold]
#[inline(never)]
pub(super) fn topk(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let x = step.input(0)?;
    let shape = to.shape(x)?;
    let ids = to.op(Op::Argtopk, &Attrs { dtype: Some(DType::I32), ..*step.attrs }, &[x])?;
    let axis = topk_axis(step.attrs, &shape)?;
    Ok(vec![Some(scattered(to, step.gradient, ids, &shape, axis)?)])
}

#[cold]
#[inline(never)]
pub(super) fn transpose(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let shape = to.shape(step.input(0)?)?;
    let axes = transpose_axes(step.attrs, &shape)?;
    let mut back = vec![0; shape.rank()];
    for (to, &from) in axes[..shape.rank()].iter().enumerate() {
        back[usize::from(from)] = to as i32;
    }
    let attrs = Attrs { perm: Permutation::new(&back)?, ..Attrs::DEFAULT };
    Ok(vec![Some(to.op(Op::Transpose, &attrs, &[step.gradient])?)])
}

#[cold]
#[inline(never)]
pub(super) fn concat(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let whole = to.shape(step.output)?;
    let rank = whole.rank();
    let axis = concat_axis(step.attrs, &whole)?;
    let (mut gradients, mut first) = (Vec::new(), 0);
    for (i, input) in step.inputs.iter().enumerate() {
        let Some(input) = *input else { continue };
        let shape = to.shape(input)?;
        let mut start = vec![0; rank];
        start[axis] = first;
        first += shape.dims()[axis];
        let part = if step.wants(i) { Some(to.part(step.gradient, &start, shape.dims())?) } else { None };
        gradients.push(part);
    }
    Ok(gradients)
}

#[cold]
#[inline(never)]
pub(super) fn slice(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let shape = to.shape(step.input(0)?)?;
    let plan = slice_plan(step.attrs, &shape)?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (axis, &n) in shape.dims().iter().enumerate() {
        let covered = plan.dims[axis].checked_sub(1).map_or(0, |gaps| gaps * plan.step[axis] + 1);
        before.push(if covered > 0 { plan.first[axis] } else { 0 });
        after.push(n - before[axis] - covered);
    }
    Ok(vec![Some(to.pad(step.gradient, &before, &after, &plan.step[..shape.rank()])?)])
}

#[cold]
#[inline(never)]
pub(super) fn pad(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (x, value) = (step.input(0)?, step.input(1)?);
    let shape = to.shape(x)?;
    let PadPlan { first, step: apart, .. } = pad_plan(step.attrs, &shape)?;
    let end = |(axis, n): (usize, &usize)| first[axis] + n.checked_sub(1).map_or(0, |gaps| gaps * apart[axis] + 1);
    let ends: Vec<i32> = shape.dims().iter().enumerate().map(|of| end(of) as i32).collect();
    let (start, stop) = (step.attrs.start, PerAxis::new(&ends)?);
    let attrs = Attrs { start, stop, step: step.attrs.step, ..Attrs::DEFAULT };
    let inside = to.op(Op::Slice, &attrs, &[step.gradient])?;
    let mut by_value = None;
    if step.wants(1) {
        let sum = |to: &mut Recorder<'_>, of| to.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[of]);
        let (all, of_x) = (sum(to, step.gradient)?, sum(to, inside)?);
        let rest = to.sub(all, of_x)?;
        let dims = to.shape(value)?;
        by_value = Some(to.reshape(rest, dims.dims())?);
    }
    Ok(vec![Some(inside), by_value])
}

/// Rotated by the opposite angles.
#[cold]
#[inline(never)]
pub(super) fn rope(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    if step.wants(1) || step.wants(2) {
        fail!(Unsupported, "gradients: rope has none by its cosines and sines in this version");
    }
    let back = to.unary(Op::Neg, step.input(2)?)?;
    let attrs = Attrs { interleaved: step.attrs.interleaved, ..Attrs::DEFAULT };
    Ok(vec![Some(to.op(Op::Rope, &attrs, &[step.gradient, step.input(1)?, back])?), None, None])
}

#[cold]
#[inline(never)]
pub(super) fn select(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (condition, g) = (step.input(0)?, step.gradient);
    let mut gradients = vec![None; 3];
    for i in [1, 2] {
        if step.wants(i) {
            let zero = to.number(0.0, g)?;
            let (a, b) = if i == 1 { (g, zero) } else { (zero, g) };
            let part = to.op(Op::Where, &Attrs::DEFAULT, &[condition, a, b])?;
            let shape = to.shape(step.input(i)?)?;
            gradients[i] = Some(to.sum_to(part, &shape)?);
        }
    }
    Ok(gradients)
}

#[cold]
#[inline(never)]
pub(super) fn cast(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let dtype = to.meta(step.input(0)?)?.dtype;
    Ok(vec![Some(to.cast(step.gradient, dtype)?)])
}
