//! Users' streams, with the events that order them and the timestamps that time them.

use super::{Buffer, Kernel, Operand, same};
use crate::command::Command;
use crate::context::DefaultPrecision;
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

/// A queue of work on a context's device. Its work runs in order; streams run concurrently. One thread uses a stream at a time.
pub struct Stream {
    opened: Arc<Opened>,
    stream: Box<dyn hal::Stream>,
    /// The stream's number in profiles.
    number: usize,
    recording: bool,
    /// The context's default precision, for operations without a given precision.
    precision: DefaultPrecision,
}

/// A device's stream, used in the default floating-point environment.
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
    pub(super) fn new(opened: Arc<Opened>, priority: Priority, precision: DefaultPrecision) -> Result<Stream> {
        let _environment = DefaultEnvironment::enter();
        let stream = opened.device.clone().stream_with(priority)?;
        Ok(Stream { stream, number: opened.profiler.number_stream(), recording: false, opened, precision })
    }

    /// Returns the stream's device.
    pub fn device(&self) -> &DeviceInfo {
        self.opened.device.info()
    }

    /// The device's stream in the default environment: drivers compute in floating point, and must not see the host's modes and
    /// traps.
    fn stream(&mut self) -> Entered<'_> {
        Entered { stream: &mut *self.stream, _environment: DefaultEnvironment::enter() }
    }

    /// Gives the device's stream one piece of work, and records it if a profile is running. Work that the stream only records for
    /// a later replay is not profiled.
    fn watched(&mut self, what: &What<'_>, mut work: impl FnMut(&mut dyn hal::Stream) -> Result<()>) -> Result<()> {
        let number = if self.recording { None } else { Some(self.number) };
        self.opened.watch(number, &mut *self.stream, what, &mut work)
    }

    fn memory(&self, buffer: &Buffer) -> Result<Arc<dyn hal::Buffer>> {
        if !same(buffer.opened(), &self.opened) {
            let (stream, buffer) = (&self.opened.device.info().id, &buffer.device().id);
            fail!(
                InvalidArgument,
                "the stream belongs to a context on {stream}, and a buffer to another context on {buffer}"
            );
        }
        buffer.memory()
    }

    /// Enqueues a copy of host bytes to a byte offset of a buffer. The caller may reuse the bytes when this returns.
    pub fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        let memory = self.memory(buffer)?;
        let what = What::bytes(Activity::Upload, bytes.len(), "", Reason::Stream);
        self.watched(&what, |stream| stream.write(&*memory, offset, bytes))
    }

    /// Enqueues a copy of a part of a buffer to the host.
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

    /// Enqueues a copy of this many bytes between two buffers, each given with a byte offset.
    pub fn copy(&mut self, from: (&Buffer, usize), to: (&Buffer, usize), bytes: usize) -> Result<()> {
        let (source, target) = (self.memory(from.0)?, self.memory(to.0)?);
        let slice = |buffer, offset| Slice { buffer, offset, bytes };
        let what = What::bytes(Activity::Copy, bytes, "", Reason::Stream);
        self.watched(&what, |stream| stream.copy(slice(&*source, from.1), slice(&*target, to.1)))
    }

    /// Enqueues setting a part of a buffer to zero.
    pub fn clear(&mut self, buffer: &Buffer, offset: usize, bytes: usize) -> Result<()> {
        let memory = self.memory(buffer)?;
        let what = What::bytes(Activity::Clear, bytes, "", Reason::Stream);
        self.watched(&what, |stream| stream.clear(Slice { buffer: &*memory, offset, bytes }))
    }

    /// Enqueues a kernel: see [`Context::dispatch_with`](crate::Context::dispatch_with).
    pub fn dispatch(&mut self, kernel: &Kernel, buffers: &[&Buffer], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let what = What::kernel(kernel.name(), groups, Reason::Stream);
        let runs = !self.recording;
        self.watched(&what, |stream| kernel.dispatch(stream, buffers, push, groups, runs))
    }

    /// Enqueues an operation on buffers. Operands are in the operation's order, `None` for an optional operand that is left out.
    /// The output must have the description that follows from them. Errors of a command are returned at once. Errors that only
    /// the device can find, such as an id outside a table, are returned by [`Stream::synchronize`].
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
        let attrs = attrs.with_precision(op, self.precision.get()).unwrap_or(*attrs);
        let meta = output.meta();
        let what = What::operation(op, &attrs, &views, meta, Reason::Stream);
        self.watched(&what, |stream| stream.submit(&mut [Command::new(op, attrs, &views, output.reborrow())?]))
    }

    /// Returns the point after everything enqueued so far.
    pub fn event(&mut self) -> Result<Event> {
        Ok(Event::new(self.stream().event()?))
    }

    /// Makes work enqueued from now on wait for an event of this device.
    pub fn wait_for(&mut self, event: &Event) -> Result<()> {
        self.stream().wait(&*event.0)
    }

    /// Enqueues a timestamp.
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

    /// Begins a recording that [`Stream::finish_recording`] ends, for callers that have no closure to pass to [`Stream::record`].
    /// Returns `invalid_argument` if the stream is recording already, `unsupported` on the CPU.
    pub fn start_recording(&mut self) -> Result<()> {
        self.stream().start_recording()?;
        self.recording = true;
        Ok(())
    }

    /// Ends the recording and returns it. Returns `invalid_argument` unless the stream is recording.
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

    /// Hands enqueued work to the device now, without waiting. Work also begins without it; flushing can make it begin earlier,
    /// before running work is done.
    pub fn flush(&mut self) -> Result<()> {
        self.stream().flush()
    }

    /// Waits until everything enqueued is done.
    pub fn synchronize(&mut self) -> Result<()> {
        if interrupt::is_possible() && !self.query()? {
            self.event()?.wait()?;
        }
        self.stream().synchronize()
    }

    /// Returns whether everything enqueued is done.
    pub fn query(&mut self) -> Result<bool> {
        self.stream().is_idle()
    }
}

