//! Buffers: memory on a device with a size in bytes and no type.

use crate::hardware::DeviceInfo;
use adead::{DType, Result, gpu};
use adead_node_support::args::{Size, Text};
use adead_node_support::array::{Array, array_of, bytes_of};
use adead_node_support::error::{fail, guard};
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ObjectFinalize, Unknown};
use napi_derive::napi;
use std::cell::Cell;
use std::sync::Arc;

/// Memory on a device. Work that uses it keeps it, so it may be freed or collected while work is under way.
#[napi(custom_finalize)]
pub struct DeviceBuffer {
    pub(crate) inner: Arc<gpu::Buffer>,
    elements: Elements,
    /// Bytes that V8 was told of, so that its collector runs in time.
    reported: Cell<i64>,
}

/// What a buffer was made of: `toArray` gives that again.
#[derive(Clone, Copy)]
pub struct Elements {
    /// `None` of arrays whose elements no dtype has, and of f16 or bf16, which are in arrays alike.
    pub dtype: Option<DType>,
    /// Bytes of each.
    pub size: usize,
}

impl From<DType> for Elements {
    fn from(dtype: DType) -> Elements {
        Elements { dtype: Some(dtype), size: dtype.size() }
    }
}

impl DeviceBuffer {
    /// An object of a buffer with such elements.
    pub fn new(env: Env, buffer: gpu::Buffer, elements: Elements) -> napi::Result<DeviceBuffer> {
        let reported = buffer.size() as i64;
        env.adjust_external_memory(reported)?;
        Ok(DeviceBuffer { inner: Arc::new(buffer), elements, reported: Cell::new(reported) })
    }
}

/// The dtype that is named, else the buffer's own.
fn dtype_of(name: Option<Text>, elements: Elements) -> Result<DType> {
    match (name, elements.dtype) {
        (Some(name), _) => name.parse(),
        (None, Some(dtype)) => Ok(dtype),
        (None, None) => fail!(InvalidArgument, "no dtype is known for what the buffer was made of: name one"),
    }
}

impl ObjectFinalize for DeviceBuffer {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.reported.get()).map(|_| ())
    }
}

/// All of a buffer, which must be whole elements.
fn all(buffer: &gpu::Buffer, dtype: DType) -> Result<Vec<u8>> {
    let size = buffer.size();
    if !size.is_multiple_of(dtype.size()) {
        fail!(InvalidArgument, "a buffer of {size} bytes is no array of {dtype}s of {}", dtype.size());
    }
    part(buffer, 0, size)
}

fn part(buffer: &gpu::Buffer, offset: usize, bytes: usize) -> Result<Vec<u8>> {
    // Before memory is taken for them.
    if offset > buffer.size() || bytes > buffer.size() - offset {
        fail!(InvalidArgument, "{bytes} bytes at offset {offset} don't fit in a buffer of {} bytes", buffer.size());
    }
    let mut into = vec![0; bytes];
    buffer.read_bytes(offset, &mut into)?;
    Ok(into)
}

#[napi]
impl DeviceBuffer {
    /// Elements of what it was made of.
    #[napi(getter)]
    pub fn size(&self) -> f64 {
        (self.inner.size() / self.elements.size) as f64
    }

    /// Bytes.
    #[napi(getter)]
    pub fn nbytes(&self) -> f64 {
        self.inner.size() as f64
    }

    /// What it is on.
    #[napi(getter)]
    pub fn device(&self) -> DeviceInfo {
        self.inner.device().into()
    }

    /// Copies an array's bytes to it from a byte offset on, behind everything that the context enqueued, and waits until they
    /// are there. `invalid_argument` if they don't fit or it was freed.
    #[napi(ts_args_type = "offset: number, data: TypedArray")]
    pub fn write(&self, env: Env, offset: Size, data: Array) -> napi::Result<()> {
        guard(env, || self.inner.write_bytes(offset.0, data.bytes()))
    }

    /// `write` on another thread. The array is copied first, and the caller's again at once.
    #[napi(ts_args_type = "offset: number, data: TypedArray", ts_return_type = "Promise<void>")]
    pub fn write_async(&self, offset: Size, data: Array) -> AsyncTask<Job> {
        let (buffer, bytes) = (self.inner.clone(), data.bytes().to_vec());
        promise(Ok(move || buffer.write_bytes(offset.0, &bytes)), |_, ()| Ok(()))
    }

    /// Waits for everything that the context enqueued and fills an array with the bytes from a byte offset on.
    #[napi(ts_args_type = "offset: number, into: TypedArray")]
    pub fn read_into(&self, env: Env, offset: Size, into: Array) -> napi::Result<()> {
        let mut into = into;
        guard(env, || self.inner.read_bytes(offset.0, into.bytes_mut()))
    }

    /// The same with a new array of that many bytes.
    #[napi(ts_args_type = "offset: number, bytes: number", ts_return_type = "Uint8Array")]
    pub fn read(&self, env: Env, offset: Size, bytes: Size) -> napi::Result<Unknown<'static>> {
        let bytes = guard(env, || part(&self.inner, offset.0, bytes.0))?;
        bytes_of(env, &bytes)
    }

    /// `read` on another thread.
    #[napi(ts_args_type = "offset: number, bytes: number", ts_return_type = "Promise<Uint8Array>")]
    pub fn read_async(&self, offset: Size, bytes: Size) -> AsyncTask<Job> {
        let buffer = self.inner.clone();
        promise(Ok(move || part(&buffer, offset.0, bytes.0)), |env, bytes| bytes_of(env, &bytes))
    }

    /// All of it as elements of a dtype, of what it was made of where none is named. `invalid_argument` if its size is no multiple of
    /// theirs.
    #[napi(ts_generic_types = "D extends DType = DType", ts_args_type = "dtype?: D", ts_return_type = "ArrayOf<D>")]
    pub fn to_array(&self, env: Env, dtype: Option<Text>) -> napi::Result<Unknown<'static>> {
        let (dtype, bytes) = guard(env, || {
            let dtype = dtype_of(dtype, self.elements)?;
            Ok((dtype, all(&self.inner, dtype)?))
        })?;
        array_of(env, dtype, &bytes)
    }

    /// `toArray` on another thread.
    #[napi(
        ts_generic_types = "D extends DType = DType",
        ts_args_type = "dtype?: D",
        ts_return_type = "Promise<ArrayOf<D>>"
    )]
    pub fn to_array_async(&self, dtype: Option<Text>) -> AsyncTask<Job> {
        let (buffer, elements) = (self.inner.clone(), self.elements);
        let work = move || {
            let dtype = dtype_of(dtype, elements)?;
            Ok((dtype, all(&buffer, dtype)?))
        };
        promise(Ok(work), |env, (dtype, bytes)| array_of(env, dtype, &bytes))
    }

    /// Gives the memory back once work that uses it is done. `invalid_argument` the second time, and for any use after it.
    #[napi]
    pub fn free(&self, env: Env) -> napi::Result<()> {
        guard(env, || self.inner.free())?;
        env.adjust_external_memory(-self.reported.take()).map(|_| ())
    }
}
