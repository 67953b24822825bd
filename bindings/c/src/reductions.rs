//! Reductions.

// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.

use crate::context::adead_context;
use crate::op::{run, run_guarded};
use crate::reduce::reduction;
use crate::status::{adead_status, guard};
use crate::tensor::{adead_dtype, adead_tensor};
use adead_core::{Attrs, Op};

/// The sum over some or all axes; +0 for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_sum(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    keepdim: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Sum, &reduction(axis, keepdim), &[x], out) }
}

/// The mean over some or all axes; NaN for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_mean(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    keepdim: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Mean, &reduction(axis, keepdim), &[x], out) }
}

/// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_max(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    keepdim: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Max, &reduction(axis, keepdim), &[x], out) }
}

/// The index of the first maximum. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// `dtype` is the type of the index: i64, i32 or u32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_argmax(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    keepdim: i32,
    dtype: adead_dtype,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let attrs = Attrs { dtype: Some(crate::tensor::dtype(dtype)?), ..reduction(axis, keepdim) };
        // SAFETY: the caller vouches for the pointers.
        unsafe { run(context, Op::Argmax, &attrs, &[x], out) }
    })
}

/// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_min(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    keepdim: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Min, &reduction(axis, keepdim), &[x], out) }
}

/// The index of the first minimum. `invalid_argument` for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// `dtype` is the type of the index: i64, i32 or u32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_argmin(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    keepdim: i32,
    dtype: adead_dtype,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let attrs = Attrs { dtype: Some(crate::tensor::dtype(dtype)?), ..reduction(axis, keepdim) };
        // SAFETY: the caller vouches for the pointers.
        unsafe { run(context, Op::Argmin, &attrs, &[x], out) }
    })
}

/// The product over some or all axes; 1 for no elements.
///
/// `axis` is one axis (negative ones count from the end) or `ADEAD_AXIS_ALL`. `keepdim` not 0 keeps it, with length 1.
/// For several axes, set the attribute `axes` and call `adead_op_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_prod(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    keepdim: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Prod, &reduction(axis, keepdim), &[x], out) }
}
