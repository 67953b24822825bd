//! One block of a matrix product: packing, register tiles, the contract's chains of 256, the epilogue.
//!
//! A tile keeps one chain per element in registers for a K block; its total lives in the output between K blocks. The
//! order of everything else (which block, which thread, which tile size) can't change bits.

use super::elementwise::activate;
use crate::contract::{Activation, K_BLOCK};
use crate::hal::cpu::fpenv::flushing;
use crate::hal::cpu::isa::Isa;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch, unroll};

/// The most rows of a register tile on any instruction set.
const MAX_ROWS: usize = 12;
/// The most vectors across a register tile.
const MAX_VECTORS: usize = 2;
/// The most columns of a register tile.
const MAX_COLUMNS: usize = 32;

/// The largest block of the result that one task computes.
pub const BLOCK_ROWS: usize = 192;
/// Columns of that block.
pub const BLOCK_COLUMNS: usize = 384;

/// A matrix in memory: element (i, j) is `data[i·row + j·column]`.
#[derive(Clone, Copy)]
pub struct Matrix {
    pub data: *const f32,
    pub row: usize,
    pub column: usize,
}

impl Matrix {
    /// A row-major matrix of that many columns, or the transpose of the one stored so.
    pub fn new(data: *const f32, rows: usize, columns: usize, transposed: bool) -> Matrix {
        if transposed { Matrix { data, row: 1, column: rows } } else { Matrix { data, row: columns, column: 1 } }
    }

    /// The part that begins at (i, j).
    ///
    /// # Safety
    /// (i, j) lies inside the matrix or just behind it.
    pub unsafe fn at(self, i: usize, j: usize) -> Matrix {
        // SAFETY: as asked.
        Matrix { data: unsafe { self.data.add(i * self.row + j * self.column) }, ..self }
    }
}

/// What happens to totals before they are stored, in this order.
#[derive(Clone, Copy)]
pub struct Epilogue {
    pub alpha: f32,
    pub beta: f32,
    /// The matrix that beta scales; not read when beta is 0.
    pub c: Matrix,
    /// One value for each column, or null.
    pub bias: *const f32,
    pub activation: Activation,
}

impl Epilogue {
    /// Totals are stored as they are.
    pub const NONE: Epilogue = Epilogue {
        alpha: 1.0,
        beta: 0.0,
        c: Matrix { data: std::ptr::null(), row: 0, column: 0 },
        bias: std::ptr::null(),
        activation: Activation::None,
    };

    /// The epilogue of the part that begins at (i, j).
    ///
    /// # Safety
    /// (i, j) lies inside the result.
    pub unsafe fn at(self, i: usize, j: usize) -> Epilogue {
        // SAFETY: what is there covers the result.
        unsafe {
            let c = if self.c.data.is_null() { self.c } else { self.c.at(i, j) };
            let bias = if self.bias.is_null() { self.bias } else { self.bias.add(j) };
            Epilogue { c, bias, ..self }
        }
    }
}

/// `out[m × n] = epilogue(a[m × k]·b[k × n])`, at most [`BLOCK_ROWS`] by [`BLOCK_COLUMNS`].
#[derive(Clone, Copy)]
pub struct Block {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Matrix,
    pub b: Matrix,
    pub out: *mut f32,
    /// Elements from one row of `out` to the next.
    pub out_row: usize,
    pub epilogue: Epilogue,
}

impl Block {
    /// Floats of scratch that a block of these sizes needs.
    pub fn scratch(m: usize, n: usize, k: usize) -> usize {
        let k = k.min(K_BLOCK);
        m * k + n.next_multiple_of(MAX_COLUMNS) * k
    }

    /// Computes it.
    ///
    /// # Safety
    /// The matrices cover the sizes, `out` is this call's alone, `scratch` holds [`Block::scratch`] floats.
    pub unsafe fn compute(&self, isa: Isa, scratch: *mut f32) {
        // SAFETY: passed on.
        unsafe {
            flushing(|| dispatch(isa, Product { block: *self, scratch }));
            let Epilogue { alpha, beta, bias, activation, .. } = self.epilogue;
            if alpha != 1.0 || beta != 0.0 || !bias.is_null() {
                dispatch(isa, Finish(*self));
            }
            if activation != Activation::None {
                for i in 0..self.m {
                    activate(isa, activation, self.out.add(i * self.out_row), self.n);
                }
            }
        }
    }
}

struct Product {
    block: Block,
    scratch: *mut f32,
}

