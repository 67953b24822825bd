//! Streams, events, times, recordings, downloads.

use crate::buffers::Exported;
use crate::contents::dimensions;
use crate::dtypes::Named;
use crate::errors::{Result, detached, fail, interruptible, wrong_type};
use crate::gpu::{PyBuffer, PyBufferView, PyKernel, buffers_of, groups_of};
use crate::operations::keywords;
use crate::push;
use crate::tensor::PyTensor;
use crate::values::zeroed;
use adead::device::DeviceKind;
use adead::gpu::{Buffer, Download, Event, Operand, Recording, Stream, Timestamp};
use adead::overlap::order;
use adead::{Meta, Op, Shape, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A queue of work on a context's device. What it is given runs in order; streams run beside each other. Calls of several
/// threads take turns.
#[pyclass(frozen, module = "adead", name = "Stream")]
pub struct PyStream {
    stream: Mutex<Stream>,
    /// The id of its device.
    device: String,
}

impl PyStream {
    /// A stream for Python.
    pub fn new(stream: Stream) -> PyStream {
        PyStream { device: stream.device().id.clone(), stream: Mutex::new(stream) }
    }

    /// Something with the stream. The lock is taken without the GIL: whoever has it may want the GIL before it is back.
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Stream) -> adead::Result<T>) -> Result<T> {
        self.check_is_free()?;
        detached(py, || work(&mut self.stream.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The same for what may take long on the processor: a signal whose handler raises ends it.
    fn work<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Stream) -> adead::Result<T>) -> Result<T> {
        self.check_is_free()?;
        interruptible(py, || {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            let _at_work = AtWork::new(self);
            work(&mut stream)
        })
    }

    /// An error in a handler that this thread calls amid the stream's work, whose end it would wait for.
    fn check_is_free(&self) -> Result<()> {
        if AT_WORK.with_borrow(|all| all.contains(&std::ptr::from_ref(self))) {
            fail!(
                NotReady,
                "the stream is in the middle of the call that a signal interrupted: use it when that has returned"
            );
        }
        Ok(())
    }
}

thread_local! {
    /// The streams that this thread is at work on: several where a signal's handler uses another one.
    static AT_WORK: RefCell<Vec<*const PyStream>> = const { RefCell::new(Vec::new()) };
}

/// Lists a stream as long as it lives.
struct AtWork;

impl AtWork {
    fn new(stream: &PyStream) -> AtWork {
        AT_WORK.with_borrow_mut(|all| all.push(stream));
        AtWork
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.with_borrow_mut(Vec::pop);
    }
}

/// Whether a stream has nothing left to do, looking out for a moment: being woken takes longer than most small kernels.
fn soon_done(stream: &mut Stream) -> adead::Result<bool> {
    // A GPU that is a program needs the processor itself.
    if stream.device().kind == DeviceKind::Software {
        return stream.query();
    }
    let begin = Instant::now();
    loop {
        if stream.query()? {
            return Ok(true);
        }
        if begin.elapsed() > Duration::from_millis(2) {
            return Ok(false);
        }
        std::hint::spin_loop();
    }
}

/// An operand of a stream's operation: a buffer, or a view of one.
struct Place<'py> {
    buffer: Bound<'py, PyBuffer>,
    offset: usize,
    meta: Meta,
}

impl<'py> Place<'py> {
    fn new(object: &Bound<'py, PyAny>) -> Result<Place<'py>> {
        if let Ok(buffer) = object.cast::<PyBuffer>() {
            return Ok(Place { buffer: buffer.clone(), offset: 0, meta: *buffer.get().meta() });
        }
        match object.cast::<PyBufferView>() {
            Ok(view) => {
                let PyBufferView { buffer, offset, meta } = view.get();
                Ok(Place { buffer: buffer.bind(object.py()).clone(), offset: *offset, meta: *meta })
            }
            Err(_) => {
                let name = object.get_type().name()?;
                Err(wrong_type(format!("an operand on a stream is a buffer or a view of one, not a {name}")))
            }
        }
    }

    fn operand(&self) -> Operand<'_> {
        Operand { buffer: self.buffer.get().core(), offset: self.offset, meta: &self.meta }
    }
}

