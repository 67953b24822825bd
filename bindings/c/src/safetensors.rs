//! Safetensors files, which hold weights.

use crate::call::asked;
use crate::pointers::{Out, dimensions, fail, reference, text};
use crate::status::{adead_status, guard, guard_destroy};
use crate::tensor::adead_tensor;
use adead::nn::Weights;
use adead_c_support::c_text;
use std::ffi::{CString, c_char};

/// An open safetensors file. Opening reads only its header; `adead_safetensors_tensor` reads a tensor. Threads may
/// share one.
pub struct adead_safetensors {
    pub(crate) weights: Weights,
    names: Vec<CString>,
}

/// Opens a safetensors file. `io` if it can't be read, `invalid_argument` if it is not a safetensors file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_safetensors_open(path: *const c_char, out: *mut *mut adead_safetensors) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (path, out) = unsafe { (text(path, "path")?, Out::new(out, "out")?) };
        let weights = Weights::open(path)?;
        let names = weights.names().iter().map(|name| c_text(name)).collect();
        out.give(adead_safetensors { weights, names });
        Ok(())
    })
}

/// Closes a file; NULL is allowed. Tensors and modules made from it stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_safetensors_close(file: *mut adead_safetensors) {
    guard_destroy(file);
}

/// Returns the number of tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_safetensors_count(file: *const adead_safetensors, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(file, "file", out, |file| Ok(file.names.len())) }
}

/// Returns the name of tensor `index`, in sorted order. The text lives as long as the file. `invalid_argument` if the
/// file has no tensor `index`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_safetensors_name(
    file: *const adead_safetensors,
    index: usize,
    out: *mut *const c_char,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (file, out) = unsafe { (reference(file, "file")?, Out::new(out, "out")?) };
        match file.names.get(index) {
            Some(name) => out.write(name.as_ptr()),
            None => fail!(InvalidArgument, "index is {index}; there are {} tensors", file.names.len()),
        }
        Ok(())
    })
}

/// Returns whether the file has a tensor with a name: 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_safetensors_contains(
    file: *const adead_safetensors,
    name: *const c_char,
    out: *mut i32,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (file, name, out) = unsafe { (reference(file, "file")?, text(name, "name")?, Out::new(out, "out")?) };
        out.write(file.weights.contains(name).into());
        Ok(())
    })
}

/// Returns a tensor's dimensions and rank. The dimensions live as long as the file. `invalid_argument` if there is no
/// tensor of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_safetensors_dims(
    file: *const adead_safetensors,
    name: *const c_char,
    dims: *mut *const usize,
    rank: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (file, name, dims, rank) = unsafe {
            (reference(file, "file")?, text(name, "name")?, Out::new(dims, "dims")?, Out::new(rank, "rank")?)
        };
        let found = file.weights.dims(name)?;
        dims.write(found.as_ptr());
        rank.write(found.len());
        Ok(())
    })
}

/// Reads a tensor as f32; f16 and bf16 are widened, f64 is rounded. `invalid_argument` if there is no tensor of that name,
/// `shape_mismatch` if its dimensions differ from `dims`, `dtype_mismatch` for other dtypes, `io` if it can't be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_safetensors_tensor(
    file: *const adead_safetensors,
    name: *const c_char,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (file, name, dims, out) =
            unsafe { (reference(file, "file")?, text(name, "name")?, dimensions(dims, rank)?, Out::new(out, "out")?) };
        out.give(adead_tensor(file.weights.tensor(name, dims)?));
        Ok(())
    })
}
