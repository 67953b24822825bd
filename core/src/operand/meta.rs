//! Descriptions of operands.

use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
use std::fmt;

/// The description of an operand, without its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, row-major and contiguous.
    pub shape: Shape,
}

impl Meta {
    /// Makes an f32 scalar's description, to be changed in place.
    #[inline(always)]
    pub fn scalar() -> Meta {
        Meta { dtype: DType::F32, shape: Shape::scalar() }
    }

    /// Changes it to this dtype and these dimensions, like [`Shape::set`].
    #[inline]
    pub fn set(&mut self, dtype: DType, dims: &[usize]) -> Result<()> {
        self.dtype = dtype;
        self.shape.set(dims)
    }

    /// Copies another description. It copies only the dimensions in use, where an assignment copies all.
    #[inline]
    pub fn assign(&mut self, other: &Meta) {
        self.dtype = other.dtype;
        self.shape.assign(&other.shape);
    }

    /// Makes a description.
    #[inline]
    pub fn new(dtype: DType, shape: Shape) -> Meta {
        Meta { dtype, shape }
    }

    /// Returns the bytes of all elements. [`Shape::new`] bounds the product.
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
