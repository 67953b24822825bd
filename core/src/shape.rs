//! Shapes: up to eight dimensions, stored in place.

use crate::error::{Error, Result, Status, fail};
use smallvec::SmallVec;
use std::fmt;

/// The highest rank.
pub const MAX_RANK: usize = 8;

/// The most elements of a tensor. Byte offsets of eight-byte elements fit in `isize` up to this number.
pub const MAX_ELEMENTS: usize = isize::MAX as usize / 8;

/// The dimensions of a tensor, row-major (the last is contiguous). Rank 0 is a scalar. A dimension may be 0.
#[derive(Clone, Copy)]
pub struct Shape {
    // Entries past the rank are unused.
    dims: [usize; MAX_RANK],
    // The product of the dimensions, stored because every call needs it several times.
    elements: usize,
    rank: u8,
}

impl Shape {
    /// A scalar's shape.
    pub const SCALAR: Shape = Shape { dims: [0; MAX_RANK], elements: 1, rank: 0 };

    /// Makes a scalar's shape in place, which avoids copying eighty bytes.
    #[inline(always)]
    pub fn scalar() -> Shape {
        Shape { dims: [0; MAX_RANK], elements: 1, rank: 0 }
    }

    /// Makes a shape. Returns `invalid_argument` above rank 8 or [`MAX_ELEMENTS`] elements.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        let mut shape = Shape::scalar();
        shape.set(dims)?;
        Ok(shape)
    }

    /// Changes it to these dimensions. Returns the errors of [`Shape::new`], and is a scalar's shape then.
    pub fn set(&mut self, dims: &[usize]) -> Result<()> {
        (self.rank, self.elements) = (0, 1);
        if dims.len() > MAX_RANK {
            return Err(too_many(dims));
        }
        let (mut elements, mut addressed) = (1usize, 1usize);
        for (to, &from) in self.dims.iter_mut().zip(dims) {
            *to = from;
            // A dimension of zero must not hide an overflow: a slice of the tensor must still be addressable.
            elements = elements.wrapping_mul(from);
            addressed = match addressed.checked_mul(from.max(1)) {
                Some(product) if product <= MAX_ELEMENTS => product,
                _ => return Err(too_many(dims)),
            };
        }
        (self.rank, self.elements) = (dims.len() as u8, elements);
        Ok(())
    }

    /// Makes the shape of this many elements. One dimension may be −1, which stands for the rest. Returns `shape_mismatch` if
    /// there is no such shape, `invalid_argument` for other negative dimensions and for more than one −1.
    pub fn inferred(dims: &[i64], elements: usize) -> Result<Shape> {
        let open = dims.iter().filter(|&&length| length == -1).count();
        if open > 1 {
            fail!(InvalidArgument, "the shape {dims:?} has {open} dimensions of -1; at most one may be left open");
        }
        if let Some(length) = dims.iter().find(|&&length| length < -1) {
            fail!(
                InvalidArgument,
                "the shape {dims:?} has a dimension of {length}; dimensions are 0 or more, and one may be -1"
            );
        }
        // `Shape::new` bounds the product of the other dimensions.
        let mut known: SmallVec<[usize; MAX_RANK]> =
            dims.iter().map(|&length| length.unsigned_abs() as usize).collect();
        if open == 0 {
            return Shape::new(&known);
        }
        let others = Shape::new(&known)?.elements();
        if others == 0 || !elements.is_multiple_of(others) {
            fail!(
                ShapeMismatch,
                "{elements} elements don't fill the shape {dims:?}: they are not a multiple of {others}"
            );
        }
        known.iter_mut().zip(dims).filter(|(_, length)| **length == -1).for_each(|(to, _)| *to = elements / others);
        Shape::new(&known)
    }

    /// Copies another shape. It copies four dimensions if the rank is at most 4.
    #[inline]
    pub(crate) fn assign(&mut self, other: &Shape) {
        self.dims[..4].copy_from_slice(&other.dims[..4]);
        if other.rank > 4 {
            self.dims[4..].copy_from_slice(&other.dims[4..]);
        }
        (self.rank, self.elements) = (other.rank, other.elements);
    }

    /// The dimensions.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank as usize]
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The number of elements; 1 for a scalar.
    #[inline]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Returns dimension `i` counted from the end: 0 is the last. Beyond the rank it returns 1, as broadcasting needs.
    #[inline]
    pub fn from_end(&self, i: usize) -> usize {
        if i < self.rank() { self.dims[self.rank() - 1 - i] } else { 1 }
    }

    /// Returns the shape that both broadcast to (NumPy's rule), if there is one.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let rank = self.rank().max(other.rank());
        let mut dims = [1; MAX_RANK];
        for i in 0..rank {
            let (a, b) = (self.from_end(i), other.from_end(i));
            dims[rank - 1 - i] = match (a, b) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return None,
            };
        }
        Shape::new(&dims[..rank]).ok()
    }

    /// Whether this shape broadcasts to `target` without changing it.
    pub fn broadcasts_to(&self, target: &Shape) -> bool {
        self.rank() <= target.rank()
            && (0..self.rank()).all(|i| self.from_end(i) == 1 || self.from_end(i) == target.from_end(i))
    }

    /// Element strides for reading this shape as `target`: 0 where a dimension is broadcast. Only `target`'s rank is used.
    pub(crate) fn broadcast_strides(&self, target: &Shape) -> [usize; MAX_RANK] {
        self.strides_at(target.rank())
    }

    /// The same for a shape of this rank that this one broadcasts to.
    pub(crate) fn strides_at(&self, rank: usize) -> [usize; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        let mut step = 1;
        for i in 0..self.rank() {
            if self.from_end(i) != 1 {
                strides[rank - 1 - i] = step;
            }
            step *= self.from_end(i);
        }
        strides
    }
}

