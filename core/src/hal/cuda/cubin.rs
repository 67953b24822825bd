//! What a cubin says about its kernels: it is an ELF file with a section `.nv.info.NAME` for each kernel.

use super::user::{Entry, MOST_PARAMETERS};
use crate::error::{Error, Result, Status};
use std::cell::Cell;

/// Attributes in `.nv.info`, with the numbers that `cuobjdump -elf` shows.
const MAX_THREADS: u32 = 0x05;
const REQNTID: u32 = 0x10;
const KPARAM_INFO: u32 = 0x17;
/// The attribute format that has a size and as many bytes behind it.
const SIZED: u32 = 4;

/// Returns the kernels of a cubin, in the order of its symbols. `invalid_kernel` if the file is damaged.
pub fn entries(file: &[u8]) -> Result<Vec<Entry>> {
    let file = File { bytes: file, wrong: Cell::new(false) };
    let head: [u32; 16] = file.words(0);
    // ELF for 64 bits, little-endian, and the machine CUDA.
    if head[1] & 0xffff != 0x0102 || head[4] >> 16 != 190 {
        return Err(bad("it is not a 64-bit CUDA file"));
    }
    let (size, count) = (head[14] >> 16, head[15] & 0xffff);
    let names = file.section(&head, head[15] >> 16).bytes;
    let (mut tables, mut infos) = (Vec::new(), Vec::new());
    for index in 0..count {
        let section = file.section(&head, index);
        if section.kind == 2 {
            tables.push(section);
        } else if let Some(name) = file.text(names, section.name).strip_prefix(".nv.info.") {
            infos.push((name, section.bytes));
        }
    }
    let mut entries = Vec::new();
    for table in tables {
        let texts = file.section(&head, table.link).bytes;
        for symbol in table.bytes.chunks_exact(24) {
            // Symbols that are functions and kernels.
            if symbol[4] & 15 == 2 && symbol[5] & 0x10 != 0 {
                let name = file.text(texts, u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]));
                let mut entry = Entry { name: name.into(), ..Entry::default() };
                if let Some((_, info)) = infos.iter().find(|info| info.0 == name) {
                    file.attributes(info, &mut entry);
                }
                entries.push(entry);
            }
        }
    }
    if file.wrong.get() || size < 64 { Err(bad("it is cut off, or an offset in it is wrong")) } else { Ok(entries) }
}

/// A file. `wrong` is set when a part lies outside the file; that part then reads as empty and zero.
struct File<'a> {
    bytes: &'a [u8],
    wrong: Cell<bool>,
}

/// An ELF section.
struct Section<'a> {
    name: u32,
    kind: u32,
    link: u32,
    bytes: &'a [u8],
}

impl<'a> File<'a> {
    #[inline(never)]
    fn part(&self, of: &'a [u8], at: usize, size: usize) -> &'a [u8] {
        of.get(at..at.saturating_add(size)).unwrap_or_else(|| {
            self.wrong.set(true);
            &[]
        })
    }

    /// Reads the sixteen words at an offset: headers of files and sections have 64 bytes.
    #[inline(never)]
    fn words(&self, at: usize) -> [u32; 16] {
        words(self.part(self.bytes, at, 64))
    }

    /// Returns a section by its index.
    #[inline(never)]
    fn section(&self, head: &[u32; 16], index: u32) -> Section<'a> {
        let at = if index < head[15] & 0xffff { (head[14] >> 16) as usize * index as usize } else { usize::MAX };
        let header = self.words(at.saturating_add(head[10] as usize));
        let [name, kind, .., link, _, _, _, _, _] = header;
        // Sections of types 0 and 8 have no bytes in the file.
        let size = if matches!(kind, 0 | 8) { 0 } else { header[8] as usize };
        // Upper halves of 64-bit fields must be 0: no cubin has 4 GiB.
        if head[11] | header[7] | header[9] != 0 {
            self.wrong.set(true);
        }
        Section {
            name,
            kind,
            link,
            bytes: if size == 0 { &[] } else { self.part(self.bytes, header[6] as usize, size) },
        }
    }

    /// Reads a text that ends with NUL.
    #[inline(never)]
    fn text(&self, of: &'a [u8], at: u32) -> &'a str {
        let left = of.get(at as usize..).unwrap_or_default();
        let end = left.iter().position(|&byte| byte == 0);
        end.and_then(|end| std::str::from_utf8(&left[..end]).ok()).unwrap_or_else(|| {
            self.wrong.set(true);
            ""
        })
    }

    /// Reads the attributes in `.nv.info.NAME`.
    #[inline(never)]
    fn attributes(&self, info: &'a [u8], entry: &mut Entry) {
        let mut at = 0;
        while at < info.len() {
            let [head, ..] = words(self.part(info, at, 4));
            let size = if head & 0xff == SIZED { head as usize >> 16 } else { 0 };
            let [a, b, c, ..] = words(self.part(info, at + 4, size));
            at += 4 + size;
            match head >> 8 & 0xff {
                MAX_THREADS => entry.most = Some([a, b, c]),
                REQNTID => entry.required = Some([a, b, c]),
                // The parameter's offset and, in the upper 14 bits of the third word, its size.
                KPARAM_INFO => {
                    let (offset, list) = (b as usize >> 16, &mut entry.parameters);
                    let place = list.iter().position(|other| other.0 > offset).unwrap_or(list.len());
                    list.insert(place, (offset, c as usize >> 18));
                }
                _ => {}
            }
        }
        let mut end = 0;
        for &(at, size) in &entry.parameters {
            if size == 0 || at < end || at + size > MOST_PARAMETERS {
                self.wrong.set(true);
            }
            end = at + size;
        }
    }
}

/// Reads up to sixteen words; missing ones are 0.
#[inline(never)]
fn words(bytes: &[u8]) -> [u32; 16] {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}

/// Returns whether a fatbin is complete: it has the bytes that its header declares.
pub fn is_whole(fatbin: &[u8]) -> bool {
    let head = words(fatbin);
    // The header has a magic number, a version and its own size, and the size of the rest.
    let size = u64::from(head[2]) | u64::from(head[3]) << 32;
    fatbin.len() >= 16 && size.saturating_add(u64::from(head[1] >> 16)) <= fatbin.len() as u64
}

/// Makes the error for a malformed module.
#[cold]
#[inline(never)]
pub fn bad(what: &str) -> Error {
    Error::formatted(Status::InvalidKernel, format_args!("the module is malformed: {what}"))
}
