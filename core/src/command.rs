//! Commands: an operation, its attributes and its operands. Everything the runtime does is one of these.
//!
//! A command borrows its operands from its maker's stack and holds no heap memory; making one copies nothing large.

use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::Buffer;
use crate::hal::cpu::Packed;
use crate::ops::{Attrs, Op};
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What an operand looks like, without its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, row-major and contiguous.
    pub shape: Shape,
}

impl Meta {
    /// An f32 scalar, to be given another description in place.
    #[inline(always)]
    pub fn scalar() -> Meta {
        Meta { dtype: DType::F32, shape: Shape::scalar() }
    }

    /// Makes this the description of that dtype and those dimensions, as [`Shape::set`] does.
    #[inline]
    pub fn set(&mut self, dtype: DType, dims: &[usize]) -> Result<()> {
        self.dtype = dtype;
        self.shape.set(dims)
    }

    /// Makes this a copy of another. Only the dimensions that are there are moved, where an assignment moves all.
    #[inline]
    pub fn assign(&mut self, other: &Meta) {
        self.dtype = other.dtype;
        self.shape.assign(&other.shape);
    }

    /// A description.
    #[inline]
    pub fn new(dtype: DType, shape: Shape) -> Meta {
        Meta { dtype, shape }
    }

    /// Bytes of all elements. [`Shape::new`] bounds the product.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.shape.elements() * self.dtype.size()
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// Where an operand's elements are.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// In host memory.
    Host(NonNull<u8>),
    /// In a device's buffer, from a byte offset.
    Buffer(&'a dyn Buffer, usize),
    /// In the layout of the kernels that multiply with them.
    Packed(&'a Packed),
    /// Wherever a tensor's values are, from a byte offset.
    Tensor(&'a Tensor, usize),
    /// Nowhere yet: a result gets its memory where it is computed.
    Nowhere,
}

/// An operand that is read.
#[derive(Clone, Copy)]
pub struct View<'a> {
    meta: &'a Meta,
    place: Place<'a>,
    borrow: PhantomData<&'a [u8]>,
}

/// The operand that is written.
pub struct ViewMut<'a> {
    meta: &'a Meta,
    place: Place<'a>,
    borrow: PhantomData<&'a mut [u8]>,
}

/// Operands in the operation's order, `None` where an optional one is absent: for makers of commands that don't know how
/// many there are.
pub type Inputs<'a> = SmallVec<[Option<View<'a>>; 4]>;

/// The first element of an operand that is not plain host memory.
#[inline(never)]
fn elsewhere(place: Place<'_>) -> Result<*mut u8> {
    match place {
        Place::Host(pointer) => Ok(pointer.as_ptr()),
        Place::Buffer(buffer, offset) => match buffer.host_pointer() {
            // SAFETY: whoever made the view checked that offset + bytes is inside the buffer.
            Some(pointer) => Ok(unsafe { pointer.as_ptr().add(offset) }),
            None => fail!(InvalidArgument, "the operand is on {}, not in host memory", buffer.device_name()),
        },
        Place::Packed(_) => fail!(InvalidArgument, "an operand is a packed matrix: only matmul's b may be"),
        Place::Nowhere => fail!(Internal, "a result has no memory"),
        // SAFETY: whoever made the view checked that offset + bytes is inside the tensor.
        Place::Tensor(tensor, offset) => Ok(unsafe { tensor.host()?.as_ptr().add(offset) }),
    }
}

