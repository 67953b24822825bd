//! Packed matrices: how a matrix is packed, and access to its panels.

use super::kernels::{Exec, Panels, digits_room, panel_width};
use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::isa::Isa;
use crate::memory::host::HostBuffer;
use crate::operand::{Data, Layout, Meta, Packed, View};
use crate::shape::Shape;

impl Packed {
    /// Packs an f32 matrix that represents one of `dtype`, for products of a precision. If it is `transposed`, its rows are B's
    /// columns.
    pub(super) fn new(
        exec: &Exec<'_>,
        b: &View<'_>,
        dtype: DType,
        transposed: bool,
        precision: Precision,
    ) -> Result<Packed> {
        let shape = b.shape();
        let (k, n) = match (shape.dims(), transposed) {
            (&[k, n], false) | (&[n, k], true) => (k, n),
            (dims, _) => {
                fail!(ShapeMismatch, "pack: b is {shape}, of rank {}; only a matrix can be packed", dims.len())
            }
        };
        let meta = Meta::new(dtype, Shape::new(&[k, n])?);
        let from = b.host()?.cast_const().cast::<f32>();
        if precision != Precision::F32 {
            let (layout, data) = match digits_room(exec, precision, k, n) {
                Some(bytes) => (Layout::Digits(precision), HostBuffer::uninitialised(bytes)?),
                None => (Layout::Plain { precision, transposed }, HostBuffer::uninitialised(k * n * size_of::<f32>())?),
            };
            let to = data.pointer().as_ptr();
            // SAFETY: b has k·n values. The buffer has room for its digits, or for the values, and nothing else uses it yet.
            unsafe {
                match layout {
                    Layout::Digits(_) => exec.pack_digits(from, precision, [k, n], transposed, to.cast())?,
                    _ => to.cast::<f32>().copy_from_nonoverlapping(from, k * n),
                }
            }
            return Ok(Packed { meta, layout, data: Data::Host(exec.isa, data) });
        }
        let columns = n.next_multiple_of(panel_width(exec.isa));
        let Some(size) = columns.checked_mul(k).and_then(|values| values.checked_mul(size_of::<f32>())) else {
            fail!(OutOfMemory, "pack: {shape} in panels of {columns} columns is more than any process can address");
        };
        let data = HostBuffer::uninitialised(size)?;
        // SAFETY: the buffer holds k rows of whole panels, and nothing else uses it yet.
        unsafe { exec.pack(from, k, n, transposed, data.pointer().as_ptr().cast()) }?;
        Ok(Packed { meta, layout: Layout::Panels { columns }, data: Data::Host(exec.isa, data) })
    }

    /// Returns the panels from a column on, at which a panel must start. There are none for other products than those in f32.
    pub(super) fn panels(&self, first: usize) -> Panels {
        let columns = if let Layout::Panels { columns } = self.layout { columns } else { 0 };
        Panels { data: self.elements(), columns, first }
    }

    /// Returns what it holds. On a processor, `fits` must have said that it does.
    pub(super) fn elements(&self) -> *const f32 {
        match &self.data {
            Data::Host(_, memory) => memory.pointer().as_ptr().cast_const().cast(),
            #[cfg(feature = "integers")]
            Data::Device(_) => std::ptr::null(),
        }
    }

    /// Returns an error unless the layout is that of the instruction set.
    pub(super) fn fits(&self, isa: Isa) -> Result<()> {
        if !matches!(self.data, Data::Host(own, _) if own == isa) {
            let (own, used) = (self.home(), isa.name());
            fail!(InvalidArgument, "matmul: b was packed for {own} and is used on {used}; pack it in this context");
        }
        Ok(())
    }
}
