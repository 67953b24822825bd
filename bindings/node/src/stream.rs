//! User streams, with their events, timestamps, downloads and recordings.

use crate::buffer::DeviceBuffer;
use crate::gpu::{Buffers, Groups, Push};
use crate::kernel::Kernel;
use crate::options::Call;
use adead::gpu::Operand;
use adead::overlap::order;
use adead::{Meta, Op, Result, Shape, gpu};
use adead_node_support::args::{Dims, Fields, List, Number, Of, Size, Text};
use adead_node_support::array::{Array, bytes_of};
use adead_node_support::error::{fail, guard, refused};
use adead_node_support::task::{Job, promise};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue, Unknown};
use napi::{Env, JsValue, sys};
use napi_derive::napi;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue of work on a context's device. Its work runs in order; streams run concurrently.
#[napi]
pub struct Stream {
    inner: Arc<Mutex<gpu::Stream>>,
}

impl From<gpu::Stream> for Stream {
    fn from(stream: gpu::Stream) -> Stream {
        Stream { inner: Arc::new(Mutex::new(stream)) }
    }
}

/// Part of a buffer as an operand: the offset, dtype and dims of its elements.
pub struct Part {
    buffer: Arc<gpu::Buffer>,
    offset: usize,
    meta: Meta,
}

impl Part {
    fn operand(&self) -> Operand<'_> {
        Operand { buffer: &self.buffer, offset: self.offset, meta: &self.meta }
    }
}

impl FromNapiValue for Part {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Part> {
        // SAFETY: the caller's guarantee is passed on; a value that is not a DeviceBuffer is refused.
        unsafe {
            let Fields(object) = Fields::from_napi_value(env, value)?;
            let missing =
                |name: &str| refused(env, &format!("an operand has a buffer, a dtype and dims; {name} is missing"));
            let buffer = object.get::<Of<DeviceBuffer>>("buffer")?.ok_or_else(|| missing("buffer"))?;
            let dtype = object.get::<Text>("dtype")?.ok_or_else(|| missing("dtype"))?;
            let dims = object.get::<Dims>("dims")?.ok_or_else(|| missing("dims"))?;
            let offset = object.get::<Size>("offset")?.map_or(0, |offset| offset.0);
            guard(Env::from_raw(env), || {
                Ok(Part { buffer: buffer.inner.clone(), offset, meta: Meta::new(dtype.parse()?, Shape::new(&dims)?) })
            })
        }
    }
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, gpu::Stream> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for everything enqueued so far. The lock is not held meanwhile, so the stream's thread can go on enqueuing.
fn synchronize(stream: &Mutex<gpu::Stream>) -> Result<()> {
    let lock = || stream.lock().unwrap_or_else(PoisonError::into_inner);
    let event = lock().event()?;
    event.wait()?;
    // This returns the errors that the device found.
    lock().synchronize()
}

#[napi]
impl Stream {
    /// Enqueues a copy of an array's bytes to a byte offset of a buffer. The caller may reuse the array when this returns.
    #[napi(ts_args_type = "buffer: DeviceBuffer, offset: number, data: TypedArray")]
    pub fn upload(&self, env: Env, buffer: Of<DeviceBuffer>, offset: Size, data: Array) -> napi::Result<()> {
        guard(env, || self.lock().upload(&buffer.inner, offset.0, data.bytes()))
    }

    /// Begins a batch of `overlap` with its upload. The work that follows waits for the work of the previous batch.
    #[napi(js_name = "_begin", skip_typescript)]
    pub fn begin(
        &self,
        env: Env,
        buffer: Of<DeviceBuffer>,
        data: Array,
        before: Option<Of<Event>>,
    ) -> napi::Result<()> {
        let before = before.as_ref().map(|before| &before.inner);
        guard(env, || order::begin(&mut self.lock(), &buffer.inner, data.bytes(), before))
    }

    /// Ends the batch. Returns the point after which the next batch's work may begin, and the download of the result, if it has
    /// one.
    #[napi(js_name = "_bring", skip_typescript)]
    pub fn bring(
        &self,
        env: Env,
        buffer: Option<Of<DeviceBuffer>>,
        offset: Size,
        bytes: Size,
        own: bool,
    ) -> napi::Result<(Event, Option<Download>)> {
        let part = buffer.as_ref().map(|buffer| (&*buffer.inner, offset.0, bytes.0));
        guard(env, || {
            let (event, download) = order::bring(&mut self.lock(), part, own)?;
            Ok((event.into(), download.map(Download::from)))
        })
    }

