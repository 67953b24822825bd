//! Batches for [`overlap`](crate::overlap()): host memory as bytes.

use adead_core::{Element, Result, Tensor};
use std::sync::Arc;

/// A batch in host memory, for upload. Vectors, slices, arrays and tensors of values are batches, and [`Bytes`] makes one from
/// raw bytes. A `Result` of a batch is a batch too; its error becomes the batch's.
pub trait Batch {
    /// Returns the batch's bytes, or its error.
    fn bytes(&self) -> Result<&[u8]>;
}

/// Makes a batch of raw bytes: `Bytes(vec)`, `Bytes(&text)`, with elements of any type.
#[derive(Clone, Debug)]
pub struct Bytes<B>(pub B);

impl<B: AsRef<[u8]>> Batch for Bytes<B> {
    fn bytes(&self) -> Result<&[u8]> {
        Ok(self.0.as_ref())
    }
}

impl<T: Element> Batch for [T] {
    fn bytes(&self) -> Result<&[u8]> {
        // SAFETY: an element can be read as its bytes.
        Ok(unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), size_of_val(self)) })
    }
}

impl<T: Element, const N: usize> Batch for [T; N] {
    fn bytes(&self) -> Result<&[u8]> {
        self[..].bytes()
    }
}

impl<T: Element> Batch for Vec<T> {
    fn bytes(&self) -> Result<&[u8]> {
        self[..].bytes()
    }
}

impl Batch for Tensor {
    fn bytes(&self) -> Result<&[u8]> {
        Ok(Tensor::bytes(self))
    }
}

impl<B: Batch + ?Sized> Batch for &B {
    fn bytes(&self) -> Result<&[u8]> {
        (**self).bytes()
    }
}

impl<B: Batch + ?Sized> Batch for Box<B> {
    fn bytes(&self) -> Result<&[u8]> {
        (**self).bytes()
    }
}

impl<B: Batch + ?Sized> Batch for Arc<B> {
    fn bytes(&self) -> Result<&[u8]> {
        (**self).bytes()
    }
}

impl<B: Batch> Batch for Result<B> {
    fn bytes(&self) -> Result<&[u8]> {
        match self {
            Ok(batch) => batch.bytes(),
            Err(error) => Err(error.clone()),
        }
    }
}
