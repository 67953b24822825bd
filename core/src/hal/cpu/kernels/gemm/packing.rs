//! Which operands of a product are packed, and how: copies in the order in which tiles read them.
//!
//! Packing costs reads and writes; it pays where the operand is read again often enough, and where its rows would share
//! cache sets or pages.

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
/// Columns of B that are streamed at a time, so that the chains stay in the first-level cache.
pub(super) const STRIP: usize = 512;

/// Floats from one packed row of A to the next: a K block and a cache line, so that rows don't share cache sets.
pub(super) const ROW: usize = K_BLOCK + 16;

/// Which operands are packed, and for what a cache.
#[derive(Clone, Copy)]
pub struct Packing {
    pub a: bool,
    pub b: bool,
    /// Bytes of the second-level cache.
    pub cache: usize,
}

impl Packing {
    /// What pays for blocks of m rows.
    pub fn choose(cache: usize, m: usize, a: Matrix, b: Matrix) -> Packing {
        // Rows this far apart share the sets of the first-level cache and a page each.
        let far = a.row.is_multiple_of(2048) && m >= 128;
        Packing { a: far || (a.column != 1 && m > 64), b: b.column != 1 || m >= 96, cache }
    }

    /// Floats of scratch for a block of at most these sizes.
    pub fn scratch(self, isa: Isa, m: usize, n: usize, k: usize) -> usize {
        let totals = if k > K_BLOCK { m * n.next_multiple_of(MAX_COLUMNS) } else { 0 };
        self.panels(n, isa == Isa::Avx512) + self.rows(m) + totals + self.waiting(n, k)
    }

    /// Whether B is so large that the cache does not keep it: three quarters of it.
    pub(super) fn comes_from_afar(self, n: usize, k: usize) -> bool {
        k * n >= self.cache / 16 * 3
    }

    /// Whether B is streamed past a group of rows.
    pub(super) fn streams(self, rows: usize, n: usize, k: usize) -> bool {
        rows <= STREAM_ROWS && !self.b && self.comes_from_afar(n, k)
    }

    /// Floats of chains that wait while B is streamed: whatever the rows, as a part of a block may be streamed alone.
    pub(super) fn waiting(self, n: usize, k: usize) -> usize {
        if !self.b && self.comes_from_afar(n, k) { STREAM_ROWS * STRIP } else { 0 }
    }

    /// Rows that are computed at a time: packed they take a fifth of the cache.
    pub(super) fn group(self) -> usize {
        (self.cache / (5 * 4 * ROW)).clamp(4 * MAX_ROWS, 64 * MAX_ROWS) / MAX_ROWS * MAX_ROWS
    }

    /// Floats of packed rows: a group of them.
    pub(super) fn rows(self, m: usize) -> usize {
        if self.a { m.min(self.group() + MAX_ROWS) * ROW } else { 0 }
    }

    /// Floats of packed panels: all of them, or one that is packed for its missing columns where it has to be.
    pub(super) fn panels(self, n: usize, ragged: bool) -> usize {
        match (self.b, ragged) {
            (true, _) => K_BLOCK * n.next_multiple_of(MAX_COLUMNS),
            (false, true) => 0,
            (false, false) => K_BLOCK * MAX_COLUMNS,
        }
    }
}

/// Rows of A at a fixed stride.
#[inline(always)]
pub(super) unsafe fn pack_rows<S: Simd>(a: Matrix, m: usize, depth: usize, to: *mut f32) {
    // SAFETY: the matrix covers m × depth, the destination m rows.
    unsafe {
        if a.column == 1 {
            for i in 0..m {
                let (from, to) = (a.data.add(i * a.row), to.add(i * ROW));
                // Rows are too short for the processor to see the next one coming.
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
        // A transposed operand.
        let mut p = 0;
        while p < depth {
            let columns = S::LANES.min(depth - p);
            transpose::<S>(a.data.add(p * a.column), a.column, columns, a.row, m, to.add(p), ROW);
            p += S::LANES;
        }
    }
}

/// Panels of a K block of B as `[panel][k][width]`, zero beyond the last column: those columns are not stored.
#[inline(always)]
pub(super) unsafe fn pack_panels<S: Simd>(b: Matrix, n: usize, depth: usize, to: *mut f32) {
    let width = S::TILE_VECTORS * S::LANES;
    // SAFETY: the matrix covers depth × n, the destination depth × n rounded up to whole panels.
    unsafe {
        let whole = n / width * width;
        if b.column == 1 {
            // Along its rows, as they lie in memory.
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

/// The transpose of a matrix: `to[c·to_row + r] = from[r·row + c]`.
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
            // SAFETY: the caller's.
            unsafe { transpose::<S>(from.add(r * row), row, S::LANES.min(rows - r), 1, columns, to.add(r), to_row) };
            r += S::LANES;
        }
    }
}

/// `to[c·to_row + r] = from[r·row + c·column]` for a vector of rows at most, and any number of columns.
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
    // SAFETY: both cover what the caller says.
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

    /// Threads take parts of a product with the scratch that was measured for the largest.
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
