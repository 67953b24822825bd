//! `argtopk`: the indices of the greatest elements of every line along an axis.

use super::{Attrs, OpInfo, Values, reduction, rules, topk};
use crate::error::Result;
use crate::operand::{Meta, View};

pub(super) const INFO: OpInfo = OpInfo {
    name: "argtopk",
    operands: &["x"],
    attrs: &["k", "axis", "dtype"],
    in_place: false,
    shape: |attrs, inputs, output| {
        topk::rule("argtopk", attrs, inputs, output)?;
        output.dtype = reduction::index_dtype("argtopk", attrs)?;
        let x = &rules::required(inputs, 0).shape;
        reduction::check_indices("argtopk", output.dtype, x.dims()[topk::axis(attrs, x)?])
    },
    flops: |_, inputs, _| rules::required(inputs, 0).shape.elements() as f64,
};

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let indices = topk::of_lines(attrs, inputs, |_, at| at)?;
    Ok(indices.into_iter().flat_map(|index| reduction::stored_index(index, output.dtype)).collect())
}
