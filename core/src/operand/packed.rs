//! Packed matrices, for repeated products with the same matrix. The CPU device packs and reads them.

use super::Meta;
use crate::dtype::DType;
use crate::isa::Isa;
use crate::memory::host::HostBuffer;
use crate::shape::Shape;
use std::fmt;

/// A right operand of matrix products, `[K, N]`, in the layout that the kernels of one instruction set read.
///
/// `Context::pack` makes it, `Context::matmul_packed` multiplies with it. Its elements take four bytes each, whatever their
/// dtype. Columns are rounded up to a multiple of 8, 16 or 32. It never changes, so threads may share it.
pub struct Packed {
    pub(crate) meta: Meta,
    pub(crate) isa: Isa,
    /// Columns, rounded up to whole panels.
    pub(crate) columns: usize,
    pub(crate) data: HostBuffer,
}

impl Packed {
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns its shape as an operand: `[K, N]`, also if it was packed from `[N, K]`.
    pub fn shape(&self) -> &Shape {
        &self.meta.shape
    }

    /// Returns the element type of the original matrix. The other operands of a product must have the same type.
    pub fn dtype(&self) -> DType {
        self.meta.dtype
    }

    /// Returns the bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({:?}, {}, {} bytes)", self.meta, self.isa.name(), self.bytes())
    }
}
