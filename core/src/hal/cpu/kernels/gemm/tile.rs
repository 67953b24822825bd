//! Register tiles over packed operands.
//!
//! A panel of B, as wide as a tile, is packed once for a K block and multiplied with every row of the block while it is
//! in the first-level cache. Rows of A are copied to a fixed stride, so that a tile addresses them by constants.

use super::{Block, Matrix};
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{self, Kernel, Simd, unroll};

/// The most rows of a register tile on any instruction set.
const MAX_ROWS: usize = 12;
/// The most vectors across a register tile.
const MAX_VECTORS: usize = 2;
/// The most columns of a register tile.
const MAX_COLUMNS: usize = 32;

/// Floats from one packed row of A to the next: a K block and a cache line, so that rows don't share cache sets.
const ROW: usize = K_BLOCK + 16;

/// Floats of scratch for a block of these sizes: all rows of A and one panel of B, for one K block.
pub(super) fn scratch(m: usize, k: usize) -> usize {
    m * ROW + MAX_COLUMNS * k.min(K_BLOCK)
}

/// A block by register tiles.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    pub block: Block,
    pub scratch: *mut f32,
}

impl Kernel for Tiles {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        const { assert!(S::TILE_ROWS <= MAX_ROWS && S::TILE_VECTORS <= MAX_VECTORS) };
        const { assert!(S::TILE_VECTORS * S::LANES <= MAX_COLUMNS) };
        let Block { m, n, k, a, b, out, out_row, .. } = self.block;
        let width = S::TILE_VECTORS * S::LANES;
        // SAFETY: offsets follow from the sizes; the scratch holds both packed operands.
        unsafe {
            let rows_packed = self.scratch;
            let panel = self.scratch.add(m * ROW);
            let mut p = 0;
            while p < k {
                let depth = K_BLOCK.min(k - p);
                pack_rows(a.at(0, p), m, depth, rows_packed);
                let mut j = 0;
                while j < n {
                    let columns = width.min(n - j);
                    pack_panel::<S>(b.at(p, j), columns, depth, panel);
                    let mut i = 0;
                    while i < m {
                        // Rows are spread evenly over the tiles that are left, so that the last is not a sliver.
                        let rows = (m - i).div_ceil((m - i).div_ceil(S::TILE_ROWS));
                        let out = out.add(i * out_row + j);
                        let tile =
                            Tile { depth, a: rows_packed.add(i * ROW), b: panel, out, out_row, columns, first: p == 0 };
                        tile.rows::<S>(rows);
                        i += rows;
                    }
                    j += columns;
                }
                p += depth;
            }
        }
    }
}

/// Rows of A at a fixed stride.
#[inline(always)]
unsafe fn pack_rows(a: Matrix, m: usize, depth: usize, to: *mut f32) {
    // SAFETY: the matrix covers m × depth, the destination m rows.
    unsafe {
        if a.column == 1 {
            for i in 0..m {
                to.add(i * ROW).copy_from_nonoverlapping(a.data.add(i * a.row), depth);
            }
            return;
        }
        // A transposed operand, a few columns at a time: reads follow its rows, writes stay in a few cache lines.
        let mut start = 0;
        while start < m {
            let end = m.min(start + 16);
            for p in 0..depth {
                let from = a.data.add(p * a.column);
                for i in start..end {
                    to.add(i * ROW + p).write(*from.add(i * a.row));
                }
            }
            start = end;
        }
    }
}

/// A panel of B as `[k][width]`, zero beyond the last column: those columns are not stored.
#[inline(always)]
unsafe fn pack_panel<S: Simd>(b: Matrix, columns: usize, depth: usize, to: *mut f32) {
    let width = S::TILE_VECTORS * S::LANES;
    // SAFETY: the matrix covers depth × columns, the destination depth × width.
    unsafe {
        if columns == width && b.column == 1 {
            for p in 0..depth {
                let (from, to) = (b.data.add(p * b.row), to.add(p * width));
                unroll!(v < S::TILE_VECTORS => {
                    S::store(to.add(v * S::LANES), S::load(from.add(v * S::LANES)));
                });
            }
            return;
        }
        if columns < width {
            to.write_bytes(0, depth * width);
        }
        if b.column == 1 {
            for p in 0..depth {
                to.add(p * width).copy_from_nonoverlapping(b.data.add(p * b.row), columns);
            }
            return;
        }
        for c in 0..columns {
            let from = b.data.add(c * b.column);
            for p in 0..depth {
                to.add(p * width + c).write(*from.add(p * b.row));
            }
        }
    }
}

/// A register tile of one K block.
struct Tile {
    depth: usize,
    a: *const f32,
    b: *const f32,
    out: *mut f32,
    out_row: usize,
    columns: usize,
    first: bool,
}

impl Tile {
    /// One function for each height, so that the accumulators are registers.
    #[inline(always)]
    unsafe fn rows<S: Simd>(&self, rows: usize) {
        macro_rules! heights {
            ($($rows:literal)*) => {
                match rows {
                    // SAFETY: passed on. Heights beyond the instruction set's are never asked for and not compiled.
                    $($rows if $rows <= S::TILE_ROWS => unsafe { self.compute::<S, $rows>() },)*
                    _ => unreachable!("no tile of {rows} rows"),
                }
            };
        }
        heights!(12 11 10 9 8 7 6 5 4 3 2 1);
    }

    #[inline(always)]
    unsafe fn compute<S: Simd, const R: usize>(&self) {
        let vectors = S::TILE_VECTORS;
        let width = vectors * S::LANES;
        // SAFETY: R packed rows of A and the panel hold depth values each, and depth × width; out covers R rows of `columns`.
        unsafe {
            // Vectors of zeros. A repeat expression is a loop, after which aarch64's compiler keeps p in memory.
            let mut p: [[S::F; MAX_VECTORS]; R] = std::mem::zeroed();
            let (mut a, mut b) = (self.a, self.b);
            for _ in 0..self.depth {
                let b0 = S::load(b);
                let b1 = if vectors > 1 { S::load(b.add(S::LANES)) } else { b0 };
                unroll!(r < R => {
                    let x = S::splat(*a.add(r * ROW));
                    p[r][0] = S::fmaz(x, b0, p[r][0]);
                    if vectors > 1 {
                        p[r][1] = S::fmaz(x, b1, p[r][1]);
                    }
                });
                a = a.add(1);
                b = b.add(width);
            }
            // Totals so far, or zeros. −0 becomes +0 and NaN canonical after every block: the contract makes the first
            // invisible, and the second is only early.
            let one = S::splat(1.0);
            let zero = S::splat(0.0);
            unroll!(r < R => {
                let out = self.out.add(r * self.out_row);
                unroll!(v < vectors => {
                    if v < MAX_VECTORS {
                        let at = out.add(v * S::LANES);
                        let count = self.columns.saturating_sub(v * S::LANES).min(S::LANES);
                        let old = if self.first { zero } else { S::load_head(at, count) };
                        let t = S::add(S::fmaz(p[r][v], one, old), zero);
                        S::store_head(at, count, simd::canonical::<S>(t));
                    }
                });
            });
        }
    }
}
