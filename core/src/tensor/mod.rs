//! Tensors: shaped values that share their storage when cloned.

mod cache;
mod copies;
#[cfg(all(test, feature = "cuda"))]
mod device_tests;
pub mod layout;

pub(crate) use cache::Cache;
pub use cache::TensorCacheUse;
pub(crate) use copies::Keeper;

use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::{Buffer, DeviceKind};
use crate::memory::host::HostBuffer;
use crate::memory::results::{self, Lent, ResultPool};
use crate::operand::{Meta, Place, Residence, View, ViewMut};
use crate::shape::{MAX_RANK, Shape};
use copies::Copies;
use std::any::Any;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

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

/// Tensors in host memory of fewer bytes than this leave no copy on a device: sending them takes as long as looking for one.
const KEPT: usize = 512;

/// A shaped value. Cloning shares the storage; contents don't change once a tensor is made.
///
/// Its values are in host memory, or on devices, or both ([`Tensor::places`]). A [`Context`](crate::Context) leaves the result of
/// an operation where it was computed, and a copy of each operand where it was needed, so that what works on it next finds it
/// there. Whoever reads the values on the host brings them there, once. Clones, reshapes and rows share all copies.
#[derive(Clone)]
pub struct Tensor(Arc<Value>);

/// What a tensor's clones share. Behind one pointer, so that handing a tensor on moves little.
struct Value {
    meta: Meta,
    storage: Storage,
    /// On devices: made when first needed, and from the beginning of what was computed there. A part's are its origin's.
    copies: OnceLock<Arc<Copies>>,
}

/// Whose memory it is.
enum Storage {
    Own(HostBuffer),
    /// A pool's, which uses it again behind this tensor.
    Lent(Box<Lent>),
    Of(Origin),
    /// On a device; in host memory once it was read.
    Far,
}

/// Memory that is not the tensor's own.
enum Origin {
    /// That of another tensor, from a byte on; never itself such a part.
    Tensor(Tensor, usize),
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

    /// A tensor of bools.
    pub fn from_bools(values: &[bool], dims: &[usize]) -> Result<Tensor> {
        let bytes: Vec<u8> = values.iter().map(|&value| value.into()).collect();
        Tensor::from_bytes(&bytes, DType::Bool, dims)
    }

    /// The elements of a bool tensor; brought to host memory if they are on devices only. `dtype_mismatch` of another dtype.
    pub fn to_bools(&self) -> Result<Vec<bool>> {
        if self.dtype() != DType::Bool {
            fail!(DtypeMismatch, "the tensor is {}, not bool", self.dtype());
        }
        Ok(self.host_bytes()?.iter().map(|&byte| byte != 0).collect())
    }

    /// A tensor of zeros.
    pub fn zeros(dtype: DType, dims: &[usize]) -> Result<Tensor> {
        let meta = Meta::new(dtype, Shape::new(dims)?);
        Ok(Tensor::own(&meta, HostBuffer::zeroed(meta.bytes())?))
    }

    /// A tensor that `fill` writes completely; it exists only if `fill` succeeds.
    #[inline(always)]
    pub(crate) fn filled(meta: &Meta, fill: impl FnOnce(ViewMut<'_>) -> Result<()>) -> Result<Tensor> {
        Tensor::written_by(meta, Storage::Own(HostBuffer::uninitialised(meta.bytes())?), fill)
    }

    /// [`Tensor::filled`], in memory of a pool if it is large.
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
        // SAFETY: the memory has meta.bytes() aligned bytes, and nobody else has the tensor yet.
        fill(unsafe { ViewMut::from_raw(tensor.host()?, &tensor.0.meta) })?;
        Ok(tensor)
    }

    /// A tensor of memory that was written already.
    ///
    /// # Safety
    /// The memory has at least `meta.bytes()` bytes, all of them written.
    pub(crate) unsafe fn written(meta: &Meta, data: HostBuffer) -> Tensor {
        Tensor::own(meta, data)
    }

    /// A value that was computed in a device's memory.
    pub(crate) fn computed(meta: &Meta, keeper: Arc<dyn Keeper>, memory: Arc<dyn Buffer>) -> Tensor {
        let tensor = Tensor::place(meta, Storage::Far);
        let copies = tensor.0.copies.get_or_init(|| Copies::new(meta.bytes(), false));
        copies.put(keeper, memory);
        tensor
    }

