//! Tensors: shaped values that share their storage when cloned.

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
pub(crate) use copies::Keeper;

use crate::dtype::DType;
use crate::memory::host::HostBuffer;
use crate::memory::results::Lent;
use crate::operand::Meta;
use crate::shape::Shape;
use copies::Copies;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// A Rust type that is the element of a dtype.
///
/// # Safety
/// The type has the dtype's size and alignment, and every bit pattern is valid.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: DType;
}

// SAFETY: f32 is binary32.
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

/// A shaped value. Cloning shares the storage; contents don't change once a tensor is made.
///
/// Its values are in host memory, or on devices, or both ([`Tensor::places`]). A [`Context`](crate::Context) leaves the result of
/// an operation where it was computed, and a copy of each operand where it was needed, so that what works on it next finds it
/// there. Whoever reads the values on the host brings them there, once. Clones, reshapes and rows share all copies.
#[derive(Clone)]
pub struct Tensor(Arc<Value>);

/// What a tensor's clones share. Behind one pointer, so that handing a tensor on moves little.
struct Value {
    meta: Meta,
    storage: Storage,
    /// On devices: made when first needed, and from the beginning of what was computed there. A part's are its origin's.
    copies: OnceLock<Arc<Copies>>,
}

/// Whose memory it is.
enum Storage {
    Own(HostBuffer),
    /// A pool's, which uses it again behind this tensor.
    Lent(Box<Lent>),
    Of(Origin),
    /// On a device; in host memory once it was read.
    Far,
}

/// Memory that is not the tensor's own.
enum Origin {
    /// That of another tensor, from a byte on; never itself such a part.
    Tensor(Tensor, usize),
    /// Somebody else's.
    Foreign(Box<Foreign>),
}

/// Somebody else's memory, with what keeps it.
struct Foreign {
    start: NonNull<u8>,
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: it is only read, and whoever made it vouched that nobody writes to it.
unsafe impl Send for Foreign {}
// SAFETY: the same.
unsafe impl Sync for Foreign {}

impl Tensor {
    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        self.0.meta.shape.dims()
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.0.meta.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.meta.dtype
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.meta.shape.elements()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes its elements have.
    pub fn byte_len(&self) -> usize {
        self.0.meta.bytes()
    }
}
