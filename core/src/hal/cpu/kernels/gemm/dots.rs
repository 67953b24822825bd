//! Products whose second operand is contiguous along the chains: a matrix times a vector, and a few rows times a
//! transposed matrix, as in `W[out, in]·x`. Squares of the matrix are transposed when they are read. A vector then
//! holds as many chains as it has lanes, and nothing is packed.

use super::{Block, Matrix};
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{Kernel, Simd};
use crate::interrupt::Looks;

/// The most rows of the other operand. With more rows, packing is faster.
const MAX_OTHERS: usize = 8;
/// The most lanes of a vector.
const MAX_LANES: usize = 16;
const MAX_SUMS: usize = MAX_OTHERS * MAX_LANES;
/// The distance of prefetches, in values.
const AHEAD: usize = 128;

/// Returns whether a product is computed this way.
pub(super) fn fits(m: usize, n: usize, a: Matrix, b: Matrix) -> bool {
    (n == 1 && m > 1 && a.column == 1) || (m <= MAX_OTHERS && n > 1 && b.row == 1 && b.column != 1)
}

/// A block for which [`fits`] is true.
#[derive(Clone, Copy)]
pub(super) struct Dots<'a>(pub &'a Block);

impl Kernel for Dots<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Block { m, n, k, a, b, out, out_row, .. } = *self.0;
        // The chains go along rows of `matrix`. Each row is multiplied with every row of `others`.
        let sums = if n == 1 {
            // The result has one column, and its rows are `out_row` apart.
            Sums {
                rows: m,
                row: a.row,
                matrix: a.data,
                others: 1,
                other: 0,
                other_step: b.row,
                x: b.data,
                k,
                out,
                step: out_row,
                out_row: 0,
            }
        } else {
            Sums {
                rows: n,
                row: b.column,
                matrix: b.data,
                others: m,
                other: a.row,
                other_step: a.column,
                x: a.data,
                k,
                out,
                step: 1,
                out_row,
            }
        };
        let mut looks = Looks::NEW;
        let mut i = 0;
        while i < sums.rows {
            // SAFETY: the block's operands cover its sizes, and i is below the number of rows.
            unsafe { sums.compute::<S>(i, &mut looks) };
            i += S::LANES;
        }
    }
}

/// Computes `out[o·out_row + i·step]`, the inner product of row i of the matrix and row o of the others.
struct Sums {
    matrix: *const f32,
    rows: usize,
    row: usize,
    x: *const f32,
    others: usize,
    other: usize,
    other_step: usize,
    k: usize,
    out: *mut f32,
    step: usize,
    out_row: usize,
}

impl Sums {
    /// Computes a vector of rows from i on, with every row of the others. Two vectors at a time would read more rows
    /// than the processor can prefetch.
    #[inline(always)]
    unsafe fn compute<S: Simd>(&self, i: usize, looks: &mut Looks) {
        let mut square = [0.0f32; MAX_LANES * MAX_LANES];
        let (mut chains, mut totals) = ([0.0f32; MAX_SUMS], [0.0f32; MAX_SUMS]);
        let rows = (self.rows - i).min(S::LANES);
        // SAFETY: only rows and products inside the operands are read. The square has room for all vectors, and the
        // sums for all others.
        unsafe {
            let one = S::splat(1.0);
            let mut p = 0;
            while p < self.k && !looks.before(S::LANES * self.others * K_BLOCK) {
                let depth = K_BLOCK.min(self.k - p);
                chains.fill(0.0);
                let mut q = 0;
                while q < depth {
                    let count = S::LANES.min(depth - q);
                    let at = self.matrix.add(i * self.row + p + q);
                    if count == S::LANES && rows == S::LANES {
                        for r in 0..rows {
                            S::prefetch(at.wrapping_add(r * self.row + AHEAD));
                        }
                        S::transpose_square(at.cast(), self.row, square.as_mut_ptr().cast(), S::LANES);
                    } else {
                        for r in 0..rows {
                            for z in 0..count {
                                square[z * S::LANES + r] = *at.add(r * self.row + z);
                            }
                        }
                    }
                    for o in 0..self.others {
                        let x = self.x.add(o * self.other + (p + q) * self.other_step);
                        let chain = chains.as_mut_ptr().add(o * S::LANES);
                        let mut c = S::load(chain);
                        for z in 0..count {
                            let column = S::load(square.as_ptr().add(z * S::LANES));
                            c = S::fmaz(column, S::splat(*x.add(z * self.other_step)), c);
                        }
                        S::store(chain, c);
                    }
                    q += count;
                }
                let mut at = 0;
                while at < self.others * S::LANES {
                    let total = totals.as_mut_ptr().add(at);
                    S::store(total, S::settle(S::fmaz(S::load(chains.as_ptr().add(at)), one, S::load(total))));
                    at += S::LANES;
                }
                p += depth;
            }
            for o in 0..self.others {
                let to = self.out.add(o * self.out_row + i * self.step);
                for r in 0..rows {
                    to.add(r * self.step).write(totals[o * S::LANES + r]);
                }
            }
        }
    }
}
