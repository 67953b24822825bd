//! The buffer protocol: other objects' arrays as operands, and tensors as arrays of other objects.

use crate::errors::{Result, fail};
use adead::{DType, Meta, Shape};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};

/// What the elements of a float64 array become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Doubles {
    /// f32: each is rounded to the nearest, ties to even. Beyond f32's range it becomes infinite.
    Narrowed,
    /// f64, with the same bits.
    Kept,
}

impl Doubles {
    /// Returns what they become on the way to a requested dtype. f16, bf16 and the integers are then rounded once, from f64.
    pub fn towards(dtype: Option<DType>) -> Doubles {
        match dtype {
            None | Some(DType::F32) => Doubles::Narrowed,
            Some(_) => Doubles::Kept,
        }
    }

    /// Returns what they become beside other operands. Operations take an f64 tensor only with f64.
    pub fn beside(has_f64: bool) -> Doubles {
        if has_f64 { Doubles::Kept } else { Doubles::Narrowed }
    }
}

/// An exported buffer, which is released when it is dropped.
pub struct Exported<'py> {
    // Boxed, because exporters may point into it.
    view: Box<ffi::Py_buffer>,
    py: Python<'py>,
    doubles: Doubles,
}

impl Drop for Exported<'_> {
    fn drop(&mut self) {
        // SAFETY: the view was exported once; `py` proves that this thread may call Python.
        unsafe { ffi::PyBuffer_Release(&mut *self.view) };
    }
}

impl<'py> Exported<'py> {
    /// Exports an object's array, with format and strides.
    pub fn new(object: &Bound<'py, PyAny>, doubles: Doubles) -> PyResult<Exported<'py>> {
        Exported::with(object, ffi::PyBUF_FORMAT | ffi::PyBUF_STRIDES, doubles)
    }

    /// Exports an object's contiguous bytes.
    pub fn bytes_of(object: &Bound<'py, PyAny>) -> PyResult<Exported<'py>> {
        Exported::with(object, ffi::PyBUF_C_CONTIGUOUS, Doubles::Kept)
    }

    fn with(object: &Bound<'py, PyAny>, flags: c_int, doubles: Doubles) -> PyResult<Exported<'py>> {
        let py = object.py();
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: both are an object and a view of this call.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) } != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Exported { view, py, doubles })
    }

    /// Returns whether an object supports the buffer protocol.
    pub fn supports_buffer_protocol(object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: an object.
        unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
    }

