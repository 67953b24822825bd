//! Elementwise operations.

// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.

use crate::context::adead_context;
use crate::op::{run, run_guarded};
use crate::pointers::fail;
use crate::status::{adead_status, guard};
use crate::tensor::adead_tensor;
use adead_core::contract::GeluForm;
use adead_core::{Attrs, Op};

/// The form of gelu, one of `ADEAD_GELU_…`.
pub type adead_gelu_form = i32;

/// `a + b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_add(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Add, &Attrs::DEFAULT, &[a, b], out) }
}

/// `a − b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_sub(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Sub, &Attrs::DEFAULT, &[a, b], out) }
}

/// `a·b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_mul(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Mul, &Attrs::DEFAULT, &[a, b], out) }
}

/// `a / b`, element by element with NumPy's broadcasting. Both have the same dtype: f32, f16 or bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_div(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Div, &Attrs::DEFAULT, &[a, b], out) }
}

/// The larger of a and b, element by element with NumPy's broadcasting; NaN propagates, and −0 < +0. Both have the same dtype: f32, f16 or bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_maximum(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Maximum, &Attrs::DEFAULT, &[a, b], out) }
}

/// The smaller of a and b, element by element with NumPy's broadcasting; NaN propagates, and −0 < +0. Both have the same dtype: f32, f16 or bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_minimum(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Minimum, &Attrs::DEFAULT, &[a, b], out) }
}

/// `a^b`, element by element with NumPy's broadcasting; NaN for a finite a < 0 and a finite b that is not an integer. Both have the same dtype: f32, f16 or bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_pow(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Pow, &Attrs::DEFAULT, &[a, b], out) }
}

/// Whether a equals b, element by element with NumPy's broadcasting; NaN equals nothing, and −0 equals +0. Takes any dtype, the same for both. Returns bool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_equal(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Equal, &Attrs::DEFAULT, &[a, b], out) }
}

/// Whether a differs from b, element by element with NumPy's broadcasting; true for NaN. Takes any dtype, the same for both. Returns bool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_not_equal(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::NotEqual, &Attrs::DEFAULT, &[a, b], out) }
}

/// Whether `a < b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_less(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Less, &Attrs::DEFAULT, &[a, b], out) }
}

/// Whether `a ≤ b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_less_equal(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::LessEqual, &Attrs::DEFAULT, &[a, b], out) }
}

/// Whether `a > b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_greater(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Greater, &Attrs::DEFAULT, &[a, b], out) }
}

/// Whether `a ≥ b`, element by element with NumPy's broadcasting; false for NaN. Takes any dtype, the same for both. Returns bool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_greater_equal(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::GreaterEqual, &Attrs::DEFAULT, &[a, b], out) }
}

/// `x·alpha`, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_scale(
    context: *const adead_context,
    x: *const adead_tensor,
    alpha: f32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Scale, &Attrs { alpha, ..Attrs::default() }, &[x], out) }
}

/// `−x`, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_neg(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Neg, &Attrs::DEFAULT, &[x], out) }
}

/// `|x|`, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_abs(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Abs, &Attrs::DEFAULT, &[x], out) }
}

/// `e^x`, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_exp(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Exp, &Attrs::DEFAULT, &[x], out) }
}

/// The natural logarithm, element by element; NaN if x < 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_log(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Log, &Attrs::DEFAULT, &[x], out) }
}

/// The square root, element by element; NaN if x < 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_sqrt(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Sqrt, &Attrs::DEFAULT, &[x], out) }
}

/// `1 / sqrt(x)`, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_rsqrt(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Rsqrt, &Attrs::DEFAULT, &[x], out) }
}

/// `max(x, 0)`, element by element; NaN stays NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_relu(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Relu, &Attrs::DEFAULT, &[x], out) }
}

/// `1 / (1 + e^−x)`, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_sigmoid(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Sigmoid, &Attrs::DEFAULT, &[x], out) }
}

/// The hyperbolic tangent, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_tanh(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Tanh, &Attrs::DEFAULT, &[x], out) }
}

/// The Gaussian error linear unit, with erf or tanh, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_gelu(
    context: *const adead_context,
    x: *const adead_tensor,
    form: adead_gelu_form,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let form = match [GeluForm::Erf, GeluForm::Tanh].into_iter().find(|&known| known as adead_gelu_form == form) {
            Some(form) => form,
            None => fail!(InvalidArgument, "form is {form}; it must be one of ADEAD_GELU_…"),
        };
        // SAFETY: the caller vouches for the pointers.
        unsafe { run(context, Op::Gelu, &Attrs { form, ..Attrs::default() }, &[x], out) }
    })
}

/// `x·sigmoid(x)`, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_silu(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Silu, &Attrs::DEFAULT, &[x], out) }
}

/// The largest integer ≤ x, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_floor(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Floor, &Attrs::DEFAULT, &[x], out) }
}

/// The nearest integer, element by element; ties go to even.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_round(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Round, &Attrs::DEFAULT, &[x], out) }
}

/// The error function, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_erf(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Erf, &Attrs::DEFAULT, &[x], out) }
}

/// `minimum(maximum(x, min), max)`, element by element; NaN propagates, and −0 < +0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_clamp(
    context: *const adead_context,
    x: *const adead_tensor,
    min: f32,
    max: f32,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Clamp, &Attrs { min, max, ..Attrs::default() }, &[x], out) }
}

/// The sine of x in radians, element by element; NaN if x is infinite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_sin(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Sin, &Attrs::DEFAULT, &[x], out) }
}

/// The cosine of x in radians, element by element; NaN if x is infinite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_cos(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Cos, &Attrs::DEFAULT, &[x], out) }
}

/// `log(1 + x)`, also accurate near 0, element by element; NaN if x < −1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_log1p(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Log1p, &Attrs::DEFAULT, &[x], out) }
}

/// `e^x − 1`, also accurate near 0, element by element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_expm1(
    context: *const adead_context,
    x: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Expm1, &Attrs::DEFAULT, &[x], out) }
}
