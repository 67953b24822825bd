//! The bytes of a file.

use adead::{Error, Result, Status};
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where a file's bytes are. Those of a file keep its path, which errors name.
pub(super) enum Source {
    Mapped(Mmap, PathBuf),
    File(Vec<u8>, PathBuf),
    Memory(Vec<u8>),
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(Status::Io, format!("{}: {error}", path.display()))
}

impl Source {
    pub fn read(path: &Path) -> Result<Source> {
        let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
        Ok(Source::File(bytes, path.into()))
    }

    /// # Safety
    /// The file must not change while the source lives.
    pub unsafe fn map(path: &Path) -> Result<Source> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        if file.metadata().map_err(|error| unreadable(path, &error))?.is_dir() {
            return Err(unreadable(path, &io::ErrorKind::IsADirectory.into()));
        }
        // SAFETY: the caller keeps the file unchanged, and the map is read-only.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| unreadable(path, &error))?;
        Ok(Source::Mapped(map, path.into()))
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Source::Mapped(map, _) => map,
            Source::File(bytes, _) | Source::Memory(bytes) => bytes,
        }
    }

    /// An error about the file, which it names.
    pub fn error(&self, status: Status, text: String) -> Error {
        match self {
            Source::Mapped(_, path) | Source::File(_, path) => {
                Error::new(status, format!("{}: {text}", path.display()))
            }
            Source::Memory(_) => Error::new(status, text),
        }
    }
}
