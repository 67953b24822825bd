//! Streams of the user's, and what they are ordered and timed by.

use super::{Buffer, Kernel, Operand, same};
use crate::command::Command;
use crate::devices::Opened;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{self, DeviceInfo, Priority, Slice};
use crate::interrupt;
use crate::operand::{Inputs, View, ViewMut};
use crate::ops::{Attrs, Op};
use crate::profile::{Activity, Reason, What};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// A queue of work on a context's device. What it is given runs in order; streams run beside each other. One thread at a time.
pub struct Stream {
    opened: Arc<Opened>,
    stream: Box<dyn hal::Stream>,
    /// For profiles.
    number: usize,
    recording: bool,
}

/// A device's stream in the default floating-point environment.
struct Entered<'a> {
    stream: &'a mut dyn hal::Stream,
    _environment: DefaultEnvironment,
}

impl<'a> Deref for Entered<'a> {
    type Target = dyn hal::Stream + 'a;

    fn deref(&self) -> &Self::Target {
        self.stream
    }
}

impl DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.stream
    }
}

impl Stream {
    pub(super) fn new(opened: Arc<Opened>, priority: Priority) -> Result<Stream> {
        let _environment = DefaultEnvironment::enter();
        let stream = opened.device.clone().stream_with(priority)?;
        Ok(Stream { stream, number: opened.profiler.number_stream(), recording: false, opened })
    }

    /// What its device is.
    pub fn device(&self) -> &DeviceInfo {
        self.opened.device.info()
    }

    /// The device's stream: drivers compute, and must not meet the host's floating-point modes and traps.
    fn stream(&mut self) -> Entered<'_> {
        Entered { stream: &mut *self.stream, _environment: DefaultEnvironment::enter() }
    }

    /// One piece of work for the device's stream, recorded where a profile is under way; what the stream records for later is
    /// not done.
    fn watched(&mut self, what: &What<'_>, mut work: impl FnMut(&mut dyn hal::Stream) -> Result<()>) -> Result<()> {
        let number = if self.recording { None } else { Some(self.number) };
        self.opened.watch(number, &mut *self.stream, what, &mut work)
    }

    fn memory(&self, buffer: &Buffer) -> Result<Arc<dyn hal::Buffer>> {
        if !same(buffer.opened(), &self.opened) {
            let (stream, buffer) = (&self.opened.device.info().id, &buffer.device().id);
            fail!(InvalidArgument, "the stream is of one context's {stream} and a buffer of another's {buffer}");
        }
        buffer.memory()
    }

    /// Enqueues a copy of host bytes to a buffer from a byte offset on; the bytes are the caller's again when it returns.
    pub fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        let memory = self.memory(buffer)?;
        let what = What::bytes(Activity::Upload, bytes.len(), "", Reason::Stream);
        self.watched(&what, |stream| stream.write(&*memory, offset, bytes))
    }

    /// Enqueues a copy of part of a buffer to the host.
    pub fn download(&mut self, buffer: &Buffer, offset: usize, bytes: usize) -> Result<Download> {
        let memory = self.memory(buffer)?;
        let what = What::bytes(Activity::Download, bytes, "", Reason::Stream);
        let part = Slice { buffer: &*memory, offset, bytes };
        let mut download = None;
        self.watched(&what, |stream| {
            download = Some(stream.download(part)?);
            Ok(())
        })?;
        match download {
            Some(download) => Ok(Download(download)),
            None => fail!(Internal, "a download was not begun"),
        }
    }

    /// Enqueues a copy of so many bytes between buffers, given with their byte offsets.
    pub fn copy(&mut self, from: (&Buffer, usize), to: (&Buffer, usize), bytes: usize) -> Result<()> {
        let (source, target) = (self.memory(from.0)?, self.memory(to.0)?);
        let slice = |buffer, offset| Slice { buffer, offset, bytes };
        let what = What::bytes(Activity::Copy, bytes, "", Reason::Stream);
        self.watched(&what, |stream| stream.copy(slice(&*source, from.1), slice(&*target, to.1)))
    }

    /// Enqueues the zeroing of part of a buffer.
    pub fn clear(&mut self, buffer: &Buffer, offset: usize, bytes: usize) -> Result<()> {
        let memory = self.memory(buffer)?;
        let what = What::bytes(Activity::Clear, bytes, "", Reason::Stream);
        self.watched(&what, |stream| stream.clear(Slice { buffer: &*memory, offset, bytes }))
    }

    /// Enqueues a kernel; see [`Context::dispatch_with`](crate::Context::dispatch_with).
    pub fn dispatch(&mut self, kernel: &Kernel, buffers: &[&Buffer], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let what = What::kernel(kernel.name(), groups, Reason::Stream);
        let runs = !self.recording;
        self.watched(&what, |stream| kernel.dispatch(stream, buffers, push, groups, runs))
    }

    /// Enqueues an operation on buffers. Operands are in its order, `None` where an optional one is left out; the output's
    /// description must be what follows from them. Errors as of a command, at once; what only the device can find (an id outside
    /// a table) comes from [`Stream::synchronize`].
    pub fn run(&mut self, op: Op, attrs: &Attrs, inputs: &[Option<Operand<'_>>], output: Operand<'_>) -> Result<()> {
        let mut memories = SmallVec::<[Option<Arc<dyn hal::Buffer>>; 4]>::new();
        for input in inputs {
            memories.push(match input {
                Some(operand) => Some(self.memory(operand.buffer)?),
                None => None,
            });
        }
        let mut views = Inputs::new();
        for (memory, input) in memories.iter().zip(inputs) {
            views.push(match (memory, input) {
                (Some(memory), Some(operand)) => Some(View::buffer(&**memory, operand.offset, operand.meta)?),
                _ => None,
            });
        }
        let memory = self.memory(output.buffer)?;
        let mut output = ViewMut::buffer(&*memory, output.offset, output.meta)?;
        let (attrs, meta) = (*attrs, output.meta());
        let what = What::operation(op, &attrs, &views, meta, Reason::Stream);
        self.watched(&what, |stream| stream.submit(&mut [Command::new(op, attrs, &views, output.reborrow())?]))
    }

    /// The point after everything enqueued.
    pub fn event(&mut self) -> Result<Event> {
        Ok(Event::new(self.stream().event()?))
    }

    /// Everything enqueued from now on waits for an event of this device.
    pub fn wait_for(&mut self, event: &Event) -> Result<()> {
        self.stream().wait(&*event.0)
    }

    /// Enqueues the taking of a time.
    pub fn timestamp(&mut self) -> Result<Timestamp> {
        Ok(Timestamp(self.stream().timestamp()?))
    }

    /// Records what `work` enqueues instead of running it. Uploads, downloads and events can't be recorded.
    pub fn record(&mut self, work: impl FnOnce(&mut Stream) -> Result<()>) -> Result<Recording> {
        self.start_recording()?;
        let outcome = work(self);
        let recording = self.finish_recording();
        outcome?;
        recording
    }

    /// From here to [`Stream::finish_recording`], what is enqueued is recorded: [`Stream::record`] for callers that have no
    /// closure to give. `invalid_argument` while recording already, `unsupported` on the CPU.
    pub fn start_recording(&mut self) -> Result<()> {
        self.stream().start_recording()?;
        self.recording = true;
        Ok(())
    }

    /// What was recorded. `invalid_argument` unless the stream is recording.
    pub fn finish_recording(&mut self) -> Result<Recording> {
        self.recording = false;
        Ok(Recording(self.stream().finish_recording()?))
    }

    /// Enqueues a recording.
    pub fn replay(&mut self, recording: &Recording) -> Result<()> {
        let (opened, mut work) = (self.opened.clone(), |stream: &mut dyn hal::Stream| stream.replay(&*recording.0));
        self.watched(&What::replay(), |stream| match &opened.guards {
            Some(guards) => guards.watch(stream, "a recording", &|_| None, &mut work),
            None => work(stream),
        })
    }

    /// Hands what was enqueued to the device now, without waiting. Work begins by itself; this only spares it a wait behind
    /// what is under way.
    pub fn flush(&mut self) -> Result<()> {
        self.stream().flush()
    }

    /// Waits until everything enqueued has finished.
    pub fn synchronize(&mut self) -> Result<()> {
        if interrupt::is_possible() && !self.query()? {
            self.event()?.wait()?;
        }
        self.stream().synchronize()
    }

    /// Whether everything enqueued has finished.
    pub fn query(&mut self) -> Result<bool> {
        self.stream().is_idle()
    }
}

