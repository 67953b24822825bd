//! The rule of attention: the weights are computed again, for a block of queries at a time.

use super::normalise::of_softmax;
use super::recorder::Recorder;
use super::rules::{Gradients, Step};
use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{AttentionPlan, Attrs, Axis, Metas, Op};
use crate::pipeline::Value;
use crate::tensor::Tensor;

/// Scores are held for so many queries. A multiple of the chunk of products (256), so that the sums along queries are cut where
/// products cut them.
const ROWS: usize = 256;

/// With P = softmax(scale·Q·Kᵀ + mask): by V: Pᵀ·G; by the scores: S = P·(G·Vᵀ − Σ P·(G·Vᵀ)); by Q: scale·S·K; by K: scale·Sᵀ·Q; by
/// the mask: S. Heads that share keys have an axis of their own, along which gradients of keys and values are added up. All products
/// have the step's precision. Their lines are whole rows and columns, so the weights differ a little from those of the blocks.
#[cold]
#[inline(never)]
pub(super) fn attention(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (q, k, v) = (step.input(0)?, step.input(1)?, step.input(2)?);
    let metas = [to.meta(q)?, to.meta(k)?, to.meta(v)?];
    let plan = AttentionPlan::new(Metas::Alone(&metas.each_ref().map(Some)))?;
    let group = plan.heads / plan.kv_heads.max(1);
    let five = |group: usize, rows: usize, width: usize| [plan.batches, plan.kv_heads, group, rows, width];
    let mut rule = Rule {
        q: to.reshape(q, &five(group, plan.queries, plan.width))?,
        k: to.reshape(k, &five(1, plan.keys, plan.width))?,
        v: to.reshape(v, &five(1, plan.keys, plan.value_width))?,
        g: to.reshape(step.gradient, &five(group, plan.queries, plan.value_width))?,
        mask: step.optional(3),
        group,
        plan,
        by_q: Vec::new(),
        by_mask: Vec::new(),
        by_k: None,
        by_v: None,
    };
    let plan = rule.plan;
    let mut first = 0;
    while first < plan.queries.max(1) {
        let rows = (plan.queries - first).min(ROWS);
        rule.block(to, step, first, rows)?;
        first += ROWS;
    }
    let mut gradients = vec![None; 4];
    if step.wants(0) {
        gradients[0] = Some(rule.together(to, &rule.by_q, metas[0].shape.dims())?);
    }
    for (i, sum) in [(1, rule.by_k), (2, rule.by_v)] {
        if let Some(sum) = sum {
            let summed = if group > 1 { to.sums(sum, &[2])? } else { sum };
            let stored = to.cast(summed, metas[i].dtype)?;
            gradients[i] = Some(to.reshape(stored, metas[i].shape.dims())?);
        }
    }
    if let Some(mask) = rule.mask.filter(|_| step.wants(3)) {
        let all = rule.together(to, &rule.by_mask, plan.scores.dims())?;
        let shape = to.shape(mask)?;
        gradients[3] = Some(to.sum_to(all, &shape)?);
    }
    Ok(gradients)
}

/// The operands as [batch, head with keys, head that shares them, row, element], and the gradients so far.
struct Rule {
    q: Value,
    k: Value,
    v: Value,
    g: Value,
    mask: Option<Value>,
    group: usize,
    plan: AttentionPlan,
    by_q: Vec<Value>,
    by_mask: Vec<Value>,
    by_k: Option<Value>,
    by_v: Option<Value>,
}

