//! A stream: command buffers submitted in order, and one timeline semaphore that counts them.
//!
//! Work begins at once when the device has nothing of this stream to do. While it is busy, more is collected in an open command
//! buffer, which goes off when the device runs dry, when it is full, or when somebody waits.

use super::encoder::VulkanEncoder;
use super::logical::Lane;
use super::memory::{Allocation, Space};
use super::recorder::Recorder;
use super::shared::Shared;
use super::timeline::{Point, Taken, Timeline};
use super::user::UserKernel;
use super::{VulkanBuffer, VulkanRecording};
use crate::command::Command;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::lowering::{self, Encoder};
use crate::hal::{Buffer, Download, Event, Kernel, Recording, Slice, Stream, Timestamp, check_slice};
use crate::operand::Place;
use ash::vk;
use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

/// Commands after which a busy device gets the next command buffer.
const FULL: u32 = 64;
/// Submissions under way; the next one waits for the oldest.
const IN_FLIGHT: usize = 32;
/// Bytes of staging memory that one copy takes at a time.
const PIECE: usize = 8 << 20;
/// Pieces of a long copy that are under way.
const PIECES: usize = 3;
/// Bytes from which a copy from or to the host goes by the transfer queue.
const LARGE: usize = 1 << 20;
/// Bytes from which a copy on the device is a kernel's.
const BY_KERNEL: usize = 64 << 10;

/// Work that the device has.
struct Submission {
    number: u64,
    work: Work,
    /// A semaphore that is waited for must outlive the wait.
    _waits: Vec<Point>,
}

/// Whose command buffer.
enum Work {
    /// The stream's.
    Own(Box<Recorder>),
    /// A recording's.
    Replay(Arc<Recorder>),
    /// Nobody's: only waiting.
    Nothing,
}

/// A stream of a device.
pub struct VulkanStream {
    shared: Arc<Shared>,
    timeline: Arc<Timeline>,
    /// Submissions so far: the last one's number.
    last: u64,
    /// Where it went.
    lane: Lane,
    open: Option<Box<Recorder>>,
    /// Set while recording: what is recorded so far.
    recording: Option<Recorder>,
    waits: Vec<Point>,
    in_flight: VecDeque<Submission>,
    #[allow(clippy::vec_box, reason = "recorders are large, and move from list to list")]
    idle: [Vec<Box<Recorder>>; 2],
    failure: Result<()>,
}

impl VulkanStream {
    /// A stream without work.
    pub fn new(shared: &Arc<Shared>) -> Result<VulkanStream> {
        Ok(VulkanStream {
            timeline: Timeline::new(shared)?,
            shared: shared.clone(),
            last: 0,
            lane: Lane::Compute,
            open: None,
            recording: None,
            waits: Vec::new(),
            in_flight: VecDeque::new(),
            idle: [Vec::new(), Vec::new()],
            failure: Ok(()),
        })
    }

    /// The recorder for what comes next, which goes to that lane, not started.
    fn recorder(&mut self, lane: Lane) -> Result<&mut Recorder> {
        if self.recording.is_none() {
            let lane = self.shared.lane(lane);
            if self.open.as_ref().is_some_and(|open| open.lane != lane) {
                self.submit_open()?;
            }
            if self.open.is_none() {
                self.shared.usable()?;
                self.open = Some(match self.idle[lane as usize].pop() {
                    Some(recorder) => recorder,
                    None => Box::new(Recorder::new(&self.shared, lane)?),
                });
            }
        }
        match self.recording.as_mut().or(self.open.as_deref_mut()) {
            Some(recorder) => Ok(recorder),
            None => fail!(Internal, "no command buffer is open"),
        }
    }

