//! Tensors: shaped values that share their storage when cloned.

pub mod layout;

use crate::command::{Meta, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::cpu::HostBuffer;
use crate::shape::{MAX_RANK, Shape};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// A Rust type that is the element of a dtype.
///
/// # Safety
/// The type has the dtype's size and alignment, and every bit pattern is valid.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: DType;
}

// SAFETY: f32 is binary32.
unsafe impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
// SAFETY: the same type.
unsafe impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
// SAFETY: the same type.
unsafe impl Element for i64 {
    const DTYPE: DType = DType::I64;
}
// SAFETY: the same type.
unsafe impl Element for u32 {
    const DTYPE: DType = DType::U32;
}

/// A shaped value. Cloning shares the storage; contents don't change once a tensor is made.
#[derive(Clone)]
pub struct Tensor(Arc<Value>);

/// What a tensor's clones share. Behind one pointer, so that handing a tensor on moves little.
struct Value {
    meta: Meta,
    storage: Storage,
}

/// Whose memory it is.
enum Storage {
    Own(HostBuffer),
    Of(Origin),
}

/// Memory that is not the tensor's own.
enum Origin {
    /// That of the tensor that it is a reshape of; never itself a reshape.
    Tensor(Tensor),
    /// Somebody else's.
    Foreign(Box<Foreign>),
}

/// Somebody else's memory, with what keeps it.
struct Foreign {
    start: NonNull<u8>,
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: it is only read, and whoever made it vouched that nobody writes to it.
unsafe impl Send for Foreign {}
// SAFETY: the same.
unsafe impl Sync for Foreign {}

impl Tensor {
    /// A tensor of a slice's values: `Tensor::new(&[1.0f32, 2.0], &[2])`. `shape_mismatch` if the lengths differ.
    pub fn new<T: Element>(values: &[T], dims: &[usize]) -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        if shape.elements() != values.len() {
            fail!(ShapeMismatch, "the shape {shape} has {} elements and the data {}", shape.elements(), values.len());
        }
        // SAFETY: any Copy slice is readable as its bytes.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        Tensor::from_bytes(bytes, T::DTYPE, dims)
    }

