//! Timeline semaphores, the one thing that streams, events and fences wait for, and timestamps.

use super::logical::Lane;
use super::recorder::{Kind, Recorder};
use super::shared::Shared;
use crate::error::{Result, fail};
use crate::hal::cpu::DefaultEnvironment;
use crate::hal::{DeviceKind, Event, Timestamp};
use ash::vk;
use std::any::Any;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A semaphore that counts a stream's submissions.
pub struct Timeline {
    shared: Arc<Shared>,
    pub semaphore: vk::Semaphore,
    /// The highest value seen, which saves asking.
    seen: AtomicU64,
}

impl Timeline {
    /// One at 0.
    pub fn new(shared: &Arc<Shared>) -> Result<Arc<Timeline>> {
        shared.usable()?;
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let mut semaphore = vk::Semaphore::null();
        // SAFETY: structures live until it returns.
        let result = unsafe { (shared.api.create_semaphore)(shared.device, &info, ptr::null(), &mut semaphore) };
        shared.check(result, "making a semaphore")?;
        Ok(Arc::new(Timeline { shared: shared.clone(), semaphore, seen: AtomicU64::new(0) }))
    }

    /// How far the device is.
    pub fn value(&self) -> Result<u64> {
        let mut value = 0;
        self.shared.usable()?;
        // SAFETY: the semaphore is there.
        let result = unsafe { (self.shared.api.semaphore_value)(self.shared.device, self.semaphore, &mut value) };
        self.shared.check(result, "asking how far the device is")?;
        self.seen.fetch_max(value, Relaxed);
        Ok(value)
    }

    /// Whether the device is that far.
    pub fn reached(&self, value: u64) -> Result<bool> {
        Ok(self.seen.load(Relaxed) >= value || self.value()? >= value)
    }

    /// Waits until the device is that far, at most so many nanoseconds; whether it is.
    pub fn wait(&self, value: u64, nanoseconds: u64) -> Result<bool> {
        if self.seen.load(Relaxed) >= value {
            return Ok(true);
        }
        self.shared.usable()?;
        if self.look_out(value, nanoseconds)? {
            return Ok(true);
        }
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(std::slice::from_ref(&self.semaphore))
            .values(std::slice::from_ref(&value));
        // SAFETY: structures live until it returns.
        let result = unsafe { (self.shared.api.wait_semaphores)(self.shared.device, &info, nanoseconds) };
        self.shared.check(result, "waiting for the device")?;
        let reached = result != vk::Result::TIMEOUT;
        if reached {
            self.seen.fetch_max(value, Relaxed);
        }
        Ok(reached)
    }

    /// Looks again and again for a while: being woken takes longer than most small kernels.
    fn look_out(&self, value: u64, nanoseconds: u64) -> Result<bool> {
        if self.shared.physical.kind == DeviceKind::Software {
            // It needs the processor itself.
            return Ok(false);
        }
        let (start, most) = (Instant::now(), LOOK_OUT.min(Duration::from_nanos(nanoseconds)));
        loop {
            for _ in 0..16 {
                let mut reached = 0;
                // SAFETY: the semaphore is there.
                let result =
                    unsafe { (self.shared.api.semaphore_value)(self.shared.device, self.semaphore, &mut reached) };
                self.shared.check(result, "asking how far the device is")?;
                if reached >= value {
                    self.seen.fetch_max(reached, Relaxed);
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            if start.elapsed() >= most {
                return Ok(false);
            }
        }
    }
}

/// How long a wait looks out before it sleeps. With 200 µs, calls of 150 µs on an H200 took up to 450 µs more at times.
const LOOK_OUT: Duration = Duration::from_millis(2);

impl Drop for Timeline {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if self.shared.is_here() {
            if self.shared.physical.kind == DeviceKind::Software {
                // Mesa's thread lets go of what a submission waited for only after its end can be seen, and would wait for ever
                // for the lock of a semaphore that is gone.
                self.shared.quiet();
            }
            // SAFETY: submissions that signal or wait for it hold it, so none is under way.
            unsafe { (self.shared.api.destroy_semaphore)(self.shared.device, self.semaphore, ptr::null()) };
        }
    }
}

/// A value that a timeline reaches.
#[derive(Clone)]
pub struct Point {
    pub timeline: Arc<Timeline>,
    pub value: u64,
}

impl Point {
    /// Whether it is of that device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.timeline.shared, shared)
    }
}

// SAFETY: `as_any` is itself.
unsafe impl Event for Point {
    fn is_done(&self) -> Result<bool> {
        self.timeline.reached(self.value)
    }

    fn wait(&self, nanoseconds: u64) -> Result<()> {
        if !self.timeline.wait(self.value, nanoseconds)? {
            fail!(NotReady, "the work was not done within {nanoseconds} ns");
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A time that was taken. It keeps what it was taken with.
pub struct Taken {
    shared: Arc<Shared>,
    query: Arc<Query>,
    point: Point,
}

/// A pool of one query.
struct Query {
    shared: Arc<Shared>,
    pool: vk::QueryPool,
}

impl Taken {
    /// Records the taking of a time, which is there when `point` is reached.
    pub fn new(recorder: &mut Recorder, point: Point) -> Result<Arc<Taken>> {
        let shared = recorder.shared.clone();
        if shared.physical.limits.timestamp_compute_and_graphics == 0 || recorder.lane != Lane::Compute {
            fail!(Unsupported, "{} takes no times", shared.info.id);
        }
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(1);
        let mut pool = vk::QueryPool::null();
        // SAFETY: structures live until it returns.
        let result = unsafe { (shared.api.create_query_pool)(shared.device, &info, ptr::null(), &mut pool) };
        shared.check(result, "making a query pool")?;
        let query = Arc::new(Query { shared: shared.clone(), pool });
        recorder.barrier(Kind::Time);
        // SAFETY: the command buffer is being recorded; the pool is kept by it.
        unsafe {
            (shared.api.cmd_reset_query_pool)(recorder.commands, pool, 0, 1);
            let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            (shared.api.cmd_write_timestamp)(recorder.commands, stage, pool, 0);
        }
        recorder.keep(query.clone());
        Ok(Arc::new(Taken { shared, query, point }))
    }
}

// SAFETY: it keeps the query that it reads.
unsafe impl Timestamp for Taken {
    fn nanoseconds(&self) -> Result<u64> {
        if !self.point.is_done()? {
            fail!(NotReady, "the device has not come to this timestamp yet: wait for an event or the stream");
        }
        let mut ticks = 0u64;
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: it writes one u64.
        let result = unsafe {
            let to = (&raw mut ticks).cast();
            (self.shared.api.query_results)(self.shared.device, self.query.pool, 0, 1, 8, to, 8, flags)
        };
        self.shared.check(result, "reading a timestamp")?;
        // Exactly, as a double has too few digits for nanoseconds since 1970, which is what some drivers count.
        let period = f64::from(self.shared.physical.limits.timestamp_period) * 2f64.powi(32);
        Ok(((u128::from(ticks) * period as u128) >> 32) as u64)
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if self.shared.is_here() {
            // SAFETY: command buffers that use it hold it, so none does any more.
            unsafe { (self.shared.api.destroy_query_pool)(self.shared.device, self.pool, ptr::null()) };
        }
    }
}
