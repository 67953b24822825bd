//! What machine code says about its kernels: a cubin is an ELF file with a section `.nv.info.NAME` for each.

use super::user::{Entry, MOST_PARAMETERS};
use crate::error::{Error, Result, Status};

/// Attributes of `.nv.info`, as `cuobjdump -elf` names them.
const MAX_THREADS: u64 = 0x05;
const REQNTID: u64 = 0x10;
const KPARAM_INFO: u64 = 0x17;
/// The format of attributes with more bytes behind them.
const SIZED: u64 = 4;

/// The kernels of a cubin, in the order of its symbols. `invalid_kernel` where it is not whole.
pub fn entries(file: &[u8]) -> Result<Vec<Entry>> {
    // 64 bits, little-endian, for CUDA.
    if number(file, 4, 2)? != 0x0102 || number(file, 18, 2)? != 190 {
        return Err(bad("it is for another machine"));
    }
    let (headers, size) = (number(file, 40, 8)?, number(file, 58, 2)?);
    let count = number(file, 60, 2)?;
    let header = |index: u64| match index < count && size >= 64 {
        true => part(file, headers.saturating_add(index * size), 64),
        false => Err(bad("a section is not there")),
    };
    let bytes = |header: &[u8]| match number(header, 4, 4)? {
        // Those of types 0 and 8 have nothing in the file.
        0 | 8 => Ok(&[][..]),
        _ => part(file, number(header, 24, 8)?, number(header, 32, 8)?),
    };
    let names = bytes(header(number(file, 62, 2)?)?)?;
    let (mut tables, mut infos) = (Vec::new(), Vec::new());
    for index in 0..count {
        let header = header(index)?;
        let bytes = bytes(header)?;
        if number(header, 4, 4)? == 2 {
            tables.push((bytes, number(header, 40, 4)?));
        } else if let Some(name) = text(names, number(header, 0, 4)?)?.strip_prefix(".nv.info.") {
            infos.push((name, bytes));
        }
    }
    let mut entries = Vec::new();
    for (table, texts) in tables {
        let texts = bytes(header(texts)?)?;
        for symbol in table.chunks_exact(24) {
            // Functions that are kernels.
            if symbol[4] & 15 == 2 && symbol[5] & 0x10 != 0 {
                let name = text(texts, number(symbol, 0, 4)?)?;
                let mut entry = Entry { name: name.into(), ..Entry::default() };
                if let Some((_, bytes)) = infos.iter().find(|info| info.0 == name) {
                    attributes(bytes, &mut entry)?;
                }
                entries.push(entry);
            }
        }
    }
    Ok(entries)
}

/// Takes what `.nv.info.NAME` says.
fn attributes(mut bytes: &[u8], entry: &mut Entry) -> Result<()> {
    while !bytes.is_empty() {
        let (format, what) = (number(bytes, 0, 1)?, number(bytes, 1, 1)?);
        let size = if format == SIZED { number(bytes, 2, 2)? } else { 0 };
        let value = part(bytes, 4, size)?;
        bytes = &bytes[4 + value.len()..];
        match what {
            MAX_THREADS | REQNTID => {
                let size = [number(value, 0, 4)? as u32, number(value, 4, 4)? as u32, number(value, 8, 4)? as u32];
                if size.contains(&0) {
                    return Err(bad("a kernel has blocks without threads"));
                }
                *(if what == REQNTID { &mut entry.required } else { &mut entry.most }) = Some(size);
            }
            KPARAM_INFO => {
                // Its offset and, in the upper 14 bits of the third word, its size.
                entry.parameters.push((number(value, 6, 2)? as usize, number(value, 8, 4)? as usize >> 18));
            }
            _ => {}
        }
    }
    // They come in any order.
    entry.parameters.sort_unstable();
    let mut end = 0;
    for &(at, size) in &entry.parameters {
        if size == 0 || at < end || at + size > MOST_PARAMETERS {
            return Err(bad("a kernel's parameters overlap"));
        }
        end = at + size;
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn bad(what: &str) -> Error {
    Error::formatted(Status::InvalidKernel, format_args!("the cubin is malformed: {what}"))
}

#[inline(never)]
fn part(bytes: &[u8], at: u64, size: u64) -> Result<&[u8]> {
    match usize::try_from(at.saturating_add(size)).ok().and_then(|end| bytes.get(at as usize..end)) {
        Some(part) => Ok(part),
        None => Err(bad("it is cut off")),
    }
}

/// A number of so many bytes, at most eight.
#[inline(never)]
fn number(bytes: &[u8], at: u64, size: u64) -> Result<u64> {
    Ok(part(bytes, at, size)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// A text that ends with zero.
fn text(bytes: &[u8], at: u64) -> Result<&str> {
    let text = part(bytes, at, (bytes.len() as u64).saturating_sub(at))?.split(|&byte| byte == 0).next();
    std::str::from_utf8(text.unwrap_or_default()).map_err(|_| bad("a name is no text"))
}
