//! A group of query rows of one head: their weights and results for one block of keys after the other, and the merge.

#[cfg(feature = "integers")]
use super::fixed::Integers;
use super::{MAX_LANES, PACKING, QUERIES, SUM_LANES};
use crate::contract::KEY_BLOCK;
use crate::hal::cpu::kernels::Exec;
use crate::hal::cpu::kernels::gemm::{Block, Epilogue, Matrix, Transpose};
use crate::hal::cpu::kernels::normalise::DivideBy;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch};
use crate::interrupt;
use crate::ops::AttentionPlan;

/// A group of query rows of one head.
pub(super) struct Group<'a> {
    pub exec: &'a Exec<'a>,
    pub plan: &'a AttentionPlan,
    pub first: usize,
    pub rows: usize,
    pub q: *const f32,
    pub k: *const f32,
    pub v: *const f32,
    /// The mask for this head's query 0 and key 0; null without a mask.
    pub mask: *const f32,
    pub mask_row: usize,
    pub mask_column: usize,
    pub scale: f32,
    pub causal: bool,
    pub out: *mut f32,
    pub packing: *mut f32,
    /// The queries, transposed: [width][QUERIES].
    pub transposed: *mut f32,
    /// [KEY_BLOCK][QUERIES].
    pub scores: *mut f32,
    pub mask_block: *mut f32,
    pub block_out: *mut f32,
    /// One value for each query: MAX and the sum so far, this block's MAX, and the factors of the outputs so far and of
    /// this block's outputs.
    pub m: *mut f32,
    pub l: *mut f32,
    pub m_block: *mut f32,
    pub old_factor: *mut f32,
    pub new_factor: *mut f32,
    /// The lanes of SUM for a vector of queries.
    pub sums: *mut f32,
    /// What products in exact integers need besides.
    #[cfg(feature = "integers")]
    pub integers: Option<Integers>,
}

impl Group<'_> {
    /// Computes the group's rows.
    ///
    /// # Safety
    /// Only this call uses the output's rows and the scratch.
    pub unsafe fn compute(&self) {
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
            #[cfg(feature = "integers")]
            if let Some(integers) = &self.integers {
                integers.cut_queries(self, padded);
            }
            // The last row of the group sees the most keys. Blocks that are hidden from it are hidden from all rows.
            let end = self.plan.visible(self.causal, self.first + self.rows - 1);
            let mut start = 0;
            while start < end && !interrupt::is_stopped() {
                let count = KEY_BLOCK.min(keys - start);
                self.scores(start, count, padded);
                if !self.mask.is_null() && self.mask_row != 0 {
                    let from = self.mask.add((self.first * self.mask_row) + start * self.mask_column);
                    let (row, to) = (self.mask_row, self.mask_block);
                    // A mask that is broadcast along the keys has one column.
                    let columns = if self.mask_column == 0 { 1 } else { count };
                    dispatch(isa, Transpose { from, row, rows, columns, to, to_row });
                }
                dispatch(isa, Weigh { group: self, start, count });
                self.results(start, count);
                dispatch(isa, Merge(self));
                start += count;
            }
            dispatch(isa, Divide(self));
        }
    }

    /// Multiplies the keys of a block by the queries.
    unsafe fn scores(&self, start: usize, count: usize, padded: usize) {
        // SAFETY: the pointers were made for these rows, keys and widths.
        unsafe {
            #[cfg(feature = "integers")]
            if let Some(integers) = &self.integers {
                return integers.scores(self, start, count, padded);
            }
            let width = self.plan.width;
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
            scores.compute(self.exec.isa, self.packing);
        }
    }

    /// Multiplies the weights of a block by the values.
    unsafe fn results(&self, start: usize, count: usize) {
        // SAFETY: as above.
        unsafe {
            #[cfg(feature = "integers")]
            if let Some(integers) = &self.integers {
                return integers.results(self, start, count);
            }
            let value_width = self.plan.value_width;
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
            values.compute(self.exec.isa, self.packing);
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