/// A point in a stream, to ask, to wait for, and for other streams to wait for.
#[derive(Clone)]
pub struct Event(pub(super) Arc<dyn hal::Event>);

/// An event that the host waits for.
pub type Fence = Event;

impl Event {
    pub(super) fn new(event: Arc<dyn hal::Event>) -> Event {
        Event(event)
    }

    /// Whether the stream has come there.
    pub fn is_done(&self) -> Result<bool> {
        let _environment = DefaultEnvironment::enter();
        self.0.is_done()
    }

    /// Waits until it has.
    pub fn wait(&self) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        interrupt::wait(&*self.0, u64::MAX)
    }

    /// Waits at most so long; `not_ready` if that did not suffice.
    pub fn wait_for(&self, most: Duration) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        interrupt::wait(&*self.0, most.as_nanos().try_into().unwrap_or(u64::MAX))
    }
}

/// Bytes on their way to the host.
pub struct Download(Box<dyn hal::Download>);

impl Download {
    /// One of a device.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn of(download: Box<dyn hal::Download>) -> Download {
        Download(download)
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Whether they have arrived.
    pub fn is_done(&self) -> Result<bool> {
        let _environment = DefaultEnvironment::enter();
        self.0.is_done()
    }

    /// Waits for them, where they lie: memory that the device reaches, which is not to be kept for long.
    pub fn bytes(&self) -> Result<&[u8]> {
        let _environment = DefaultEnvironment::enter();
        interrupt::arrived(&*self.0)?;
        self.0.bytes()
    }

    /// Waits for them and copies them; `into` has as many bytes.
    pub fn take(self, into: &mut [u8]) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        interrupt::arrived(&*self.0)?;
        self.0.take(into)
    }

    /// Waits for them.
    pub fn to_bytes(self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.size()];
        self.take(&mut bytes)?;
        Ok(bytes)
    }
}

/// A time that the device took.
#[derive(Clone)]
pub struct Timestamp(Arc<dyn hal::Timestamp>);

impl Timestamp {
    /// Nanoseconds since an earlier one of the same device; `not_ready` before both were taken.
    pub fn since(&self, earlier: &Timestamp) -> Result<u64> {
        let _environment = DefaultEnvironment::enter();
        Ok(self.0.nanoseconds()?.saturating_sub(earlier.0.nanoseconds()?))
    }
}

/// Work that was recorded, to be run any number of times. It keeps the buffers and kernels that it uses.
#[derive(Clone)]
pub struct Recording(Arc<dyn hal::Recording>);
