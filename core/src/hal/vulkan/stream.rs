//! A stream: command buffers submitted in order, and a timeline that counts them.
//!
//! If the device has no work of this stream, new work is submitted at once. While the device is busy, commands collect
//! in an open command buffer. It is submitted when the device runs out of work, when it is full, or when a caller
//! waits.

use super::encoder::VulkanEncoder;
use super::logical::Lane;
use super::memory::Allocation;
use super::recorder::Recorder;
use super::shared::Shared;
use super::timeline::{Point, Timeline, VulkanTimestamp};
use super::transfer::lane_of;
use super::user::UserKernel;
use super::{VulkanBuffer, VulkanRecording};
use crate::command::Command;
#[cfg(feature = "integers")]
use crate::contract::Precision;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::lowering::{self, Encoder};
use crate::hal::{Buffer, Download, Event, Kernel, Recording, Slice, Stream, Timestamp, check_slice, not_there};
use crate::operand::Place;
use ash::vk;
use std::collections::VecDeque;
use std::sync::Arc;

/// An open command buffer is full at this many commands.
const FULL: u32 = 64;
/// The most submissions in flight. One more waits for the oldest.
const IN_FLIGHT: usize = 32;
/// The most bytes of intermediate values of submissions in flight, unless one has more alone: the same memory serves the next ones.
const HELD_IN_FLIGHT: u64 = 256 << 20;
/// Copies on the device of at least this many bytes use a kernel.
const BY_KERNEL: usize = 64 << 10;

/// Work in flight.
struct Submission {
    number: u64,
    work: Work,
    /// Keeps the semaphores that the work waits for alive.
    _waits: Vec<Point>,
}

/// The owner of a submitted command buffer.
enum Work {
    /// The stream.
    Own(Box<Recorder>),
    /// A recording.
    Replay(Arc<Recorder>),
    /// There is no command buffer: the submission only waits.
    Nothing,
}

/// A stream of a device.
pub struct VulkanStream {
    pub(super) shared: Arc<Shared>,
    pub(super) timeline: Arc<Timeline>,
    /// The number of the last submission.
    pub(super) last: u64,
    /// The lane of the last submission.
    lane: Lane,
    open: Option<Box<Recorder>>,
    /// The recording under construction, if the stream is recording.
    recording: Option<Recorder>,
    waits: Vec<Point>,
    in_flight: VecDeque<Submission>,
    #[allow(clippy::vec_box, reason = "recorders are large, and move from list to list")]
    idle: [Vec<Box<Recorder>>; 2],
    failure: Result<()>,
}

impl VulkanStream {
    /// Makes a stream without work.
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

    /// Returns the recorder for the next command on this lane, which may not be started.
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

