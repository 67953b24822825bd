//! Makes tensors: from values, from memory that an operation fills, from other tensors' memory.

use super::copies::{Copies, Keeper, Piece};
use super::{Element, Foreign, Origin, Storage, Tensor, Value};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::Buffer;
use crate::memory::host::HostBuffer;
use crate::memory::results::{self, ResultPool};
use crate::operand::{Meta, ViewMut};
use crate::shape::{MAX_RANK, Shape};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

impl Tensor {
    /// Makes a tensor from a copy of values: `Tensor::new(&[1.0f32, 2.0], &[2])`. `shape_mismatch` unless there are as many
    /// values as `dims` has elements.
    pub fn new<T: Element>(values: &[T], dims: &[usize]) -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        if shape.elements() != values.len() {
            fail!(ShapeMismatch, "the shape {shape} has {} elements and the data {}", shape.elements(), values.len());
        }
        // SAFETY: any Copy slice is readable as its bytes.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        Tensor::from_bytes(bytes, T::DTYPE, dims)
    }

    /// Makes a tensor from a copy of its elements' bytes, native endian. This is how to make f16 and bf16 tensors from their
    /// bits. `shape_mismatch` unless there are as many bytes as the tensor needs.
    pub fn from_bytes(bytes: &[u8], dtype: DType, dims: &[usize]) -> Result<Tensor> {
        let meta = Meta::new(dtype, Shape::new(dims)?);
        if meta.bytes() != bytes.len() {
            fail!(ShapeMismatch, "{meta:?} takes {} bytes and the data is {}", meta.bytes(), bytes.len());
        }
        let data = HostBuffer::uninitialised(bytes.len())?;
        // SAFETY: the new buffer has room for the bytes, and nothing else refers to it.
        unsafe { data.pointer().as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(Tensor::own(&meta, data))
    }

    /// Makes a bool tensor. Errors as for [`Tensor::new`].
    pub fn from_bools(values: &[bool], dims: &[usize]) -> Result<Tensor> {
        let bytes: Vec<u8> = values.iter().map(|&value| value.into()).collect();
        Tensor::from_bytes(&bytes, DType::Bool, dims)
    }

    /// Makes an f64 tensor. Errors as for [`Tensor::new`].
    pub fn from_doubles(values: &[f64], dims: &[usize]) -> Result<Tensor> {
        // SAFETY: any slice of f64 is readable as its bytes.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        Tensor::from_bytes(bytes, DType::F64, dims)
    }

    /// Makes a tensor of zeros.
    pub fn zeros(dtype: DType, dims: &[usize]) -> Result<Tensor> {
        let meta = Meta::new(dtype, Shape::new(dims)?);
        Ok(Tensor::own(&meta, HostBuffer::zeroed(meta.bytes())?))
    }

    /// Makes a tensor whose memory `fill` writes completely. Returns the error of `fill`.
    #[inline(always)]
    pub(crate) fn filled(meta: &Meta, fill: impl FnOnce(ViewMut<'_>) -> Result<()>) -> Result<Tensor> {
        Tensor::written_by(meta, Storage::Own(HostBuffer::uninitialised(meta.bytes())?), fill)
    }

    /// Makes a tensor like [`Tensor::filled`]. A large one takes its memory from the pool.
    #[inline(always)]
    pub(crate) fn result(
        pool: &Arc<ResultPool>,
        meta: &Meta,
        fill: impl FnOnce(ViewMut<'_>) -> Result<()>,
    ) -> Result<Tensor> {
        let bytes = meta.bytes();
        let storage = match bytes < results::LEAST {
            true => Storage::Own(HostBuffer::uninitialised(bytes)?),
            false => Storage::Lent(pool.take(bytes)?),
        };
        Tensor::written_by(meta, storage, fill)
    }

    #[inline(always)]
    fn written_by(meta: &Meta, storage: Storage, fill: impl FnOnce(ViewMut<'_>) -> Result<()>) -> Result<Tensor> {
        let tensor = Tensor::place(meta, storage);
        // SAFETY: the memory has meta.bytes() aligned bytes, and nothing else refers to the tensor yet.
        fill(unsafe { ViewMut::from_raw(tensor.host()?, &tensor.0.meta) })?;
        Ok(tensor)
    }

    /// Makes a tensor of memory that is still to be written. A large one takes it from the pool.
    ///
    /// # Safety
    /// Every byte must be written, through [`Tensor::host`], before anything reads the tensor.
    pub(crate) unsafe fn unwritten(pool: &Arc<ResultPool>, meta: &Meta) -> Result<Tensor> {
        Tensor::result(pool, meta, |_| Ok(()))
    }

    /// Makes a tensor from memory that is already written.
    ///
    /// # Safety
    /// The memory must have at least `meta.bytes()` bytes, all of them written.
    pub(crate) unsafe fn written(meta: &Meta, data: HostBuffer) -> Tensor {
        Tensor::own(meta, data)
    }

    /// Makes a tensor whose values a device computed in its own memory.
    pub(crate) fn computed(meta: &Meta, keeper: Arc<dyn Keeper>, memory: Arc<dyn Buffer>) -> Tensor {
        Tensor::in_pieces(meta, [Piece { keeper, memory, bytes: 0..meta.bytes() }])
    }

    /// Makes a tensor that devices compute, each its own piece of the values.
    pub(crate) fn in_pieces(meta: &Meta, pieces: impl IntoIterator<Item = Piece>) -> Tensor {
        let tensor = Tensor::place(meta, Storage::Far);
        let copies = tensor.0.copies.get_or_init(|| Copies::new(meta.bytes(), false));
        pieces.into_iter().for_each(|piece| copies.put(piece));
        tensor
    }

    /// Makes a tensor in the caller's memory, without a copy. `owner` is dropped with the tensor's last clone.
    /// `invalid_argument` unless the memory is aligned for the dtype.
    ///
    /// # Safety
    /// `start` must point to `meta.bytes()` initialised bytes. They must stay valid until `owner` is dropped, and nothing
    /// may write to them while a clone of the tensor exists.
    pub unsafe fn foreign(start: NonNull<u8>, meta: &Meta, owner: Box<dyn Send + Sync>) -> Result<Tensor> {
        let size = meta.dtype.size();
        if !start.as_ptr().addr().is_multiple_of(size) {
            fail!(InvalidArgument, "memory at {start:p} is not aligned for {}'s {size} bytes", meta.dtype);
        }
        let foreign = Box::new(Foreign { start, _owner: owner });
        Ok(Tensor::place(meta, Storage::Of(Origin::Foreign(foreign))))
    }

    /// Makes a tensor. Its description is written directly into its final memory, so it is moved only once.
    #[inline(always)]
    fn place(meta: &Meta, storage: Storage) -> Tensor {
        let value = Arc::<Value>::new_uninit();
        let place = Arc::as_ptr(&value).cast::<Value>().cast_mut();
        // SAFETY: this is the memory of a new Value, which nothing else refers to. All of its fields are written.
        unsafe {
            (&raw mut (*place).storage).write(storage);
            (&raw mut (*place).copies).write(OnceLock::new());
            (*(&raw mut (*place).meta).cast::<MaybeUninit<Meta>>()).write(Meta::scalar()).assign(meta);
            Tensor(value.assume_init())
        }
    }

    #[inline(always)]
    fn own(meta: &Meta, data: HostBuffer) -> Tensor {
        Tensor::place(meta, Storage::Own(data))
    }

    /// Returns the same values in another shape, without a copy. `shape_mismatch` unless it has as many elements.
    pub fn reshape(&self, dims: &[usize]) -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        if shape.elements() != self.0.meta.shape.elements() {
            fail!(
                ShapeMismatch,
                "reshape: {} has {} elements and {shape} has {}: they must be equal",
                self.0.meta.shape,
                self.0.meta.shape.elements(),
                shape.elements()
            );
        }
        Ok(self.part(&Meta::new(self.dtype(), shape), 0))
    }

    /// Returns `count` entries of the first axis from index `first` on, without a copy. `shape_mismatch` for a scalar,
    /// `invalid_argument` if the range goes beyond the end.
    pub fn rows(&self, first: usize, count: usize) -> Result<Tensor> {
        let mut dims = [0; MAX_RANK];
        let dims = &mut dims[..self.dims().len()];
        dims.copy_from_slice(self.dims());
        let Some(rows) = dims.first_mut() else { fail!(ShapeMismatch, "a scalar has no rows") };
        if first > *rows || count > *rows - first {
            fail!(InvalidArgument, "{count} rows from row {first} exceed {}", self.0.meta.shape);
        }
        let all = std::mem::replace(rows, count);
        let meta = Meta::new(self.dtype(), Shape::new(dims)?);
        let skipped = self.byte_len().checked_div(all).unwrap_or(0) * first;
        Ok(self.part(&meta, skipped))
    }

    /// Returns the part of the tensor that begins `skipped` bytes after its start and has the description `meta`. The caller
    /// ensures that it lies inside the tensor.
    fn part(&self, meta: &Meta, skipped: usize) -> Tensor {
        let (root, at) = self.root();
        Tensor::place(meta, Storage::Of(Origin::Tensor(root.clone(), at + skipped, OnceLock::new())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn doubles_keep_their_bits_and_plain_numbers_are_f32() {
        let values = [0.1, -0.0, f64::MIN_POSITIVE / 2.0];
        let tensor = Tensor::from_doubles(&values, &[3]).unwrap();
        assert_eq!((tensor.dtype(), tensor.byte_len()), (DType::F64, 24));
        assert_eq!(
            tensor.as_doubles().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            values.map(f64::to_bits)
        );
        let plain = Tensor::new(&[1.0, 2.0], &[2]).unwrap();
        assert_eq!((plain.dtype(), plain.as_doubles().unwrap_err().status()), (DType::F32, Status::DtypeMismatch));
        assert_eq!(Tensor::from_doubles(&[1.0], &[2]).unwrap_err().status(), Status::ShapeMismatch);
    }

    #[test]
    fn bools_are_bytes_of_which_0_is_false() {
        let tensor = Tensor::from_bools(&[true, false, true], &[3]).unwrap();
        assert_eq!((tensor.dtype(), tensor.bytes(), tensor.byte_len()), (DType::Bool, &[1, 0, 1][..], 3));
        let other = Tensor::from_bytes(&[0, 2, 255], DType::Bool, &[3]).unwrap();
        assert_eq!(other.to_bools().unwrap(), [false, true, true]);
        assert_eq!(Tensor::zeros(DType::F32, &[1]).unwrap().to_bools().unwrap_err().status(), Status::DtypeMismatch);
        assert_eq!(Tensor::from_bools(&[true], &[2]).unwrap_err().status(), Status::ShapeMismatch);
    }

    #[test]
    fn rows_share_the_storage() {
        let all = Tensor::new(&[1i32, 2, 3, 4, 5, 6], &[3, 2]).unwrap();
        let rows = all.rows(1, 2).unwrap();
        assert_eq!((rows.dims(), rows.as_slice::<i32>().unwrap()), (&[2, 2][..], &[3, 4, 5, 6][..]));
        assert_eq!(rows.bytes().as_ptr(), all.bytes()[8..].as_ptr());
        drop(all);
        assert_eq!(rows.rows(1, 1).unwrap().reshape(&[2]).unwrap().to_vec::<i32>().unwrap(), [5, 6]);
        assert!(rows.rows(2, 0).unwrap().is_empty());
        let status = |result: Result<Tensor>| result.err().map(|error| error.status());
        assert_eq!(status(rows.rows(2, 1)), Some(Status::InvalidArgument));
        assert_eq!(status(rows.rows(usize::MAX, 2)), Some(Status::InvalidArgument));
        assert_eq!(status(Tensor::new(&[1.0f32], &[]).unwrap().rows(0, 1)), Some(Status::ShapeMismatch));
        let none = Tensor::zeros(DType::F32, &[0, 3]).unwrap();
        assert_eq!(none.rows(0, 0).unwrap().dims(), [0, 3]);
    }

    #[test]
    fn foreign_memory_is_kept_until_the_last_clone_is_gone() {
        let values: Arc<[f32]> = vec![1.0, 2.0, 3.0].into();
        let start = NonNull::from(&*values).cast::<u8>();
        let meta = |n| Meta::new(DType::F32, Shape::new(&[n]).unwrap());
        // SAFETY: the values exist as long as the Arc does, and nothing writes to them.
        let tensor = unsafe { Tensor::foreign(start, &meta(3), Box::new(values.clone())) }.unwrap();
        let (clone, reshaped) = (tensor.clone(), tensor.reshape(&[3, 1]).unwrap());
        assert_eq!(tensor.bytes().as_ptr(), start.as_ptr());
        drop((tensor, clone));
        assert_eq!((Arc::strong_count(&values), reshaped.to_vec::<f32>().unwrap()), (2, vec![1.0, 2.0, 3.0]));
        drop(reshaped);
        assert_eq!(Arc::strong_count(&values), 1);
        // SAFETY: the pointer is inside the values, and it is refused before anything is read.
        let askew = unsafe { Tensor::foreign(start.add(1), &meta(1), Box::new(())) };
        assert_eq!(askew.err().map(|error| error.status()), Some(Status::InvalidArgument));
    }
}
