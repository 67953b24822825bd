//! Ending long work early, when its caller no longer wants it.
//!
//! A caller passes a check to [`interruptible`], or sets a flag, an [`Interrupt`]. The calling thread evaluates the check between
//! parts of the work. It tells the other threads through a flag of the call. Then every participant leaves, and the call returns
//! an error. A result that the call allocated is dropped. Memory that existed before and that the call was to write holds some
//! old and some new values.

use crate::error::{Error, Result, Status};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Download, Event};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The interval between two calls of the check.
pub(crate) const EVERY: Duration = Duration::from_millis(20);

/// The most elementary operations between two looks at the flag: a few milliseconds at most.
pub(crate) const PIECE: usize = 1 << 20;

/// How a caller ends its work.
#[derive(Clone, Copy)]
enum Check {
    Ask(*const (dyn Fn() -> bool + 'static)),
    Flag(*const Interrupt),
}

/// A flag that ends long work early. Any thread may set it, and a signal handler may too.
///
/// ```
/// # use adead_core::{Context, Interrupt, Status, Tensor};
/// # let ctx = Context::open("cpu")?;
/// # let x = Tensor::zeros(adead_core::DType::F32, &[1024, 1024])?;
/// static STOP: Interrupt = Interrupt::new();
/// STOP.set(true); // From another thread, or from a signal handler.
/// let error = STOP.run(|| ctx.matmul(&x, &x)).unwrap_err();
/// assert_eq!(error.status(), Status::NotReady);
/// STOP.set(false);
/// assert!(STOP.run(|| ctx.matmul(&x, &x)).is_ok());
/// # Ok::<(), adead_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Makes a flag that is not set.
    pub const fn new() -> Interrupt {
        Interrupt(AtomicBool::new(false))
    }

    /// Sets or clears the flag. Setting it ends the calls inside [`Interrupt::run`]. Async-signal-safe.
    pub fn set(&self, ended: bool) {
        self.0.store(ended, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs `work` on this thread. While the flag is set, its long calls end with `not_ready` within some milliseconds.
    /// [`interruptible`] describes what they leave behind. Short calls finish, flag or not.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _before = Before::replaced(Some(Check::Flag(self)), ptr::null());
        work()
    }

    /// Makes this thread's long calls end while `flag` is set, from now on, for languages without closures. With NULL nothing
    /// ends them. Returns the previous flag, or NULL.
    ///
    /// # Safety
    /// The flag must stay valid until another flag, or NULL, replaces it on this thread.
    #[doc(hidden)]
    pub unsafe fn watch(flag: *const Interrupt) -> *const Interrupt {
        match CHECK.replace(if flag.is_null() { None } else { Some(Check::Flag(flag)) }) {
            Some(Check::Flag(before)) => before,
            _ => ptr::null(),
        }
    }
}

thread_local! {
    /// How this thread's caller ends work, and when its check is due next.
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
    static NEXT: Cell<Option<Instant>> = const { Cell::new(None) };

    /// The flag that ends the work in which this thread takes part, or NULL if nothing can end it.
    static STOP: Cell<*const AtomicBool> = const { Cell::new(ptr::null()) };
}

/// Restores a thread's previous state when dropped.
pub(crate) struct Before(Option<Check>, Option<Instant>, *const AtomicBool);

impl Before {
    fn replaced(check: Option<Check>, stop: *const AtomicBool) -> Before {
        Before(CHECK.replace(check), NEXT.take(), STOP.replace(stop))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        CHECK.set(self.0);
        NEXT.set(self.1);
        STOP.set(self.2);
    }
}

/// Runs `work`, which ends early with `not_ready` once `check` returns true. This thread calls `check` from inside long calls:
/// never in the first 20 ms of work, and every 20 ms after that. `check` may call adead, but must not wait for a stream or a lock
/// that `work` holds. A buffer that `work` writes is refused inside `check`.
///
/// Operations, programs and pipelines on the processor end within a few milliseconds, and so does waiting for a GPU. Work that a
/// GPU has received continues there. A call that ends early returns no result, and everything that existed before stays usable.
/// But memory that the call was to write, a buffer or the caller's own, then holds some of the new values.
pub fn interruptible<T>(check: &dyn Fn() -> bool, work: impl FnOnce() -> T) -> T {
    let check: *const (dyn Fn() -> bool + '_) = check;
    // SAFETY: only the lifetime changes. The pointer is removed from the thread when this function returns, and the borrow lasts
    // until then.
    let check =
        unsafe { std::mem::transmute::<*const (dyn Fn() -> bool + '_), *const (dyn Fn() -> bool + 'static)>(check) };
    let _before = Before::replaced(Some(Check::Ask(check)), ptr::null());
    work()
}

/// Whether anything can end this thread's work.
#[inline(never)]
pub(crate) fn is_possible() -> bool {
    CHECK.get().is_some() || !STOP.get().is_null()
}

/// Runs `work` without calling the caller's check. A flag may still end it.
pub(crate) fn unasked<T>(work: impl FnOnce() -> T) -> T {
    match CHECK.get() {
        Some(Check::Ask(_)) => uninterrupted(work),
        _ => work(),
    }
}

/// Runs `work`, which nothing ends.
fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _before = pause();
    work()
}

/// Lets nothing end this thread's work until the result is dropped.
pub(crate) fn pause() -> Before {
    Before::replaced(None, ptr::null())
}

/// Calls the caller's check, if this thread has one and it is due.
#[inline(never)]
fn ask() -> bool {
    let check = match CHECK.get() {
        None => return false,
        // SAFETY: the caller of `Interrupt::run` or `watch` keeps the flag valid.
        Some(Check::Flag(flag)) => return unsafe { (*flag).is_set() },
        Some(Check::Ask(check)) => check,
    };
    let now = Instant::now();
    let Some(next) = NEXT.get() else {
        NEXT.set(Some(now + EVERY));
        return false;
    };
    if now < next {
        return false;
    }
    // Products run with subnormals flushed, which the check must not see. The check may compute something itself.
    let _environment = DefaultEnvironment::enter();
    // SAFETY: `interruptible`, which stored the pointer, has not returned.
    let stop = uninterrupted(|| unsafe { (*check)() });
    NEXT.set(Some(Instant::now() + EVERY));
    stop
}

/// Whether the work of this thread is to end, asked between parts. Results computed after that are discarded.
#[inline(never)]
pub(crate) fn is_stopped() -> bool {
    #[cfg(test)]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
    let stop = STOP.get();
    // SAFETY: `Work` keeps the flag valid while threads take part, and removes it from them afterwards.
    !stop.is_null() && told(unsafe { &*stop })
}

fn told(stop: &AtomicBool) -> bool {
    // Once the flag is set, the check is not called again.
    let stopped = stop.load(Ordering::Relaxed) || ask();
    if stopped {
        stop.store(true, Ordering::Relaxed);
    }
    stopped
}

/// Counts elementary operations in a loop, so that the loop asks once per [`PIECE`] operations.
pub(crate) struct Looks(usize);

impl Looks {
    pub const NEW: Looks = Looks(0);

    /// Whether to leave the loop, whose next iteration has this many operations. Once true, it stays true.
    #[inline(always)]
    pub fn before(&mut self, operations: usize) -> bool {
        self.0 += operations;
        self.0 >= PIECE && self.are_enough()
    }

    #[inline(never)]
    fn are_enough(&mut self) -> bool {
        let stopped = is_stopped();
        self.0 = if stopped { PIECE } else { 0 };
        stopped
    }
}

/// Runs the body over `n` elements, piece by piece, until the work is to end. A macro, because a closure would not be compiled
/// with the kernel's instruction set.
macro_rules! pieces {
    ($n:expr, |$start:ident, $count:ident| $body:expr) => {{
        let (n, mut $start) = ($n, 0);
        while $start < n && ($start == 0 || !$crate::interrupt::is_stopped()) {
            let $count = $crate::interrupt::PIECE.min(n - $start);
            $body;
            $start += $count;
        }
    }};
}
pub(crate) use pieces;

/// Runs work of this thread alone, which checks by itself whether to end. Returns an error if it ended.
pub(crate) fn alone(work: &mut dyn FnMut()) -> Result<()> {
    if !is_possible() {
        work();
        return Ok(());
    }
    Work::shared(|flag| flag.join(work))
}

/// A flag that all threads of some work share, and that says whether it is to end.
#[derive(Clone, Copy)]
pub(crate) struct Work(*const AtomicBool);

// SAFETY: it points to an atomic, and its maker outlives the participants.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Work {
    /// Work that nothing ends.
    pub const WHOLE: Work = Work(ptr::null());

    /// Runs `work` with a flag: that of the surrounding work if there is one, otherwise a new one. Returns an error if it was
    /// ended. Threads that take part ([`Work::join`]) must leave before `work` returns.
    pub fn shared(work: impl FnOnce(Work)) -> Result<()> {
        let (own, outer) = (AtomicBool::new(false), STOP.get());
        let flag = if outer.is_null() { &raw const own } else { outer };
        work(Work(flag));
        // SAFETY: the flag belongs to this call or to a call around it.
        if unsafe { (*flag).load(Ordering::Relaxed) } { Err(interrupted()) } else { Ok(()) }
    }

    /// Whether it can be ended.
    pub fn can_end(self) -> bool {
        !self.0.is_null()
    }

    /// Runs this thread's part of the work.
    pub fn join<T>(self, part: impl FnOnce() -> T) -> T {
        struct Outer(*const AtomicBool);
        impl Drop for Outer {
            fn drop(&mut self) {
                STOP.set(self.0);
            }
        }
        let _outer = Outer(STOP.replace(self.0));
        part()
    }
}

#[cold]
pub(crate) fn interrupted() -> Error {
    Error::new(Status::NotReady, "the call was interrupted before it had a result")
}

/// Waits for an event, at most this many nanoseconds, like [`Event::wait`], or until the caller ends the wait.
pub(crate) fn wait(event: &dyn Event, nanoseconds: u64) -> Result<()> {
    if !is_possible() {
        return event.wait(nanoseconds);
    }
    let slice = EVERY.as_nanos() as u64;
    let mut left = nanoseconds;
    loop {
        match event.wait(left.min(slice)) {
            Err(error) if error.status() == Status::NotReady && left > slice => {}
            done => return done,
        }
        // A wait without a limit stays without one.
        left -= if left == u64::MAX { 0 } else { slice };
        if ask() || is_stopped() {
            return Err(interrupted());
        }
    }
}

/// Waits for the bytes of a download, or until the caller ends the wait.
pub(crate) fn arrived(download: &dyn Download) -> Result<()> {
    match download.event() {
        Some(event) if is_possible() => wait(event, u64::MAX),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