    /// The tensor whose copies it shares, and where in it it begins.
    #[inline]
    pub(crate) fn root(&self) -> (&Tensor, usize) {
        match &self.0.storage {
            Storage::Of(Origin::Tensor(origin, at)) => (origin, *at),
            _ => (self, 0),
        }
    }

    /// The first byte of a root's own memory, if it has any.
    #[inline]
    fn own_memory(&self) -> Option<NonNull<u8>> {
        match &self.0.storage {
            Storage::Own(buffer) => Some(buffer.pointer()),
            Storage::Lent(block) => Some(block.pointer()),
            Storage::Of(Origin::Foreign(foreign)) => Some(foreign.start),
            _ => None,
        }
    }

    /// The root that an operand's values are of, and where in it they begin.
    pub(crate) fn at(place: Place<'_>) -> Option<(&Tensor, usize)> {
        let Place::Tensor(values, at) = place else { return None };
        Some((values.as_any().downcast_ref()?, at))
    }

    /// Its first byte in host memory, if its values are there.
    pub(crate) fn if_on_host(&self) -> Option<NonNull<u8>> {
        let (root, at) = self.root();
        match root.own_memory() {
            None if !root.0.copies.get()?.are_on_host() => None,
            // SAFETY: a part begins inside its origin.
            Some(own) => Some(unsafe { own.add(at) }),
            None => self.host().ok(),
        }
    }

    /// Its first byte in host memory, where its values are brought if they are on devices only.
    #[inline]
    pub(crate) fn host(&self) -> Result<NonNull<u8>> {
        let (root, at) = self.root();
        let first = match root.own_memory() {
            Some(own) => own,
            None => root.fetched()?,
        };
        // SAFETY: a part begins inside its origin.
        Ok(unsafe { first.add(at) })
    }

    #[cold]
    #[inline(never)]
    fn fetched(&self) -> Result<NonNull<u8>> {
        match self.0.copies.get() {
            Some(copies) => copies.fetch(),
            None => fail!(Internal, "a tensor's values are nowhere"),
        }
    }

    /// Whether another tensor is the same part of the same memory, described alike. Values never change, so the two are then
    /// interchangeable.
    pub(crate) fn is_same(&self, other: &Tensor) -> bool {
        let ((root, at), (other_root, other_at)) = (self.root(), other.root());
        Arc::ptr_eq(&root.0, &other_root.0) && at == other_at && self.0.meta == other.0.meta
    }

    /// Whether nobody else has a clone of it.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The copies of a root.
    fn copies(&self) -> &Arc<Copies> {
        self.0.copies.get_or_init(|| Copies::new(self.byte_len(), true))
    }

    /// The copy that a device has of a root.
    pub(crate) fn copy_on(&self, keeper: &dyn Keeper) -> Option<Arc<dyn Buffer>> {
        self.0.copies.get()?.on(keeper)
    }

    /// Keeps a copy of all of a root.
    pub(crate) fn keep_copy(&self, keeper: Arc<dyn Keeper>, memory: &Arc<dyn Buffer>) {
        // A processor's is host memory.
        if memory.host_pointer().is_none() {
            self.copies().put(keeper, memory.clone());
        }
    }

    /// The ids of the devices that have its values.
    pub(crate) fn each_device(&self, each: &mut dyn FnMut(&str)) {
        if let Some(copies) = self.root().0.0.copies.get() {
            copies.devices(each);
        }
    }

    /// Whether its values are in host memory, where reading them waits for nothing.
    pub fn is_on_host(&self) -> bool {
        self.if_on_host().is_some()
    }

    /// Whether its values are in host memory (`cpu`) or on the device of that id.
    pub fn is_on(&self, place: &str) -> bool {
        let mut found = place == DeviceKind::Cpu.name() && self.is_on_host();
        self.each_device(&mut |id| found |= id == place);
        found
    }

    /// Where its values are: `cpu` for host memory, and ids of devices.
    pub fn places(&self) -> Vec<String> {
        let mut places = Vec::new();
        if self.is_on_host() {
            places.push(DeviceKind::Cpu.name().into());
        }
        // Two contexts may have a copy each on one device.
        self.each_device(&mut |id| {
            if !places.iter().any(|place| place == id) {
                places.push(id.into());
            }
        });
        places
    }