/// A point in a stream. The host can query it or wait for it, and other streams can wait for it.
#[derive(Clone)]
pub struct Event(pub(super) Arc<dyn hal::Event>);

/// An event that the host waits for.
pub type Fence = Event;

impl Event {
    pub(super) fn new(event: Arc<dyn hal::Event>) -> Event {
        Event(event)
    }

    /// Returns whether the stream has reached the event.
    pub fn is_done(&self) -> Result<bool> {
        let _environment = DefaultEnvironment::enter();
        self.0.is_done()
    }

    /// Waits until the stream has reached the event.
    pub fn wait(&self) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        interrupt::wait(&*self.0, u64::MAX)
    }

    /// Waits for the event at most this long. Returns `not_ready` after that.
    pub fn wait_for(&self, most: Duration) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        interrupt::wait(&*self.0, most.as_nanos().try_into().unwrap_or(u64::MAX))
    }
}

/// Bytes that are being copied to the host.
pub struct Download(Box<dyn hal::Download>);

impl Download {
    /// Wraps a device's download.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn of(download: Box<dyn hal::Download>) -> Download {
        Download(download)
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Returns whether the bytes have arrived.
    pub fn is_done(&self) -> Result<bool> {
        let _environment = DefaultEnvironment::enter();
        self.0.is_done()
    }

    /// Waits for the bytes and returns them in place. They are in memory that the device accesses, so drop the download soon.
    pub fn bytes(&self) -> Result<&[u8]> {
        let _environment = DefaultEnvironment::enter();
        interrupt::arrived(&*self.0)?;
        self.0.bytes()
    }

    /// Waits for the bytes and copies them to `into`, which must have the same length.
    pub fn take(self, into: &mut [u8]) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        interrupt::arrived(&*self.0)?;
        self.0.take(into)
    }

    /// Waits for the bytes and returns a copy.
    pub fn to_bytes(self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.size()];
        self.take(&mut bytes)?;
        Ok(bytes)
    }
}

/// A timestamp of a device.
#[derive(Clone)]
pub struct Timestamp(Arc<dyn hal::Timestamp>);

impl Timestamp {
    /// Returns the nanoseconds since an earlier timestamp of the same device. Returns `not_ready` before both are taken.
    pub fn since(&self, earlier: &Timestamp) -> Result<u64> {
        let _environment = DefaultEnvironment::enter();
        Ok(self.0.nanoseconds()?.saturating_sub(earlier.0.nanoseconds()?))
    }
}

/// Recorded work, to be run any number of times. It keeps the buffers and kernels that it uses.
#[derive(Clone)]
pub struct Recording(Arc<dyn hal::Recording>);
