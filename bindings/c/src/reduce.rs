//! Operations along rows and lines.

use crate::context::adead_context;
use crate::op::{run, run_guarded};
use crate::status::{adead_status, guard};
use crate::tensor::{adead_dtype, adead_tensor};
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

/// `adead_tensor_layernorm` of x + residual, two tensors of one shape: the bits are those of `adead_tensor_add` followed by it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_add_layernorm(
    context: *const adead_context,
    x: *const adead_tensor,
    residual: *const adead_tensor,
    gamma: *const adead_tensor,
    beta: *const adead_tensor,
    eps: f32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Layernorm, &Attrs { eps, ..Attrs::default() }, &[x, gamma, beta, residual], out) }
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

/// `adead_tensor_rmsnorm` of x + residual, two tensors of one shape: the bits are those of `adead_tensor_add` followed by it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_add_rmsnorm(
    context: *const adead_context,
    x: *const adead_tensor,
    residual: *const adead_tensor,
    gamma: *const adead_tensor,
    eps: f32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Rmsnorm, &Attrs { eps, ..Attrs::default() }, &[x, gamma, residual], out) }
}

/// Pairs of elements of x's last axis, turned by angles: (a, b) becomes `(a·cos − b·sin, b·cos + a·sin)`. A pair is element i of each
/// half or, if `interleaved` is not 0, elements 2i and 2i + 1. cos and sin have one shape, which broadcasts to x's with the last
/// dimension halved: such as `[S, D/2]` for x `[B, H, S, D]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_rope(
    context: *const adead_context,
    x: *const adead_tensor,
    cos: *const adead_tensor,
    sin: *const adead_tensor,
    interleaved: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    let attrs = Attrs { interleaved: interleaved != 0, ..Attrs::default() };
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Rope, &attrs, &[x, cos, sin], out) }
}

/// The sums of an axis's elements up to each (a negative axis counts from the end). Rank 1 or more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_cumsum(
    context: *const adead_context,
    x: *const adead_tensor,
    axis: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Cumsum, &reduction(axis, 0), &[x], out) }
}

/// The k greatest elements along an axis (a negative one counts from the end), the greatest first, in the order of `adead_tensor_max`:
/// NaN comes first, and of equals the one with the lower index. `invalid_argument` if the axis has fewer than k.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_topk(
    context: *const adead_context,
    x: *const adead_tensor,
    k: u32,
    axis: i32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Topk, &Attrs { k, axis: along(axis), ..Attrs::default() }, &[x], out) }
}

/// The indices of what `adead_tensor_topk` gives, of type `dtype`: i64, i32 or u32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_argtopk(
    context: *const adead_context,
    x: *const adead_tensor,
    k: u32,
    axis: i32,
    dtype: adead_dtype,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let dtype = Some(crate::tensor::dtype(dtype)?);
        // SAFETY: the caller vouches for the pointers.
        unsafe { run(context, Op::Argtopk, &Attrs { k, axis: along(axis), dtype, ..Attrs::default() }, &[x], out) }
    })
}
