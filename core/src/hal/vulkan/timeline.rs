//! How far a stream is: the one thing that streams, events and fences wait for. And timestamps.
//!
//! A timeline semaphore counts submissions. But NVIDIA's driver has an interrupt raised for each signal, and a thread on the
//! processor that takes them pays some 30 µs a call. So behind each submission for the compute queue comes a mark, a
//! command buffer that sets an event, at which the host looks. The semaphore is signalled only where somebody must sleep, or
//! where another queue or stream waits.

use super::logical::Lane;
use super::recorder::{Kind, Recorder};
use super::shared::Shared;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Event, Timestamp};
use ash::vk;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::VecDeque;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What counts a stream's submissions.
pub struct Timeline {
    shared: Arc<Shared>,
    semaphore: vk::Semaphore,
    /// The highest number seen, which saves asking.
    seen: AtomicU64,
    sent: Mutex<Sent>,
}

/// What was handed to the driver.
struct Sent {
    /// The last submission's number, and where it went.
    last: u64,
    lane: Lane,
    /// The highest number that the semaphore will have.
    signalled: u64,
    /// Marks of submissions that were not seen to be done, and the numbers of these.
    flying: VecDeque<(u64, Mark)>,
    idle: Vec<Mark>,
    /// What the marks are made of, once there is one.
    pool: vk::CommandPool,
}

/// A command buffer that sets an event. It is recorded once.
struct Mark {
    commands: vk::CommandBuffer,
    event: vk::Event,
}

