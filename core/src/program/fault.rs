//! Places in a program's source, errors with their place, and the reader of binary formats.

use crate::error::{Error, Result, Status};
use std::fmt;

/// A place in a program's source, which an `invalid_program` error has as its detail ([`Error::detail`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// A byte offset in a binary, or among the bytes that `.hex` text spells out.
    Byte(usize),
    /// A line of text, counted from 1.
    Line(usize),
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Where::Byte(offset) => write!(f, "byte {offset:#x}"),
            Where::Line(line) => write!(f, "line {line}"),
        }
    }
}

/// Makes an `invalid_program` error for a place.
#[cold]
#[inline(never)]
pub(super) fn invalid(at: Where, text: fmt::Arguments<'_>) -> Error {
    let error = Error::formatted(Status::InvalidProgram, format_args!("{at}: {text}"));
    #[cfg(feature = "details")]
    let error = error.with_detail(at);
    error
}

/// Makes an `invalid_program` error for a place from another error, such as one of a shape rule or an attribute.
#[cold]
pub(super) fn invalid_because(at: Where, error: Error) -> Error {
    invalid(at, format_args!("{}", error.message()))
}

/// Reads bytes in order. Where they end too early, it returns `invalid_program` with the offset.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    base: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which begin at offset `base` of the file.
    pub fn new(bytes: &'a [u8], base: usize) -> Reader<'a> {
        Reader { bytes, at: 0, base }
    }

    /// The place of the next byte.
    pub fn here(&self) -> Where {
        Where::Byte(self.offset())
    }

    /// The offset of the next byte in the file.
    pub fn offset(&self) -> usize {
        self.base + self.at
    }

    /// The number of bytes left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Takes the next `count` bytes.
    pub fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8]> {
        let left = self.left();
        if count > left as u64 {
            return Err(invalid(
                self.here(),
                format_args!("truncated: {what} takes {count} bytes and {left} are left"),
            ));
        }
        let taken = &self.bytes[self.at..self.at + count as usize];
        self.at += count as usize;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    /// Reads a byte.
    pub fn u8(&mut self, what: &str) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    /// Reads two bytes, little endian.
    pub fn u16(&mut self, what: &str) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Reads four bytes, little endian.
    pub fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// Reads eight bytes, little endian.
    pub fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Reads a version number, which must be 1.
    pub fn version(&mut self, format: &str) -> Result<()> {
        let at = self.here();
        match self.u16("the version")? {
            1 => Ok(()),
            other => Err(invalid(at, format_args!("{format} version {other}; this version reads 1"))),
        }
    }

    /// Checks that no bytes follow.
    pub fn finish(&self, what: &str) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            left => Err(invalid(self.here(), format_args!("{left} bytes follow the end of {what}"))),
        }
    }
}
