//! Typed arrays: a buffer with the type and the shape of what is in it.

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

/// Elements of one type in a device's memory, row-major. Dropping it gives the memory back once work that uses it is done.
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

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.meta.shape
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.meta.shape.elements()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory: for kernels and streams.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// It as an operand: for [`Stream::run`](super::Stream::run) and [`Context::run_array`].
    pub fn operand(&self) -> Operand<'_> {
        Operand { buffer: &self.buffer, offset: 0, meta: &self.meta }
    }

    /// The same elements under another shape, without a copy. `shape_mismatch` for another number of elements.
    pub fn reshape(self, dims: &[usize]) -> Result<GpuArray<T>> {
        let shape = Shape::new(dims)?;
        if shape.elements() != self.len() {
            let (from, to) = (self.shape(), shape.elements());
            fail!(ShapeMismatch, "reshape: {from} has {} elements and {shape} {to}", self.len());
        }
        Ok(GpuArray::of(self.buffer, shape))
    }

    /// Replaces its elements and waits until they are there. `shape_mismatch` for another number of them.
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.expect(values.len())?;
        self.buffer.write(0, values)
    }

    /// Waits for what the context enqueued and copies its elements. `shape_mismatch` for another number of them.
    pub fn read(&self, into: &mut [T]) -> Result<()> {
        self.expect(into.len())?;
        self.buffer.read(0, into)
    }

    /// [`GpuArray::read`] into a new vector.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Default,
    {
        let mut values = vec![T::default(); self.len()];
        self.read(&mut values)?;
        Ok(values)
    }

    /// [`GpuArray::read`] into a new tensor.
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

/// Typed arrays, on the context's GPU; where it has none, in host memory. `out_of_memory` tells the bytes asked for and those
/// that are free.
impl Context {
    /// An array whose elements nobody has set yet: zeros, so that no program reads what was there before.
    pub fn alloc<T: Element>(&self, dims: &[usize]) -> Result<GpuArray<T>> {
        self.alloc_zeros(dims)
    }

    /// An array of zeros.
    pub fn alloc_zeros<T: Element>(&self, dims: &[usize]) -> Result<GpuArray<T>> {
        let shape = Shape::new(dims)?;
        Ok(GpuArray::of(self.buffer_zeroed(Meta::new(T::DTYPE, shape).bytes())?, shape))
    }

    /// An array of ones.
    pub fn alloc_ones<T: Element + One>(&self, dims: &[usize]) -> Result<GpuArray<T>> {
        let (elements, mut ones) = (Shape::new(dims)?.elements(), Vec::new());
        if ones.try_reserve_exact(elements).is_err() {
            fail!(OutOfMemory, "{elements} ones of {} bytes each don't fit in host memory", size_of::<T>());
        }
        ones.resize(elements, T::ONE);
        self.alloc_upload(&ones, dims)
    }

    /// An array with a copy of these values, row-major. `shape_mismatch` unless the shape has as many elements.
    pub fn alloc_upload<T: Element>(&self, values: &[T], dims: &[usize]) -> Result<GpuArray<T>> {
        let shape = Shape::new(dims)?;
        if shape.elements() != values.len() {
            fail!(ShapeMismatch, "{} values for an array {shape} of {} elements", values.len(), shape.elements());
        }
        Ok(GpuArray::of(self.buffer(values)?, shape))
    }

    /// Enqueues an operation on arrays, whose result is an array of its own. Operands are in the operation's order, `None` where
    /// an optional one is left out. Errors as of [`Context::run`]; `dtype_mismatch` where the result has other elements.
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
        // Written before it can be read.
        let result = GpuArray::of(Buffer::new(self.working()?, meta.bytes(), false)?, meta.shape);
        let memory = result.buffer.memory()?;
        self.execute(&mut Command::lent(op, attrs, &views, ViewMut::buffer(&*memory, 0, &meta)?)?)?;
        Ok(result)
    }
}

/// Elements that have a one.
pub trait One {
    /// It.
    const ONE: Self;
}

macro_rules! one {
    ($($element:ty = $one:expr),*) => { $(impl One for $element { const ONE: $element = $one; })* };
}

one!(f32 = 1.0, i32 = 1, i64 = 1, u32 = 1);
