//! Attention whose products are computed in exact integers: the values' rows are cut; then come the scores of some query rows, their
//! weights in blocks of keys, each block's weights by its values, and the merge. Query rows are taken in chunks, whose numbers stay
//! in the caches.

use super::super::fixed::Fixed;
use super::super::gemm::{Epilogue, Matrix};
use super::super::normalise::powers_below;
use super::super::{Exec, Shared};
use super::mask_offset;
use crate::contract::{KEY_BLOCK, NAN, Precision, canonical, exp, fixed_cut, power_of_two, value_factor, value_scale};
use crate::error::Result;
use crate::isa::Isa;
use crate::ops::AttentionPlan;
use crate::shape::MAX_RANK;

/// The most bytes of a chunk's scores, weights and results of blocks.
const MOST: usize = 16 << 20;

/// A call. The operands cover the plan's elements.
pub(super) struct Exact<'a> {
    pub plan: &'a AttentionPlan,
    pub precision: Precision,
    pub scale: f32,
    pub causal: bool,
    pub q: Shared<f32>,
    pub k: Shared<f32>,
    pub v: Shared<f32>,
    /// Null without a mask.
    pub mask: Shared<f32>,
    pub mask_strides: [usize; MAX_RANK],
    pub out: Shared<f32>,
}

/// Rows of some matrices, heads that share keys: all of their rows, or some of one matrix.
struct Chunk {
    matrices: usize,
    rows: usize,
    /// The number of the first row, among all heads' rows.
    first: usize,
    scores: Shared<f32>,
    /// What a key's weights are multiplied by: `[matrix][padded key]`.
    factors: Shared<f32>,
    /// `[matrix][block][row][key]`.
    weights: Shared<f32>,
    /// `[matrix][block][row][column]`.
    results: Shared<f32>,
    /// For each row: the factors of the results so far and of the block's results for each block, then MAX and SUM.
    states: Shared<f32>,
}

