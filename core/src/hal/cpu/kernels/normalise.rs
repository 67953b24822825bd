//! softmax, layernorm, rmsnorm: rows brought to a scale of their own.

use super::sum::{Stored, range, sum, sum_of, sum_of_parts};
use super::{Call, Exec, Shared, cast, chunks};
use crate::contract;
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, VectorFn, dispatch};
use crate::interrupt::{Looks, PIECE, pieces};
use crate::isa::Isa;
use crate::ops::{LAYERNORM_RESIDUAL, Lines, RMSNORM_RESIDUAL, softmax_axis};

/// Values of softmax that are worth handing to another thread.
const GRAIN: usize = 32 * 1024;

/// The same of layernorm and rmsnorm, which have no exp.
const NORM_GRAIN: usize = 64 * 1024;

/// Columns that a softmax across rows takes at a time.
const STRIP: usize = 16;

/// e^(x − m), where m is the maximum.
#[derive(Clone, Copy)]
pub(super) struct ExpBelow(pub f32);

impl VectorFn for ExpBelow {
    const CHAIN: bool = true;
    // Its power is +0.
    const PADDING: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: called from a kernel.
        unsafe { simd::exp_of_negative::<S>(S::sub(x, S::splat(self.0))) }
    }
}

/// x / y.
#[derive(Clone, Copy)]
pub(super) struct DivideBy(pub f32);

impl VectorFn for DivideBy {
    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: called from a kernel.
        unsafe { S::div(x, S::splat(self.0)) }
    }
}

/// x / y for many x, each 0 or at least 2⁻⁸⁰, and one y from 1 to 2³¹, without dividing.
///
/// With r = 1/y rounded and `rest` what that lost, the first quotient is next to x/y on one side or the other; its
/// remainder is exact, and r times it rounds to the quotient that division gives. (Markstein, "Computation of elementary
/// functions on the IBM RISC System/6000 processor", 1990, theorem 8.)
#[derive(Clone, Copy)]
struct Quotient {
    minus_y: f32,
    r: f32,
    rest: f32,
}

impl Quotient {
    #[inline(always)]
    fn by(y: f32) -> Quotient {
        let r = 1.0 / y;
        Quotient { minus_y: -y, r, rest: (1.0 / y as f64 - r as f64) as f32 }
    }
}

impl VectorFn for Quotient {
    const CHAIN: bool = true;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: called from a kernel, outside `fpenv::flushing`.
        unsafe {
            let r = S::splat(self.r);
            let quotient = S::fused(x, r, S::mul(x, S::splat(self.rest)));
            S::fused(S::fused(quotient, S::splat(self.minus_y), x), r, quotient)
        }
    }
}

/// What is done with a row, or with a part of a long one.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    All,
    Range,
    Sum,
    Divide,
}

/// softmax of a row, or a step of it.
#[derive(Clone, Copy)]
struct SoftmaxRow {
    x: *const f32,
    y: *mut f32,
    n: usize,
    step: Step,
    /// What earlier steps gave.
    found: Found,
}

/// The least and the largest of the values, and the sum of the powers.
#[derive(Clone, Copy, Default)]
struct Found {
    least: f32,
    most: f32,
    total: f32,
}

impl SoftmaxRow {
    /// softmax of a whole row.
    ///
    /// # Safety
    /// x and y cover n values, n > 0, and are equal or disjoint.
    unsafe fn compute(isa: Isa, x: *const f32, y: *mut f32, n: usize) {
        let mut row = SoftmaxRow { x, y, n, step: Step::All, found: Found::default() };
        // SAFETY: as asked; pieces lie inside the row.
        unsafe {
            if n <= PIECE {
                dispatch(isa, row);
                return;
            }
            let mut found = Found { least: *x, most: *x, total: 0.0 };
            pieces!(n, |at, count| {
                let part = dispatch(isa, SoftmaxRow { x: x.add(at), n: count, step: Step::Range, ..row });
                found.least = if part.least < found.least { part.least } else { found.least };
                found.most = if found.most < part.most { part.most } else { found.most };
            });
            row.found = found;
            row.found.total = dispatch(isa, SoftmaxRow { step: Step::Sum, ..row }).total;
            pieces!(n, |at, count| dispatch(isa, SoftmaxRow { y: y.add(at), n: count, step: Step::Divide, ..row }));
        }
    }
}

