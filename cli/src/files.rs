//! Files that are read whole, and files that appear whole or not at all.

use crate::failure::{Failure, Result, write};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
#[cfg(feature = "sentences")]
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The path that stands for stdin or stdout.
pub const STANDARD: &str = "-";

/// How a path is called in messages.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == STANDARD { "stdin".into() } else { path.display().to_string() }
}

/// All of a file, or of stdin for `-`.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == STANDARD {
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(|error| Failure::io(name(path), &error))
}

/// Writes a whole file, or stdout for `-`. Binary data is not written to a terminal.
pub fn put(path: &Path, bytes: &[u8], binary: bool) -> Result<()> {
    if path.as_os_str() != STANDARD {
        let mut file = NewFile::create(path)?;
        file.write(bytes)?;
        return file.commit();
    }
    if binary && io::stdout().is_terminal() {
        return Err(Failure::invalid("the output is binary and stdout is a terminal; name a file with -o"));
    }
    write(bytes)
}

/// Files under temporary names: a process that is told to end removes them first.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The code of a process that was interrupted, as shells have it.
#[cfg(unix)]
const INTERRUPTED: i32 = 130;

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on SIGINT and SIGTERM end the process only after its unfinished files are gone. (SIGHUP is left as it is: who wants
/// long work to outlive a terminal has it ignored.)
#[cfg(unix)]
pub fn remove_unfinished_when_interrupted() {
    use signal_hook::{consts, iterator::Signals};
    let remove = || {
        let signals = Signals::new([consts::SIGINT, consts::SIGTERM]);
        if signals.is_ok_and(|mut signals| signals.forever().next().is_some()) {
            // Locked until the process ends: no file begins or takes its place any more.
            let files = unfinished();
            files.iter().for_each(|file| drop(fs::remove_file(file)));
            std::process::exit(INTERRUPTED);
        }
    };
    // Where no thread can be had, the signals end the process at once, as before.
    let _ = std::thread::Builder::new().name("adead-signals".into()).spawn(remove);
}

#[cfg(not(unix))]
pub fn remove_unfinished_when_interrupted() {}

/// A file that is written under a temporary name in the folder where it will be, and takes its place when it is
/// complete. Dropped before that, it leaves nothing behind.
pub struct NewFile {
    path: PathBuf,
    temporary: Option<PathBuf>,
    file: File,
}

impl NewFile {
    /// Begins a file. What is there and is no file (a pipe, a terminal, `/dev/null`) is written in place.
    pub fn create(path: &Path) -> Result<NewFile> {
        NewFile::try_create(path).map_err(|error| Failure::io(path.display(), &error))
    }

    fn try_create(path: &Path) -> io::Result<NewFile> {
        // The file that a link leads to is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let old = fs::metadata(&target).ok();
        if old.as_ref().is_some_and(|old| old.is_dir()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            let file = OpenOptions::new().write(true).open(&target)?;
            return Ok(NewFile { path: target, temporary: None, file });
        }
        let Some(name) = target.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
        for attempt in 0.. {
            let mut temporary = std::ffi::OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}.{attempt}.tmp", std::process::id()));
            let temporary = target.with_file_name(temporary);
            let mut unfinished = unfinished();
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    unfinished.push(temporary.clone());
                    drop(unfinished);
                    let new = NewFile { path: target, temporary: Some(temporary), file };
                    if let Some(old) = old {
                        new.file.set_permissions(old.permissions())?;
                    }
                    return Ok(new);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| Failure::io(self.path.display(), &error))
    }

    /// Writes bytes over the file's first ones, once all others are written.
    #[cfg(feature = "sentences")]
    pub fn overwrite_start(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| Failure::io(self.path.display(), &error))
    }

    /// Lets it take its place.
    pub fn commit(mut self) -> Result<()> {
        let mut unfinished = unfinished();
        if let Some(temporary) = self.temporary.take() {
            let renamed = fs::rename(&temporary, &self.path);
            if renamed.is_err() {
                let _ = fs::remove_file(&temporary);
            }
            unfinished.retain(|file| *file != temporary);
            renamed.map_err(|error| Failure::io(self.path.display(), &error))?;
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let mut unfinished = unfinished();
            let _ = fs::remove_file(temporary);
            unfinished.retain(|file| file != temporary);
        }
    }
}
