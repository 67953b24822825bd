//! Exports tensors and buffers to other libraries.

use super::{
    CPU, CUDA, Device, DlTensor, IS_COPIED, Managed, ManagedVersioned, PLAIN, READ_ONLY, VERSION, VERSIONED, type_of,
};
use crate::errors::{Fault, Result, detached, fail};
use crate::gpu::PyBuffer;
use crate::tensor::{PyTensor, on_host};
use adead::device::Buffer as Memory;
use adead::gpu::Buffer;
use adead::{Context, Meta, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// A consumer's request.
pub struct Request<'a, 'py> {
    /// The stream on which it will use the memory.
    pub stream: Option<&'a Bound<'py, PyAny>>,
    /// The newest version that it understands. None: only the protocol before versions.
    pub max_version: Option<(u32, u32)>,
    /// The device on which it wants the memory.
    pub dl_device: Option<(i32, i32)>,
    /// Whether the memory must or must not be copied.
    pub copy: Option<bool>,
}

/// The standard requires BufferErrors for protocol errors.
pub(super) fn refused(text: String) -> Fault {
    Fault::Python(PyBufferError::new_err(text))
}

/// The data that an export keeps until its deleter is called.
struct ExportedData {
    /// The lengths, followed by the strides in elements.
    lengths: Vec<i64>,
    _owner: Box<dyn Any + Send + Sync>,
}

impl ExportedData {
    fn new(meta: &Meta, owner: Box<dyn Any + Send + Sync>) -> Box<ExportedData> {
        let dims = meta.shape.dims();
        let mut lengths: Vec<i64> = dims.iter().map(|&length| length as i64).collect();
        lengths
            .extend((0..dims.len()).map(|axis| dims[axis + 1..].iter().map(|&length| length as i64).product::<i64>()));
        Box::new(ExportedData { lengths, _owner: owner })
    }
}

/// Makes the DLPack tensor around a box that its deleter drops.
fn dl_tensor(kept: &mut ExportedData, address: *mut c_void, device: Device, meta: &Meta) -> DlTensor {
    let rank = meta.shape.rank();
    let shape = kept.lengths.as_mut_ptr();
    DlTensor {
        data: address,
        device,
        ndim: rank as i32,
        dtype: type_of(meta.dtype),
        shape,
        strides: shape.wrapping_add(rank),
        byte_offset: 0,
    }
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both boxes were made by `capsule`, and a deleter is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<ExportedData>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: both boxes were made by `capsule`, and a deleter is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<ExportedData>()));
    }
}

/// Deletes a tensor that no consumer took. A consumer gives the capsule another name.
unsafe extern "C" fn discard(capsule: *mut ffi::PyObject) {
    // SAFETY: `capsule` made this capsule, and under its first name its pointer is what was made there.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        }
    }
}

/// Makes a capsule with the memory at an address, which `owner` keeps.
fn capsule<'py>(
    py: Python<'py>,
    address: *mut c_void,
    device: Device,
    meta: &Meta,
    owner: Box<dyn Any + Send + Sync>,
    versioned: bool,
    flags: u64,
) -> Result<Bound<'py, PyAny>> {
    let mut kept = ExportedData::new(meta, owner);
    let tensor = dl_tensor(&mut kept, address, device, meta);
    let context = Box::into_raw(kept).cast::<c_void>();
    let (pointer, name) = if versioned {
        let managed = ManagedVersioned { version: VERSION, context, deleter: Some(delete_versioned), flags, tensor };
        (Box::into_raw(Box::new(managed)).cast::<c_void>(), VERSIONED)
    } else {
        (Box::into_raw(Box::new(Managed { tensor, context, deleter: Some(delete) })).cast(), PLAIN)
    };
    // SAFETY: a pointer, and a name that lives on; NULL with an exception is passed on.
    Ok(unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(discard))) }?)
}

/// Returns whether the consumer understands versions.
fn is_versioned(request: &Request<'_, '_>) -> bool {
    request.max_version.is_some_and(|(major, _)| major >= VERSION.major)
}

/// Implements `Tensor.__dlpack__`: the tensor's memory, read-only. A consumer that wants a copy, or can't be told that
/// the data is read-only, receives a copy.
pub fn export_tensor<'py>(tensor: &Bound<'py, PyTensor>, request: &Request<'_, 'py>) -> Result<Bound<'py, PyAny>> {
    if request.stream.is_some_and(|stream| !stream.is_none()) {
        return Err(refused("host memory has no stream: stream must be None".into()));
    }
    if let Some(device) = request.dl_device.filter(|&device| device != CPU) {
        return Err(refused(format!("a tensor is in host memory {CPU:?}, not on {device:?}")));
    }
    export_host(tensor.py(), tensor.get().0.clone(), request, false)
}

