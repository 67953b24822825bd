//! The one error type. Every language maps [`Status`]. Its numbers never change.

#[cfg(feature = "details")]
use std::any::Any;
use std::fmt;
#[cfg(feature = "details")]
use std::sync::Arc;

macro_rules! statuses {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// What went wrong, as a number that is the same in every language and version.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum Status { $($(#[$doc])* $variant = $number,)* }

        impl Status {
            /// All statuses, in numeric order.
            pub const ALL: &'static [Status] = &[$(Status::$variant,)*];

            /// Returns the name used in logs, conformance cases and bindings, such as `shape_mismatch`.
            pub const fn name(self) -> &'static str {
                match self { $(Status::$variant => $name,)* }
            }

            /// Returns the status with this number, if there is one.
            pub const fn from_code(code: i32) -> Option<Status> {
                match code { $($number => Some(Status::$variant),)* _ => None }
            }

            /// Returns the status with this name, if there is one.
            pub fn from_name(name: &str) -> Option<Status> {
                match name { $($name => Some(Status::$variant),)* _ => None }
            }
        }
    };
}

statuses! {
    /// No error.
    Ok = 0, "ok";
    /// An argument is out of range, missing or contradictory.
    InvalidArgument = 1, "invalid_argument";
    /// Ranks or dimensions don't fit each other.
    ShapeMismatch = 2, "shape_mismatch";
    /// An element type is not accepted here, or two differ.
    DtypeMismatch = 3, "dtype_mismatch";
    /// Host or device memory ran out, or a limit that the caller set was exceeded.
    OutOfMemory = 4, "out_of_memory";
    /// The device asked for is not on this machine, or its driver is missing.
    BackendUnavailable = 5, "backend_unavailable";
    /// The device stopped responding. It stays lost.
    DeviceLost = 6, "device_lost";
    /// A user kernel is malformed or was refused by the driver.
    InvalidKernel = 7, "invalid_kernel";
    /// A program is malformed. The message has the offset.
    InvalidProgram = 8, "invalid_program";
    /// Well-formed, but this device or version does not support it.
    Unsupported = 9, "unsupported";
    /// The result is not ready yet.
    NotReady = 10, "not_ready";
    /// The operating system refused a file or a stream.
    Io = 11, "io";
    /// A fault in adead itself (a caught panic). Please report it.
    Internal = 12, "internal";
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Formats a float in an error message. Without the feature `text`, which formats floats anyway, it writes the bits, a form that
/// attributes accept: std's decimal formatting is 14 KB of code.
pub(crate) struct Float(pub f32);

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "text")]
        return self.0.fmt(f);
        #[cfg(not(feature = "text"))]
        write!(f, "{:#010x}", self.0.to_bits())
    }
}

/// An error: a [`Status`] and a message that says what was wrong, with the numbers, and what to do. Two errors are equal if both
/// are.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    status: Status,
    message: String,
    #[cfg(feature = "details")]
    detail: Option<Arc<dyn Any + Send + Sync>>,
}

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error.
    #[cold]
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            status,
            message: message.into(),
            #[cfg(feature = "details")]
            detail: None,
        }))
    }

    /// Makes an error from format arguments. The text is formatted here, so the code at the failing place stays small.
    #[cold]
    #[inline(never)]
    pub fn formatted(status: Status, message: fmt::Arguments<'_>) -> Error {
        Error::new(status, message.to_string())
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// Returns the message without the status.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Attaches what the error is about, for programs that handle it.
    #[cfg(feature = "details")]
    #[cold]
    pub fn with_detail(mut self, detail: impl Any + Send + Sync) -> Error {
        self.0.detail = Some(Arc::new(detail));
        self
    }

    /// Returns what the error is about, if it is of this type: a [`FailedOperation`](crate::FailedOperation), a
    /// [`MemoryRefused`](crate::memory::MemoryRefused), the [`std::io::Error`] of a file, or the place in a program.
    #[cfg(feature = "details")]
    pub fn detail<T: Any>(&self) -> Option<&T> {
        self.0.detail.as_ref()?.downcast_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message(), self.status())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        (self.status(), self.message()) == (other.status(), other.message())
    }
}

impl Eq for Error {}

impl std::error::Error for Error {
    #[cfg(feature = "details")]
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.detail::<std::io::Error>().map(|error| error as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let own = Error::new(Status::Io, error.to_string());
        #[cfg(feature = "details")]
        let own = own.with_detail(error);
        own
    }
}

/// Returns `Err(Error)` with a formatted message: `fail!(ShapeMismatch, "A is {a}, B is {b}")`.
macro_rules! fail {
    ($status:ident, $($text:tt)*) => {
        return Err($crate::error::Error::formatted($crate::error::Status::$status, format_args!($($text)*)))
    };
}
pub(crate) use fail;
