//! Comparisons, which give bools, and `where`, which takes one; with broadcasting.

use super::grid::Grid;
use super::{Call, Exec, Shared, chunks};
use crate::contract::outcome;
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::cpu::simd::{Kernel, Simd, dispatch};
use crate::interrupt::pieces;

/// Elements that are worth handing to another thread.
pub(super) const GRAIN: usize = 32 * 1024;

/// A comparison, from the outcomes of which it is true.
pub(super) fn compare(exec: &Exec<'_>, truths: u8, call: &mut Call<'_, '_>) -> Result<()> {
    match call.meta(0).dtype {
        DType::I32 => compared(exec, truths, call, |x: i32| x),
        DType::U32 => compared(exec, truths, call, |x: u32| x),
        DType::I64 => compared(exec, truths, call, |x: i64| x),
        DType::F64 => compared(exec, truths, call, |x: f64| x),
        DType::U8 => compared(exec, truths, call, |x: u8| x),
        DType::Bool => compared(exec, truths, call, |x: u8| x != 0),
        // Halves were widened.
        DType::F32 | DType::F16 | DType::BF16 => floats(exec, truths, call),
    }
}

/// Compares rows of f32.
struct Floats {
    truths: u8,
    a: *const f32,
    b: *const f32,
    /// From one element to the next: 0 or 1.
    steps: [usize; 2],
    y: *mut u8,
    n: usize,
}

impl Kernel for Floats {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Floats { truths, a, b, steps: [a_step, b_step], y, n } = self;
        // SAFETY: whole vectors and the elements behind them lie inside the rows, and `dispatch` has chosen an instruction set that
        // the processor has.
        unsafe {
            let (of_a, of_b) = (S::splat(a.read()), S::splat(b.read()));
            let bit = |outcome: u8| S::splat_i(i32::from(truths & outcome != 0));
            let (below, equal, above, neither) = (bit(1), bit(2), bit(4), bit(8));
            let whole = n - n % S::LANES;
            for i in (0..whole).step_by(S::LANES) {
                let a = if a_step == 0 { of_a } else { S::load(a.add(i)) };
                let b = if b_step == 0 { of_b } else { S::load(b.add(i)) };
                let rest = S::select_i(S::lt(b, a), above, neither);
                let rest = S::select_i(S::eq(a, b), equal, rest);
                S::store_bytes(y.add(i).cast(), S::select_i(S::lt(a, b), below, rest));
            }
            for i in whole..n {
                y.add(i).write(u8::from(outcome(*a.add(i * a_step), *b.add(i * b_step)) & truths != 0));
            }
        }
    }
}

fn floats(exec: &Exec<'_>, truths: u8, call: &mut Call<'_, '_>) -> Result<()> {
    let [a, b] = [0, 1].map(|i| call.f32(i).map(|first| Shared(first.cast_mut())));
    let (a, b, y) = (a?, b?, Shared(call.output.host()?));
    lines(exec, call, |[a_at, b_at], steps, at, n| {
        // SAFETY: the offsets come from the shapes that the views cover.
        unsafe {
            let (a, b, y) = (a.get().add(a_at), b.get().add(b_at), y.get().add(at));
            dispatch(exec.isa, Floats { truths, a, b, steps, y, n });
        }
    })
}

fn compared<T: Copy, V: PartialOrd>(
    exec: &Exec<'_>,
    truths: u8,
    call: &mut Call<'_, '_>,
    value: impl Fn(T) -> V + Sync,
) -> Result<()> {
    let [a, b] = [0, 1].map(|i| call.f32(i).map(|first| Shared(first.cast_mut().cast::<T>())));
    let (a, b, y) = (a?, b?, Shared(call.output.host()?));
    lines(exec, call, |[a_at, b_at], [a_step, b_step], at, n| {
        // SAFETY: the offsets come from the shapes that the views cover.
        unsafe {
            let (a, b, y) = (a.get().add(a_at), b.get().add(b_at), y.get().add(at));
            for i in 0..n {
                let (a, b) = (value(*a.add(i * a_step)), value(*b.add(i * b_step)));
                y.add(i).write(u8::from(outcome(a, b) & truths != 0));
            }
        }
    })
}

/// `where` of the op table.
pub(super) fn select(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    match call.output.dtype().size() {
        1 => selected::<u8>(exec, call),
        2 => selected::<u16>(exec, call),
        4 => selected_words(exec, call),
        _ => selected::<u64>(exec, call),
    }
}

