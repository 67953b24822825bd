//! Stored values as f32. Blocks of quantised values go once the core reads them itself.

use crate::gguf::Kind;
use adead::contract::{bf16_to_f32, f16_to_f32};
use adead::{Error, Result, Status};

/// Returns an error unless [`floats`] reads this kind.
pub(crate) fn check(kind: Kind) -> Result<()> {
    floats(kind, &[]).map(|_| ())
}

/// Returns values as f32: exact for floats, and for blocks what ggml's own functions return.
pub(crate) fn floats(kind: Kind, bytes: &[u8]) -> Result<Vec<f32>> {
    let half = |bytes: &[u8], at: usize| f16_to_f32(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let nibbles = |bytes: &[u8], each: &dyn Fn(u8) -> f32| -> Vec<f32> {
        bytes.iter().map(|byte| each(byte & 15)).chain(bytes.iter().map(|byte| each(byte >> 4))).collect()
    };
    Ok(match kind {
        Kind::F32 => bytes.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect(),
        Kind::F16 => bytes.chunks_exact(2).map(|it| f16_to_f32(u16::from_le_bytes([it[0], it[1]]))).collect(),
        Kind::BF16 => bytes.chunks_exact(2).map(|it| bf16_to_f32(u16::from_le_bytes([it[0], it[1]]))).collect(),
        Kind::Q8_0 => bytes
            .chunks_exact(34)
            .flat_map(|block| {
                let scale = half(block, 0);
                block[2..].iter().map(move |&value| f32::from(value as i8) * scale)
            })
            .collect(),
        Kind::Q4_0 => bytes
            .chunks_exact(18)
            .flat_map(|block| {
                let scale = half(block, 0);
                nibbles(&block[2..], &|value| (f32::from(value) - 8.0) * scale)
            })
            .collect(),
        Kind::Q4_1 => bytes
            .chunks_exact(20)
            .flat_map(|block| {
                let (scale, least) = (half(block, 0), half(block, 2));
                nibbles(&block[4..], &|value| f32::from(value) * scale + least)
            })
            .collect(),
        other => {
            let text = format!("values stored as {other} can't be read; F32, F16, BF16, Q8_0, Q4_0 and Q4_1 can");
            return Err(Error::new(Status::Unsupported, text));
        }
    })
}
