//! Conversions between element types.

use super::Encoder;
use super::moves::{Arguments, CAST, copy, dispatch};
use super::{Call, Operand};
use crate::dtype::DType;
use crate::error::Result;

/// `cast` of the op table.
pub fn cast(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let (from, to) = (call.operand(0), call.output);
    if from.dtype == to.dtype {
        let bytes = from.elements() as u64 * from.dtype.size() as u64;
        return copy(encoder, from.address, to.address, bytes, &[]);
    }
    convert(encoder, from, to)
}

/// Converts to another dtype. There must be at least one element.
pub fn convert(encoder: &mut dyn Encoder, from: Operand<'_>, to: Operand<'_>) -> Result<()> {
    let by_fours = |operand: &Operand<'_>| {
        !matches!(operand.dtype, DType::I64 | DType::F64 | DType::Bool | DType::U8)
            && operand.address.is_multiple_of(4 * operand.dtype.size() as u64)
    };
    let vector = u32::from(by_fours(&from) && by_fours(&to));
    let constants = [CAST, 4, 0, from.dtype as u32, to.dtype as u32, vector];
    let n = from.elements();
    let arguments = Arguments { x: from.address, y: to.address, n, ..Arguments::default() };
    dispatch(encoder, &constants, &arguments, n.div_ceil(1024))
}
