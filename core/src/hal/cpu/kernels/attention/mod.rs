//! attention: query rows in groups, and keys in the contract's blocks of 64. Nothing larger than a block is kept.
//!
//! Scores are computed transposed, as one row of queries for each key, so each vector lane belongs to one query.
//! Maxima, exponentials and sums then go along the keys, and no operation combines lanes of a vector.

mod few;
#[cfg(feature = "integers")]
mod fixed;

use super::gemm::{Block, Epilogue, Matrix, Packing, Transpose};
use super::normalise::DivideBy;
use super::{Call, Exec, Shared};
use crate::contract::KEY_BLOCK;
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch};
use crate::interrupt;
use crate::ops::AttentionPlan;
use crate::shape::MAX_RANK;
use few::Few;
#[cfg(feature = "integers")]
use fixed::Exact;

/// The query rows of a group, and the length of a row of scores.
const QUERIES: usize = 64;

/// The number of lanes of SUM.
const SUM_LANES: usize = 32;

/// The lanes of the longest vector. Scores are computed for a number of queries rounded up to it.
const MAX_LANES: usize = 16;

/// Nothing is packed: a group of queries is one tile or a few, and all operands fit in the first caches of any
/// processor.
const PACKING: Packing = Packing { a: false, b: false, cache: 1 << 20 };

/// `attention` of the op table.
pub(super) fn attention(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let plan = AttentionPlan::new(call.inputs.into())?;
    let AttentionPlan { batches, heads, kv_heads, queries, keys, width, value_width, .. } = plan;
    if batches * heads * queries * value_width == 0 {
        return Ok(());
    }
    let (scale, causal) = (plan.scale(call.attrs), call.attrs.causal);
    let mask_strides = match call.inputs.get(3) {
        Some(Some(mask)) => mask.shape().broadcast_strides(&plan.scores),
        _ => [0; MAX_RANK],
    };
    let pointer = |i| call.f32(i).map(|p| Shared(p.cast_mut()));
    let (q, k, v, mask, out) = (pointer(0)?, pointer(1)?, pointer(2)?, pointer(3)?, Shared(call.out()?));
    #[cfg(feature = "integers")]
    let precision = call.attrs.precision();
    #[cfg(feature = "integers")]
    if precision != crate::contract::Precision::F32 && keys > 0 {
        return Exact { plan: &plan, precision, scale, causal, q, k, v, mask, mask_strides, out }.compute(exec);
    }
    if Few::fits(&plan) {
        return Few { plan: &plan, scale, causal, q, k, v, mask, mask_strides, out }.compute(exec);
    }
    let packing = PACKING.scratch(exec.isa, KEY_BLOCK, QUERIES, width).max(PACKING.scratch(
        exec.isa,
        QUERIES,
        value_width,
        KEY_BLOCK,
    ));
    let groups = queries.div_ceil(QUERIES);
    let all = batches * heads;
    let tasks = all * groups;
    // The parts of the scratch, in the order of `Scratch`.
    let each = packing + QUERIES * (width + 2 * KEY_BLOCK + value_width + 5) + SUM_LANES * MAX_LANES;
    let scratch = exec.scratch.take(each * exec.pool.threads().min(tasks))?;
    let scratch = Shared(scratch.pointer());
    exec.pool.try_run(tasks, &|task, seat| {
        // The last queries first: with `causal` they see the most keys, and threads that end early find smaller tasks.
        let (head, first) = (task % all, (groups - 1 - task / all) * QUERIES);
        let kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
        // SAFETY: heads and rows lie inside the operands. Only this task writes these output rows, and no other running
        // task uses this seat's scratch.
        unsafe {
            let packing_at = scratch.get().add(each * seat);
            let transposed = packing_at.add(packing);
            let scores = transposed.add(QUERIES * width);
            let mask_block = scores.add(QUERIES * KEY_BLOCK);
            let block_out = mask_block.add(QUERIES * KEY_BLOCK);
            let state = block_out.add(QUERIES * value_width);
            let group = Group {
                exec,
                plan: &plan,
                first,
                rows: QUERIES.min(queries - first),
                q: q.get().add((head * queries + first) * width),
                k: k.get().add(kv * keys * width),
                v: v.get().add(kv * keys * value_width),
                mask: if mask.get().is_null() {
                    std::ptr::null()
                } else {
                    mask.get().add(mask_offset(&plan, &mask_strides, head))
                },
                mask_row: mask_strides[plan.scores.rank() - 2],
                mask_column: mask_strides[plan.scores.rank() - 1],
                scale,
                causal,
                out: out.get().add((head * queries + first) * value_width),
                packing: packing_at,
                transposed,
                scores,
                mask_block,
                block_out,
                m: state,
                l: state.add(QUERIES),
                m_block: state.add(2 * QUERIES),
                old_factor: state.add(3 * QUERIES),
                new_factor: state.add(4 * QUERIES),
                sums: state.add(5 * QUERIES),
            };
            group.compute();
        }
    })?;
    Ok(())
}

