//! Operands: what an operation reads and writes. Descriptions, views of memory, and the kinds of memory that a view can have.

mod buffer;
mod meta;
mod packed;
mod turns;

pub use buffer::Buffer;
pub use meta::Meta;
pub use packed::Packed;
pub(crate) use packed::{Data, Layout};
pub(crate) use turns::{CpuBuffer, Turns};

use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// Where an operand's elements are.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// In host memory.
    Host(NonNull<u8>),
    /// In a device's buffer, from a byte offset.
    Buffer(&'a dyn Buffer, usize),
    /// In a packed matrix, in the layout of the kernels that multiply with it.
    Packed(&'a Packed),
    /// Wherever a tensor's values are, at a byte offset.
    Tensor(&'a dyn Residence, usize),
    /// Nowhere yet. The result gets its memory where it is computed.
    Nowhere,
}

impl Place<'_> {
    /// Returns where a packed matrix is in a device's memory, and any other place as it is.
    pub(crate) fn in_memory(self) -> Self {
        match self {
            Place::Packed(packed) => packed.on_device().map_or(self, |memory| Place::Buffer(memory, 0)),
            _ => self,
        }
    }
}

/// Where the values of a tensor are: in host memory, on devices, or both.
///
/// # Safety
/// `host` and `if_on_host` must return the first of the tensor's bytes. The bytes are initialised, nothing writes to them, and
/// they stay in place as long as the tensor does.
pub unsafe trait Residence: Any + Sync {
    /// Returns the first byte in host memory. Copies the values there if they are only on devices.
    fn host(&self) -> Result<NonNull<u8>>;

    /// Returns the first byte in host memory, if the values are there.
    fn if_on_host(&self) -> Option<NonNull<u8>>;

    /// Calls `each` with the id of every device that has values, and the bytes that it has, from the first to the one after the
    /// last; `None` if it has all.
    fn each_device(&self, each: &mut dyn FnMut(&str, Option<Range<usize>>));

    /// Returns itself, for the room that made it to downcast.
    fn as_any(&self) -> &dyn Any;
}

/// An operand that is read.
#[derive(Clone, Copy)]
pub struct View<'a> {
    meta: &'a Meta,
    place: Place<'a>,
    borrow: PhantomData<&'a [u8]>,
}

/// An operand that is written.
pub struct ViewMut<'a> {
    meta: &'a Meta,
    place: Place<'a>,
    borrow: PhantomData<&'a mut [u8]>,
}

/// Operands in the operation's order, `None` for an optional operand that is absent. For makers of commands with a variable
/// number of operands.
pub type Inputs<'a> = SmallVec<[Option<View<'a>>; 4]>;

/// Finds the first element of an operand that is not plain host memory.
#[inline(never)]
fn elsewhere(place: Place<'_>) -> Result<*mut u8> {
    match place {
        Place::Host(pointer) => Ok(pointer.as_ptr()),
        Place::Buffer(buffer, offset) => match buffer.host_pointer() {
            // SAFETY: whoever made the view checked that offset + bytes is inside the buffer.
            Some(pointer) => Ok(unsafe { pointer.as_ptr().add(offset) }),
            None => fail!(InvalidArgument, "the operand is on {}, not in host memory", buffer.device_name()),
        },
        Place::Packed(_) => fail!(InvalidArgument, "an operand is a packed matrix: only matmul's b may be packed"),
        Place::Nowhere => fail!(Internal, "a result has no memory"),
        // SAFETY: whoever made the view checked that offset + bytes is inside the tensor.
        Place::Tensor(tensor, offset) => Ok(unsafe { tensor.host()?.as_ptr().add(offset) }),
    }
}

macro_rules! view_common {
    () => {
        /// Returns the description.
        #[inline]
        pub fn meta(&self) -> &'a Meta {
            self.meta
        }

        /// Returns the element type.
        #[inline]
        pub fn dtype(&self) -> DType {
            self.meta.dtype
        }

        /// Returns the dimensions.
        #[inline]
        pub fn shape(&self) -> &'a Shape {
            &self.meta.shape
        }

        /// Returns where the elements are.
        #[inline]
        pub fn place(&self) -> Place<'a> {
            self.place
        }

        /// Returns the first element in host memory. A tensor's values are copied there if needed. Returns an error for memory on
        /// a device that the host can't access, and for a packed matrix.
        #[inline]
        pub fn host(&self) -> Result<*mut u8> {
            match self.place {
                Place::Host(pointer) => Ok(pointer.as_ptr()),
                place => elsewhere(place),
            }
        }
    };
}

impl<'a> View<'a> {
    /// Makes a view of host memory.
    ///
    /// # Safety
    /// `data` must be aligned for the dtype and hold `meta.bytes()` initialised bytes that nothing writes during `'a`.
    #[inline]
    pub unsafe fn from_raw(data: NonNull<u8>, meta: &'a Meta) -> View<'a> {
        View { meta, place: Place::Host(data), borrow: PhantomData }
    }

    /// Makes a view of f32 values in host memory. `meta` must be f32 with as many elements as the slice.
    #[inline]
    pub fn f32(data: &'a [f32], meta: &'a Meta) -> Result<View<'a>> {
        check_f32(data.len(), meta)?;
        // SAFETY: the slice is aligned, initialised, long enough and borrowed for 'a.
        Ok(unsafe { View::from_raw(NonNull::from(data).cast(), meta) })
    }

