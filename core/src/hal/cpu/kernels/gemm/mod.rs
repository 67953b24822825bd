//! One block of a matrix product: the contract's chains of 256 in registers, totals in the output, and the epilogue.
//!
//! The shape chooses one of four ways:
//! - rows in registers, for small products (`small.rs`);
//! - register tiles, over packed or other operands (`tile.rs`, `packing.rs`; `panels.rs` for a B packed in advance);
//! - B streamed past one or two rows (`skinny.rs`), or past one row if it was packed in advance (`streams.rs`);
//! - squares that are transposed when they are read, for operands that are contiguous along the chains (`dots.rs`).
//!
//! Only the order within a chain determines bits. The order of blocks, the thread and the way can't change them.

mod dots;
mod finish;
mod packing;
mod panels;
mod skinny;
mod small;
mod streams;
mod tile;

use super::elementwise::activate;
use crate::contract::Activation;
use crate::hal::cpu::simd::{dispatch, dispatch_m};
use crate::isa::Isa;
use dots::Dots;
use finish::Finish;
pub use packing::{Packing, Transpose};
pub use panels::{Panels, Width};
pub use skinny::MAX_ROWS as STREAMED;
use skinny::Skinny;
use small::Small;
use small::is_small;
use streams::Streams;
use tile::Tiles;

/// The most rows of the result that one task computes. This and the next limit bound the scratch; up to [`STREAMED`] rows need none,
/// and may have more columns.
pub const BLOCK_ROWS: usize = 2048;
/// The most columns of the result that one task computes.
pub const BLOCK_COLUMNS: usize = 1024;

/// A matrix in memory. Element (i, j) is `data[i·row + j·column]`.
#[derive(Clone, Copy)]
pub struct Matrix {
    pub data: *const f32,
    pub row: usize,
    pub column: usize,
}

impl Matrix {
    /// Describes a row-major matrix with `rows` and `columns`, or the transpose of a stored one.
    pub fn new(data: *const f32, rows: usize, columns: usize, transposed: bool) -> Matrix {
        if transposed { Matrix { data, row: 1, column: rows } } else { Matrix { data, row: columns, column: 1 } }
    }

    /// Returns the part that begins at (i, j).
    ///
    /// # Safety
    /// (i, j) lies inside the matrix or just behind it.
    pub unsafe fn at(self, i: usize, j: usize) -> Matrix {
        // SAFETY: the caller promises that (i, j) lies inside the matrix or just behind it.
        Matrix { data: unsafe { self.data.add(i * self.row + j * self.column) }, ..self }
    }
}

/// What a product applies to totals before it stores them, in this order.
#[derive(Clone, Copy)]
pub struct Epilogue {
    pub alpha: f32,
    pub beta: f32,
    /// The matrix that beta scales. It is not read if beta is 0.
    pub c: Matrix,
    /// One value for each column, or null.
    pub bias: *const f32,
    pub activation: Activation,
}

impl Epilogue {
    /// Stores totals unchanged.
    pub const NONE: Epilogue = Epilogue {
        alpha: 1.0,
        beta: 0.0,
        c: Matrix { data: std::ptr::null(), row: 0, column: 0 },
        bias: std::ptr::null(),
        activation: Activation::None,
    };

    /// Returns whether totals are stored unchanged.
    fn is_none(&self) -> bool {
        self.alpha == 1.0 && self.beta == 0.0 && self.bias.is_null() && self.activation == Activation::None
    }

    /// Returns the epilogue of the part that begins at (i, j).
    ///
    /// # Safety
    /// (i, j) lies inside the result.
    pub unsafe fn at(self, i: usize, j: usize) -> Epilogue {
        // SAFETY: C and the bias cover the result if they exist, and (i, j) lies inside it.
        unsafe {
            let c = if self.c.data.is_null() { self.c } else { self.c.at(i, j) };
            let bias = if self.bias.is_null() { self.bias } else { self.bias.add(j) };
            Epilogue { c, bias, ..self }
        }
    }
}

/// Computes `out[m × n] = epilogue(a[m × k]·b[k × n])`, at most [`BLOCK_ROWS`] by [`BLOCK_COLUMNS`].
#[derive(Clone, Copy)]
pub struct Block {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Matrix,
    pub b: Matrix,
    pub out: *mut f32,
    /// The elements from one row of `out` to the next.
    pub out_row: usize,
    pub packing: Packing,
    pub epilogue: Epilogue,
}

impl Block {
    /// Computes the block.
    ///
    /// # Safety
    /// The matrices cover the sizes. Only this call uses `out`, and `scratch`, which holds [`Packing::scratch`] floats.
    pub unsafe fn compute(&self, isa: Isa, scratch: *mut f32) {
        // SAFETY: the caller's promise covers this.
        unsafe { self.compute_with(isa, scratch, None) }
    }

    /// Computes the block. B was packed in advance if `panels` are given.
    ///
    /// # Safety
    /// As for [`Block::compute`]. The panels must be this instruction set's and cover k and n. With panels, `b` is not
    /// read, and `packing.b` must not be set.
    pub unsafe fn compute_with(&self, isa: Isa, scratch: *mut f32, panels: Option<Panels>) {
        // With panels, B is not packed here, so a group of rows is finished before the next while its data is in the
        // cache.
        let most = if panels.is_some() { self.packing.group() } else { usize::MAX };
        let (mut part, mut left) = (*self, self.m);
        loop {
            part.m = most.min(left);
            left -= part.m;
            // SAFETY: these rows are the block's, because some are left. The caller's promise covers the rest.
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

    /// Computes a small block without its epilogue, if the instruction set has a way for it. Returns whether it did; if not, nothing
    /// is written.
    ///
    /// # Safety
    /// As for [`Block::compute`].
    #[inline]
    pub unsafe fn compute_small(&self, isa: Isa) -> bool {
        // SAFETY: the caller's promise covers this.
        self.b.column == 1 && is_small(self.m, self.n, self.k) && unsafe { dispatch_m(isa, Small(self)) }
    }

    /// Computes the block as one.
    ///
    /// # Safety
    /// As for [`Block::compute_with`].
    unsafe fn rows(&self, isa: Isa, scratch: *mut f32, panels: Option<Panels>) {
        // SAFETY: the caller's promise covers this.
        unsafe {
            if panels.is_none() && self.compute_small(isa) {
                return self.finish(isa);
            }
            if self.k == 0 {
                (0..self.m).for_each(|i| self.out.add(i * self.out_row).write_bytes(0, self.n));
            } else if panels.is_none() && dots::fits(self.m, self.n, self.a, self.b) {
                dispatch_m(isa, Dots(self));
            } else if panels.is_none() && streams(self.m, self.b.column == 1) {
                dispatch_m(isa, Skinny(self));
            } else {
                let streamed = panels.is_some_and(|panels| self.m == 1 && dispatch_m(isa, Streams(self, panels)));
                if !streamed {
                    dispatch_m(isa, Tiles::new(self, scratch, panels));
                }
            }
            self.finish(isa);
        }
    }

    /// Applies the epilogue to the totals, in place.
    ///
    /// # Safety
    /// As for [`Block::compute_with`]. `out` holds the totals.
    pub unsafe fn finish(&self, isa: Isa) {
        if self.epilogue.is_none() {
            return;
        }
        // SAFETY: the caller's promise covers this.
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

/// Returns whether B is streamed past the rows, because they are few.
fn streams(m: usize, contiguous: bool) -> bool {
    m <= skinny::MAX_ROWS && contiguous
}
