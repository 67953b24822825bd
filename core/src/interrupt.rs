//! Long work that is cut short because its caller no longer wants it.
//!
//! A caller says how to ask, with [`interruptible`], or gives a flag, an [`Interrupt`]. The thread that called asks between parts
//! of the work and tells the others through a flag of the call's own; every participant then leaves, and the call returns an
//! error. A result that the call would have made goes with it; memory that was there before and that the call was to write has
//! some of the old and some of the new values.

use crate::error::{Error, Result, Status};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Download, Event};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a caller is asked.
pub(crate) const EVERY: Duration = Duration::from_millis(20);

/// Elementary operations after which work asks at the latest: a few milliseconds at most.
pub(crate) const PIECE: usize = 1 << 20;

/// What says that a caller wants no more of the work.
#[derive(Clone, Copy)]
enum Check {
    Ask(*const (dyn Fn() -> bool + 'static)),
    Flag(*const Interrupt),
}

/// A flag that ends long work early. Any thread may set it, and so may a signal handler.
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
    /// A flag that is not set.
    pub const fn new() -> Interrupt {
        Interrupt(AtomicBool::new(false))
    }

    /// Ends what [`Interrupt::run`] does, or lets it go on from the next call. Async-signal-safe.
    pub fn set(&self, ended: bool) {
        self.0.store(ended, Ordering::Relaxed);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does `work` on this thread, whose long calls end with `not_ready` within some milliseconds while the flag is set; see
    /// [`interruptible`] for what they leave. Short calls are done whole, flag or not.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _before = Before::replaced(Some(Check::Flag(self)), ptr::null());
        work()
    }

    /// Has this thread's long calls end while `flag` is set, from here on, for languages that have no closures; NULL: nothing ends
    /// them. The flag that there was before, NULL if there was none.
    ///
    /// # Safety
    /// The flag stays where it is until another one, or NULL, takes its place on this thread.
    #[doc(hidden)]
    pub unsafe fn watch(flag: *const Interrupt) -> *const Interrupt {
        match CHECK.replace(if flag.is_null() { None } else { Some(Check::Flag(flag)) }) {
            Some(Check::Flag(before)) => before,
            _ => ptr::null(),
        }
    }
}

thread_local! {
    /// How this thread's caller is asked, and from when on.
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
    static NEXT: Cell<Option<Instant>> = const { Cell::new(None) };

    /// What says that the work which this thread is part of is to end; NULL where nobody can say so.
    static STOP: Cell<*const AtomicBool> = const { Cell::new(ptr::null()) };
}

/// Puts back what a thread had.
struct Before(Option<Check>, Option<Instant>, *const AtomicBool);

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

/// Does `work`, which ends early with `not_ready` once `check` says so. `check` is called by this thread, from inside the call that
/// takes long: never in work of less than 20 ms, and every 20 ms after that. It may call adead, but must not wait for a stream or a
/// lock that `work` has; a buffer that `work` writes is refused there.
///
/// Operations, programs and pipelines on the processor end within a few milliseconds, and waiting for a GPU does; what a GPU has
/// been given goes on there. A call that ends early gives no result, and what was there before works as it did. But memory that
/// the call was to write, a buffer or the caller's own, then has some of the new values.
pub fn interruptible<T>(check: &dyn Fn() -> bool, work: impl FnOnce() -> T) -> T {
    let check: *const (dyn Fn() -> bool + '_) = check;
    // SAFETY: the lifetime alone is another. The pointer goes from the thread when this returns, until when the borrow lasts.
    let check =
        unsafe { std::mem::transmute::<*const (dyn Fn() -> bool + '_), *const (dyn Fn() -> bool + 'static)>(check) };
    let _before = Before::replaced(Some(Check::Ask(check)), ptr::null());
    work()
}

/// Whether anybody could end what this thread does.
#[inline(never)]
pub(crate) fn is_possible() -> bool {
    CHECK.get().is_some() || !STOP.get().is_null()
}

/// Does `work`, during which the caller is not asked: a flag of its may still end it.
pub(crate) fn unasked<T>(work: impl FnOnce() -> T) -> T {
    match CHECK.get() {
        Some(Check::Ask(_)) => uninterrupted(work),
        _ => work(),
    }
}

/// Does `work`, which nobody ends.
fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _before = Before::replaced(None, ptr::null());
    work()
}

/// Asks the caller, if this thread has one and it is time to.
#[inline(never)]
fn ask() -> bool {
    let check = match CHECK.get() {
        None => return false,
        // SAFETY: who gave it vouched that it lasts.
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
    // Products flush subnormals, which is nobody else's arithmetic; and what is asked may compute something itself.
    let _environment = DefaultEnvironment::enter();
    // SAFETY: `interruptible`, which put it there, has not returned.
    let stop = uninterrupted(|| unsafe { (*check)() });
    NEXT.set(Some(Instant::now() + EVERY));
    stop
}

/// Whether the work that this thread is part of is to end: asked between its parts. What is computed behind it doesn't matter.
#[inline(never)]
pub(crate) fn is_stopped() -> bool {
    #[cfg(test)]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
    let stop = STOP.get();
    // SAFETY: `Work` keeps the flag as long as threads take part, and takes it from them then.
    !stop.is_null() && told(unsafe { &*stop })
}

fn told(stop: &AtomicBool) -> bool {
    // Who has said so once is not asked again.
    let stopped = stop.load(Ordering::Relaxed) || ask();
    if stopped {
        stop.store(true, Ordering::Relaxed);
    }
    stopped
}

/// Counts elementary operations in a loop, so that it asks once for so many of them.
pub(crate) struct Looks(usize);

impl Looks {
    pub const NEW: Looks = Looks(0);

    /// Whether to leave the loop, of which the next turn has so many operations. Once it is, it stays so.
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

/// Goes through `n` elements, a piece of them at a time, until the work is to end. A macro, as a closure would not have the
/// instructions of the kernel around it.
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

/// Does work of this thread's, which asks itself whether it is to end: an error if it was.
pub(crate) fn alone(work: &mut dyn FnMut()) -> Result<()> {
    if !is_possible() {
        work();
        return Ok(());
    }
    Work::shared(|flag| flag.join(work))
}

/// A flag that threads share which take part in some work, and that says whether it is to end.
#[derive(Clone, Copy)]
pub(crate) struct Work(*const AtomicBool);

// SAFETY: an atomic, shared; who makes one outlives those who take part.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Work {
    /// Work that nobody ends.
    pub const WHOLE: Work = Work(ptr::null());

    /// Does `work` with a flag: that of the work which this thread is part of already, else a new one. An error if it was ended.
    /// Threads that take part in it ([`Work::join`]) leave before `work` returns.
    pub fn shared(work: impl FnOnce(Work)) -> Result<()> {
        let (own, outer) = (AtomicBool::new(false), STOP.get());
        let flag = if outer.is_null() { &raw const own } else { outer };
        work(Work(flag));
        // SAFETY: one of this call's, or of one that this call is inside.
        if unsafe { (*flag).load(Ordering::Relaxed) } { Err(interrupted()) } else { Ok(()) }
    }

    /// Whether it can be ended.
    pub fn can_end(self) -> bool {
        !self.0.is_null()
    }

    /// Does what this thread has to do of it.
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
    Error::new(Status::NotReady, "the call was interrupted before its result was there")
}

/// Waits for an event, at most so many nanoseconds, as [`Event::wait`] does, or until the caller wants no more.
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
        // Without an end it stays without one.
        left -= if left == u64::MAX { 0 } else { slice };
        if ask() || is_stopped() {
            return Err(interrupted());
        }
    }
}

/// Waits for bytes on their way to the host, or until the caller wants no more.
pub(crate) fn arrived(download: &dyn Download) -> Result<()> {
    match download.event() {
        Some(event) if is_possible() => wait(event, u64::MAX),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
