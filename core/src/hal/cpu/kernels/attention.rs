//! attention: query rows in groups, keys in the contract's blocks of 64, nothing larger than a block kept.

use super::gemm::{Block, Epilogue, Matrix, Packing};
use super::normalise::{DivideBy, ExpBelow};
use super::sum::{max_key, sum};
use super::{Call, Exec, Shared};
use crate::contract::{self, KEY_BLOCK};
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch};
use crate::ops::AttentionPlan;
use crate::shape::MAX_RANK;

/// Query rows that share the packing of a key block.
const QUERY_ROWS: usize = 64;

/// Columns of V that one product takes at a time.
const VALUE_COLUMNS: usize = 256;

/// `attention` of the op table.
pub(super) fn attention(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let plan = AttentionPlan::new(call.inputs)?;
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
    let packing = Packing { a: false, b: true }.scratch(QUERY_ROWS, VALUE_COLUMNS, width.max(KEY_BLOCK));
    // Scores, one block's output, then per row: m, l, m_b (reused for the factors) and l_b.
    let each = packing + QUERY_ROWS * (KEY_BLOCK + value_width + 4);
    let groups = queries.div_ceil(QUERY_ROWS);
    let tasks = batches * heads * groups;
    let scratch = exec.scratch.take(each * exec.pool.threads().min(tasks))?;
    let scratch = Shared(scratch.pointer());
    exec.pool.run(tasks, &|task, seat| {
        let (head, first) = (task / groups, task % groups * QUERY_ROWS);
        let kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
        let rows = QUERY_ROWS.min(queries - first);
        // SAFETY: heads and rows lie inside the operands; output rows are this task's alone; a seat's scratch too.
        unsafe {
            let at = scratch.get().add(each * seat);
            let scores = at.add(packing);
            let block_out = scores.add(QUERY_ROWS * KEY_BLOCK);
            let state = block_out.add(QUERY_ROWS * value_width);
            let group = Group {
                exec,
                plan: &plan,
                first,
                rows,
                q: Matrix::new(q.get().add((head * queries + first) * width), rows, width, false),
                k: k.get().add(kv * keys * width),
                v: v.get().add(kv * keys * value_width),
                mask: mask.get(),
                mask_at: mask_offset(&plan, &mask_strides, head),
                mask_row: mask_strides[plan.scores.rank() - 2],
                mask_column: mask_strides[plan.scores.rank() - 1],
                scale,
                causal,
                out: out.get().add((head * queries + first) * value_width),
                packing: at,
                scores,
                block_out,
                m: state,
                l: state.add(QUERY_ROWS),
                m_block: state.add(2 * QUERY_ROWS),
                l_block: state.add(3 * QUERY_ROWS),
            };
            group.compute();
        }
    });
    Ok(())
}

/// Where a head's scores begin in the mask.
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

/// Some query rows of one head.
struct Group<'a> {
    exec: &'a Exec<'a>,
    plan: &'a AttentionPlan,
    first: usize,
    rows: usize,
    q: Matrix,
    k: *const f32,
    v: *const f32,
    mask: *const f32,
    mask_at: usize,
    mask_row: usize,
    mask_column: usize,
    scale: f32,
    causal: bool,
    out: *mut f32,
    packing: *mut f32,
    scores: *mut f32,
    block_out: *mut f32,
    m: *mut f32,
    l: *mut f32,
    m_block: *mut f32,
    l_block: *mut f32,
}

