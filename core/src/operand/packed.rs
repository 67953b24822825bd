//! Packed matrices, for repeated products with the same matrix. The device that packs one reads it.

use super::{Buffer, Meta};
use crate::contract::Precision;
use crate::dtype::DType;
use crate::isa::Isa;
use crate::memory::host::HostBuffer;
use crate::shape::Shape;
use std::fmt;
#[cfg(feature = "integers")]
use std::sync::Arc;

/// A right operand of matrix products, `[K, N]`, in the layout that the kernels of one instruction set or of one GPU read.
///
/// `Context::pack` makes it, `Context::matmul_packed` multiplies with it. Its elements take four bytes each, whatever their
/// dtype; for products in exact integers on AVX-512 and on GPUs, as many as they have digits. Columns are rounded up to a multiple of
/// 8, 16 or 32, on GPUs of 128. It never changes, so threads may share it.
pub struct Packed {
    pub(crate) meta: Meta,
    pub(crate) layout: Layout,
    pub(crate) data: Data,
}

/// Where a packed matrix is.
pub(crate) enum Data {
    /// In host memory, for the kernels of an instruction set.
    Host(Isa, HostBuffer),
    /// In the memory of a GPU.
    #[cfg(feature = "integers")]
    Device(Arc<dyn Buffer>),
}

/// How the elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Panels for products in f32.
    Panels {
        /// Columns, rounded up to whole panels.
        columns: usize,
    },
    /// Digits for products of this precision, as the units that multiply bytes read them. On GPUs, it is the only layout.
    Digits(Precision),
    /// The matrix itself, for products of this precision that cut it: `[N, K]` if it is transposed.
    Plain { precision: Precision, transposed: bool },
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

    /// Returns the precision of the products that it is for.
    pub fn precision(&self) -> Precision {
        match self.layout {
            Layout::Panels { .. } => Precision::F32,
            Layout::Digits(precision) | Layout::Plain { precision, .. } => precision,
        }
    }

    /// Returns the bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        match &self.data {
            Data::Host(_, memory) => memory.len(),
            #[cfg(feature = "integers")]
            Data::Device(memory) => memory.size(),
        }
    }

    /// Returns the memory of the GPU that it is on.
    pub(crate) fn on_device(&self) -> Option<&dyn Buffer> {
        match &self.data {
            Data::Host(..) => None,
            #[cfg(feature = "integers")]
            Data::Device(memory) => Some(&**memory),
        }
    }

    /// Returns what its layout is for: the name of an instruction set or of a GPU.
    pub(crate) fn home(&self) -> &str {
        match &self.data {
            Data::Host(isa, _) => isa.name(),
            #[cfg(feature = "integers")]
            Data::Device(memory) => memory.device_name(),
        }
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({:?}, {}, ", self.meta, self.home())?;
        if self.precision() != Precision::F32 {
            write!(f, "{}, ", self.precision().name())?;
        }
        write!(f, "{} bytes)", self.bytes())
    }
}