    /// Records with `record`, which records nothing if it fails.
    fn enqueue(&mut self, lane: Lane, record: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<()> {
        let recorder = self.recorder(lane)?;
        recorder.start()?;
        record(recorder)?;
        self.send_if_useful()
    }

    /// Enqueues what `encode` encodes, outside the table of operations.
    pub fn encode(&mut self, encode: impl FnOnce(&mut VulkanEncoder<'_>) -> Result<()>) -> Result<()> {
        let mut encoder = VulkanEncoder::new(self.recorder(Lane::Compute)?);
        encode(&mut encoder)?;
        encoder.commit()?;
        self.send_if_useful()
    }

    /// Submits what is open if the device has nothing else of this stream to do, or if it is enough.
    fn send_if_useful(&mut self) -> Result<()> {
        if self.recording.is_some() {
            return Ok(());
        }
        let full = self.open.as_ref().is_some_and(|open| open.count >= FULL);
        if full || self.timeline.reached(self.last)? { self.submit_open() } else { Ok(()) }
    }

    /// Submits what is open.
    fn submit_open(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.end()?;
        let (lane, commands) = (open.lane, open.commands);
        self.send(lane, Some(commands), Work::Own(open))
    }

    /// Submits a command buffer as the next number.
    fn send(&mut self, lane: Lane, commands: Option<vk::CommandBuffer>, work: Work) -> Result<()> {
        self.last = self.timeline.submit(lane, commands, &self.waits)?;
        self.lane = lane;
        let waits = std::mem::take(&mut self.waits);
        self.in_flight.push_back(Submission { number: self.last, work, _waits: waits });
        // Asking the driver takes a moment too.
        if self.in_flight.len() > IN_FLIGHT / 2 {
            self.reap()?;
        }
        while self.in_flight.len() > IN_FLIGHT {
            let oldest = self.in_flight[0].number;
            self.timeline.wait(oldest, u64::MAX)?;
            self.reap()?;
        }
        Ok(())
    }

    /// Takes back the command buffers whose work is done.
    fn reap(&mut self) -> Result<()> {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        let done = self.timeline.value()?;
        while self.in_flight.front().is_some_and(|submission| submission.number <= done) {
            let Some(submission) = self.in_flight.pop_front() else { break };
            let found = match submission.work {
                Work::Nothing => Ok(()),
                Work::Replay(recorder) => recorder.fault(),
                Work::Own(mut recorder) => {
                    let found = recorder.release();
                    self.idle[recorder.lane as usize].push(recorder);
                    found
                }
            };
            if self.failure.is_ok() {
                self.failure = found;
            }
        }
        Ok(())
    }

    /// The point after everything enqueued.
    fn point(&mut self) -> Result<Point> {
        if self.recording.is_some() {
            fail!(InvalidArgument, "a stream that records has nothing to wait for: finish the recording first");
        }
        self.submit_open()?;
        if !self.waits.is_empty() {
            // Nothing came behind what is waited for: the point does.
            self.send(self.lane, None, Work::Nothing)?;
        }
        Ok(Point { timeline: self.timeline.clone(), value: self.last })
    }

    fn not_while_recording(&self, what: &str) -> Result<()> {
        if self.recording.is_some() {
            fail!(InvalidArgument, "{what} can't be recorded: finish the recording first");
        }
        Ok(())
    }

    /// Begins to bring part of a buffer to the host.
    fn fetch(&mut self, from: Slice<'_>, lane: Lane) -> Result<Pending> {
        let memory = of_device(from.buffer, &self.shared)?.clone();
        let staging = Allocation::new(&self.shared, from.bytes, Space::Host, "downloads")?;
        self.enqueue(lane, |recorder| {
            recorder.copy(&memory, from.offset, &staging, 0, from.bytes);
            Ok(())
        })?;
        Ok(Pending { staging, point: self.point()?, bytes: from.bytes })
    }
}

// SAFETY: recorders keep what work uses until it is done; host bytes are copied before a call returns.
unsafe impl Stream for VulkanStream {
    fn submit(&mut self, commands: &mut [Command<'_>]) -> Result<()> {
        let mut rest = &*commands;
        while !rest.is_empty() {
            let mut done = 0;
            self.encode(|encoder| {
                done = lowering::encode(encoder, rest)?;
                encoder.uses(&rest[..done])
            })?;
            rest = &rest[done..];
        }
        Ok(())
    }

    fn dispatch(&mut self, kernel: &dyn Kernel, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let Some(kernel) = kernel.as_any().downcast_ref::<UserKernel>() else {
            fail!(InvalidArgument, "the kernel '{}' is not one of {}", kernel.name(), self.shared.info.id);
        };
        let call = kernel.check(&self.shared, buffers, push, groups)?;
        self.enqueue(Lane::Compute, |recorder| kernel.encode(recorder, &call, push, groups))
    }

    fn write(&mut self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.not_while_recording("a write from the host")?;
        check_slice("write", to.size(), offset, bytes.len())?;
        let memory = of_device(to, &self.shared)?.clone();
        let lane = if bytes.len() >= LARGE { Lane::Transfer } else { Lane::Compute };
        let mut under_way = VecDeque::new();
        for (i, piece) in bytes.chunks(PIECE).enumerate() {
            if under_way.len() == PIECES
                && let Some(oldest) = under_way.pop_front()
            {
                self.timeline.wait(oldest, u64::MAX)?;
                self.reap()?;
            }
            let staging = Allocation::new(&self.shared, piece.len(), Space::Host, "copies")?;
            // SAFETY: new mapped memory of at least as many bytes.
            unsafe { self.shared.copy(piece, staging.mapped) };
            self.enqueue(lane, |recorder| {
                recorder.copy(&staging, 0, &memory, offset + i * PIECE, piece.len());
                Ok(())
            })?;
            if bytes.len() > PIECE {
                self.submit_open()?;
                under_way.push_back(self.last);
            }
        }
        Ok(())
    }

    fn read(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()> {
        self.not_while_recording("a read by the host")?;
        check_slice("read", from.size(), offset, into.len())?;
        if into.is_empty() {
            return self.synchronize();
        }
        let lane = if into.len() >= LARGE { Lane::Transfer } else { Lane::Compute };
        let mut under_way: VecDeque<Pending> = VecDeque::new();
        let mut arrived = 0;
        let mut finish = |pending: Pending, into: &mut [u8]| {
            let part = arrived..arrived + pending.bytes;
            arrived = part.end;
            pending.finish(&mut into[part])
        };
        for start in (0..into.len()).step_by(PIECE) {
            let bytes = PIECE.min(into.len() - start);
            under_way.push_back(self.fetch(Slice { buffer: from, offset: offset + start, bytes }, lane)?);
            if start == 0 {
                // What is read may be the result of wrong data: then that is the answer, and nothing is copied.
                self.synchronize()?;
            }
            if under_way.len() == PIECES
                && let Some(oldest) = under_way.pop_front()
            {
                finish(oldest, into)?;
            }
        }
        under_way.into_iter().try_for_each(|pending| finish(pending, into))
    }

    fn download(&mut self, from: Slice<'_>) -> Result<Box<dyn Download>> {
        self.not_while_recording("a download")?;
        check_slice("download", from.buffer.size(), from.offset, from.bytes)?;
        let lane = if from.bytes >= LARGE { Lane::Transfer } else { Lane::Compute };
        Ok(Box::new(self.fetch(from, lane)?))
    }

    fn copy(&mut self, from: Slice<'_>, to: Slice<'_>) -> Result<()> {
        check_slice("copy", from.buffer.size(), from.offset, from.bytes)?;
        check_slice("copy", to.buffer.size(), to.offset, to.bytes)?;
        let (source, target) = (of_device(from.buffer, &self.shared)?, of_device(to.buffer, &self.shared)?);
        let (a, b, bytes) = (from.offset, to.offset, from.bytes);
        if to.bytes != bytes || (Arc::ptr_eq(source, target) && a < b + bytes && b < a + bytes && bytes > 0) {
            fail!(InvalidArgument, "copy: {bytes} bytes at {a} to {} at {b}: sizes differ or parts overlap", to.bytes);
        }
        let aligned = (source.address | target.address).is_multiple_of(16) && (a | b | bytes).is_multiple_of(16);
        if bytes >= BY_KERNEL && aligned {
            return self.encode(|encoder| {
                let x = encoder.address(Place::Buffer(from.buffer, a))?;
                let y = encoder.address(Place::Buffer(to.buffer, b))?;
                lowering::copy_bytes(encoder, x, y, bytes as u64)
            });
        }
        let (source, target) = (source.clone(), target.clone());
        self.enqueue(Lane::Compute, |recorder| {
            recorder.copy(&source, a, &target, b, bytes);
            Ok(())
        })
    }

    fn clear(&mut self, to: Slice<'_>) -> Result<()> {
        check_slice("clear", to.buffer.size(), to.offset, to.bytes)?;
        let end = to.offset + to.bytes;
        if !to.offset.is_multiple_of(4) || (!end.is_multiple_of(4) && end != to.buffer.size()) {
            fail!(InvalidArgument, "clear: {} bytes at {} are not whole 4-byte words", to.bytes, to.offset);
        }
        let memory = of_device(to.buffer, &self.shared)?.clone();
        self.enqueue(Lane::Compute, |recorder| {
            recorder.clear(&memory, to.offset, to.bytes);
            Ok(())
        })
    }

    fn event(&mut self) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(self.point()?))
    }

    fn wait(&mut self, event: &dyn Event) -> Result<()> {
        self.not_while_recording("waiting for an event")?;
        let Some(point) = event.as_any().downcast_ref::<Point>().filter(|point| point.is_of(&self.shared)) else {
            fail!(InvalidArgument, "the event is not one of {}", self.shared.info.id);
        };
        if !Arc::ptr_eq(&point.timeline, &self.timeline) && !point.is_done()? {
            self.submit_open()?;
            // Now, or it would wait for what comes behind the event too.
            point.timeline.signal(point.value)?;
            self.waits.push(point.clone());
        }
        Ok(())
    }

    fn timestamp(&mut self) -> Result<Arc<dyn Timestamp>> {
        self.not_while_recording("a timestamp")?;
        // Opens the command buffer that the time is taken in: its number is the next.
        self.recorder(Lane::Compute)?.start()?;
        let point = Point { timeline: self.timeline.clone(), value: self.last + 1 };
        let taken = Taken::new(self.recorder(Lane::Compute)?, point)?;
        self.send_if_useful()?;
        Ok(taken)
    }

    fn start_recording(&mut self) -> Result<()> {
        self.not_while_recording("a recording")?;
        self.submit_open()?;
        let mut recorder = Recorder::new(&self.shared, Lane::Compute)?;
        recorder.begin_recording()?;
        self.recording = Some(recorder);
        Ok(())
    }

    fn finish_recording(&mut self) -> Result<Arc<dyn Recording>> {
        let Some(mut recorder) = self.recording.take() else {
            fail!(InvalidArgument, "the stream is not recording");
        };
        recorder.end()?;
        Ok(Arc::new(VulkanRecording(Arc::new(recorder))))
    }

    fn replay(&mut self, recording: &dyn Recording) -> Result<()> {
        self.not_while_recording("a replay")?;
        let recording = recording.as_any().downcast_ref::<VulkanRecording>();
        let Some(recording) = recording.filter(|recording| Arc::ptr_eq(&recording.0.shared, &self.shared)) else {
            fail!(InvalidArgument, "the recording is not one of {}", self.shared.info.id);
        };
        self.submit_open()?;
        self.send(Lane::Compute, Some(recording.0.commands), Work::Replay(recording.0.clone()))
    }

    fn flush(&mut self) -> Result<()> {
        if self.recording.is_some() { Ok(()) } else { self.submit_open() }
    }

    fn synchronize(&mut self) -> Result<()> {
        let point = self.point()?;
        self.timeline.wait(point.value, u64::MAX)?;
        self.reap()?;
        std::mem::replace(&mut self.failure, Ok(()))
    }

    fn is_idle(&mut self) -> Result<bool> {
        let point = self.point()?;
        self.timeline.reached(point.value)
    }
}

impl Drop for VulkanStream {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        // Its command buffers and what they use must stay until the device is done with them.
        let done = self.submit_open().and_then(|()| self.timeline.settle());
        if done.is_err() {
            // Lost, or forked. The driver is asked once more, and for everything: it may still be at work.
            self.shared.quiet();
        }
    }
}

/// The memory of a buffer that must be of this device.
pub fn of_device<'a>(buffer: &'a dyn Buffer, shared: &Arc<Shared>) -> Result<&'a Arc<Allocation>> {
    match buffer.as_any().downcast_ref::<VulkanBuffer>() {
        Some(buffer) if buffer.memory.is_of(shared) => Ok(&buffer.memory),
        _ => fail!(InvalidArgument, "a buffer is on {}, not on {}", buffer.device_name(), shared.info.id),
    }
}

