//! What machine code says about its kernels: a cubin is an ELF file with a section `.nv.info.NAME` for each.

use super::user::{Entry, MOST_PARAMETERS};
use crate::error::{Error, Result, Status};
use std::cell::Cell;

/// Attributes of `.nv.info`, as `cuobjdump -elf` names them.
const MAX_THREADS: u64 = 0x05;
const REQNTID: u64 = 0x10;
const KPARAM_INFO: u64 = 0x17;
/// The format of attributes with more bytes behind them.
const SIZED: u64 = 4;

/// The kernels of a cubin, in the order of its symbols. `invalid_kernel` where it is not whole.
pub fn entries(file: &[u8]) -> Result<Vec<Entry>> {
    let cut = Cell::new(false);
    let file = Bytes { bytes: file, cut: &cut };
    // 64 bits, little-endian, for CUDA.
    if file.number(4, 2) != 0x0102 || file.number(18, 2) != 190 {
        return Err(bad("it is for another machine"));
    }
    let (headers, size, count) = (file.number(40, 8), file.number(58, 2), file.number(60, 2));
    // One that is not there is beyond the end.
    let header = |index: u64| {
        let at = if index < count { headers.saturating_add(index * size) } else { u64::MAX };
        file.part(at, 64)
    };
    let contents = |header: Bytes<'_>| match header.number(4, 4) {
        // Those of types 0 and 8 have nothing in the file.
        0 | 8 => file.part(0, 0),
        _ => file.part(header.number(24, 8), header.number(32, 8)),
    };
    let names = contents(header(file.number(62, 2)));
    let (mut tables, mut infos) = (Vec::new(), Vec::new());
    for header in (0..count).map(header) {
        if header.number(4, 4) == 2 {
            tables.push((contents(header), header.number(40, 4)));
        } else if let Some(name) = names.text(header.number(0, 4)).strip_prefix(".nv.info.") {
            infos.push((name, contents(header)));
        }
    }
    let mut entries = Vec::new();
    for (table, texts) in tables {
        let texts = contents(header(texts));
        for symbol in table.bytes.chunks_exact(24) {
            // Functions that are kernels.
            if symbol[4] & 15 == 2 && symbol[5] & 0x10 != 0 {
                let name = texts.text(Bytes { bytes: symbol, cut: &cut }.number(0, 4));
                let mut entry = Entry { name: name.into(), ..Entry::default() };
                if let Some((_, info)) = infos.iter().find(|info| info.0 == name) {
                    attributes(*info, &mut entry);
                }
                entries.push(entry);
            }
        }
    }
    if cut.get() { Err(bad("it is cut off, or a place in it is wrong")) } else { Ok(entries) }
}

/// Takes what `.nv.info.NAME` says.
fn attributes(info: Bytes<'_>, entry: &mut Entry) {
    let mut at = 0;
    while at < info.bytes.len() as u64 {
        let head = info.number(at, 2);
        let size = if head & 0xff == SIZED { info.number(at + 2, 2) } else { 0 };
        let value = info.part(at + 4, size);
        at += 4 + size;
        let what = head >> 8;
        if matches!(what, MAX_THREADS | REQNTID) {
            let size = [0, 4, 8].map(|at| value.number(at, 4) as u32);
            *(if what == REQNTID { &mut entry.required } else { &mut entry.most }) = Some(size);
        } else if what == KPARAM_INFO {
            // Its offset and, in the upper 14 bits of the third word, its size.
            entry.parameters.push((value.number(6, 2) as usize, value.number(8, 4) as usize >> 18));
        }
    }
    // They come in any order.
    entry.parameters.sort_unstable();
    let mut end = 0;
    for &(at, size) in &entry.parameters {
        if size == 0 || at < end || at + size > MOST_PARAMETERS {
            info.cut.set(true);
        }
        end = at + size;
    }
}

/// What a module is that is not what it should be.
#[cold]
#[inline(never)]
pub fn bad(what: &str) -> Error {
    Error::formatted(Status::InvalidKernel, format_args!("the module is malformed: {what}"))
}

/// Part of a file, and what was found wrong with it so far: what is beyond its end is empty and zero.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    bytes: &'a [u8],
    cut: &'a Cell<bool>,
}

impl<'a> Bytes<'a> {
    #[inline(never)]
    fn part(self, at: u64, size: u64) -> Bytes<'a> {
        let end = usize::try_from(at.saturating_add(size)).ok();
        let bytes = end.and_then(|end| self.bytes.get(at as usize..end)).unwrap_or_else(|| {
            self.cut.set(true);
            &[]
        });
        Bytes { bytes, ..self }
    }

    /// A number of so many bytes, at most eight.
    #[inline(never)]
    fn number(self, at: u64, size: u64) -> u64 {
        self.part(at, size).bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// A text that ends with zero.
    fn text(self, at: u64) -> &'a str {
        let left = self.part(at, (self.bytes.len() as u64).saturating_sub(at)).bytes;
        let end = left.iter().position(|&byte| byte == 0);
        let text = end.and_then(|end| std::str::from_utf8(&left[..end]).ok());
        text.unwrap_or_else(|| {
            self.cut.set(true);
            ""
        })
    }
}

/// Whether a fatbin is all there: behind its header are as many bytes as it says.
pub fn is_whole(fatbin: &[u8]) -> bool {
    let cut = Cell::new(false);
    let file = Bytes { bytes: fatbin, cut: &cut };
    file.part(file.number(6, 2), file.number(8, 8));
    !cut.get()
}