/// How many bytes: those that are said, else all from the offset on.
fn rest(buffer: &Buffer, offset: usize, size: Option<usize>) -> usize {
    size.unwrap_or(buffer.size().saturating_sub(offset))
}

#[pymethods]
impl PyStream {
    /// Enqueues a copy of an array's bytes to a buffer from a byte offset on.
    #[pyo3(signature = (buffer, data, offset=0))]
    fn upload(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyBuffer>,
        data: &Bound<'_, PyAny>,
        offset: usize,
    ) -> Result<()> {
        let data = Exported::bytes_of(data)?;
        let (buffer, bytes) = (buffer.get().core(), data.bytes());
        self.work(py, |stream| stream.upload(buffer, offset, bytes))
    }

    /// Begins a batch of `overlap`: its upload, and work that follows waits for the work of the batch before.
    fn _begin(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyBuffer>,
        data: &Bound<'_, PyAny>,
        before: Option<&Bound<'_, PyEvent>>,
    ) -> Result<()> {
        let data = Exported::bytes_of(data)?;
        let (buffer, bytes, before) = (buffer.get().core(), data.bytes(), before.map(|event| &event.get().event));
        self.work(py, |stream| order::begin(stream, buffer, bytes, before))
    }

    /// Ends it: where the next batch's work may begin, and the download of its result, if it has one.
    fn _bring(
        &self,
        py: Python<'_>,
        buffer: Option<&Bound<'_, PyBuffer>>,
        offset: usize,
        nbytes: usize,
        own: bool,
    ) -> Result<(PyEvent, Option<PyDownload>)> {
        let buffer = buffer.map(|buffer| buffer.get().core());
        let part = buffer.map(|buffer| (buffer, offset, nbytes));
        let (event, download) = self.work(py, |stream| order::bring(stream, part, own))?;
        let ordinary = buffer.is_some_and(|buffer| buffer.device().kind == DeviceKind::Cpu);
        let download = download.map(|download| PyDownload { download: Mutex::new(Some(download)), ordinary });
        Ok((PyEvent::new(event, &self.device), download))
    }

    /// Enqueues a copy of part of a buffer to the host; `nbytes` None is all from the byte offset on.
    #[pyo3(signature = (buffer, offset=0, nbytes=None))]
    fn download(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyBuffer>,
        offset: usize,
        nbytes: Option<usize>,
    ) -> Result<PyDownload> {
        let buffer = buffer.get().core();
        let size = rest(buffer, offset, nbytes);
        let download = self.work(py, |stream| stream.download(buffer, offset, size))?;
        let ordinary = buffer.device().kind == DeviceKind::Cpu;
        Ok(PyDownload { download: Mutex::new(Some(download)), ordinary })
    }

    /// Enqueues a copy of so many bytes between buffers; `nbytes` None is all of `source` from its offset on.
    #[pyo3(signature = (source, target, nbytes=None, *, source_offset=0, target_offset=0))]
    fn copy(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyBuffer>,
        target: &Bound<'_, PyBuffer>,
        nbytes: Option<usize>,
        source_offset: usize,
        target_offset: usize,
    ) -> Result<()> {
        let (source, target) = (source.get().core(), target.get().core());
        let size = rest(source, source_offset, nbytes);
        self.work(py, |stream| stream.copy((source, source_offset), (target, target_offset), size))
    }

    /// Enqueues the zeroing of part of a buffer; `nbytes` None is all from the byte offset on.
    #[pyo3(signature = (buffer, offset=0, nbytes=None))]
    fn clear(&self, py: Python<'_>, buffer: &Bound<'_, PyBuffer>, offset: usize, nbytes: Option<usize>) -> Result<()> {
        let buffer = buffer.get().core();
        let size = rest(buffer, offset, nbytes);
        self.work(py, |stream| stream.clear(buffer, offset, size))
    }

    /// Enqueues a kernel; see `Context.dispatch`.
    #[pyo3(signature = (kernel, *buffers, groups, push=None))]
    fn dispatch(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, PyKernel>,
        buffers: &Bound<'_, PyTuple>,
        groups: &Bound<'_, PyAny>,
        push: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let (buffers, groups) = (buffers_of(buffers)?, groups_of(groups)?);
        let buffers: Vec<_> = buffers.iter().map(|buffer| buffer.get().core()).collect();
        let push = push::bytes(&kernel.get().0, push)?;
        self.with(py, |stream| stream.dispatch(&kernel.get().0, &buffers, &push, groups))
    }