/// Submissions that signal before marks begin: streams that end soon make none.
const UNMARKED: u64 = 8;

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
        let sent = Sent {
            last: 0,
            lane: Lane::Compute,
            signalled: 0,
            flying: VecDeque::new(),
            idle: Vec::new(),
            pool: vk::CommandPool::null(),
        };
        Ok(Arc::new(Timeline { shared: shared.clone(), semaphore, seen: AtomicU64::new(0), sent: Mutex::new(sent) }))
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits a command buffer, or nothing, behind other streams' points: its number.
    pub fn submit(&self, lane: Lane, commands: Option<vk::CommandBuffer>, waits: &[Point]) -> Result<u64> {
        for wait in waits {
            wait.timeline.signal(wait.value)?;
        }
        let mut sent = self.sent();
        let mut semaphores: SmallVec<[vk::Semaphore; 4]> = waits.iter().map(|wait| wait.timeline.semaphore).collect();
        let mut values: SmallVec<[u64; 4]> = waits.iter().map(|wait| wait.value).collect();
        // On one queue, barriers order; between queues, the semaphore does.
        if lane != sent.lane && sent.last > 0 {
            self.signal_last(&mut sent)?;
            semaphores.push(self.semaphore);
            values.push(sent.last);
        }
        let next = [sent.last + 1];
        let marked = self.shared.marks && lane == Lane::Compute && sent.last >= UNMARKED;
        let mark = if marked { Some(self.mark(&mut sent)?) } else { None };
        let buffers: SmallVec<[vk::CommandBuffer; 2]> =
            commands.into_iter().chain(mark.as_ref().map(|mark| mark.commands)).collect();
        let signals = if marked { &[][..] } else { slice::from_ref(&self.semaphore) };
        let stages: SmallVec<[vk::PipelineStageFlags; 4]> =
            semaphores.iter().map(|_| vk::PipelineStageFlags::ALL_COMMANDS).collect();
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&values)
            .signal_semaphore_values(&next[..signals.len()]);
        let mut info = vk::SubmitInfo::default()
            .wait_semaphores(&semaphores)
            .wait_dst_stage_mask(&stages)
            .command_buffers(&buffers)
            .signal_semaphores(signals);
        if !semaphores.is_empty() || !signals.is_empty() {
            info = info.push_next(&mut timeline);
        }
        let submitted = self.shared.submit(lane, &info);
        match (mark, &submitted) {
            (Some(mark), Ok(())) => sent.flying.push_back((next[0], mark)),
            (Some(mark), Err(_)) => sent.idle.push(mark),
            (None, Ok(())) => sent.signalled = next[0],
            (None, Err(_)) => {}
        }
        submitted?;
        (sent.last, sent.lane) = (next[0], lane);
        Ok(next[0])
    }

    /// A mark that nothing has, its event not set.
    fn mark(&self, sent: &mut Sent) -> Result<Mark> {
        let (shared, api, device) = (&self.shared, &self.shared.api, self.shared.device);
        if let Some(mark) = sent.idle.pop() {
            // SAFETY: the event was set, and its command buffer is in no submission that has not set it.
            shared.check(unsafe { (api.reset_event)(device, mark.event) }, "resetting an event")?;
            return Ok(mark);
        }
        // SAFETY: structures live until each call returns; the pool is held, and what is made goes with the timeline.
        unsafe {
            if sent.pool == vk::CommandPool::null() {
                let info = vk::CommandPoolCreateInfo::default().queue_family_index(shared.family(Lane::Compute));
                let result = (api.create_command_pool)(device, &info, ptr::null(), &mut sent.pool);
                shared.check(result, "making a command pool")?;
            }
            let mut mark = Mark { commands: vk::CommandBuffer::null(), event: vk::Event::null() };
            let info = vk::CommandBufferAllocateInfo::default().command_pool(sent.pool).command_buffer_count(1);
            let result = (api.allocate_command_buffers)(device, &info, &mut mark.commands);
            shared.check(result, "making a command buffer")?;
            let info = vk::EventCreateInfo::default();
            let result = (api.create_event)(device, &info, ptr::null(), &mut mark.event);
            shared.check(result, "making an event")?;
            // It may still be at its end when it is submitted again.
            let flags = vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
            let info = vk::CommandBufferBeginInfo::default().flags(flags);
            let recorded = (api.begin_command_buffer)(mark.commands, &info).result().and_then(|()| {
                (api.cmd_set_event)(mark.commands, mark.event, vk::PipelineStageFlags::ALL_COMMANDS);
                (api.end_command_buffer)(mark.commands).result()
            });
            if let Err(result) = recorded {
                (api.destroy_event)(device, mark.event, ptr::null());
                shared.check(result, "recording a mark")?;
            }
            Ok(mark)
        }
    }

    /// Has the semaphore come to that number, which was submitted.
    pub fn signal(&self, value: u64) -> Result<()> {
        let mut sent = self.sent();
        if sent.signalled >= value { Ok(()) } else { self.signal_last(&mut sent) }
    }

    /// Has the semaphore come to the last number.
    fn signal_last(&self, sent: &mut Sent) -> Result<()> {
        if sent.signalled >= sent.last {
            return Ok(());
        }
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(slice::from_ref(&sent.last));
        let info =
            vk::SubmitInfo::default().signal_semaphores(slice::from_ref(&self.semaphore)).push_next(&mut timeline);
        self.shared.submit(sent.lane, &info)?;
        sent.signalled = sent.last;
        Ok(())
    }

    /// How far the device is, as marks tell, and the semaphore where there are none.
    pub fn value(&self) -> Result<u64> {
        self.shared.usable()?;
        let mut sent = self.sent();
        let mut value = self.seen.load(Relaxed);
        while let Some(&(number, Mark { event, .. })) = sent.flying.front() {
            // SAFETY: the event is there.
            let status = unsafe { (self.shared.api.event_status)(self.shared.device, event) };
            self.shared.check(status, "asking how far the device is")?;
            if status != vk::Result::EVENT_SET {
                break;
            }
            value = value.max(number);
            let mark = sent.flying.pop_front().map(|(_, mark)| mark);
            sent.idle.extend(mark);
        }
        if sent.signalled > value {
            value = value.max(self.semaphore_value()?);
        }
        self.seen.fetch_max(value, Relaxed);
        Ok(value)
    }

    fn semaphore_value(&self) -> Result<u64> {
        let mut value = 0;
        // SAFETY: the semaphore is there.
        let result = unsafe { (self.shared.api.semaphore_value)(self.shared.device, self.semaphore, &mut value) };
        self.shared.check(result, "asking how far the device is")?;
        Ok(value)
    }

    /// Whether the device was seen to be that far, now or before.
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
        self.sleep(value, nanoseconds)
    }

    fn sleep(&self, value: u64, nanoseconds: u64) -> Result<bool> {
        self.signal(value)?;
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(slice::from_ref(&self.semaphore))
            .values(slice::from_ref(&value));
        // SAFETY: structures live until it returns.
        let result = unsafe { (self.shared.api.wait_semaphores)(self.shared.device, &info, nanoseconds) };
        self.shared.check(result, "waiting for the device")?;
        let reached = result != vk::Result::TIMEOUT;
        if reached {
            self.seen.fetch_max(value, Relaxed);
        }
        Ok(reached)
    }

    /// Waits for everything as the specification has it, before what was submitted is destroyed: an event is set while its command
    /// buffer has yet to end.
    pub fn settle(&self) -> Result<()> {
        let last = self.sent().last;
        if last == 0 {
            return Ok(());
        }
        self.shared.usable()?;
        self.sleep(last, u64::MAX).map(|_| ())
    }

    /// Looks again and again for a while: being woken takes longer than most small kernels.
    fn look_out(&self, value: u64, nanoseconds: u64) -> Result<bool> {
        if self.shared.is_software() {
            // It needs the processor itself.
            return Ok(false);
        }
        let (start, most) = (Instant::now(), LOOK_OUT.min(Duration::from_nanos(nanoseconds)));
        loop {
            for _ in 0..16 {
                if self.value()? >= value {
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
        let (api, device) = (&self.shared.api, self.shared.device);
        if !self.shared.is_here() {
            return;
        }
        if self.shared.is_software() {
            // Mesa's thread lets go of what a submission waited for only after its end can be seen, and would wait for ever
            // for the lock of a semaphore that is gone.
            self.shared.quiet();
        }
        let sent = self.sent.get_mut().unwrap_or_else(PoisonError::into_inner);
        let marks = sent.idle.drain(..).chain(sent.flying.drain(..).map(|(_, mark)| mark));
        // SAFETY: submissions that signal or wait for it hold it, and the stream waited for its own, so none is under way.
        unsafe {
            marks.for_each(|mark| (api.destroy_event)(device, mark.event, ptr::null()));
            (api.destroy_command_pool)(device, sent.pool, ptr::null());
            (api.destroy_semaphore)(device, self.semaphore, ptr::null());
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
        if self.timeline.reached(self.value)? {
            return Ok(true);
        }
        // A mark that is never set does not say that the device is lost.
        self.timeline.semaphore_value().map(|_| false)
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