#[cold]
fn too_many(dims: &[usize]) -> Error {
    let text = match dims.len() {
        0..=MAX_RANK => format!("the shape {dims:?} has more than {MAX_ELEMENTS} elements"),
        rank => format!("a shape has at most {MAX_RANK} dimensions, not {rank}"),
    };
    Error::new(Status::InvalidArgument, text)
}

impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        // A loop, because comparing slices would be a call.
        self.rank == other.rank && (0..self.rank()).all(|i| self.dims[i] == other.dims[i])
    }
}

impl Eq for Shape {}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.dims(), f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.dims(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let shape = |dims: &[usize]| Shape::new(dims).unwrap();
        assert_eq!(shape(&[3, 1]).broadcast(&shape(&[4])), Some(shape(&[3, 4])));
        assert_eq!(shape(&[0]).broadcast(&shape(&[1])), Some(shape(&[0])));
        assert_eq!(shape(&[2]).broadcast(&shape(&[3])), None);
        assert_eq!(shape(&[]).broadcast(&shape(&[2, 3])), Some(shape(&[2, 3])));
        assert!(shape(&[3]).broadcasts_to(&shape(&[2, 3])));
        assert!(!shape(&[2, 3]).broadcasts_to(&shape(&[3])));
        assert_eq!(shape(&[3, 1]).broadcast_strides(&shape(&[2, 3, 4]))[..3], [0, 1, 0]);
    }

    #[test]
    fn a_dimension_may_be_left_open() {
        let inferred = |dims: &[i64], elements| Shape::inferred(dims, elements).map(|shape| shape.dims().to_vec());
        assert_eq!(inferred(&[-1], 6).unwrap(), [6]);
        assert_eq!(inferred(&[2, -1], 6).unwrap(), [2, 3]);
        assert_eq!(inferred(&[2, -1, 1], 0).unwrap(), [2, 0, 1]);
        assert_eq!(inferred(&[6], 6).unwrap(), [6]);
        for (dims, elements) in
            [(&[4, -1][..], 6), (&[0, -1], 6), (&[0, -1], 0), (&[-1, -1], 6), (&[-2], 6), (&[i64::MIN, 1], 6)]
        {
            assert!(inferred(dims, elements).is_err(), "{dims:?} of {elements}");
        }
        assert!(inferred(&[-1, i64::MAX, i64::MAX], 6).is_err());
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert!(Shape::new(&[usize::MAX, 2]).is_err());
        assert!(Shape::new(&[0, usize::MAX, 2]).is_err());
        assert!(Shape::new(&[1; 9]).is_err());
        assert_eq!(Shape::new(&[]).unwrap().elements(), 1);
    }
}
