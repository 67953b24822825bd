//! The chains of a register tile: the inner loop of every matrix product.

use super::{Simd, unroll};

/// The most vectors across a tile.
pub const MAX_TILE_VECTORS: usize = 2;

/// What the chains of a tile are computed from: rows of A and of B, each row's values next to each other.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Nothing is prefetched there.
pub struct Chains {
    /// Products in each chain; at most a K block.
    pub depth: usize,
    /// The first row of A.
    pub a: *const f32,
    /// Values from one row of A to the next.
    pub a_row: usize,
    /// Values from one product's in a row of A to the next's.
    pub a_step: usize,
    /// The first row of B.
    pub b: *const f32,
    /// Values from one row of B to the next.
    pub b_row: usize,
    /// Columns that there are. Only one vector may be more than there is, and only where [`Simd::RAGGED`] says so.
    pub columns: usize,
    /// Rows that are written next, a tile's worth, for prefetching: never read or written here.
    pub out: *const f32,
    /// Values from one of them to the next.
    pub out_row: usize,
    /// Pairs of cache lines that are needed later, one for each product of every `period`th turn, for prefetching.
    pub next: *const f32,
    /// Values from one pair to the next.
    pub next_row: usize,
    /// A power of two.
    pub period: u32,
}

impl Chains {
    /// Products of a turn of the loop for a height: branches take the tall ones' time, and code.
    pub const fn unrolled(rows: usize) -> usize {
        if rows >= 6 { 4 } else { 1 }
    }

    /// Turns, which leave a product for each row of the result.
    #[inline(always)]
    pub const fn turns(depth: usize, rows: usize) -> usize {
        depth.saturating_sub(rows) / Chains::unrolled(rows)
    }

    /// How many pairs of cache lines are asked for.
    #[inline(always)]
    pub const fn asked(depth: usize, rows: usize, period: usize) -> usize {
        Chains::turns(depth, rows) / period * Chains::unrolled(rows)
    }
}

/// Carries R rows and V vectors of chains over `depth` products.
///
/// # Safety
/// Called from a kernel; rows cover `depth` and whole vectors, or `columns` where those are fewer.
#[inline(always)]
pub unsafe fn chains<S: Simd, const R: usize, const V: usize>(
    t: &Chains,
    mut p: [[S::F; MAX_TILE_VECTORS]; R],
) -> [[S::F; MAX_TILE_VECTORS]; R] {
    // SAFETY: as asked.
    unsafe {
        let (mut a, mut b) = (t.a, t.b);
        for _ in 0..t.depth {
            let b0 = S::load(b);
            let b1 = if V > 1 { S::load(b.add(S::LANES)) } else { b0 };
            unroll!(r < R => {
                let x = S::splat(*a.add(r * t.a_row));
                p[r][0] = S::fmaz(x, b0, p[r][0]);
                if V > 1 {
                    p[r][1] = S::fmaz(x, b1, p[r][1]);
                }
            });
            a = a.add(t.a_step);
            b = b.add(t.b_row);
        }
        p
    }
}
