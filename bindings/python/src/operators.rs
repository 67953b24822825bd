//! Operators of tensors with tensors, arrays and numbers: in which dtype they are computed.

use crate::buffers::{Doubles, Exported};
use crate::context::PyContext;
use crate::current::default_context;
use crate::errors::{Result, fail};
use crate::operations;
use crate::tensor::PyTensor;
use crate::values::{Operand, is_integer, is_number, scalar, tensor_of};
use adead::{Attrs, DType, Op, OpKind, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyBool;

impl PyTensor {
    /// Returns an integer that is compared with integers or bools.
    fn compared_with(&self, op: Op, other: &Bound<'_, PyAny>) -> Option<i64> {
        let compares = op.kind() == OpKind::Comparison && !self.0.dtype().is_float() && is_number(other);
        if compares { other.extract().ok() } else { None }
    }

    /// Returns a power of integers, exact and wrapping around: products of the squares for the exponent's bits.
    fn raised_to(&self, py: Python<'_>, ctx: &PyContext, exponent: i64) -> Result<Tensor> {
        if exponent < 0 {
            fail!(InvalidArgument, "integers to the power {exponent} are fractions: cast the tensor to f32 first");
        }
        let product = |a: &Tensor, b: &Tensor| {
            operations::run(py, ctx, Op::Mul, &Attrs::DEFAULT, &[Some(a.view()), Some(b.view())])
        };
        let mut square = self.0.clone();
        let mut power = None;
        for bit in 0..64 - exponent.leading_zeros() {
            if bit > 0 {
                square = product(&square, &square)?;
            }
            if exponent >> bit & 1 == 1 {
                power = Some(power.map_or_else(|| Ok(square.clone()), |power| product(&power, &square))?);
            }
        }
        match power {
            Some(power) => Ok(power),
            // x⁰ is 1.
            None => {
                let equal = [Some(self.0.view()), Some(self.0.view())];
                let truth = operations::run(py, ctx, Op::Equal, &Attrs::DEFAULT, &equal)?;
                let to = Attrs { dtype: Some(self.0.dtype()), ..Attrs::DEFAULT };
                operations::run(py, ctx, Op::Cast, &to, &[Some(truth.view())])
            }
        }
    }

    /// Computes `self ∘ other` or `other ∘ self`; None if tensors have no operator with the other object.
    pub fn operator(&self, py: Python<'_>, op: Op, other: &Bound<'_, PyAny>, turned: bool) -> Result<Option<PyTensor>> {
        let ctx = default_context(py)?;
        let ctx = ctx.get();
        let mut wide = None;
        let to = |dtype| Attrs { dtype: Some(dtype), ..Attrs::DEFAULT };
        let cast = |dtype| operations::run(py, ctx, Op::Cast, &to(dtype), &[Some(self.0.view())]);
        let takes_powers = !self.0.dtype().is_float() && self.0.dtype() != DType::Bool;
        if op == Op::Pow && !turned && takes_powers && is_number(other) && is_integer(other) {
            return Ok(Some(PyTensor(self.raised_to(py, ctx, other.extract()?)?)));
        }
        let other = if let Ok(tensor) = other.cast::<PyTensor>() {
            Operand::Tensor(tensor.clone())
        } else if let Some(whole) = self.compared_with(op, other) {
            // Exact, because i64 holds the values of i32, u32 and bool.
            wide = Some(cast(DType::I64)?);
            Operand::Own(Tensor::new(&[whole], &[])?)
        } else if is_number(other) && op != Op::Matmul {
            let own = self.0.dtype();
            let dtype = if own.is_float() { own } else { computed_with(op, own, other) };
            if dtype != own {
                wide = Some(cast(dtype)?);
            }
            Operand::Own(if dtype.is_float() {
                scalar(&ctx.inner, other, dtype)?
            } else {
                tensor_of(&ctx.inner, other, Some(dtype))?
            })
        } else if Exported::supports_buffer_protocol(other) {
            Operand::with(other, Doubles::beside(self.0.dtype() == DType::F64))?
        } else {
            return Ok(None);
        };
        let mut other = other;
        let is_whole = |dtype: DType| !dtype.is_float();
        if op == Op::Div && is_whole(self.0.dtype()) && other.view().is_some_and(|view| is_whole(view.meta().dtype)) {
            // A quotient of integers is a float. `//` has their own division.
            wide = Some(cast(DType::F32)?);
            other = Operand::Own(operations::run(py, ctx, Op::Cast, &to(DType::F32), &[other.view()])?);
        }
        let (own, other) = (Some(wide.as_ref().unwrap_or(&self.0).view()), other.view());
        let views = if turned { [other, own] } else { [own, other] };
        Ok(Some(PyTensor(operations::run_as_numpy(py, ctx, op, &Attrs::DEFAULT, &views)?)))
    }
}

/// Returns the dtype in which an operator of integers or bools and a number is computed: that of the integers if the number is an
/// int, i64 if it is an int and the tensor holds bools, else f32.
fn computed_with(op: Op, own: DType, number: &Bound<'_, PyAny>) -> DType {
    if op == Op::Div || !op.takes_integers() || !is_integer(number) {
        return DType::F32;
    }
    if own == DType::Bool && !number.is_instance_of::<PyBool>() { DType::I64 } else { own }
}

macro_rules! operators {
    ($($op:ident: $name:ident, $turned:ident;)*) => {
        /// The implementation of Python's operators.
        impl PyTensor {
            $(pub fn $name(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Option<PyTensor>> {
                self.operator(py, Op::$op, other, false)
            }
            pub fn $turned(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Result<Option<PyTensor>> {
                self.operator(py, Op::$op, other, true)
            })*
        }
    };
}

operators! {
    Add: plus, onto;
    Sub: minus, from;
    Mul: times, by;
    Div: over, under;
    Matmul: product, of;
    Pow: raised, exponent_of;
}

/// Converts an operator's result; None becomes NotImplemented.
pub fn or_not(py: Python<'_>, result: Result<Option<PyTensor>>) -> Result<Py<PyAny>> {
    match result? {
        Some(tensor) => Ok(Bound::new(py, tensor)?.into_any().unbind()),
        None => Ok(py.NotImplemented()),
    }
}