macro_rules! view_common {
    () => {
        /// The description.
        #[inline]
        pub fn meta(&self) -> &'a Meta {
            self.meta
        }

        /// The element type.
        #[inline]
        pub fn dtype(&self) -> DType {
            self.meta.dtype
        }

        /// The dimensions.
        #[inline]
        pub fn shape(&self) -> &'a Shape {
            &self.meta.shape
        }

        /// Where the elements are.
        #[inline]
        pub fn place(&self) -> Place<'a> {
            self.place
        }

        /// The first element in host memory; an error if it is on a device that the host can't address, or packed. A tensor's
        /// values are brought there.
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
    /// A view of host memory.
    ///
    /// # Safety
    /// `data` is aligned for the dtype and holds `meta.bytes()` initialised bytes that nobody writes during `'a`.
    #[inline]
    pub unsafe fn from_raw(data: NonNull<u8>, meta: &'a Meta) -> View<'a> {
        View { meta, place: Place::Host(data), borrow: PhantomData }
    }

    /// A view of f32 values in host memory; `meta` must say f32, and as many elements as the slice has.
    #[inline]
    pub fn f32(data: &'a [f32], meta: &'a Meta) -> Result<View<'a>> {
        check_f32(data.len(), meta)?;
        // SAFETY: the slice is aligned, initialised, long enough and borrowed for 'a.
        Ok(unsafe { View::from_raw(NonNull::from(data).cast(), meta) })
    }

    /// A view of part of a device's buffer; `bytes` must fit behind `offset`.
    pub fn buffer(buffer: &'a dyn Buffer, offset: usize, meta: &'a Meta) -> Result<View<'a>> {
        check_buffer(buffer, offset, meta)?;
        Ok(View { meta, place: Place::Buffer(buffer, offset), borrow: PhantomData })
    }

    /// A packed matrix, as b of `matmul`; no other operand may be one.
    pub fn packed(matrix: &'a Packed) -> View<'a> {
        View { meta: matrix.meta(), place: Place::Packed(matrix), borrow: PhantomData }
    }

    /// A tensor's values from a byte offset on, which are as many as `meta` says.
    #[inline]
    pub(crate) fn tensor(tensor: &'a Tensor, offset: usize, meta: &'a Meta) -> View<'a> {
        View { meta, place: Place::Tensor(tensor, offset), borrow: PhantomData }
    }

    /// The same place with another description, which fits what is there.
    pub(crate) fn described(self, meta: &'a Meta) -> View<'a> {
        View { meta, ..self }
    }

    view_common!();
}

impl<'a> ViewMut<'a> {
    /// A writable view of host memory.
    ///
    /// # Safety
    /// `data` is aligned for the dtype and holds `meta.bytes()` bytes that nobody else touches during `'a`.
    #[inline]
    pub unsafe fn from_raw(data: NonNull<u8>, meta: &'a Meta) -> ViewMut<'a> {
        ViewMut { meta, place: Place::Host(data), borrow: PhantomData }
    }

    /// A writable view of f32 values in host memory; `meta` must say f32, and as many elements as the slice has.
    #[inline]
    pub fn f32(data: &'a mut [f32], meta: &'a Meta) -> Result<ViewMut<'a>> {
        check_f32(data.len(), meta)?;
        // SAFETY: the slice is aligned, long enough and mutably borrowed for 'a.
        Ok(unsafe { ViewMut::from_raw(NonNull::from(data).cast(), meta) })
    }

    /// A writable view of part of a device's buffer; `bytes` must fit behind `offset`.
    pub fn buffer(buffer: &'a dyn Buffer, offset: usize, meta: &'a Meta) -> Result<ViewMut<'a>> {
        check_buffer(buffer, offset, meta)?;
        Ok(ViewMut { meta, place: Place::Buffer(buffer, offset), borrow: PhantomData })
    }

    /// A result that gets its memory where it is computed.
    pub(crate) fn nowhere(meta: &'a Meta) -> ViewMut<'a> {
        ViewMut { meta, place: Place::Nowhere, borrow: PhantomData }
    }

    /// The same view for a shorter time.
    pub(crate) fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { meta: self.meta, place: self.place, borrow: PhantomData }
    }

    view_common!();
}

#[inline]
fn check_f32(length: usize, Meta { dtype, shape }: &Meta) -> Result<()> {
    if *dtype != DType::F32 {
        fail!(DtypeMismatch, "the data is f32 and its description says {dtype}");
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

/// An operation with its attributes and operands, which fit it: ready to be priced and executed. Kernels trust that, so a command
/// is made by [`Command::new`] alone and never changes.
pub struct Command<'a> {
    op: Op,
    attrs: Attrs,
    inputs: &'a [Option<View<'a>>],
    output: ViewMut<'a>,
}

