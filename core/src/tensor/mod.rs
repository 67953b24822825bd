//! Tensors: shaped values that share their storage when cloned.

#[cfg(feature = "ndarray")]
mod arrays;
mod cache;
mod construction;
mod copies;
#[cfg(all(test, feature = "cuda"))]
mod device_tests;
pub mod layout;
mod placement;
mod reading;

pub(crate) use cache::Cache;
pub use cache::TensorCacheUse;
pub(crate) use copies::{Keeper, Piece, is_same};

use crate::dtype::DType;
use crate::memory::host::HostBuffer;
use crate::memory::results::Lent;
use crate::operand::Meta;
use crate::shape::Shape;
use copies::Copies;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// A Rust type that represents the elements of a dtype. f64 is none, so that `Tensor::new(&[1.0, 2.0], …)` makes f32;
/// [`Tensor::from_doubles`] and [`Tensor::as_doubles`] take and return f64.
///
/// # Safety
/// The type must have the dtype's size and alignment, and every bit pattern must be valid.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The dtype.
    const DTYPE: DType;
}

// SAFETY: the dtype F32 is Rust's f32, IEEE binary32.
unsafe impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
// SAFETY: the same type.
unsafe impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
// SAFETY: the same type.
unsafe impl Element for i64 {
    const DTYPE: DType = DType::I64;
}
// SAFETY: the same type.
unsafe impl Element for u32 {
    const DTYPE: DType = DType::U32;
}
// SAFETY: the same type.
unsafe impl Element for u8 {
    const DTYPE: DType = DType::U8;
}

// SAFETY: `half::f16` is a transparent u16 with the bits of IEEE binary16.
#[cfg(feature = "half")]
unsafe impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}
// SAFETY: `half::bf16` is a transparent u16 with the bits of bfloat16.
#[cfg(feature = "half")]
unsafe impl Element for half::bf16 {
    const DTYPE: DType = DType::BF16;
}

/// Holds values with a shape and a dtype. Clones share the storage. The values never change.
///
/// The values are in host memory, on devices, or both ([`Tensor::places`]). A [`Context`](crate::Context) leaves an operation's
/// result on the device that computed it, and a copy of each operand on the device that needed it, for the operations that
/// follow. The first read on the host copies the values to host memory. Clones, reshapes and rows share all copies; but of rows that are
/// an eighth of the values or less, the host copies no others.
#[derive(Clone)]
pub struct Tensor(Arc<Value>);

/// The state that a tensor's clones share. It is behind one pointer, so that a tensor is cheap to move.
struct Value {
    meta: Meta,
    storage: Storage,
    /// The copies on devices. Made on first use, or at once if a device computed the values. A part uses those of its origin.
    copies: OnceLock<Arc<Copies>>,
}

impl Value {
    /// A part's own values in host memory, if it is one.
    fn read_alone(&self) -> Option<&OnceLock<Box<HostBuffer>>> {
        match &self.storage {
            Storage::Of(Origin::Tensor(_, _, read)) => Some(read),
            _ => None,
        }
    }
}

/// The memory of a tensor's values.
enum Storage {
    Own(HostBuffer),
    /// A pool's memory, which returns to the pool when the tensor is dropped.
    Lent(Box<Lent>),
    Of(Origin),
    /// Memory of a device. After the first read on the host, the values are in host memory too.
    Far,
}

/// Memory that is not the tensor's own.
enum Origin {
    /// A part of another tensor, from this byte offset on. The other tensor is never a part itself. Its values alone are in host memory of
    /// its own if they were read when the other's were on devices.
    Tensor(Tensor, usize, OnceLock<Box<HostBuffer>>),
    /// Memory that the caller provided.
    Foreign(Box<Foreign>),
}

/// Memory that the caller provided, with the owner that keeps it valid.
struct Foreign {
    start: NonNull<u8>,
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: the memory is only read, and the caller of `Tensor::foreign` vouched that nothing writes to it.
unsafe impl Send for Foreign {}
// SAFETY: the same.
unsafe impl Sync for Foreign {}

impl Tensor {
    /// Returns the dimensions.
    pub fn dims(&self) -> &[usize] {
        self.0.meta.shape.dims()
    }

    /// Returns the shape.
    pub fn shape(&self) -> &Shape {
        &self.0.meta.shape
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.0.meta.dtype
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.meta.shape.elements()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.0.meta.bytes()
    }
}
