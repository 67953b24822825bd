//! The shape rule and the scalar reference of all comparisons.

use super::{Metas, Values, rules, scalar};
use crate::contract::outcome;
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::{Meta, View};

/// The shape rule of a comparison: two operands of the same dtype, whichever it is, broadcast to a bool result.
pub(super) fn rule(op: &str, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
    let (a, b) = (rules::required(inputs, 0), rules::required(inputs, 1));
    rules::same_dtype(op, a, b)?;
    rules::broadcast(op, &[a, b], output)?;
    output.dtype = DType::Bool;
    Ok(())
}

/// Computes the result. `truths` has the bits of the [`outcome`]s for which the comparison is true.
pub(super) fn reference(inputs: &[Option<View<'_>>], output: &Meta, truths: u8) -> Result<Values> {
    let dtype = rules::required(inputs, 0).dtype;
    if dtype == DType::F64 {
        let (a, b) = (scalar::doubles(inputs, 0)?, scalar::doubles(inputs, 1)?);
        return Ok(compared(&a, &b, inputs, output, truths));
    }
    if dtype.is_float() {
        let (a, b) = (scalar::floats(inputs, 0)?, scalar::floats(inputs, 1)?);
        return Ok(compared(&a, &b, inputs, output, truths));
    }
    let (a, b) = (scalar::integers(inputs, 0)?, scalar::integers(inputs, 1)?);
    Ok(compared(&a, &b, inputs, output, truths))
}

fn compared<T: PartialOrd + Copy>(a: &[T], b: &[T], inputs: &[Option<View<'_>>], output: &Meta, truths: u8) -> Values {
    scalar::pairs(inputs, output, a, b).map(|(a, b)| u8::from(outcome(a, b) & truths != 0)).collect()
}
