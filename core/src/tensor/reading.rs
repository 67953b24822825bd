//! Reads a tensor's values: on the host, and as an operand.

use super::{Element, Tensor};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::View;
use std::fmt;

/// Tensors in host memory of fewer bytes than this keep no copy on a device: uploading them again is as fast as finding a copy.
const KEPT: usize = 512;

impl Tensor {
    /// Returns the elements' bytes, native endian and row-major. Values that are on devices only are copied to host memory first.
    ///
    /// # Panics
    /// If the copy fails, because the device was lost or memory ran out. [`Tensor::host_bytes`] returns the error instead.
    pub fn bytes(&self) -> &[u8] {
        match self.host_bytes() {
            Ok(bytes) => bytes,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the elements' bytes, as [`Tensor::bytes`] does, or the error of copying them to host memory.
    pub fn host_bytes(&self) -> Result<&[u8]> {
        // SAFETY: there are that many bytes. All were written when the tensor was made or its values were copied from a device,
        // and they do not move before it is dropped.
        Ok(unsafe { std::slice::from_raw_parts(self.host()?.as_ptr(), self.byte_len()) })
    }

    /// Returns the elements. Values that are on devices only are copied to host memory first. `dtype_mismatch` if the elements
    /// are not of this type; otherwise the errors of that copy.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if self.0.meta.dtype != T::DTYPE {
            fail!(DtypeMismatch, "the tensor is {}, not {}", self.0.meta.dtype, T::DTYPE);
        }
        // SAFETY: the elements are aligned and of this type; otherwise as in `host_bytes`.
        Ok(unsafe { std::slice::from_raw_parts(self.host()?.as_ptr().cast(), self.len()) })
    }

    /// Returns a copy of the elements. Errors as for [`Tensor::as_slice`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.as_slice::<T>()?.to_vec())
    }

    /// Returns the elements of an f64 tensor. Errors as for [`Tensor::as_slice`].
    pub fn as_doubles(&self) -> Result<&[f64]> {
        if self.dtype() != DType::F64 {
            fail!(DtypeMismatch, "the tensor is {}, not f64", self.dtype());
        }
        // SAFETY: as in `as_slice`.
        Ok(unsafe { std::slice::from_raw_parts(self.host()?.as_ptr().cast(), self.len()) })
    }

    /// Returns the elements of a bool tensor. Values that are on devices only are copied to host memory first. `dtype_mismatch`
    /// for another dtype; otherwise the errors of that copy.
    pub fn to_bools(&self) -> Result<Vec<bool>> {
        if self.dtype() != DType::Bool {
            fail!(DtypeMismatch, "the tensor is {}, not bool", self.dtype());
        }
        Ok(self.host_bytes()?.iter().map(|&byte| byte != 0).collect())
    }

    /// Returns the tensor as an operand.
    #[inline]
    pub fn view(&self) -> View<'_> {
        let (root, at) = self.root();
        match root.own_memory() {
            // SAFETY: the memory is aligned and long enough, and never written while the tensor lives. A part lies inside its
            // origin.
            Some(own) if root.byte_len() < KEPT => unsafe { View::from_raw(own.add(at), &self.0.meta) },
            _ => View::tensor(root, at, &self.0.meta),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}", self.0.meta)?;
        // Formatting a tensor must not copy values from a device.
        if self.is_on_host()
            && let Ok(values) = self.as_slice::<f32>()
        {
            let shown = &values[..values.len().min(8)];
            write!(f, ", {shown:?}{}", if values.len() > shown.len() { " …" } else { "" })?;
        }
        f.write_str(")")
    }
}
