//! Tensors: shaped values that share their storage when cloned.

use crate::call::{asked, made};
use crate::context::adead_context;
use crate::pointers::{Out, array, dimensions, fail, reference, text};
use crate::status::{Names, adead_status, guard, guard_destroy};
use adead_core::{DType, Result, Tensor};
use std::ffi::{c_char, c_void};

/// A shaped value. Its contents never change, so threads may share one.
pub struct adead_tensor(pub(crate) Tensor);
// So an array of handles is one of tensors.
const _: () = assert!(std::mem::offset_of!(adead_tensor, 0) == 0);

/// The most dimensions that a tensor may have.
pub const ADEAD_MAX_RANK: usize = 8;
const _: () = assert!(ADEAD_MAX_RANK == adead_core::MAX_RANK);

/// The type of elements, one of `ADEAD_DTYPE_…`.
pub type adead_dtype = i32;

/// The dtype of that number.
pub(crate) fn dtype(code: adead_dtype) -> Result<DType> {
    match u32::try_from(code).ok().and_then(DType::from_code) {
        Some(dtype) => Ok(dtype),
        None => fail!(InvalidArgument, "dtype is {code}; it must be one of ADEAD_DTYPE_…"),
    }
}

/// The name of a dtype, such as "f32"; NULL for a number that is none. Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_dtype_name(dtype: adead_dtype) -> *const c_char {
    static NAMES: Names = Names::new();
    NAMES.get(usize::try_from(dtype).ok(), &mut DType::ALL.iter().map(|dtype| dtype.name()))
}

/// Bytes of one element; 0 for a number that is no dtype.
#[unsafe(no_mangle)]
pub extern "C" fn adead_dtype_size(dtype: adead_dtype) -> usize {
    crate::tensor::dtype(dtype).map_or(0, DType::size)
}

/// A tensor of the `bytes` bytes at `data`, which are copied: elements in native byte order, row-major, as many as
/// `dims` multiply to; f16 and bf16 by their bits. Rank 0 to 8, rank 0 is a scalar. `shape_mismatch` if `bytes` is not
/// what dtype and dims take.
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

/// A tensor of zeros.
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

/// Gives a tensor up; NULL is fine. Its clones and reshapes stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_destroy(tensor: *mut adead_tensor) {
    guard_destroy(tensor);
}

/// Another handle of the same values, without a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_clone(tensor: *const adead_tensor, out: *mut *mut adead_tensor) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(tensor, "tensor", out, |tensor| Ok(adead_tensor(tensor.0.clone()))) }
}

/// The same values in another shape of as many elements, without a copy. `shape_mismatch` if their number differs.
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

/// The type of the elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_dtype(tensor: *const adead_tensor, out: *mut adead_dtype) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.dtype() as adead_dtype)) }
}

/// The number of dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_rank(tensor: *const adead_tensor, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.dims().len())) }
}

/// The dimensions, as many as its rank. They belong to the tensor and go with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_dims(tensor: *const adead_tensor, out: *mut *const usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.dims().as_ptr())) }
}

/// Bytes of all elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_bytes(tensor: *const adead_tensor, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.byte_len())) }
}

/// The elements, in native byte order, row-major, on a multiple of 64 bytes. They belong to the tensor and its clones
/// and go with the last of them. Values that are on a GPU only are waited for and brought to host memory, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_tensor_data(tensor: *const adead_tensor, out: *mut *const c_void) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(tensor, "tensor", out, |tensor| Ok(tensor.0.host_bytes()?.as_ptr().cast())) }
}

/// Puts a copy of a tensor's values on one of the context's devices, by its name as `adead_context_open` takes it, and returns
/// when they may be on their way; `"cpu"` starts their way to host memory instead. Clones, reshapes and rows share copies;
/// operations find them there, and leave their results where they compute. `invalid_argument` for a device that the context
/// has not.
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

/// Whether a tensor's values are in host memory (`"cpu"`) or on the device of that id.
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

/// Copies all elements to `dst`. `invalid_argument` unless `bytes` is exactly the tensor's `adead_tensor_bytes`.
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
            // SAFETY: `dst` has `bytes` bytes, and a tensor's contents are nobody's to write.
            unsafe { dst.cast::<u8>().copy_from_nonoverlapping(tensor.0.host_bytes()?.as_ptr(), bytes) };
        }
        Ok(())
    })
}
