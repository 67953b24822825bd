//! Rules of products.

use super::elementwise::of_activation;
use super::recorder::Recorder;
use super::rules::{Gradients, Step};
use crate::contract::Activation;
use crate::error::Result;
use crate::ops::{Attrs, Op, ffn_activation};
use crate::pipeline::Value;

/// A product's operands as matrices: a vector a is a row, a vector b a column.
#[cold]
#[inline(never)]
fn as_matrix(to: &mut Recorder<'_>, value: Value, is_column: bool) -> Result<Value> {
    let shape = to.shape(value)?;
    match (shape.dims(), is_column) {
        (&[n], false) => to.reshape(value, &[1, n]),
        (&[n], true) => to.reshape(value, &[n, 1]),
        _ => Ok(value),
    }
}

/// The gradient by the value before the activation, which is computed again.
#[cold]
#[inline(never)]
fn before_activation(to: &mut Recorder<'_>, step: &Step<'_>, activation: Activation) -> Result<Value> {
    // relu, sigmoid and tanh need the result only.
    let x = match activation {
        Activation::None => return Ok(step.gradient),
        Activation::Relu | Activation::Sigmoid | Activation::Tanh => step.output,
        _ => to.0.op(step.op, &Attrs { activation: Some(Activation::None), ..*step.attrs }, step.inputs)?,
    };
    of_activation(to, activation, x, step.output, step.gradient)
}

#[cold]
#[inline(never)]
pub(super) fn matmul(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (a, b) = (step.input(0)?, step.input(1)?);
    let Attrs { trans_a, trans_b, alpha, beta, precision, activation, .. } = *step.attrs;
    let g = before_activation(to, step, activation.unwrap_or(Activation::None))?;
    let mut gradients = vec![None; step.inputs.len()];
    if let Some(c) = step.optional(2).filter(|_| step.wants(2)) {
        let (shape, scaled) = (to.shape(c)?, if beta == 1.0 { g } else { to.scale(g, beta)? });
        gradients[2] = Some(to.sum_to(scaled, &shape)?);
    }
    if let Some(bias) = step.optional(3).filter(|_| step.wants(3)) {
        let shape = to.shape(bias)?;
        gradients[3] = Some(to.sum_to(g, &shape)?);
    }
    if !step.wants(0) && !step.wants(1) {
        return Ok(gradients);
    }
    let (a_shape, b_shape) = (to.shape(a)?, to.shape(b)?);
    let (mut a, b) = (as_matrix(to, a, false)?, as_matrix(to, b, true)?);
    // With a dimension for each of a's rows and b's columns.
    let mut dims = to.shape(g)?.dims().to_vec();
    if b_shape.rank() == 1 {
        dims.push(1);
    }
    if a_shape.rank() == 1 {
        dims.insert(dims.len() - 1, 1);
    }
    let mut g = to.reshape(g, &dims)?;
    if alpha != 1.0 {
        g = to.scale(g, alpha)?;
    }
    let n = dims[dims.len() - 1];
    if to.shape(b)?.rank() == 2 && a_shape.rank() > 2 && !trans_a {
        // All batches share b: they are rows of one matrix.
        let k = a_shape.from_end(0);
        a = to.reshape(a, &[a_shape.elements() / k.max(1), k])?;
        g = to.reshape(g, &[a_shape.elements() / k.max(1), n])?;
    }
    if step.wants(0) {
        let part = match trans_a {
            false => to.matmul((g, false), (b, !trans_b), precision)?,
            true => to.matmul((b, trans_b), (g, true), precision)?,
        };
        gradients[0] = Some(fitted(to, part, a, a_shape.dims())?);
    }
    if step.wants(1) {
        let part = match trans_b {
            false => to.matmul((a, !trans_a), (g, false), precision)?,
            true => to.matmul((g, true), (a, trans_a), precision)?,
        };
        gradients[1] = Some(fitted(to, part, b, b_shape.dims())?);
    }
    Ok(gradients)
}

/// Adds up broadcast batches, and gives an operand's gradient the operand's shape.
#[cold]
#[inline(never)]
fn fitted(to: &mut Recorder<'_>, part: Value, operand: Value, dims: &[usize]) -> Result<Value> {
    let shape = to.shape(operand)?;
    let summed = to.sum_to(part, &shape)?;
    to.reshape(summed, dims)
}

#[cold]
#[inline(never)]
pub(super) fn dot(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (a, b, g) = (step.input(0)?, step.input(1)?, step.gradient);
    let by_a = if step.wants(0) { Some(to.mul(b, g)?) } else { None };
    let by_b = if step.wants(1) { Some(to.mul(a, g)?) } else { None };
    Ok(vec![by_a, by_b])
}

/// The rules of both products; the values between are computed again.
#[cold]
#[inline(never)]
pub(super) fn ffn(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (x, w1, w2) = (step.input(0)?, step.input(1)?, step.input(3)?);
    let (precision, activation) = (step.attrs.precision, ffn_activation(step.attrs));
    let plain = Attrs { precision, ..Attrs::DEFAULT };
    let first = [Some(x), Some(w1), None, step.optional(2)];
    let z = to.0.op(Op::Matmul, &plain, &first)?;
    let acting = Attrs { activation: Some(activation), ..plain };
    let h = to.0.op(Op::Matmul, &acting, &first)?;
    let second = [Some(h), Some(w2), None, step.optional(4)];
    let needs_first = step.wants(0) || step.wants(1) || step.wants(2);
    let of_second = Step {
        op: Op::Matmul,
        attrs: &plain,
        inputs: &second,
        output: step.output,
        gradient: step.gradient,
        wanted: &[needs_first, step.wants(3), false, step.wants(4)],
    };
    let found = matmul(to, &of_second)?;
    let (by_w2, by_b2) = (found[1], found[3]);
    let mut gradients = vec![None, None, None, by_w2, by_b2];
    if let Some(by_h) = found[0] {
        let by_z = of_activation(to, activation, z, h, by_h)?;
        let of_first = Step {
            op: Op::Matmul,
            attrs: &plain,
            inputs: &first,
            output: z,
            gradient: by_z,
            wanted: &[step.wants(0), step.wants(1), false, step.wants(2)],
        };
        let found = matmul(to, &of_first)?;
        (gradients[0], gradients[1], gradients[2]) = (found[0], found[1], found[3]);
    }
    Ok(gradients)
}

/// By x: the gradient times the matrix as floats. The matrix stays as it is.
#[cold]
#[inline(never)]
pub(super) fn quantized(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let attrs = Attrs { format: step.attrs.format, ..Attrs::DEFAULT };
    let w = to.op(Op::Dequantize, &attrs, &[step.input(1)?])?;
    Ok(vec![Some(to.matmul((step.gradient, false), (w, false), None)?), None])
}
