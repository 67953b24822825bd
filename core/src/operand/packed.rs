//! Matrices packed once, for products that multiply with them many times. The CPU device packs and reads them.

use super::Meta;
use crate::dtype::DType;
use crate::isa::Isa;
use crate::memory::host::HostBuffer;
use crate::shape::Shape;
use std::fmt;

/// A right operand of matrix products, `[K, N]`, laid out in advance as the kernels of one instruction set read it.
///
/// `Context::pack` makes it, `Context::matmul_packed` multiplies with it. Its elements take four bytes each whatever
/// their dtype, and columns are rounded up to a multiple of 8, 16 or 32. It never changes; threads may share one.
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

    /// Its shape as an operand: `[K, N]`, however it was given.
    pub fn shape(&self) -> &Shape {
        &self.meta.shape
    }

    /// The element type of the matrix that it was made of, which the other operands of a product have, too.
    pub fn dtype(&self) -> DType {
        self.meta.dtype
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({:?}, {}, {} bytes)", self.meta, self.isa.name(), self.bytes())
    }
}
