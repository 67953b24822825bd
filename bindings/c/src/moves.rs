//! Operations that move and convert elements.

use crate::context::adead_context;
use crate::op::{run, run_guarded};
use crate::pointers::{array, fail};
use crate::status::{adead_status, guard};
use crate::tensor::{adead_dtype, adead_tensor};
use adead_core::{Attrs, Axis, MAX_RANK, Op, PerAxis, Permutation, Result};

/// Looks up rows of a table by id: table `[V, …]` of any dtype, ids of any shape, i32, i64 or u32. The result is
/// `[ids…, the table's row…]`. `invalid_argument` names the position of an id below 0 or not below V.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_embedding(
    context: *const adead_context,
    table: *const adead_tensor,
    ids: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Embedding, &Attrs::DEFAULT, &[table, ids], out) }
}

/// Permutes the axes: axis i of the result is axis `perm[i]` of x, which has `rank` axes. `perm` NULL (with rank 0)
/// reverses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_transpose(
    context: *const adead_context,
    x: *const adead_tensor,
    perm: *const i32,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let mut attrs = Attrs::default();
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            if rank > MAX_RANK {
                fail!(InvalidArgument, "rank is {rank}; a permutation has at most {MAX_RANK} axes");
            }
            if !perm.is_null() || rank > 0 {
                attrs.perm = Permutation::new(array(perm, rank, "perm")?)?;
            }
            run(context, Op::Transpose, &attrs, &[x], out)
        }
    })
}

/// Joins `count` tensors, at least one, along an axis; negative axes count from the end. All have the same dtype and
/// rank, and their dimensions differ only along that axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_concat(
    context: *const adead_context,
    tensors: *const *const adead_tensor,
    count: usize,
    axis: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let attrs = Attrs { axis: Axis::At(axis), ..Attrs::default() };
        // SAFETY: the caller vouches for the pointers.
        unsafe { run(context, Op::Concat, &attrs, array(tensors, count, "tensors")?, out) }
    })
}

/// Reads `count` numbers for axes.
///
/// # Safety
/// The pointer is NULL and `count` is 0, or it points to `count` numbers.
unsafe fn per_axis(numbers: *const i32, count: usize, name: &str) -> Result<PerAxis> {
    if numbers.is_null() {
        return Ok(PerAxis::default());
    }
    if count > MAX_RANK {
        fail!(InvalidArgument, "rank is {count}; a tensor has at most {MAX_RANK} axes");
    }
    // SAFETY: the caller vouches for the pointer.
    PerAxis::new(unsafe { array(numbers, count, name)? })
}

/// Slices the first `rank` axes of x: axis i from `start[i]` to before `stop[i]`, by steps of `step[i]`. Negative
/// starts and stops count from the end; those outside an axis are clamped to its ends. `step` NULL: every step is 1;
/// `start` NULL: 0; `stop` NULL: the ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_slice(
    context: *const adead_context,
    x: *const adead_tensor,
    start: *const i32,
    stop: *const i32,
    step: *const i32,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (start, stop) = (per_axis(start, rank, "start")?, per_axis(stop, rank, "stop")?);
            let attrs = Attrs { start, stop, step: per_axis(step, rank, "step")?, ..Attrs::default() };
            run(context, Op::Slice, &attrs, &[x], out)
        }
    })
}

/// Pads the first `rank` axes of x with `before[i]` elements before and `after[i]` after axis i. The padding is the
/// element of `value`, a tensor of x's dtype with one element. Elements of x are `step[i]` apart, with copies of it between them.
/// `before` or `after` NULL: none; `step` NULL: 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_pad(
    context: *const adead_context,
    x: *const adead_tensor,
    value: *const adead_tensor,
    before: *const i32,
    after: *const i32,
    step: *const i32,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (start, stop) = (per_axis(before, rank, "before")?, per_axis(after, rank, "after")?);
            let attrs = Attrs { start, stop, step: per_axis(step, rank, "step")?, ..Attrs::default() };
            run(context, Op::Pad, &attrs, &[x, value], out)
        }
    })
}

/// Gathers elements of x along an axis by index; negative axes count from the end. ids are i32, i64 or u32 and have x's
/// shape except along the axis; the result has their shape. `invalid_argument` names the position of an id below 0 or
/// not below the axis's size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_gather(
    context: *const adead_context,
    x: *const adead_tensor,
    ids: *const adead_tensor,
    axis: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Gather, &Attrs { axis: Axis::At(axis), ..Attrs::default() }, &[x, ids], out) }
}

/// Selects elements of a where the condition is true, and of b elsewhere, with NumPy's broadcasting. The condition is
/// bool. a and b have the same dtype, of any kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_where(
    context: *const adead_context,
    condition: *const adead_tensor,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Where, &Attrs::DEFAULT, &[condition, a, b], out) }
}

/// Converts x to another dtype. Floats widen exactly and narrow to nearest even. Floats become integers by rounding
/// towards zero with saturation, and NaN becomes 0. Integers keep their low bits. As a bool, every value except 0 is
/// true, including NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_cast(
    context: *const adead_context,
    x: *const adead_tensor,
    dtype: adead_dtype,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let attrs = Attrs { dtype: Some(crate::tensor::dtype(dtype)?), ..Attrs::default() };
        // SAFETY: the caller vouches for the pointers.
        unsafe { run(context, Op::Cast, &attrs, &[x], out) }
    })
}
