//! What the rules record operations with.

use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::Meta;
use crate::ops::{Attrs, Axis, Op, PerAxis, Permutation};
use crate::pipeline::{Pipeline, Value};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Records operations behind those of a pipeline. Its functions are not inlined, because the rules call them at some hundred places.
pub(super) struct Recorder<'a>(pub &'a mut Pipeline);

impl Recorder<'_> {
    /// The value of a node.
    #[inline(never)]
    pub fn value(&self, node: u32) -> Value {
        self.0.value_of(node)
    }

    #[inline(never)]
    pub fn meta(&self, value: Value) -> Result<Meta> {
        self.0.meta(value)
    }

    #[inline(never)]
    pub fn shape(&self, value: Value) -> Result<Shape> {
        Ok(self.0.meta(value)?.shape)
    }

    #[inline(never)]
    pub fn op(&mut self, op: Op, attrs: &Attrs, operands: &[Value]) -> Result<Value> {
        let operands: Vec<Option<Value>> = operands.iter().copied().map(Some).collect();
        self.0.op(op, attrs, &operands)
    }

    #[inline(never)]
    fn plain(&mut self, op: Op, operands: &[Value]) -> Result<Value> {
        self.op(op, &Attrs::DEFAULT, operands)
    }

    /// A number as a value of the dtype of another one.
    #[inline(never)]
    pub fn number(&mut self, number: f32, like: Value) -> Result<Value> {
        let dtype = self.meta(like)?.dtype;
        let value = self.0.constant(&Tensor::new(&[number], &[])?)?;
        self.cast(value, dtype)
    }

    /// Ones of a shape and dtype.
    #[inline(never)]
    pub fn ones(&mut self, meta: &Meta) -> Result<Value> {
        let value = self.0.constant(&Tensor::new(&vec![1.0f32; meta.shape.elements()], meta.shape.dims())?)?;
        self.cast(value, meta.dtype)
    }

    /// The numbers 0, 1, … `count` − 1 as ids of a dtype.
    #[inline(never)]
    pub fn numbers(&mut self, count: usize, dtype: DType) -> Result<Value> {
        let numbers = 0..count as i64;
        let tensor = match dtype {
            DType::I64 => Tensor::new(&numbers.collect::<Vec<i64>>(), &[count])?,
            DType::U32 => Tensor::new(&numbers.map(|number| number as u32).collect::<Vec<u32>>(), &[count])?,
            _ => Tensor::new(&numbers.map(|number| number as i32).collect::<Vec<i32>>(), &[count])?,
        };
        self.0.constant(&tensor)
    }

    #[inline(never)]
    pub fn cast(&mut self, value: Value, dtype: DType) -> Result<Value> {
        if self.meta(value)?.dtype == dtype {
            return Ok(value);
        }
        self.op(Op::Cast, &Attrs { dtype: Some(dtype), ..Attrs::DEFAULT }, &[value])
    }

    #[inline(never)]
    pub fn reshape(&mut self, value: Value, dims: &[usize]) -> Result<Value> {
        if self.shape(value)?.dims() == dims { Ok(value) } else { self.0.reshape(value, dims) }
    }

    #[inline(never)]
    pub fn scale(&mut self, value: Value, alpha: f32) -> Result<Value> {
        self.op(Op::Scale, &Attrs { alpha, ..Attrs::DEFAULT }, &[value])
    }

    #[inline(never)]
    pub fn unary(&mut self, op: Op, x: Value) -> Result<Value> {
        self.plain(op, &[x])
    }

    #[inline(never)]
    pub fn binary(&mut self, op: Op, a: Value, b: Value) -> Result<Value> {
        self.plain(op, &[a, b])
    }

    #[inline(never)]
    pub fn add(&mut self, a: Value, b: Value) -> Result<Value> {
        self.plain(Op::Add, &[a, b])
    }

    #[inline(never)]
    pub fn sub(&mut self, a: Value, b: Value) -> Result<Value> {
        self.plain(Op::Sub, &[a, b])
    }

    #[inline(never)]
    pub fn mul(&mut self, a: Value, b: Value) -> Result<Value> {
        self.plain(Op::Mul, &[a, b])
    }

    #[inline(never)]
    pub fn div(&mut self, a: Value, b: Value) -> Result<Value> {
        self.plain(Op::Div, &[a, b])
    }

    /// `1 − x`.
    #[inline(never)]
    pub fn rest(&mut self, x: Value) -> Result<Value> {
        let one = self.number(1.0, x)?;
        self.sub(one, x)
    }

    /// The gradient where a condition holds, and 0 elsewhere.
    #[inline(never)]
    pub fn only_where(&mut self, condition: Value, gradient: Value) -> Result<Value> {
        let zero = self.number(0.0, gradient)?;
        self.plain(Op::Where, &[condition, gradient, zero])
    }

    /// The sums over axes, which stay with length 1.
    #[inline(never)]
    pub fn sums(&mut self, value: Value, axes: &[usize]) -> Result<Value> {
        self.reduced(Op::Sum, value, axes)
    }

    #[inline(never)]
    pub fn reduced(&mut self, op: Op, value: Value, axes: &[usize]) -> Result<Value> {
        let axes: Vec<i32> = axes.iter().map(|&axis| axis as i32).collect();
        self.op(op, &Attrs { axes: Permutation::new(&axes)?, keepdim: true, ..Attrs::DEFAULT }, &[value])
    }

    /// The sums or means over the last axis, which stays with length 1.
    #[inline(never)]
    pub fn over_last(&mut self, op: Op, value: Value) -> Result<Value> {
        self.op(op, &Attrs { axis: Axis::At(-1), keepdim: true, ..Attrs::DEFAULT }, &[value])
    }

    /// Adds up what was broadcast from a shape.
    #[inline(never)]
    pub fn sum_to(&mut self, value: Value, shape: &Shape) -> Result<Value> {
        let from = self.shape(value)?;
        if from == *shape {
            return Ok(value);
        }
        let lead = from.rank() - shape.rank();
        let is_broadcast = |axis: &usize| *axis < lead || shape.dims()[*axis - lead] != from.dims()[*axis];
        let axes: Vec<usize> = (0..from.rank()).filter(is_broadcast).collect();
        let summed = if axes.is_empty() { value } else { self.sums(value, &axes)? };
        self.reshape(summed, shape.dims())
    }

    /// Repeats a value along the axes where it has length 1 and the shape more.
    #[inline(never)]
    pub fn expand(&mut self, value: Value, shape: &Shape) -> Result<Value> {
        let meta = self.meta(value)?;
        if meta.shape == *shape {
            return Ok(value);
        }
        let ones = self.ones(&Meta::new(meta.dtype, *shape))?;
        self.mul(value, ones)
    }

    /// `op(a)·op(b)`.
    #[inline(never)]
    pub fn matmul(
        &mut self,
        (a, trans_a): (Value, bool),
        (b, trans_b): (Value, bool),
        precision: Option<Precision>,
    ) -> Result<Value> {
        self.op(Op::Matmul, &Attrs { trans_a, trans_b, precision, ..Attrs::DEFAULT }, &[a, b])
    }

    /// Pads every axis with zeros, also between elements that are `step` apart.
    #[inline(never)]
    pub fn pad(&mut self, value: Value, before: &[usize], after: &[usize], step: &[usize]) -> Result<Value> {
        let numbers = |list: &[usize]| PerAxis::new(&list.iter().map(|&n| n as i32).collect::<Vec<i32>>());
        let zero = self.number(0.0, value)?;
        let attrs = Attrs { start: numbers(before)?, stop: numbers(after)?, step: numbers(step)?, ..Attrs::DEFAULT };
        self.op(Op::Pad, &attrs, &[value, zero])
    }

    /// The part of every axis from a start on.
    #[inline(never)]
    pub fn part(&mut self, value: Value, start: &[usize], dims: &[usize]) -> Result<Value> {
        let stop: Vec<i32> = start.iter().zip(dims).map(|(&start, &n)| (start + n) as i32).collect();
        let start: Vec<i32> = start.iter().map(|&start| start as i32).collect();
        let attrs = Attrs { start: PerAxis::new(&start)?, stop: PerAxis::new(&stop)?, ..Attrs::DEFAULT };
        self.op(Op::Slice, &attrs, &[value])
    }
}