    /// Makes a view of a part of a device's buffer. The elements must fit after `offset`.
    pub fn buffer(buffer: &'a dyn Buffer, offset: usize, meta: &'a Meta) -> Result<View<'a>> {
        check_buffer(buffer, offset, meta)?;
        Ok(View { meta, place: Place::Buffer(buffer, offset), borrow: PhantomData })
    }

    /// Makes a view of a packed matrix, as b of `matmul`. No other operand may be packed.
    pub fn packed(matrix: &'a Packed) -> View<'a> {
        View { meta: matrix.meta(), place: Place::Packed(matrix), borrow: PhantomData }
    }

    /// Makes a view of a tensor's values from a byte offset. The tensor must have as many values as `meta`.
    #[inline]
    pub(crate) fn tensor(tensor: &'a dyn Residence, offset: usize, meta: &'a Meta) -> View<'a> {
        View { meta, place: Place::Tensor(tensor, offset), borrow: PhantomData }
    }

    /// The same place with another description, which must fit the memory.
    pub(crate) fn described(self, meta: &'a Meta) -> View<'a> {
        View { meta, ..self }
    }

    view_common!();
}

impl<'a> ViewMut<'a> {
    /// Makes a writable view of host memory.
    ///
    /// # Safety
    /// `data` must be aligned for the dtype and hold `meta.bytes()` bytes that nothing else accesses during `'a`.
    #[inline]
    pub unsafe fn from_raw(data: NonNull<u8>, meta: &'a Meta) -> ViewMut<'a> {
        ViewMut { meta, place: Place::Host(data), borrow: PhantomData }
    }

    /// Makes a writable view of f32 values in host memory. `meta` must be f32 with as many elements as the slice.
    #[inline]
    pub fn f32(data: &'a mut [f32], meta: &'a Meta) -> Result<ViewMut<'a>> {
        check_f32(data.len(), meta)?;
        // SAFETY: the slice is aligned, long enough and mutably borrowed for 'a.
        Ok(unsafe { ViewMut::from_raw(NonNull::from(data).cast(), meta) })
    }

    /// Makes a writable view of a part of a device's buffer. The elements must fit after `offset`.
    pub fn buffer(buffer: &'a dyn Buffer, offset: usize, meta: &'a Meta) -> Result<ViewMut<'a>> {
        check_buffer(buffer, offset, meta)?;
        Ok(ViewMut { meta, place: Place::Buffer(buffer, offset), borrow: PhantomData })
    }

    /// A result that gets its memory where it is computed.
    pub(crate) fn nowhere(meta: &'a Meta) -> ViewMut<'a> {
        ViewMut { meta, place: Place::Nowhere, borrow: PhantomData }
    }

    /// The same view with a shorter lifetime.
    pub(crate) fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { meta: self.meta, place: self.place, borrow: PhantomData }
    }

    view_common!();
}

#[inline]
fn check_f32(length: usize, Meta { dtype, shape }: &Meta) -> Result<()> {
    if *dtype != DType::F32 {
        fail!(DtypeMismatch, "the data is f32, but its description is {dtype}");
    }
    if length != shape.elements() {
        fail!(ShapeMismatch, "the shape {shape} has {} elements and the data {length}", shape.elements());
    }
    Ok(())
}

fn check_buffer(buffer: &dyn Buffer, offset: usize, meta: &Meta) -> Result<()> {
    let size = buffer.size();
    if offset > size || meta.bytes() > size - offset {
        fail!(InvalidArgument, "{} bytes at offset {offset} don't fit in a buffer of {size} bytes", meta.bytes());
    }
    if !offset.is_multiple_of(meta.dtype.size()) {
        fail!(InvalidArgument, "offset {offset} is not a multiple of {}'s {} bytes", meta.dtype, meta.dtype.size());
    }
    Ok(())
}

/// Whether any operand is in a buffer, which other threads may use too.
#[inline(always)]
pub(crate) fn in_buffers(inputs: &[Option<View<'_>>]) -> bool {
    inputs.iter().flatten().any(|view| matches!(view.place, Place::Buffer(..)))
}

/// The address space, start and length of an operand. A buffer that the host can access counts as host memory.
fn span(place: Place<'_>, bytes: usize) -> (usize, usize, usize) {
    match place {
        Place::Host(pointer) => (0, pointer.as_ptr() as usize, bytes),
        Place::Buffer(buffer, offset) => match buffer.host_pointer() {
            Some(pointer) => (0, pointer.as_ptr() as usize + offset, bytes),
            None => (buffer as *const dyn Buffer as *const u8 as usize, offset, bytes),
        },
        // Nothing writes to a packed matrix, and a result without memory overlaps nothing.
        Place::Packed(_) | Place::Nowhere => (0, 0, 0),
        // Nothing writes to a tensor's copy on a device.
        Place::Tensor(tensor, offset) => match tensor.if_on_host() {
            Some(pointer) => (0, pointer.as_ptr() as usize + offset, bytes),
            None => (0, 0, 0),
        },
    }
}

pub(crate) fn overlaps(input: &View<'_>, output: &ViewMut<'_>) -> bool {
    let (a_space, a, a_bytes) = span(input.place, input.meta.bytes());
    let (b_space, b, b_bytes) = span(output.place, output.meta.bytes());
    a_space == b_space && a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes
}

pub(crate) fn same_place(input: &View<'_>, output: &ViewMut<'_>) -> bool {
    let (_, a, _) = span(input.place, 0);
    let (_, b, _) = span(output.place, 0);
    a == b && input.meta == output.meta
}
