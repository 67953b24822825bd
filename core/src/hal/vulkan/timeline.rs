//! How far a stream is: everything that waits for work, waits for a [`Timeline`]. Also timestamps.
//!
//! A timeline semaphore counts submissions. But NVIDIA's driver raises an interrupt for each signal and handles it in a
//! thread on the CPU, which costs some 30 µs per call. So each submission to the compute queue is followed by a mark: a
//! command buffer that sets an event, which the host polls. The semaphore is signalled only if a thread must sleep, or
//! if another queue or stream waits.

use super::logical::Lane;
use super::recorder::Recorder;
use super::shared::Shared;
use super::steps::Kind;
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

/// Counts a stream's submissions.
pub struct Timeline {
    shared: Arc<Shared>,
    semaphore: vk::Semaphore,
    /// The highest number that was seen to be reached, which saves calls of the driver.
    seen: AtomicU64,
    sent: Mutex<Sent>,
}

/// What was submitted to the driver.
struct Sent {
    /// The last submission's number, and its lane.
    last: u64,
    lane: Lane,
    /// The highest number that a submitted signal gives the semaphore.
    signalled: u64,
    /// The marks in flight, each with the number of its submission.
    in_flight: VecDeque<(u64, Mark)>,
    idle: Vec<Mark>,
    /// The command pool of the marks; null before the first mark.
    pool: vk::CommandPool,
}

/// A command buffer that sets an event. It is recorded once and submitted many times.
struct Mark {
    commands: vk::CommandBuffer,
    event: vk::Event,
}

/// The first submissions signal the semaphore instead: short-lived streams then need no marks.
const UNMARKED: u64 = 8;

impl Timeline {
    /// Makes a timeline that starts at 0.
    pub fn new(shared: &Arc<Shared>) -> Result<Arc<Timeline>> {
        shared.usable()?;
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let mut semaphore = vk::Semaphore::null();
        // SAFETY: the structures live until the call returns.
        let result = unsafe { (shared.api.create_semaphore)(shared.device, &info, ptr::null(), &mut semaphore) };
        shared.check(result, "making a semaphore")?;
        let sent = Sent {
            last: 0,
            lane: Lane::Compute,
            signalled: 0,
            in_flight: VecDeque::new(),
            idle: Vec::new(),
            pool: vk::CommandPool::null(),
        };
        Ok(Arc::new(Timeline { shared: shared.clone(), semaphore, seen: AtomicU64::new(0), sent: Mutex::new(sent) }))
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits a command buffer, or nothing, that waits for points of other streams. Returns the submission's number.
    pub fn submit(&self, lane: Lane, commands: Option<vk::CommandBuffer>, waits: &[Point]) -> Result<u64> {
        for wait in waits {
            wait.timeline.signal(wait.value)?;
        }
        let mut sent = self.sent();
        let mut semaphores: SmallVec<[vk::Semaphore; 4]> = waits.iter().map(|wait| wait.timeline.semaphore).collect();
        let mut values: SmallVec<[u64; 4]> = waits.iter().map(|wait| wait.value).collect();
        // Barriers order work on one queue. Between queues the semaphore does.
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
            (Some(mark), Ok(())) => sent.in_flight.push_back((next[0], mark)),
            (Some(mark), Err(_)) => sent.idle.push(mark),
            (None, Ok(())) => sent.signalled = next[0],
            (None, Err(_)) => {}
        }
        submitted?;
        (sent.last, sent.lane) = (next[0], lane);
        Ok(next[0])
    }

