//! Packed matrices: how a matrix is packed, and access to its panels.

use super::kernels::{Exec, Panels, panel_width};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::isa::Isa;
use crate::memory::host::HostBuffer;
use crate::operand::{Meta, Packed, View};
use crate::shape::Shape;

impl Packed {
    /// Packs an f32 matrix that represents one of `dtype`. If it is `transposed`, its rows are B's columns.
    pub(super) fn new(exec: &Exec<'_>, b: &View<'_>, dtype: DType, transposed: bool) -> Result<Packed> {
        let shape = b.shape();
        let (k, n) = match (shape.dims(), transposed) {
            (&[k, n], false) | (&[n, k], true) => (k, n),
            (dims, _) => {
                fail!(ShapeMismatch, "pack: b is {shape}, of rank {}; only a matrix can be packed", dims.len())
            }
        };
        let columns = n.next_multiple_of(panel_width(exec.isa));
        let Some(size) = columns.checked_mul(k).and_then(|values| values.checked_mul(size_of::<f32>())) else {
            fail!(OutOfMemory, "pack: {shape} in panels of {columns} columns is more than any process can address");
        };
        let packed = Packed {
            meta: Meta::new(dtype, Shape::new(&[k, n])?),
            isa: exec.isa,
            columns,
            data: HostBuffer::uninitialised(size)?,
        };
        // SAFETY: the buffer holds k rows of whole panels, and nothing else uses it yet.
        unsafe { exec.pack(b.host()?.cast_const().cast(), k, n, transposed, packed.data.pointer().as_ptr().cast()) }?;
        Ok(packed)
    }

    /// Returns the panels from a column on, at which a panel must start.
    pub(super) fn panels(&self, first: usize) -> Panels {
        Panels { data: self.data.pointer().as_ptr().cast_const().cast(), columns: self.columns, first }
    }

    /// Returns an error unless the layout is that of the instruction set.
    pub(super) fn fits(&self, isa: Isa) -> Result<()> {
        if self.isa != isa {
            let (own, used) = (self.isa.name(), isa.name());
            fail!(InvalidArgument, "matmul: b was packed for {own} and is used on {used}; pack it in this context");
        }
        Ok(())
    }
}