impl<'a> Command<'a> {
    /// A checked command: operands, dtypes, shapes and attributes fit the operation, the output has the shape and dtype
    /// that follow from them, and does not overlap an input (except exactly, for elementwise operations).
    #[inline]
    pub fn new(op: Op, attrs: Attrs, inputs: &'a [Option<View<'a>>], output: ViewMut<'a>) -> Result<Command<'a>> {
        let info = op.info();
        let mut expected = Meta::scalar();
        info.describe(&attrs, inputs.into(), &mut expected)?;
        if expected.dtype != output.dtype() {
            fail!(DtypeMismatch, "{op}: the output is {}; it must be {}", output.dtype(), expected.dtype);
        }
        if expected.shape != *output.shape() {
            fail!(ShapeMismatch, "{op}: the output is {}; it must be {}", output.shape(), expected.shape);
        }
        for (i, input) in inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            if let Place::Packed(_) = input.place {
                may_be_packed(op, i)?;
            } else if overlaps(input, &output) && !(info.in_place && same_place(input, &output)) {
                fail!(InvalidArgument, "{op}: the output overlaps operand {i}");
            }
        }
        Ok(Command { op, attrs, inputs, output })
    }

    /// A command of which everything is known that [`Command::new`] would find out.
    ///
    /// # Safety
    /// The operation's rule accepts these attributes and inputs; the output has the description that it gives, and no memory of an
    /// input's, unless exactly that of an operation that works in place.
    #[inline(always)]
    pub(crate) unsafe fn unchecked(
        op: Op,
        attrs: Attrs,
        inputs: &'a [Option<View<'a>>],
        output: ViewMut<'a>,
    ) -> Command<'a> {
        Command { op, attrs, inputs, output }
    }

    /// The same command with another output.
    ///
    /// # Safety
    /// The output is described as this one's and has no memory of an input's.
    #[inline(always)]
    pub(crate) unsafe fn with_output<'b>(&'b self, output: ViewMut<'b>) -> Command<'b> {
        Command { op: self.op, attrs: self.attrs, inputs: self.inputs, output }
    }

    /// What to do.
    #[inline(always)]
    pub fn op(&self) -> Op {
        self.op
    }

    /// How.
    #[inline(always)]
    pub fn attrs(&self) -> &Attrs {
        &self.attrs
    }

    /// With what, in the operation's order; `None` where an optional operand is absent.
    #[inline(always)]
    pub fn inputs(&self) -> &'a [Option<View<'a>>] {
        self.inputs
    }

    /// Where to.
    #[inline(always)]
    pub fn output(&self) -> &ViewMut<'a> {
        &self.output
    }

    /// Whether an operand or the output is in a buffer.
    #[inline(always)]
    pub(crate) fn has_buffers(&self) -> bool {
        matches!(self.output.place, Place::Buffer(..)) || in_buffers(self.inputs)
    }

    /// All of it, with the output to be written.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> (Op, &Attrs, &'a [Option<View<'a>>], &mut ViewMut<'a>) {
        (self.op, &self.attrs, self.inputs, &mut self.output)
    }
}

/// Whether any operand is in a buffer, which other threads may use.
#[inline(always)]
pub(crate) fn in_buffers(inputs: &[Option<View<'_>>]) -> bool {
    inputs.iter().flatten().any(|view| matches!(view.place, Place::Buffer(..)))
}

/// Only one operand of one operation may be a packed matrix.
#[cold]
#[inline(never)]
fn may_be_packed(op: Op, i: usize) -> Result<()> {
    if op != Op::Matmul || i != 1 {
        fail!(InvalidArgument, "{op}: operand {i} is a packed matrix: only matmul's b may be");
    }
    Ok(())
}

/// Which memory, and from where to where: a buffer that the host can address is host memory like any other.
fn span(place: Place<'_>, bytes: usize) -> (usize, usize, usize) {
    match place {
        Place::Host(pointer) => (0, pointer.as_ptr() as usize, bytes),
        Place::Buffer(buffer, offset) => match buffer.host_pointer() {
            Some(pointer) => (0, pointer.as_ptr() as usize + offset, bytes),
            None => (buffer as *const dyn Buffer as *const u8 as usize, offset, bytes),
        },
        // Never asked: nobody writes to a packed matrix, and what is nowhere overlaps nothing.
        Place::Packed(_) | Place::Nowhere => (0, 0, 0),
        // Nobody writes to a copy on a device.
        Place::Tensor(tensor, offset) => match tensor.if_on_host() {
            Some(pointer) => (0, pointer.as_ptr() as usize + offset, bytes),
            None => (0, 0, 0),
        },
    }
}

fn overlaps(input: &View<'_>, output: &ViewMut<'_>) -> bool {
    let (a_space, a, a_bytes) = span(input.place, input.meta.bytes());
    let (b_space, b, b_bytes) = span(output.place, output.meta.bytes());
    a_space == b_space && a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes
}

fn same_place(input: &View<'_>, output: &ViewMut<'_>) -> bool {
    let (_, a, _) = span(input.place, 0);
    let (_, b, _) = span(output.place, 0);
    a == b && input.meta == output.meta
}