/// Bytes on their way to the host.
struct Pending {
    staging: Arc<Allocation>,
    point: Point,
    bytes: usize,
}

impl Pending {
    fn finish(self, into: &mut [u8]) -> Result<()> {
        self.point.wait(u64::MAX)?;
        // SAFETY: the device has written that many bytes of the mapped memory, and nobody else has it.
        unsafe { self.staging.shared.copy(slice::from_raw_parts(self.staging.mapped, self.bytes), into.as_mut_ptr()) };
        Ok(())
    }
}

// SAFETY: its memory is its own, and is written before the point that it waits for.
unsafe impl Download for Pending {
    fn size(&self) -> usize {
        self.bytes
    }

    fn is_done(&self) -> Result<bool> {
        self.point.is_done()
    }

    fn event(&self) -> Option<&dyn Event> {
        Some(&self.point)
    }

    fn bytes(&self) -> Result<&[u8]> {
        self.point.wait(u64::MAX)?;
        // SAFETY: the device has written that many bytes of the mapped memory, and nobody writes it again.
        Ok(unsafe { slice::from_raw_parts(self.staging.mapped, self.bytes) })
    }

    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()> {
        if into.len() != self.bytes {
            fail!(InvalidArgument, "the download has {} bytes and the place for it {}", self.bytes, into.len());
        }
        self.finish(into)
    }
}
