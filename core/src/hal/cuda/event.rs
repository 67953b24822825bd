//! Events: points that streams reach, and times that the device takes.

use super::api::Handle;
use super::shared::{Entered, Shared};
use crate::error::{Result, fail};
use crate::hal::{Event, Timestamp};
use std::any::Any;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A point of a stream. Its event goes back for reuse when the last who looks at it is gone.
pub struct Mark {
    shared: Arc<Shared>,
    /// Null for a point that was always reached.
    event: Handle,
    /// Seen to be reached, which saves asking.
    done: AtomicBool,
}

// SAFETY: a handle that any thread may use.
unsafe impl Send for Mark {}
// SAFETY: the same.
unsafe impl Sync for Mark {}

/// How long a wait looks out before it sleeps: being woken takes longer than most small kernels, in a virtual machine up to half a
/// millisecond.
pub const LOOK_OUT: Duration = Duration::from_millis(2);
/// How often a wait with a limit, which CUDA does not have, asks after that.
const AGAIN: Duration = Duration::from_micros(100);

impl Mark {
    /// Who waits sleeps; no time is taken.
    pub const FLAGS: u32 = 1 | 2;

    /// The point of a stream that had no work.
    pub fn reached(shared: &Arc<Shared>) -> Arc<Mark> {
        Arc::new(Mark { shared: shared.clone(), event: ptr::null_mut(), done: AtomicBool::new(true) })
    }

    /// The point behind everything that a stream has.
    pub fn record(shared: &Arc<Shared>, stream: Handle, _: &Entered) -> Result<Arc<Mark>> {
        let mark = Mark { shared: shared.clone(), event: shared.take_event()?, done: AtomicBool::new(false) };
        // SAFETY: an event and a stream of this device.
        shared.check(unsafe { (shared.api().event_record)(mark.event, stream) }, "recording an event")?;
        Ok(Arc::new(mark))
    }

