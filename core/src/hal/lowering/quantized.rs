//! Lowers products with matrices of quantised blocks, and their conversion to f32.

use super::{Call, Encoder};
use crate::error::{Result, fail};

/// `quantized_matmul` of the op table.
pub fn quantized_matmul(_: &mut dyn Encoder, _: &Call<'_>) -> Result<()> {
    fail!(Unsupported, "quantized_matmul: no kernel on this device");
}

/// `dequantize` of the op table.
pub fn dequantize(_: &mut dyn Encoder, _: &Call<'_>) -> Result<()> {
    fail!(Unsupported, "dequantize: no kernel on this device");
}