    /// Enqueues an operation on buffers, by its name: operands in its order, None where an optional one is left out, and
    /// the buffer for the result, whose dtype and shape must be what follows. Attributes are keywords.
    #[pyo3(signature = (op, operands, output, **attributes))]
    fn run(
        &self,
        py: Python<'_>,
        op: &str,
        operands: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyDict>>,
    ) -> Result<()> {
        let op = Op::from_name(op)?;
        let attrs = keywords(op, attributes)?;
        let mut places = Vec::new();
        for object in operands.try_iter()? {
            let object = object?;
            places.push(if object.is_none() { None } else { Some(Place::new(&object)?) });
        }
        let output = Place::new(output)?;
        let inputs: Vec<_> = places.iter().map(|place| place.as_ref().map(Place::operand)).collect();
        let output = output.operand();
        self.work(py, |stream| stream.run(op, &attrs, &inputs, output))
    }

    /// The point after everything enqueued.
    fn event(&self, py: Python<'_>) -> Result<PyEvent> {
        Ok(PyEvent::new(self.with(py, Stream::event)?, &self.device))
    }

    /// Everything enqueued from now on waits for an event of this device.
    fn wait_for(&self, py: Python<'_>, event: &Bound<'_, PyEvent>) -> Result<()> {
        let event = &event.get().event;
        self.with(py, |stream| stream.wait_for(event))
    }

    /// Enqueues the taking of a time.
    fn timestamp(&self, py: Python<'_>) -> Result<PyTimestamp> {
        Ok(PyTimestamp(self.with(py, Stream::timestamp)?))
    }

    /// Records instead of running, `with stream.record() as recording:`. Uploads, downloads and events can't be recorded.
    fn record(slf: Bound<'_, PyStream>) -> PyRecording {
        PyRecording { stream: slf.unbind(), recorded: OnceLock::new() }
    }

    /// Enqueues a recording.
    fn replay(&self, py: Python<'_>, recording: &Bound<'_, PyRecording>) -> Result<()> {
        let recorded = match recording.get().recorded.get() {
            Some(recorded) => recorded,
            None => fail!(InvalidArgument, "the recording is not finished"),
        };
        self.with(py, |stream| stream.replay(recorded))
    }

    /// Hands what was enqueued to the device now, without waiting.
    fn flush(&self, py: Python<'_>) -> Result<()> {
        self.with(py, Stream::flush)
    }

    /// Waits until everything enqueued has finished.
    fn synchronize(&self, py: Python<'_>) -> Result<()> {
        // Signals that come while it waits are handled without the lock, which their handlers may want.
        if !self.with(py, soon_done)? {
            let event = self.with(py, Stream::event)?;
            interruptible(py, || event.wait())?;
        }
        self.with(py, Stream::synchronize)
    }

    /// The same.
    fn wait(&self, py: Python<'_>) -> Result<()> {
        self.synchronize(py)
    }

    /// Whether everything enqueued has finished.
    fn query(&self, py: Python<'_>) -> Result<bool> {
        self.with(py, Stream::query)
    }

    /// The id of the device that it is on.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    fn __repr__(&self) -> String {
        format!("Stream({})", self.device)
    }

    fn __enter__(slf: Bound<'_, PyStream>) -> Bound<'_, PyStream> {
        slf
    }

    /// Waits until everything enqueued has finished.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Result<()> {
        self.synchronize(py)
    }
}

/// A point in a stream, to ask, to wait for, and for streams to wait for.
#[pyclass(frozen, module = "adead", name = "Event")]
pub struct PyEvent {
    event: Event,
    /// The id of its device.
    device: String,
}

impl PyEvent {
    /// An event for Python, of a device by its id.
    pub fn new(event: Event, device: &str) -> PyEvent {
        PyEvent { event, device: device.into() }
    }
}

#[pymethods]
impl PyEvent {
    /// Whether the stream has come there.
    fn query(&self, py: Python<'_>) -> Result<bool> {
        detached(py, || self.event.is_done())
    }

    fn __repr__(&self) -> String {
        let state = match self.event.is_done() {
            Ok(true) => "reached",
            Ok(false) => "pending",
            Err(_) => "failed",
        };
        format!("Event({}, {state})", self.device)
    }

