//! Sums up to each element of a line.

use super::{Call, Exec, Shared, chunks};
use crate::contract::{CUMSUM_BLOCK, canonical};
use crate::error::Result;
use crate::interrupt::Looks;
use crate::ops::{Lines, cumsum_axis};

/// Values that are worth handing to another thread.
const GRAIN: usize = 32 * 1024;

/// Columns that are taken at a time.
const STRIP: usize = 16;

/// `cumsum` of the op table.
pub(super) fn cumsum(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let shape = &call.meta(0).shape;
    let Lines { outer, n, inner } = Lines::along(shape, cumsum_axis(call.attrs, shape)?);
    let (x, y) = (Shared(call.f32(0)?.cast_mut()), Shared(call.out()?));
    let width = STRIP.min(inner);
    let strips = inner.div_ceil(width);
    chunks(exec, outer * strips, GRAIN.div_ceil(n * width), |start, end| {
        for task in start..end {
            let (o, first) = (task / strips, task % strips * width);
            let at = o * n * inner + first;
            // SAFETY: the strip lies inside both, and no other task has it.
            unsafe {
                let (x, y) = (x.get().add(at), y.get().add(at));
                match inner {
                    1 => strip::<1>(x, y, n, 1, 1),
                    _ => strip::<STRIP>(x, y, n, inner, width.min(inner - first)),
                }
            }
        }
    })
}

/// Neighbouring lines, as many as `width`, whose elements lie `stride` apart.
///
/// # Safety
/// n rows of them lie inside x and y.
unsafe fn strip<const W: usize>(x: *const f32, y: *mut f32, n: usize, stride: usize, width: usize) {
    let (mut totals, mut before) = (Vec::new(), None);
    let (mut looks, mut start) = (Looks::NEW, 0);
    let width = width.min(W);
    while start < n && !looks.before(CUMSUM_BLOCK * width) {
        let end = n.min(start + CUMSUM_BLOCK);
        let mut chain = [0.0f32; W];
        for i in start..end {
            for (column, chain) in chain[..width].iter_mut().enumerate() {
                let at = i * stride + column;
                // SAFETY: the row is below n.
                unsafe {
                    *chain += *x.add(at);
                    let sum = before.as_ref().map_or(*chain, |before: &[f32; W]| before[column] + *chain);
                    y.add(at).write(canonical(sum));
                }
            }
        }
        if end < n {
            before = Some(next(&mut totals, 0, chain));
        }
        start = end;
    }
}

/// A chain over the totals of blocks, of at most as many as a block has elements.
#[derive(Clone, Copy)]
struct Level<const W: usize> {
    chain: [f32; W],
    count: usize,
    before: Option<[f32; W]>,
}

/// CUMSUM of the totals of a level up to this next one.
fn next<const W: usize>(levels: &mut Vec<Level<W>>, at: usize, total: [f32; W]) -> [f32; W] {
    if levels.len() == at {
        levels.push(Level { chain: [0.0; W], count: 0, before: None });
    }
    let mut level = levels[at];
    if level.count == CUMSUM_BLOCK {
        level = Level { chain: [0.0; W], count: 0, before: Some(next(levels, at + 1, level.chain)) };
    }
    level.count += 1;
    level.chain.iter_mut().zip(total).for_each(|(chain, total)| *chain += total);
    levels[at] = level;
    let before = |column: usize, chain: f32| level.before.map_or(chain, |before| before[column] + chain);
    std::array::from_fn(|column| before(column, level.chain[column]))
}
