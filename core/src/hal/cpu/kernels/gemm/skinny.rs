//! Products with one or two rows. B is streamed past them row by row, so it is read once, in the order in which it lies
//! in memory. Nothing is packed.

use super::Block;
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{self, Kernel, Simd, unroll};
use crate::interrupt::Looks;
use std::mem::MaybeUninit;

/// The most rows that are computed this way.
pub const MAX_ROWS: usize = 2;

/// The number of chains kept at a time, on the stack. They form a strip of columns, which is wider for fewer rows.
const CHAINS: usize = 4096;

/// The number of rows of B that pass at a time: from memory, and from a cache. Many rows hide the memory's latency; a few don't share
/// the sets of the first-level cache if their distance is a power of two.
const FROM_AFAR: usize = 8;
const FROM_CACHE: usize = 4;

/// The number of second-level caches that B must fill so that it is not in the third.
const AFAR: usize = 8;

/// A block of at most [`MAX_ROWS`] rows, with a B whose columns are contiguous.
#[derive(Clone, Copy)]
pub(super) struct Skinny<'a>(pub &'a Block);

impl Kernel for Skinny<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let block = *self.0;
        let strip = CHAINS / block.m / 16 * 16;
        // The first pass of a K block writes every chain before anything reads it.
        let mut chains = MaybeUninit::<[f32; CHAINS]>::uninit();
        let mut looks = Looks::NEW;
        let mut j = 0;
        while j < block.n {
            let columns = strip.min(block.n - j);
            let mut p = 0;
            while p < block.k && !looks.before(block.m * columns * K_BLOCK) {
                let depth = K_BLOCK.min(block.k - p);
                // SAFETY: the strip and the K block lie inside the operands, and `chains` has room for m rows of the
                // strip.
                unsafe { self.strip::<S>(j, columns, p, depth, chains.as_mut_ptr().cast()) };
                p += depth;
            }
            j += columns;
        }
    }
}

impl Skinny<'_> {
    /// Computes one K block over a strip of columns.
    #[inline(always)]
    unsafe fn strip<S: Simd>(&self, j: usize, columns: usize, p: usize, depth: usize, chains: *mut f32) {
        let Block { m, a, b, out, out_row, .. } = *self.0;
        let row = columns.next_multiple_of(S::LANES);
        // Without a fused instruction, arithmetic takes longer than memory.
        let afar = !S::FUSED || 4 * self.0.k * b.row >= AFAR * self.0.packing.cache;
        let most = if afar { FROM_AFAR } else { FROM_CACHE };
        // SAFETY: the caller promises that the strip and the K block lie inside the operands. In them, a row's last
        // vector is accessed only up to its last column. Rows of chains are whole vectors.
        unsafe {
            let mut q = 0;
            while q < depth {
                let count = if depth - q >= most { most } else { 1 };
                for i in 0..m {
                    let chain = chains.add(i * row);
                    let a = a.at(i, p + q);
                    let b = b.at(p + q, j);
                    let x = |r: usize| S::splat(*a.data.wrapping_add(r * a.column));
                    match count {
                        FROM_AFAR => {
                            let mut rows = [S::splat(0.0); FROM_AFAR];
                            unroll!(r < FROM_AFAR => { rows[r] = x(r); });
                            // Each row of chains prefetches its share of the rows that pass next.
                            let share = FROM_AFAR.div_ceil(m);
                            let ahead = b.data.wrapping_add((FROM_AFAR + i * share) * b.row);
                            pass::<S, FROM_AFAR>(rows, b.data, b.row, columns, chain, q == 0, ahead, share);
                        }
                        FROM_CACHE if S::FUSED => {
                            let rows = [x(0), x(1), x(2), x(3)];
                            pass::<S, FROM_CACHE>(rows, b.data, b.row, columns, chain, q == 0, b.data, 0);
                        }
                        _ => pass::<S, 1>([x(0)], b.data, b.row, columns, chain, q == 0, b.data, 0),
                    }
                }
                q += count;
            }
            let (zero, one) = (S::splat(0.0), S::splat(1.0));
            for i in 0..m {
                let mut c = 0;
                while c < columns {
                    let (at, count) = (out.add(i * out_row + j + c), S::LANES.min(columns - c));
                    let old = if p == 0 { zero } else { S::load_head(at, count) };
                    let t = S::add(S::fmaz(S::load(chains.add(i * row + c)), one, old), zero);
                    S::store_head(at, count, simd::canonical::<S>(t));
                    c += count;
                }
            }
        }
    }
}

/// Carries a row of chains over D rows of B.
#[inline(always)]
unsafe fn pass<S: Simd, const D: usize>(
    x: [S::F; D],
    b: *const f32,
    b_row: usize,
    columns: usize,
    chain: *mut f32,
    first: bool,
    ahead: *const f32,
    share: usize,
) {
    // SAFETY: D rows of `columns` values lie b_row apart, and the row of chains is whole vectors.
    unsafe {
        let mut c = 0;
        while c < columns {
            let whole = columns - c >= S::LANES;
            for r in 0..share {
                S::prefetch_to_second(ahead.wrapping_add(r * b_row + c));
            }
            let mut t = if first { S::splat(0.0) } else { S::load(chain.add(c)) };
            if whole {
                unroll!(r < D => { t = S::fmaz(x[r], S::load(b.add(r * b_row + c)), t); });
            } else {
                unroll!(r < D => { t = S::fmaz(x[r], S::load_head(b.add(r * b_row + c), columns - c), t); });
            }
            S::store(chain.add(c), t);
            c += S::LANES;
        }
    }
}
