//! In place of `quantized`, in a library without it: the rules of the operations refuse every call before.

use super::{Call, Exec};
use crate::error::Result;
use crate::ops::without_quantized;

pub(super) fn quantized_matmul(_: &Exec<'_>, _: &mut Call<'_, '_>) -> Result<()> {
    without_quantized()
}

pub(super) fn dequantize(_: &Exec<'_>, _: &mut Call<'_, '_>) -> Result<()> {
    without_quantized()
}
