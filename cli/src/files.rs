//! Files that are read whole, and files that appear whole or not at all.

use crate::failure::{Failure, Result, write};
use adead::Status;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
#[cfg(feature = "models")]
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The path that stands for stdin or stdout.
pub const STANDARD: &str = "-";

/// The name of a path in messages.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == STANDARD { "stdin".into() } else { path.display().to_string() }
}

/// Reads a whole file, or stdin for `-`.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str() == STANDARD {
        return Ok(adead::files::read_stream(io::stdin().lock(), "stdin")?);
    }
    Ok(adead::files::read(path)?)
}

/// Reserves this many bytes, or returns `out_of_memory` with their purpose.
pub fn reserve(bytes: usize, what: impl std::fmt::Display) -> Result<Vec<u8>> {
    let mut memory = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        let text = format!("{what} takes {bytes} bytes, which the system can't allocate");
        return Err(Failure::new(Status::OutOfMemory, text));
    }
    Ok(memory)
}

/// Allocates this many zero bytes, or returns `out_of_memory` with their purpose.
pub fn zeros(bytes: usize, what: impl std::fmt::Display) -> Result<Vec<u8>> {
    let mut memory = reserve(bytes, what)?;
    memory.resize(bytes, 0);
    Ok(memory)
}

/// Whether a path means stdout: `-`, or another name of it (`/dev/stdout`, the file that stdout is redirected to).
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == STANDARD || is_same_as_stdout(path)
}

#[cfg(unix)]
fn is_same_as_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    // Outputs to /dev/null can't mix.
    if fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null")) {
        return false;
    }
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(|stdout| File::from(stdout).metadata());
    match (stdout, fs::metadata(path)) {
        (Ok(stdout), Ok(file)) => (stdout.dev(), stdout.ino()) == (file.dev(), file.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_as_stdout(_path: &Path) -> bool {
    false
}

/// Writes a whole file, or stdout. Binary data is not written to a terminal.
pub fn put(path: &Path, bytes: &[u8], binary: bool) -> Result<()> {
    let mut file = if binary { NewFile::create(path) } else { NewFile::create_text(path) }?;
    file.write(bytes)?;
    file.commit()
}

/// Files under temporary names. A process that a signal ends removes them first.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The exit code of an interrupted process, as shells have it.
#[cfg(unix)]
const INTERRUPTED: i32 = 130;

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on SIGINT and SIGTERM end the process only after its unfinished files are removed. (SIGHUP is unchanged: a user who
/// wants long work to outlive the terminal ignores it.)
#[cfg(unix)]
pub fn remove_unfinished_when_interrupted() {
    use signal_hook::{consts, iterator::Signals};
    // Registered here and not by the thread: a signal may come before the thread runs.
    let Ok(mut signals) = Signals::new([consts::SIGINT, consts::SIGTERM]) else { return };
    let handle = signals.handle();
    let remove = move || {
        if signals.forever().next().is_some() {
            // Locked until the process ends, so no file is begun or renamed any more.
            let files = unfinished();
            files.iter().for_each(|file| drop(fs::remove_file(file)));
            std::process::exit(INTERRUPTED);
        }
    };
    if std::thread::Builder::new().name("adead-signals".into()).spawn(remove).is_err() {
        handle.close();
    }
}

#[cfg(not(unix))]
pub fn remove_unfinished_when_interrupted() {}

/// A file that is written under a temporary name in its folder and renamed when it is complete. If it is dropped before that, it
/// leaves nothing behind.
pub struct NewFile {
    path: PathBuf,
    temporary: Option<PathBuf>,
    /// `None` for stdout.
    file: Option<File>,
}

impl NewFile {
    /// Begins a file. An existing path that is no regular file (a pipe, stdout, `/dev/null`) is written in place. A terminal is
    /// refused.
    pub fn create(path: &Path) -> Result<NewFile> {
        if is_stdout(path) && io::stdout().is_terminal() {
            return Err(Failure::invalid("the output is binary and stdout is a terminal; name a file"));
        }
        NewFile::create_text(path)
    }

    /// Begins a text file, which may be a terminal.
    pub fn create_text(path: &Path) -> Result<NewFile> {
        if is_stdout(path) {
            return Ok(NewFile { path: "stdout".into(), temporary: None, file: None });
        }
        NewFile::try_create(path).map_err(|error| Failure::io(path.display(), &error))
    }

    /// Whether it is stdout.
    pub fn is_stdout(&self) -> bool {
        self.file.is_none()
    }

    fn try_create(path: &Path) -> io::Result<NewFile> {
        // A link's target is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let old = fs::metadata(&target).ok();
        if old.as_ref().is_some_and(|old| old.is_dir()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            let file = OpenOptions::new().write(true).open(&target)?;
            return Ok(NewFile { path: target, temporary: None, file: Some(file) });
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
                    let new = NewFile { path: target, temporary: Some(temporary), file: Some(file) };
                    if let (Some(old), Some(file)) = (old, &new.file) {
                        file.set_permissions(old.permissions())?;
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
        let Some(file) = &mut self.file else { return write(bytes) };
        file.write_all(bytes).map_err(|error| Failure::io(self.path.display(), &error))
    }

    /// Overwrites the file's first bytes, after all others are written.
    #[cfg(feature = "models")]
    pub fn overwrite_start(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Err(Failure::invalid("stdout can't be written twice; name a file"));
        };
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(bytes));
        written.map_err(|error| Failure::io(self.path.display(), &error))
    }

    /// Renames the file to its final name.
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