    /// Returns the interpreter that the buffer belongs to.
    pub fn py(&self) -> Python<'py> {
        self.py
    }

    /// Returns the address of the first element.
    pub fn start(&self) -> NonNull<u8> {
        // An empty array may have no address; then use one that suits every dtype.
        NonNull::new(self.view.buf.cast()).unwrap_or(NonNull::<u64>::dangling().cast())
    }

    /// Returns the bytes of a contiguous array.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the exporter keeps this many contiguous bytes while the export lasts.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.view.len as usize) }
    }

    /// Returns whether its elements are float64 that become f32.
    fn is_narrowed(&self) -> bool {
        self.doubles == Doubles::Narrowed && self.own_dtype() == Some(DType::F64)
    }

    /// Returns the element type after reading. `dtype_mismatch` names a format that the core has no dtype for.
    pub fn dtype(&self) -> Result<DType> {
        match self.own_dtype() {
            Some(DType::F64) if self.doubles == Doubles::Narrowed => Ok(DType::F32),
            Some(dtype) => Ok(dtype),
            None => fail!(
                DtypeMismatch,
                "an array of '{}' elements of {} bytes: pass f32, f16, f64, i32, i64, u32, bool or u8; convert it first, such as \
                 with array.astype(numpy.float32)",
                self.format().to_string_lossy(),
                self.view.itemsize
            ),
        }
    }

    fn own_dtype(&self) -> Option<DType> {
        dtype_of(self.format(), self.view.itemsize as usize)
    }

    fn format(&self) -> &CStr {
        match self.view.format.is_null() {
            true => c"B",
            // SAFETY: the exporter's text, which stays while the export lasts.
            false => unsafe { CStr::from_ptr(self.view.format) },
        }
    }

    /// Returns the dimensions. `invalid_argument` above the core's highest rank.
    pub fn shape(&self) -> Result<Shape> {
        Ok(Shape::new(&self.dimensions(self.view.shape).map(|n| n as usize).collect::<SmallVec<[usize; 8]>>())?)
    }

    fn dimensions(&self, array: *const isize) -> impl Iterator<Item = isize> {
        // SAFETY: shape and strides were requested, so each has this many values.
        let known = (!array.is_null()).then(|| unsafe { std::slice::from_raw_parts(array, self.view.ndim as usize) });
        known.unwrap_or_default().iter().copied()
    }

    /// Describes the whole array.
    pub fn meta(&self) -> Result<Meta> {
        Ok(Meta::new(self.dtype()?, self.shape()?))
    }

    /// Returns whether the core can read it in place: row-major without gaps, and aligned for the dtype.
    pub fn is_plain(&self, meta: &Meta) -> bool {
        // SAFETY: an exported view.
        let contiguous = unsafe { ffi::PyBuffer_IsContiguous(&*self.view, b'C' as _) } != 0;
        contiguous && !self.is_narrowed() && self.start().as_ptr().addr().is_multiple_of(meta.dtype.size())
    }

    /// Copies all elements, row-major, to memory of `meta.bytes()` bytes. They become what `meta` says.
    ///
    /// # Safety
    /// `to` has room for `meta.bytes()`.
    pub unsafe fn gather(&self, to: NonNull<u8>, meta: &Meta) {
        let strides: SmallVec<[isize; 8]> = self.dimensions(self.view.strides).collect();
        let (from, to, dims) = (self.start().as_ptr(), to.as_ptr(), meta.shape.dims());
        // SAFETY: the elements are where the exporter says, and the caller vouches for the room.
        unsafe {
            if self.is_narrowed() {
                gather_with(from, to, dims, &strides, meta.dtype.size(), &narrow);
            } else {
                gather(from, to, dims, &strides, meta.dtype.size());
            }
        }
    }
}

/// Copies an array with byte strides to row-major memory.
///
/// # Safety
/// Every element is readable, and `to` has room for them.
pub unsafe fn gather(from: *const u8, to: *mut u8, dims: &[usize], strides: &[isize], size: usize) {
    // SAFETY: as the caller says.
    unsafe {
        let copy = |from: *const u8, to: *mut u8| to.copy_from_nonoverlapping(from, size);
        gather_with(from, to, dims, strides, size, &copy);
    }
}

/// Does the same with elements of `size` bytes that `element` writes to their places.
///
/// # Safety
/// As for [`gather`].
pub unsafe fn gather_with(
    from: *const u8,
    to: *mut u8,
    dims: &[usize],
    strides: &[isize],
    size: usize,
    element: &impl Fn(*const u8, *mut u8),
) {
    match (dims, strides) {
        ([rows, dims @ ..], [stride, strides @ ..]) => {
            let step = dims.iter().product::<usize>() * size;
            if step > 0 {
                for row in 0..*rows {
                    // SAFETY: these are one entry's elements, of those that the caller vouches for.
                    unsafe {
                        let (from, to) = (from.offset(row as isize * stride), to.add(row * step));
                        gather_with(from, to, dims, strides, size, element);
                    }
                }
            }
        }
        _ => element(from, to),
    }
}

/// Converts a float64 to the nearest f32.
pub fn narrow(from: *const u8, to: *mut u8) {
    // SAFETY: called by `gather_with` for an element that its caller vouches for, and room for an f32.
    unsafe { to.cast::<f32>().write_unaligned(from.cast::<f64>().read_unaligned() as f32) };
}

/// Returns the format of a dtype; none for bf16, for which the buffer protocol has no letter.
pub fn format_of(dtype: DType) -> Option<&'static CStr> {
    match dtype {
        DType::F32 => Some(c"f"),
        DType::F16 => Some(c"e"),
        DType::BF16 => None,
        DType::I32 => Some(c"i"),
        DType::I64 => Some(c"q"),
        DType::U32 => Some(c"I"),
        DType::Bool => Some(c"?"),
        DType::U8 => Some(c"B"),
        DType::F64 => Some(c"d"),
    }
}