/// Returns where a head's scores begin in the mask.
fn mask_offset(plan: &AttentionPlan, strides: &[usize; MAX_RANK], head: usize) -> usize {
    let lead = plan.scores.rank() - 2;
    let (mut rest, mut at) = (head, 0);
    for axis in (0..lead).rev() {
        let n = plan.scores.dims()[axis];
        at += rest % n * strides[axis];
        rest /= n;
    }
    at
}

/// A group of query rows of one head.
struct Group<'a> {
    exec: &'a Exec<'a>,
    plan: &'a AttentionPlan,
    first: usize,
    rows: usize,
    q: *const f32,
    k: *const f32,
    v: *const f32,
    /// The mask for this head's query 0 and key 0; null without a mask.
    mask: *const f32,
    mask_row: usize,
    mask_column: usize,
    scale: f32,
    causal: bool,
    out: *mut f32,
    packing: *mut f32,
    /// The queries, transposed: [width][QUERIES].
    transposed: *mut f32,
    /// [KEY_BLOCK][QUERIES].
    scores: *mut f32,
    mask_block: *mut f32,
    block_out: *mut f32,
    /// One value for each query: MAX and the sum so far, this block's MAX, and the factors of the outputs so far and of
    /// this block's outputs.
    m: *mut f32,
    l: *mut f32,
    m_block: *mut f32,
    old_factor: *mut f32,
    new_factor: *mut f32,
    /// The lanes of SUM for a vector of queries.
    sums: *mut f32,
}

