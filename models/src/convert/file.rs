//! Model files: which kind a path is, and new files, which appear when they are complete.

use super::{Conversion, Target};
use crate::gguf::Gguf;
use adead::{Error, Result, Status};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file under a temporary name beside its own. Dropped before it is complete, it leaves nothing behind.
struct Draft<'a> {
    file: BufWriter<File>,
    path: &'a Path,
    /// `None` once it has its own name.
    temporary: Option<PathBuf>,
}

impl<'a> Draft<'a> {
    fn create(path: &'a Path) -> io::Result<Draft<'a>> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        for attempt in 0.. {
            let mut temporary = std::ffi::OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}.{attempt}.tmp", std::process::id()));
            let temporary = path.with_file_name(temporary);
            match File::create_new(&temporary) {
                Ok(file) => return Ok(Draft { file: BufWriter::new(file), path, temporary: Some(temporary) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Gives the file its own name.
    fn commit(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, self.path)?;
        }
        self.temporary = None;
        Ok(())
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

impl Write for Draft<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(&error))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

impl Conversion {
    /// Plans the file of a model: [`from_folder`](Conversion::from_folder) of a folder, [`from_gguf`](Conversion::from_gguf) of a
    /// GGUF file, which is read into memory.
    ///
    /// # Errors `io` if the path does not exist, `invalid_argument` for a GGUF file if `kind` is `None`, and those of the two
    /// functions.
    pub fn from_path(path: impl AsRef<Path>, kind: Option<Target>) -> Result<Conversion> {
        let path = path.as_ref();
        if path.is_dir() {
            return Conversion::from_folder(path, kind);
        }
        let fault = |status, text: &str| Err(Error::new(status, format!("{}: {text}", path.display())));
        if !path.exists() {
            return fault(Status::Io, "no such file or folder; a model is a folder of Hugging Face or a GGUF file");
        }
        let Some(kind) = kind else {
            return fault(
                Status::InvalidArgument,
                "a GGUF file is converted to a kind of values: name one, such as q8_0",
            );
        };
        Conversion::from_gguf(Gguf::open(path)?, kind)
    }

    /// Writes the file at a path, as [`write`](Conversion::write) does. It appears when it is complete, and then replaces a file of
    /// that name. After an error, no new file remains.
    ///
    /// # Errors
    /// Those of [`write`](Conversion::write).
    pub fn write_file(self, path: impl AsRef<Path>, progress: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let path = path.as_ref();
        let fault = |error: io::Error| Error::new(Status::Io, format!("{}: {error}", path.display()));
        let mut draft = self.write(Draft::create(path).map_err(fault)?, progress)?;
        draft.commit().map_err(fault)
    }
}
