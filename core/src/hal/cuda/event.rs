//! Events: points that streams reach, and timestamps.

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

/// A point of a stream. Dropping the last reference returns its event for reuse.
pub struct Mark {
    shared: Arc<Shared>,
    /// Null if the point was always reached.
    event: Handle,
    /// Set once the point was seen to be reached, which saves calls of the driver.
    done: AtomicBool,
}

// SAFETY: any thread may use the handle.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

/// How long a wait polls before it sleeps. Waking a thread takes longer than most small kernels, in a virtual machine
/// up to half a millisecond.
pub const POLL_TIME: Duration = Duration::from_millis(2);
/// How often a wait with a time limit polls after that. CUDA has no wait with a limit.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

impl Mark {
    /// Waiting threads sleep, and the event takes no time.
    pub const FLAGS: u32 = 1 | 2;

    /// Makes the point of a stream without work.
    pub fn reached(shared: &Arc<Shared>) -> Arc<Mark> {
        Arc::new(Mark { shared: shared.clone(), event: ptr::null_mut(), done: AtomicBool::new(true) })
    }

    /// Records an event behind everything enqueued on a stream.
    pub fn record(shared: &Arc<Shared>, stream: Handle, _: &Entered) -> Result<Arc<Mark>> {
        let mark = Mark { shared: shared.clone(), event: shared.take_event()?, done: AtomicBool::new(false) };
        // SAFETY: the event and the stream are of this device.
        shared.check(unsafe { (shared.api().event_record)(mark.event, stream) }, "recording an event")?;
        Ok(Arc::new(mark))
    }

    /// Makes a stream of `of`, the same device or another one of the driver, wait for this point.
    pub fn enqueue_wait(&self, of: &Shared, stream: Handle) -> Result<()> {
        let _entered = of.enter()?;
        // SAFETY: the event is of this device, and the stream of this or another one. The driver reads the event now, so it may be
        // reused afterwards.
        let result = unsafe { (self.shared.api().stream_wait)(stream, self.event, 0) };
        of.check(result, "waiting for an event")
    }

    /// Returns whether it belongs to this opening of a device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Returns the device that it is of.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Asks the driver whether the point is reached. The context must be current.
    fn query(&self) -> Result<bool> {
        // SAFETY: an event of this device.
        let done = self.shared.is_done(unsafe { (self.shared.api().event_query)(self.event) })?;
        if done {
            self.set_reached();
        }
        Ok(done)
    }

    /// Returns whether the point is reached.
    pub fn is_reached(&self) -> Result<bool> {
        if self.done.load(Relaxed) {
            return Ok(true);
        }
        let _entered = self.shared.enter()?;
        self.query()
    }

    /// Marks the point as reached, because later work is done.
    pub fn set_reached(&self) {
        self.done.store(true, Relaxed);
    }

    /// Waits for the point asleep.
    pub fn sleep(&self) -> Result<()> {
        if self.done.load(Relaxed) {
            return Ok(());
        }
        let _entered = self.shared.enter()?;
        // SAFETY: an event of this device.
        let result = unsafe { (self.shared.api().event_synchronize)(self.event) };
        self.shared.check(result, "waiting for the device")?;
        self.set_reached();
        Ok(())
    }

    /// Waits for the point, for at most `nanoseconds`. Returns whether it is reached.
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
            if waited < POLL_TIME {
                continue;
            }
            if nanoseconds == u64::MAX {
                return self.sleep().map(|()| true);
            }
            sleep(POLL_INTERVAL.min(most - waited));
        }
    }
}

// SAFETY: `as_any` returns `self`.
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

/// The event that timestamps count from. The driver returns the milliseconds between two events in single precision, so
/// only a recent base gives exact times.
pub struct Base {
    pub event: Handle,
    /// Since the device's first base.
    nanoseconds: u64,
    taken: Instant,
}

// SAFETY: any thread may use the handle.
unsafe impl Send for Base {}
// SAFETY: as above.
unsafe impl Sync for Base {}

/// The greatest age of a base. Up to here, times are exact to a quarter of a microsecond.
const BASE_LIFETIME: Duration = Duration::from_secs(4);

impl Shared {
    /// Returns a recent base, or makes one.
    fn recent_base(&self) -> Result<Arc<Base>> {
        let mut base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(base) = base.as_ref().filter(|base| base.taken.elapsed() < BASE_LIFETIME) {
            return Ok(base.clone());
        }
        let event = self.new_event(0)?;
        let made = self
            // SAFETY: the event and the stream are of this device.
            .run_and_wait("taking a time", &|stream| unsafe { (self.api().event_record)(event, stream) })
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

    /// Returns the time of an event.
    fn since(&self, base: &Base, event: Handle) -> Result<u64> {
        let _entered = self.enter()?;
        let mut milliseconds = 0f32;
        // SAFETY: both events are of this device and have timers. The call writes one number.
        let result = unsafe { (self.api().event_elapsed)(&mut milliseconds, base.event, event) };
        self.check(result, "reading a time")?;
        Ok(base.nanoseconds.saturating_add((f64::from(milliseconds) * 1e6) as u64))
    }

    /// Drops a reference to a base. The last reference destroys its event.
    pub fn drop_base(&self, base: Option<Arc<Base>>) {
        if let Some(base) = base.and_then(Arc::into_inner) {
            self.destroy_event(base.event);
        }
    }
}

/// A timestamp.
pub struct CudaTimestamp {
    shared: Arc<Shared>,
    base: Option<Arc<Base>>,
    event: Handle,
}

// SAFETY: any thread may use the handles.
unsafe impl Send for CudaTimestamp {}
// SAFETY: as above.
unsafe impl Sync for CudaTimestamp {}

impl CudaTimestamp {
    /// Enqueues a timestamp.
    pub fn new(shared: &Arc<Shared>, stream: Handle) -> Result<Arc<CudaTimestamp>> {
        let _entered = shared.enter()?;
        let base = Some(shared.recent_base()?);
        let taken = CudaTimestamp { shared: shared.clone(), base, event: shared.new_event(0)? };
        // SAFETY: the event and the stream are of this device.
        shared.check(unsafe { (shared.api().event_record)(taken.event, stream) }, "taking a time")?;
        Ok(Arc::new(taken))
    }
}

// SAFETY: it keeps the event that it reads.
unsafe impl Timestamp for CudaTimestamp {
    fn nanoseconds(&self) -> Result<u64> {
        let _entered = self.shared.enter()?;
        // SAFETY: an event of this device.
        let done = self.shared.is_done(unsafe { (self.shared.api().event_query)(self.event) })?;
        match &self.base {
            Some(base) if done => self.shared.since(base, self.event),
            _ => fail!(NotReady, "the device has not reached this timestamp yet: wait for an event or the stream"),
        }
    }
}

impl Drop for CudaTimestamp {
    fn drop(&mut self) {
        self.shared.destroy_event(self.event);
        self.shared.drop_base(self.base.take());
    }
}