impl Kernel for Product {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Block { m, n, k, a, b, out, out_row, .. } = self.block;
        let width = S::TILE_VECTORS * S::LANES;
        let a_packed = self.scratch;
        // SAFETY: offsets follow from the sizes; the scratch holds both packed operands.
        unsafe {
            let b_packed = self.scratch.add(m * k.min(K_BLOCK));
            if k == 0 {
                for i in 0..m {
                    out.add(i * out_row).write_bytes(0, n);
                }
                return;
            }
            let mut p = 0;
            while p < k {
                let depth = K_BLOCK.min(k - p);
                pack_rows(a.at(0, p), m, depth, S::TILE_ROWS, a_packed);
                pack_columns(b.at(p, 0), n, depth, width, b_packed);
                let first = p == 0;
                let mut j = 0;
                while j < n {
                    let panel = b_packed.add(j * depth);
                    let columns = width.min(n - j);
                    let mut i = 0;
                    while i < m {
                        let rows = S::TILE_ROWS.min(m - i);
                        let tile = Tile {
                            depth,
                            a: a_packed.add(i * depth),
                            b: panel,
                            out: out.add(i * out_row + j),
                            out_row,
                            columns,
                            first,
                        };
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

/// Rows in groups of `height`, each group as `[k][rows of the group]`.
#[inline(always)]
unsafe fn pack_rows(a: Matrix, m: usize, depth: usize, height: usize, to: *mut f32) {
    // SAFETY: the matrix covers m × depth, the destination as many floats.
    unsafe {
        let mut i = 0;
        while i < m {
            let rows = height.min(m - i);
            let to = to.add(i * depth);
            if a.column == 1 {
                for r in 0..rows {
                    let from = a.data.add((i + r) * a.row);
                    for p in 0..depth {
                        to.add(p * rows + r).write(*from.add(p));
                    }
                }
            } else {
                for p in 0..depth {
                    let from = a.data.add(i * a.row + p * a.column);
                    for r in 0..rows {
                        to.add(p * rows + r).write(*from.add(r * a.row));
                    }
                }
            }
            i += rows;
        }
    }
}

/// Columns in panels of `width`, each as `[k][width]`, zero beyond the last column: the contract's +0 for −0 makes
/// that invisible, and those columns are not stored.
#[inline(always)]
unsafe fn pack_columns(b: Matrix, n: usize, depth: usize, width: usize, to: *mut f32) {
    // SAFETY: the matrix covers depth × n, the destination depth × n rounded up to the width.
    unsafe {
        let mut j = 0;
        while j < n {
            let columns = width.min(n - j);
            let to = to.add(j * depth);
            if columns < width {
                to.write_bytes(0, depth * width);
            }
            if b.column == 1 {
                for p in 0..depth {
                    let from = b.data.add(p * b.row + j);
                    // A constant length where it is one, so that the copy is a few vector moves.
                    if columns == width {
                        to.add(p * width).copy_from_nonoverlapping(from, width);
                    } else {
                        to.add(p * width).copy_from_nonoverlapping(from, columns);
                    }
                }
            } else {
                for c in 0..columns {
                    let from = b.data.add((j + c) * b.column);
                    for p in 0..depth {
                        to.add(p * width + c).write(*from.add(p * b.row));
                    }
                }
            }
            j += columns;
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
        const { assert!(S::TILE_ROWS <= MAX_ROWS && S::TILE_VECTORS <= MAX_VECTORS) };
        heights!(12 11 10 9 8 7 6 5 4 3 2 1);
    }

    #[inline(always)]
    unsafe fn compute<S: Simd, const R: usize>(&self) {
        let vectors = S::TILE_VECTORS;
        let width = vectors * S::LANES;
        // SAFETY: the packed panels hold depth × R and depth × width values; out covers R rows of `columns`.
        unsafe {
            let mut p = [[S::splat(0.0); MAX_VECTORS]; R];
            let (mut a, mut b) = (self.a, self.b);
            for _ in 0..self.depth {
                let b0 = S::load(b);
                let b1 = if vectors > 1 { S::load(b.add(S::LANES)) } else { b0 };
                unroll!(r < R => {
                    let x = S::splat(*a.add(r));
                    p[r][0] = S::fmaz(x, b0, p[r][0]);
                    if vectors > 1 {
                        p[r][1] = S::fmaz(x, b1, p[r][1]);
                    }
                });
                a = a.add(R);
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

/// The epilogue, E arithmetic, over a finished block.
struct Finish(Block);

impl Kernel for Finish {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Block { m, n, out, out_row, epilogue: e, .. } = self.0;
        for i in 0..m {
            let mut j = 0;
            while j < n {
                let count = S::LANES.min(n - j);
                // SAFETY: the block covers m × n; parts of a vector go through scratch.
                unsafe {
                    let at = out.add(i * out_row + j);
                    let mut t = S::mul(part::<S>(at, 1, count), S::splat(e.alpha));
                    if e.beta != 0.0 {
                        let c = part::<S>(e.c.at(i, j).data, e.c.column, count);
                        t = S::add(t, S::mul(S::splat(e.beta), c));
                    }
                    if !e.bias.is_null() {
                        t = S::add(t, part::<S>(e.bias.add(j), 1, count));
                    }
                    S::store_head(at, count, simd::canonical::<S>(t));
                }
                j += count;
            }
        }
    }
}

/// Up to a vector of values: neighbours, or one repeated where the step is 0.
#[inline(always)]
unsafe fn part<S: Simd>(p: *const f32, step: usize, count: usize) -> S::F {
    // SAFETY: p covers count values, or one.
    unsafe { if step == 0 { S::splat(*p) } else { S::load_head(p, count) } }
}
