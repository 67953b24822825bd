//! Stored values as f32, and the formats of quantised blocks.

use crate::gguf::Kind;
use adead::contract::{BlockFormat, bf16_to_f32, block_floats, f16_to_f32};
use adead::{Error, Result, Status};

/// Returns the core's format of a kind of blocks, or `None` for another kind.
pub(crate) fn format(kind: Kind) -> Option<BlockFormat> {
    Some(match kind {
        Kind::Q8_0 => BlockFormat::Q8_0,
        Kind::Q4_0 => BlockFormat::Q4_0,
        Kind::Q4_1 => BlockFormat::Q4_1,
        Kind::Q5_0 => BlockFormat::Q5_0,
        Kind::Q5_1 => BlockFormat::Q5_1,
        Kind::Q4_K => BlockFormat::Q4_K,
        Kind::Q5_K => BlockFormat::Q5_K,
        Kind::Q6_K => BlockFormat::Q6_K,
        _ => return None,
    })
}

/// Returns an error unless [`floats`] reads this kind.
pub(crate) fn check(kind: Kind) -> Result<()> {
    floats(kind, &[]).map(|_| ())
}

/// Returns values as f32: exact for floats, and for blocks what `dequantize` returns.
pub(crate) fn floats(kind: Kind, bytes: &[u8]) -> Result<Vec<f32>> {
    Ok(match kind {
        Kind::F32 => bytes.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect(),
        Kind::F16 => bytes.chunks_exact(2).map(|it| f16_to_f32(u16::from_le_bytes([it[0], it[1]]))).collect(),
        Kind::BF16 => bytes.chunks_exact(2).map(|it| bf16_to_f32(u16::from_le_bytes([it[0], it[1]]))).collect(),
        other => match format(other) {
            Some(format) => bytes.chunks_exact(format.bytes()).flat_map(|block| block_floats(format, block)).collect(),
            None => {
                let names = BlockFormat::ALL.map(BlockFormat::name).join(", ").to_uppercase();
                let text = format!("values stored as {other} can't be read; F32, F16, BF16, {names} can");
                return Err(Error::new(Status::Unsupported, text));
            }
        },
    })
}
