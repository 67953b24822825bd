//! Typed arrays: a buffer with the type and shape of its elements.

use super::{Buffer, Operand};
use crate::command::Command;
use crate::context::Context;
use crate::error::{Result, fail};
use crate::operand::{Inputs, Meta, View, ViewMut};
use crate::ops::{Attrs, Op};
use crate::shape::Shape;
use crate::tensor::{Element, Tensor};
use smallvec::SmallVec;
use std::fmt;
use std::marker::PhantomData;

/// Holds elements of one type in a device's memory, row-major. Dropping it frees the memory once the work that uses it is done.
///
/// ```
/// use adead_core::{Attrs, Context, Op};
///
/// # fn main() -> adead_core::Result<()> {
/// let ctx = Context::auto()?;
/// let a = ctx.alloc_upload(&[1.0f32, -2.0, 3.0, -4.0], &[2, 2])?;
/// let b = ctx.alloc_ones::<f32>(&[2, 2])?;
/// let product = ctx.run_array::<f32>(Op::Matmul, &Attrs::default(), &[Some(a.operand()), Some(b.operand())])?;
/// assert_eq!(product.to_vec()?, [-1.0, -1.0, -1.0, -1.0]);
/// # Ok(())
/// # }
/// ```
pub struct GpuArray<T: Element> {
    buffer: Buffer,
    meta: Meta,
    element: PhantomData<T>,
}

impl<T: Element> GpuArray<T> {
    fn of(buffer: Buffer, shape: Shape) -> GpuArray<T> {
        GpuArray { buffer, meta: Meta::new(T::DTYPE, shape), element: PhantomData }
    }

    /// Returns the shape.
    pub fn shape(&self) -> &Shape {
        &self.meta.shape
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.meta.shape.elements()
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory, for kernels and streams.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Returns the array as an operand, for [`Stream::run`](super::Stream::run) and [`Context::run_array`].
    pub fn operand(&self) -> Operand<'_> {
        Operand { buffer: &self.buffer, offset: 0, meta: &self.meta }
    }

    /// Gives the elements another shape without a copy. Returns `shape_mismatch` for another number of elements.
    pub fn reshape(self, dims: &[usize]) -> Result<GpuArray<T>> {
        let shape = Shape::new(dims)?;
        if shape.elements() != self.len() {
            let (from, to) = (self.shape(), shape.elements());
            fail!(ShapeMismatch, "reshape: {from} has {} elements and {shape} {to}", self.len());
        }
        Ok(GpuArray::of(self.buffer, shape))
    }

    /// Replaces the elements and waits until they are written. Returns `shape_mismatch` for another number of values.
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.expect(values.len())?;
        self.buffer.write(0, values)
    }

    /// Waits for the context's enqueued work and copies the elements. Returns `shape_mismatch` if `into` has another length.
    pub fn read(&self, into: &mut [T]) -> Result<()> {
        self.expect(into.len())?;
        self.buffer.read(0, into)
    }

    /// Reads the elements into a new vector, like [`GpuArray::read`].
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Default,
    {
        let mut values = vec![T::default(); self.len()];
        self.read(&mut values)?;
        Ok(values)
    }

    /// Reads the elements into a new tensor, like [`GpuArray::read`].
    pub fn to_tensor(&self) -> Result<Tensor> {
        self.buffer.to_tensor(0, &self.meta)
    }

    fn expect(&self, values: usize) -> Result<()> {
        if values != self.len() {
            fail!(ShapeMismatch, "{values} values for an array {} of {} elements", self.shape(), self.len());
        }
        Ok(())
    }
}

impl<T: Element> fmt::Debug for GpuArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", T::DTYPE, self.shape(), self.buffer.device().id)
    }
}

/// Typed arrays, on the context's GPU. Without a GPU they are in host memory. `out_of_memory` states the bytes requested and the
/// bytes free.
impl Context {
    /// Allocates an array. Its elements are zero, so that no program can read what was in the memory before.
    pub fn alloc<T: Element>(&self, dims: &[usize]) -> Result<GpuArray<T>> {
        self.alloc_zeros(dims)
    }

    /// Allocates an array of zeros.
    pub fn alloc_zeros<T: Element>(&self, dims: &[usize]) -> Result<GpuArray<T>> {
        let shape = Shape::new(dims)?;
        Ok(GpuArray::of(self.buffer_zeroed(Meta::new(T::DTYPE, shape).bytes())?, shape))
    }

    /// Allocates an array of ones.
    pub fn alloc_ones<T: Element + One>(&self, dims: &[usize]) -> Result<GpuArray<T>> {
        let (elements, mut ones) = (Shape::new(dims)?.elements(), Vec::new());
        if ones.try_reserve_exact(elements).is_err() {
            fail!(OutOfMemory, "{elements} ones of {} bytes each don't fit in host memory", size_of::<T>());
        }
        ones.resize(elements, T::ONE);
        self.alloc_upload(&ones, dims)
    }

    /// Allocates an array with a copy of these values, row-major. Returns `shape_mismatch` unless the shape has as many elements.
    pub fn alloc_upload<T: Element>(&self, values: &[T], dims: &[usize]) -> Result<GpuArray<T>> {
        let shape = Shape::new(dims)?;
        if shape.elements() != values.len() {
            fail!(ShapeMismatch, "{} values for an array {shape} of {} elements", values.len(), shape.elements());
        }
        Ok(GpuArray::of(self.buffer(values)?, shape))
    }

    /// Enqueues an operation on arrays and returns its result as a new array. Operands are in the operation's order, `None` for
    /// an optional operand that is left out. Returns the errors of [`Context::run`], and `dtype_mismatch` if the result's
    /// elements are not `T`.
    pub fn run_array<T: Element>(&self, op: Op, attrs: &Attrs, inputs: &[Option<Operand<'_>>]) -> Result<GpuArray<T>> {
        let mut memories = SmallVec::<[_; 4]>::new();
        for input in inputs {
            memories.push(input.map(|operand| operand.buffer.memory()).transpose()?);
        }
        let mut views = Inputs::new();
        for (memory, input) in memories.iter().zip(inputs) {
            views.push(match (memory, input) {
                (Some(memory), Some(operand)) => Some(View::buffer(&**memory, operand.offset, operand.meta)?),
                _ => None,
            });
        }
        let meta = op.info().infer(attrs, &views)?;
        if meta.dtype != T::DTYPE {
            fail!(DtypeMismatch, "{op}: the result is {}, not {}", meta.dtype, T::DTYPE);
        }
        // Not zeroed: the operation writes it before anything can read it.
        let result = GpuArray::of(Buffer::new(self.working()?, meta.bytes(), false)?, meta.shape);
        let memory = result.buffer.memory()?;
        self.execute(&mut Command::lent(op, attrs, &views, ViewMut::buffer(&*memory, 0, &meta)?)?)?;
        Ok(result)
    }
}

/// Element types that have a one.
pub trait One {
    /// The value one.
    const ONE: Self;
}

macro_rules! one {
    ($($element:ty = $one:expr),*) => { $(impl One for $element { const ONE: $element = $one; })* };
}

one!(f32 = 1.0, i32 = 1, i64 = 1, u32 = 1);