    /// Enqueues a copy of a part of a buffer to the host.
    #[napi(ts_args_type = "buffer: DeviceBuffer, offset: number, bytes: number")]
    pub fn download(&self, env: Env, buffer: Of<DeviceBuffer>, offset: Size, bytes: Size) -> napi::Result<Download> {
        guard(env, || {
            let download = self.lock().download(&buffer.inner, offset.0, bytes.0)?;
            Ok(download.into())
        })
    }

    /// Enqueues a copy of `bytes` bytes between two buffers, each with its byte offset.
    #[napi(ts_args_type = "from: DeviceBuffer, fromOffset: number, to: DeviceBuffer, toOffset: number, bytes: number")]
    pub fn copy(
        &self,
        env: Env,
        from: Of<DeviceBuffer>,
        from_offset: Size,
        to: Of<DeviceBuffer>,
        to_offset: Size,
        bytes: Size,
    ) -> napi::Result<()> {
        guard(env, || self.lock().copy((&from.inner, from_offset.0), (&to.inner, to_offset.0), bytes.0))
    }

    /// Enqueues a fill of a part of a buffer with zeros.
    #[napi(ts_args_type = "buffer: DeviceBuffer, offset: number, bytes: number")]
    pub fn clear(&self, env: Env, buffer: Of<DeviceBuffer>, offset: Size, bytes: Size) -> napi::Result<()> {
        guard(env, || self.lock().clear(&buffer.inner, offset.0, bytes.0))
    }

    /// Enqueues a kernel: see `Context.dispatch`.
    #[napi(
        ts_args_type = "kernel: Kernel, buffers: DeviceBuffer[], groups: [number, number, number], push?: TypedArray"
    )]
    pub fn dispatch(
        &self,
        env: Env,
        kernel: Of<Kernel>,
        buffers: Buffers,
        groups: Groups,
        push: Option<Push>,
    ) -> napi::Result<()> {
        let push = push.map_or(Vec::new(), |push| push.0);
        guard(env, || self.lock().dispatch(&kernel.inner, &buffers.list(), &push, groups.0))
    }

    /// Enqueues an operation on buffers. The output must have the dtype and dims that follow from the operands. `synchronize`
    /// returns the errors that only the device can find.
    #[napi(
        ts_args_type = "op: OpName, inputs: (BufferOperand | null | undefined)[], output: BufferOperand, options?: Attributes"
    )]
    pub fn run(
        &self,
        env: Env,
        op: Text,
        inputs: List<Option<Part>>,
        output: Part,
        options: Option<Unknown<'_>>,
    ) -> napi::Result<()> {
        let op = guard(env, || Op::from_name(&op))?;
        let attrs = match options {
            Some(options) => Call::attributes(env.raw(), op, options.raw())?,
            None => adead::Attrs::default(),
        };
        let inputs: Vec<_> = inputs.0.iter().map(|input| input.as_ref().map(Part::operand)).collect();
        guard(env, || self.lock().run(op, &attrs, &inputs, output.operand()))
    }

    /// Creates an event after everything enqueued so far.
    #[napi]
    pub fn event(&self, env: Env) -> napi::Result<Event> {
        guard(env, || Ok(self.lock().event()?.into()))
    }

    /// Makes work enqueued from now on wait for an event of this device.
    #[napi(ts_args_type = "event: Event")]
    pub fn wait_for(&self, env: Env, event: Of<Event>) -> napi::Result<()> {
        guard(env, || self.lock().wait_for(&event.inner))
    }

    /// Enqueues a timestamp.
    #[napi]
    pub fn timestamp(&self, env: Env) -> napi::Result<Timestamp> {
        guard(env, || Ok(Timestamp { inner: self.lock().timestamp()? }))
    }

    /// Begins a recording, which `finishRecording` ends: work is recorded instead of run. Uploads, downloads and events can't
    /// be recorded.
    #[napi]
    pub fn start_recording(&self, env: Env) -> napi::Result<()> {
        guard(env, || self.lock().start_recording())
    }

    /// Ends the recording and returns it.
    #[napi]
    pub fn finish_recording(&self, env: Env) -> napi::Result<Recording> {
        guard(env, || Ok(Recording { inner: self.lock().finish_recording()? }))
    }

    /// Enqueues a recording.
    #[napi(ts_args_type = "recording: Recording")]
    pub fn replay(&self, env: Env, recording: Of<Recording>) -> napi::Result<()> {
        guard(env, || self.lock().replay(&recording.inner))
    }

    /// Submits the enqueued work to the device now, without waiting.
    #[napi]
    pub fn flush(&self, env: Env) -> napi::Result<()> {
        guard(env, || self.lock().flush())
    }

    /// Waits until everything enqueued has finished.
    #[napi]
    pub fn synchronize(&self, env: Env) -> napi::Result<()> {
        guard(env, || self.lock().synchronize())
    }

    /// Runs `synchronize` on another thread.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn synchronize_async(&self) -> AsyncTask<Job> {
        let stream = self.inner.clone();
        promise(Ok(move || synchronize(&stream)), |_, ()| Ok(()))
    }

    /// Returns whether everything enqueued has finished.
    #[napi]
    pub fn query(&self, env: Env) -> napi::Result<bool> {
        guard(env, || self.lock().query())
    }
}

