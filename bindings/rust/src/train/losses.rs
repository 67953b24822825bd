//! Losses: numbers that training minimises. Each is the mean over the batch.

use super::network::Network;
use adead_core::pipeline::Value;
use adead_core::{Attrs, Axis, Op, Result, Tensor};

fn mean(net: &mut Network, x: Value) -> Result<Value> {
    net.op_with(Op::Mean, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[x])
}

fn over_last(net: &mut Network, op: Op, x: Value) -> Result<Value> {
    net.op_with(op, &Attrs { axis: Axis::At(-1), keepdim: true, ..Attrs::DEFAULT }, &[x])
}

/// Computes the cross-entropy of logits, `[…, classes]`, and the right classes, ids of the shape `[…]`: the mean of log Σ e^(x
/// − m) − (x_target − m), where m is the row's maximum.
pub fn cross_entropy(net: &mut Network, logits: Value, targets: Value) -> Result<Value> {
    let dims = net.dims(logits)?;
    let (classes, rows) = (dims.last().copied().unwrap_or(1), dims.iter().rev().skip(1).product());
    let logits = net.pipeline().reshape(logits, &[rows, classes])?;
    let targets = net.pipeline().reshape(targets, &[rows, 1])?;
    let greatest = over_last(net, Op::Max, logits)?;
    let greatest = net.pipeline().detach(greatest)?;
    let below = net.op(Op::Sub, &[logits, greatest])?;
    let powers = net.op(Op::Exp, &[below])?;
    let sum = over_last(net, Op::Sum, powers)?;
    let log = net.op(Op::Log, &[sum])?;
    let right = net.op_with(Op::Gather, &Attrs { axis: Axis::At(1), ..Attrs::DEFAULT }, &[below, targets])?;
    let losses = net.op(Op::Sub, &[log, right])?;
    mean(net, losses)
}

/// Computes the mean of the squared differences.
pub fn mse(net: &mut Network, x: Value, target: Value) -> Result<Value> {
    let apart = net.op(Op::Sub, &[x, target])?;
    let squares = net.op(Op::Mul, &[apart, apart])?;
    mean(net, squares)
}

/// Computes the binary cross-entropy of logits and targets between 0 and 1: the mean of max(x, 0) − x·t + log(1 + e^−|x|).
pub fn binary_cross_entropy(net: &mut Network, logits: Value, targets: Value) -> Result<Value> {
    let above = net.op(Op::Relu, &[logits])?;
    let product = net.op(Op::Mul, &[logits, targets])?;
    let size = net.op(Op::Abs, &[logits])?;
    let minus = net.op(Op::Neg, &[size])?;
    let power = net.op(Op::Exp, &[minus])?;
    let log = net.op(Op::Log1p, &[power])?;
    let rest = net.op(Op::Sub, &[above, product])?;
    let losses = net.op(Op::Add, &[rest, log])?;
    mean(net, losses)
}

/// Computes the contrastive loss of `a` and `b`, `[n, width]` each, where row i of a matches only row i of b: the cross-entropy
/// of their cosines times `scale`. Sentence embeddings are trained with it (multiple negatives ranking).
pub fn contrastive(net: &mut Network, a: Value, b: Value, scale: f32) -> Result<Value> {
    let rows = net.dims(a)?[0];
    let (a, b) = (unit_rows(net, a)?, unit_rows(net, b)?);
    let cosines = net.op_with(Op::Matmul, &Attrs { trans_b: true, alpha: scale, ..Attrs::DEFAULT }, &[a, b])?;
    let own = Tensor::new(&(0..rows as i64).collect::<Vec<i64>>(), &[rows])?;
    let own = net.pipeline().constant(&own)?;
    cross_entropy(net, cosines, own)
}

/// Rows divided by their lengths.
fn unit_rows(net: &mut Network, x: Value) -> Result<Value> {
    let squares = net.op(Op::Mul, &[x, x])?;
    let sum = over_last(net, Op::Sum, squares)?;
    let tiny = net.pipeline().constant(&Tensor::new(&[1e-12f32], &[])?)?;
    let sum = net.op(Op::Add, &[sum, tiny])?;
    let factor = net.op(Op::Rsqrt, &[sum])?;
    net.op(Op::Mul, &[x, factor])
}