    /// Makes a stream of the same device wait for it.
    pub fn hold_back(&self, stream: Handle) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: an event and a stream of this device. The driver takes the point as it is now: the event may be used again.
        let result = unsafe { (self.shared.api().stream_wait)(stream, self.event, 0) };
        self.shared.check(result, "waiting for an event")
    }

    /// Whether it is of that device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Asks the driver, whose context is current.
    fn query(&self) -> Result<bool> {
        // SAFETY: an event of this device.
        let done = self.shared.is_done(unsafe { (self.shared.api().event_query)(self.event) })?;
        if done {
            self.was_reached();
        }
        Ok(done)
    }

    /// Whether it was.
    pub fn is_reached(&self) -> Result<bool> {
        if self.done.load(Relaxed) {
            return Ok(true);
        }
        let _entered = self.shared.enter()?;
        self.query()
    }

    /// What came behind it is done.
    pub fn was_reached(&self) {
        self.done.store(true, Relaxed);
    }

    /// Waits for it asleep.
    pub fn sleep(&self) -> Result<()> {
        if self.done.load(Relaxed) {
            return Ok(());
        }
        let _entered = self.shared.enter()?;
        // SAFETY: an event of this device.
        let result = unsafe { (self.shared.api().event_synchronize)(self.event) };
        self.shared.check(result, "waiting for the device")?;
        self.was_reached();
        Ok(())
    }

    /// Waits for it, at most so many nanoseconds; whether it was reached.
    pub fn wait_for(&self, nanoseconds: u64) -> Result<bool> {
        if self.done.load(Relaxed) {
            return Ok(true);
        }
        let _entered = self.shared.enter()?;
        let (start, most) = (Instant::now(), Duration::from_nanos(nanoseconds));
        loop {
            for _ in 0..16 {
                if self.query()? {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            let waited = start.elapsed();
            if waited >= most {
                return Ok(false);
            }
            if waited < LOOK_OUT {
                continue;
            }
            if nanoseconds == u64::MAX {
                return self.sleep().map(|()| true);
            }
            sleep(AGAIN.min(most - waited));
        }
    }
}

// SAFETY: `as_any` is itself.
unsafe impl Event for Mark {
    fn is_done(&self) -> Result<bool> {
        self.is_reached()
    }

    fn wait(&self, nanoseconds: u64) -> Result<()> {
        if !self.wait_for(nanoseconds)? {
            fail!(NotReady, "the work was not done within {nanoseconds} ns");
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if !self.event.is_null() {
            self.shared.events.lock().unwrap_or_else(PoisonError::into_inner).push(self.event);
        }
    }
}

/// A point that times are counted from. The driver tells times as single-precision milliseconds between two events: a base that is
/// near keeps them exact.
pub struct Base {
    pub event: Handle,
    /// Since the device's first base.
    nanoseconds: u64,
    taken: Instant,
}

// SAFETY: a handle that any thread may use.
unsafe impl Send for Base {}
// SAFETY: the same.
unsafe impl Sync for Base {}

/// How old a base gets: up to here, times are told to a quarter of a microsecond.
const OLD: Duration = Duration::from_secs(4);

impl Shared {
    /// A base that is near.
    fn near_base(&self) -> Result<Arc<Base>> {
        let mut base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(base) = base.as_ref().filter(|base| base.taken.elapsed() < OLD) {
            return Ok(base.clone());
        }
        let event = self.new_event(0)?;
        let made = self
            // SAFETY: an event and a stream of this device.
            .at_once("taking a time", &|stream| unsafe { (self.api().event_record)(event, stream) })
            .and_then(|()| base.as_ref().map_or(Ok(0), |base| self.since(base, event)));
        let nanoseconds = match made {
            Ok(nanoseconds) => nanoseconds,
            Err(error) => {
                self.destroy_event(event);
                return Err(error);
            }
        };
        let near = Arc::new(Base { event, nanoseconds, taken: Instant::now() });
        self.drop_base(base.replace(near.clone()));
        Ok(near)
    }

    /// The time that an event took.
    fn since(&self, base: &Base, event: Handle) -> Result<u64> {
        let _entered = self.enter()?;
        let mut milliseconds = 0f32;
        // SAFETY: two events of this device with timers; it writes a number.
        let result = unsafe { (self.api().event_elapsed)(&mut milliseconds, base.event, event) };
        self.check(result, "reading a time")?;
        Ok(base.nanoseconds.saturating_add((f64::from(milliseconds) * 1e6) as u64))
    }

    /// Lets go of a base; its event goes with the last who has it.
    pub fn drop_base(&self, base: Option<Arc<Base>>) {
        if let Some(base) = base.and_then(Arc::into_inner) {
            self.destroy_event(base.event);
        }
    }
}

/// A time that was taken.
pub struct Taken {
    shared: Arc<Shared>,
    base: Option<Arc<Base>>,
    event: Handle,
}

// SAFETY: handles that any thread may use.
unsafe impl Send for Taken {}
// SAFETY: the same.
unsafe impl Sync for Taken {}

impl Taken {
    /// Enqueues the taking of a time.
    pub fn new(shared: &Arc<Shared>, stream: Handle) -> Result<Arc<Taken>> {
        let _entered = shared.enter()?;
        let base = Some(shared.near_base()?);
        let taken = Taken { shared: shared.clone(), base, event: shared.new_event(0)? };
        // SAFETY: an event and a stream of this device.
        shared.check(unsafe { (shared.api().event_record)(taken.event, stream) }, "taking a time")?;
        Ok(Arc::new(taken))
    }
}

// SAFETY: it keeps the event that it reads.
unsafe impl Timestamp for Taken {
    fn nanoseconds(&self) -> Result<u64> {
        let _entered = self.shared.enter()?;
        // SAFETY: an event of this device.
        let done = self.shared.is_done(unsafe { (self.shared.api().event_query)(self.event) })?;
        match &self.base {
            Some(base) if done => self.shared.since(base, self.event),
            _ => fail!(NotReady, "the device has not come to this timestamp yet: wait for an event or the stream"),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.shared.destroy_event(self.event);
        self.shared.drop_base(self.base.take());
    }
}