impl Rule {
    /// Adds what the queries from `first` on give.
    fn block(&mut self, to: &mut Recorder<'_>, step: &Step<'_>, first: usize, rows: usize) -> Result<()> {
        let (plan, last) = (self.plan, Axis::At(-1));
        let scale = plan.scale(step.attrs);
        // The last query sees the most keys. The others of the block are hidden from all of its queries.
        let keys = plan.visible(step.attrs.causal, (first + rows).saturating_sub(1));
        let (q, g) = (rows_of(to, self.q, first, rows)?, rows_of(to, self.g, first, rows)?);
        let (k, v) = (rows_of(to, self.k, 0, keys)?, rows_of(to, self.v, 0, keys)?);
        let products = to.matmul((q, false), (k, true), step.attrs.precision)?;
        let mut scores = to.scale(products, scale)?;
        if let Some(mask) = self.mask {
            // In the shape of the scores with all heads in one axis.
            let all = self.flat(to, scores, rows, keys)?;
            let mask = part_of_mask(to, mask, [first, 0], [rows, keys])?;
            let added = to.add(all, mask)?;
            scores = to.reshape(added, &[plan.batches, plan.kv_heads, self.group, rows, keys])?;
        }
        if step.attrs.causal {
            let seen = (first..first + rows).flat_map(|i| (0..keys).map(move |j| j < plan.visible(true, i)));
            let seen = to.0.constant(&Tensor::from_bools(&seen.collect::<Vec<bool>>(), &[rows, keys])?)?;
            let never = to.number(f32::NEG_INFINITY, scores)?;
            scores = to.op(Op::Where, &Attrs::DEFAULT, &[seen, scores, never])?;
        }
        let mut weights = to.op(Op::Softmax, &Attrs { axis: last, ..Attrs::DEFAULT }, &[scores])?;
        // A query that sees no key has weights NaN here and a result of 0: no gradient.
        if self.mask.is_some() || plan.visible(step.attrs.causal, 0) == 0 {
            let itself = to.binary(Op::Equal, weights, weights)?;
            weights = to.only_where(itself, weights)?;
        }
        if step.wants(2) {
            self.by_v = Some(self.added(to, step.attrs.precision, self.by_v, weights, g)?);
        }
        if !(step.wants(0) || step.wants(1) || step.wants(3)) {
            return Ok(());
        }
        let by_weights = to.matmul((g, false), (v, true), step.attrs.precision)?;
        let by_scores = of_softmax(to, weights, by_weights, last)?;
        if step.wants(3) {
            let all = self.flat(to, by_scores, rows, keys)?;
            self.by_mask.push(longer(to, all, self.plan.keys, 1)?);
        }
        let scaled = to.scale(by_scores, scale)?;
        if step.wants(0) {
            self.by_q.push(to.matmul((scaled, false), (k, false), step.attrs.precision)?);
        }
        if step.wants(1) {
            self.by_k = Some(self.added(to, step.attrs.precision, self.by_k, scaled, q)?);
        }
        Ok(())
    }

    /// `so_far + byᵀ·rows`, with a row for every key. Several blocks are added in f32, and stored in the operands' type at the end.
    fn added(
        &self,
        to: &mut Recorder<'_>,
        precision: Option<Precision>,
        so_far: Option<Value>,
        mut by: Value,
        mut rows: Value,
    ) -> Result<Value> {
        if self.plan.queries > ROWS {
            (by, rows) = (to.cast(by, DType::F32)?, to.cast(rows, DType::F32)?);
        }
        let product = to.matmul((by, true), (rows, false), precision)?;
        let product = longer(to, product, self.plan.keys, 2)?;
        so_far.map_or(Ok(product), |so_far| to.add(so_far, product))
    }

    /// The scores with all heads in one axis, in the rank of the operands.
    fn flat(&self, to: &mut Recorder<'_>, scores: Value, rows: usize, keys: usize) -> Result<Value> {
        let mut dims = self.plan.scores.dims().to_vec();
        let rank = dims.len();
        dims[rank - 2..].copy_from_slice(&[rows, keys]);
        to.reshape(scores, &dims)
    }

    /// The blocks, one below the other.
    fn together(&self, to: &mut Recorder<'_>, blocks: &[Value], dims: &[usize]) -> Result<Value> {
        let all = match blocks {
            [one] => *one,
            _ => to.op(Op::Concat, &Attrs { axis: Axis::At(-2), ..Attrs::DEFAULT }, blocks)?,
        };
        to.reshape(all, dims)
    }
}

/// `count` rows from `first` on.
fn rows_of(to: &mut Recorder<'_>, value: Value, first: usize, count: usize) -> Result<Value> {
    let shape = to.shape(value)?;
    let (mut start, mut dims) = (vec![0; shape.rank()], shape.dims().to_vec());
    let axis = dims.len() - 2;
    if dims[axis] == count {
        return Ok(value);
    }
    (start[axis], dims[axis]) = (first, count);
    to.part(value, &start, &dims)
}

/// The part of a mask that stands for these rows and keys. A mask has 1 in place of an axis along which it is the same.
fn part_of_mask(to: &mut Recorder<'_>, mask: Value, first: [usize; 2], count: [usize; 2]) -> Result<Value> {
    let shape = to.shape(mask)?;
    let (mut start, mut dims) = (vec![0; shape.rank()], shape.dims().to_vec());
    for (i, axis) in (dims.len().saturating_sub(2)..dims.len()).rev().zip([1, 0]) {
        if dims[i] != 1 {
            (start[i], dims[i]) = (first[axis], count[axis]);
        }
    }
    if dims == shape.dims() { Ok(mask) } else { to.part(mask, &start, &dims) }
}

/// Zeros behind the last element along an axis, which is counted from the last axis, 1.
fn longer(to: &mut Recorder<'_>, value: Value, length: usize, axis: usize) -> Result<Value> {
    let shape = to.shape(value)?;
    let (rank, mut after) = (shape.rank(), vec![0; shape.rank()]);
    after[rank - axis] = length - shape.dims()[rank - axis];
    if after[rank - axis] == 0 { Ok(value) } else { to.pad(value, &vec![0; rank], &after, &vec![1; rank]) }
}
