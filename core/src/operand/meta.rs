//! What an operand looks like.

use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
use std::fmt;

/// What an operand looks like, without its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, row-major and contiguous.
    pub shape: Shape,
}

impl Meta {
    /// An f32 scalar, to be given another description in place.
    #[inline(always)]
    pub fn scalar() -> Meta {
        Meta { dtype: DType::F32, shape: Shape::scalar() }
    }

    /// Makes this the description of that dtype and those dimensions, as [`Shape::set`] does.
    #[inline]
    pub fn set(&mut self, dtype: DType, dims: &[usize]) -> Result<()> {
        self.dtype = dtype;
        self.shape.set(dims)
    }

    /// Makes this a copy of another. Only the dimensions that are there are moved, where an assignment moves all.
    #[inline]
    pub fn assign(&mut self, other: &Meta) {
        self.dtype = other.dtype;
        self.shape.assign(&other.shape);
    }

    /// A description.
    #[inline]
    pub fn new(dtype: DType, shape: Shape) -> Meta {
        Meta { dtype, shape }
    }

    /// Bytes of all elements. [`Shape::new`] bounds the product.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.shape.elements() * self.dtype.size()
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}
