//! `.hex` text: lines of `OFFSET: HEXBYTES ; comment` with the bytes of AGPU instructions, without their header.

use super::agpu;
use super::code::Code;
use super::fault::{Where, invalid};
use super::text;
use crate::error::Result;
use std::fmt::Write;

/// Decodes the text. A line may hold any number of bytes. Its offset must be the number of bytes before it.
pub(super) fn decode(source: &[u8]) -> Result<Code> {
    let bytes = bytes(source)?;
    let code = agpu::decode_stream(&bytes)?;
    let counts = [("Instructions:", code.instructions.len(), "instructions"), ("Total size:", bytes.len(), "bytes")];
    for (word, found, unit) in counts {
        if let Some((line, said)) = comment(source, word).filter(|&(_, said)| said != found as u64) {
            let text = format_args!(
                "the comment says {said} {unit}, but the file has {found}: it is truncated or was changed"
            );
            return Err(invalid(Where::Line(line), text));
        }
    }
    Ok(code)
}

/// Finds the first line that is only a comment beginning with `word`, and returns its number and the number after the word.
fn comment(source: &[u8], word: &str) -> Option<(usize, u64)> {
    source.split(|&byte| byte == b'\n').enumerate().find_map(|(i, line)| {
        let text = std::str::from_utf8(line.trim_ascii().strip_prefix(b";")?).ok()?;
        let number = text.trim_start().strip_prefix(word)?.split_whitespace().next()?;
        Some((i + 1, number.parse().ok()?))
    })
}

/// Whether a line without its comment looks like `OFFSET: …`.
pub(super) fn looks_like(line: &[u8]) -> bool {
    match line.iter().position(|&byte| byte == b':') {
        Some(colon) => colon > 0 && line[..colon].trim_ascii().iter().all(u8::is_ascii_hexdigit),
        None => false,
    }
}

fn bytes(source: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(source.len() / 2);
    for (number, line) in text::lines(source) {
        let fault = |bytes: &[u8], text: String| {
            invalid(Where::Line(number), format_args!("at byte {:#x}: {text}", bytes.len()))
        };
        if !looks_like(line) {
            return Err(fault(&bytes, "expected 'OFFSET: HEXBYTES ; comment'".into()));
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or_default();
        let offset = line[..colon].trim_ascii().iter().try_fold(0usize, |offset, &digit| {
            offset.checked_mul(16).map(|offset| offset + (digit as char).to_digit(16).unwrap_or_default() as usize)
        });
        if offset != Some(bytes.len()) {
            let word = match offset {
                Some(offset) if offset < bytes.len() => "overlaps bytes that came before",
                _ => "leaves a gap",
            };
            let given = String::from_utf8_lossy(&line[..colon]).trim_ascii().to_string();
            return Err(fault(&bytes, format!("the offset {given} {word}; {} bytes came before", bytes.len())));
        }
        let mut high = None;
        for &byte in line[colon + 1..].iter().filter(|byte| !byte.is_ascii_whitespace()) {
            let Some(digit) = (byte as char).to_digit(16) else {
                return Err(fault(&bytes, format!("'{}' is not a hexadecimal digit", byte.escape_ascii())));
            };
            match high.take() {
                None => high = Some(digit),
                Some(high) => bytes.push((high * 16 + digit) as u8),
            }
        }
        if high.is_some() {
            return Err(fault(&bytes, "an odd number of hexadecimal digits".into()));
        }
    }
    Ok(bytes)
}

/// Writes the text, one instruction a line, with its text form as the comment.
pub(super) fn encode(code: &Code) -> Result<String> {
    let mut out = String::new();
    let mut offset = 0;
    for (bytes, instruction) in agpu::encode_instructions(code)?.iter().zip(&code.instructions) {
        let digits = bytes.iter().fold(String::new(), |mut digits, byte| {
            // Writing to a String can't fail.
            let _ = write!(digits, "{byte:02X}");
            digits
        });
        let _ = writeln!(out, "{offset:04X}: {digits:<40} ; {}", text::line(code, true, instruction));
        offset += bytes.len();
    }
    Ok(out)
}