    /// Waits until it has; `NotReadyError` if so many seconds did not suffice.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> Result<()> {
        let most = match seconds.map(Duration::try_from_secs_f64).transpose() {
            Ok(most) => most,
            Err(error) => fail!(InvalidArgument, "seconds: {error}"),
        };
        interruptible(py, || match most {
            Some(most) => self.event.wait_for(most),
            None => self.event.wait(),
        })
    }
}

/// A time that the device took.
#[pyclass(frozen, module = "adead", name = "Timestamp")]
pub struct PyTimestamp(Timestamp);

#[pymethods]
impl PyTimestamp {
    /// Nanoseconds since an earlier one of the same device; `NotReadyError` before both were taken.
    fn since(&self, py: Python<'_>, earlier: &Bound<'_, PyTimestamp>) -> Result<u64> {
        let earlier = &earlier.get().0;
        detached(py, || self.0.since(earlier))
    }
}

/// Bytes on their way to the host.
#[pyclass(frozen, module = "adead", name = "Download")]
pub struct PyDownload {
    download: Mutex<Option<Download>>,
    /// The bytes are in ordinary memory, which may be kept; else in memory that the device reaches, of which there is not much.
    ordinary: bool,
}

impl PyDownload {
    fn taken(&self) -> Result<Download> {
        match self.download.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(download) => Ok(download),
            None => fail!(InvalidArgument, "the bytes were taken before"),
        }
    }
}

#[pymethods]
impl PyDownload {
    /// Whether they have arrived.
    fn query(&self, py: Python<'_>) -> Result<bool> {
        detached(py, || match &*self.download.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(download) => download.is_done(),
            None => Ok(true),
        })
    }

    /// Waits for them and gives them, once.
    fn read<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let download = self.taken()?;
        Ok(PyBytes::new_with(py, download.size(), |into| Ok(detached(py, || download.take(into))?))?)
    }

    /// Waits for them and gives them as a tensor, once. `ShapeMismatchError` if it takes more or fewer bytes: then they stay.
    fn read_tensor(&self, py: Python<'_>, dtype: Named, shape: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let meta = Meta::new(dtype.0, Shape::new(&dimensions(shape)?)?);
        let download = self.taken()?;
        if download.size() != meta.bytes() {
            let size = download.size();
            *self.download.lock().unwrap_or_else(PoisonError::into_inner) = Some(download);
            fail!(ShapeMismatch, "{meta:?} takes {} bytes and the download has {size}", meta.bytes());
        }
        if self.ordinary {
            let start = NonNull::from(download.bytes()?).cast::<u8>();
            // SAFETY: as many bytes, which are the download's, written before and by nobody again.
            return Ok(PyTensor(unsafe { Tensor::foreign(start, &meta, Box::new(download)) }?));
        }
        // Words, which every dtype is aligned in.
        let mut words = zeroed(meta.bytes().div_ceil(8))?;
        Ok(PyTensor(detached(py, || {
            let start = NonNull::from(&mut words[..]).cast::<u8>();
            // SAFETY: so many bytes of the words, which nobody else has yet.
            download.take(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), meta.bytes()) })?;
            // SAFETY: as many initialised bytes; the words stay where they are until the owner is dropped, and nobody writes them.
            unsafe { Tensor::foreign(start, &meta, Box::new(words)) }
        })?))
    }
}

/// Work that was recorded, to be run any number of times with `Stream.replay`.
#[pyclass(frozen, module = "adead", name = "Recording")]
pub struct PyRecording {
    stream: Py<PyStream>,
    recorded: OnceLock<Recording>,
}

#[pymethods]
impl PyRecording {
    fn __enter__<'py>(slf: Bound<'py, PyRecording>) -> Result<Bound<'py, PyRecording>> {
        let py = slf.py();
        if slf.get().recorded.get().is_some() {
            fail!(InvalidArgument, "the recording is finished");
        }
        slf.get().stream.get().with(py, Stream::start_recording)?;
        Ok(slf)
    }

    /// Ends the recording, and forgets it after an exception.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> Result<()> {
        let recording = self.stream.get().with(py, Stream::finish_recording)?;
        if exception.get_item(0)?.is_none() {
            let _ = self.recorded.set(recording);
        }
        Ok(())
    }
}
