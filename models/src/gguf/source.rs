//! The bytes of a file.

use super::Gguf;
use adead::{Error, Result, Status};
use memmap2::Mmap;
use std::fs::File;
use std::io::{self, Read};
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

    /// The file's path, or what stands for it.
    pub fn path(&self) -> &Path {
        match self {
            Source::Mapped(_, path) | Source::File(_, path) => path,
            Source::Memory(_) => Path::new("the file"),
        }
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

/// The bytes that [`Reading::step`] reads.
const STEP: u64 = 1 << 24;

/// Reads a GGUF file part by part, for callers that show progress. [`Gguf::open`] reads it at once.
///
/// ```no_run
/// use adead_models::gguf::Reading;
///
/// let mut reading = Reading::begin("model.gguf")?;
/// while let Some((read, all)) = reading.step()? {
///     println!("{read} of {all} bytes");
/// }
/// let gguf = reading.finish()?;
/// # Ok::<(), adead::Error>(())
/// ```
#[derive(Debug)]
pub struct Reading {
    file: File,
    path: PathBuf,
    bytes: Vec<u8>,
    size: u64,
}

impl Reading {
    /// Opens a file, and allocates memory for all of it.
    ///
    /// # Errors
    /// `io` if the file can't be opened, `out_of_memory` if its size exceeds the free memory.
    pub fn begin(path: impl AsRef<Path>) -> Result<Reading> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let size = file.metadata().map_err(|error| unreadable(path, &error))?.len();
        let mut bytes = Vec::new();
        if usize::try_from(size).is_err() || bytes.try_reserve_exact(size as usize).is_err() {
            let text = format!("{} has {size} bytes, and that much memory is not free", path.display());
            return Err(Error::new(Status::OutOfMemory, text));
        }
        Ok(Reading { file, path: path.into(), bytes, size })
    }

    /// Reads the next 16 MiB. Returns the number of bytes read so far and the total, or `None` at the end.
    ///
    /// # Errors
    /// `io` if the file can't be read.
    pub fn step(&mut self) -> Result<Option<(u64, u64)>> {
        let found = (&self.file).take(STEP).read_to_end(&mut self.bytes);
        let found = found.map_err(|error| unreadable(&self.path, &error))?;
        let read = self.bytes.len() as u64;
        Ok((found > 0).then_some((read, self.size.max(read))))
    }

    /// Reads the rest, and checks the file as [`Gguf::open`] does.
    ///
    /// # Errors
    /// Those of [`Gguf::open`].
    pub fn finish(mut self) -> Result<Gguf> {
        while self.step()?.is_some() {}
        Gguf::read(Source::File(self.bytes, self.path))
    }
}
