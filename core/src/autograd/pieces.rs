//! The gradients that a value receives from its uses, until all of them are known.
//!
//! Uses of parts that together are the whole value, such as a layer's queries, keys and values, give gradients that are joined.
//! Otherwise each part's gradient is padded with zeros and added, which reads and writes the whole value's gradient several times.

use super::recorder::Recorder;
use crate::error::{Result, fail};
use crate::ops::{Attrs, Axis, Op, slice_plan};
use crate::pipeline::Value;
use crate::shape::Shape;

/// What one use gives.
#[derive(Clone, Copy)]
pub(super) enum Given {
    /// The gradient by the whole value, or the sum of several.
    Whole(Value),
    /// The gradient by the entries from `first` on along an axis.
    Part { gradient: Value, axis: usize, first: usize },
}

/// What a slice of a value of this shape gives; `None` if it has steps or is cut along several axes.
pub(super) fn of_slice(attrs: &Attrs, whole: &Shape, gradient: Value) -> Result<Option<Given>> {
    let plan = slice_plan(attrs, whole)?;
    let mut cut = (0..whole.rank()).filter(|&axis| plan.dims[axis] != whole.dims()[axis]);
    let (Some(axis), None) = (cut.next(), cut.next()) else { return Ok(None) };
    let steps = (0..whole.rank()).any(|axis| plan.step[axis] != 1);
    Ok((!steps && plan.dims[axis] > 0).then_some(Given::Part { gradient, axis, first: plan.first[axis] }))
}

/// Adds what a further use gives. Sums of whole gradients are recorded at once, so that memory holds one of them.
pub(super) fn receive(to: &mut Recorder<'_>, all: &mut Vec<Given>, part: Given) -> Result<()> {
    match (all.as_mut_slice(), part) {
        ([Given::Whole(sum)], Given::Whole(gradient)) => *sum = to.add(*sum, gradient)?,
        _ => all.push(part),
    }
    Ok(())
}

/// The gradient of a value of this shape.
pub(super) fn gradient(to: &mut Recorder<'_>, whole: &Shape, all: &[Given]) -> Result<Value> {
    if let Some(joined) = joined(to, whole, all)? {
        return Ok(joined);
    }
    let mut sum = None;
    for &given in all {
        let gradient = match given {
            Given::Whole(gradient) => gradient,
            Given::Part { gradient, axis, first } => {
                let (mut before, mut after) = (vec![0; whole.rank()], vec![0; whole.rank()]);
                before[axis] = first;
                after[axis] = whole.dims()[axis] - first - to.shape(gradient)?.dims()[axis];
                to.pad(gradient, &before, &after, &[])?
            }
        };
        sum = Some(match sum {
            Some(sum) => to.add(sum, gradient)?,
            None => gradient,
        });
    }
    let Some(sum) = sum else { fail!(Internal, "a value without uses has no gradient") };
    Ok(sum)
}

/// Parts along one axis, each entry in one of them, one after the other.
fn joined(to: &mut Recorder<'_>, whole: &Shape, all: &[Given]) -> Result<Option<Value>> {
    let Some(&Given::Part { axis, .. }) = all.first() else { return Ok(None) };
    let mut parts = Vec::new();
    for given in all {
        match *given {
            Given::Part { gradient, axis: own, first } if own == axis => parts.push((first, gradient)),
            _ => return Ok(None),
        }
    }
    parts.sort_unstable_by_key(|&(first, _)| first);
    let mut end = 0;
    for &(first, gradient) in &parts {
        if first != end {
            return Ok(None);
        }
        end += to.shape(gradient)?.dims()[axis];
    }
    if end != whole.dims()[axis] {
        return Ok(None);
    }
    let operands: Vec<Value> = parts.into_iter().map(|(_, gradient)| gradient).collect();
    to.op(Op::Concat, &Attrs { axis: Axis::At(axis as i32), ..Attrs::DEFAULT }, &operands).map(Some)
}

#[cfg(test)]
mod tests;
