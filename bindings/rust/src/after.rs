//! Work on one device that waits for an event of another.

use crate::thread::{caught, spawn};
use adead_core::Result;
use adead_core::gpu::{Event, Stream};
use std::thread::JoinHandle;

/// Enqueues work on a stream once an event of any device is reached. Devices don't wait for each other's events, so a thread
/// does. The thread keeps the stream until [`After::join`] returns it; other streams and the caller continue. `io` if the
/// system can't start a thread; the stream is then dropped.
///
/// For streams of one device [`Stream::wait_for`] is cheaper. If the caller has nothing else to do, use
/// [`Event::wait`].
///
/// ```
/// use adead::Context;
///
/// let (a, b) = (Context::auto()?, Context::open("cpu")?);
/// let (x, y) = (a.buffer(&[1.0f32, 2.0])?, b.buffer_zeroed(8)?);
/// let mut from = a.stream()?;
/// let bytes = from.download(&x, 0, 8)?;
/// let after = adead::after(&from.event()?, b.stream()?, move |stream| {
///     stream.upload(&y, 0, &bytes.to_bytes()?)?;
///     Ok(y)
/// })?;
/// // The caller can do other work here.
/// let (mut to, y) = after.join();
/// to.synchronize()?;
/// assert_eq!(y?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), adead::Error>(())
/// ```
pub fn after<T: Send + 'static>(
    event: &Event,
    mut stream: Stream,
    work: impl FnOnce(&mut Stream) -> Result<T> + Send + 'static,
) -> Result<After<T>> {
    let event = event.clone();
    Ok(After(spawn("adead-after", move || {
        let outcome = event.wait().and_then(|()| caught("the work after an event", || work(&mut stream)));
        (stream, outcome)
    })?))
}

/// Work that waits for an event, or that has been enqueued.
pub struct After<T>(JoinHandle<(Stream, Result<T>)>);

impl<T> After<T> {
    /// Returns whether [`After::join`] would return without waiting.
    pub fn is_done(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until the work has been enqueued. Returns the stream, and the work's own result. A panic in the work is an error
    /// `internal`.
    pub fn join(self) -> (Stream, Result<T>) {
        match self.0.join() {
            Ok(done) => done,
            // In the thread, only the caught code can panic.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