/// Takes elements of four bytes from two rows.
struct Words {
    conditions: *const u8,
    a: *const f32,
    b: *const f32,
    /// From one element to the next: 0 or 1.
    steps: [usize; 3],
    y: *mut f32,
    n: usize,
}

impl Kernel for Words {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Words { conditions, a, b, steps: [condition_step, a_step, b_step], y, n } = self;
        // SAFETY: whole vectors and the elements behind them lie inside the rows, and `dispatch` has chosen an instruction set that
        // the processor has.
        unsafe {
            let (of_a, of_b, zero) = (S::splat(a.read()), S::splat(b.read()), S::splat(0.0));
            // One condition for all of the row is left to the loop behind this one.
            let whole = (n - n % S::LANES) * condition_step;
            for i in (0..whole).step_by(S::LANES) {
                let a = if a_step == 0 { of_a } else { S::load(a.add(i)) };
                let b = if b_step == 0 { of_b } else { S::load(b.add(i)) };
                let is_false = S::eq(S::to_float(S::load_bytes(conditions.add(i))), zero);
                S::store(y.add(i), S::select(is_false, b, a));
            }
            for i in whole..n {
                let of = if *conditions.add(i * condition_step) != 0 { a.add(i * a_step) } else { b.add(i * b_step) };
                y.add(i).cast::<u32>().write(of.cast::<u32>().read());
            }
        }
    }
}

fn selected_words(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let conditions = Shared(call.f32(0)?.cast_mut().cast::<u8>());
    let [a, b] = [1, 2].map(|i| call.f32(i).map(|first| Shared(first.cast_mut())));
    let (a, b, y) = (a?, b?, Shared(call.output.host()?.cast::<f32>()));
    lines(exec, call, |[condition_at, a_at, b_at], steps, at, n| {
        // SAFETY: the offsets come from the shapes that the views cover.
        unsafe {
            let (conditions, y) = (conditions.get().add(condition_at), y.get().add(at));
            let (a, b) = (a.get().add(a_at), b.get().add(b_at));
            // One condition for all of them takes one of the rows, which may be the result's own memory.
            let (taken, step) = if *conditions != 0 { (a, steps[1]) } else { (b, steps[2]) };
            if steps[0] == 0 && step == 1 {
                if taken != y {
                    y.copy_from(taken, n);
                }
            } else {
                dispatch(exec.isa, Words { conditions, a, b, steps, y, n });
            }
        }
    })
}

fn selected<T: Copy>(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let conditions = Shared(call.f32(0)?.cast_mut().cast::<u8>());
    let [a, b] = [1, 2].map(|i| call.f32(i).map(|first| Shared(first.cast_mut().cast::<T>())));
    let (a, b, y) = (a?, b?, Shared(call.output.host()?.cast::<T>()));
    lines(exec, call, |[condition_at, a_at, b_at], [condition_step, a_step, b_step], at, n| {
        // SAFETY: the offsets come from the shapes that the views cover.
        unsafe {
            let conditions = conditions.get().add(condition_at);
            let (a, b, y) = (a.get().add(a_at), b.get().add(b_at), y.get().add(at));
            for i in 0..n {
                let (of_a, of_b) = (*a.add(i * a_step), *b.add(i * b_step));
                y.add(i).write(if *conditions.add(i * condition_step) != 0 { of_a } else { of_b });
            }
        }
    })
}

/// Calls `line` with pieces of lines of the result: where the operands begin, the steps in them, where the result begins, and how
/// many elements.
pub(super) fn lines<const N: usize>(
    exec: &Exec<'_>,
    call: &Call<'_, '_>,
    line: impl Fn([usize; N], [usize; N], usize, usize) + Sync,
) -> Result<()> {
    let n = call.output.shape().elements();
    if n == 0 {
        return Ok(());
    }
    let grid = Grid::<N>::new(call);
    let (inner, steps) = (grid.inner(), grid.steps());
    if grid.outer_rank == 0 {
        return chunks(exec, n, GRAIN, |start, end| line(steps.map(|step| start * step), steps, start, end - start));
    }
    chunks(exec, n / inner, GRAIN.div_ceil(inner), |start, end| {
        for row in start..end {
            let offsets = grid.offsets(row);
            pieces!(inner, |at, count| {
                line(std::array::from_fn(|i| offsets[i] + at * steps[i]), steps, row * inner + at, count)
            });
        }
    })
}
