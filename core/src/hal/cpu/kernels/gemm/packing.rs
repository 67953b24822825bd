//! Decides which operands of a product are packed, and packs them: copies in the order in which tiles read them.
//!
//! Packing costs reads and writes. It pays if the operand is read again often enough, or if its rows would share cache
//! sets or pages.

use super::Matrix;
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{Kernel, Simd, unroll};
use crate::isa::Isa;

/// The most rows of a register tile on any instruction set.
pub(super) const MAX_ROWS: usize = 12;
/// The most columns of a register tile.
pub(super) const MAX_COLUMNS: usize = 32;

/// The most rows past which B is streamed.
pub(super) const STREAM_ROWS: usize = 48;
/// The number of columns of B that are streamed at a time. The chains then stay in the first-level cache.
pub(super) const STRIP: usize = 512;

/// The floats from one packed row of A to the next: a K block plus a cache line, so that rows don't share cache sets.
pub(super) const ROW: usize = K_BLOCK + 16;

/// Which operands are packed, and for which cache.
#[derive(Clone, Copy)]
pub struct Packing {
    pub a: bool,
    pub b: bool,
    /// The bytes of the second-level cache.
    pub cache: usize,
}

impl Packing {
    /// Chooses the packing that is fastest for blocks of m rows.
    pub fn choose(cache: usize, m: usize, a: Matrix, b: Matrix) -> Packing {
        // Rows this far apart share the sets of the first-level cache, and each has a page of its own.
        let far = a.row.is_multiple_of(2048) && m >= 128;
        Packing { a: far || (a.column != 1 && m > 64), b: b.column != 1 || m >= 96, cache }
    }

    /// Returns the floats of scratch for a block of at most these sizes.
    pub fn scratch(self, isa: Isa, m: usize, n: usize, k: usize) -> usize {
        let totals = if k > K_BLOCK { m * n.next_multiple_of(MAX_COLUMNS) } else { 0 };
        self.panels(n, isa == Isa::Avx512) + self.rows(m) + totals + self.waiting(n, k)
    }

    /// Returns whether B is at least three quarters of the cache, so that the cache doesn't keep it.
    pub(super) fn comes_from_afar(self, n: usize, k: usize) -> bool {
        k * n >= self.cache / 16 * 3
    }

    /// Returns whether B is streamed past a group of rows.
    pub(super) fn streams(self, rows: usize, n: usize, k: usize) -> bool {
        rows <= STREAM_ROWS && !self.b && self.comes_from_afar(n, k)
    }

    /// Returns the floats for chains that wait while B is streamed. It ignores the rows, because a part of a block may
    /// be streamed alone.
    pub(super) fn waiting(self, n: usize, k: usize) -> usize {
        if !self.b && self.comes_from_afar(n, k) { STREAM_ROWS * STRIP } else { 0 }
    }

    /// Returns the number of rows that are computed at a time. Packed, they take a fifth of the cache.
    pub(super) fn group(self) -> usize {
        (self.cache / (5 * 4 * ROW)).clamp(4 * MAX_ROWS, 64 * MAX_ROWS) / MAX_ROWS * MAX_ROWS
    }

    /// Returns the floats of a group of packed rows.
    pub(super) fn rows(self, m: usize) -> usize {
        if self.a { m.min(self.group() + MAX_ROWS) * ROW } else { 0 }
    }

    /// Returns the floats of packed panels: all panels, or one that has too few columns and must therefore be packed.
    pub(super) fn panels(self, n: usize, ragged: bool) -> usize {
        match (self.b, ragged) {
            (true, _) => K_BLOCK * n.next_multiple_of(MAX_COLUMNS),
            (false, true) => 0,
            (false, false) => K_BLOCK * MAX_COLUMNS,
        }
    }
}

/// Packs rows of A at a fixed stride.
#[inline(always)]
pub(super) unsafe fn pack_rows<S: Simd>(a: Matrix, m: usize, depth: usize, to: *mut f32) {
    // SAFETY: the matrix covers m × depth values, and the destination has m rows.
    unsafe {
        if a.column == 1 {
            for i in 0..m {
                let (from, to) = (a.data.add(i * a.row), to.add(i * ROW));
                // Rows are too short for the hardware prefetcher, so a later row is prefetched here.
                let ahead = from.wrapping_add(4 * a.row);
                let mut q = 0;
                while q < depth {
                    let count = S::LANES.min(depth - q);
                    S::prefetch(ahead.wrapping_add(q));
                    S::store_head(to.add(q), count, S::load_head(from.add(q), count));
                    q += S::LANES;
                }
            }
            return;
        }
        // A is transposed.
        let mut p = 0;
        while p < depth {
            let columns = S::LANES.min(depth - p);
            transpose::<S>(a.data.add(p * a.column), a.column, columns, a.row, m, to.add(p), ROW);
            p += S::LANES;
        }
    }
}

