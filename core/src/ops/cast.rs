//! `cast`: converts to another element type.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::contract::{bf16_from_f32, canonical_f64, f16_from_f32, odd_from_f64};
use crate::operand::{Meta, View};
use crate::dtype::DType;
use crate::error::Result;

pub(super) const INFO: OpInfo = OpInfo {
    name: "cast",
    operands: &["x"],
    attrs: &["dtype"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let x = rules::required(inputs, 0);
        *output = Meta::new(attrs.dtype.unwrap_or(DType::F32), x.shape);
        Ok(())
    },
    flops: |_, _, output| output.shape.elements() as f64,
};

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (from, to) = (rules::required(inputs, 0).dtype, output.dtype);
    let bytes = scalar::bytes(inputs, 0)?;
    if from == to {
        return Ok(bytes.to_vec());
    }
    if from == DType::F64 {
        let x = scalar::doubles(inputs, 0)?.into_iter();
        return Ok(match to {
            DType::F16 => x.flat_map(|x| f16_from_f32(odd_from_f64(x)).to_ne_bytes()).collect(),
            DType::BF16 => x.flat_map(|x| bf16_from_f32(odd_from_f64(x)).to_ne_bytes()).collect(),
            DType::F32 => scalar::stored(x.map(|x| x as f32), to),
            DType::I32 => x.flat_map(|x| (x as i32).to_ne_bytes()).collect(),
            DType::U32 => x.flat_map(|x| (x as u32).to_ne_bytes()).collect(),
            DType::I64 => x.flat_map(|x| (x as i64).to_ne_bytes()).collect(),
            DType::U8 => x.map(|x| x as u8).collect(),
            _ => x.map(|x| u8::from(x != 0.0)).collect(),
        });
    }
    if from.is_float() {
        let x = scalar::floats(inputs, 0)?.into_iter();
        // Rust's `as` truncates, saturates and converts NaN to 0, as the contract requires.
        return Ok(match to {
            DType::I32 => x.flat_map(|x| (x as i32).to_ne_bytes()).collect(),
            DType::U32 => x.flat_map(|x| (x as u32).to_ne_bytes()).collect(),
            DType::I64 => x.flat_map(|x| (x as i64).to_ne_bytes()).collect(),
            DType::U8 => x.map(|x| x as u8).collect(),
            DType::Bool => x.map(|x| u8::from(x != 0.0)).collect(),
            DType::F64 => x.flat_map(|x| canonical_f64(x.into()).to_ne_bytes()).collect(),
            _ => scalar::stored(x, to),
        });
    }
    let x = scalar::integers(inputs, 0)?.into_iter();
    Ok(match to {
        DType::F64 => x.flat_map(|x| (x as f64).to_ne_bytes()).collect(),
        _ if to.is_float() => scalar::stored(x.map(|x| x as f32), to),
        _ => scalar::stored_integers(x, to),
    })
}
