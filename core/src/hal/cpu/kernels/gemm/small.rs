//! Products so small that choosing among the other ways takes longer than they do: one strip of columns after another, with the
//! chains of a few rows in registers.

use super::{Block, Matrix};
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{Kernel, Simd, unroll};

/// The most multiply-adds of a small product.
const MOST: usize = 32 * 32 * 32;
/// The largest of its three sizes. The chains of a K block are not cut.
const LONGEST: usize = 64;
const _: () = assert!(LONGEST <= K_BLOCK);

/// Returns whether a product is small. None of its sizes is 0.
#[inline]
pub fn is_small(m: usize, n: usize, k: usize) -> bool {
    m.max(n).max(k) <= LONGEST && (1..=MOST).contains(&(m * n * k))
}

/// A small block whose rows of B are contiguous. Its epilogue is not applied. Returns whether the instruction set has this way; if
/// not, nothing is written.
#[derive(Clone, Copy)]
pub(super) struct Small<'a>(pub &'a Block);

impl Kernel for Small<'_> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        // Without a fused instruction, arithmetic takes longer than any choice.
        if !S::FUSED {
            return false;
        }
        let Block { m, n, .. } = *self.0;
        let mut j = 0;
        while j < n {
            let columns = S::LANES.min(n - j);
            let mut i = 0;
            // SAFETY: rows and columns lie inside the result.
            unsafe {
                while m - i >= 8 {
                    self.rows::<S, 8>(i, j, columns);
                    i += 8;
                }
                if m - i >= 4 {
                    self.rows::<S, 4>(i, j, columns);
                    i += 4;
                }
                while i < m {
                    self.rows::<S, 1>(i, j, columns);
                    i += 1;
                }
            }
            j += columns;
        }
        true
    }
}

impl Small<'_> {
    /// Computes R rows of one strip.
    #[inline(always)]
    unsafe fn rows<S: Simd, const R: usize>(self, i: usize, j: usize, columns: usize) {
        let Block { k, a: Matrix { data, row, column }, b, out, out_row, .. } = *self.0;
        // SAFETY: the caller promises that R rows from i and the columns from j lie inside the result. No other column is accessed.
        unsafe {
            let (mut a, mut b) = (data.add(i * row), b);
            let mut p = [S::splat(0.0); R];
            for _ in 0..k {
                let x = S::load_head(b.data.add(j), columns);
                unroll!(r < R => { p[r] = S::fmaz(S::splat(*a.add(r * row)), x, p[r]); });
                a = a.wrapping_add(column);
                b.data = b.data.wrapping_add(b.row);
            }
            unroll!(r < R => { S::store_head(out.add((i + r) * out_row + j), columns, S::settle(p[r])); });
        }
    }
}