impl Group<'_> {
    unsafe fn compute(&self) {
        let isa = self.exec.isa;
        let AttentionPlan { keys, width, value_width, .. } = *self.plan;
        // SAFETY: rows, keys and widths are those the pointers were made for.
        unsafe {
            for row in 0..self.rows {
                self.m.add(row).write(f32::NEG_INFINITY);
                self.l.add(row).write(0.0);
                self.out.add(row * value_width).write_bytes(0, value_width);
            }
            // Blocks that causality hides from the last row of the group are hidden from all.
            let end = self.plan.visible(self.causal, self.first + self.rows - 1);
            let mut start = 0;
            while start < end {
                let count = KEY_BLOCK.min(keys - start);
                let product = Block {
                    m: self.rows,
                    n: count,
                    k: width,
                    a: self.q,
                    b: Matrix::new(self.k.add(start * width), width, count, true),
                    out: self.scores,
                    out_row: KEY_BLOCK,
                    packing: Packing { a: false, b: true },
                    epilogue: Epilogue::NONE,
                };
                product.compute(isa, self.packing);
                dispatch(isa, Weigh { group: self, start, count });
                let mut column = 0;
                while column < value_width {
                    let columns = VALUE_COLUMNS.min(value_width - column);
                    let v = self.v.add(start * value_width + column);
                    let product = Block {
                        m: self.rows,
                        n: columns,
                        k: count,
                        a: Matrix { data: self.scores, row: KEY_BLOCK, column: 1 },
                        b: Matrix { data: v, row: value_width, column: 1 },
                        out: self.block_out.add(column),
                        out_row: value_width,
                        packing: Packing { a: false, b: false },
                        epilogue: Epilogue::NONE,
                    };
                    product.compute(isa, self.packing);
                    column += columns;
                }
                dispatch(isa, Merge(self));
                start += count;
            }
            dispatch(isa, Divide(self));
        }
    }
}

/// From dot products to weights: scale, mask, MAX, exp, SUM, in place.
struct Weigh<'a> {
    group: &'a Group<'a>,
    start: usize,
    count: usize,
}

impl Kernel for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Weigh { group: g, start, count } = self;
        for row in 0..g.rows {
            // SAFETY: scores hold `rows` rows of KEY_BLOCK; the mask covers every (row, key).
            unsafe {
                let x = g.scores.add(row * KEY_BLOCK);
                let query = g.first + row;
                let visible = g.plan.visible(g.causal, query).saturating_sub(start).min(count);
                let mut j = 0;
                while j < visible {
                    // Rows are KEY_BLOCK long, so a whole vector is always there.
                    let mut t = S::mul(S::load(x.add(j)), S::splat(g.scale));
                    if !g.mask.is_null() {
                        let at = g.mask.add(g.mask_at + query * g.mask_row + (start + j) * g.mask_column);
                        // A mask broadcast along the keys is one value a row.
                        let mask = match g.mask_column {
                            0 => S::splat(*at),
                            _ => S::load_head(at, S::LANES.min(visible - j)),
                        };
                        t = S::add(t, mask);
                    }
                    S::store(x.add(j), t);
                    j += S::LANES;
                }
                for hidden in visible..count {
                    x.add(hidden).write(f32::NEG_INFINITY);
                }
                let m = contract::max_of_keys(max_key::<S>(x, count));
                g.m_block.add(row).write(m);
                if m == f32::NEG_INFINITY {
                    // The block is skipped for this row; its weights must not poison the product.
                    x.write_bytes(0, count);
                    continue;
                }
                simd::map_row::<S>(x, x, count, ExpBelow(m));
                let l = sum::<S>(x, count);
                g.l_block.add(row).write(l);
            }
        }
    }
}

/// Merges a block into the running output.
struct Merge<'a>(&'a Group<'a>);

impl Kernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let g = self.0;
        let n = g.plan.value_width;
        for row in 0..g.rows {
            // SAFETY: rows of value_width in both outputs, one value a row in the state.
            unsafe {
                let (m, m_block) = (*g.m.add(row), *g.m_block.add(row));
                if m_block == f32::NEG_INFINITY {
                    continue;
                }
                let merged = contract::max(&[m, m_block]).unwrap_or(contract::NAN);
                let (a, c) = (contract::exp(m - merged), contract::exp(m_block - merged));
                g.m.add(row).write(merged);
                g.l.add(row).write(*g.l.add(row) * a + *g.l_block.add(row) * c);
                let (o, block) = (g.out.add(row * n), g.block_out.add(row * n));
                let (a, c) = (S::splat(a), S::splat(c));
                let mut d = 0;
                while d < n {
                    let count = S::LANES.min(n - d);
                    let old = S::mul(S::load_head(o.add(d), count), a);
                    let new = S::mul(S::load_head(block.add(d), count), c);
                    S::store_head(o.add(d), count, S::add(old, new));
                    d += count;
                }
            }
        }
    }
}

/// Divides by the weights' sum; rows that saw no live key stay +0.
struct Divide<'a>(&'a Group<'a>);

impl Kernel for Divide<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let g = self.0;
        let n = g.plan.value_width;
        for row in 0..g.rows {
            // SAFETY: rows of value_width in the output.
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
