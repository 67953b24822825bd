//! One block of a matrix product: the contract's chains of 256 in registers, totals in the output, the epilogue.
//!
//! Three ways lead there, chosen by shape: register tiles over operands where they lie, packed here or packed before
//! (`tile.rs`, `packing.rs`, `panels.rs`); for one or two rows B streamed past them (`skinny.rs`); and for operands that lie
//! along the chains squares transposed on the way past (`dots.rs`). The order of everything but the chain itself (which
//! block, which thread, which way) can't change bits.

mod dots;
mod finish;
mod packing;
mod panels;
mod skinny;
mod tile;

use super::elementwise::activate;
use crate::contract::Activation;
use crate::hal::cpu::simd::{dispatch, dispatch_m};
use crate::isa::Isa;
use dots::Dots;
use finish::Finish;
pub use packing::{Packing, Transpose};
pub use panels::{Panels, Width};
use skinny::Skinny;
use tile::Tiles;

/// The largest block of the result that one task computes: it bounds the scratch.
pub const BLOCK_ROWS: usize = 2048;
/// Columns of that block.
pub const BLOCK_COLUMNS: usize = 1024;

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

    /// Whether totals are stored as they are.
    fn is_none(&self) -> bool {
        self.alpha == 1.0 && self.beta == 0.0 && self.bias.is_null() && self.activation == Activation::None
    }

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
    pub packing: Packing,
    pub epilogue: Epilogue,
}

impl Block {
    /// Computes it.
    ///
    /// # Safety
    /// The matrices cover the sizes, `out` is this call's alone, `scratch` holds [`Packing::scratch`] floats.
    pub unsafe fn compute(&self, isa: Isa, scratch: *mut f32) {
        // SAFETY: passed on.
        unsafe { self.compute_with(isa, scratch, None) }
    }

    /// Computes it, with B packed before if `panels` are given.
    ///
    /// # Safety
    /// As [`Block::compute`]'s; the panels are this instruction set's and cover k and n. With them `b` is not read, and
    /// `packing.b` is not set.
    pub unsafe fn compute_with(&self, isa: Isa, scratch: *mut f32, panels: Option<Panels>) {
        // Where B need not be packed, some rows are finished before the next: what they are made from is in the cache.
        let most = if panels.is_some() { self.packing.group() } else { usize::MAX };
        let (mut part, mut left) = (*self, self.m);
        loop {
            part.m = most.min(left);
            left -= part.m;
            // SAFETY: the rows are the block's, as long as some are left; the rest is passed on.
            unsafe {
                part.rows(isa, scratch, panels);
                if left == 0 {
                    return;
                }
                part.a = part.a.at(part.m, 0);
                part.out = part.out.add(part.m * part.out_row);
                part.epilogue = part.epilogue.at(part.m, 0);
            }
        }
    }

    /// Computes it as one.
    ///
    /// # Safety
    /// As [`Block::compute_with`]'s.
    unsafe fn rows(&self, isa: Isa, scratch: *mut f32, panels: Option<Panels>) {
        // SAFETY: passed on.
        unsafe {
            if self.k == 0 {
                (0..self.m).for_each(|i| self.out.add(i * self.out_row).write_bytes(0, self.n));
            } else if panels.is_none() && dots::fits(self.m, self.n, self.a, self.b) {
                dispatch_m(isa, Dots(self));
            } else if panels.is_none() && streams(self.m, self.b.column == 1) {
                dispatch_m(isa, Skinny(self));
            } else {
                dispatch_m(isa, Tiles::new(self, scratch, panels));
            }
            self.finish(isa);
        }
    }

    /// What follows the totals, in place.
    ///
    /// # Safety
    /// As [`Block::compute_with`]'s; `out` has the totals.
    pub unsafe fn finish(&self, isa: Isa) {
        if self.epilogue.is_none() {
            return;
        }
        // SAFETY: passed on.
        unsafe {
            let Epilogue { alpha, beta, bias, activation, .. } = self.epilogue;
            if alpha != 1.0 || beta != 0.0 || !bias.is_null() {
                dispatch(isa, Finish(self));
            }
            if activation != Activation::None {
                for i in 0..self.m {
                    activate(isa, activation, self.out.add(i * self.out_row), self.n);
                }
            }
        }
    }
}

/// Whether few enough rows are computed for B to be streamed past them.
fn streams(m: usize, contiguous: bool) -> bool {
    m <= skinny::MAX_ROWS && contiguous
}
