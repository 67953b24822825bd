//! Streams, events, timestamps, recordings, downloads.

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

/// A queue of work on a context's device. Its work runs in order; streams run concurrently. Calls from several threads
/// take turns.
#[pyclass(frozen, module = "adead", name = "Stream")]
pub struct PyStream {
    stream: Mutex<Stream>,
    /// The id of its device.
    device: String,
}

impl PyStream {
    /// Makes a stream for Python.
    pub fn new(stream: Stream) -> PyStream {
        PyStream { device: stream.device().id.clone(), stream: Mutex::new(stream) }
    }

    /// Calls `work` with the stream. The lock is taken without the GIL, because its holder may want the GIL before it
    /// releases the lock.
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Stream) -> adead::Result<T>) -> Result<T> {
        self.check_is_free()?;
        detached(py, || work(&mut self.stream.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Does the same for work that may take long on the CPU. A signal whose handler raises ends it.
    fn work<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Stream) -> adead::Result<T>) -> Result<T> {
        self.check_is_free()?;
        interruptible(py, || {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            let _at_work = AtWork::new(self);
            work(&mut stream)
        })
    }

    /// Refuses a call by a signal handler on this thread during the stream's work, because the handler would wait for
    /// the end of that work.
    fn check_is_free(&self) -> Result<()> {
        if AT_WORK.with_borrow(|all| all.contains(&std::ptr::from_ref(self))) {
            fail!(NotReady, "a signal interrupted a call of this stream: use the stream when that call has returned");
        }
        Ok(())
    }
}

