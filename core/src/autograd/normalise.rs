//! Rules of reductions and of what normalises lines.

use super::recorder::Recorder;
use super::rules::{Gradients, Step};
use crate::error::Result;
use crate::ops::{Attrs, Axis, Op, cumsum_axis, softmax_axis};
use crate::pipeline::Value;
use crate::shape::Shape;

/// `y·(g − Σ g·y)`.
#[cold]
#[inline(never)]
pub(super) fn softmax(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let axis = Axis::At(softmax_axis(step.attrs, &to.shape(step.output)?)? as i32);
    of_softmax(to, step.output, step.gradient, axis).map(|gradient| vec![Some(gradient)])
}

#[cold]
#[inline(never)]
pub(super) fn of_softmax(to: &mut Recorder<'_>, y: Value, g: Value, axis: Axis) -> Result<Value> {
    let products = to.mul(g, y)?;
    let sum = to.op(Op::Sum, &Attrs { axis, keepdim: true, ..Attrs::DEFAULT }, &[products])?;
    let rest = to.sub(g, sum)?;
    to.mul(y, rest)
}

/// The gradients of a norm: by x and by the residual the same, by gamma, and of layernorm by beta.
struct Norm {
    normed: Value,
    /// 1 / the standard deviation, or the root mean square.
    factor: Value,
}

/// `x + residual`, which is normalised.
#[cold]
#[inline(never)]
fn whole(to: &mut Recorder<'_>, x: Value, residual: Option<Value>) -> Result<Value> {
    match residual {
        Some(residual) => to.add(x, residual),
        None => Ok(x),
    }
}

/// Divides by the root of the mean square + eps.
#[cold]
#[inline(never)]
fn by_square(to: &mut Recorder<'_>, d: Value, eps: f32) -> Result<Norm> {
    let squares = to.mul(d, d)?;
    let mean = to.over_last(Op::Mean, squares)?;
    let eps = to.number(eps, mean)?;
    let sum = to.add(mean, eps)?;
    let factor = to.unary(Op::Rsqrt, sum)?;
    Ok(Norm { normed: to.mul(d, factor)?, factor })
}

/// `factor·(g − [mean(g)] − n·mean(g·n))` for the gradient g of the normalised values n.
#[cold]
#[inline(never)]
fn through(to: &mut Recorder<'_>, norm: &Norm, g: Value, centred: bool) -> Result<Value> {
    let products = to.mul(g, norm.normed)?;
    let mean = to.over_last(Op::Mean, products)?;
    let along = to.mul(norm.normed, mean)?;
    let mut rest = g;
    if centred {
        let middle = to.over_last(Op::Mean, g)?;
        rest = to.sub(rest, middle)?;
    }
    let rest = to.sub(rest, along)?;
    to.mul(norm.factor, rest)
}

/// A vector's gradient: what it was broadcast to, added up.
#[cold]
#[inline(never)]
fn of_vector(to: &mut Recorder<'_>, value: Value, vector: Value) -> Result<Value> {
    let shape = to.shape(vector)?;
    to.sum_to(value, &shape)
}

#[cold]
#[inline(never)]
pub(super) fn layernorm(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (gamma, beta, residual, g) = (step.optional(1), step.optional(2), step.optional(3), step.gradient);
    let h = whole(to, step.input(0)?, residual)?;
    let mean = to.over_last(Op::Mean, h)?;
    let d = to.sub(h, mean)?;
    let norm = by_square(to, d, step.attrs.eps)?;
    let mut gradients = vec![None; 4];
    if step.wants(0) || step.wants(3) {
        let inner = if let Some(gamma) = gamma { to.mul(g, gamma)? } else { g };
        let by_x = Some(through(to, &norm, inner, true)?);
        (gradients[0], gradients[3]) = (by_x, by_x.filter(|_| residual.is_some()));
    }
    if let Some(gamma) = gamma.filter(|_| step.wants(1)) {
        let products = to.mul(g, norm.normed)?;
        gradients[1] = Some(of_vector(to, products, gamma)?);
    }
    if let Some(beta) = beta.filter(|_| step.wants(2)) {
        gradients[2] = Some(of_vector(to, g, beta)?);
    }
    Ok(gradients)
}

#[cold]
#[inline(never)]
pub(super) fn rmsnorm(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (gamma, residual, g) = (step.optional(1), step.optional(2), step.gradient);
    let h = whole(to, step.input(0)?, residual)?;
    let norm = by_square(to, h, step.attrs.eps)?;
    let mut gradients = vec![None; 3];
    if step.wants(0) || step.wants(2) {
        let inner = if let Some(gamma) = gamma { to.mul(g, gamma)? } else { g };
        let by_x = Some(through(to, &norm, inner, false)?);
        (gradients[0], gradients[2]) = (by_x, by_x.filter(|_| residual.is_some()));
    }
    if let Some(gamma) = gamma.filter(|_| step.wants(1)) {
        let products = to.mul(g, norm.normed)?;
        gradients[1] = Some(of_vector(to, products, gamma)?);
    }
    Ok(gradients)
}

/// The dimensions of a reduction's result with the reduced axes as 1, and the number of elements of a line.
#[cold]
#[inline(never)]
fn kept(shape: &Shape, attrs: &Attrs) -> (Vec<usize>, usize) {
    let rank = shape.rank();
    let index = |axis: i32| if axis < 0 { axis + rank as i32 } else { axis } as usize;
    let reduced: Vec<usize> = match (attrs.axes.axes(), attrs.axis) {
        (Some(axes), _) => axes.iter().map(|&axis| index(axis.into())).collect(),
        (None, Axis::At(axis)) => vec![index(axis)],
        (None, _) => (0..rank).collect(),
    };
    let mut dims = shape.dims().to_vec();
    let mut count = 1;
    for axis in reduced {
        count *= std::mem::replace(&mut dims[axis], 1);
    }
    (dims, count)
}

/// Sums and means pass the gradient to each element; a maximum or minimum to those that equal it, in equal parts.
#[cold]
#[inline(never)]
pub(super) fn reduction(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let x = step.input(0)?;
    let shape = to.shape(x)?;
    let (dims, count) = kept(&shape, step.attrs);
    let mut g = to.reshape(step.gradient, &dims)?;
    if matches!(step.op, Op::Max | Op::Min) {
        let y = to.reshape(step.output, &dims)?;
        let equal = to.binary(Op::Equal, x, y)?;
        let dtype = to.meta(x)?.dtype;
        let equal_ones = to.cast(equal, dtype)?;
        let axes: Vec<usize> = (0..dims.len()).filter(|&axis| dims[axis] != shape.dims()[axis]).collect();
        let many = if axes.is_empty() { equal_ones } else { to.sums(equal_ones, &axes)? };
        let part = to.div(g, many)?;
        return Ok(vec![Some(to.only_where(equal, part)?)]);
    }
    if step.op == Op::Mean {
        g = to.scale(g, 1.0 / count as f32)?;
    }
    Ok(vec![Some(to.expand(g, &shape)?)])
}

/// The sum of an element and all that follow: the whole sum − the cumulative sum + the element.
#[cold]
#[inline(never)]
pub(super) fn cumsum(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let g = step.gradient;
    let axis = Axis::At(cumsum_axis(step.attrs, &to.shape(g)?)? as i32);
    let before = to.op(Op::Cumsum, step.attrs, &[g])?;
    let all = to.op(Op::Sum, &Attrs { axis, keepdim: true, ..Attrs::DEFAULT }, &[g])?;
    let behind = to.sub(all, before)?;
    Ok(vec![Some(to.add(behind, g)?)])
}
