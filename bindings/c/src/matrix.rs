//! Operations whose work is matrix products.

use crate::context::adead_context;
use crate::op::{run, run_guarded};
use crate::pointers::{self, fail, growing};
use crate::status::{adead_status, guard};
use crate::tensor::adead_tensor;
use adead_c_support::context::{adead_precision, precision};
use adead_core::contract::{Activation, BlockFormat, Precision};
use adead_core::{Attrs, Op, Result};
use std::ptr::null;

/// The function that follows a matrix product, one of `ADEAD_ACTIVATION_…`.
pub type adead_activation = i32;

/// Returns the activation of a number.
pub(crate) fn activation(code: adead_activation) -> Result<Activation> {
    match Activation::ALL.into_iter().find(|&known| known as adead_activation == code) {
        Some(activation) => Ok(activation),
        None => fail!(InvalidArgument, "activation is {code}; it must be one of ADEAD_ACTIVATION_…"),
    }
}

/// The value of `ADEAD_PRECISION_DEFAULT`.
const UNSAID: adead_precision = -1;

/// Returns the precision of a number, `None` for the context's default.
fn said(code: adead_precision) -> Result<Option<Precision>> {
    if code == UNSAID { Ok(None) } else { precision(code).map(Some) }
}

/// Options of a matrix product. Start from `ADEAD_MATMUL_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_matmul_options {
    /// `sizeof(adead_matmul_options)`.
    pub struct_size: usize,
    /// Not 0: a is stored transposed.
    pub trans_a: i32,
    /// Not 0: b is stored transposed.
    pub trans_b: i32,
    /// The factor of the product.
    pub alpha: f32,
    /// The factor of c.
    pub beta: f32,
    /// The tensor that beta multiplies, broadcast to the result. Required if beta is not 0; else it may be NULL.
    pub c: *const adead_tensor,
    /// `[N]`, added to every row. NULL: no bias.
    pub bias: *const adead_tensor,
    /// The function applied last, one of `ADEAD_ACTIVATION_…`.
    pub activation: adead_activation,
    /// The precision, one of `ADEAD_PRECISION_…`. `ADEAD_PRECISION_DEFAULT` is the context's default precision.
    pub precision: adead_precision,
}

// SAFETY: as `Growing` requires; the caller vouches for the pointers where they are used.
growing!(unsafe adead_matmul_options, 48);

/// Computes `activation(alpha·(a·b) + beta·c + bias)`: a `[…, M, K]`, b `[…, K, N]`, result `[…, M, N]`. Leading
/// dimensions are broadcast. All have the same dtype: f32, f16 or bf16. With NULL for `options` it computes `a·b`.
/// `shape_mismatch` names the dimensions that don't fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_matmul(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    options: *const adead_matmul_options,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (attrs, [c, bias]) = matmul_options(options)?;
            run(context, Op::Matmul, &attrs, &[a, b, c, bias], out)
        }
    })
}

/// Reads the options of a matrix product, with c and the bias.
///
/// # Safety
/// `options` is NULL or valid for its type.
pub(crate) unsafe fn matmul_options(options: *const adead_matmul_options) -> Result<(Attrs, [*const adead_tensor; 2])> {
    let attrs = Attrs::default();
    let defaults = adead_matmul_options {
        struct_size: 0,
        trans_a: attrs.trans_a.into(),
        trans_b: attrs.trans_b.into(),
        alpha: attrs.alpha,
        beta: attrs.beta,
        c: null(),
        bias: null(),
        activation: Activation::default() as adead_activation,
        precision: UNSAID,
    };
    // SAFETY: passed on.
    let options = unsafe { pointers::options(options, defaults) }?;
    let attrs = Attrs {
        trans_a: options.trans_a != 0,
        trans_b: options.trans_b != 0,
        alpha: options.alpha,
        beta: options.beta,
        activation: Some(activation(options.activation)?),
        precision: said(options.precision)?,
        ..attrs
    };
    Ok((attrs, [options.c, options.bias]))
}

/// Computes the inner product of two vectors `[K]`. The result is a scalar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_dot(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_tensor,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { run_guarded(context, Op::Dot, &Attrs::DEFAULT, &[a, b], out) }
}

