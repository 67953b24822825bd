//! Tensors: shaped values that share their storage when cloned.

use crate::call::{asked, made};
use crate::context::adead_context;
use crate::pointers::{Out, array, dimensions, fail, reference, text};
use crate::status::{Names, adead_status, guard, guard_destroy};
use adead_core::{DType, Result, Tensor};
use std::ffi::{c_char, c_void};

/// A shaped value. Its contents never change, so threads may share one.
pub struct adead_tensor(pub(crate) Tensor);
// Code relies on this: a handle's address is its Tensor's, so an array of handles is one of references to Tensors.
const _: () = assert!(std::mem::offset_of!(adead_tensor, 0) == 0);

/// The most dimensions that a tensor may have.
pub const ADEAD_MAX_RANK: usize = 8;
const _: () = assert!(ADEAD_MAX_RANK == adead_core::MAX_RANK);

/// The type of elements, one of `ADEAD_DTYPE_…`.
pub type adead_dtype = i32;

/// Returns the dtype of a number.
pub(crate) fn dtype(code: adead_dtype) -> Result<DType> {
    match u32::try_from(code).ok().and_then(DType::from_code) {
        Some(dtype) => Ok(dtype),
        None => fail!(InvalidArgument, "dtype is {code}; it must be one of ADEAD_DTYPE_…"),
    }
}

/// Returns the name of a dtype, such as "f32", or NULL for an unknown number. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_dtype_name(dtype: adead_dtype) -> *const c_char {
    static NAMES: Names = Names::new();
    NAMES.get(usize::try_from(dtype).ok(), &mut DType::ALL.iter().map(|dtype| dtype.name()))
}

/// Returns the bytes of one element; 0 for an unknown number.
#[unsafe(no_mangle)]
pub extern "C" fn adead_dtype_size(dtype: adead_dtype) -> usize {
    crate::tensor::dtype(dtype).map_or(0, DType::size)
}

/// Creates a tensor from a copy of the `bytes` bytes at `data`. Elements are in native byte order, row-major; f16 and
/// bf16 are given by their bits. Their number is the product of `dims`. The rank is 0 to 8; rank 0 is a scalar.
/// `shape_mismatch` if `bytes` is not the size that dtype and dims need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_create(
    dtype: adead_dtype,
    dims: *const usize,
    rank: usize,
    data: *const c_void,
    bytes: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (out, dims, data) =
            unsafe { (Out::new(out, "out")?, dimensions(dims, rank)?, array(data.cast::<u8>(), bytes, "data")?) };
        out.give(adead_tensor(Tensor::from_bytes(data, crate::tensor::dtype(dtype)?, dims)?));
        Ok(())
    })
}

/// Creates a tensor of zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_zeros(
    dtype: adead_dtype,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (out, dims) = unsafe { (Out::new(out, "out")?, dimensions(dims, rank)?) };
        out.give(adead_tensor(Tensor::zeros(crate::tensor::dtype(dtype)?, dims)?));
        Ok(())
    })
}

/// Destroys a tensor; NULL is allowed. Its clones and reshapes stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_destroy(tensor: *mut adead_tensor) {
    guard_destroy(tensor);
}

/// Creates another handle to the same values, without a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_clone(tensor: *const adead_tensor, out: *mut *mut adead_tensor) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(tensor, "tensor", out, |tensor| Ok(adead_tensor(tensor.0.clone()))) }
}

/// Creates a handle to the same values in another shape, without a copy. `shape_mismatch` if the number of elements
/// differs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_reshape(
    tensor: *const adead_tensor,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (tensor, dims, out) =
            unsafe { (reference(tensor, "tensor")?, dimensions(dims, rank)?, Out::new(out, "out")?) };
        out.give(adead_tensor(tensor.0.reshape(dims)?));
        Ok(())
    })
}

/// Returns the type of the elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_dtype(tensor: *const adead_tensor, out: *mut adead_dtype) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.dtype() as adead_dtype)) }
}

/// Returns the number of dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_rank(tensor: *const adead_tensor, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.dims().len())) }
}

/// Returns the dimensions, as many as the rank. They live as long as the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_dims(tensor: *const adead_tensor, out: *mut *const usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.dims().as_ptr())) }
}

/// Returns the bytes of all elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_bytes(tensor: *const adead_tensor, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.byte_len())) }
}

/// Returns the elements, in native byte order, row-major, at a multiple of 64 bytes. They stay valid until the tensor
/// and all its clones are destroyed. If the values are only on a GPU, the first call waits for them and copies them to
/// host memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_data(tensor: *const adead_tensor, out: *mut *const c_void) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.host_bytes()?.as_ptr().cast())) }
}

/// Copies a tensor's values to one of the context's devices, named as for `adead_context_open`. The call may return
/// while the copy is in progress. `"cpu"` starts a copy to host memory instead. Clones, reshapes and rows share copies.
/// Operations on the device use the copy, and their results stay on the device that computed them. `invalid_argument`
/// for a device that the context does not have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_to(
    context: *const adead_context,
    tensor: *const adead_tensor,
    device: *const c_char,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, tensor, device) =
            unsafe { (reference(context, "context")?, reference(tensor, "tensor")?, text(device, "device")?) };
        context.0.to(&tensor.0, device)?;
        Ok(())
    })
}

/// Returns whether a tensor's values are on the device with an id, or for `"cpu"` in host memory: 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_is_on(
    tensor: *const adead_tensor,
    device: *const c_char,
    out: *mut i32,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (tensor, device, out) =
            unsafe { (reference(tensor, "tensor")?, text(device, "device")?, Out::new(out, "out")?) };
        out.write(tensor.0.is_on(device).into());
        Ok(())
    })
}

/// Copies all elements to `dst`. `invalid_argument` unless `bytes` equals the tensor's `adead_tensor_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_read(
    tensor: *const adead_tensor,
    dst: *mut c_void,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let tensor = unsafe { reference(tensor, "tensor") }?;
        let own = tensor.0.byte_len();
        if bytes != own {
            fail!(InvalidArgument, "bytes is {bytes}; the tensor has {own}");
        }
        if bytes > 0 {
            if dst.is_null() {
                return Err(crate::pointers::null("dst"));
            }
            // SAFETY: `dst` has `bytes` bytes, and nothing writes a tensor's contents.
            unsafe { dst.cast::<u8>().copy_from_nonoverlapping(tensor.0.host_bytes()?.as_ptr(), bytes) };
        }
        Ok(())
    })
}
