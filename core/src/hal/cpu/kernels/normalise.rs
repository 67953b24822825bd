//! softmax, layernorm, rmsnorm: rows brought to a scale of their own.

use super::sum::{max_key, sum_of};
use super::{Call, Exec, Shared, chunks};
use crate::contract;
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch};
use crate::ops::{Lines, softmax_axis};

/// Values that are worth handing to another thread.
const GRAIN: usize = 16 * 1024;

/// Columns that a softmax across rows takes at a time.
const STRIP: usize = 16;

/// Applies `f` to every vector of a row, in place or into another.
#[inline(always)]
unsafe fn map_row<S: Simd>(x: *const f32, y: *mut f32, n: usize, f: impl Fn(S::F, usize) -> S::F) {
    let mut i = 0;
    // SAFETY: indices stay below n; the rest goes through a whole vector of scratch.
    unsafe {
        while i + S::LANES <= n {
            S::store(y.add(i), simd::canonical::<S>(f(S::load(x.add(i)), i)));
            i += S::LANES;
        }
        if i < n {
            let mut rest = [0.0f32; 16];
            rest.as_mut_ptr().copy_from_nonoverlapping(x.add(i), n - i);
            S::store(rest.as_mut_ptr(), simd::canonical::<S>(f(S::load(rest.as_ptr()), i)));
            y.add(i).copy_from_nonoverlapping(rest.as_ptr(), n - i);
        }
    }
}

/// A vector of an optional operand, safe to read at the row's end.
#[inline(always)]
unsafe fn load_part<S: Simd>(p: *const f32, at: usize, n: usize) -> S::F {
    // SAFETY: at is below n, which p covers.
    unsafe {
        if at + S::LANES <= n {
            return S::load(p.add(at));
        }
        let mut rest = [0.0f32; 16];
        rest.as_mut_ptr().copy_from_nonoverlapping(p.add(at), n - at);
        S::load(rest.as_ptr())
    }
}

/// Stores a vector of a row of `n` values, the last one only as far as the row goes.
#[inline(always)]
unsafe fn store_part<S: Simd>(p: *mut f32, at: usize, n: usize, x: S::F) {
    // SAFETY: at is below n, which p covers.
    unsafe {
        if at + S::LANES <= n {
            return S::store(p.add(at), x);
        }
        let mut rest = [0.0f32; 16];
        S::store(rest.as_mut_ptr(), x);
        p.add(at).copy_from_nonoverlapping(rest.as_ptr(), n - at);
    }
}

struct SoftmaxRow {
    x: *const f32,
    y: *mut f32,
    n: usize,
}

impl Kernel for SoftmaxRow {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let SoftmaxRow { x, y, n } = self;
        // SAFETY: x and y cover n values and are equal or disjoint.
        unsafe {
            let m = S::splat(contract::max_of_keys(max_key::<S>(x, n)));
            let sum = S::splat(sum_of::<S>(x, n, |x, at| {
                let e = simd::exp::<S>(S::sub(x, m));
                store_part::<S>(y, at, n, e);
                e
            }));
            map_row::<S>(y, y, n, |e, _| S::div(e, sum));
        }
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
                unsafe {
                    dispatch(exec.isa, SoftmaxRow { x: x.get().add(row * n), y: y.get().add(row * n), n });
                }
            }
        });
        return Ok(());
    }
    // Lines that lie across are gathered 16 at a time, so that every cache line is read once.
    let seats = exec.pool.threads();
    let scratch = exec.scratch.take(seats * STRIP * n)?;
    let scratch = Shared(scratch.pointer());
    let strips = inner.div_ceil(STRIP);
    exec.pool.run(outer * strips, &|task, seat| {
        let (o, first) = (task / strips, task % strips * STRIP);
        let width = STRIP.min(inner - first);
        // SAFETY: the strip lies inside the views, and the seat's scratch is this task's alone.
        unsafe {
            let lines = scratch.get().add(seat * STRIP * n);
            let at = o * n * inner + first;
            for k in 0..n {
                for i in 0..width {
                    lines.add(i * n + k).write(*x.get().add(at + k * inner + i));
                }
            }
            for i in 0..width {
                let line = lines.add(i * n);
                dispatch(exec.isa, SoftmaxRow { x: line, y: line, n });
            }
            for k in 0..n {
                for i in 0..width {
                    y.get().add(at + k * inner + i).write(*lines.add(i * n + k));
                }
            }
        }
    });
    Ok(())
}

struct NormRow {
    x: *const f32,
    y: *mut f32,
    n: usize,
    gamma: *const f32,
    beta: *const f32,
    eps: f32,
    centre: bool,
}

impl Kernel for NormRow {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let NormRow { x, y, n, gamma, beta, eps, centre } = self;
        // SAFETY: x, y and the vectors that are there cover n values; x and y are equal or disjoint.
        unsafe {
            let count = n as f32;
            let mean = S::splat(if centre { sum_of::<S>(x, n, |v, _| v) / count } else { 0.0 });
            // Without a mean nothing is subtracted: x − 0 would be the same, −0 included, but costs a pass.
            let squares = sum_of::<S>(x, n, |x, _| {
                let d = if centre { S::sub(x, mean) } else { x };
                S::mul(d, d)
            });
            let r = S::splat(1.0 / (squares / count + eps).sqrt());
            map_row::<S>(x, y, n, |x, at| {
                let d = if centre { S::sub(x, mean) } else { x };
                let mut y = S::mul(d, r);
                if !gamma.is_null() {
                    y = S::mul(y, load_part::<S>(gamma, at, n));
                }
                if !beta.is_null() {
                    y = S::add(y, load_part::<S>(beta, at, n));
                }
                y
            });
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
    let (gamma, beta) = (Shared(call.f32(1)?.cast_mut()), Shared(call.f32(2)?.cast_mut()));
    let eps = call.attrs.eps;
    if n == 0 {
        return Ok(());
    }
    chunks(exec, rows, GRAIN.div_ceil(n), |start, end| {
        for row in start..end {
            // SAFETY: the views cover rows·n values, the vectors n.
            unsafe {
                let (x, y) = (x.get().add(row * n), y.get().add(row * n));
                let (gamma, beta) = (gamma.get().cast_const(), beta.get().cast_const());
                dispatch(exec.isa, NormRow { x, y, n, gamma, beta, eps, centre });
            }
        }
    });
    Ok(())
}
