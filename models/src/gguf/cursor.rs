//! A position in a file's bytes. Every read is checked, and its error says where.

use std::fmt::{self, Display};

/// The result of reading. The error says what is wrong, and where.
pub(super) type Found<T> = std::result::Result<T, String>;

#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at: at.min(bytes.len()) }
    }

    /// The offset in the file.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The number of bytes that follow.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads `count` bytes of `what`.
    pub fn take(&mut self, count: u64, what: impl Display) -> Found<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(count).ok().and_then(|count| rest.get(..count)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(format!("{what}: {count} bytes at byte {}; the file ends {} bytes later", self.at, rest.len())),
        }
    }

    pub fn array<const N: usize>(&mut self, what: impl Display) -> Found<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub fn u32(&mut self, what: impl Display) -> Found<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, what: impl Display) -> Found<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub fn bool(&mut self, what: impl Display) -> Found<bool> {
        let at = self.at;
        match self.array(&what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(format!("{what} is {byte} at byte {at}; a bool is 0 or 1")),
        }
    }

    /// Reads a string: its length in 8 bytes, then UTF-8 of at most `longest` bytes.
    pub fn string(&mut self, longest: u64, what: impl Display) -> Found<&'a str> {
        let start = self.at;
        let length = self.u64(format_args!("the length of {what}"))?;
        if length > longest {
            return Err(format!("{what} at byte {start} has {length} bytes; at most {longest} are allowed"));
        }
        let bytes = self.take(length, &what)?;
        std::str::from_utf8(bytes).map_err(|error| {
            let place = start + 8 + error.valid_up_to();
            format!("{what} at byte {start} isn't UTF-8: byte {place} is {:#04x}", bytes[error.valid_up_to()])
        })
    }
}

/// Writes a name from the file in quotes: control characters escaped, shortened.
pub(super) struct Name<'a>(pub &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 80;
        let shown = self.0.char_indices().nth(SHOWN).map_or(self.0, |(end, _)| &self.0[..end]);
        write!(f, "'{}{}'", shown.escape_debug(), if shown.len() < self.0.len() { "…" } else { "" })
    }
}
