//! The facade's threads, whose panics become errors.

use adead_core::{Error, Result, Status};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// Starts a thread; `io` if the system can't.
pub(crate) fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    Ok(Builder::new().name(name.into()).spawn(work)?)
}

/// Returns the result of work, or its panic as an error.
pub(crate) fn caught<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // The unwinding has dropped everything that the work used.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::new(Status::Internal, format!("{what} panicked: {}", text.unwrap_or("without a text"))))
    })
}
