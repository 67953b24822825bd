//! A few queries for each head of keys, as when one token is generated: blocks of keys are tasks of their own, and are merged
//! behind them.
//!
//! A vector's lanes belong to keys here, so a block of keys is transposed first. The queries of all heads that share the keys use
//! it together.

use super::{MAX_LANES, PACKING, SUM_LANES, mask_offset};
use crate::contract::{K_BLOCK, KEY_BLOCK};
use crate::error::Result;
use crate::hal::cpu::kernels::gemm::{Block, Epilogue, Matrix, Transpose};
use crate::hal::cpu::kernels::normalise::DivideBy;
use crate::hal::cpu::kernels::{Exec, Shared};
use crate::hal::cpu::simd::{self, Kernel, SMALLEST, Simd, dispatch, dispatch_m, unroll};
use crate::isa::Isa;
use crate::ops::AttentionPlan;
use crate::shape::MAX_RANK;

/// The most queries that share a head of keys. With more of them, a vector of queries for each key is as fast.
const ROWS: usize = 8;

/// The blocks of keys that are worth a task.
const LEAST_BLOCKS: usize = 3;

/// An attention with few queries.
pub(super) struct Few<'a> {
    pub plan: &'a AttentionPlan,
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

/// What a block of keys contributes to a query's result: its MAX and the sum of its weights. The weighted values follow all of them.
const STATE: usize = 2;

impl Few<'_> {
    /// Returns whether an attention has few queries.
    pub fn fits(plan: &AttentionPlan) -> bool {
        !SMALLEST && plan.kv_heads != 0 && plan.heads / plan.kv_heads * plan.queries <= ROWS
    }

    /// Computes it.
    pub fn compute(&self, exec: &Exec<'_>) -> Result<()> {
        let AttentionPlan { batches, heads, kv_heads, queries, width, value_width, .. } = *self.plan;
        let rows = heads / kv_heads * queries;
        let heads_of_keys = batches * kv_heads;
        // Blocks that are hidden from the last query are hidden from all of them.
        let blocks = self.plan.visible(self.causal, queries - 1).div_ceil(KEY_BLOCK);
        let packing = PACKING.scratch(exec.isa, rows, KEY_BLOCK, width).max(PACKING.scratch(
            exec.isa,
            rows,
            value_width,
            KEY_BLOCK,
        ));
        let each_seat = packing + KEY_BLOCK * width + rows * KEY_BLOCK;
        let each_block = rows * (STATE + value_width);
        let at_once = LEAST_BLOCKS.max((heads_of_keys * blocks).div_ceil(4 * exec.pool.threads()));
        let parts = blocks.div_ceil(at_once);
        let seats = exec.pool.threads().min(heads_of_keys * parts);
        let scratch = exec.scratch.take(each_seat * seats + each_block * heads_of_keys * blocks)?;
        let (seat_at, block_at) =
            (Shared(scratch.pointer()), Shared(scratch.pointer().wrapping_add(each_seat * seats)));
        let found = |head: usize, block: usize| block_at.get().wrapping_add((head * blocks + block) * each_block);
        exec.pool.try_run(heads_of_keys * parts, &|task, seat| {
            let (head, part) = (task / parts, task % parts);
            for block in part * at_once..blocks.min((part + 1) * at_once) {
                // SAFETY: the block is the head's, and has room for what is found. No other running task uses this seat's scratch.
                unsafe {
                    self.block(exec, head, block, seat_at.get().add(each_seat * seat), packing, found(head, block))
                };
            }
        })?;
        exec.pool.try_run(heads_of_keys, &|head, _| {
            // SAFETY: all of the head's blocks are computed, and only this task writes its queries' results.
            unsafe {
                let out = self.out.get().add(head * rows * value_width);
                dispatch(exec.isa, Merge { found: found(head, 0), blocks, rows, width: value_width, out });
            }
        })
    }

    /// Computes what a block of keys contributes.
    ///
    /// # Safety
    /// The head has this block. `scratch` has room for the packing, the transposed keys and the scores, and `found` for the
    /// contribution.
    unsafe fn block(
        &self,
        exec: &Exec<'_>,
        head: usize,
        block: usize,
        scratch: *mut f32,
        packing: usize,
        found: *mut f32,
    ) {
        let AttentionPlan { heads, kv_heads, queries, keys, width, value_width, .. } = *self.plan;
        let (isa, rows) = (exec.isa, heads / kv_heads * queries);
        let start = block * KEY_BLOCK;
        let count = KEY_BLOCK.min(keys - start);
        // SAFETY: the operands have these rows, and the caller promises the rest.
        unsafe {
            let keys_of = scratch.add(packing);
            let scores = keys_of.add(KEY_BLOCK * width);
            let from = self.k.get().add((head * keys + start) * width);
            dispatch(isa, Transpose { from, row: width, rows: count, columns: width, to: keys_of, to_row: KEY_BLOCK });
            let products = Block {
                m: rows,
                n: count,
                k: width,
                a: Matrix::new(self.q.get().add(head * rows * width), rows, width, false),
                b: Matrix { data: keys_of, row: KEY_BLOCK, column: 1 },
                out: scores,
                out_row: KEY_BLOCK,
                packing: PACKING,
                epilogue: Epilogue::NONE,
            };
            multiply(isa, products, from.wrapping_add(KEY_BLOCK * width), scratch);
            dispatch(isa, Weigh { few: self, head, start, count, rows, scores, found });
            let from = self.v.get().add((head * keys + start) * value_width);
            let values = Block {
                m: rows,
                n: value_width,
                k: count,
                a: Matrix { data: scores, row: KEY_BLOCK, column: 1 },
                b: Matrix { data: from, row: value_width, column: 1 },
                out: found.add(STATE * rows),
                out_row: value_width,
                packing: PACKING,
                epilogue: Epilogue::NONE,
            };
            multiply(isa, values, from.wrapping_add(KEY_BLOCK * value_width), scratch);
        }
    }

    /// Returns where the mask of a row and a key begins, or null.
    unsafe fn mask_of(&self, head: usize, row: usize, key: usize) -> (*const f32, usize) {
        let AttentionPlan { heads, kv_heads, queries, scores, .. } = self.plan;
        if self.mask.get().is_null() {
            return (std::ptr::null(), 0);
        }
        let (of_row, column) = (self.mask_strides[scores.rank() - 2], self.mask_strides[scores.rank() - 1]);
        let head = mask_offset(self.plan, &self.mask_strides, head * (heads / kv_heads) + row / queries);
        // SAFETY: the mask broadcasts to the scores.
        (unsafe { self.mask.get().add(head + row % queries * of_row + key * column) }, column)
    }
}

