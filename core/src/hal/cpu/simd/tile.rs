//! The chains of a register tile: the inner loop of every matrix product.

use super::{Simd, unroll};

/// The most vectors across a tile.
pub const MAX_TILE_VECTORS: usize = 2;

/// The operands of a tile's chains: rows of A and of B. The values of a row of B are contiguous.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Other processors don't prefetch.
pub struct Chains {
    /// The products in each chain, at most a K block.
    pub depth: usize,
    /// The first row of A.
    pub a: *const f32,
    /// Values between the rows of A.
    pub a_row: usize,
    /// Values between consecutive products in a row of A.
    pub a_step: usize,
    /// The first row of B.
    pub b: *const f32,
    /// Values between the rows of B.
    pub b_row: usize,
    /// The existing columns. Only a tile of one vector may have fewer than the vector, and only with [`Simd::RAGGED`].
    pub columns: usize,
    /// The rows of the result that are written next, one tile. They are only prefetched here.
    pub out: *const f32,
    /// Values between these rows.
    pub out_row: usize,
    /// Pairs of cache lines to prefetch for later use: one for each product of every `period`th turn.
    pub next: *const f32,
    /// Values between these pairs.
    pub next_row: usize,
    /// A power of two: the turns between prefetches.
    pub period: u32,
}

impl Chains {
    /// Returns the products per turn of the loop. Unrolling pays for tall tiles only: branches cost time, unrolling
    /// costs code.
    pub const fn unrolled(rows: usize) -> usize {
        if rows >= 6 { 4 } else { 1 }
    }

    /// Returns the number of turns. They leave at least one product for each row of the result.
    #[inline(always)]
    pub const fn turns(depth: usize, rows: usize) -> usize {
        depth.saturating_sub(rows) / Chains::unrolled(rows)
    }

    /// Returns how many pairs of cache lines are prefetched.
    #[inline(always)]
    pub const fn asked(depth: usize, rows: usize, period: usize) -> usize {
        Chains::turns(depth, rows) / period * Chains::unrolled(rows)
    }
}

/// Computes R rows and V vectors of chains over `depth` products.
///
/// # Safety
/// Only kernels may call it. The rows must cover `depth` products, and whole vectors or `columns` if there are fewer.
#[inline(always)]
pub unsafe fn chains<S: Simd, const R: usize, const V: usize>(
    t: &Chains,
    mut p: [[S::F; MAX_TILE_VECTORS]; R],
) -> [[S::F; MAX_TILE_VECTORS]; R] {
    // SAFETY: the caller vouches for the rows.
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
