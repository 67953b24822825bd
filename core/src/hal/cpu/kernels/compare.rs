//! Comparisons, which give bools, and `where`, which takes one; with broadcasting.

use super::grid::Grid;
use super::{Call, Exec, Shared, chunks};
use crate::contract::outcome;
use crate::dtype::DType;
use crate::error::Result;
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
        DType::F32 | DType::F16 | DType::BF16 => compared(exec, truths, call, |x: f32| x),
    }
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
        4 => selected::<u32>(exec, call),
        _ => selected::<u64>(exec, call),
    }
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
