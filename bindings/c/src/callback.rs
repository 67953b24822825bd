//! What a caller's callback returns, as an error of the call that used it.

use crate::pointers::{Error, Status};
use crate::status::{adead_status, guard};
use adead_c_support::{failures, last_error, remember};
use std::ffi::CStr;

/// Why a call ended: an error of the library, or a status that a callback returned, with its context.
pub(crate) enum Failure {
    Library(Error),
    Callback(adead_status, String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(error)
    }
}

impl Failure {
    /// Describes a status that a callback returned. `before` counts the calls that had failed on this thread when the
    /// callback was called.
    pub fn returned(status: adead_status, callback: &str, before: usize) -> Failure {
        let known = Status::ALL.iter().find(|&&known| known as adead_status == status);
        let name = known.map_or_else(|| status.to_string(), |known| known.name().to_string());
        let mut text = format!("{callback} returned {name}");
        if failures() != before {
            // SAFETY: the text is this thread's and stays until its next failure.
            let cause = unsafe { CStr::from_ptr(last_error()) };
            text = format!("{text}: {}", cause.to_string_lossy());
        }
        Failure::Callback(status, text)
    }
}

/// Works like `guard`, for calls that may also fail with a status of the caller's own.
pub(crate) fn guard_own(call: impl FnOnce() -> Result<(), Failure>) -> adead_status {
    let mut own = 0;
    let status = guard(|| match call() {
        Ok(()) => Ok(()),
        Err(Failure::Library(error)) => Err(error),
        Err(Failure::Callback(status, text)) => {
            remember(&text);
            own = status;
            Ok(())
        }
    });
    if status == 0 { own } else { status }
}