thread_local! {
    /// The streams on which this thread is at work. They are several if a signal's handler uses another one.
    static AT_WORK: RefCell<Vec<*const PyStream>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a stream in `AT_WORK` until this value is dropped.
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

/// Returns whether a stream has nothing left to do. It polls for a moment, because a wake-up takes longer than most
/// small kernels.
fn soon_done(stream: &mut Stream) -> adead::Result<bool> {
    // A software GPU needs the processor itself.
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

/// Returns the given number of bytes, or else all from the offset on.
fn rest(buffer: &Buffer, offset: usize, size: Option<usize>) -> usize {
    size.unwrap_or(buffer.size().saturating_sub(offset))
}

#[pymethods]
impl PyStream {
    /// Enqueues a copy of an array's bytes to a buffer at a byte offset.
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

    /// Starts a batch of `overlap`: uploads it, and makes the work that follows wait for the previous batch's work.
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

    /// Ends a batch of `overlap`. Returns the event after which the next batch's work may begin, and the download of
    /// the result, if there is one.
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

    /// Enqueues a copy of `nbytes` bytes between buffers; None is all of `source` from its offset on.
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

    /// Enqueues a fill of part of a buffer with zeros; `nbytes` None is all from the byte offset on.
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

    /// Enqueues an operation on buffers, by its name: operands in its order, with None for an absent optional one, and
    /// the buffer for the result. The result's dtype and shape must be those that follow from the operands. Attributes
    /// are keywords.
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

    /// Makes an event at the point after everything enqueued so far.
    fn event(&self, py: Python<'_>) -> Result<PyEvent> {
        Ok(PyEvent::new(self.with(py, Stream::event)?, &self.device))
    }

    /// Makes everything enqueued from now on wait for an event of this device.
    fn wait_for(&self, py: Python<'_>, event: &Bound<'_, PyEvent>) -> Result<()> {
        let event = &event.get().event;
        self.with(py, |stream| stream.wait_for(event))
    }

    /// Enqueues a timestamp.
    fn timestamp(&self, py: Python<'_>) -> Result<PyTimestamp> {
        Ok(PyTimestamp(self.with(py, Stream::timestamp)?))
    }

    /// Records instead of running: `with stream.record() as recording:`. Uploads, downloads and events can't be
    /// recorded.
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

    /// Submits the enqueued work to the device now, without waiting.
    fn flush(&self, py: Python<'_>) -> Result<()> {
        self.with(py, Stream::flush)
    }

    /// Waits until all enqueued work has finished.
    fn synchronize(&self, py: Python<'_>) -> Result<()> {
        // Signals that arrive during the wait are handled without the lock, which their handlers may want.
        if !self.with(py, soon_done)? {
            let event = self.with(py, Stream::event)?;
            interruptible(py, || event.wait())?;
        }
        self.with(py, Stream::synchronize)
    }

    /// Does the same as `synchronize`.
    fn wait(&self, py: Python<'_>) -> Result<()> {
        self.synchronize(py)
    }

    /// Returns whether all enqueued work has finished.
    fn query(&self, py: Python<'_>) -> Result<bool> {
        self.with(py, Stream::query)
    }

    /// The id of its device.
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

    /// Waits until all enqueued work has finished.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Result<()> {
        self.synchronize(py)
    }
}

/// A point in a stream. The host can query it and wait for it, and other streams can wait for it.
#[pyclass(frozen, module = "adead", name = "Event")]
pub struct PyEvent {
    event: Event,
    /// The id of its device.
    device: String,
}

impl PyEvent {
    /// Makes an event for Python, of a device by its id.
    pub fn new(event: Event, device: &str) -> PyEvent {
        PyEvent { event, device: device.into() }
    }
}

#[pymethods]
impl PyEvent {
    /// Returns whether the stream has reached the event.
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

    /// Waits until the stream has reached the event. `NotReadyError` if that takes longer than `seconds`.
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

/// A time on the device's clock.
#[pyclass(frozen, module = "adead", name = "Timestamp")]
pub struct PyTimestamp(Timestamp);

#[pymethods]
impl PyTimestamp {
    /// Returns the nanoseconds since an earlier one of the same device; `NotReadyError` until both were taken.
    fn since(&self, py: Python<'_>, earlier: &Bound<'_, PyTimestamp>) -> Result<u64> {
        let earlier = &earlier.get().0;
        detached(py, || self.0.since(earlier))
    }
}

/// A download of bytes to the host.
#[pyclass(frozen, module = "adead", name = "Download")]
pub struct PyDownload {
    download: Mutex<Option<Download>>,
    /// Whether the bytes are in ordinary memory, which may be kept. Memory that the device accesses is limited.
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
    /// Returns whether the bytes have arrived.
    fn query(&self, py: Python<'_>) -> Result<bool> {
        detached(py, || match &*self.download.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(download) => download.is_done(),
            None => Ok(true),
        })
    }

    /// Waits for the bytes and returns them, once.
    fn read<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let download = self.taken()?;
        Ok(PyBytes::new_with(py, download.size(), |into| Ok(detached(py, || download.take(into))?))?)
    }

    /// Waits for the bytes and returns them as a tensor, once. `ShapeMismatchError` if the tensor needs more or fewer
    /// bytes; then the bytes stay available.
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
            // SAFETY: the download has this many bytes, which were written before, and nothing writes them again.
            return Ok(PyTensor(unsafe { Tensor::foreign(start, &meta, Box::new(download)) }?));
        }
        // Words have an alignment that suits every dtype.
        let mut words = zeroed(meta.bytes().div_ceil(8))?;
        Ok(PyTensor(detached(py, || {
            let start = NonNull::from(&mut words[..]).cast::<u8>();
            // SAFETY: the words have this many bytes, and nothing else refers to them yet.
            download.take(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), meta.bytes()) })?;
            // SAFETY: this many bytes are initialised. The words stay in place until the owner is dropped, and nothing
            // writes them.
            unsafe { Tensor::foreign(start, &meta, Box::new(words)) }
        })?))
    }
}

/// Recorded work, to be run any number of times with `Stream.replay`.
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

    /// Ends the recording. After an exception, discards it.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> Result<()> {
        let recording = self.stream.get().with(py, Stream::finish_recording)?;
        if exception.get_item(0)?.is_none() {
            let _ = self.recorded.set(recording);
        }
        Ok(())
    }
}
