//! Imports other libraries' tensors.

use super::export::{cuda_number, refused};
use super::{
    CPU, CUDA, CUDA_HOST, DlTensor, Managed, ManagedVersioned, PLAIN, PLAIN_USED, READ_ONLY, VERSION, VERSIONED,
    VERSIONED_USED, dtype_of,
};
use crate::buffers::gather;
use crate::context::PyContext;
use crate::current::default_context;
use crate::errors::{Result, detached, fail, wrong_type};
use crate::gpu::PyBuffer;
use crate::tensor::PyTensor;
use crate::values::reserved;
use adead::{Meta, Shape, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Another library's tensor, until it is dropped.
enum ImportedTensor {
    Plain(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: it is only read, and any thread may call its deleter, as dlpack.h requires.
unsafe impl Send for ImportedTensor {}
// SAFETY: as above.
unsafe impl Sync for ImportedTensor {}

impl ImportedTensor {
    fn tensor(&self) -> &DlTensor {
        // SAFETY: it is valid until the deleter is called.
        unsafe {
            match self {
                ImportedTensor::Plain(managed) => &managed.as_ref().tensor,
                ImportedTensor::Versioned(managed) => &managed.as_ref().tensor,
            }
        }
    }

    fn is_read_only(&self) -> bool {
        match self {
            ImportedTensor::Plain(_) => false,
            // SAFETY: as above.
            ImportedTensor::Versioned(managed) => unsafe { managed.as_ref() }.flags & READ_ONLY != 0,
        }
    }

    /// Returns the first element's address.
    fn address(&self) -> *mut u8 {
        let tensor = self.tensor();
        tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize)
    }

    /// Returns dtype and dimensions. `dtype_mismatch` for a dtype that the core does not have.
    fn meta(&self) -> Result<Meta> {
        let tensor = self.tensor();
        let Some(dtype) = dtype_of(tensor.dtype) else {
            let super::DataType { code, bits, lanes } = tensor.dtype;
            fail!(DtypeMismatch, "adead has no dtype for DLPack's type code {code} with {bits} bits and {lanes} lanes")
        };
        let mut dims = SmallVec::<[usize; 8]>::new();
        for &length in self.lengths(tensor.shape) {
            match usize::try_from(length) {
                Ok(length) => dims.push(length),
                Err(_) => fail!(InvalidArgument, "a DLPack tensor has a dimension of {length}"),
            }
        }
        Ok(Meta::new(dtype, Shape::new(&dims)?))
    }

    fn lengths(&self, array: *const i64) -> &[i64] {
        let rank = self.tensor().ndim.max(0) as usize;
        // SAFETY: the producer says that there is one value for each dimension.
        if rank == 0 || array.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(array, rank) } }
    }

    /// Returns the strides in bytes; None if the tensor is row-major without gaps.
    fn strides(&self, meta: &Meta) -> Option<SmallVec<[isize; 8]>> {
        let (dims, strides) = (meta.shape.dims(), self.lengths(self.tensor().strides));
        if strides.is_empty() || meta.shape.elements() == 0 {
            return None;
        }
        let mut plain = 1;
        let mut is_plain = true;
        for (&length, &stride) in dims.iter().zip(strides).rev() {
            is_plain &= length == 1 || stride == plain;
            plain *= length as i64;
        }
        let size = meta.dtype.size() as isize;
        (!is_plain).then(|| strides.iter().map(|&stride| stride as isize * size).collect())
    }
}

impl Drop for ImportedTensor {
    fn drop(&mut self) {
        // SAFETY: it was taken once, so its deleter is called once.
        unsafe {
            match self {
                ImportedTensor::Plain(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
                ImportedTensor::Versioned(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// Returns whether an object supports DLPack.
pub fn supports_dlpack(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr("__dlpack__")
}

/// Takes an object's memory, with the newest version that both understand.
fn import_capsule(object: &Bound<'_, PyAny>, stream: Option<i64>) -> Result<ImportedTensor> {
    let py = object.py();
    let options = PyDict::new(py);
    if let Some(stream) = stream {
        options.set_item("stream", stream)?;
    }
    let versioned = options.copy()?;
    versioned.set_item("max_version", (VERSION.major, VERSION.minor))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&versioned)) {
        // A producer from before versions does not know the keyword.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            object.call_method("__dlpack__", (), Some(&options))?
        }
        other => other?,
    };
    let pointer = |name: &std::ffi::CStr, used: &std::ffi::CStr| -> PyResult<Option<NonNull<c_void>>> {
        // SAFETY: an object; a capsule of this name holds what the name says, and the new name lives on.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                return Ok(None);
            }
            let pointer = NonNull::new(ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()));
            if pointer.is_none() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
            Ok(pointer)
        }
    };
    if let Some(managed) = pointer(VERSIONED, VERSIONED_USED)? {
        let imported = ImportedTensor::Versioned(managed.cast());
        // SAFETY: every version of the struct begins with its number.
        let major = unsafe { managed.cast::<ManagedVersioned>().as_ref() }.version.major;
        if major != VERSION.major {
            return Err(refused(format!("DLPack version {major} is not supported, only version {}", VERSION.major)));
        }
        return Ok(imported);
    }
    match pointer(PLAIN, PLAIN_USED)? {
        Some(managed) => Ok(ImportedTensor::Plain(managed.cast())),
        None => Err(wrong_type(format!("__dlpack__() of a {} returned no DLPack capsule", object.get_type().name()?))),
    }
}

