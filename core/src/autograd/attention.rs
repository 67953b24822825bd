//! The rule of attention: the weights are computed again, with the scores of all keys at once.

use super::normalise::of_softmax;
use super::recorder::Recorder;
use super::rules::{Gradients, Step};
use crate::error::Result;
use crate::ops::{AttentionPlan, Attrs, Axis, Metas, Op};
use crate::tensor::Tensor;

/// With P = softmax(scale·Q·Kᵀ + mask): by V: Pᵀ·G; by the scores: S = P·(G·Vᵀ − Σ P·(G·Vᵀ)); by Q: scale·S·K; by K: scale·Sᵀ·Q; by
/// the mask: S. Heads that share keys have an axis of their own, along which gradients of keys and values are added up.
#[cold]
#[inline(never)]
pub(super) fn attention(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (q, k, v, mask) = (step.input(0)?, step.input(1)?, step.input(2)?, step.optional(3));
    let metas = [to.meta(q)?, to.meta(k)?, to.meta(v)?];
    let plan = AttentionPlan::new(Metas::Alone(&metas.each_ref().map(Some)))?;
    let (heads, kv_heads, scale) = (plan.heads, plan.kv_heads, plan.scale(step.attrs));
    let group = heads / kv_heads.max(1);
    let five = |heads: usize, group: usize, rows: usize, width: usize| [plan.batches, heads, group, rows, width];
    let grouped = (
        to.reshape(q, &five(kv_heads, group, plan.queries, plan.width))?,
        to.reshape(k, &five(kv_heads, 1, plan.keys, plan.width))?,
        to.reshape(v, &five(kv_heads, 1, plan.keys, plan.value_width))?,
        to.reshape(step.gradient, &five(kv_heads, group, plan.queries, plan.value_width))?,
    );
    let (q5, k5, v5, g) = grouped;
    let products = to.matmul((q5, false), (k5, true), None)?;
    let mut scores = to.scale(products, scale)?;
    if let Some(mask) = mask {
        // In the shape of the scores with all heads in one axis.
        let all = to.reshape(scores, plan.scores.dims())?;
        let added = to.add(all, mask)?;
        scores = to.reshape(added, &five(kv_heads, group, plan.queries, plan.keys))?;
    }
    if step.attrs.causal {
        let hidden = (0..plan.queries).flat_map(|i| (0..plan.keys).map(move |j| j >= plan.visible(true, i)));
        let seen: Vec<bool> = hidden.map(|hidden| !hidden).collect();
        let seen = to.0.constant(&Tensor::from_bools(&seen, &[plan.queries, plan.keys])?)?;
        let never = to.number(f32::NEG_INFINITY, scores)?;
        scores = to.op(Op::Where, &Attrs::DEFAULT, &[seen, scores, never])?;
    }
    let last = Axis::At(-1);
    let mut weights = to.op(Op::Softmax, &Attrs { axis: last, ..Attrs::DEFAULT }, &[scores])?;
    // A query that sees no key has weights NaN here and a result of 0: no gradient.
    let itself = to.binary(Op::Equal, weights, weights)?;
    weights = to.only_where(itself, weights)?;
    let mut gradients = vec![None; 4];
    if step.wants(2) {
        let by_v = to.matmul((weights, true), (g, false), None)?;
        let summed = if group > 1 { to.sums(by_v, &[2])? } else { by_v };
        gradients[2] = Some(to.reshape(summed, metas[2].shape.dims())?);
    }
    if !(step.wants(0) || step.wants(1) || step.wants(3)) {
        return Ok(gradients);
    }
    let by_weights = to.matmul((g, false), (v5, true), None)?;
    let by_scores = of_softmax(to, weights, by_weights, last)?;
    if let Some(mask) = mask.filter(|_| step.wants(3)) {
        let all = to.reshape(by_scores, plan.scores.dims())?;
        let shape = to.shape(mask)?;
        gradients[3] = Some(to.sum_to(all, &shape)?);
    }
    let scaled = to.scale(by_scores, scale)?;
    if step.wants(0) {
        let by_q = to.matmul((scaled, false), (k5, false), None)?;
        gradients[0] = Some(to.reshape(by_q, metas[0].shape.dims())?);
    }
    if step.wants(1) {
        let by_k = to.matmul((scaled, true), (q5, false), None)?;
        let summed = if group > 1 { to.sums(by_k, &[2])? } else { by_k };
        gradients[1] = Some(to.reshape(summed, metas[1].shape.dims())?);
    }
    Ok(gradients)
}
