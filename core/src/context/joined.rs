//! Results of one operation behind each other.

use super::Context;
use crate::command::Command;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::{Meta, ViewMut};
use crate::ops::{Attrs, Op};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::ptr::NonNull;

impl Context {
    /// The results of a unary or moving operation for several tensors, behind each other as one tensor of these dimensions. On the
    /// processor each is written where it belongs, without a copy. `shape_mismatch` unless they have as many elements together,
    /// `dtype_mismatch` unless they have one dtype.
    pub fn run_joined(&self, op: Op, attrs: &Attrs, operands: &[&Tensor], dims: &[usize]) -> Result<Tensor> {
        if let [only] = operands {
            return self.run(op, attrs, &[Some(only)])?.reshape(dims);
        }
        if !self.is_host_only() {
            let parts = operands.iter().map(|operand| {
                let part = self.run(op, attrs, &[Some(operand)])?;
                part.reshape(&[part.len()])
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            return self.concat(&parts.iter().collect::<Vec<_>>(), 0)?.reshape(dims);
        }
        let metas = operands.iter().map(|operand| op.info().infer(attrs, &[Some(operand.view())]));
        let metas = metas.collect::<Result<Vec<Meta>>>()?;
        let all = Meta::new(metas.first().map_or(DType::F32, |first| first.dtype), Shape::new(dims)?);
        if let Some(other) = metas.iter().find(|own| own.dtype != all.dtype) {
            fail!(DtypeMismatch, "{op}: results of {} and {} can't be joined", all.dtype, other.dtype);
        }
        let elements: usize = metas.iter().map(|own| own.shape.elements()).sum();
        if elements != all.shape.elements() {
            fail!(
                ShapeMismatch,
                "{op}: the results have {elements} elements and {} has {}",
                all.shape,
                all.shape.elements()
            );
        }
        Tensor::result(self.cpu.results(), &all, |output| {
            let (first, mut done) = (output.host()?, 0);
            for (operand, own) in operands.iter().zip(&metas) {
                // SAFETY: as many bytes of the output's memory, which nobody else has, behind the ones before.
                let part = unsafe { NonNull::new_unchecked(first.add(done)) };
                let input = [Some(operand.view())];
                // SAFETY: the same, aligned as whole elements are; the rule gave this description.
                let mut command = unsafe { Command::unchecked(op, attrs, &input, ViewMut::from_raw(part, own)) };
                self.execute(&mut command)?;
                done += own.bytes();
            }
            Ok(())
        })
    }
}
