//! Conversions between element types, and the widening and narrowing around every kernel.

use super::{Call, Exec, Shared, chunks};
use crate::contract::{bf16_from_f32, bf16_to_f32, canonical, canonical_f64, f16_from_f32, f16_to_f32, odd_from_f64};
use crate::dtype::DType;
use crate::error::Result;

/// Elements that are worth handing to another thread.
const GRAIN: usize = 32 * 1024;

/// Elements converted at a time, through a buffer on the stack.
const BATCH: usize = 256;

/// Widens `n` elements at x to f32: exactly, or for integers to nearest even.
///
/// # Safety
/// x covers n elements of the dtype, y n values.
unsafe fn read_floats(from: DType, x: *const u8, y: *mut f32, n: usize) {
    // SAFETY: indices stay below n.
    unsafe {
        match from {
            DType::F32 => (0..n).for_each(|i| *y.add(i) = *x.cast::<f32>().add(i)),
            DType::F16 => (0..n).for_each(|i| *y.add(i) = f16_to_f32(*x.cast::<u16>().add(i))),
            DType::BF16 => (0..n).for_each(|i| *y.add(i) = bf16_to_f32(*x.cast::<u16>().add(i))),
            DType::I32 => (0..n).for_each(|i| *y.add(i) = *x.cast::<i32>().add(i) as f32),
            DType::U32 => (0..n).for_each(|i| *y.add(i) = *x.cast::<u32>().add(i) as f32),
            DType::I64 => (0..n).for_each(|i| *y.add(i) = *x.cast::<i64>().add(i) as f32),
            DType::U8 => (0..n).for_each(|i| *y.add(i) = *x.add(i) as f32),
            DType::Bool => (0..n).for_each(|i| *y.add(i) = u8::from(*x.add(i) != 0) as f32),
            DType::F64 => unreachable!("f64 is not read as f32"),
        }
    }
}

/// Narrows `n` values to a dtype: floats to nearest even, NaN canonical; integers truncated and saturated, NaN to 0; bools of
/// what is not 0, NaN among it.
///
/// # Safety
/// x covers n values, y n elements of the dtype.
unsafe fn write_floats(to: DType, x: *const f32, y: *mut u8, n: usize) {
    // SAFETY: indices stay below n.
    unsafe {
        match to {
            DType::F32 => (0..n).for_each(|i| *y.cast::<f32>().add(i) = canonical(*x.add(i))),
            DType::F16 => (0..n).for_each(|i| *y.cast::<u16>().add(i) = f16_from_f32(*x.add(i))),
            DType::BF16 => (0..n).for_each(|i| *y.cast::<u16>().add(i) = bf16_from_f32(*x.add(i))),
            DType::I32 => (0..n).for_each(|i| *y.cast::<i32>().add(i) = *x.add(i) as i32),
            DType::U32 => (0..n).for_each(|i| *y.cast::<u32>().add(i) = *x.add(i) as u32),
            DType::I64 => (0..n).for_each(|i| *y.cast::<i64>().add(i) = *x.add(i) as i64),
            DType::U8 => (0..n).for_each(|i| *y.add(i) = *x.add(i) as u8),
            DType::Bool => (0..n).for_each(|i| *y.add(i) = u8::from(*x.add(i) != 0.0)),
            DType::F64 => (0..n).for_each(|i| *y.cast::<f64>().add(i) = canonical_f64((*x.add(i)).into())),
        }
    }
}

/// Converts integers and bools to f64, to nearest even; or f64 to another dtype like [`write_floats`], rounding once.
///
/// # Safety
/// x and y cover n elements of their dtypes.
unsafe fn convert_doubles(from: DType, x: *const u8, to: DType, y: *mut u8, n: usize) {
    // SAFETY: indices stay below n.
    unsafe {
        for i in 0..n {
            if to == DType::F64 {
                *y.cast::<f64>().add(i) = integer(from, x, i) as f64;
                continue;
            }
            let value = *x.cast::<f64>().add(i);
            match to {
                DType::F32 => *y.cast::<f32>().add(i) = canonical(value as f32),
                DType::F16 => *y.cast::<u16>().add(i) = f16_from_f32(odd_from_f64(value)),
                DType::BF16 => *y.cast::<u16>().add(i) = bf16_from_f32(odd_from_f64(value)),
                DType::I64 => *y.cast::<i64>().add(i) = value as i64,
                DType::I32 => *y.cast::<i32>().add(i) = value as i32,
                DType::U32 => *y.cast::<u32>().add(i) = value as u32,
                DType::U8 => *y.add(i) = value as u8,
                _ => *y.add(i) = u8::from(value != 0.0),
            }
        }
    }
}

