//! The deterministic allocator and the arena.

use crate::errors::{Result, fail, guard};
use adead::memory::{ArenaAllocator, DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, DeterministicAllocator};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An allocator of blocks whose offsets depend only on the sequence of calls, so that they are the same on every
/// machine.
///
/// `DeterministicAllocator(block_size=None, blocks=None)`; None is the core's default.
#[pyclass(frozen, module = "adead", name = "DeterministicAllocator")]
pub struct PyAllocator(Mutex<DeterministicAllocator>);

impl PyAllocator {
    fn lock(&self) -> MutexGuard<'_, DeterministicAllocator> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyAllocator {
    #[new]
    #[pyo3(signature = (block_size=None, blocks=None))]
    fn new(block_size: Option<usize>, blocks: Option<usize>) -> Result<PyAllocator> {
        let (block_size, blocks) = (block_size.unwrap_or(DEFAULT_BLOCK_SIZE), blocks.unwrap_or(DEFAULT_BLOCKS));
        guard(|| Ok(PyAllocator(Mutex::new(DeterministicAllocator::with_capacity(block_size, blocks)?))))
    }

    /// Allocates at least `size` bytes and returns their offset.
    fn alloc(&self, size: usize) -> Result<usize> {
        Ok(self.lock().alloc(size)?)
    }

    /// Frees the allocation at an offset.
    fn free(&self, offset: usize) -> Result<()> {
        Ok(self.lock().free(offset)?)
    }

    /// Frees everything.
    fn reset(&self) {
        self.lock().reset();
    }

    /// Returns the bytes of the allocation at an offset.
    fn size(&self, offset: usize) -> Result<usize> {
        Ok(self.lock().size(offset)?)
    }

    /// Returns the memory of the allocation at an offset, to read and write through the buffer protocol. It stays
    /// readable after the allocation was freed, but may then belong to another one.
    fn memory(slf: Bound<'_, PyAllocator>, offset: usize) -> Result<PyMemory> {
        let (start, size) = {
            let allocator = slf.get().lock();
            (allocator.ptr(offset)?, allocator.size(offset)?)
        };
        Ok(PyMemory { start, size, _owner: slf.into_any().unbind() })
    }

    /// The bytes of a block.
    #[getter]
    fn block_size(&self) -> usize {
        self.lock().block_size()
    }

    /// All bytes, free or not.
    #[getter]
    fn capacity(&self) -> usize {
        self.lock().capacity()
    }

    /// The bytes of the blocks in use.
    #[getter]
    fn used(&self) -> usize {
        self.lock().used()
    }

    /// The bytes of the free blocks.
    #[getter]
    fn available(&self) -> usize {
        self.lock().available()
    }

    /// Bytes of the longest free run.
    #[getter]
    fn largest_free(&self) -> usize {
        self.lock().largest_free()
    }

    /// The highest end of an allocation since the start or the last reset.
    #[getter]
    fn high_water(&self) -> usize {
        self.lock().high_water()
    }

    /// The number of live allocations.
    #[getter]
    fn live(&self) -> usize {
        self.lock().live()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.lock())
    }
}

/// An arena of scratch memory: an allocation advances a pointer, and a reset releases everything together.
///
/// `ArenaAllocator(size=None, limit=None)` has `size` bytes and grows to `limit`. If both are equal it never grows.
#[pyclass(frozen, module = "adead", name = "ArenaAllocator")]
pub struct PyArena(Mutex<ArenaAllocator>);

impl PyArena {
    fn lock(&self) -> MutexGuard<'_, ArenaAllocator> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyArena {
    #[new]
    #[pyo3(signature = (size=None, limit=None))]
    fn new(size: Option<usize>, limit: Option<usize>) -> Result<PyArena> {
        let arena = guard(|| {
            Ok(match (size, limit) {
                (None, None) => ArenaAllocator::new(),
                (Some(size), None) => ArenaAllocator::with_capacity(size)?,
                (Some(size), Some(limit)) => ArenaAllocator::with_limit(size, limit)?,
                (None, Some(_)) => fail!(InvalidArgument, "an arena with a limit needs an initial size: pass size"),
            })
        })?;
        Ok(PyArena(Mutex::new(arena)))
    }

    /// Allocates `size` bytes at a multiple of `align`, a power of two up to 4096, to read and write through the buffer
    /// protocol. They stay readable after a reset, but may then belong to another allocation.
    fn alloc(slf: Bound<'_, PyArena>, size: usize, align: usize) -> Result<PyMemory> {
        let start = NonNull::from(slf.get().lock().alloc(size, align)?).cast();
        Ok(PyMemory { start, size, _owner: slf.into_any().unbind() })
    }

    /// Releases all allocations. The arena keeps the memory.
    fn reset(&self) {
        self.lock().reset();
    }

    /// The bytes in use, including padding.
    #[getter]
    fn used(&self) -> usize {
        self.lock().used()
    }

    /// The bytes that the arena has taken from the system.
    #[getter]
    fn capacity(&self) -> usize {
        self.lock().capacity()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.lock())
    }
}

/// An allocation. `memoryview(memory)` or `numpy.frombuffer(memory, …)` reads and writes it.
#[pyclass(frozen, module = "adead", name = "Memory")]
pub struct PyMemory {
    start: NonNull<u8>,
    size: usize,
    /// Keeps the memory alive until it is dropped, even after a free or a reset.
    _owner: Py<PyAny>,
}

// SAFETY: an address in memory that the owner keeps. Code that reads or writes there holds the GIL, or is responsible
// itself.
unsafe impl Send for PyMemory {}
// SAFETY: as above.
unsafe impl Sync for PyMemory {}

#[pymethods]
impl PyMemory {
    /// The size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.size
    }

    /// The address of the first byte.
    #[getter]
    fn address(&self) -> usize {
        self.start.as_ptr().addr()
    }

    unsafe fn __getbuffer__(slf: Bound<'_, PyMemory>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let PyMemory { start, size, .. } = slf.get();
        let Ok(size) = isize::try_from(*size) else {
            return Err(PyBufferError::new_err("the memory is too large for a buffer"));
        };
        // SAFETY: the view is to be filled in, and the object keeps the memory.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.as_ptr().cast(), size, 0, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }

    fn __repr__(&self) -> String {
        format!("Memory({} bytes)", self.size)
    }
}