impl Kernel for SoftmaxRow {
    type Output = Found;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Found {
        let SoftmaxRow { x, y, n, step, found: Found { mut least, mut most, mut total } } = self;
        // SAFETY: x and y cover n values and are equal or disjoint.
        unsafe {
            if matches!(step, Step::All | Step::Range) {
                // Which zero the maximum is doesn't matter here, and where there is a NaN nothing else does.
                (least, most) = range::<S>(x, n);
            }
            if matches!(step, Step::All | Step::Sum) {
                total = sum_of_parts::<S>(n, Stored { x, y, f: ExpBelow(most) });
            }
            if matches!(step, Step::All | Step::Divide) {
                if contract::is_nan(total) {
                    std::slice::from_raw_parts_mut(y, n).fill(contract::NAN);
                } else if S::FUSED && most - least <= 55.0 {
                    // e⁻⁵⁵ is more than 2⁻⁸⁰.
                    simd::map_row_raw::<S>(y, y, n, Quotient::by(total));
                } else {
                    simd::map_row_raw::<S>(y, y, n, DivideBy(total));
                }
            }
        }
        Found { least, most, total }
    }
}

/// softmax along any axis.
pub(super) fn softmax(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let shape = *call.output.shape();
    let Lines { outer, n, inner } = Lines::along(&shape, softmax_axis(call.attrs, &shape)?);
    let (x, y) = (Shared(call.f32(0)?.cast_mut()), Shared(call.out()?));
    if outer * n * inner == 0 {
        return Ok(());
    }
    if inner == 1 {
        chunks(exec, outer, GRAIN.div_ceil(n), |start, end| {
            for row in start..end {
                // SAFETY: the views cover outer·n values.
                unsafe { SoftmaxRow::compute(exec.isa, x.get().add(row * n), y.get().add(row * n), n) };
            }
        })?;
        return Ok(());
    }
    // Lines that lie across are gathered 16 at a time, so that every cache line is read once.
    let seats = exec.pool.threads();
    let scratch = exec.scratch.take(seats * STRIP * n)?;
    let scratch = Shared(scratch.pointer());
    let strips = inner.div_ceil(STRIP);
    exec.pool.try_run(outer * strips, &|task, seat| {
        let (o, first) = (task / strips, task % strips * STRIP);
        let width = STRIP.min(inner - first);
        // SAFETY: the strip lies inside the views, and the seat's scratch is this task's alone.
        unsafe {
            let lines = scratch.get().add(seat * STRIP * n);
            let at = o * n * inner + first;
            let mut looks = Looks::NEW;
            for k in 0..n {
                if looks.before(STRIP) {
                    return;
                }
                for i in 0..width {
                    lines.add(i * n + k).write(*x.get().add(at + k * inner + i));
                }
            }
            for i in 0..width {
                let line = lines.add(i * n);
                SoftmaxRow::compute(exec.isa, line, line, n);
            }
            for k in 0..n {
                if looks.before(STRIP) {
                    return;
                }
                for i in 0..width {
                    y.get().add(at + k * inner + i).write(*lines.add(i * n + k));
                }
            }
        }
    })?;
    Ok(())
}

/// An optional vector: its values, or one that changes nothing (·1, + −0), repeated.
#[derive(Clone, Copy)]
struct Affine {
    p: *const f32,
    step: usize,
}

// SAFETY: it is only read, and covers the row or is a constant.
unsafe impl Send for Affine {}
// SAFETY: as above.
unsafe impl Sync for Affine {}

