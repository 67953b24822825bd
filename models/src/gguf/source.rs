//! The bytes of a file.

use adead::{Error, Result, Status};
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where a file's bytes are.
pub(super) enum Source {
    Mapped(Mmap, PathBuf),
    Memory(Vec<u8>),
}

impl Source {
    pub fn map(path: &Path) -> Result<Source> {
        let failed = |error: io::Error| Error::new(Status::Io, format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        // SAFETY: nothing in this process writes the file through the map, which is read-only. `Gguf::open` documents
        // that nobody else may either. What is decoded after opening is checked again, so that a file that changes all
        // the same gives wrong values, and no access outside the map.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Source::Mapped(map, path.into()))
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Source::Mapped(map, _) => map,
            Source::Memory(bytes) => bytes,
        }
    }

    /// An error about the file, which it names.
    pub fn error(&self, status: Status, text: String) -> Error {
        match self {
            Source::Mapped(_, path) => Error::new(status, format!("{}: {text}", path.display())),
            Source::Memory(_) => Error::new(status, text),
        }
    }
}