/// Computes a product of a few rows. `next` is as much memory as B has, which is used soon.
///
/// # Safety
/// As for [`Block::compute`].
unsafe fn multiply(isa: Isa, block: Block, next: *const f32, scratch: *mut f32) {
    // SAFETY: the caller's promise covers this.
    unsafe {
        let chains = Chains { block: &block, next };
        if !((1..=K_BLOCK).contains(&block.k) && dispatch_m(isa, chains)) {
            block.compute(isa, scratch);
        }
    }
}

/// A product whose chains are no longer than one K block. Returns whether the instruction set has this way; if not, nothing is
/// written.
#[derive(Clone, Copy)]
struct Chains<'a> {
    block: &'a Block,
    next: *const f32,
}

impl Kernel for Chains<'_> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        if !S::FUSED {
            return false;
        }
        let mut i = 0;
        // SAFETY: the block has these rows.
        unsafe {
            while i + 2 <= self.block.m {
                self.rows::<S, 2>(i);
                i += 2;
            }
            if i < self.block.m {
                self.rows::<S, 1>(i);
            }
        }
        true
    }
}

impl Chains<'_> {
    /// Computes R rows, four vectors of columns at a time.
    #[inline(always)]
    unsafe fn rows<S: Simd, const R: usize>(self, i: usize) {
        let Block { n, k, a, b, out, out_row, .. } = *self.block;
        let mut j = 0;
        while j < n {
            // SAFETY: rows and columns lie inside the operands: no vector is accessed beyond the last column.
            unsafe {
                let whole = n - j >= 4 * S::LANES;
                let mut p = [[S::splat(0.0); 4]; R];
                let mut from = b.data.add(j);
                let mut ahead = self.next.wrapping_add(j);
                for q in 0..k {
                    let mut x = [S::splat(0.0); 4];
                    if whole {
                        unroll!(v < 4 => { x[v] = S::load(from.add(v * S::LANES)); });
                    } else {
                        unroll!(v < 4 => {
                            x[v] = S::load_head(from.wrapping_add(v * S::LANES), (n - j).saturating_sub(v * S::LANES).min(S::LANES));
                        });
                    }
                    if i == 0 {
                        unroll!(v < 4 => { S::prefetch_to_second(ahead.wrapping_add(v * S::LANES)); });
                    }
                    unroll!(r < R => {
                        let y = S::splat(*a.data.add((i + r) * a.row + q));
                        unroll!(v < 4 => { p[r][v] = S::fmaz(y, x[v], p[r][v]); });
                    });
                    from = from.wrapping_add(b.row);
                    ahead = ahead.wrapping_add(b.row);
                }
                unroll!(r < R => {
                    unroll!(v < 4 => {
                        let there = (n - j).saturating_sub(v * S::LANES).min(S::LANES);
                        S::store_head(out.wrapping_add((i + r) * out_row + j + v * S::LANES), there, S::settle(p[r][v]));
                    });
                });
            }
            j += 4 * S::LANES;
        }
    }
}

/// The numbers of a block's keys.
static NUMBERS: [f32; KEY_BLOCK] = {
    let mut numbers = [0.0; KEY_BLOCK];
    let mut i = 0;
    while i < KEY_BLOCK {
        numbers[i] = i as f32;
        i += 1;
    }
    numbers
};

