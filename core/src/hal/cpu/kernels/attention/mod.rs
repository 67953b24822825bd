//! attention: query rows in groups, and keys in the contract's blocks of 64. Nothing larger than a block is kept.
//!
//! Scores are computed transposed, as one row of queries for each key, so each vector lane belongs to one query.
//! Maxima, exponentials and sums then go along the keys, and no operation combines lanes of a vector.

mod few;
#[cfg(feature = "integers")]
mod fixed;
mod group;

use super::gemm::Packing;
use super::{Call, Exec, Shared};
use crate::contract::{KEY_BLOCK, Precision};
use crate::error::Result;
use crate::ops::AttentionPlan;
use crate::shape::MAX_RANK;
use few::Few;
#[cfg(feature = "integers")]
use fixed::Integers;
use group::Group;

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
    let mut plan = AttentionPlan::new(call.inputs.into())?;
    if plan.batches * plan.heads * plan.queries * plan.value_width == 0 {
        return Ok(());
    }
    let (scale, mut causal) = (plan.scale(call.attrs), call.attrs.causal);
    let mask_strides = match call.inputs.get(3) {
        Some(Some(mask)) => mask.shape().broadcast_strides(&plan.scores),
        _ => [0; MAX_RANK],
    };
    let pointer = |i| call.f32(i).map(|p| Shared(p.cast_mut()));
    let (q, k, v, mask, out) = (pointer(0)?, pointer(1)?, pointer(2)?, pointer(3)?, Shared(call.out()?));
    #[cfg(feature = "integers")]
    let (precision, integers) = match call.attrs.precision() {
        Precision::F32 => (Precision::F32, 0),
        precision => (precision, Integers::room(&plan)),
    };
    #[cfg(not(feature = "integers"))]
    let (precision, integers) = (Precision::F32, 0);
    if precision == Precision::F32 && Few::fits(&plan) {
        return Few { plan: &plan, scale, causal, q, k, v, mask, mask_strides, out }.compute(exec);
    }
    if precision != Precision::F32 && plan.queries == 1 && mask.get().is_null() {
        // The heads that share keys are queries of these keys, of which each sees all. So keys are cut once.
        (plan.queries, plan.heads, causal) = (plan.heads / plan.kv_heads, plan.kv_heads, false);
    }
    let AttentionPlan { batches, heads, kv_heads, queries, keys, width, value_width, .. } = plan;
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
    let each = (integers + each).next_multiple_of(MAX_LANES);
    let scratch = exec.scratch.take(each * exec.pool.threads().min(tasks))?;
    let scratch = Shared(scratch.pointer());
    exec.pool.try_run(tasks, &|task, seat| {
        // The last queries first: with `causal` they see the most keys, and threads that end early find smaller tasks.
        let (head, first) = (task % all, (groups - 1 - task / all) * QUERIES);
        let kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
        // SAFETY: heads and rows lie inside the operands. Only this task writes these output rows, and no other running
        // task uses this seat's scratch.
        unsafe {
            let integers_at = scratch.get().add(each * seat);
            let packing_at = integers_at.add(integers);
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
                #[cfg(feature = "integers")]
                integers: (precision != Precision::F32).then(|| Integers::new(precision, &plan, integers_at)),
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