/// Returns element `i` of integers or bools, of which it is 0 or 1.
///
/// # Safety
/// x covers more than i elements of the dtype.
unsafe fn integer(from: DType, x: *const u8, i: usize) -> i64 {
    // SAFETY: the caller promises it.
    unsafe {
        match from {
            DType::I64 => *x.cast::<i64>().add(i),
            DType::U32 => *x.cast::<u32>().add(i) as i64,
            DType::U8 => i64::from(*x.add(i)),
            DType::Bool => i64::from(*x.add(i) != 0),
            _ => *x.cast::<i32>().add(i) as i64,
        }
    }
}

/// Converts integers and bools: low bits kept, sign extended from signed ones; bools are 0 and 1, and of what is not 0.
///
/// # Safety
/// x and y cover n elements of their dtypes.
unsafe fn convert_integers(from: DType, x: *const u8, to: DType, y: *mut u8, n: usize) {
    // SAFETY: indices stay below n.
    unsafe {
        for i in 0..n {
            let value = integer(from, x, i);
            match to {
                DType::I64 => *y.cast::<i64>().add(i) = value,
                DType::U8 => *y.add(i) = value as u8,
                DType::Bool => *y.add(i) = u8::from(value != 0),
                _ => *y.cast::<u32>().add(i) = value as u32,
            }
        }
    }
}

/// Rounds `n` values at x to halves and widens them again.
///
/// # Safety
/// x covers n values.
pub(super) unsafe fn round(to: DType, x: *mut f32, n: usize) {
    let mut halves = [0u16; BATCH];
    for at in (0..n).step_by(BATCH) {
        // SAFETY: the batch lies below n, and the buffer holds one.
        unsafe {
            let (x, count) = (x.add(at), BATCH.min(n - at));
            write_floats(to, x, halves.as_mut_ptr().cast(), count);
            read_floats(to, halves.as_ptr().cast(), x, count);
        }
    }
}

/// Widens stored halves to f32.
pub(super) fn widen(exec: &Exec<'_>, from: DType, x: *const u8, y: *mut f32, n: usize) -> Result<()> {
    convert(exec, from, x, DType::F32, y.cast(), n)
}

/// Narrows f32 to stored halves.
pub(super) fn narrow(exec: &Exec<'_>, to: DType, x: *const f32, y: *mut u8, n: usize) -> Result<()> {
    convert(exec, DType::F32, x.cast(), to, y, n)
}

/// `cast` of the op table.
pub(super) fn cast(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (from, to, n) = (call.meta(0).dtype, call.output.dtype(), call.output.shape().elements());
    convert(exec, from, call.f32(0)?.cast(), to, call.output.host()?, n)
}

/// Converts `n` elements, spread over the threads.
fn convert(exec: &Exec<'_>, from: DType, x: *const u8, to: DType, y: *mut u8, n: usize) -> Result<()> {
    let (x, y) = (Shared(x.cast_mut()), Shared(y));
    chunks(exec, n, GRAIN, |start, end| {
        let mut floats = [0.0f32; BATCH];
        for at in (start..end).step_by(BATCH) {
            let count = BATCH.min(end - at);
            // SAFETY: both cover n elements of their types, aligned as the views promise; chunks are disjoint.
            unsafe {
                let (x, y) = (x.get().add(at * from.size()), y.get().add(at * to.size()));
                if from == to {
                    y.copy_from_nonoverlapping(x, count * from.size());
                } else if !from.is_float() && !to.is_float() {
                    convert_integers(from, x, to, y, count);
                } else if from == DType::F64 || to == DType::F64 && !from.is_float() {
                    convert_doubles(from, x, to, y, count);
                } else {
                    read_floats(from, x, floats.as_mut_ptr(), count);
                    write_floats(to, floats.as_ptr(), y, count);
                }
            }
        }
    })
}
