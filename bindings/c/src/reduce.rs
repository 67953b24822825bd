//! Operations along an axis: softmax, normalisation, rotation, cumulative sums, the greatest elements.

use crate::context::adead_context;
use crate::op::{run, run_guarded};
use crate::status::{adead_status, guard};
use crate::tensor::{adead_dtype, adead_tensor};
use adead_core::{Attrs, Axis, Op};

/// Stands for all axes: the operation works on the row-major flattening of x.
pub const ADEAD_AXIS_ALL: i32 = i32::MIN;

fn along(axis: i32) -> Axis {
    if axis == ADEAD_AXIS_ALL { Axis::All } else { Axis::At(axis) }
}

/// Returns the attributes of a reduction.
pub(crate) fn reduction(axis: i32, keepdim: i32) -> Attrs {
    Attrs { axis: along(axis), keepdim: keepdim != 0, ..Attrs::default() }
}

/// Computes the softmax along an axis: `e^x` over its sum. Negative axes count from the end. x has rank 1 or more.
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

/// Computes `(x - mean) / sqrt(variance + eps)·gamma + beta` over the last axis: x `[…, N]`, gamma and beta `[N]` or NULL. The
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

/// Computes `adead_tensor_layernorm` of x + residual, two tensors of the same shape. The bits equal those of `adead_tensor_add`
/// followed by `adead_tensor_layernorm`.
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

/// Computes `x / sqrt(mean(x²) + eps)·gamma` over the last axis: x `[…, N]`, gamma `[N]` or NULL. The usual eps is 1e-5.
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

/// Computes `adead_tensor_rmsnorm` of x + residual, two tensors of the same shape. The bits equal those of `adead_tensor_add`
/// followed by `adead_tensor_rmsnorm`.
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

/// Rotates pairs of elements of x's last axis by angles: (a, b) becomes `(a·cos − b·sin, b·cos + a·sin)`. A pair is element i of
/// each half or, if `interleaved` is not 0, elements 2i and 2i + 1. cos and sin have the same shape. It broadcasts to x's shape
/// with the last dimension halved, such as `[S, D/2]` for x `[B, H, S, D]`.
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

/// Computes cumulative sums along an axis: element i of the result is the sum of elements 0 to i. Negative axes count from the
/// end. x has rank 1 or more.
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

/// Returns the k greatest elements along an axis, greatest first; negative axes count from the end. The order is that of
/// `adead_tensor_max`: NaN comes first, and of equal elements the one with the lower index. `invalid_argument` if the axis has
/// fewer than k elements.
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

/// Returns the indices of the elements that `adead_tensor_topk` returns. `dtype` is i64, i32 or u32.
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
