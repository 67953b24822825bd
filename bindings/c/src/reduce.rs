//! Normalisations.

use crate::context::adead_context;
use crate::op::run_guarded;
use crate::status::adead_status;
use crate::tensor::adead_tensor;
use adead_core::{Attrs, Axis, Op};

/// The axis of an operation that works on the row-major flattening of everything.
pub const ADEAD_AXIS_ALL: i32 = i32::MIN;

fn along(axis: i32) -> Axis {
    if axis == ADEAD_AXIS_ALL { Axis::All } else { Axis::At(axis) }
}

/// What a reduction is given.
pub(crate) fn reduction(axis: i32, keepdim: i32) -> Attrs {
    Attrs { axis: along(axis), keepdim: keepdim != 0, ..Attrs::default() }
}

/// `e^x` over its sum, along an axis (negative ones count from the end). Rank 1 or more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_softmax(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Softmax, &reduction(axis, 0), &[x], out) }
}

/// `(x - mean) / sqrt(variance + eps)·gamma + beta` over the last axis: x `[…, N]`, gamma and beta `[N]` or NULL. The
/// usual eps is 1e-5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_layernorm(
    context: *const adead_context,
    x: *const adead_tensor,
    gamma: *const adead_tensor,
    beta: *const adead_tensor,
    eps: f32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Layernorm, &Attrs { eps, ..Attrs::default() }, &[x, gamma, beta], out) }
}

/// `x / sqrt(mean(x²) + eps)·gamma` over the last axis: x `[…, N]`, gamma `[N]` or NULL. The usual eps is 1e-5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_rmsnorm(
    context: *const adead_context,
    x: *const adead_tensor,
    gamma: *const adead_tensor,
    eps: f32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Rmsnorm, &Attrs { eps, ..Attrs::default() }, &[x, gamma], out) }
}
