//! `quantized_matmul`: rows times a matrix of quantised blocks.

use super::dequantize::blocks;
use super::{Attrs, Metas, OpInfo, Values, scalar, rules};
use crate::contract::{self, BlockFormat};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::{Meta, View};
use crate::shape::MAX_RANK;

pub(super) const INFO: OpInfo = OpInfo {
    name: "quantized_matmul",
    operands: &["x", "w"],
    attrs: &["format"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let plan = QuantizedPlan::new(attrs, inputs)?;
        let x = &rules::required(inputs, 0).shape;
        let (mut dims, rank) = ([0; MAX_RANK], x.rank());
        dims[..rank].copy_from_slice(x.dims());
        dims[rank - 1] = plan.n;
        output.set(DType::F32, &dims[..rank])
    },
    flops: |attrs, inputs, _| match QuantizedPlan::new(attrs, inputs) {
        Ok(plan) => 2.0 * plan.m as f64 * plan.n as f64 * plan.k as f64,
        Err(_) => 0.0,
    },
};

/// The product as every backend sees it: x `[m, k]`, w `[n, k]` in blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuantizedPlan {
    pub format: BlockFormat,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

impl QuantizedPlan {
    pub fn new(attrs: &Attrs, inputs: Metas<'_>) -> Result<QuantizedPlan> {
        let (x, w) = (rules::required(inputs, 0), rules::required(inputs, 1));
        if x.dtype != DType::F32 {
            fail!(DtypeMismatch, "quantized_matmul: x is {}; it must be f32: cast it first", x.dtype);
        }
        let (format, elements) = blocks("quantized_matmul", attrs, inputs, 1)?;
        if x.shape.rank() == 0 || elements.rank() != 2 || x.shape.from_end(0) != elements.from_end(0) {
            fail!(
                ShapeMismatch,
                "quantized_matmul: x is {} and w is {} of {}, which is {elements}; x must be [.., K] and w's elements [N, K]",
                x.shape,
                w.shape,
                format.name()
            );
        }
        let (n, k) = (elements.from_end(1), elements.from_end(0));
        Ok(QuantizedPlan { format, m: x.shape.dims()[..x.shape.rank() - 1].iter().product(), n, k })
    }
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let QuantizedPlan { format, m, n, k } = QuantizedPlan::new(attrs, inputs.into())?;
    let (x, w) = (scalar::floats(inputs, 0)?, scalar::bytes(inputs, 1)?);
    let row_bytes = k / format.elements() * format.bytes();
    let products = (0..m * n).map(|at| {
        let (x, row) = (&x[at / n * k..], &w[at % n * row_bytes..]);
        contract::block_dot(format, k, |i| x[i], row)
    });
    Ok(scalar::stored(products, output.dtype))
}
