//! What a command ends with, what the shell gets for it, and writing to stdout without a panic.

use adead::{Error, Status};
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command fails.
#[derive(Debug)]
pub enum Failure {
    /// With an error of the library, or one in its terms. The shell gets 10 + its status.
    Error(Error),
    /// The command line is wrong. The shell gets 2.
    Usage(String),
    /// The work was done and its result is wrong; that was reported. The shell gets 1.
    Mismatch,
    /// Whoever read the output has gone. The shell gets what a program gets that SIGPIPE ends.
    BrokenPipe,
}

/// `Result` with [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A new error.
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure::Error(Error::new(status, text))
    }

    /// An `invalid_argument`.
    pub fn invalid(text: impl Into<String>) -> Failure {
        Failure::new(Status::InvalidArgument, text)
    }

    /// What the operating system said about a file or a stream.
    pub fn io(what: impl std::fmt::Display, error: &io::Error) -> Failure {
        let status = if error.kind() == io::ErrorKind::OutOfMemory { Status::OutOfMemory } else { Status::Io };
        Failure::new(status, format!("{what}: {error}"))
    }

    /// Says on stderr what is not said yet; the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Error(error) => {
                complain(error);
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

/// An error in one line on stderr.
pub fn complain(text: impl std::fmt::Display) {
    complain_as("error", text);
}

/// An `error`, a `warning` or a `note` in one line on stderr. If that can't be written, nobody can be told.
pub fn complain_as(kind: &str, text: impl std::fmt::Display) {
    let text = text.to_string().replace('\n', " ");
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

/// Writes what is reported: to stdout, or to stderr where stdout has values.
pub fn report(text: &str, values_on_stdout: bool) -> Result<()> {
    if !values_on_stdout {
        return write(text.as_bytes());
    }
    io::stderr().write_all(text.as_bytes()).map_err(|error| Failure::io("stderr", &error))
}

/// An error if the process began without stdout: the standard library has put `/dev/null` in its place, and nobody would learn
/// that what was written is lost.
pub fn open_from_the_start() -> io::Result<()> {
    if start::STDOUT_IS_CLOSED.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(io::Error::other("it is closed"));
    }
    Ok(())
}

/// What was there before `main`.
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
            // SAFETY: it asks for the flags of a descriptor, which need not exist.
            let flags = unsafe { fcntl(1, F_GETFD) };
            super::STDOUT_IS_CLOSED.store(flags < 0, Relaxed);
        }

        // SAFETY: the C library calls every function in this section once, before `main` and in the only thread; this one needs
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