/// Options of attention. Start from `ADEAD_ATTENTION_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_attention_options {
    /// `sizeof(adead_attention_options)`.
    pub struct_size: usize,
    /// Added to the scaled scores; broadcast to `[…, Hq, Sq, Sk]`. NULL: no mask.
    pub mask: *const adead_tensor,
    /// Not 0: query i sees key j when j <= i + (Sk - Sq), so that the last query sees every key.
    pub causal: i32,
    /// The factor of the scores; 0 means 1/sqrt(D).
    pub scale: f32,
    /// The precision, one of `ADEAD_PRECISION_…`. `ADEAD_PRECISION_DEFAULT` is the context's default precision.
    pub precision: adead_precision,
}

// SAFETY: as `Growing` requires; the caller vouches for the pointers where they are used.
growing!(unsafe adead_attention_options, 24);

/// Computes scaled dot-product attention: q `[…, Hq, Sq, D]`, k `[…, Hkv, Sk, D]`, v `[…, Hkv, Sk, Dv]`, result `[…,
/// Hq, Sq, Dv]`. Rank 2 is one head. Hq is a multiple of Hkv, and query head h reads key and value head h / (Hq / Hkv).
/// All have the same dtype: f32, f16 or bf16. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_attention(
    context: *const adead_context,
    q: *const adead_tensor,
    k: *const adead_tensor,
    v: *const adead_tensor,
    options: *const adead_attention_options,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let attrs = Attrs::default();
        let (causal, scale) = (attrs.causal.into(), attrs.scale);
        let defaults = adead_attention_options { struct_size: 0, mask: null(), causal, scale, precision: UNSAID };
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let options = pointers::options(options, defaults)?;
            let precision = said(options.precision)?;
            let attrs = Attrs { causal: options.causal != 0, scale: options.scale, precision, ..attrs };
            run(context, Op::Attention, &attrs, &[q, k, v, options.mask], out)
        }
    })
}

/// Computes `activation(x·w1 + b1)·w2 + b2`: x `[…, D]`, w1 `[D, H]`, b1 `[H]` or NULL, w2 `[H, E]`, b2 `[E]` or NULL,
/// result `[…, E]`. All have the same dtype: f32, f16 or bf16. Values between the products stay f32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_ffn(
    context: *const adead_context,
    x: *const adead_tensor,
    w1: *const adead_tensor,
    b1: *const adead_tensor,
    w2: *const adead_tensor,
    b2: *const adead_tensor,
    activation: adead_activation,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        let attrs = Attrs { activation: Some(crate::matrix::activation(activation)?), ..Attrs::default() };
        // SAFETY: the caller vouches for the pointers.
        unsafe { run(context, Op::Ffn, &attrs, &[x, w1, b1, w2, b2], out) }
    })
}

/// How the elements of a quantised matrix are stored, one of `ADEAD_BLOCK_FORMAT_…`.
pub type adead_block_format = i32;

/// Returns the attributes of an operation on blocks of a format.
fn blocks(code: adead_block_format) -> Result<Attrs> {
    match BlockFormat::ALL.into_iter().find(|&known| known as adead_block_format == code) {
        Some(format) => Ok(Attrs { format: Some(format), ..Attrs::default() }),
        None => fail!(InvalidArgument, "format is {code}; it must be one of ADEAD_BLOCK_FORMAT_…"),
    }
}

/// Computes the product of x and the transpose of w: x f32 `[…, K]`, w a matrix `[N, K]` in quantised blocks, result f32 `[…, N]`. w is a
/// u8 tensor `[N, bytes of a row]`, as in a GGUF file. x is quantised to blocks of 8-bit integers, and sums within a block are exact.
/// `shape_mismatch` if K differs or w's rows are not whole blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_quantized_matmul(
    context: *const adead_context,
    x: *const adead_tensor,
    w: *const adead_tensor,
    format: adead_block_format,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    guard(|| unsafe { run(context, Op::QuantizedMatmul, &blocks(format)?, &[x, w], out) })
}

/// Converts a u8 tensor `[…, bytes of a row]` of quantised blocks to f32, `[…, K]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_dequantize(
    context: *const adead_context,
    w: *const adead_tensor,
    format: adead_block_format,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    guard(|| unsafe { run(context, Op::Dequantize, &blocks(format)?, &[w], out) })
}
