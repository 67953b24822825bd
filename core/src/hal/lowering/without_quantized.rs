//! In place of `quantized`, in a library without it: the rules of the operations refuse every call before.

use super::{Call, Encoder};
use crate::error::Result;
use crate::ops::without_quantized;

pub fn quantized_matmul(_: &mut dyn Encoder, _: &Call<'_>) -> Result<()> {
    without_quantized()
}

pub fn dequantize(_: &mut dyn Encoder, _: &Call<'_>) -> Result<()> {
    without_quantized()
}