/// Exports a tensor's memory; `alone` says that nothing else refers to it.
fn export_host<'py>(
    py: Python<'py>,
    tensor: Tensor,
    request: &Request<'_, '_>,
    alone: bool,
) -> Result<Bound<'py, PyAny>> {
    let versioned = is_versioned(request);
    let copy = !alone && request.copy.unwrap_or(!versioned);
    if !alone && request.copy == Some(false) && !versioned {
        return Err(refused("a tensor is read-only, which needs DLPack 1.0: request it or allow a copy".into()));
    }
    let tensor = match copy {
        true => Tensor::from_bytes(on_host(py, &tensor)?, tensor.dtype(), tensor.dims())?,
        false => tensor,
    };
    let meta = Meta::new(tensor.dtype(), *tensor.shape());
    let address = on_host(py, &tensor)?.as_ptr().cast_mut().cast();
    let (device, flags) = (Device { kind: CPU.0, number: CPU.1 }, if copy || alone { IS_COPIED } else { READ_ONLY });
    capsule(py, address, device, &meta, Box::new(tensor), versioned, flags)
}

/// Returns the number of a CUDA device: 1 for "cuda:1".
pub(super) fn cuda_number(id: &str) -> Option<i32> {
    id.strip_prefix("cuda:")?.parse().ok()
}

/// Returns a buffer's device, for `__dlpack_device__`.
pub fn device_of(buffer: &Buffer) -> Result<(i32, i32)> {
    let id = &buffer.device().id;
    match cuda_number(id) {
        Some(number) => Ok((CUDA, number)),
        None if id == "cpu" => Ok(CPU),
        None => Err(refused(format!("memory of {id} can't be shared: read() returns a tensor"))),
    }
}

/// Device memory that a consumer holds.
struct BorrowedBuffer {
    _memory: Arc<dyn Memory>,
    ctx: Context,
}

impl Drop for BorrowedBuffer {
    fn drop(&mut self) {
        // The consumer may return the memory before its kernels have finished, and the memory will be reused. A lost
        // device has nothing to wait for.
        let _ = self.ctx.wait_for_others();
    }
}

/// Implements `Buffer.__dlpack__`. CUDA memory is shared once the context's work has finished. If the consumer wants it
/// on the host, and for a buffer in host memory, the consumer receives a copy.
pub fn export_buffer<'py>(buffer: &Bound<'py, PyBuffer>, request: &Request<'_, 'py>) -> Result<Bound<'py, PyAny>> {
    let (py, this) = (buffer.py(), buffer.get());
    let (kind, number) = device_of(this.core())?;
    let wanted = request.dl_device.unwrap_or((kind, number));
    if this.meta().bytes() != this.core().size() {
        let (bytes, dtype) = (this.core().size(), this.meta().dtype);
        return Err(refused(format!("a buffer of {bytes} bytes is not an array of {dtype}")));
    }
    if wanted == CPU {
        if request.copy == Some(false) {
            return Err(refused("reading a buffer on the host needs a copy, but copy is False".into()));
        }
        let tensor = detached(py, || this.core().to_tensor(0, this.meta()))?;
        return export_host(py, tensor, request, true);
    }
    if wanted != (kind, number) {
        return Err(refused(format!("the buffer is on {:?}, not on {wanted:?}", (kind, number))));
    }
    // The consumer's stream waits for nothing, because everything that the context enqueued is done when this returns.
    // -1 says that the consumer does not synchronise.
    let cares = match request.stream {
        Some(stream) if !stream.is_none() => stream.extract::<i64>()? != -1,
        _ => true,
    };
    let (memory, copied) = detached(py, || {
        let memory = if request.copy == Some(true) {
            let copy = this.context().buffer_zeroed(this.core().size())?;
            let mut stream = this.context().stream()?;
            this.context().wait()?;
            stream.copy((this.core(), 0), (&copy, 0), copy.size())?;
            stream.synchronize()?;
            copy.memory()?
        } else {
            this.core().memory()?
        };
        if cares {
            this.context().wait()?;
        }
        Ok((memory, request.copy == Some(true)))
    })?;
    let Some(address) = memory.device_address() else { fail!(Internal, "CUDA memory without an address") };
    let address = ptr::with_exposed_provenance_mut::<c_void>(address as usize);
    let flags = if copied { IS_COPIED } else { 0 };
    let device = Device { kind, number };
    let borrowed = Box::new(BorrowedBuffer { _memory: memory, ctx: this.context().clone() });
    capsule(py, address, device, this.meta(), borrowed, is_versioned(request), flags)
}
