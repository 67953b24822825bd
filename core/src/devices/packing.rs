//! How an opened device packs a matrix: it keeps the matrix's digits.

use super::Opened;
use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::Slice;
use crate::operand::{Data, Layout, Meta, Packed};
use crate::shape::Shape;
use crate::tensor::Tensor;

impl Opened {
    /// Cuts an f32 matrix that represents one of `dtype`, for products of a precision. Returns `None` if this device keeps no digits of
    /// such a matrix. When it returns, the digits are there.
    pub fn pack(&self, b: &Tensor, dtype: DType, transposed: bool, precision: Precision) -> Result<Option<Packed>> {
        let &[rows, columns] = b.dims() else { return Ok(None) };
        let sizes = if transposed { [columns, rows] } else { [rows, columns] };
        let Some(bytes) = self.with(|stream| Ok(stream.digits_bytes(precision, sizes)))? else { return Ok(None) };
        let (root, at) = b.root();
        let part = at..at + b.byte_len();
        self.upload_part(root, part.clone())?;
        let Some((buffer, offset)) = root.part_on(self, part) else { fail!(Internal, "pack: the matrix is nowhere") };
        let since = self.cache.use_one();
        self.cache.make_room(self, bytes as u64, since)?;
        let memory = self.allocate(bytes, false)?;
        self.with(|stream| {
            let from = Slice { buffer: &*buffer, offset, bytes: b.byte_len() };
            stream.cut(from, precision, sizes, transposed, &*memory)?;
            stream.synchronize()
        })?;
        let meta = Meta::new(dtype, Shape::new(&sizes)?);
        Ok(Some(Packed { meta, layout: Layout::Digits(precision), data: Data::Device(memory) }))
    }
}