/// Packs a K block of B as `[panel][k][width]`. Columns beyond the last are zero, and their results are not stored.
#[inline(always)]
pub(super) unsafe fn pack_panels<S: Simd>(b: Matrix, n: usize, depth: usize, to: *mut f32) {
    let width = S::TILE_VECTORS * S::LANES;
    // SAFETY: the matrix covers depth × n values, and the destination the same, rounded up to whole panels.
    unsafe {
        let whole = n / width * width;
        if b.column == 1 {
            // B is read along its rows, as they lie in memory.
            for p in 0..depth {
                let (from, to) = (b.data.add(p * b.row), to.add(p * width));
                let mut j = 0;
                while j < whole {
                    unroll!(v < S::TILE_VECTORS => {
                        S::store(to.add(j * depth + v * S::LANES), S::load(from.add(j + v * S::LANES)));
                    });
                    j += width;
                }
                if j < n {
                    to.add(j * depth).write_bytes(0, width);
                    to.add(j * depth).copy_from_nonoverlapping(from.add(j), n - j);
                }
            }
            return;
        }
        if whole < n {
            to.add(whole * depth).write_bytes(0, depth * width);
        }
        let mut j = 0;
        while j < n {
            let to = to.add(j / width * width * depth + j % width);
            transpose::<S>(b.data.add(j * b.column), b.column, S::LANES.min(n - j), b.row, depth, to, width);
            j += S::LANES;
        }
    }
}

/// Transposes a matrix: `to[c·to_row + r] = from[r·row + c]`.
pub struct Transpose {
    pub from: *const f32,
    pub row: usize,
    pub rows: usize,
    pub columns: usize,
    pub to: *mut f32,
    pub to_row: usize,
}

impl Kernel for Transpose {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Transpose { from, row, rows, columns, to, to_row } = self;
        let mut r = 0;
        while r < rows {
            // SAFETY: whoever makes a `Transpose` promises that both cover the sizes.
            unsafe { transpose::<S>(from.add(r * row), row, S::LANES.min(rows - r), 1, columns, to.add(r), to_row) };
            r += S::LANES;
        }
    }
}

/// Computes `to[c·to_row + r] = from[r·row + c·column]` for at most a vector of rows, and any number of columns.
#[inline(always)]
unsafe fn transpose<S: Simd>(
    from: *const f32,
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
    to: *mut f32,
    to_row: usize,
) {
    // SAFETY: the caller promises that both cover the sizes.
    unsafe {
        let mut c = 0;
        while column == 1 && rows == S::LANES && columns - c >= S::LANES {
            S::transpose_square(from.add(c).cast(), row, to.add(c * to_row).cast(), to_row);
            c += S::LANES;
        }
        while c < columns {
            for r in 0..rows {
                to.add(c * to_row + r).write(*from.add(r * row + c * column));
            }
            c += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads take parts of a product, with scratch measured for the largest part.
    #[test]
    fn a_part_needs_no_more_scratch_than_the_whole() {
        for cache in [16 << 10, 256 << 10, 1 << 20, 2 << 20] {
            for (a, b) in [(false, false), (true, false), (false, true), (true, true)] {
                let packing = Packing { a, b, cache };
                for isa in [Isa::Sse2, Isa::Avx2, Isa::Avx512] {
                    for k in [64, 256, 300, 4096] {
                        for (m, n) in [(60, 96), (95, 512), (108, 192), (500, 1024)] {
                            let whole = packing.scratch(isa, m, n, k);
                            for (rows, columns) in (1..=m).flat_map(|rows| [(rows, n), (rows, n / 2), (rows, 1)]) {
                                let part = packing.scratch(isa, rows, columns, k);
                                assert!(part <= whole, "{rows}x{columns} of {m}x{n}, k {k}, {cache} bytes");
                            }
                        }
                    }
                }
            }
        }
    }
}
