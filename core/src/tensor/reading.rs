//! Reads a tensor's values: on the host, and as an operand.

use super::{Element, Tensor};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::View;
use std::fmt;

/// Tensors in host memory of fewer bytes than this leave no copy on a device: sending them takes as long as looking for one.
const KEPT: usize = 512;

impl Tensor {
    /// The elements' bytes, native endian, row-major; brought to host memory if they are on devices only.
    ///
    /// # Panics
    /// Where that fails, as the device was lost or there is no memory: [`Tensor::host_bytes`] returns the error.
    pub fn bytes(&self) -> &[u8] {
        match self.host_bytes() {
            Ok(bytes) => bytes,
            Err(error) => panic!("{error}"),
        }
    }

    /// [`Tensor::bytes`], with the device's error where they can't be had.
    pub fn host_bytes(&self) -> Result<&[u8]> {
        // SAFETY: there are that many bytes, all written when the tensor was made or its values came from a device, and not
        // moved before it is dropped.
        Ok(unsafe { std::slice::from_raw_parts(self.host()?.as_ptr(), self.byte_len()) })
    }

    /// The elements; `dtype_mismatch` if they are not of this type. They are brought to host memory if they are on devices only,
    /// with the device's error where that fails.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if self.0.meta.dtype != T::DTYPE {
            fail!(DtypeMismatch, "the tensor is {}, not {}", self.0.meta.dtype, T::DTYPE);
        }
        // SAFETY: aligned, of this type, and otherwise as in `host_bytes`.
        Ok(unsafe { std::slice::from_raw_parts(self.host()?.as_ptr().cast(), self.len()) })
    }

    /// The elements, copied; `dtype_mismatch` if they are not of this type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.as_slice::<T>()?.to_vec())
    }

    /// The elements of a bool tensor; brought to host memory if they are on devices only. `dtype_mismatch` of another dtype.
    pub fn to_bools(&self) -> Result<Vec<bool>> {
        if self.dtype() != DType::Bool {
            fail!(DtypeMismatch, "the tensor is {}, not bool", self.dtype());
        }
        Ok(self.host_bytes()?.iter().map(|&byte| byte != 0).collect())
    }

    /// It as an operand.
    #[inline]
    pub fn view(&self) -> View<'_> {
        let (root, at) = self.root();
        match root.own_memory() {
            // SAFETY: aligned, long enough and never written while the tensor is there; a part begins inside its origin.
            Some(own) if root.byte_len() < KEPT => unsafe { View::from_raw(own.add(at), &self.0.meta) },
            _ => View::tensor(root, at, &self.0.meta),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}", self.0.meta)?;
        // Showing it moves nothing.
        if self.is_on_host()
            && let Ok(values) = self.as_slice::<f32>()
        {
            let shown = &values[..values.len().min(8)];
            write!(f, ", {shown:?}{}", if values.len() > shown.len() { " …" } else { "" })?;
        }
        f.write_str(")")
    }
}
