//! Packed matrices: right operands that are packed once and used in many products.

use crate::call::asked;
use crate::context::adead_context;
use crate::matrix::{adead_matmul_options, matmul_options};
use crate::pointers::{Out, reference};
use crate::status::{adead_status, guard, guard_destroy};
use crate::tensor::{adead_dtype, adead_tensor};
use adead_core::{Op, Packed, View};

/// A right operand of matrix products, packed for them in advance. It never changes, so threads may share one.
pub struct adead_packed(Packed);

/// Packs a matrix for many products. b is `[K, N]`, or `[N, K]` if `trans_b` is not 0; f32, f16 or bf16. Products with
/// the packed matrix have the default precision that the context has now (`adead_context_set_precision`). A product
/// with another precision is `invalid_argument`. For f32 the packed matrix takes four bytes per element, with columns
/// rounded up to a multiple of 8, 16 or 32. The caller may destroy b. The packed matrix suits only the context's
/// instruction set. If the context runs everything on one GPU, for products in exact integers the GPU keeps the matrix's
/// digits, and only this context and those made from it can use the packed matrix. `shape_mismatch` unless b has two dimensions, `dtype_mismatch` for integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_packed_create(
    context: *const adead_context,
    b: *const adead_tensor,
    trans_b: i32,
    out: *mut *mut adead_packed,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, b, out) = unsafe { (reference(context, "context")?, reference(b, "b")?, Out::new(out, "out")?) };
        out.give(adead_packed(context.0.pack(&b.0, trans_b != 0)?));
        Ok(())
    })
}

/// Destroys a packed matrix; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_packed_destroy(packed: *mut adead_packed) {
    guard_destroy(packed);
}

/// Returns the dimensions K and N, two values, in this order for both layouts of b. They live as long as the packed
/// matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_packed_dims(packed: *const adead_packed, out: *mut *const usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(packed, "packed", out, |packed| Ok(packed.0.shape().dims().as_ptr())) }
}

/// Returns the dtype of the matrix that was packed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_packed_dtype(packed: *const adead_packed, out: *mut adead_dtype) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(packed, "packed", out, |packed| Ok(packed.0.dtype() as adead_dtype)) }
}

/// Returns the bytes of memory that the packed elements take.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_packed_bytes(packed: *const adead_packed, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(packed, "packed", out, |packed| Ok(packed.0.bytes())) }
}

/// Multiplies a by a packed b. The result equals that of `adead_tensor_matmul`, without the time for packing. a is
/// `[…, M, K]` of b's dtype, the result `[…, M, N]`. `options` may be NULL, and its `trans_b` must be 0.
/// `invalid_argument` if b was packed for another instruction set than the context's, or on another context's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_packed_matmul(
    context: *const adead_context,
    a: *const adead_tensor,
    b: *const adead_packed,
    options: *const adead_matmul_options,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (context, b, out) = (reference(context, "context")?, reference(b, "b")?, Out::new(out, "out")?);
            let (attrs, others) = matmul_options(options)?;
            // The operation's own check reports a NULL a.
            let [a, c, bias] = [a, others[0], others[1]].map(|tensor| tensor.as_ref().map(|tensor| tensor.0.view()));
            out.give(adead_tensor(context.0.run_views(Op::Matmul, &attrs, &[a, Some(View::packed(&b.0)), c, bias])?));
            Ok(())
        }
    })
}
