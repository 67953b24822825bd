//! `argmax`: the lowest index of the maximum along an axis or of everything.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract;
use crate::dtype::DType;
use crate::error::{Result, fail};

pub(super) const INFO: OpInfo = OpInfo {
    name: "argmax",
    operands: &["x"],
    attrs: &["axis", "keepdim", "dtype"],
    in_place: false,
    shape: |attrs, inputs, output| {
        rules::one_float("argmax", inputs)?;
        let dtype = attrs.dtype.unwrap_or(DType::I64);
        if !dtype.is_index() {
            fail!(InvalidArgument, "argmax: indices are i64, i32 or u32, not {dtype}");
        }
        let x = &rules::required(inputs, 0).shape;
        let shape = rules::reduced_nonempty("argmax", attrs, x)?;
        let n = rules::Lines::of_reduction(x, attrs.axis).n;
        if dtype != DType::I64 && n > 1 << 31 {
            fail!(InvalidArgument, "argmax: {dtype} can't hold an index below {n}; use i64");
        }
        *output = Meta::new(dtype, shape);
        Ok(())
    },
    flops: |_, inputs, _| rules::required(inputs, 0).shape.elements() as f64,
};

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let x = scalar::floats(inputs, 0)?;
    let lines = rules::Lines::of_reduction(&rules::required(inputs, 0).shape, attrs.axis);
    let mut found = Vec::new();
    for o in 0..lines.outer {
        for i in 0..lines.inner {
            let line: Vec<f32> = (0..lines.n).map(|k| x[(o * lines.n + k) * lines.inner + i]).collect();
            found.push(contract::argmax(&line).unwrap_or(0) as i64);
        }
    }
    Ok(match output.dtype {
        DType::I64 => found.into_iter().flat_map(i64::to_ne_bytes).collect(),
        _ => found.into_iter().flat_map(|index| (index as i32).to_ne_bytes()).collect(),
    })
}
