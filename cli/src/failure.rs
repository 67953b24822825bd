//! How commands fail, their exit codes, and writing to stdout without a panic.

use crate::color::{Color, paint, shows};
use crate::nearest::suggest;
use adead::{Error, Status};
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command fails.
#[derive(Debug)]
pub enum Failure {
    /// An error of the library, or one expressed like it. The exit code is 10 + its status.
    Error(Error),
    /// The command line is wrong. The exit code is 2.
    Usage(String),
    /// The work was done, but its result is wrong, which was reported. The exit code is 1.
    Mismatch,
    /// The reader of stdout has gone. The exit code is that of a program ended by SIGPIPE.
    BrokenPipe,
}

/// `Result` with [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Makes an error.
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure::Error(Error::new(status, text))
    }

    /// Makes an `invalid_argument` error.
    pub fn invalid(text: impl Into<String>) -> Failure {
        Failure::new(Status::InvalidArgument, text)
    }

    /// Makes an error from what the operating system reports about a file or a stream.
    pub fn io(what: impl std::fmt::Display, error: &io::Error) -> Failure {
        let status = if error.kind() == io::ErrorKind::OutOfMemory { Status::OutOfMemory } else { Status::Io };
        Failure::new(status, format!("{what}: {error}"))
    }

    /// Writes what was not reported yet to stderr. Returns the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Error(error) => {
                complain(suggest(error));
                ExitCode::from(code(error.status()))
            }
            Failure::Usage(text) => {
                complain(text);
                ExitCode::from(2)
            }
            Failure::Mismatch => ExitCode::from(1),
            Failure::BrokenPipe => ExitCode::from(128 + 13),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// The exit code of a status.
pub fn code(status: Status) -> u8 {
    10 + status as u8
}

/// Writes an error to stderr, in one line.
pub fn complain(text: impl std::fmt::Display) {
    complain_as("error", text);
}

/// Writes an `error`, a `warning` or a `note` to stderr, in one line. A failure to write is ignored, because nothing else could
/// report it.
pub fn complain_as(kind: &str, text: impl std::fmt::Display) {
    let text = text.to_string().replace('\n', " ");
    let color = if kind == "error" { Color::Red } else { Color::Yellow };
    let kind = paint(kind, color, shows(&io::stderr()));
    let _ = writeln!(io::stderr(), "adead: {kind}: {text}");
}

/// Writes bytes to stdout.
pub fn write(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match open_from_the_start().and_then(|()| out.write_all(bytes)).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::BrokenPipe),
        Err(error) => Err(Failure::io("stdout", &error)),
    }
}

/// Writes a report to stdout, or to stderr if stdout carries values.
pub fn report(text: &str, values_on_stdout: bool) -> Result<()> {
    if !values_on_stdout {
        return write(text.as_bytes());
    }
    io::stderr().write_all(text.as_bytes()).map_err(|error| Failure::io("stderr", &error))
}

/// Returns an error if the process began without stdout. The standard library opens `/dev/null` in its place then, so the output
/// would be lost silently.
pub fn open_from_the_start() -> io::Result<()> {
    if start::STDOUT_IS_CLOSED.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(io::Error::other("it is closed"));
    }
    Ok(())
}

/// Looks at stdout before `main`.
mod start {
    use std::sync::atomic::AtomicBool;

    pub static STDOUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

    #[cfg(target_os = "linux")]
    mod look {
        use std::sync::atomic::Ordering::Relaxed;

        unsafe extern "C" {
            fn fcntl(descriptor: i32, command: i32, ...) -> i32;
        }

        extern "C" fn look() {
            const F_GETFD: i32 = 1;
            // SAFETY: fcntl reads the flags of a descriptor, which need not exist.
            let flags = unsafe { fcntl(1, F_GETFD) };
            super::STDOUT_IS_CLOSED.store(flags < 0, Relaxed);
        }

        // SAFETY: the C library calls every function in this section once, before `main`, in the only thread. This function needs
        // nothing that Rust's runtime sets up.
        #[used]
        #[unsafe(link_section = ".init_array")]
        static LOOK: extern "C" fn() = look;
    }
}

/// Writes a line to stdout.
pub fn line(text: impl std::fmt::Display) -> Result<()> {
    write(format!("{text}\n").as_bytes())
}
