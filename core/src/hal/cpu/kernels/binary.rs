//! Elementwise operations of two operands, with broadcasting.

use super::elementwise::{CHAIN_GRAIN, GRAIN};
use super::grid::Grid;
use super::{Call, Exec, Shared, chunks};
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, VectorFn2, dispatch};
use crate::interrupt::pieces;
use crate::isa::Isa;
use crate::ops::Binary;

impl VectorFn2 for Binary {
    #[inline(always)]
    unsafe fn apply<S: Simd>(self, a: S::F, b: S::F) -> S::F {
        // SAFETY: only kernels call this.
        unsafe {
            match self {
                Binary::Add => S::add(a, b),
                Binary::Sub => S::sub(a, b),
                Binary::Mul => S::mul(a, b),
                Binary::Div => S::div(a, b),
                Binary::Maximum => simd::maximum::<S>(a, b),
                Binary::Minimum => simd::minimum::<S>(a, b),
                Binary::Pow => simd::pow::<S>(a, b),
            }
        }
    }
}

/// The block length for which a repeated value is written out.
const SPREAD: usize = 256;

/// Computes a row of `y = f(a, b)`. An operand with step 0 is one repeated value. At most one operand is, because each
/// dimension belongs to an operand.
struct Row {
    f: Binary,
    a: *const f32,
    a_step: usize,
    b: *const f32,
    b_step: usize,
    y: *mut f32,
    n: usize,
}

impl Kernel for Row {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        // Each operation and each combination of steps has its own loop, so that no loop has a branch.
        if self.a_step == 0 && matches!(self.f, Binary::Add | Binary::Mul | Binary::Maximum | Binary::Minimum) {
            (self.a, self.a_step, self.b, self.b_step) = (self.b, self.b_step, self.a, self.a_step);
        }
        macro_rules! each {
            ($($f:ident $commutes:literal)*) => {
                // SAFETY: the caller's promise covers this.
                unsafe {
                    match self.f { $(Binary::$f => match (self.a_step, self.b_step) {
                        (0, _) if !$commutes => self.row::<S, 0, 1>(Binary::$f),
                        (_, 0) => self.row::<S, 1, 0>(Binary::$f),
                        _ => self.row::<S, 1, 1>(Binary::$f),
                    },)*
                    Binary::Pow => self.spread::<S>(Binary::Pow), }
                }
            };
        }
        each!(Add true Sub false Mul true Div false Maximum true Minimum true);
    }
}

impl Row {
    #[inline(always)]
    unsafe fn row<S: Simd, const A: usize, const B: usize>(&self, f: Binary) {
        // SAFETY: the caller's promise covers this.
        unsafe { simd::zip_row::<S, A, B>(self.a, self.b, self.y, self.n, f) };
    }

    /// Computes a row with a long function. It has only one loop, so a repeated value is first written out to a block.
    #[inline(always)]
    unsafe fn spread<S: Simd>(&self, f: Binary) {
        let repeats = self.a_step == 0 || self.b_step == 0;
        let block = if repeats { SPREAD } else { self.n };
        // SAFETY: a repeated operand has one value, and blocks lie below n. The caller's promise covers the rest.
        unsafe {
            let repeated = [if self.a_step == 0 { *self.a } else { *self.b }; SPREAD];
            let at = |p: *const f32, step, start| if step == 0 { repeated.as_ptr() } else { p.add(start) };
            let mut start = 0;
            while start < self.n {
                let (a, b) = (at(self.a, self.a_step, start), at(self.b, self.b_step, start));
                let n = block.min(self.n - start);
                Row { f, a, a_step: 1, b, b_step: 1, y: self.y.add(start), n }.row::<S, 1, 1>(f);
                start += block;
            }
        }
    }
}

/// Computes n elements of `y = f(a, b)`. Steps are 0, for one value, or 1. At most one is 0.
///
/// # Safety
/// Operands with step 1 and y cover n values, and others have one. y is each operand itself or disjoint from it.
pub(super) unsafe fn row(
    isa: Isa,
    f: Binary,
    [a, b]: [*const f32; 2],
    [a_step, b_step]: [usize; 2],
    y: *mut f32,
    n: usize,
) {
    // SAFETY: passed on.
    unsafe { dispatch(isa, Row { f, a, a_step, b, b_step, y, n }) }
}

/// Computes an elementwise operation of two operands, with broadcasting.
pub(super) fn binary(exec: &Exec<'_>, f: Binary, call: &mut Call<'_, '_>) -> Result<()> {
    let n = call.output.shape().elements();
    let (a, b, y) = (Shared(call.f32(0)?.cast_mut()), Shared(call.f32(1)?.cast_mut()), Shared(call.out()?));
    if n == 0 {
        return Ok(());
    }
    let grain = if f == Binary::Pow { CHAIN_GRAIN } else { GRAIN };
    let row = move |a_at, a_step, b_at, b_step, y_at, n| {
        // SAFETY: the offsets come from the shapes that the views cover.
        unsafe {
            let (a, b, y) = (a.get().add(a_at), b.get().add(b_at), y.get().add(y_at));
            dispatch(exec.isa, Row { f, a, a_step, b, b_step, y, n })
        }
    };
    let (mut a_step, mut b_step) = (1, 1);
    if call.meta(0).shape != call.meta(1).shape {
        let grid = Grid::<2>::new(call);
        if grid.outer_rank > 0 {
            let inner = grid.dims[grid.outer_rank];
            chunks(exec, n / inner, grain.div_ceil(inner), |start, end| {
                for line in start..end {
                    let [a_at, b_at] = grid.offsets(line);
                    let [a_step, b_step] = grid.steps();
                    pieces!(inner, |at, count| {
                        row(a_at + at * a_step, a_step, b_at + at * b_step, b_step, line * inner + at, count)
                    });
                }
            })?;
            return Ok(());
        }
        [a_step, b_step] = grid.steps();
    }
    // What is not worth two tasks is one row.
    if n < 2 * grain {
        row(0, a_step, 0, b_step, 0, n);
        return Ok(());
    }
    chunks(exec, n, grain, |start, end| row(start * a_step, a_step, start * b_step, b_step, start, end - start))?;
    Ok(())
}
