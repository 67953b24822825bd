//! Blocks of 32 values: the rules of `docs/contract.md`, "Quantising".

use super::{Fault, half};
use adead::contract::BlockFormat;

/// Returns 1/d; 0 where that is infinite, as the scale is stored as 0 then.
fn inverse(d: f32) -> f32 {
    let inverse = 1.0 / d;
    if inverse.is_infinite() { 0.0 } else { inverse }
}

/// Writes a block. The values are finite.
pub(super) fn block(format: BlockFormat, x: &[f32], out: &mut [u8]) -> Result<(), Fault> {
    match format {
        BlockFormat::Q8_0 => {
            let d = x.iter().fold(0f32, |most, x| most.max(x.abs())) / 127.0;
            let factor = inverse(d);
            out[..2].copy_from_slice(&half(d)?);
            for (to, x) in out[2..].iter_mut().zip(x) {
                *to = ((x * factor).round() as i8).cast_unsigned();
            }
        }
        BlockFormat::Q4_0 | BlockFormat::Q5_0 => {
            let most = if format == BlockFormat::Q4_0 { 8.0 } else { 16.0 };
            // Of equal magnitudes the first counts.
            let largest = x.iter().fold(0f32, |largest, &x| if x.abs() > largest.abs() { x } else { largest });
            let d = largest / -most;
            let factor = inverse(d);
            out[..2].copy_from_slice(&half(d)?);
            codes(format, x, &mut out[2..], |x| x * factor + (most + 0.5));
        }
        _ => {
            let most = if format == BlockFormat::Q4_1 { 15.0 } else { 31.0 };
            let least = x.iter().copied().fold(x[0], |least, x| if x < least { x } else { least });
            let largest = x.iter().copied().fold(x[0], |largest, x| if x > largest { x } else { largest });
            let d = (largest - least) / most;
            let factor = inverse(d);
            out[..2].copy_from_slice(&half(d)?);
            out[2..4].copy_from_slice(&half(least)?);
            codes(format, x, &mut out[4..], |x| (x - least) * factor + 0.5);
        }
    }
    Ok(())
}

/// Writes the codes of 32 values: `code` rounded down, and at most the greatest of 4 or 5 bits.
fn codes(format: BlockFormat, x: &[f32], out: &mut [u8], code: impl Fn(f32) -> f32) {
    let high = matches!(format, BlockFormat::Q5_0 | BlockFormat::Q5_1);
    let (most, first) = if high { (31, 4) } else { (15, 0) };
    out.fill(0);
    for (i, &x) in x.iter().enumerate() {
        let code = (code(x) as i32).clamp(0, most) as u8;
        out[first + i % 16] |= (code & 15) << (i / 16 * 4);
        if high {
            out[i / 8] |= (code >> 4) << (i % 8);
        }
    }
}