/// Computes weights from dot products, in place: scale, mask, MAX, exp and SUM.
struct Weigh<'a> {
    few: &'a Few<'a>,
    head: usize,
    start: usize,
    count: usize,
    rows: usize,
    scores: *mut f32,
    found: *mut f32,
}

impl Kernel for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Weigh { few, head, start, count, rows, scores, found } = self;
        let lowest = f32::NEG_INFINITY;
        for row in 0..rows {
            let seen = few.plan.visible(few.causal, row % few.plan.queries).saturating_sub(start).min(count);
            // SAFETY: the scores have rows of KEY_BLOCK values, a multiple of every vector's lanes, of which `count` are keys'.
            unsafe {
                let scores = scores.add(row * KEY_BLOCK);
                let (mask, column) = few.mask_of(head, row, start);
                let (scale, seen) = (S::splat(few.scale), S::splat(seen as f32));
                let mut maxima = S::splat(lowest);
                let mut j = 0;
                while j < count {
                    let there = S::LANES.min(count - j);
                    let mut x = S::mul(S::load_head(scores.add(j), there), scale);
                    if !mask.is_null() {
                        let more = if column == 0 { S::splat(*mask) } else { S::load_head(mask.add(j), there) };
                        x = S::add(x, more);
                    }
                    x = S::select(S::lt(S::load(NUMBERS.as_ptr().add(j)), seen), x, S::splat(lowest));
                    S::store(scores.add(j), x);
                    // This max may drop a NaN. The NaN's weight is NaN anyway, and so is all that follows from it.
                    maxima = S::max(x, maxima);
                    j += S::LANES;
                }
                let mut lanes = [lowest; MAX_LANES];
                S::store(lanes.as_mut_ptr(), maxima);
                let mut m = lowest;
                for lane in lanes {
                    m = if lane > m { lane } else { m };
                }
                if m == lowest {
                    // A row that sees nothing but −∞ and NaN must not count as one without a live key.
                    for j in 0..count {
                        m = if (*scores.add(j)).is_nan() { f32::NAN } else { m };
                    }
                }
                let mut sums = [0.0; SUM_LANES];
                let mut j = 0;
                while j < count {
                    let at = scores.add(j);
                    let e = simd::exp_of_negative::<S>(S::sub(S::load(at), S::splat(m)));
                    S::store(at, e);
                    let lane = sums.as_mut_ptr().add(j % SUM_LANES);
                    S::store(lane, if j < SUM_LANES { e } else { S::add(S::load(lane), e) });
                    j += S::LANES;
                }
                let mut half = SUM_LANES / 2;
                while half >= S::LANES {
                    for lane in (0..half).step_by(S::LANES) {
                        let at = sums.as_mut_ptr().add(lane);
                        S::store(at, S::add(S::load(at), S::load(at.add(half))));
                    }
                    half /= 2;
                }
                while half > 0 {
                    for lane in 0..half {
                        sums[lane] += sums[lane + half];
                    }
                    half /= 2;
                }
                found.add(STATE * row).write(m);
                found.add(STATE * row + 1).write(sums[0]);
            }
        }
    }
}

/// Merges what the blocks of a head of keys contribute, in their order.
struct Merge {
    found: *const f32,
    blocks: usize,
    rows: usize,
    width: usize,
    out: *mut f32,
}

impl Kernel for Merge {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Merge { found, blocks, rows, width, out } = self;
        for row in 0..rows {
            // SAFETY: each block has a state and values for each row, and so has the result.
            unsafe {
                let out = out.add(row * width);
                out.write_bytes(0, width);
                let (mut m, mut l) = (S::splat(f32::NEG_INFINITY), S::splat(0.0));
                let mut live = false;
                for block in 0..blocks {
                    let found = found.add(block * rows * (STATE + width));
                    let (of_block, total) = (*found.add(STATE * row), *found.add(STATE * row + 1));
                    if of_block == f32::NEG_INFINITY {
                        continue;
                    }
                    live = true;
                    // If either maximum is NaN, a factor below is NaN too, and so is the result.
                    let merged = S::max(S::splat(of_block), m);
                    let old = simd::exp_of_negative::<S>(S::sub(m, merged));
                    let new = simd::exp_of_negative::<S>(S::sub(S::splat(of_block), merged));
                    l = S::add(S::mul(l, old), S::mul(S::splat(total), new));
                    m = merged;
                    let values = found.add(STATE * rows + row * width);
                    let mut d = 0;
                    while d < width {
                        let count = S::LANES.min(width - d);
                        let kept = S::mul(S::load_head(out.add(d), count), old);
                        let added = S::mul(S::load_head(values.add(d), count), new);
                        S::store_head(out.add(d), count, S::add(kept, added));
                        d += S::LANES;
                    }
                }
                // A row that saw no live key stays +0.
                if live {
                    let mut lanes = [0.0; MAX_LANES];
                    S::store(lanes.as_mut_ptr(), l);
                    simd::map_row::<S>(out, out, width, DivideBy(lanes[0]));
                }
            }
        }
    }
}