impl Group<'_> {
    unsafe fn compute(&self) {
        let isa = self.exec.isa;
        let AttentionPlan { keys, width, value_width, .. } = *self.plan;
        // Scores beyond the last query are computed from zeros and not used.
        let padded = self.rows.next_multiple_of(MAX_LANES);
        // SAFETY: the pointers were made for these rows, keys and widths.
        unsafe {
            for row in 0..QUERIES {
                self.m.add(row).write(f32::NEG_INFINITY);
                self.l.add(row).write(0.0);
            }
            self.out.write_bytes(0, self.rows * value_width);
            if padded > self.rows {
                self.transposed.write_bytes(0, QUERIES * width);
                self.mask_block.write_bytes(0, QUERIES * KEY_BLOCK);
            }
            let (rows, to, to_row) = (self.rows, self.transposed, QUERIES);
            dispatch(isa, Transpose { from: self.q, row: width, rows, columns: width, to, to_row });
            // The last row of the group sees the most keys. Blocks that are hidden from it are hidden from all rows.
            let end = self.plan.visible(self.causal, self.first + self.rows - 1);
            let mut start = 0;
            while start < end && !interrupt::is_stopped() {
                let count = KEY_BLOCK.min(keys - start);
                let scores = Block {
                    m: count,
                    n: padded,
                    k: width,
                    a: Matrix::new(self.k.add(start * width), count, width, false),
                    b: Matrix { data: self.transposed, row: QUERIES, column: 1 },
                    out: self.scores,
                    out_row: QUERIES,
                    packing: PACKING,
                    epilogue: Epilogue::NONE,
                };
                scores.compute(isa, self.packing);
                if !self.mask.is_null() && self.mask_row != 0 {
                    let from = self.mask.add((self.first * self.mask_row) + start * self.mask_column);
                    let (row, to) = (self.mask_row, self.mask_block);
                    // A mask that is broadcast along the keys has one column.
                    let columns = if self.mask_column == 0 { 1 } else { count };
                    dispatch(isa, Transpose { from, row, rows, columns, to, to_row });
                }
                dispatch(isa, Weigh { group: self, start, count });
                let values = Block {
                    m: self.rows,
                    n: value_width,
                    k: count,
                    a: Matrix { data: self.scores, row: 1, column: QUERIES },
                    b: Matrix { data: self.v.add(start * value_width), row: value_width, column: 1 },
                    out: self.block_out,
                    out_row: value_width,
                    packing: PACKING,
                    epilogue: Epilogue::NONE,
                };
                values.compute(isa, self.packing);
                dispatch(isa, Merge(self));
                start += count;
            }
            dispatch(isa, Divide(self));
        }
    }
}

/// Computes weights from dot products, in place: scale, mask, MAX, exp and SUM. Then computes the factors of the merge.
struct Weigh<'a> {
    group: &'a Group<'a>,
    start: usize,
    count: usize,
}

impl Kernel for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut query = 0;
        while query < self.group.rows {
            // SAFETY: rows of scores and masks, and the states, hold QUERIES values, a multiple of every vector's
            // lanes.
            unsafe { self.vector::<S>(query) };
            query += S::LANES;
        }
    }
}

