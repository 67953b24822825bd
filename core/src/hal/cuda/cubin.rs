//! What machine code says about its kernels: a cubin is an ELF file with a section `.nv.info.NAME` for each.

use super::user::{Entry, MOST_PARAMETERS};
use crate::error::{Error, Result, Status};

/// Attributes of `.nv.info`, as `cuobjdump -elf` names them.
const MAX_THREADS: u8 = 0x05;
const REQNTID: u8 = 0x10;
const KPARAM_INFO: u8 = 0x17;
/// The formats of attributes with more bytes behind them.
const SIZED: u8 = 4;

/// A section.
#[derive(Clone, Copy)]
struct Section<'a> {
    name: u32,
    kind: u32,
    link: u32,
    bytes: &'a [u8],
}

/// The kernels of a cubin, in the order of its symbols. `invalid_kernel` where it is not whole.
pub fn entries(file: &[u8]) -> Result<Vec<Entry>> {
    let header = part(file, 0, 64)?;
    // 64 bits, little-endian, for CUDA.
    if header[..6] != *b"\x7fELF\x02\x01" || u16_at(header, 18)? != 190 {
        return Err(bad("it is for another machine"));
    }
    let (at, size) = (u64_at(header, 40)?, u16_at(header, 58)?);
    let (count, names) = (u16_at(header, 60)?, u16_at(header, 62)?);
    if size < 64 {
        return Err(bad("its sections have short headers"));
    }
    let mut sections = Vec::new();
    for i in 0..u64::from(count) {
        let header = part(file, at.saturating_add(i * u64::from(size)), 64)?;
        let kind = u32_at(header, 4)?;
        // Those of types 0 and 8 have nothing in the file.
        let bytes = if matches!(kind, 0 | 8) { &[] } else { part(file, u64_at(header, 24)?, u64_at(header, 32)?)? };
        sections.push(Section { name: u32_at(header, 0)?, kind, link: u32_at(header, 40)?, bytes });
    }
    let section = |index: u32| match sections.get(index as usize) {
        Some(section) => Ok(section),
        None => Err(bad("it names a section that is not there")),
    };
    let names = section(names.into())?.bytes;
    let mut entries = Vec::new();
    for table in sections.iter().filter(|section| section.kind == 2) {
        let texts = section(table.link)?.bytes;
        for symbol in table.bytes.chunks_exact(24) {
            // Functions that are kernels.
            if symbol[4] & 15 != 2 || symbol[5] & 0x10 == 0 {
                continue;
            }
            let mut entry = Entry { name: text_at(texts, u32_at(symbol, 0)?)?.into(), ..Entry::default() };
            for section in &sections {
                let own = text_at(names, section.name)?.strip_prefix(".nv.info.");
                if own == Some(&*entry.name) {
                    attributes(section.bytes, &mut entry)?;
                }
            }
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Takes what `.nv.info.NAME` says.
fn attributes(bytes: &[u8], entry: &mut Entry) -> Result<()> {
    let mut parameters = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let head = part(bytes, at as u64, 4)?;
        let size = if head[0] == SIZED { u16_at(head, 2)? } else { 0 };
        let value = part(bytes, at as u64 + 4, size.into())?;
        at += 4 + value.len();
        match head[1] {
            MAX_THREADS => entry.most = Some(threads(value)?),
            REQNTID => entry.required = Some(threads(value)?),
            KPARAM_INFO => {
                // Its number, its offset and, in the upper 14 bits of the third word, its size.
                let (number, offset) = (u16_at(value, 4)?, u16_at(value, 6)? as usize);
                let size = (u32_at(value, 8)? >> 18) as usize;
                if size == 0 || offset + size > MOST_PARAMETERS {
                    return Err(bad("a parameter has no place"));
                }
                parameters.push((number, (offset, size)));
            }
            _ => {}
        }
    }
    parameters.sort_unstable();
    for (i, &(number, place)) in parameters.iter().enumerate() {
        if usize::from(number) != i || entry.parameters.last().is_some_and(|&(at, size)| at + size > place.0) {
            return Err(bad("a kernel's parameters overlap or are not all there"));
        }
        entry.parameters.push(place);
    }
    Ok(())
}

fn threads(value: &[u8]) -> Result<[u32; 3]> {
    let size = [u32_at(value, 0)?, u32_at(value, 4)?, u32_at(value, 8)?];
    if size.contains(&0) {
        return Err(bad("a kernel has blocks without threads"));
    }
    Ok(size)
}

#[cold]
fn bad(what: &str) -> Error {
    Error::formatted(Status::InvalidKernel, format_args!("the cubin is malformed: {what}"))
}

#[inline(never)]
fn part(bytes: &[u8], at: u64, size: u64) -> Result<&[u8]> {
    let end = at.saturating_add(size);
    match usize::try_from(end).ok().filter(|&end| end <= bytes.len()) {
        Some(end) => Ok(&bytes[at as usize..end]),
        None => Err(bad("it is cut off")),
    }
}

#[inline(never)]
fn u16_at(bytes: &[u8], at: u64) -> Result<u16> {
    Ok(part(bytes, at, 2)?.iter().rev().fold(0, |value, &byte| value << 8 | u16::from(byte)))
}

#[inline(never)]
fn u32_at(bytes: &[u8], at: u64) -> Result<u32> {
    Ok(u32::from(u16_at(bytes, at)?) | u32::from(u16_at(bytes, at + 2)?) << 16)
}

#[inline(never)]
fn u64_at(bytes: &[u8], at: u64) -> Result<u64> {
    Ok(u64::from(u32_at(bytes, at)?) | u64::from(u32_at(bytes, at + 4)?) << 32)
}

/// A text that ends with zero.
fn text_at(bytes: &[u8], at: u32) -> Result<&str> {
    let text = bytes.get(at as usize..).and_then(|text| text.split(|&byte| byte == 0).next());
    match text.and_then(|text| std::str::from_utf8(text).ok()) {
        Some(text) => Ok(text),
        None => Err(bad("a name is not there")),
    }
}
