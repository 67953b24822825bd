//! How an opened device packs a matrix: it keeps the matrix's digits.

use super::Opened;
use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::Slice;
use crate::operand::{Data, Layout, Meta, Packed};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::slice;

impl Opened {
    /// Cuts an f32 matrix that represents one of `dtype`, for products of a precision. Returns `None` if this device keeps no digits of
    /// such a matrix. When it returns, the digits are there.
    pub fn pack(&self, b: &Tensor, dtype: DType, transposed: bool, precision: Precision) -> Result<Option<Packed>> {
        let &[rows, columns] = b.dims() else { return Ok(None) };
        let sizes = if transposed { [columns, rows] } else { [rows, columns] };
        let view = b.view();
        let Some(bytes) = self.with(|stream| Ok(stream.digits_bytes(precision, sizes)))? else { return Ok(None) };
        let of_b = view.meta().bytes();
        let since = self.cache.use_one();
        let mut there = Tensor::at(view.place()).and_then(|(root, at)| root.part_on(self, at..at + of_b));
        if there.is_none() {
            // Values of another device pass through the host. The device's lock isn't held yet.
            view.host()?;
        }
        self.cache.make_room(self, (bytes + if there.is_some() { 0 } else { of_b }) as u64, since)?;
        let memory = self.retry_when_full(since, &mut || {
            self.with(|stream| {
                let memory = self.device.allocate_unset(bytes)?;
                if there.is_none() {
                    let copy = self.device.allocate_unset(of_b)?;
                    // SAFETY: the tensor has that many initialised bytes.
                    stream.write(&*copy, 0, unsafe { slice::from_raw_parts(view.host()?, of_b) })?;
                    there = Some((copy, 0));
                }
                let Some((buffer, offset)) = &there else { fail!(Internal, "pack: the matrix is nowhere") };
                let from = Slice { buffer: &**buffer, offset: *offset, bytes: of_b };
                stream.cut(from, precision, sizes, transposed, &*memory)?;
                // Streams of other contexts may read it.
                stream.synchronize()?;
                Ok(Some(memory))
            })
        })?;
        let meta = Meta::new(dtype, Shape::new(&sizes)?);
        Ok(memory.map(|memory| Packed { meta, layout: Layout::Digits(precision), data: Data::Device(memory) }))
    }
}