/// A point in a stream. The host can query it or wait for it, and other streams can wait for it.
#[napi]
pub struct Event {
    inner: gpu::Event,
}

impl From<gpu::Event> for Event {
    fn from(inner: gpu::Event) -> Event {
        Event { inner }
    }
}

fn wait(event: &gpu::Event, milliseconds: Option<Number>) -> Result<()> {
    let Some(Number(milliseconds)) = milliseconds else { return event.wait() };
    match Duration::try_from_secs_f64(milliseconds / 1e3) {
        Ok(most) => event.wait_for(most),
        Err(_) => fail!(InvalidArgument, "{milliseconds} is not a time in milliseconds"),
    }
}

#[napi]
impl Event {
    /// Whether the stream has reached the event.
    #[napi(getter)]
    pub fn is_done(&self, env: Env) -> napi::Result<bool> {
        guard(env, || self.inner.is_done())
    }

    /// Waits until the stream has reached the event, for at most `milliseconds` if given. `not_ready` after that time.
    #[napi(ts_args_type = "milliseconds?: number")]
    pub fn wait(&self, env: Env, milliseconds: Option<Number>) -> napi::Result<()> {
        guard(env, || wait(&self.inner, milliseconds))
    }

    /// Runs `wait` on another thread.
    #[napi(ts_args_type = "milliseconds?: number", ts_return_type = "Promise<void>")]
    pub fn wait_async(&self, milliseconds: Option<Number>) -> AsyncTask<Job> {
        let event = self.inner.clone();
        promise(Ok(move || wait(&event, milliseconds)), |_, ()| Ok(()))
    }
}

/// Bytes that are being copied to the host.
#[napi]
pub struct Download {
    inner: Arc<Mutex<Option<gpu::Download>>>,
    size: usize,
}

impl From<gpu::Download> for Download {
    fn from(download: gpu::Download) -> Download {
        Download { size: download.size(), inner: Arc::new(Mutex::new(Some(download))) }
    }
}

fn take(download: &Mutex<Option<gpu::Download>>) -> Result<Vec<u8>> {
    let download = download.lock().unwrap_or_else(PoisonError::into_inner).take();
    match download {
        Some(download) => download.to_bytes(),
        None => fail!(InvalidArgument, "the bytes of this download were taken before"),
    }
}

#[napi]
impl Download {
    /// The number of bytes.
    #[napi(getter)]
    pub fn size(&self) -> f64 {
        self.size as f64
    }

    /// Whether the bytes have arrived. Also true once they were taken.
    #[napi(getter)]
    pub fn is_done(&self, env: Env) -> napi::Result<bool> {
        guard(env, || match &*self.inner.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(download) => download.is_done(),
            None => Ok(true),
        })
    }

    /// Waits for the bytes and returns them. They can be taken once.
    #[napi(ts_return_type = "Uint8Array")]
    pub fn to_bytes(&self, env: Env) -> napi::Result<Unknown<'static>> {
        let bytes = guard(env, || take(&self.inner))?;
        bytes_of(env, &bytes)
    }

    /// Runs `toBytes` on another thread.
    #[napi(ts_return_type = "Promise<Uint8Array>")]
    pub fn to_bytes_async(&self) -> AsyncTask<Job> {
        let download = self.inner.clone();
        promise(Ok(move || take(&download)), |env, bytes| bytes_of(env, &bytes))
    }
}

/// A timestamp of a device.
#[napi]
pub struct Timestamp {
    inner: gpu::Timestamp,
}

#[napi]
impl Timestamp {
    /// Returns the nanoseconds since an earlier timestamp of the same device. `not_ready` before both are taken.
    #[napi(ts_args_type = "earlier: Timestamp")]
    pub fn since(&self, env: Env, earlier: Of<Timestamp>) -> napi::Result<f64> {
        guard(env, || Ok(self.inner.since(&earlier.inner)? as f64))
    }
}

/// Recorded work, to be run any number of times. It keeps the buffers and kernels that it uses.
#[napi]
pub struct Recording {
    inner: gpu::Recording,
}
