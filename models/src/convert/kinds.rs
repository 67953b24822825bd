//! How values are stored in the new file.

use crate::gguf::{self, Kind, Rows};
use crate::text::blocks::format;
use adead::contract::{bf16_from_f32, f16_from_f32};
use adead::{Error, Result, Status};

/// The kinds that matrices can be stored as, with the names of the command line and llama.cpp's number of such a file.
const TARGETS: [(Kind, u32); 11] = [
    (Kind::F32, 0),
    (Kind::F16, 1),
    (Kind::BF16, 32),
    (Kind::Q8_0, 7),
    (Kind::Q6_K, 18),
    (Kind::Q5_K, 16),
    (Kind::Q5_1, 9),
    (Kind::Q5_0, 8),
    (Kind::Q4_K, 14),
    (Kind::Q4_1, 3),
    (Kind::Q4_0, 2),
];

/// Returns `general.file_type` of a file whose matrices are of a kind. `unsupported` for a kind that is not written.
pub(super) fn file_type(kind: Kind) -> Result<u32> {
    TARGETS.iter().find(|(known, _)| *known == kind).map(|(_, number)| *number).ok_or_else(|| {
        let names = TARGETS.map(|(kind, _)| kind.to_string()).join(", ");
        Error::new(Status::Unsupported, format!("values can't be stored as {kind}; supported are {names}"))
    })
}

/// Returns rows of values as a kind stores them. `invalid_argument` with the place of a value that is NaN or
/// infinite or too large.
pub(super) fn encode(kind: Kind, values: &[f32], rows: Rows) -> Result<Vec<u8>> {
    if let Some(format) = format(kind) {
        return gguf::blocks(values, format, Some(rows));
    }
    let finite = |f: &dyn Fn(f32) -> bool| match values.iter().position(|&value| !f(value)) {
        None => Ok(()),
        Some(at) => {
            let (row, at, value) = (rows.first + at / rows.width, at % rows.width, values[at]);
            let text = format!("value {at} of row {row} is {value}; {kind} takes finite values it can hold");
            Err(Error::new(Status::InvalidArgument, text))
        }
    };
    match kind {
        Kind::F16 => {
            finite(&|value| f16_from_f32(value) & 0x7fff < 0x7c00)?;
            Ok(values.iter().flat_map(|&value| f16_from_f32(value).to_le_bytes()).collect())
        }
        Kind::BF16 => {
            finite(&|value| bf16_from_f32(value) & 0x7fff < 0x7f80)?;
            Ok(values.iter().flat_map(|&value| bf16_from_f32(value).to_le_bytes()).collect())
        }
        _ => {
            finite(&f32::is_finite)?;
            Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect())
        }
    }
}