    /// Brings its values to host memory, gives up every copy, and keeps none from now on: for whoever lets others write to the
    /// memory of [`Tensor::bytes`], which devices would not see.
    pub fn stay_on_host(&self) -> Result<()> {
        self.root().0.copies().stay_alone()
    }

    /// Starts to bring its values to host memory, where they are on devices only, and doesn't wait for them: reading them does.
    /// Errors are the device's.
    pub fn to_cpu(&self) -> Result<Tensor> {
        if let Some(copies) = self.root().0.0.copies.get() {
            copies.come()?;
        }
        Ok(self.clone())
    }

    /// Made where it stays, so that its description is moved once.
    #[inline(always)]
    fn place(meta: &Meta, storage: Storage) -> Tensor {
        let value = Arc::<Value>::new_uninit();
        let place = Arc::as_ptr(&value).cast::<Value>().cast_mut();
        // SAFETY: the memory of a Value that nobody else has; all fields are written.
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

    /// The same values in another shape of as many elements, without a copy.
    pub fn reshape(&self, dims: &[usize]) -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        if shape.elements() != self.0.meta.shape.elements() {
            fail!(
                ShapeMismatch,
                "reshape: {} has {} elements and {shape} has {}: the numbers must be equal",
                self.0.meta.shape,
                self.0.meta.shape.elements(),
                shape.elements()
            );
        }
        Ok(self.part(&Meta::new(self.dtype(), shape), 0))
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
        let skipped = self.byte_len().checked_div(all).unwrap_or(0) * first;
        Ok(self.part(&meta, skipped))
    }

    /// What `meta` says, which is inside it, from a byte on.
    fn part(&self, meta: &Meta, skipped: usize) -> Tensor {
        let (root, at) = self.root();
        Tensor::place(meta, Storage::Of(Origin::Tensor(root.clone(), at + skipped)))
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

    /// How many bytes its elements have.
    pub fn byte_len(&self) -> usize {
        self.0.meta.bytes()
    }

    /// The elements' bytes, native endian, row-major; brought to host memory if they are on devices only.
    ///
    /// # Panics
    /// Where that fails, as the device was lost or there is no memory: [`Tensor::host_bytes`] returns the error.
    pub fn bytes(&self) -> &[u8] {
        match self.host_bytes() {
            Ok(bytes) => bytes,
            Err(error) => panic!("{error}"),
        }
    }

    /// [`Tensor::bytes`], with the device's error where they can't be had.
    pub fn host_bytes(&self) -> Result<&[u8]> {
        // SAFETY: there are that many bytes, all written when the tensor was made or its values came from a device, and not
        // moved before it is dropped.
        Ok(unsafe { std::slice::from_raw_parts(self.host()?.as_ptr(), self.byte_len()) })
    }

    /// The elements; `dtype_mismatch` if they are not of this type. They are brought to host memory if they are on devices only,
    /// with the device's error where that fails.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if self.0.meta.dtype != T::DTYPE {
            fail!(DtypeMismatch, "the tensor is {}, not {}", self.0.meta.dtype, T::DTYPE);
        }
        // SAFETY: aligned, of this type, and otherwise as in `host_bytes`.
        Ok(unsafe { std::slice::from_raw_parts(self.host()?.as_ptr().cast(), self.len()) })
    }

    /// The elements, copied; `dtype_mismatch` if they are not of this type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.as_slice::<T>()?.to_vec())
    }

    /// It as an operand.
    #[inline]
    pub fn view(&self) -> View<'_> {
        let (root, at) = self.root();
        match root.own_memory() {
            // SAFETY: aligned, long enough and never written while the tensor is there; a part begins inside its origin.
            Some(own) if root.byte_len() < KEPT => unsafe { View::from_raw(own.add(at), &self.0.meta) },
            _ => View::tensor(root, at, &self.0.meta),
        }
    }
}

// SAFETY: all bytes are written when the tensor is made or its values come from a device, nobody writes them after that, and they are
// not moved before it is dropped.
unsafe impl Residence for Tensor {
    fn host(&self) -> Result<NonNull<u8>> {
        Tensor::host(self)
    }

    fn if_on_host(&self) -> Option<NonNull<u8>> {
        Tensor::if_on_host(self)
    }

    fn each_device(&self, each: &mut dyn FnMut(&str)) {
        Tensor::each_device(self, each);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}", self.0.meta)?;
        // Showing it moves nothing.
        if self.is_on_host()
            && let Ok(values) = self.as_slice::<f32>()
        {
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