impl Exact<'_> {
    pub fn compute(&self, exec: &Exec<'_>) -> Result<()> {
        let AttentionPlan { batches, heads, kv_heads, queries, keys, width, value_width, .. } = *self.plan;
        let (matrices, of_matrix) = (batches * kv_heads, heads / kv_heads * queries);
        let blocks = keys.div_ceil(KEY_BLOCK);
        let padded = blocks * KEY_BLOCK;
        let each = keys + padded + blocks * value_width + 2 * blocks + 2;
        let fits = (MOST / 4 / each).max(1);
        let (at_once, rows) = if fits < of_matrix { (1, fits) } else { ((fits / of_matrix).min(matrices), of_matrix) };
        let most = at_once * rows;
        let scratch = exec.scratch.take(most * each)?;
        let scores = Shared(scratch.pointer());
        let weights = Shared(scores.get().wrapping_add(most * keys));
        let results = Shared(weights.get().wrapping_add(most * padded));
        let states = Shared(results.get().wrapping_add(most * blocks * value_width));
        let cut = exec.scratch.take(matrices * padded * (value_width + 1))?;
        let values = Shared(cut.pointer());
        let all_factors = Shared(values.get().wrapping_add(matrices * padded * value_width));
        let some = (4096 / value_width.max(1)).max(1);
        let v = self.v;
        exec.pool.try_run((matrices * padded).div_ceil(some), &|task, _| {
            for row in task * some..(matrices * padded).min((task + 1) * some) {
                let (matrix, key) = (row / padded, row % padded);
                // SAFETY: the row is this task's alone. Those behind the last key have no values.
                unsafe {
                    let to = values.get().add(row * value_width);
                    to.write_bytes(0, value_width);
                    let to = std::slice::from_raw_parts_mut(to, value_width);
                    let from = v.get().wrapping_add((matrix * keys + key) * value_width);
                    let from: &[f32] = if key < keys { std::slice::from_raw_parts(from, value_width) } else { &[] };
                    all_factors.get().add(row).write(cut_row(from, self.precision, to));
                }
            }
        })?;
        for matrix in (0..matrices).step_by(at_once) {
            for row in (0..of_matrix).step_by(rows) {
                let first = matrix * of_matrix + row;
                let (matrices, rows) = (at_once.min(matrices - matrix), rows.min(of_matrix - row));
                let factors = Shared(all_factors.get().wrapping_add(matrix * padded));
                let chunk = Chunk { matrices, rows, first, scores, factors, weights, results, states };
                let same = |i: usize| (i, i, Epilogue::NONE);
                let (q, k) =
                    (self.q.get().wrapping_add(first * width), self.k.get().wrapping_add(matrix * keys * width));
                let of_scores = Fixed {
                    precision: self.precision,
                    m: rows,
                    n: keys,
                    k: width,
                    count: matrices,
                    a: Matrix { data: q, row: width, column: 1 },
                    b: Matrix { data: k, row: 1, column: width },
                    b_scale: None,
                    digits: None,
                    matrices: [matrices; 2],
                    operands: &same,
                    out: scores,
                };
                of_scores.compute(exec)?;
                self.weigh(exec, &chunk)?;
                let of_results = Fixed {
                    n: value_width,
                    k: KEY_BLOCK,
                    count: matrices * blocks,
                    a: Matrix { data: weights.get(), row: KEY_BLOCK, column: 1 },
                    b: Matrix {
                        data: values.get().wrapping_add(matrix * padded * value_width),
                        row: value_width,
                        column: 1,
                    },
                    b_scale: Some(value_scale(self.precision)),
                    matrices: [matrices * blocks; 2],
                    out: results,
                    ..of_scores
                };
                of_results.compute(exec)?;
                self.merge(exec, &chunk)?;
            }
        }
        Ok(())
    }

    /// Computes the weights of a chunk's rows and the factors of its merge.
    fn weigh(&self, exec: &Exec<'_>, chunk: &Chunk) -> Result<()> {
        let some = (4096 / self.plan.keys).max(1);
        exec.pool.try_run((chunk.matrices * chunk.rows).div_ceil(some), &|task, _| {
            for row in task * some..(chunk.matrices * chunk.rows).min((task + 1) * some) {
                // SAFETY: the row is one of the chunk's, and this task's alone.
                unsafe { self.weigh_row(exec.isa, chunk, row) };
            }
        })
    }

    /// Computes the weights of a row.
    ///
    /// # Safety
    /// The chunk has this row, which no other thread uses.
    unsafe fn weigh_row(&self, isa: Isa, chunk: &Chunk, row: usize) {
        let plan = self.plan;
        let (head, query) = ((chunk.first + row) / plan.queries, (chunk.first + row) % plan.queries);
        let visible = plan.visible(self.causal, query);
        let blocks = plan.keys.div_ceil(KEY_BLOCK);
        let lead = plan.scores.rank() - 2;
        // SAFETY: the scores, weights, factors and states have this row, and the mask broadcasts to the scores.
        unsafe {
            let mask = match self.mask.get() {
                mask if mask.is_null() => mask,
                mask => mask.add(mask_offset(plan, &self.mask_strides, head) + query * self.mask_strides[lead]),
            };
            let scores = std::slice::from_raw_parts(chunk.scores.get().add(row * plan.keys), plan.keys);
            let states = chunk.states.get().add(row * (2 * blocks + 2));
            let (mut m, mut l) = (f32::NEG_INFINITY, 0.0f32);
            for (block, scores) in scores.chunks(KEY_BLOCK).enumerate() {
                let start = block * KEY_BLOCK;
                let mut x = [f32::NEG_INFINITY; KEY_BLOCK];
                let mut block_m = f32::NEG_INFINITY;
                let mut any_nan = false;
                for (j, (x, score)) in x.iter_mut().zip(scores).take(visible.saturating_sub(start)).enumerate() {
                    *x = score * self.scale;
                    if !mask.is_null() {
                        *x += *mask.add((start + j) * self.mask_strides[lead + 1]);
                    }
                    block_m = if *x > block_m { *x } else { block_m };
                    any_nan |= x.is_nan();
                }
                if block_m == f32::NEG_INFINITY && any_nan {
                    block_m = NAN;
                }
                let weights = chunk.weights.get().add(chunk.of_block(blocks, row, block) * KEY_BLOCK);
                weights.write_bytes(0, KEY_BLOCK);
                let weights = &mut *weights.cast::<[f32; KEY_BLOCK]>();
                if block_m == f32::NEG_INFINITY {
                    // A factor below 0 says that the block is skipped.
                    states.add(2 * block).write(-1.0);
                    continue;
                }
                let sum = powers_below(isa, x.as_ptr(), weights.as_mut_ptr(), KEY_BLOCK, block_m);
                let factors = chunk.factors.get().add((row / chunk.rows * blocks + block) * KEY_BLOCK);
                for (j, weight) in weights.iter_mut().enumerate() {
                    *weight *= *factors.add(j);
                }
                // A NaN among the weights is in their sum, and so in all that follows.
                let merged = if block_m > m { block_m } else { m };
                let (old, new) = (exp(m - merged), exp(block_m - merged));
                l = l * old + sum * new;
                m = merged;
                states.add(2 * block).write(old);
                states.add(2 * block + 1).write(new);
            }
            states.add(2 * blocks).write(m);
            states.add(2 * blocks + 1).write(l);
        }
    }

    /// Merges the results of a chunk's blocks.
    fn merge(&self, exec: &Exec<'_>, chunk: &Chunk) -> Result<()> {
        let some = (4096 / self.plan.value_width).max(1);
        exec.pool.try_run((chunk.matrices * chunk.rows).div_ceil(some), &|task, _| {
            for row in task * some..(chunk.matrices * chunk.rows).min((task + 1) * some) {
                // SAFETY: as above.
                unsafe { self.merge_row(chunk, row) };
            }
        })
    }

    /// Merges the results of a row's blocks.
    ///
    /// # Safety
    /// As of `weigh_row`.
    unsafe fn merge_row(&self, chunk: &Chunk, row: usize) {
        let n = self.plan.value_width;
        let blocks = self.plan.keys.div_ceil(KEY_BLOCK);
        // SAFETY: the results, states and output have this row.
        unsafe {
            let states = chunk.states.get().add(row * (2 * blocks + 2));
            let out = self.out.get().add((chunk.first + row) * n);
            out.write_bytes(0, n);
            let out = std::slice::from_raw_parts_mut(out, n);
            for block in 0..blocks {
                let (old, new) = (*states.add(2 * block), *states.add(2 * block + 1));
                if old < 0.0 {
                    continue;
                }
                let from = chunk.results.get().add(chunk.of_block(blocks, row, block) * n);
                for (d, out) in out.iter_mut().enumerate() {
                    *out = *out * old + *from.add(d) * new;
                }
            }
            let (m, l) = (*states.add(2 * blocks), *states.add(2 * blocks + 1));
            if m != f32::NEG_INFINITY || l.is_nan() {
                for out in out {
                    *out = canonical(*out / l);
                }
            }
        }
    }
}

impl Chunk {
    /// Returns where a block of a row's weights or results is, counted in such blocks.
    fn of_block(&self, blocks: usize, row: usize, block: usize) -> usize {
        (row / self.rows * blocks + block) * self.rows + row % self.rows
    }
}

/// Cuts the values of a key to fixed-point numbers of one scale. Returns the factor of its weights.
fn cut_row(from: &[f32], precision: Precision, to: &mut [f32]) -> f32 {
    let largest = from.iter().fold(0, |largest, x| (x.to_bits() & 0x7fff_ffff).max(largest));
    let (scale, factor) = value_factor(largest, precision);
    let unit = power_of_two(-value_scale(precision));
    for (to, &x) in to.iter_mut().zip(from) {
        *to = scale.map_or(0.0, |scale| fixed_cut(x, scale) as f32 * unit);
    }
    factor
}
