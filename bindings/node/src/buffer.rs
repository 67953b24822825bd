//! Buffers: untyped device memory with a size in bytes.

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

/// Holds memory on a device. Enqueued work keeps the memory alive, so the buffer may be freed or collected while work uses it.
#[napi(custom_finalize)]
pub struct DeviceBuffer {
    pub(crate) inner: Arc<gpu::Buffer>,
    elements: Elements,
    /// The bytes reported to V8, so that its garbage collector runs in time.
    reported: Cell<i64>,
}

/// The kind of elements that a buffer was made of. `toArray` returns the same kind.
#[derive(Clone, Copy)]
pub struct Elements {
    /// `None` if no dtype has such elements, or if the array leaves it open: a `Uint8Array` (bytes or bool) or a `Uint16Array`
    /// (f16 or bf16).
    pub dtype: Option<DType>,
    /// Bytes of an element.
    pub size: usize,
}

impl From<DType> for Elements {
    fn from(dtype: DType) -> Elements {
        Elements { dtype: Some(dtype), size: dtype.size() }
    }
}

impl DeviceBuffer {
    /// Wraps a buffer of such elements and reports its memory to V8.
    pub fn new(env: Env, buffer: gpu::Buffer, elements: Elements) -> napi::Result<DeviceBuffer> {
        let reported = buffer.size() as i64;
        env.adjust_external_memory(reported)?;
        Ok(DeviceBuffer { inner: Arc::new(buffer), elements, reported: Cell::new(reported) })
    }
}

/// Returns the named dtype, or else the buffer's own.
fn dtype_of(name: Option<Text>, elements: Elements) -> Result<DType> {
    match (name, elements.dtype) {
        (Some(name), _) => name.parse(),
        (None, Some(dtype)) => Ok(dtype),
        (None, None) => fail!(InvalidArgument, "the buffer's contents have no dtype: pass one"),
    }
}

impl ObjectFinalize for DeviceBuffer {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.reported.get()).map(|_| ())
    }
}

/// Reads the whole buffer, whose size must be a multiple of the element size.
fn all(buffer: &gpu::Buffer, dtype: DType) -> Result<Vec<u8>> {
    let size = buffer.size();
    if !size.is_multiple_of(dtype.size()) {
        fail!(InvalidArgument, "a buffer of {size} bytes is not an array of {dtype}s of {}", dtype.size());
    }
    part(buffer, 0, size)
}

fn part(buffer: &gpu::Buffer, offset: usize, bytes: usize) -> Result<Vec<u8>> {
    // Checked before memory is allocated for the bytes.
    if offset > buffer.size() || bytes > buffer.size() - offset {
        fail!(InvalidArgument, "{bytes} bytes at offset {offset} don't fit in a buffer of {} bytes", buffer.size());
    }
    let mut into = vec![0; bytes];
    buffer.read_bytes(offset, &mut into)?;
    Ok(into)
}

#[napi]
impl DeviceBuffer {
    /// The number of elements, of the kind that the buffer was made of.
    #[napi(getter)]
    pub fn size(&self) -> f64 {
        (self.inner.size() / self.elements.size) as f64
    }

    /// The size in bytes.
    #[napi(getter)]
    pub fn nbytes(&self) -> f64 {
        self.inner.size() as f64
    }

    /// The device of the buffer.
    #[napi(getter)]
    pub fn device(&self) -> DeviceInfo {
        self.inner.device().into()
    }

    /// Copies an array's bytes to a byte offset of the buffer, after everything that the context enqueued. Waits until they are
    /// written. `invalid_argument` if they don't fit or the buffer was freed.
    #[napi(ts_args_type = "offset: number, data: TypedArray")]
    pub fn write(&self, env: Env, offset: Size, data: Array) -> napi::Result<()> {
        guard(env, || self.inner.write_bytes(offset.0, data.bytes()))
    }

    /// Runs `write` on another thread. The array is copied first, so the caller may reuse it at once.
    #[napi(ts_args_type = "offset: number, data: TypedArray", ts_return_type = "Promise<void>")]
    pub fn write_async(&self, offset: Size, data: Array) -> AsyncTask<Job> {
        let (buffer, bytes) = (self.inner.clone(), data.bytes().to_vec());
        promise(Ok(move || buffer.write_bytes(offset.0, &bytes)), |_, ()| Ok(()))
    }

    /// Waits for everything that the context enqueued, and fills an array with the bytes from a byte offset on.
    #[napi(ts_args_type = "offset: number, into: TypedArray")]
    pub fn read_into(&self, env: Env, offset: Size, into: Array) -> napi::Result<()> {
        let mut into = into;
        guard(env, || self.inner.read_bytes(offset.0, into.bytes_mut()))
    }

    /// Reads like `readInto`, into a new array of this many bytes.
    #[napi(ts_args_type = "offset: number, bytes: number", ts_return_type = "Uint8Array")]
    pub fn read(&self, env: Env, offset: Size, bytes: Size) -> napi::Result<Unknown<'static>> {
        let bytes = guard(env, || part(&self.inner, offset.0, bytes.0))?;
        bytes_of(env, &bytes)
    }

    /// Runs `read` on another thread.
    #[napi(ts_args_type = "offset: number, bytes: number", ts_return_type = "Promise<Uint8Array>")]
    pub fn read_async(&self, offset: Size, bytes: Size) -> AsyncTask<Job> {
        let buffer = self.inner.clone();
        promise(Ok(move || part(&buffer, offset.0, bytes.0)), |env, bytes| bytes_of(env, &bytes))
    }

    /// Reads the whole buffer as elements of a dtype. The default is the dtype that the buffer was made of. `invalid_argument`
    /// if that is unknown, or if the buffer's size is not a multiple of the element size.
    #[napi(ts_generic_types = "D extends DType = DType", ts_args_type = "dtype?: D", ts_return_type = "ArrayOf<D>")]
    pub fn to_array(&self, env: Env, dtype: Option<Text>) -> napi::Result<Unknown<'static>> {
        let (dtype, bytes) = guard(env, || {
            let dtype = dtype_of(dtype, self.elements)?;
            Ok((dtype, all(&self.inner, dtype)?))
        })?;
        array_of(env, dtype, &bytes)
    }

    /// Runs `toArray` on another thread.
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

    /// Frees the memory once the work that uses it is done. `invalid_argument` if it was freed before, and for any later use.
    #[napi]
    pub fn free(&self, env: Env) -> napi::Result<()> {
        guard(env, || self.inner.free())?;
        env.adjust_external_memory(-self.reported.take()).map(|_| ())
    }
}
