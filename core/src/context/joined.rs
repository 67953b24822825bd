//! Runs one operation on several tensors and joins the results.

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
    /// Runs a unary or moving operation on several tensors and joins the results, in order, as one tensor of shape `dims`. On the
    /// CPU each result is written in its place, without a copy. Returns `shape_mismatch` unless the results together have as many
    /// elements as `dims`, `dtype_mismatch` unless they have one dtype.
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
                // SAFETY: the parts are consecutive and together as long as the output, whose memory nothing else uses.
                let part = unsafe { NonNull::new_unchecked(first.add(done)) };
                let input = [Some(operand.view())];
                // SAFETY: as above. Only whole elements precede the part, so it is aligned. The shape rule returned `own`.
                let mut command = unsafe { Command::unchecked(op, attrs, &input, ViewMut::from_raw(part, own)) };
                self.execute(&mut command)?;
                done += own.bytes();
            }
            Ok(())
        })
    }
}