impl Affine {
    fn new(p: *const f32, neutral: &'static [f32; simd::LONGEST]) -> Affine {
        if p.is_null() { Affine { p: neutral.as_ptr(), step: 0 } } else { Affine { p, step: 1 } }
    }

    #[inline(always)]
    unsafe fn from(self, at: usize) -> Affine {
        // SAFETY: p covers that many, or stays where it is.
        Affine { p: unsafe { self.p.add(at * self.step) }, ..self }
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(self, at: usize, n: usize) -> S::F {
        // SAFETY: at is below n, which p covers; a constant covers any vector.
        unsafe {
            let p = self.p.add(at * self.step);
            if at + S::LANES <= n { S::load(p) } else { S::load_head(p, n - at) }
        }
    }
}

static ONES: [f32; simd::LONGEST] = [1.0; simd::LONGEST];
static MINUS_ZEROS: [f32; simd::LONGEST] = [-0.0; simd::LONGEST];

struct NormRow {
    x: *const f32,
    y: *mut f32,
    n: usize,
    gamma: Affine,
    beta: Affine,
    eps: f32,
    centre: bool,
}

impl Kernel for NormRow {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let NormRow { x, y, n, gamma, beta, eps, centre } = self;
        // SAFETY: x, y and the vectors cover n values; x and y are equal or disjoint.
        unsafe {
            let count = n as f32;
            // Without centring the mean is +0, and x − 0 is x, bit for bit.
            let mean = if centre { sum::<S>(x, n) / count } else { 0.0 };
            let squares = sum_of::<S>(x, n, SquareFrom(mean), mean);
            let r = 1.0 / (squares / count + eps).sqrt();
            pieces!(n, |at, count| {
                let (x, gamma, beta) = (x.add(at), gamma.from(at), beta.from(at));
                let f = Normalise { mean, r, n: count, gamma, beta, next: x.wrapping_add(count) };
                simd::map_row::<S>(x, y.add(at), count, f);
            });
        }
    }
}

/// The sum of a row and its residual, as `add` stores it.
struct SumRow {
    x: *const f32,
    residual: *const f32,
    sum: *mut f32,
    n: usize,
    stored: DType,
}

impl Kernel for SumRow {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let SumRow { x, residual, sum, n, stored } = self;
        // SAFETY: all cover n values, and are equal or disjoint.
        unsafe {
            pieces!(n, |at, count| {
                let residual = Affine { p: residual.add(at), step: 1 };
                simd::map_row::<S>(x.add(at), sum.add(at), count, Plus { residual, n: count });
                if stored.is_half() {
                    cast::round(stored, sum.add(at), count);
                }
            });
        }
    }
}

/// x + residual.
#[derive(Clone, Copy)]
struct Plus {
    residual: Affine,
    n: usize,
}

impl VectorFn for Plus {
    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, at: usize) -> S::F {
        // SAFETY: called from a kernel; the residual covers the row.
        unsafe { S::add(x, self.residual.load::<S>(at, self.n)) }
    }
}

/// (x − mean)².
#[derive(Clone, Copy)]
struct SquareFrom(f32);

impl VectorFn for SquareFrom {
    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: called from a kernel.
        unsafe {
            let d = S::sub(x, S::splat(self.0));
            S::mul(d, d)
        }
    }
}

/// ((x − mean)·r)·γ + β.
#[derive(Clone, Copy)]
struct Normalise {
    mean: f32,
    r: f32,
    n: usize,
    gamma: Affine,
    beta: Affine,
    /// The next row.
    next: *const f32,
}

impl VectorFn for Normalise {
    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, at: usize) -> S::F {
        // SAFETY: called from a kernel; the vectors cover the row.
        unsafe {
            S::prefetch(self.next.wrapping_add(at));
            let d = S::mul(S::sub(x, S::splat(self.mean)), S::splat(self.r));
            S::add(S::mul(d, self.gamma.load::<S>(at, self.n)), self.beta.load::<S>(at, self.n))
        }
    }
}