    /// Records commands with `record`, which must record nothing if it fails.
    pub(super) fn enqueue(&mut self, lane: Lane, record: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<()> {
        let recorder = self.recorder(lane)?;
        recorder.start()?;
        record(recorder)?;
        self.send_if_useful()
    }

    /// Enqueues kernels that `encode` encodes without a command of the op table.
    pub fn encode(&mut self, encode: impl FnOnce(&mut VulkanEncoder<'_>) -> Result<()>) -> Result<()> {
        let mut encoder = VulkanEncoder::new(self.recorder(Lane::Compute)?);
        encode(&mut encoder)?;
        encoder.commit()?;
        self.send_if_useful()
    }

    /// Submits the open buffer if it is full, or if the device has no other work of this stream.
    fn send_if_useful(&mut self) -> Result<()> {
        if self.recording.is_some() {
            return Ok(());
        }
        let full = self.open.as_ref().is_some_and(|open| open.count >= FULL || open.held >= HELD_IN_FLIGHT / 4);
        if full || self.timeline.reached(self.last)? { self.submit_open() } else { Ok(()) }
    }

    /// Submits the open buffer, if there is one.
    pub(super) fn submit_open(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.end()?;
        let (lane, commands) = (open.lane, open.commands);
        self.send(lane, Some(commands), Work::Own(open))
    }

    /// Submits a command buffer with the next number.
    fn send(&mut self, lane: Lane, commands: Option<vk::CommandBuffer>, work: Work) -> Result<()> {
        self.last = self.timeline.submit(lane, commands, &self.waits)?;
        self.lane = lane;
        let waits = std::mem::take(&mut self.waits);
        self.in_flight.push_back(Submission { number: self.last, work, _waits: waits });
        // Checking for finished work asks the driver, which takes time, so it happens only when much is in flight.
        if self.in_flight.len() > IN_FLIGHT / 2 || self.held() > HELD_IN_FLIGHT / 2 {
            self.reap()?;
        }
        while self.in_flight.len() > IN_FLIGHT || self.in_flight.len() > 1 && self.held() > HELD_IN_FLIGHT {
            let oldest = self.in_flight[0].number;
            self.timeline.wait(oldest, u64::MAX)?;
            self.reap()?;
        }
        Ok(())
    }

    /// Returns the bytes of intermediate values of submissions in flight.
    fn held(&self) -> u64 {
        let of = |submission: &Submission| if let Work::Own(recorder) = &submission.work { recorder.held } else { 0 };
        self.in_flight.iter().map(of).sum()
    }

    /// Takes back the command buffers whose work is done, and keeps the first error that it found.
    pub(super) fn reap(&mut self) -> Result<()> {
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

    /// Returns the point that the stream reaches when all enqueued work is done.
    pub(super) fn point(&mut self) -> Result<Point> {
        if self.recording.is_some() {
            fail!(InvalidArgument, "a stream can't be waited for while it records: finish the recording first");
        }
        self.submit_open()?;
        if !self.waits.is_empty() {
            // No work follows the waits yet, so an empty submission carries them.
            self.send(self.lane, None, Work::Nothing)?;
        }
        Ok(Point { timeline: self.timeline.clone(), value: self.last })
    }

    fn refuse_while_recording(&self, what: &str) -> Result<()> {
        if self.recording.is_some() {
            fail!(InvalidArgument, "{what} can't be recorded: finish the recording first");
        }
        Ok(())
    }
}

// SAFETY: recorders keep what their work uses until it is done. Host bytes are copied to staging memory before a call
// returns.
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

    #[cfg(feature = "integers")]
    fn digits_bytes(&self, precision: Precision, sizes: [usize; 2]) -> Option<usize> {
        lowering::digits_bytes(precision, sizes)
    }

    #[cfg(feature = "integers")]
    fn cut(
        &mut self,
        from: Slice<'_>,
        precision: Precision,
        sizes: [usize; 2],
        transposed: bool,
        to: &dyn Buffer,
    ) -> Result<()> {
        self.encode(|encoder| lowering::cut_matrix(encoder, from, precision, sizes, transposed, to))
    }

    fn dispatch(&mut self, kernel: &dyn Kernel, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let Some(kernel) = kernel.as_any().downcast_ref::<UserKernel>() else {
            fail!(InvalidArgument, "the kernel '{}' was not built for {}", kernel.name(), self.shared.info.id);
        };
        let call = kernel.check(&self.shared, buffers, push, groups)?;
        self.enqueue(Lane::Compute, |recorder| kernel.encode(recorder, &call, push, groups))
    }

    fn write(&mut self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.refuse_while_recording("a write from the host")?;
        check_slice("write", to.size(), offset, bytes.len())?;
        let memory = of_device(to, &self.shared)?.clone();
        self.upload(&memory, offset, bytes)
    }

    fn read(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()> {
        self.refuse_while_recording("a read by the host")?;
        check_slice("read", from.size(), offset, into.len())?;
        if into.is_empty() {
            return self.synchronize();
        }
        self.read_back(from, offset, into)
    }

    fn download(&mut self, from: Slice<'_>) -> Result<Box<dyn Download>> {
        self.refuse_while_recording("a download")?;
        check_slice("download", from.buffer.size(), from.offset, from.bytes)?;
        Ok(Box::new(self.fetch(from, lane_of(from.bytes))?))
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
        self.refuse_while_recording("waiting for an event")?;
        let Some(point) = event.as_any().downcast_ref::<Point>().filter(|point| point.is_of(&self.shared)) else {
            fail!(
                InvalidArgument,
                "the event is not from this opening of {}: wait for it on the host",
                self.shared.info.id
            );
        };
        if !Arc::ptr_eq(&point.timeline, &self.timeline) && !point.is_done()? {
            self.submit_open()?;
            // Signalled now: a later signal would also wait for work submitted after the event.
            point.timeline.signal(point.value)?;
            self.waits.push(point.clone());
        }
        Ok(())
    }

    fn timestamp(&mut self) -> Result<Arc<dyn Timestamp>> {
        self.refuse_while_recording("a timestamp")?;
        // Opens the command buffer that takes the timestamp. It will be submitted with the next number.
        self.recorder(Lane::Compute)?.start()?;
        let point = Point { timeline: self.timeline.clone(), value: self.last + 1 };
        let taken = VulkanTimestamp::new(self.recorder(Lane::Compute)?, point)?;
        self.send_if_useful()?;
        Ok(taken)
    }

    fn start_recording(&mut self) -> Result<()> {
        self.refuse_while_recording("a recording")?;
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
        self.refuse_while_recording("a replay")?;
        let recording = recording.as_any().downcast_ref::<VulkanRecording>();
        let Some(recording) = recording.filter(|recording| Arc::ptr_eq(&recording.0.shared, &self.shared)) else {
            fail!(InvalidArgument, "the recording was not made on this opening of {}", self.shared.info.id);
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
        // The device must be done with the stream's command buffers before they are destroyed.
        let done = self.submit_open().and_then(|()| self.timeline.wait_for_all());
        if done.is_err() {
            // The device is lost, or this is a forked child. On a lost device, work may still run: wait for the whole
            // device.
            self.shared.wait_idle();
        }
    }
}

/// Returns the memory of a buffer. `invalid_argument` if the buffer is not of this opening of the device.
pub fn of_device<'a>(buffer: &'a dyn Buffer, shared: &Arc<Shared>) -> Result<&'a Arc<Allocation>> {
    match buffer.as_any().downcast_ref::<VulkanBuffer>() {
        Some(buffer) if buffer.memory.is_of(shared) => Ok(&buffer.memory),
        _ => Err(not_there(buffer, &shared.info.id)),
    }
}