    /// Returns a mark that is not in flight and whose event is not set.
    fn mark(&self, sent: &mut Sent) -> Result<Mark> {
        let (shared, api, device) = (&self.shared, &self.shared.api, self.shared.device);
        if let Some(mark) = sent.idle.pop() {
            // SAFETY: the event was set. Every submission with this command buffer has set it, so none uses it any
            // more.
            shared.check(unsafe { (api.reset_event)(device, mark.event) }, "resetting an event")?;
            return Ok(mark);
        }
        // SAFETY: the structures live until each call returns, the pool is locked, and the timeline destroys what is
        // made here.
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
            // The event is set before the command buffer ends, so the buffer may still be running when it is submitted
            // again.
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

    /// Makes the semaphore reach `value`, a submitted number.
    pub fn signal(&self, value: u64) -> Result<()> {
        let mut sent = self.sent();
        if sent.signalled >= value { Ok(()) } else { self.signal_last(&mut sent) }
    }

    /// Makes the semaphore reach the last submitted number.
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

    /// Returns the number that the device has reached. Marks show it, and the semaphore where there are no marks.
    pub fn value(&self) -> Result<u64> {
        self.shared.usable()?;
        let mut sent = self.sent();
        let mut value = self.seen.load(Relaxed);
        while let Some(&(number, Mark { event, .. })) = sent.in_flight.front() {
            // SAFETY: the mark's event exists until the timeline is dropped.
            let status = unsafe { (self.shared.api.event_status)(self.shared.device, event) };
            self.shared.check(status, "asking how far the device is")?;
            if status != vk::Result::EVENT_SET {
                break;
            }
            value = value.max(number);
            let mark = sent.in_flight.pop_front().map(|(_, mark)| mark);
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
        // SAFETY: the semaphore exists until the timeline is dropped.
        let result = unsafe { (self.shared.api.semaphore_value)(self.shared.device, self.semaphore, &mut value) };
        self.shared.check(result, "asking how far the device is")?;
        Ok(value)
    }

    /// Returns whether the device has reached `value`.
    pub fn reached(&self, value: u64) -> Result<bool> {
        Ok(self.seen.load(Relaxed) >= value || self.value()? >= value)
    }

    /// Waits until the device reaches `value`, for at most `nanoseconds`. Returns whether it has.
    pub fn wait(&self, value: u64, nanoseconds: u64) -> Result<bool> {
        if self.seen.load(Relaxed) >= value {
            return Ok(true);
        }
        self.shared.usable()?;
        if self.poll(value, nanoseconds)? {
            return Ok(true);
        }
        self.sleep(value, nanoseconds)
    }

    fn sleep(&self, value: u64, nanoseconds: u64) -> Result<bool> {
        self.signal(value)?;
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(slice::from_ref(&self.semaphore))
            .values(slice::from_ref(&value));
        // SAFETY: the structures live until the call returns.
        let result = unsafe { (self.shared.api.wait_semaphores)(self.shared.device, &info, nanoseconds) };
        self.shared.check(result, "waiting for the device")?;
        let reached = result != vk::Result::TIMEOUT;
        if reached {
            self.seen.fetch_max(value, Relaxed);
        }
        Ok(reached)
    }

    /// Waits for all submissions through the semaphore, before what they use is destroyed. A set event isn't enough:
    /// its command buffer hasn't ended yet.
    pub fn wait_for_all(&self) -> Result<()> {
        let last = self.sent().last;
        if last == 0 {
            return Ok(());
        }
        self.shared.usable()?;
        self.sleep(last, u64::MAX).map(|_| ())
    }

    /// Polls for a while before sleeping, because waking a thread takes longer than most small kernels.
    fn poll(&self, value: u64, nanoseconds: u64) -> Result<bool> {
        if self.shared.is_software() {
            // A software device needs the processor for the work itself.
            return Ok(false);
        }
        let (start, most) = (Instant::now(), POLL_TIME.min(Duration::from_nanos(nanoseconds)));
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

/// How long a wait polls before it sleeps. With 200 µs, calls of 150 µs on an H200 sometimes took up to 450 µs more.
const POLL_TIME: Duration = Duration::from_millis(2);

impl Drop for Timeline {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        let (api, device) = (&self.shared.api, self.shared.device);
        if !self.shared.opened_in_this_process() {
            return;
        }
        if self.shared.is_software() {
            // Mesa's submission thread releases the semaphores that a submission waited for only after the submission's
            // end is visible. If the semaphore were gone then, that thread would wait forever for its lock.
            self.shared.wait_idle();
        }
        let sent = self.sent.get_mut().unwrap_or_else(PoisonError::into_inner);
        let marks = sent.idle.drain(..).chain(sent.in_flight.drain(..).map(|(_, mark)| mark));
        // SAFETY: submissions of other streams that use the semaphore hold the timeline, and the stream has waited for
        // its own submissions. So nothing uses it.
        unsafe {
            marks.for_each(|mark| (api.destroy_event)(device, mark.event, ptr::null()));
            (api.destroy_command_pool)(device, sent.pool, ptr::null());
            (api.destroy_semaphore)(device, self.semaphore, ptr::null());
        }
    }
}

/// A number that a timeline reaches.
#[derive(Clone)]
pub struct Point {
    pub timeline: Arc<Timeline>,
    pub value: u64,
}

impl Point {
    /// Returns whether it belongs to this opening of a device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.timeline.shared, shared)
    }
}

// SAFETY: `as_any` returns `self`.
unsafe impl Event for Point {
    fn is_done(&self) -> Result<bool> {
        if self.timeline.reached(self.value)? {
            return Ok(true);
        }
        // On a lost device a mark is never set, and its event reports no error. The semaphore's call does.
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

/// A timestamp. It keeps the query that it reads.
pub struct VulkanTimestamp {
    shared: Arc<Shared>,
    query: Arc<Query>,
    point: Point,
}

/// A pool with one query.
struct Query {
    shared: Arc<Shared>,
    pool: vk::QueryPool,
}

impl VulkanTimestamp {
    /// Records a timestamp. It is valid once `point` is reached.
    pub fn new(recorder: &mut Recorder, point: Point) -> Result<Arc<VulkanTimestamp>> {
        let shared = recorder.shared.clone();
        if shared.physical.limits.timestamp_compute_and_graphics == 0 || recorder.lane != Lane::Compute {
            fail!(Unsupported, "{} has no timestamps", shared.info.id);
        }
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(1);
        let mut pool = vk::QueryPool::null();
        // SAFETY: the structures live until the call returns.
        let result = unsafe { (shared.api.create_query_pool)(shared.device, &info, ptr::null(), &mut pool) };
        shared.check(result, "making a query pool")?;
        let query = Arc::new(Query { shared: shared.clone(), pool });
        recorder.barrier(Kind::Time);
        // SAFETY: the command buffer is being recorded and keeps the pool.
        unsafe {
            (shared.api.cmd_reset_query_pool)(recorder.commands, pool, 0, 1);
            let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            (shared.api.cmd_write_timestamp)(recorder.commands, stage, pool, 0);
        }
        recorder.keep(query.clone());
        Ok(Arc::new(VulkanTimestamp { shared, query, point }))
    }
}

// SAFETY: it keeps the query that it reads.
unsafe impl Timestamp for VulkanTimestamp {
    fn nanoseconds(&self) -> Result<u64> {
        if !self.point.is_done()? {
            fail!(NotReady, "the device has not reached this timestamp yet: wait for an event or the stream");
        }
        let mut ticks = 0u64;
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: the call writes one u64, to `ticks`.
        let result = unsafe {
            let to = (&raw mut ticks).cast();
            (self.shared.api.query_results)(self.shared.device, self.query.pool, 0, 1, 8, to, 8, flags)
        };
        self.shared.check(result, "reading a timestamp")?;
        // In integers: some drivers count from 1970, and a double has too few digits for that many nanoseconds.
        let period = f64::from(self.shared.physical.limits.timestamp_period) * 2f64.powi(32);
        Ok(((u128::from(ticks) * period as u128) >> 32) as u64)
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if self.shared.opened_in_this_process() {
            // SAFETY: command buffers that use the pool hold the query, so none uses it any more.
            unsafe { (self.shared.api.destroy_query_pool)(self.shared.device, self.pool, ptr::null()) };
        }
    }
}