    /// A tensor of elements given as native-endian bytes; the way to make f16 and bf16 tensors from their bits.
    pub fn from_bytes(bytes: &[u8], dtype: DType, dims: &[usize]) -> Result<Tensor> {
        let meta = Meta::new(dtype, Shape::new(dims)?);
        if meta.bytes() != bytes.len() {
            fail!(ShapeMismatch, "{meta:?} takes {} bytes and the data is {}", meta.bytes(), bytes.len());
        }
        let data = HostBuffer::uninitialised(bytes.len())?;
        // SAFETY: the new buffer has room for them and nobody else has it.
        unsafe { data.pointer().as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(Tensor::own(&meta, data))
    }

    /// A tensor of zeros.
    pub fn zeros(dtype: DType, dims: &[usize]) -> Result<Tensor> {
        let meta = Meta::new(dtype, Shape::new(dims)?);
        Ok(Tensor::own(&meta, HostBuffer::zeroed(meta.bytes())?))
    }

    /// A tensor that `fill` writes completely; it exists only if `fill` succeeds.
    #[inline(always)]
    pub(crate) fn filled(meta: &Meta, fill: impl FnOnce(ViewMut<'_>) -> Result<()>) -> Result<Tensor> {
        let tensor = Tensor::own(meta, HostBuffer::uninitialised(meta.bytes())?);
        // SAFETY: the buffer holds meta.bytes() aligned bytes, and nobody else has the tensor yet.
        fill(unsafe { ViewMut::from_raw(tensor.pointer(), &tensor.0.meta) })?;
        Ok(tensor)
    }

    /// A tensor of memory that was written already.
    ///
    /// # Safety
    /// The memory has at least `meta.bytes()` bytes, all of them written.
    pub(crate) unsafe fn written(meta: &Meta, data: HostBuffer) -> Tensor {
        Tensor::own(meta, data)
    }

    /// Its first element.
    #[inline]
    fn pointer(&self) -> NonNull<u8> {
        match &self.0.storage {
            Storage::Own(buffer) => buffer.pointer(),
            Storage::Of(Origin::Tensor(origin)) => origin.pointer(),
            Storage::Of(Origin::Foreign(foreign)) => foreign.start,
        }
    }

    /// Made where it stays, so that its description is moved once.
    #[inline(always)]
    fn place(meta: &Meta, storage: Storage) -> Tensor {
        let value = Arc::<Value>::new_uninit();
        let place = Arc::as_ptr(&value).cast::<Value>().cast_mut();
        // SAFETY: the memory of a Value that nobody else has; both fields are written.
        unsafe {
            (&raw mut (*place).storage).write(storage);
            (*(&raw mut (*place).meta).cast::<MaybeUninit<Meta>>()).write(Meta::scalar()).assign(meta);
            Tensor(value.assume_init())
        }
    }

    #[inline(always)]
    fn own(meta: &Meta, data: HostBuffer) -> Tensor {
        Tensor::place(meta, Storage::Own(data))
    }

    /// The same values in another shape of as many elements, without a copy.
    pub fn reshape(&self, dims: &[usize]) -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        if shape.elements() != self.0.meta.shape.elements() {
            fail!(
                ShapeMismatch,
                "{} can't become {shape}: {} elements against {}",
                self.0.meta.shape,
                self.0.meta.shape.elements(),
                shape.elements()
            );
        }
        let origin = match &self.0.storage {
            Storage::Of(Origin::Tensor(origin)) => origin,
            _ => self,
        };
        Ok(Tensor::place(&Meta::new(self.dtype(), shape), Storage::Of(Origin::Tensor(origin.clone()))))
    }

    /// `count` entries of the first axis from `first` on, without a copy. `shape_mismatch` for a scalar, `invalid_argument`
    /// beyond the end.
    pub fn rows(&self, first: usize, count: usize) -> Result<Tensor> {
        let mut dims = [0; MAX_RANK];
        let dims = &mut dims[..self.dims().len()];
        dims.copy_from_slice(self.dims());
        let Some(rows) = dims.first_mut() else { fail!(ShapeMismatch, "a scalar has no rows") };
        if first > *rows || count > *rows - first {
            fail!(InvalidArgument, "there are no {count} rows from {first} on in {}", self.0.meta.shape);
        }
        let all = std::mem::replace(rows, count);
        let meta = Meta::new(self.dtype(), Shape::new(dims)?);
        let skipped = self.0.meta.bytes().checked_div(all).unwrap_or(0) * first;
        // SAFETY: `skipped` bytes and those of `count` rows are inside the tensor, which is kept and never written.
        unsafe { Tensor::foreign(self.pointer().add(skipped), &meta, Box::new(self.clone())) }
    }

    /// A tensor in somebody else's memory, without a copy; `owner` is dropped with the last of its clones.
    /// `invalid_argument` unless the memory is aligned for the dtype.
    ///
    /// # Safety
    /// `start` points to `meta.bytes()` initialised bytes, which stay until `owner` is dropped and which nobody writes
    /// while a clone is there.
    pub unsafe fn foreign(start: NonNull<u8>, meta: &Meta, owner: Box<dyn Send + Sync>) -> Result<Tensor> {
        let size = meta.dtype.size();
        if !start.as_ptr().addr().is_multiple_of(size) {
            fail!(InvalidArgument, "memory at {start:p} is not aligned for {}'s {size} bytes", meta.dtype);
        }
        let foreign = Box::new(Foreign { start, _owner: owner });
        Ok(Tensor::place(meta, Storage::Of(Origin::Foreign(foreign))))
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        self.0.meta.shape.dims()
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.0.meta.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.meta.dtype
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.meta.shape.elements()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements' bytes, native endian, row-major.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer holds that many bytes, all written when the tensor was made.
        unsafe { std::slice::from_raw_parts(self.pointer().as_ptr(), self.0.meta.bytes()) }
    }

    /// The elements; `dtype_mismatch` if they are not of this type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if self.0.meta.dtype != T::DTYPE {
            fail!(DtypeMismatch, "the tensor is {}, not {}", self.0.meta.dtype, T::DTYPE);
        }
        // SAFETY: aligned, of this type, and written when the tensor was made.
        Ok(unsafe { std::slice::from_raw_parts(self.pointer().as_ptr().cast(), self.len()) })
    }

    /// The elements, copied; `dtype_mismatch` if they are not of this type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.as_slice::<T>()?.to_vec())
    }

    /// It as an operand.
    #[inline]
    pub fn view(&self) -> View<'_> {
        // SAFETY: aligned, long enough and never written while the tensor is there.
        unsafe { View::from_raw(self.pointer(), &self.0.meta) }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}", self.0.meta)?;
        if let Ok(values) = self.as_slice::<f32>() {
            let shown = &values[..values.len().min(8)];
            write!(f, ", {shown:?}{}", if values.len() > shown.len() { " …" } else { "" })?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

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
        // SAFETY: the values are there as long as the Arc is, and nobody writes them.
        let tensor = unsafe { Tensor::foreign(start, &meta(3), Box::new(values.clone())) }.unwrap();
        let (clone, reshaped) = (tensor.clone(), tensor.reshape(&[3, 1]).unwrap());
        assert_eq!(tensor.bytes().as_ptr(), start.as_ptr());
        drop((tensor, clone));
        assert_eq!((Arc::strong_count(&values), reshaped.to_vec::<f32>().unwrap()), (2, vec![1.0, 2.0, 3.0]));
        drop(reshaped);
        assert_eq!(Arc::strong_count(&values), 1);
        // SAFETY: inside the values; it is refused before anything is read.
        let askew = unsafe { Tensor::foreign(start.add(1), &meta(1), Box::new(())) };
        assert_eq!(askew.err().map(|error| error.status()), Some(Status::InvalidArgument));
    }
}
