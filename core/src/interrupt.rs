//! Long work that is cut short because its caller no longer wants it.
//!
//! A caller says how to ask, with [`interruptible`]. The thread that called asks between parts of the work, some fifty times a
//! second, and tells the others through a flag; every participant then leaves, and the call returns an error. What was computed
//! until then goes with the memory that was taken for the result, so that nothing changes. Work that writes to memory that was
//! there before ([`uninterrupted`]) is not cut.

use crate::error::{Error, Result, Status};
use crate::fpenv::DefaultEnvironment;
use crate::hal::Event;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a caller is asked.
const EVERY: Duration = Duration::from_millis(20);

/// What asks a caller: whether it wants no more of the work.
type Check = *const (dyn Fn() -> bool + 'static);

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
/// lock that `work` has.
///
/// Operations that make new tensors, programs, and pipelines on the processor end within a few milliseconds, and waiting for a
/// GPU does; what a GPU has been given goes on there. A call that ends early changes nothing. Operations that write to buffers
/// or to the caller's own memory are not cut.
pub fn interruptible<T>(check: &dyn Fn() -> bool, work: impl FnOnce() -> T) -> T {
    let check: *const (dyn Fn() -> bool + '_) = check;
    // SAFETY: the lifetime alone is another. The pointer goes from the thread when this returns, until when the borrow lasts.
    let check = unsafe { std::mem::transmute::<*const (dyn Fn() -> bool + '_), Check>(check) };
    let _before = Before::replaced(Some(check), ptr::null());
    work()
}

/// Whether anybody could end what this thread does.
#[inline]
pub(crate) fn is_possible() -> bool {
    CHECK.get().is_some() || !STOP.get().is_null()
}

/// Does `work`, which nobody ends.
pub(crate) fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _before = Before::replaced(None, ptr::null());
    work()
}

/// Asks the caller, if this thread has one and it is time to.
#[inline(never)]
fn ask() -> bool {
    let Some(check) = CHECK.get() else { return false };
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
#[inline]
pub(crate) fn is_stopped() -> bool {
    let stop = STOP.get();
    // SAFETY: `Work` keeps the flag as long as threads take part, and takes it from them then.
    !stop.is_null() && told(unsafe { &*stop })
}

#[inline(never)]
fn told(stop: &AtomicBool) -> bool {
    if ask() {
        stop.store(true, Ordering::Relaxed);
    }
    stop.load(Ordering::Relaxed)
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
    Error::new(Status::NotReady, "the call was interrupted before its result was there; nothing was changed")
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