/// layernorm over the last axis.
pub(super) fn layernorm(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    norm(exec, call, true)
}

/// rmsnorm over the last axis.
pub(super) fn rmsnorm(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    norm(exec, call, false)
}

fn norm(exec: &Exec<'_>, call: &mut Call<'_, '_>, centre: bool) -> Result<()> {
    let n = call.output.shape().from_end(0);
    let rows = call.output.shape().elements() / n.max(1);
    let (x, y) = (Shared(call.f32(0)?.cast_mut()), Shared(call.out()?));
    let (beta, residual) = match centre {
        true => (call.f32(2)?, call.f32(LAYERNORM_RESIDUAL)?),
        false => (std::ptr::null(), call.f32(RMSNORM_RESIDUAL)?),
    };
    let (gamma, eps, stored, residual) = (call.f32(1)?, call.attrs.eps, call.stored, Shared(residual.cast_mut()));
    if n == 0 {
        return Ok(());
    }
    // A sum comes to stand where its row's result will, unless one of the vectors is there. Then there is one row.
    let room = match [gamma, beta].contains(&y.get().cast_const()) && !residual.get().is_null() {
        true => Some(exec.scratch.take(n)?),
        false => None,
    };
    let sums = Shared(room.as_ref().map_or(y.get(), |room| room.pointer()));
    let (gamma, beta) = (Affine::new(gamma, &ONES), Affine::new(beta, &MINUS_ZEROS));
    chunks(exec, rows, NORM_GRAIN.div_ceil(n), |start, end| {
        for row in start..end {
            // SAFETY: the views cover rows·n values, the vectors n.
            unsafe {
                let (mut x, y) = (x.get().add(row * n).cast_const(), y.get().add(row * n));
                if !residual.get().is_null() {
                    let (residual, sum) = (residual.get().add(row * n), sums.get().add(row * n));
                    dispatch(exec.isa, SumRow { x, residual, sum, n, stored });
                    x = sum;
                }
                dispatch(exec.isa, NormRow { x, y, n, gamma, beta, eps, centre });
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Divide {
        x: *const f32,
        quotients: *mut f32,
        n: usize,
        by: f32,
    }

    impl Kernel for Divide {
        type Output = bool;

        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> bool {
            if S::FUSED {
                // SAFETY: both cover n values.
                unsafe { simd::map_row_raw::<S>(self.x, self.quotients, self.n, Quotient::by(self.by)) };
            }
            S::FUSED
        }
    }

    /// Mantissas at random, of few ones, of all ones, and numerators whose quotients lie next to a tie.
    #[test]
    fn quotients_by_a_reciprocal_are_correctly_rounded() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let mut mantissa = move || match random() % 4 {
            0 => 0x7f_ffff - random() % 16,
            1 => random() % 16,
            2 => ((1 << (random() % 23)) - 1) | ((random() % 2) << 22),
            _ => random() & 0x7f_ffff,
        };
        for round in 0..20_000u32 {
            let y = f32::from_bits((127 + round % 32) << 23 | mantissa());
            let x: Vec<f32> = (0..128u32)
                .map(|i| {
                    let q = f32::from_bits((127 - (round + i) % 48) << 23 | mantissa());
                    if i % 2 == 0 {
                        return q;
                    }
                    let tie = (q as f64 + f32::from_bits(q.to_bits() + 1) as f64) / 2.0;
                    (tie * y as f64) as f32
                })
                .collect();
            for isa in Isa::available() {
                let mut quotients = vec![0.0; x.len()];
                let kernel = Divide { x: x.as_ptr(), quotients: quotients.as_mut_ptr(), n: x.len(), by: y };
                // SAFETY: both vectors hold n values.
                if unsafe { dispatch(isa, kernel) } {
                    for (x, quotient) in x.iter().zip(&quotients) {
                        assert_eq!(quotient.to_bits(), (x / y).to_bits(), "{x:e} / {y:e} with {isa:?}");
                    }
                }
            }
        }
    }
}