impl Weigh<'_> {
    /// Handles one vector of queries.
    #[inline(always)]
    unsafe fn vector<S: Simd>(&self, query: usize) {
        let Weigh { group: g, start, count } = *self;
        // SAFETY: as above.
        unsafe {
            let scores = g.scores.add(query);
            let (scale, lowest) = (S::splat(g.scale), S::splat(f32::NEG_INFINITY));
            // How many of this block's keys each query sees. The test below asks whether any query sees fewer than all.
            let mut seen = [0.0f32; MAX_LANES];
            for (lane, seen) in seen[..S::LANES].iter_mut().enumerate() {
                *seen = g.plan.visible(g.causal, g.first + query + lane).saturating_sub(start).min(count) as f32;
            }
            let hides = g.causal && (seen[0] as usize) < count;
            let seen = S::load(seen.as_ptr());
            let mut m = lowest;
            for j in 0..count {
                let at = scores.add(j * QUERIES);
                let mut x = S::mul(S::load(at), scale);
                if !g.mask.is_null() {
                    let mask = match (g.mask_row, g.mask_column) {
                        (0, column) => S::splat(*g.mask.add((start + j) * column)),
                        (_, 0) => S::load(g.mask_block.add(query)),
                        _ => S::load(g.mask_block.add(j * QUERIES + query)),
                    };
                    x = S::add(x, mask);
                }
                if hides {
                    x = S::select(S::lt(S::splat(j as f32), seen), x, lowest);
                }
                S::store(at, x);
                // This max may drop a NaN. The NaN's weight is NaN anyway, and so is all that follows from it.
                m = S::max(x, m);
            }
            // The exception is a query that sees nothing but −∞ and NaN: it would count as one without a live key.
            let mut live = [0.0f32; MAX_LANES];
            S::store(live.as_mut_ptr(), m);
            let dead = live[..S::LANES].contains(&f32::NEG_INFINITY);
            if dead {
                for j in 0..count {
                    let x = S::load(scores.add(j * QUERIES));
                    m = S::select(S::is_nan(x), x, m);
                }
            }
            S::store(g.m_block.add(query), m);
            let total = self.weights::<S>(scores, m);
            if dead {
                // A block without a live key is skipped for that query. Its weights become 0, so that they don't poison
                // the product.
                for j in 0..count {
                    let at = scores.add(j * QUERIES);
                    S::store(at, S::select(S::eq(m, lowest), S::splat(0.0), S::load(at)));
                }
            }
            let (old_m, old_l) = (S::load(g.m.add(query)), S::load(g.l.add(query)));
            let skipped = S::eq(m, lowest);
            // If either maximum is NaN, a factor below is NaN too, and so is the result.
            let merged = S::select(skipped, old_m, S::max(m, old_m));
            let old_factor = simd::exp_of_negative::<S>(S::sub(old_m, merged));
            let new_factor = simd::exp_of_negative::<S>(S::sub(m, merged));
            let l = S::add(S::mul(old_l, old_factor), S::mul(total, new_factor));
            S::store(g.old_factor.add(query), old_factor);
            S::store(g.new_factor.add(query), new_factor);
            S::store(g.m.add(query), merged);
            S::store(g.l.add(query), S::select(skipped, old_l, l));
        }
    }

    /// Computes `exp(x − m)` in place, and its SUM.
    #[inline(always)]
    unsafe fn weights<S: Simd>(&self, scores: *mut f32, m: S::F) -> S::F {
        let Weigh { group: g, count, .. } = *self;
        // SAFETY: as above. `sums` has room for a vector for each lane of SUM.
        unsafe {
            for j in 0..count {
                let at = scores.add(j * QUERIES);
                let e = simd::exp_of_negative::<S>(S::sub(S::load(at), m));
                S::store(at, e);
                let lane = g.sums.add(j % SUM_LANES * S::LANES);
                S::store(lane, if j < SUM_LANES { e } else { S::add(S::load(lane), e) });
            }
            for lane in count..SUM_LANES {
                S::store(g.sums.add(lane * S::LANES), S::splat(0.0));
            }
            let mut half = SUM_LANES / 2;
            while half > 0 {
                for lane in 0..half {
                    let at = g.sums.add(lane * S::LANES);
                    S::store(at, S::add(S::load(at), S::load(at.add(half * S::LANES))));
                }
                half /= 2;
            }
            S::load(g.sums)
        }
    }
}

/// Merges a block's output into the running output.
struct Merge<'a>(&'a Group<'a>);

impl Kernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let g = self.0;
        let n = g.plan.value_width;
        for row in 0..g.rows {
            // SAFETY: both outputs have rows of value_width, and the state has one value a row.
            unsafe {
                if *g.m_block.add(row) == f32::NEG_INFINITY {
                    continue;
                }
                let (o, block) = (g.out.add(row * n), g.block_out.add(row * n));
                let (old, new) = (S::splat(*g.old_factor.add(row)), S::splat(*g.new_factor.add(row)));
                let mut d = 0;
                while d < n {
                    let count = S::LANES.min(n - d);
                    let kept = S::mul(S::load_head(o.add(d), count), old);
                    let added = S::mul(S::load_head(block.add(d), count), new);
                    S::store_head(o.add(d), count, S::add(kept, added));
                    d += count;
                }
            }
        }
    }
}

/// Divides the output by the sum of the weights. Rows that saw no live key stay +0.
struct Divide<'a>(&'a Group<'a>);

impl Kernel for Divide<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let g = self.0;
        let n = g.plan.value_width;
        for row in 0..g.rows {
            // SAFETY: the output has rows of value_width.
            unsafe {
                if *g.m.add(row) == f32::NEG_INFINITY {
                    continue;
                }
                let o = g.out.add(row * n);
                simd::map_row::<S>(o, o, n, DivideBy(*g.l.add(row)));
            }
        }
    }
}