/// Returns the letter of a format in native order.
fn letter(format: &CStr) -> Option<u8> {
    let little = cfg!(target_endian = "little");
    match *format.to_bytes() {
        [letter] | [b'@' | b'=', letter] => Some(letter),
        [b'<', letter] if little => Some(letter),
        [b'>' | b'!', letter] if !little => Some(letter),
        _ => None,
    }
}

/// Returns the dtype of a format: a letter in native order whose size is the machine's.
fn dtype_of(format: &CStr, size: usize) -> Option<DType> {
    match (letter(format)?, size) {
        (b'f', 4) => Some(DType::F32),
        (b'e', 2) => Some(DType::F16),
        (b'i' | b'l' | b'q', 4) => Some(DType::I32),
        (b'i' | b'l' | b'q', 8) => Some(DType::I64),
        (b'I' | b'L', 4) => Some(DType::U32),
        (b'?', 1) => Some(DType::Bool),
        (b'B', 1) => Some(DType::U8),
        (b'd', 8) => Some(DType::F64),
        _ => None,
    }
}

/// Fills in a view of row-major memory for an exporter. The shape is copied into the view's own memory, which
/// [`release`] frees.
///
/// # Safety
/// `view` is the view of a `bf_getbuffer`, and the memory lives as long as `owner`.
pub unsafe fn export(
    owner: Bound<'_, PyAny>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
    start: NonNull<u8>,
    meta: &Meta,
    readonly: bool,
) -> PyResult<()> {
    let refuse = |text: &str| Err(pyo3::exceptions::PyBufferError::new_err(text.to_string()));
    if view.is_null() {
        return refuse("view is NULL");
    }
    // SAFETY: as the caller says. On an error `obj` must be NULL.
    unsafe { (*view).obj = ptr::null_mut() };
    if readonly && flags & ffi::PyBUF_WRITABLE != 0 {
        return refuse("a tensor is read-only: copy it with numpy.array(tensor)");
    }
    let Some(format) = format_of(meta.dtype) else {
        return refuse("bf16 has no format in the buffer protocol: use tobytes(), DLPack, or cast to f32");
    };
    let rank = meta.shape.rank();
    let (mut lengths, mut stride) = (vec![0isize; 2 * rank].into_boxed_slice(), meta.dtype.size() as isize);
    for (axis, &length) in meta.shape.dims().iter().enumerate().rev() {
        (lengths[axis], lengths[rank + axis]) = (length as isize, stride);
        stride *= length as isize;
    }
    let lengths = Box::into_raw(lengths).cast::<isize>();
    let shown = |flag: c_int, pointer: *mut isize| if flags & flag == flag { pointer } else { ptr::null_mut() };
    // SAFETY: the view is to be filled in, and the lengths live until it is released.
    unsafe {
        *view = ffi::Py_buffer {
            buf: start.as_ptr().cast(),
            obj: owner.into_ptr(),
            len: meta.bytes() as isize,
            itemsize: meta.dtype.size() as isize,
            readonly: readonly.into(),
            ndim: rank as c_int,
            format: if flags & ffi::PyBUF_FORMAT != 0 { format.as_ptr().cast_mut() } else { ptr::null_mut() },
            shape: shown(ffi::PyBUF_ND, lengths),
            strides: shown(ffi::PyBUF_STRIDES, lengths.wrapping_add(rank)),
            suboffsets: ptr::null_mut(),
            internal: lengths.cast::<c_void>(),
        };
    }
    Ok(())
}

/// Frees what [`export`] made.
///
/// # Safety
/// [`export`] has filled in `view`.
pub unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: as the caller says; `export` made it from a box of twice as many values.
    unsafe {
        let lengths = (*view).internal.cast::<isize>();
        if !lengths.is_null() {
            drop(Box::from_raw(ptr::slice_from_raw_parts_mut(lengths, 2 * (*view).ndim as usize)));
        }
    }
}