/// Returns the device of an object's memory.
fn device_of(object: &Bound<'_, PyAny>) -> Result<(i32, i32)> {
    let device = object.call_method0("__dlpack_device__")?;
    // Enumerations are ints, too.
    let part = |i: usize| -> PyResult<i32> { device.get_item(i)?.call_method0("__int__")?.extract() };
    Ok((part(0)?, part(1)?))
}

/// Makes a tensor of memory on the host. It shares the memory if the layout allows and `copy` is not True.
pub fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> Result<Tensor> {
    let (kind, number) = device_of(object)?;
    if kind != CPU.0 && kind != CUDA_HOST {
        fail!(InvalidArgument, "the operand is on DLPack's device ({kind}, {number}), not in host memory {CPU:?}");
    }
    let imported = import_capsule(object, None)?;
    let (meta, address) = (imported.meta()?, imported.address());
    let strides = imported.strides(&meta);
    let start = NonNull::new(address).unwrap_or(NonNull::<u64>::dangling().cast());
    let is_aligned = start.as_ptr().addr().is_multiple_of(meta.dtype.size());
    if strides.is_none() && is_aligned && copy != Some(true) {
        // SAFETY: the memory is row-major, aligned, and kept until it is dropped. The producer promises not to write.
        return Ok(unsafe { Tensor::foreign(start, &meta, Box::new(imported)) }?);
    }
    if copy == Some(false) {
        return Err(refused("copy is False, but a layout with gaps or without alignment needs a copy".into()));
    }
    let plain: SmallVec<[isize; 8]>;
    let strides = match strides {
        Some(strides) => strides,
        None => {
            let (dims, size) = (meta.shape.dims(), meta.dtype.size());
            plain = (0..dims.len()).map(|axis| (dims[axis + 1..].iter().product::<usize>() * size) as isize).collect();
            plain
        }
    };
    let mut bytes = reserved(meta.bytes())?;
    // SAFETY: the elements are where the producer says; there is room for them, and all are written.
    unsafe {
        if meta.bytes() > 0 {
            gather(address, bytes.as_mut_ptr(), meta.shape.dims(), &strides, meta.dtype.size());
        }
        bytes.set_len(meta.bytes());
    }
    Ok(Tensor::from_bytes(&bytes, meta.dtype, meta.shape.dims())?)
}

/// Implements the module's `from_dlpack`.
pub fn import<'py>(py: Python<'py>, object: &Bound<'py, PyAny>, copy: Option<bool>) -> Result<Bound<'py, PyAny>> {
    import_on(py, default_context(py)?.get(), object, copy)
}

/// Makes a tensor of memory on the host, or a buffer of memory on the context's CUDA device.
pub fn import_on<'py>(
    py: Python<'py>,
    ctx: &PyContext,
    object: &Bound<'py, PyAny>,
    copy: Option<bool>,
) -> Result<Bound<'py, PyAny>> {
    if !supports_dlpack(object)? {
        return Err(wrong_type(format!("a {} has no __dlpack__", object.get_type().name()?)));
    }
    let (kind, number) = device_of(object)?;
    if kind != CUDA {
        return Ok(Bound::new(py, PyTensor(tensor(object, copy)?))?.into_any());
    }
    Ok(Bound::new(py, cuda(py, ctx, object, number, copy)?)?.into_any())
}

/// Makes a buffer over CUDA memory. It copies if that is asked for or the memory is read-only.
fn cuda(
    py: Python<'_>,
    ctx: &PyContext,
    object: &Bound<'_, PyAny>,
    number: i32,
    copy: Option<bool>,
) -> Result<PyBuffer> {
    let device = format!("cuda:{number}");
    debug_assert_eq!(cuda_number(&device), Some(number));
    // The producer makes CUDA's default stream wait for its work. The buffer is made once that stream has caught up.
    const DEFAULT_STREAM: i64 = 1;
    let imported = import_capsule(object, Some(DEFAULT_STREAM))?;
    let meta = imported.meta()?;
    if imported.strides(&meta).is_some() {
        return Err(refused("a buffer has no strides: make the array contiguous first".into()));
    }
    let read_only = imported.is_read_only();
    if read_only && copy == Some(false) {
        return Err(refused("the array is read-only and needs a copy, but copy is False".into()));
    }
    let address = imported.address().expose_provenance() as u64;
    let buffer = detached(py, || {
        // SAFETY: the memory is on that device and has that size, and the producer keeps it until it is released. All
        // work before the default stream's current end has finished when this returns.
        let shared = unsafe { ctx.inner.buffer_over(&device, address, meta.bytes(), Box::new(imported)) }?;
        if !read_only && copy != Some(true) {
            return Ok(shared);
        }
        let own = ctx.inner.buffer_zeroed(meta.bytes())?;
        let mut stream = ctx.inner.stream()?;
        stream.copy((&shared, 0), (&own, 0), meta.bytes())?;
        stream.synchronize()?;
        Ok(own)
    })?;
    Ok(PyBuffer::new(buffer, ctx, meta))
}
